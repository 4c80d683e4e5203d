//! Call chains that end where a library keeps no frame pointer: what is said of them after recording.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::Path;

use quipu_perf_data::{Callchain, Context, Sample};

use crate::recording::{Input, Replay, Visit};

/// As many samples are looked at.
const MOST_SAMPLES: u32 = 2000;
/// A chain of a library has more frames: at least the program's function that called it, and what called that.
const MOST_FRAMES: usize = 2;
/// A smaller share of samples is not worth a word, in percent.
const LEAST_PERCENT: u32 = 10;

/// Samples at the start of a recording, with the chains that end in a library.
#[derive(Debug, Default)]
struct CutChains {
    samples: u32,
    /// By the path of the library.
    cut: HashMap<String, u32>,
}

/// Returns the sentence on chains of frame pointers in a file that end in libraries without them, if there are many.
pub(super) fn note(path: &Path) -> Option<String> {
    let input = Input {
        path,
        force: true,
        lines: false,
        parameters: true,
        symbols: None,
        keeping: false,
    };
    let (_, chains) = input.replay(|_, _, _| Ok(CutChains::default())).ok()?;
    chains.note()
}

impl CutChains {
    fn note(&self) -> Option<String> {
        let cut: u32 = self.cut.values().sum();
        if cut * 100 <= self.samples * LEAST_PERCENT {
            return None;
        }
        let most = self.cut.iter().max_by_key(|(path, cut)| (**cut, *path));
        let (library, _) = most?;
        let library = library.rsplit('/').next().unwrap_or(library);
        let percent = u64::from(cut) * 100 / u64::from(self.samples);
        Some(format!(
            "{percent} % of the call chains end in libraries without frame pointers, most of them in {library}: \
             --call-graph dwarf finds the callers"
        ))
    }
}

impl Visit for CutChains {
    fn sample(
        &mut self,
        replay: &mut Replay,
        _event: usize,
        sample: &Sample<'_>,
    ) -> ControlFlow<()> {
        self.samples += 1;
        if let Some(library) = cut_in(replay, sample) {
            *self.cut.entry(library).or_default() += 1;
        }
        match self.samples {
            MOST_SAMPLES.. => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }

    fn is_shown_as_it_comes(&self) -> bool {
        true
    }
}

/// Returns the library without a frame pointer that a sample's chain of user mode ends in.
fn cut_in(replay: &mut Replay, sample: &Sample<'_>) -> Option<String> {
    let (pid, machine) = (sample.thread()?.pid, replay.machine?);
    let frames = sample.callchain()?;
    let mut frames = Callchain::frames(&frames).filter(|frame| frame.context == Context::User);
    let leaf = frames.next()?.address;
    if frames.count() >= MOST_FRAMES {
        return None;
    }
    let file = &replay.processes.mapping(pid, leaf)?.file;
    let library = String::from_utf8_lossy(&file.path).into_owned();
    let name = library.rsplit('/').next().unwrap_or_default();
    if !name.ends_with(".so") && !name.contains(".so.") {
        return None;
    }
    let processes = &replay.processes;
    let has = replay
        .symbolizer
        .has_frame_pointer(processes, pid, leaf, machine)?;
    (!has).then_some(library)
}
