//! `quipu help`: topics and subcommands.

pub(crate) mod prose;

use std::io;
use std::process::ExitCode;

use clap::builder::StyledStr;
use clap::{Args, Command};

use quipu_shell::Failure;
use quipu_shell::pager;
use quipu_shell::terminal::Layout;

/// The topics, each with its text.
const TOPICS: [(&str, &str); 3] = [
    ("events", include_str!("help/events.txt")),
    ("permissions", include_str!("help/permissions.txt")),
    (
        "virtual-machines",
        include_str!("help/virtual-machines.txt"),
    ),
];

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// events (how they are written), permissions (who may count what), virtual-machines, or a
    /// subcommand
    #[arg(value_name = "TOPIC|SUBCOMMAND")]
    topic: Vec<String>,
}

/// Prints a topic, or the help of a subcommand of a command, on standard output.
pub(crate) fn run(options: &Options, mut command: Command) -> Result<ExitCode, Failure> {
    command.build();
    let words = options.topic.join(" ");
    let is_asked = |(topic, _): &&(&str, &str)| {
        !words.is_empty() && topic.starts_with(&words.replace(' ', "-"))
    };
    let topic = TOPICS.iter().find(is_asked);
    let mut found = &mut command;
    for word in &options.topic {
        found = match found
            .find_subcommand(word)
            .map(|known| known.get_name().to_owned())
        {
            Some(name) => found
                .find_subcommand_mut(&name)
                .unwrap_or_else(|| unreachable!("found")),
            None => {
                let (_, text) = topic.ok_or_else(|| {
                    let topics: Vec<&str> = TOPICS.iter().map(|(topic, _)| *topic).collect();
                    let topics = topics.join(", ");
                    Failure::usage(format_args!(
                        "there is no help on {words:?}; topics are {topics}, and each subcommand"
                    ))
                })?;
                pager::print(text, false).map_err(Failure::new)?;
                return Ok(ExitCode::SUCCESS);
            }
        };
    }
    // `events` is both: the topic is told first, for who asks how to write them.
    let mut text = match topic.filter(|(topic, _)| *topic == words) {
        Some((_, topic)) => format!("{topic}\nThe subcommand of this name:\n\n"),
        None => String::new(),
    };
    text.push_str(&found.render_long_help().to_string());
    if options.topic.is_empty() {
        text.push_str(
            "\nTopics: quipu help events, quipu help permissions, quipu help virtual-machines\n",
        );
    }
    pager::print(&text, false).map_err(Failure::new)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the names of the topics.
pub(crate) fn topics() -> impl Iterator<Item = &'static str> {
    TOPICS.into_iter().map(|(topic, _)| topic)
}

/// Prints the help that an option asked for on standard output.
pub(crate) fn print(help: &StyledStr, layout: Layout) -> io::Result<()> {
    let text = match layout.colour {
        true => help.ansi().to_string(),
        false => help.to_string(),
    };
    pager::print(&text, false)
}
