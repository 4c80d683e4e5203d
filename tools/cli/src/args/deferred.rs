//! Subcommands whose options are made when they are called: all of them together take longer than a short measurement.

use std::ops::Deref;

use clap::{ArgMatches, Args, Command, Error, FromArgMatches};

use crate::help::prose;

/// The options of a subcommand.
#[derive(Debug)]
pub(crate) struct Deferred<T>(Box<T>);

impl<T> Deref for Deferred<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Args> Args for Deferred<T> {
    fn augment_args(command: Command) -> Command {
        command.defer(augment::<T>)
    }

    fn augment_args_for_update(command: Command) -> Command {
        command.defer(T::augment_args_for_update)
    }
}

/// Adds options to a subcommand, which keeps its own description.
fn augment<T: Args>(command: Command) -> Command {
    let about = command.get_about().cloned().unwrap_or_default();
    let long_about = command.get_long_about().cloned();
    let command = reflowed(T::augment_args(command)).about(about);
    match long_about {
        Some(text) => command.long_about(text),
        None => command.long_about(None),
    }
}

/// Lets the text below the options be broken where it is shown.
fn reflowed(command: Command) -> Command {
    let text = command.get_after_help().map(ToString::to_string);
    let command = command.mut_subcommands(reflowed);
    match text {
        Some(text) => command.after_help(prose::reflowed(&text)),
        None => command,
    }
}

impl<T: FromArgMatches> FromArgMatches for Deferred<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        T::from_arg_matches(matches).map(|options| Self(Box::new(options)))
    }

    fn from_arg_matches_mut(matches: &mut ArgMatches) -> Result<Self, Error> {
        T::from_arg_matches_mut(matches).map(|options| Self(Box::new(options)))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(matches)
    }
}
