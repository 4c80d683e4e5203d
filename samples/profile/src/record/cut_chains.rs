//! Call chains that are cut, which is said after recording too: another way of recording them may find the callers.

use std::ops::ControlFlow;
use std::path::Path;

use quipu_perf_data::Sample;

use crate::recording::{Input, Replay, SampleSelection, Visit};
use crate::report::{Loading, Options, keys};

/// As many samples are looked at.
const MOST_SAMPLES: u32 = 2000;
/// A smaller share of an event is not worth a word, in percent.
const LEAST_PERCENT: f64 = 10.0;

/// Samples at the start of a recording.
struct FirstSamples {
    seen: u32,
    loading: Loading,
}

/// Returns the sentence on the chains of frame pointers in a file that are cut, if there are many.
pub(super) fn note(path: &Path) -> Option<String> {
    let input = Input {
        path,
        force: true,
        lines: false,
        parameters: true,
        symbols: None,
        keeping: false,
        copies: None,
    };
    let options = Options::with_callers_of(path);
    let keys = keys(&[]).ok()?;
    let (replay, first) = input
        .replay(|events, _, names| {
            let selection = SampleSelection::default();
            let loading = Loading::new(&options, (selection, &keys), events, names);
            Ok(FirstSamples { seen: 0, loading })
        })
        .ok()?;
    let profile = first.loading.finish(&replay);
    let cut = profile.events.iter().filter_map(|event| event.cut.as_ref());
    let most = cut.max_by(|a, b| a.percent.total_cmp(&b.percent))?;
    (most.percent > LEAST_PERCENT).then(|| format!("{most}; {}", most.remedy()))
}

impl Visit for FirstSamples {
    fn sample(
        &mut self,
        replay: &mut Replay,
        event: usize,
        sample: &Sample<'_>,
    ) -> ControlFlow<()> {
        self.seen += 1;
        match self.seen {
            MOST_SAMPLES.. => ControlFlow::Break(()),
            _ => self.loading.sample(replay, event, sample),
        }
    }

    fn is_shown_as_it_comes(&self) -> bool {
        true
    }
}
