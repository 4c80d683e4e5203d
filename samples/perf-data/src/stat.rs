//! Records of counts without samples, as `perf stat record` writes them (`tools/lib/perf/include/perf/event.h`): what was counted
//! where, and the counts of every counter, round by round.

use crate::bytes::{Cursor, Malformed};
use crate::record::{HEADER_LEN, RawRecord, kind};
use crate::text::until_nul;
use crate::{Error, Result};

/// `PERF_STAT_CONFIG_TERM__*`.
const AGGREGATION: u64 = 0;
const INTERVAL: u64 = 1;
const SCALE: u64 = 2;
/// `PERF_CPU_MAP__*`: a list, a mask, a range.
const CPU_LIST: u16 = 0;
const CPU_MASK: u16 = 1;
const CPU_RANGE: u16 = 2;
/// CPU of a list that is none: whichever a thread is on.
const ANY_CPU: u16 = u16::MAX;
/// `PERF_EVENT_UPDATE__*`.
const UPDATE_UNIT: u64 = 0;
const UPDATE_SCALE: u64 = 1;
/// Bytes of a thread's name.
const NAME_LEN: usize = 16;

/// A record of counts.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum StatRecord {
    /// The settings of the measurement.
    Config(StatConfig),
    /// The threads that were counted, by which [`StatCount`] numbers them: the id and the name of each. A sole -1 is whatever ran
    /// on the CPUs.
    Threads(Vec<(i32, String)>),
    /// The CPUs that were counted; `None` is whichever a thread was on.
    Cpus(Vec<Option<u32>>),
    /// The values of an event are in a unit: the id of its counter, and the unit's name.
    Unit(u64, String),
    /// The factor from the values of an event to its unit: the id of its counter, and the factor.
    Scale(u64, f64),
    /// The count of a counter since it was opened.
    Count(StatCount),
    /// Every counter has been written once.
    Round(StatRound),
}

/// The way it was counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct StatConfig {
    /// The lines that were asked for, by the number that perf of that version has for them (`enum aggr_mode`,
    /// `tools/perf/util/stat.h`).
    pub aggregation: u64,
    /// Milliseconds from round to round; 0 if there is one.
    pub interval: u64,
    /// True if counts are scaled to the time enabled.
    pub scales: bool,
}

impl StatConfig {
    /// Returns the settings for an aggregation by its number, with scaled counts.
    pub fn new(aggregation: u64, interval: u64) -> Self {
        Self {
            aggregation,
            interval,
            scales: true,
        }
    }
}

/// The count of one counter.
///
/// Exhaustive: these are the fields of `PERF_RECORD_STAT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StatCount {
    /// An id of the event.
    pub id: u64,
    /// The CPU; `None` if it followed a thread.
    pub cpu: Option<u32>,
    /// The position of the thread in the list of threads.
    pub thread: u32,
    /// The count.
    pub value: u64,
    /// Nanoseconds enabled.
    pub enabled: u64,
    /// Nanoseconds really counting.
    pub running: u64,
}

/// The end of a round.
///
/// Exhaustive: these are the fields of `PERF_RECORD_STAT_ROUND`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StatRound {
    /// True for the end of the measurement, false for that of an interval.
    pub is_final: bool,
    /// Nanoseconds since counting began.
    pub time: u64,
}

impl StatRecord {
    /// The most threads that a record can list.
    pub const MOST_THREADS: usize = (u16::MAX as usize - HEADER_LEN - 8) / (8 + NAME_LEN);

    /// Reads a record of a file; `None` if it is of another kind.
    ///
    /// # Errors
    /// [`Malformed`](Error::Malformed) when it ends too early.
    pub fn decode(record: &RawRecord<'_>) -> Result<Option<Self>> {
        let wrong = |Malformed(field)| Error::malformed(field, 0);
        decode(record.kind(), Cursor::new(record.body())).map_err(wrong)
    }

