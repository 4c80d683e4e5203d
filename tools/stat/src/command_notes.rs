//! Notes on a command beside its counts: runs that share one input, processes that it leaves behind.

use quipu_shell::standard_input::StandardInput;
use quipu_shell::target::Scope;

use super::notes::Note;
use super::plan::Plan;
use super::system::{self, Begun};

/// The command of a plan, run by run.
pub(super) struct CommandNotes {
    /// Standard input, if several runs share it.
    input: Option<StandardInput>,
    /// True if what the command leaves behind was counted with it.
    is_counted: bool,
    begun: Option<Begun>,
    left_behind: Vec<String>,
}

impl CommandNotes {
    pub(super) fn new(plan: &Plan) -> Self {
        let repeats = !plan.command.is_empty() && (plan.runs > 1 || plan.forever);
        Self {
            input: repeats.then(StandardInput::look),
            is_counted: plan.scope == Scope::Command && plan.inherits(),
            begun: None,
            left_behind: Vec::new(),
        }
    }

    /// Gives the command the input that its first run had, if it is a file.
    pub(super) fn before_run(&self) {
        if let Some(input) = &self.input {
            input.rewind();
        }
    }

    /// Notes that the command has its process.
    pub(super) fn has_process(&mut self, id: i32) {
        self.begun = self.is_counted.then(|| system::begun(id)).flatten();
    }

    /// Notes that the command has ended, and what it left behind.
    pub(super) fn has_ended(&mut self) {
        if let Some(begun) = self.begun.take() {
            self.left_behind.extend(system::left_behind(begun));
        }
    }

    /// Returns the notes on so many runs, which are forgotten.
    pub(super) fn take(&mut self, runs: u32) -> Vec<Note> {
        let note = |about: &str, events, text: &str| Note {
            about: about.to_owned(),
            events,
            text: text.to_owned(),
        };
        let mut notes = Vec::new();
        if runs > 1 && self.input.as_ref().is_some_and(StandardInput::is_read_once) {
            notes.push(note(
                "standard input",
                vec![format!("runs 2 to {runs}")],
                "read on where the run before had stopped: it is a pipe, which cannot be read again; give it as a file (< FILE)",
            ));
        }
        let left = std::mem::take(&mut self.left_behind);
        if !left.is_empty() {
            notes.push(note(
                "left behind",
                left,
                "still ran when the command had ended: what they do from then on is not counted",
            ));
        }
        notes
    }
}
