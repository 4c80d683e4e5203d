//! From bits back to a name.

use quipu_events_format::name::{Names, select};
use quipu_events_format::packed::EntryView;
use quipu_events_format::{Bits, flag};
use quipu_hal::{
    Encoding, Error, ErrorKind, Filter, FixedCounter, P5Function, PerfConfig, Result, Scheme,
    X86Select,
};

use crate::cpu_table::CpuTable;
use crate::encode::SELECT_FLAGS;

/// The event that an encoding counts on a CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Decoded {
    /// A name that encodes to the same bits, modifiers included.
    pub name: String,
    /// The privilege levels it counts at; `None` where the encoding does not say (Linux keeps them
    /// elsewhere).
    pub levels: Option<Filter>,
}

impl CpuTable {
    /// Returns the name of the event that an encoding counts on this CPU.
    ///
    /// ```
    /// use quipu_events::Database;
    /// use quipu_hal::{Encoding, X86Select};
    ///
    /// let word = X86Select::new(0x24, 0x3f).with_counter_mask(1);
    /// let decoded = Database::embedded().cpu("intel-skl")?.decode(&Encoding::X86(word))?;
    /// assert_eq!(decoded.name, "L2_RQSTS.MISS:cmask=1");
    /// # Ok::<(), quipu_hal::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`UnsupportedEvent`](ErrorKind::UnsupportedEvent) when the CPU has no event with this number;
    /// [`InvalidConfiguration`](ErrorKind::InvalidConfiguration) when the encoding is of another scheme.
    pub fn decode(&self, encoding: &Encoding) -> Result<Decoded> {
        if let Encoding::Perf(words) = encoding
            && matches!(
                words.type_,
                PerfConfig::HARDWARE
                    | PerfConfig::SOFTWARE
                    | PerfConfig::TRACEPOINT
                    | PerfConfig::HW_CACHE
                    | PerfConfig::BREAKPOINT
            )
        {
            return self.decode_numbers_of_the_kernel(*words);
        }
        let (bits, levels) = self.take_apart(encoding)?;
        match self.name_of(bits) {
            Some(name) => Ok(Decoded { name, levels }),
            None if bits.fixed > 0 => Err(self.no_fixed_counter(bits.fixed - 1)),
            None => {
                let number = bits.config();
                let is_there = self.find_entry(|entry| entry.bits().config() == number);
                Err(self.nameless(match is_there {
                    Some(_) => format!("no event {number:#x} has these bits"),
                    None => format!("there is no event {number:#x}"),
                }))
            }
        }
    }

    fn no_fixed_counter(&self, index: u8) -> Error {
        self.nameless(format!("there is no event of fixed counter {index}"))
    }

    fn nameless(&self, reason: String) -> Error {
        let attempted = format!("name what these bits count on {}", self.id());
        Error::new(ErrorKind::UnsupportedEvent, attempted).with_reason(reason)
    }

    /// Returns the generalized event of numbers that the kernel itself defines.
    fn decode_numbers_of_the_kernel(&self, words: PerfConfig) -> Result<Decoded> {
        let event = words.generalized().ok_or_else(|| {
            let attempted = format!("name type {}, config {:#x}", words.type_, words.config);
            Error::new(ErrorKind::UnsupportedEvent, attempted)
                .with_reason("the kernel has no generalized event of these numbers")
        })?;
        Ok(Decoded {
            name: event.to_string(),
            levels: None,
        })
    }

    pub(crate) fn take_apart(&self, encoding: &Encoding) -> Result<(Bits, Option<Filter>)> {
        let scheme = self.scheme();
        match (encoding, scheme) {
            (Encoding::P5(function), Scheme::P5) => Ok(p5(*function)),
            (Encoding::Armv8(event), Scheme::Armv8) => Ok((
                Bits {
                    code: event.event(),
                    ..Bits::default()
                },
                None,
            )),
            (Encoding::Perf(perf), Scheme::Armv8) => Ok((
                Bits {
                    code: perf.config as u16,
                    ..Bits::default()
                },
                None,
            )),
            (Encoding::Perf(perf), Scheme::Perf) => {
                Ok((Bits::default().with_config(perf.config), None))
            }
            (
                Encoding::Perf(perf),
                Scheme::P6 | Scheme::IntelArchitectural | Scheme::AmdK7 | Scheme::Amd10h,
            ) => {
                let mut bits = x86(scheme, perf.config);
                bits.value = perf.config1;
                if scheme == Scheme::IntelArchitectural && bits.code == 0 {
                    // Linux names the fixed counters so; see `encode`.
                    bits.fixed = bits.unit_mask;
                    bits.flags |= flag::FIXED_ONLY;
                }
                Ok((bits, None))
            }
            (
                Encoding::X86(word),
                Scheme::P6 | Scheme::IntelArchitectural | Scheme::AmdK7 | Scheme::Amd10h,
            ) => {
                let mut bits = x86(scheme, word.select);
                if let Some(extra) = word.extra.first() {
                    bits.register = extra.address;
                    bits.value = extra.value;
                }
                Ok((bits, Some(x86_levels(word.select))))
            }
            (Encoding::Fixed(counter), Scheme::IntelArchitectural) => {
                fixed(*counter).ok_or_else(|| self.no_fixed_counter(counter.index))
            }
            _ => Err(Error::new(
                ErrorKind::InvalidConfiguration,
                format!("name what these bits count on {}", self.id()),
            )
            .with_reason("the encoding is of another scheme than the CPU's")),
        }
    }

