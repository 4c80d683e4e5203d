//! `quipu top` on a terminal.

use std::time::{Duration, Instant};

use ratatui::crossterm::event::{self, Event};

use crate::annotate::Annotator;
use crate::failure::Failure;
use crate::stat::signals::Signals;
use crate::terminal::Layout;

use super::options::Options;
use super::view::{Action, View};
use super::{DRAIN_INTERVAL, Profile};

/// Gives the terminal back, whatever happens.
struct Restore;

impl Drop for Restore {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// Shows what is hot until a signal, a key, or the end of what is sampled.
pub(super) fn run(
    profile: &mut Profile,
    options: &Options,
    signals: &Signals,
) -> Result<(), Failure> {
    let failed = |e| {
        Failure::new(format_args!(
            "cannot use the terminal: {e}; --stdio prints tables"
        ))
    };
    // It gives the terminal back on a panic too.
    let mut terminal = ratatui::try_init().map_err(failed)?;
    let _restore = Restore;
    let mut view = View::new(options.percent_limit);
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
                view.update(profile.events());
                profile.age(options.zero);
                is_changed = true;
            }
        }
        if is_changed {
            let lost = profile.live.lost();
            let event = profile.events().get(view.event());
            let drawn = terminal.draw(|frame| view.draw(frame, event, lost));
            drawn.map_err(failed)?;
            is_changed = false;
        }
        let left = next.saturating_duration_since(Instant::now());
        match event::poll(left.min(DRAIN_INTERVAL)) {
            Ok(true) => {}
            Ok(false) => continue,
            Err(_) if signals.arrived() => break,
            Err(e) => return Err(failed(e)),
        }
        is_changed = true;
        let Event::Key(key) = event::read().map_err(failed)? else {
            continue;
        };
        match view.key(key, profile.events()) {
            Action::None => {}
            Action::End => break,
            Action::Zero => profile.age(true),
            Action::Annotate(function) => {
                let event = profile.events().get(view.event());
                let hits = event.and_then(|event| Some((event, event.functions.get(&function)?)));
                let text = hits
                    .map(|(event, hits)| annotator.text(event, (&function, hits), Layout::PLAIN));
                view.show(match text {
                    Some(Ok(text)) => text.replace('\t', "  "),
                    Some(Err(why)) => format!("not shown: {why}"),
                    None => "there are no samples of it any more".to_owned(),
                });
            }
        }
    }
    Ok(())
}