    /// Returns the bytes of the record.
    pub fn to_bytes(&self) -> Vec<u8> {
        let word = u64::to_ne_bytes;
        let mut body = Vec::new();
        let mut words = |words: &[u64]| words.iter().for_each(|w| body.extend(word(*w)));
        let kind = match self {
            Self::Config(config) => {
                words(&[3, AGGREGATION, config.aggregation]);
                words(&[INTERVAL, config.interval, SCALE, config.scales.into()]);
                kind::STAT_CONFIG
            }
            Self::Threads(threads) => {
                words(&[threads.len() as u64]);
                for (id, name) in threads {
                    body.extend(word(i64::from(*id).cast_unsigned()));
                    let mut text = [0; NAME_LEN];
                    let len = name.len().min(NAME_LEN - 1);
                    text[..len].copy_from_slice(&name.as_bytes()[..len]);
                    body.extend(text);
                }
                kind::THREAD_MAP
            }
            Self::Cpus(cpus) => {
                let numbers = cpus.iter().map(|cpu| cpu.map_or(ANY_CPU, |cpu| cpu as u16));
                let numbers = [CPU_LIST, cpus.len() as u16].into_iter().chain(numbers);
                body.extend(numbers.flat_map(u16::to_ne_bytes));
                kind::CPU_MAP
            }
            Self::Unit(id, unit) => {
                words(&[UPDATE_UNIT, *id]);
                body.extend_from_slice(unit.as_bytes());
                body.push(0);
                kind::EVENT_UPDATE
            }
            Self::Scale(id, scale) => {
                words(&[UPDATE_SCALE, *id, scale.to_bits()]);
                kind::EVENT_UPDATE
            }
            Self::Count(count) => {
                words(&[count.id]);
                body.extend(count.cpu.unwrap_or(u32::MAX).to_ne_bytes());
                body.extend(count.thread.to_ne_bytes());
                let times = [count.value, count.enabled, count.running];
                body.extend(times.into_iter().flat_map(word));
                kind::STAT
            }
            Self::Round(round) => {
                words(&[round.is_final.into(), round.time]);
                kind::STAT_ROUND
            }
        };
        let len = (HEADER_LEN + body.len()).next_multiple_of(8);
        let mut bytes = kind.to_ne_bytes().to_vec();
        bytes.extend(0_u16.to_ne_bytes());
        bytes.extend((len as u16).to_ne_bytes());
        bytes.extend(body);
        bytes.resize(len, 0);
        bytes
    }
}

fn decode(of: u32, mut body: Cursor<'_>) -> Result<Option<StatRecord>, Malformed> {
    Ok(Some(match of {
        kind::STAT_CONFIG => {
            const WHAT: &str = "how it was counted";
            let mut config = StatConfig::default();
            for _ in 0..body.u64(WHAT)? {
                let (tag, value) = (body.u64(WHAT)?, body.u64(WHAT)?);
                match tag {
                    AGGREGATION => config.aggregation = value,
                    INTERVAL => config.interval = value,
                    SCALE => config.scales = value != 0,
                    _ => {}
                }
            }
            StatRecord::Config(config)
        }
        kind::THREAD_MAP => {
            const WHAT: &str = "the threads that were counted";
            let mut threads = Vec::new();
            for _ in 0..body.u64(WHAT)? {
                let id = body.u64(WHAT)? as i32;
                let name = until_nul(body.bytes(NAME_LEN, WHAT)?);
                threads.push((id, String::from_utf8_lossy(name).into_owned()));
            }
            StatRecord::Threads(threads)
        }
        kind::CPU_MAP => StatRecord::Cpus(cpus(body)?),
        kind::STAT => {
            const WHAT: &str = "a count";
            let id = body.u64(WHAT)?;
            let cpu = body.u32(WHAT)?;
            StatRecord::Count(StatCount {
                id,
                cpu: Some(cpu).filter(|cpu| *cpu != u32::MAX),
                thread: body.u32(WHAT)?,
                value: body.u64(WHAT)?,
                enabled: body.u64(WHAT)?,
                running: body.u64(WHAT)?,
            })
        }
        kind::STAT_ROUND => {
            const WHAT: &str = "the end of a round";
            StatRecord::Round(StatRound {
                is_final: body.u64(WHAT)? != 0,
                time: body.u64(WHAT)?,
            })
        }
        kind::EVENT_UPDATE => {
            const WHAT: &str = "more about an event";
            match (body.u64(WHAT)?, body.u64(WHAT)?) {
                (UPDATE_UNIT, id) => {
                    let unit = String::from_utf8_lossy(until_nul(body.rest()));
                    StatRecord::Unit(id, unit.into_owned())
                }
                (UPDATE_SCALE, id) => StatRecord::Scale(id, f64::from_bits(body.u64(WHAT)?)),
                _ => return Ok(None),
            }
        }
        _ => return Ok(None),
    }))
}