    /// Returns a name for these numbers: the entry that has them, masks put together, or the event with what
    /// is left written as modifiers.
    fn name_of(&self, wanted: Bits) -> Option<String> {
        if wanted.fixed > 0 {
            let counts = |entry: &EntryView<'_>, flags| {
                let bits = entry.bits();
                bits.fixed == wanted.fixed
                    && (bits.flags ^ wanted.flags) & flags == 0
                    && entry.same_as().is_empty()
            };
            // What has no event of its own is event 0 too, without being for the fixed counter alone.
            let entry = self
                .find_entry(|entry| counts(entry, flag::ANY_THREAD | flag::FIXED_ONLY))
                .or_else(|| self.find_entry(|entry| counts(entry, flag::ANY_THREAD)))?;
            return Some(entry.name().to_owned());
        }
        let same_code = |entry: &EntryView<'_>| {
            let bits = entry.bits();
            bits.code == wanted.code && bits.fixed == 0
        };
        let exact = |entry: &EntryView<'_>| {
            let bits = entry.bits();
            bits.fixed == 0
                && bits.flags & (flag::NEEDS_MASK | flag::GROUP) == 0
                && numbers(bits) == numbers(wanted)
        };
        let mut same_bits = self
            .entries()
            .map(|(_, entry)| entry)
            .filter(|entry| entry.code_and_value() == (wanted.code, wanted.value) && exact(entry));
        let first = same_bits.next();
        let entry = match first {
            Some(first) if first.same_as().is_empty() => Some(first),
            _ => same_bits.find(|entry| entry.same_as().is_empty()).or(first),
        };
        if let Some(entry) = entry {
            return Some(entry.name().to_owned());
        }
        let of_group = |entry: &EntryView<'_>| {
            same_code(entry) && entry.bits().flags & flag::GROUP != 0 && entry.same_as().is_empty()
        };
        let with_defaults = self
            .entries()
            .filter(|(_, entry)| of_group(entry))
            .find_map(|(_, entry)| self.leads_to(entry.name(), wanted));
        if with_defaults.is_some() {
            return with_defaults;
        }
        // A value of an extra register that no entry names, on an event that takes any.
        let with_value = self.find_entry(|entry| {
            let bits = entry.bits();
            same_code(entry)
                && bits.flags & flag::REGISTER_VALUE != 0
                && numbers(bits) == numbers(wanted)
        });
        if let Some(entry) = with_value {
            return Some(format!("{}:value={:#x}", entry.name(), wanted.value));
        }
        self.combined(wanted)
            .or_else(|| {
                self.with_modifiers(wanted, |entry| {
                    same_code(entry) && entry.bits().unit_mask == wanted.unit_mask
                })
            })
            .or_else(|| self.with_modifiers(wanted, same_code))
    }

    /// Returns the combinable masks of one event that make up the unit mask.
    fn combined(&self, wanted: Bits) -> Option<String> {
        let part = |entry: &EntryView<'_>| {
            let bits = entry.bits();
            bits.code == wanted.code
                && bits.flags & flag::COMBINES != 0
                && bits.unit_mask & !wanted.unit_mask == 0
                && (bits.unit_mask.count_ones() == 1 || bits.flags & flag::GROUP != 0)
                && entry.same_as().is_empty()
        };
        let event = self.find_entry(part)?.event();
        let mut parts: Vec<EntryView<'_>> = self
            .entries()
            .map(|(_, entry)| entry)
            .filter(|entry| part(entry) && entry.event() == event)
            .collect();
        // In groups, the masks for several bits first, and those for no bit last.
        parts.sort_by_key(|entry| std::cmp::Reverse(entry.bits().unit_mask.count_ones()));
        let mut name = event.to_owned();
        let mut covered = 0;
        let mut groups = Vec::new();
        for entry in parts {
            let bits = entry.bits();
            let group = bits.flags & flag::GROUP;
            let says_nothing = bits.unit_mask == 0 && groups.contains(&group);
            if bits.unit_mask & covered == 0 && !says_nothing {
                covered |= bits.unit_mask;
                groups.push(group);
                name.push(':');
                name.push_str(entry.mask());
            }
        }
        self.leads_to(&name, wanted).or_else(|| {
            let missing = modifiers(select(self, &name).ok()?.bits, wanted);
            self.leads_to(&format!("{name}{missing}"), wanted)
        })
    }

    /// Returns an entry with modifiers for what it lacks.
    fn with_modifiers(
        &self,
        wanted: Bits,
        fits: impl Fn(&EntryView<'_>) -> bool,
    ) -> Option<String> {
        self.entries()
            .map(|(_, entry)| entry)
            .filter(|entry| fits(entry) && entry.same_as().is_empty())
            .find_map(|entry| {
                let name = format!("{}{}", entry.name(), modifiers(entry.bits(), wanted));
                self.leads_to(&name, wanted)
            })
    }

    /// Returns the name itself, if it encodes to these numbers.
    fn leads_to(&self, name: &str, wanted: Bits) -> Option<String> {
        let bits = select(self, name).ok()?.bits;
        (bits.code == wanted.code && numbers(bits) == numbers(wanted) && bits.value == wanted.value)
            .then(|| name.to_owned())
    }
}

