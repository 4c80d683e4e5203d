//! Manual pages: what clap_mangen makes of the options, and sections on examples, exit statuses, files, variables and other
//! pages.

use std::io;
use std::path::Path;

use clap::Command;
use clap_mangen::Man;
use quipu_shell::output_file;

use crate::help::prose::{columns, indent, is_heading_of_examples};

/// The table of files, variables and pages: the section, the subcommands (`*`: all), the entry, what is said of it.
const TABLE: &str = include_str!("sections.tsv");

/// Writes the page of a command, and those of its subcommands.
pub(super) fn write(directory: &Path, mut command: Command) -> io::Result<()> {
    command.build();
    write_pages(directory, &command)
}

fn write_pages(directory: &Path, command: &Command) -> io::Result<()> {
    for subcommand in command.get_subcommands() {
        if !subcommand.is_hide_set() {
            write_pages(directory, subcommand)?;
        }
    }
    let name = command.get_display_name().unwrap_or(command.get_name());
    output_file::write(&directory.join(format!("{name}.1")), page(name, command)?)
}

fn page(name: &str, command: &Command) -> io::Result<String> {
    let man = Man::new(command.clone())
        .title(name)
        .source(concat!("quipu ", env!("CARGO_PKG_VERSION")))
        .manual("Quipu");
    let mut page = rendered(|out| man.render_title(out))?;
    page += &rendered(|out| man.render_name_section(out))?;
    page += &rendered(|out| man.render_synopsis_section(out))?;
    // A short one is what NAME says.
    if command.get_long_about().is_some() {
        page += &rendered(|out| man.render_description_section(out))?;
    }
    page += &options(&rendered(|out| man.render_options_section(out))?);
    if command.get_subcommands().any(|of| !of.is_hide_set()) {
        page += &rendered(|out| man.render_subcommands_section(out))?;
    }
    let after = command.get_after_long_help().or(command.get_after_help());
    let mut sections = Sections::default();
    if let Some(text) = after {
        sections.add(&text.to_string());
    }
    let subcommand = name.strip_prefix("quipu-").unwrap_or(name);
    Ok(page + &sections.text(subcommand))
}

fn rendered(render: impl FnOnce(&mut dyn io::Write) -> io::Result<()>) -> io::Result<String> {
    let mut out = Vec::new();
    render(&mut out)?;
    String::from_utf8(out).map_err(io::Error::other)
}

/// Returns the options with their headings as parts of one section.
fn options(rendered: &str) -> String {
    let mut text = String::new();
    if !rendered.contains("\n.SH OPTIONS\n") {
        text += ".SH OPTIONS\n";
    }
    for line in rendered.lines() {
        match line
            .strip_prefix(".SH ")
            .filter(|heading| *heading != "OPTIONS")
        {
            Some(heading) => {
                let heading = heading.trim_matches('"').to_lowercase();
                let (first, rest) = heading.split_at(heading.len().min(1));
                text += &format!(".SS \"{}{rest}\"", first.to_uppercase());
            }
            None => text += line,
        }
        text.push('\n');
    }
    text
}

/// The sections that are not clap's.
#[derive(Debug, Default)]
struct Sections {
    examples: String,
    exit_status: String,
    notes: String,
}

impl Sections {
    /// Adds the text below the options.
    fn add(&mut self, text: &str) {
        for paragraph in text.split("\n\n") {
            let (heading, rest) = paragraph.split_once('\n').unwrap_or((paragraph, ""));
            if is_heading_of_examples(heading) {
                self.examples += &rest.lines().map(example).collect::<String>();
            } else if heading == "Exit status:" {
                self.exit_status += &format!("{}\n", escaped(rest.trim_start()));
            } else {
                self.notes += &note(paragraph);
            }
        }
    }

    fn text(&self, subcommand: &str) -> String {
        let mut text = String::new();
        let mut section = |title: &str, body: &str| {
            if !body.is_empty() {
                text += &format!(".SH {title}\n{body}");
            }
        };
        section("NOTES", &self.notes);
        section("EXAMPLES", &self.examples);
        let exit_status = match self.exit_status.as_str() {
            "" => &entries("EXIT STATUS", subcommand),
            text => text,
        };
        section("\"EXIT STATUS\"", exit_status);
        section("ENVIRONMENT", &entries("ENVIRONMENT", subcommand));
        section("FILES", &entries("FILES", subcommand));
        section("\"SEE ALSO\"", &pages(subcommand));
        text
    }
}

/// Returns an example: the command as it is typed, and below it what it does.
fn example(line: &str) -> String {
    match columns(line) {
        Some((command, comment)) => entry(command, comment),
        None => format!(".PP\n.nf\n\\fB{}\\fR\n.fi\n", escaped(line.trim())),
    }
}

/// Returns a paragraph of prose, in which rows of tables are entries.
fn note(paragraph: &str) -> String {
    let mut text = ".PP\n".to_owned();
    let mut in_rows = false;
    for line in paragraph.lines() {
        match columns(line) {
            Some((word, comment)) if indent(line) > 0 && indent(line) < 8 => {
                text += &entry(word, comment);
                in_rows = true;
            }
            _ => {
                if in_rows && indent(line) == 0 {
                    text += ".PP\n";
                    in_rows = false;
                }
                text += &format!("{}\n", escaped(line.trim_start()));
            }
        }
    }
    text
}

fn entry(tag: &str, text: &str) -> String {
    format!(".TP\n\\fB{}\\fR\n{}\n", escaped(tag), escaped(text))
}

/// Returns the entries of the table for a section of a page; those without a tag are paragraphs.
fn entries(section: &str, subcommand: &str) -> String {
    let rows = rows().filter(|(of, commands, ..)| *of == section && is_of(commands, subcommand));
    rows.map(|(_, _, tag, text)| match tag {
        "" => format!(".PP\n{}\n", escaped(text)),
        tag => entry(tag, text),
    })
    .collect()
}

/// Returns the pages that one refers to: quipu(1), those of the table, and that of perf.
fn pages(subcommand: &str) -> String {
    let mut pages = Vec::new();
    if subcommand != "quipu" {
        pages.push("quipu(1)");
    }
    for (section, commands, page, _) in rows() {
        if section == "SEE ALSO" && is_of(commands, subcommand) {
            pages.extend(page.split(' '));
        }
    }
    let linked = pages.iter().filter_map(|page| page.split_once('('));
    let linked = linked.map(|(name, section)| format!("\\fB{}\\fR({section}", escaped(name)));
    format!("{}\n", linked.collect::<Vec<_>>().join(",\n"))
}

fn is_of(commands: &str, subcommand: &str) -> bool {
    commands.split(',').any(|of| of == "*" || of == subcommand)
}

fn rows() -> impl Iterator<Item = (&'static str, &'static str, &'static str, &'static str)> {
    let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| {
        let mut columns = line.split('\t');
        Some((
            columns.next()?,
            columns.next()?,
            columns.next()?,
            columns.next()?,
        ))
    })
}

/// Returns text that roff(7) shows as it is.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    let text = text
        .replace('\'', "\\(aq")
        .replace('`', "\\(ga")
        .replace('^', "\\(ha")
        .replace('~', "\\(ti");
    match text.starts_with('.') {
        true => format!("\\&{text}"),
        false => text,
    }
}