fn cpus(mut body: Cursor<'_>) -> Result<Vec<Option<u32>>, Malformed> {
    const WHAT: &str = "the CPUs that were counted";
    let any = |cpu: u16| (cpu != ANY_CPU).then_some(u32::from(cpu));
    let mut cpus = Vec::new();
    match body.u16(WHAT)? {
        CPU_LIST => {
            for _ in 0..body.u16(WHAT)? {
                cpus.push(any(body.u16(WHAT)?));
            }
        }
        CPU_MASK => {
            let (words, size) = (body.u16(WHAT)?, body.u16(WHAT)?);
            let width = match size {
                4 => u32::BITS,
                8 => {
                    body.bytes(4, WHAT)?;
                    u64::BITS
                }
                _ => return Err(Malformed(WHAT)),
            };
            for word in 0..u32::from(words) {
                let bits = match width {
                    u64::BITS => body.u64(WHAT)?,
                    _ => body.u32(WHAT)?.into(),
                };
                let set = (0..width).filter(|bit| bits >> bit & 1 != 0);
                cpus.extend(set.map(|bit| Some(word * width + bit)));
            }
        }
        CPU_RANGE => {
            let [has_any, _] = body.u16(WHAT)?.to_ne_bytes();
            let (first, last) = (body.u16(WHAT)?, body.u16(WHAT)?);
            cpus.extend((has_any != 0).then_some(None));
            cpus.extend((first..=last).map(any));
        }
        _ => return Err(Malformed(WHAT)),
    }
    Ok(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::byte_order::swap_body;
    use crate::{RecordLayout, SampleType};

    fn read(bytes: &[u8]) -> Result<Option<StatRecord>> {
        StatRecord::decode(&RawRecord::at_start(bytes).expect("whole"))
    }

    fn all() -> Vec<StatRecord> {
        let count = StatCount {
            id: 7,
            cpu: Some(3),
            thread: 1,
            value: 1 << 40,
            enabled: 20,
            running: 10,
        };
        vec![
            StatRecord::Config(StatConfig::new(2, 100)),
            StatRecord::Threads(vec![(-1, String::new()), (12, "sleep".into())]),
            StatRecord::Cpus(vec![Some(0), Some(2), None]),
            StatRecord::Unit(7, "msec".into()),
            StatRecord::Scale(7, 1e-6),
            StatRecord::Count(count),
            StatRecord::Count(StatCount { cpu: None, ..count }),
            StatRecord::Round(StatRound {
                is_final: true,
                time: 5,
            }),
        ]
    }

    #[test]
    fn records_come_back_and_are_none_where_they_are_cut() {
        for record in all() {
            let bytes = record.to_bytes();
            assert_eq!(bytes.len() % 8, 0, "{record:?}");
            assert_eq!(read(&bytes).expect("whole"), Some(record.clone()));
            let mut cut = bytes[..16].to_vec();
            cut[6..8].copy_from_slice(&16_u16.to_ne_bytes());
            let is_short = matches!(record, StatRecord::Cpus(_));
            assert!(is_short || read(&cut).is_err(), "{record:?}");
        }
    }

    #[test]
    fn records_of_the_other_byte_order_are_brought_into_this_one() {
        let swap = |bytes: &mut [u8], sizes: &[usize]| {
            let mut at = HEADER_LEN;
            for size in sizes {
                bytes[at..at + size].reverse();
                at += size;
            }
        };
        let fields: [&[usize]; 8] = [
            &[8; 7],
            &[8, 8, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 8],
            &[2; 5],
            &[8, 8],
            &[8, 8, 8],
            &[8, 4, 4, 8, 8, 8],
            &[8, 4, 4, 8, 8, 8],
            &[8, 8],
        ];
        for (record, sizes) in all().into_iter().zip(fields) {
            let mut bytes = record.to_bytes();
            swap(&mut bytes, sizes);
            let kind = RawRecord::at_start(&bytes).expect("whole").kind();
            let layout = RecordLayout::new(SampleType::IDENTIFIER);
            swap_body(kind, 0, &mut bytes[HEADER_LEN..], &layout);
            assert_eq!(read(&bytes).expect("whole"), Some(record));
        }
    }

    #[test]
    fn every_form_of_a_list_of_cpus_is_read() {
        let map = |body: &[u16], more: &[u8]| {
            let mut bytes = kind::CPU_MAP.to_ne_bytes().to_vec();
            let body: Vec<u8> = body.iter().flat_map(|n| n.to_ne_bytes()).collect();
            let len = (HEADER_LEN + body.len() + more.len()) as u16;
            bytes.extend([0, 0]);
            bytes.extend(len.to_ne_bytes());
            bytes.extend(body);
            bytes.extend(more);
            read(&bytes).ok().flatten()
        };
        let cpus = |cpus: &[u32]| {
            let cpus = cpus.iter().map(|cpu| Some(*cpu));
            Some(StatRecord::Cpus(cpus.collect()))
        };
        assert_eq!(map(&[2, 0, 0, 1, 0], &[]), cpus(&[0, 1]));
        let mask: Vec<u8> = [0b101_u32, 1]
            .into_iter()
            .flat_map(u32::to_ne_bytes)
            .collect();
        assert_eq!(map(&[1, 2, 4], &mask), cpus(&[0, 2, 32]));
        let mask = 0b110_u64.to_ne_bytes();
        assert_eq!(map(&[1, 1, 8, 0, 0], &mask), cpus(&[1, 2]));
        assert_eq!(map(&[3, 0, 0], &[]), None);
        // Words of no size that there is would be numbers without end.
        let words = vec![0xff; 60_000];
        for size in [0, 1, 16, u16::MAX] {
            assert_eq!(map(&[1, 15_000, size], &words), None, "{size}");
        }
        // As long as it says, not longer than it is.
        assert_eq!(map(&[0, u16::MAX, 1], &[]), None);
    }
}