/// Returns the numbers that must agree besides the event number.
fn numbers(bits: Bits) -> (u8, u8, u8, u32) {
    (
        bits.unit_mask,
        bits.second_mask,
        bits.counter_mask,
        bits.flags & flag::ENCODED,
    )
}

/// Returns the modifiers that turn one set of numbers into another.
fn modifiers(from: Bits, to: Bits) -> String {
    let mut text = String::new();
    if from.unit_mask != to.unit_mask || from.flags & flag::NEEDS_MASK != 0 {
        text += &format!(":umask={:#x}", to.unit_mask);
    }
    if from.counter_mask != to.counter_mask {
        text += &format!(":cmask={}", to.counter_mask);
    }
    if from.value != to.value {
        text += &format!(":value={:#x}", to.value);
    }
    for (flag, name) in [
        (flag::EDGE, "edge"),
        (flag::INVERT, "inv"),
        (flag::ANY_THREAD, "any"),
        (flag::IN_TX, "intx"),
        (flag::IN_TX_CP, "intxcp"),
        (flag::CLOCKS, "clocks"),
    ] {
        match (from.flags & flag != 0, to.flags & flag != 0) {
            (false, true) => text += &format!(":{name}"),
            (true, false) => text += &format!(":{name}=0"),
            _ => {}
        }
    }
    text
}

fn p5(function: P5Function) -> (Bits, Option<Filter>) {
    let mut levels = Filter::empty();
    if function.0 & P5Function::KERNEL != 0 {
        levels |= Filter::KERNEL;
    }
    if function.0 & P5Function::USER != 0 {
        levels |= Filter::USER;
    }
    let bits = Bits {
        code: u16::from(function.event()),
        flags: if function.0 & P5Function::CLOCKS != 0 {
            flag::CLOCKS
        } else {
            0
        },
        ..Bits::default()
    };
    (bits, Some(levels))
}

fn fixed(counter: FixedCounter) -> Option<(Bits, Option<Filter>)> {
    let mut levels = Filter::empty();
    if counter.control & FixedCounter::KERNEL != 0 {
        levels |= Filter::KERNEL;
    }
    if counter.control & FixedCounter::USER != 0 {
        levels |= Filter::USER;
    }
    let any_thread = counter.control & FixedCounter::ANY_THREAD != 0;
    let bits = Bits {
        fixed: counter.index.checked_add(1)?,
        flags: if any_thread { flag::ANY_THREAD } else { 0 },
        ..Bits::default()
    };
    Some((bits, Some(levels)))
}

fn x86(scheme: Scheme, select: u64) -> Bits {
    let word = X86Select {
        select,
        extra: Vec::new(),
    };
    let intel = scheme == Scheme::IntelArchitectural;
    let flags = SELECT_FLAGS
        .iter()
        .filter(|(_, bit)| select & bit != 0 && (intel || *bit < 1 << 32))
        .fold(0, |flags, (flag, _)| flags | flag);
    Bits {
        code: match scheme {
            Scheme::Amd10h => word.event(),
            _ => word.event() & 0xff,
        },
        unit_mask: word.unit_mask(),
        second_mask: if intel { (select >> 40) as u8 } else { 0 },
        counter_mask: word.counter_mask(),
        flags,
        ..Bits::default()
    }
}

fn x86_levels(select: u64) -> Filter {
    let mut levels = Filter::empty();
    if select & X86Select::USER != 0 {
        levels |= Filter::USER;
    }
    if select & X86Select::KERNEL != 0 {
        levels |= Filter::KERNEL;
    }
    levels
}

impl CpuTable {
    /// Returns the bits of a name, for reading and comparing.
    pub(crate) fn bits_of(&self, name: &str) -> Option<Bits> {
        let (event, mask) = name.split_once('.').unwrap_or((name, ""));
        Names::find(self, event, mask).or_else(|| Names::find(self, name, ""))
    }
}
