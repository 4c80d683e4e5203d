//! Names that are kept with a recording: at its end, what its samples hit is looked up and written behind them, so that the
//! file shows the same elsewhere, and when the programs are gone.

use std::collections::HashSet;
use std::fs::OpenOptions;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use quipu_perf_data::{BranchStack, RecordedEvent, Sample, append};
use quipu_symbols::{AddressOwner, Copies, Function};

use super::name_cache;
use super::options::NamesIn;
use crate::recording::{ChainFrame, Input, Replay, Visit, is_fault, owner_of_address};

/// The longest time that is spent on a recording; names that were not looked up by then are not kept.
const LONGEST: Duration = Duration::from_secs(30);
/// A file that takes longer than this to read is waited for no more.
const LONGEST_IN_ALL: Duration = Duration::from_secs(60);
/// The time between two looks at signals.
const INTERVAL: Duration = Duration::from_millis(20);
/// As many addresses are known to be looked up already, at once.
const MOST_KNOWN: usize = 7 << 17;

/// Outcome of keeping the names of a recording.
#[derive(Debug)]
pub(super) enum Kept {
    /// The number of addresses that have names in the file, and that of the bytes that these take.
    InFile(usize, u64),
    /// The number of files in the cache.
    InCache(usize),
    /// Why they were not kept, or not all.
    Not(String),
}

/// Keeps the names of what a file's samples hit; `copies` are those of files that may be gone, and `is_enough`
/// says when that is to end at once.
pub(super) fn keep(
    path: &Path,
    place: NamesIn,
    copies: Copies,
    mut is_enough: impl FnMut() -> bool,
) -> Kept {
    let (send, receive) = mpsc::channel();
    let (file, begun) = (path.to_owned(), Instant::now());
    // A file of debug information is read in one piece, and may be large: this process ends without it when it is told to.
    let begin = move || send.send(found(&file, place, &copies));
    if let Err(error) = thread::Builder::new().spawn(begin) {
        return Kept::Not(format!("names are not kept: {error}"));
    }
    let found = loop {
        match receive.recv_timeout(INTERVAL) {
            Ok(found) => break found,
            Err(RecvTimeoutError::Timeout) if is_enough() => {
                break Err("a signal came".to_owned());
            }
            Err(RecvTimeoutError::Timeout) if begun.elapsed() <= LONGEST_IN_ALL => {}
            Err(_) => break Err("they cannot be looked up".to_owned()),
        }
    };
    let written = found.and_then(|found| match found {
        Found::Copied(files) => Ok(Kept::InCache(files)),
        Found::Names(names) if names.bytes.is_empty() => Ok(Kept::InFile(0, 0)),
        Found::Names(names) => {
            write(path, &names.bytes).map_err(|e| e.to_string())?;
            let (addresses, len) = (names.addresses, names.bytes.len() as u64);
            Ok(match names.not_all {
                None => Kept::InFile(addresses, len),
                Some(why) => Kept::Not(format!(
                    "names of {addresses} addresses are kept, and not all: {why}"
                )),
            })
        }
    });
    written.unwrap_or_else(|why| Kept::Not(format!("names are not kept: {why}")))
}

/// Appends names to a file, or leaves it as it was.
fn write(path: &Path, names: &[u8]) -> quipu_perf_data::Result<()> {
    let mut file = OpenOptions::new().read(true).write(true).open(path)?;
    let len = file.metadata()?.len();
    append(&mut file, names).inspect_err(|_| {
        // Bytes behind the file do it no harm.
        let _ = file.set_len(len);
    })
}

/// Result of looking for names that are to be kept.
enum Found {
    Names(Names),
    /// The number of files that were copied into the cache.
    Copied(usize),
}

/// Names that were found.
struct Names {
    bytes: Vec<u8>,
    addresses: usize,
    /// Why these are not all.
    not_all: Option<String>,
}

/// Looks up what the samples of a file hit.
fn found(path: &Path, place: NamesIn, copies: &Copies) -> Result<Found, String> {
    let keeping = place == NamesIn::File;
    let input = Input {
        path,
        force: false,
        lines: keeping,
        parameters: true,
        symbols: None,
        keeping,
        copies: Some(copies),
    };
    if !keeping {
        return name_cache::fill(input).map(Found::Copied);
    }
    let begin = |events: &[RecordedEvent], _: &_, _: &[String]| {
        Ok(Hits {
            faults: events.iter().map(|event| is_fault(event.attr())).collect(),
            known: HashSet::new(),
            hits: Vec::new(),
            functions: Vec::new(),
            cuts: Vec::new(),
            end: Instant::now() + LONGEST,
            is_over: false,
        })
    };
    let (mut replay, hits) = input.replay(begin).map_err(|e| e.to_string())?;
    let kept = replay.symbolizer.take_kept();
    let has_any = !kept.is_empty() || kept.has_rules();
    let not_all = match hits.is_over {
        true => Some(format!("that takes longer than {} s", LONGEST.as_secs())),
        false => kept.is_full().then(|| "there are too many".to_owned()),
    };
    let bytes = has_any.then(|| kept.to_bytes().ok_or("there are too many"));
    Ok(Found::Names(Names {
        bytes: bytes.transpose()?.unwrap_or_default(),
        addresses: kept.len(),
        not_all,
    }))
}

/// Has the addresses of samples looked up, as the subcommands look them up that read recordings.
struct Hits {
    /// True for events whose data addresses have names.
    faults: Vec<bool>,
    /// Addresses in address spaces that were looked up.
    known: HashSet<(u64, u64)>,
    hits: Vec<ChainFrame>,
    functions: Vec<Function>,
    cuts: Vec<usize>,
    end: Instant,
    /// True if the time was not enough.
    is_over: bool,
}

impl Hits {
    fn look_up(&mut self, replay: &mut Replay, owner: AddressOwner, address: u64) {
        let known = (replay.space(owner), address);
        if self.known.contains(&known) {
            return;
        }
        if self.known.len() >= MOST_KNOWN {
            self.known.clear();
        }
        self.known.insert(known);
        self.functions.clear();
        let processes = &replay.processes;
        replay
            .symbolizer
            .resolve(processes, owner, address, &mut self.functions);
        self.is_over |= Instant::now() > self.end;
    }
}

impl Visit for Hits {
    fn sample(
        &mut self,
        replay: &mut Replay,
        event: usize,
        sample: &Sample<'_>,
    ) -> ControlFlow<()> {
        let pid = sample.thread().map_or(-1, |thread| thread.pid);
        let mut hits = std::mem::take(&mut self.hits);
        replay.hits(event, sample, &mut hits);
        for hit in &hits {
            self.look_up(replay, hit.owner, hit.address);
            if hit.is_return_address {
                self.look_up(replay, hit.owner, hit.address.saturating_sub(1));
            }
        }
        // By the rules there, which are kept too.
        self.cuts.clear();
        replay.cuts(event, &hits, &mut self.cuts);
        self.hits = hits;
        if let (Some(address), Some(true)) = (sample.addr(), self.faults.get(event)) {
            self.look_up(replay, AddressOwner::Process(pid), address);
        }
        for branch in sample.branches().iter().flat_map(BranchStack::iter) {
            for address in [branch.from, branch.to] {
                self.look_up(replay, owner_of_address(address, pid), address);
            }
        }
        match self.is_over {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    fn is_shown_as_it_comes(&self) -> bool {
        true
    }
}
