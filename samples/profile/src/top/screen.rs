//! `quipu top` on a terminal.

use std::time::{Duration, Instant};

use crate::annotate::Annotator;
use quipu_shell::Failure;
use quipu_shell::signals::Signals;
use quipu_shell::terminal::Layout;

use super::options::Options;
use super::rows::TopForm;
use super::tty::{TerminalInput, Tty};
use super::view::{Action, View};
use super::{DRAIN_INTERVAL, LiveProfile};

/// The time until the first samples are shown, and those after a count from zero.
const SOON: Duration = Duration::from_millis(500);

/// Shows what is hot until a signal, a key, the end of the terminal, or that of what is sampled.
pub(super) fn run(
    profile: &mut LiveProfile,
    (options, form): (&Options, &TopForm),
    signals: &Signals,
) -> Result<(), Failure> {
    let failed = |e| {
        Failure::new(format_args!(
            "cannot use the terminal: {e}; --stdio prints tables"
        ))
    };
    let mut tty = Tty::open().map_err(failed)?;
    let colour = Layout::of_stdout().colour;
    let mut view = View::new(form.clone(), &profile.live.notes, colour);
    let mut annotator = Annotator::default();
    let mut next = Instant::now() + SOON;
    let mut is_changed = true;
    while !signals.arrived() && !profile.live.has_ended() {
        profile.drain()?;
        if Instant::now() >= next {
            if !view.is_paused {
                view.update(profile.stacks());
                profile.age(options.zero);
                is_changed = true;
            }
            let interval = options.interval();
            next = Instant::now() + if view.is_empty() { SOON } else { interval };
        }
        if is_changed {
            let lost = profile.live.lost();
            let drawn = tty.screen.draw(|frame| view.draw(frame, lost));
            // A terminal that is gone has no size; the next wait tells.
            is_changed = drawn.is_err();
        }
        let left = next.saturating_duration_since(Instant::now());
        let keys = match tty.wait(left.min(DRAIN_INTERVAL)).map_err(failed)? {
            TerminalInput::Keys(keys) => keys,
            TerminalInput::Gone => break,
        };
        for key in keys {
            is_changed = true;
            match view.key(key) {
                Action::None => {}
                Action::End => return Ok(()),
                Action::Zero => {
                    profile.age(true);
                    view.update(profile.stacks());
                    next = Instant::now() + SOON;
                }
                Action::Annotate(function) => {
                    let hits = profile.instructions(view.event(), &function);
                    let text = hits.map(|(event, function, hits)| {
                        annotator.text(event, (function, hits), Layout::PLAIN)
                    });
                    view.show(match text {
                        Some(Ok(text)) => text.replace('\t', "  "),
                        Some(Err(why)) => format!("not shown: {why}"),
                        None => "no recent samples of it".to_owned(),
                    });
                }
            }
        }
    }
    Ok(())
}
