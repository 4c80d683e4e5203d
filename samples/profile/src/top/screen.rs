//! `quipu top` on a terminal.

use std::time::{Duration, Instant};

use crate::annotate::Annotator;
use quipu_shell::Failure;
use quipu_shell::signals::Signals;
use quipu_shell::terminal::Layout;

use super::options::Options;
use super::rows::TopForm;
use super::tty::{Input, Tty};
use super::view::{Action, View};
use super::{DRAIN_INTERVAL, Profile};

/// Shows what is hot until a signal, a key, the end of the terminal, or that of what is sampled.
pub(super) fn run(
    profile: &mut Profile,
    (options, form): (&Options, TopForm),
    signals: &Signals,
) -> Result<(), Failure> {
    let failed = |e| {
        Failure::new(format_args!(
            "cannot use the terminal: {e}; --stdio prints tables"
        ))
    };
    let mut tty = Tty::open().map_err(failed)?;
    let mut view = View::new(form);
    if !profile.live.notes.is_empty() {
        view.show(profile.live.notes.join("\n"));
    }
    let mut annotator = Annotator::default();
    // Soon, so that the first screen is not empty for long.
    let mut next = Instant::now() + Duration::from_millis(500);
    let mut is_changed = true;
    while !signals.arrived() && !profile.live.has_ended() {
        profile.drain()?;
        if Instant::now() >= next {
            next = Instant::now() + options.interval();
            if !view.is_paused {
                view.update(profile.stacks());
                profile.age(options.zero);
                is_changed = true;
            }
        }
        if is_changed {
            let lost = profile.live.lost();
            let stacks = profile.stacks();
            let drawn = tty.screen.draw(|frame| view.draw(frame, stacks, lost));
            // A terminal that is gone has no size; the next wait tells.
            is_changed = drawn.is_err();
        }
        let left = next.saturating_duration_since(Instant::now());
        let keys = match tty.wait(left.min(DRAIN_INTERVAL)).map_err(failed)? {
            Input::Keys(keys) => keys,
            Input::Gone => break,
        };
        for key in keys {
            is_changed = true;
            match view.key(key, profile.stacks()) {
                Action::None => {}
                Action::End => return Ok(()),
                Action::Zero => profile.age(true),
                Action::Annotate(function) => {
                    let hits = profile.instructions(view.event(), &function);
                    let text = hits.map(|(event, function, hits)| {
                        annotator.text(event, (function, hits), Layout::PLAIN)
                    });
                    view.show(match text {
                        Some(Ok(text)) => text.replace('\t', "  "),
                        Some(Err(why)) => format!("not shown: {why}"),
                        None => "there are no samples of it any more".to_owned(),
                    });
                }
            }
        }
    }
    Ok(())
}
