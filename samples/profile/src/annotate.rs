//! `quipu annotate`: the hot instructions of functions, beside their source lines.

mod disassembly;
mod load;
mod options;
mod source;
mod text;

use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

use quipu_perf_data::{Features, RecordedEvent};
use quipu_symbols::{CodeFile, NoCode, ReadFile};

pub use options::Options;

use crate::recording::{Input, note_on_left_out};
use quipu_shell::Failure;
use quipu_shell::pager::Pager;
use quipu_shell::terminal::{self, Layout};

#[cfg(any(target_os = "linux", target_os = "freebsd"))]
pub(crate) use load::{EventHits, Hits, Loading, SampledFunction};
#[cfg(not(any(target_os = "linux", target_os = "freebsd")))]
use load::{EventHits, Hits, Loading, SampledFunction};
use options::Syntax;
use source::Sources;

/// The least share of an event's samples that a function has to be shown, in percent.
const USUAL_LIMIT: f64 = 1.0;

/// Files of which code is read, or why it is not.
#[derive(Debug, Default)]
struct Files(HashMap<Arc<ReadFile>, Result<CodeFile, NoCode>>);

impl Files {
    /// Returns a file, opened when it is first asked for.
    fn get(&mut self, read: Option<&Arc<ReadFile>>) -> Result<&mut CodeFile, String> {
        let read = read.ok_or_else(|| NoCode::NoFile.to_string())?;
        let file = self.0.entry(read.clone());
        let file = file.or_insert_with(|| CodeFile::open(&read.path, read.build_id.as_deref()));
        file.as_mut().map_err(|why| why.to_string())
    }

    /// Returns sentences on what was left out of files.
    fn notes(&self) -> impl Iterator<Item = String> {
        self.0.iter().filter_map(|(read, file)| {
            let why = file.as_ref().ok()?.left_out()?;
            Some(note_on_left_out(&read.path.to_string_lossy(), &why))
        })
    }
}

/// Reads a file and shows its functions.
///
/// # Errors
/// If the recording cannot be read, or no function can be shown.
pub fn run(options: &Options) -> Result<ExitCode, Failure> {
    let mut selection = options.selection.clone();
    selection.names.dsos.extend(options.objects.iter().cloned());
    let named = options.symbol.as_ref().or(options.function.as_ref());
    selection.names.symbols.extend(named.cloned());
    let is_named = !selection.names.symbols.is_empty();
    let input = Input {
        path: &options.input,
        force: options.force,
        lines: false,
        parameters: true,
        symbols: Some(&options.symbols),
        keeping: false,
        copies: None,
    };
    input.find_functions(&mut selection.names.symbols)?;
    let selection = selection.selection()?;
    let begin = |events: &[RecordedEvent], _: &Features, names: &[String]| {
        Ok(Loading::new(selection, events, names))
    };
    let (replay, loading) = input.replay(begin)?;
    let events = loading.finish();
    if events.is_empty() {
        return Err(Failure::new(match named {
            Some(name) => format!(
                "{} has no samples in a function {name}; quipu report lists the functions",
                options.input.display()
            ),
            None => format!(
                "{} has no samples of what was chosen",
                options.input.display()
            ),
        }));
    }
    let usual = if is_named { 0.0 } else { USUAL_LIMIT };
    let limit = options.percent_limit.unwrap_or(usual);
    let layout = Layout::of_stdout();
    let mut pager = Pager::begin(options.no_pager);
    let mut annotator = Annotator {
        syntax: options.disassembler_style,
        with_lines: options.print_line,
        ..Annotator::default()
    };
    let mut notes = replay.notes_on_file();
    let mut shown = 0;
    let mut refused: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut written = Ok(());
    for event in &events {
        for (function, hits) in hottest(event, limit) {
            match annotator.text(event, (function, hits), layout) {
                Ok(text) => {
                    shown += 1;
                    written = written.and_then(|()| pager.write_all(text.as_bytes()));
                }
                Err(why) => refused.entry(why).or_default().push(format!(
                    "{} ({} of {}) in {}",
                    function.name.as_deref().unwrap_or_default(),
                    // Of what was chosen a named function has all.
                    match is_named {
                        true => match hits.total.samples {
                            1 => "1 sample".to_owned(),
                            samples => format!("{samples} samples"),
                        },
                        false => format!("{:.2} %", hits.total.percent_of(event.total)),
                    },
                    event.name,
                    function.object
                )),
            }
        }
        if event.lost > 0 {
            notes.push(format!(
                "{} samples of {} were lost",
                event.lost, event.name
            ));
        }
        let jumped = crate::report::jumped(event.jumped);
        notes.extend(jumped.map(|jumped| format!("{}: {jumped}", event.name)));
    }
    pager
        .finish(written)
        .map_err(|e| Failure::new(format_args!("cannot write the instructions: {e}")))?;
    notes.extend(replay.notes_on_names(&[]));
    notes.extend(annotator.files.notes());
    let refused = refused.iter().map(|(why, functions)| {
        let functions = functions.join(", ");
        format!("not shown: {functions}: {why}")
    });
    let refused: Vec<String> = refused.collect();
    if shown == 0 {
        for note in &notes {
            terminal::warn(note);
        }
        return Err(Failure::new(match refused.is_empty() {
            true => {
                format!("no function has {limit} % of the samples; --percent-limit 0 shows all")
            }
            false => refused.join("\n"),
        }));
    }
    for note in refused.iter().chain(&notes) {
        terminal::warn(note);
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the functions that have a share of an event, the hottest first.
fn hottest(event: &EventHits, limit: f64) -> Vec<(&SampledFunction, &Hits)> {
    let functions = event.functions.iter();
    let functions = functions.filter(|(function, _)| function.name.is_some());
    let is_hot =
        |(_, hits): &(&SampledFunction, &Hits)| hits.total.percent_of(event.total) >= limit;
    let mut hot: Vec<_> = functions.filter(is_hot).collect();
    hot.sort_by(|a, b| (b.1.total.period, a.0).cmp(&(a.1.total.period, b.0)));
    hot
}

/// Functions as text. It keeps the files that it has read.
#[derive(Debug, Default)]
pub(crate) struct Annotator {
    files: Files,
    sources: Sources,
    syntax: Syntax,
    /// True to append source lines to hot instructions, and to list the lines.
    with_lines: bool,
}

impl Annotator {
    /// Returns a function as text, or why it cannot be shown.
    pub(crate) fn text(
        &mut self,
        event: &EventHits,
        (function, hits): (&SampledFunction, &Hits),
        layout: Layout,
    ) -> Result<String, String> {
        if function.name.is_none() {
            return Err("no function is known there".into());
        }
        if function.object.starts_with('[') {
            return Err(match &*function.object {
                "[vdso]" => "its code is in no file, but mapped by the kernel".into(),
                _ => "the kernel patches its code as it runs, so that no file has what was sampled; perf annotate \
                      -k VMLINUX shows the file's"
                    .into(),
            });
        }
        if function.object.starts_with("/tmp/perf-") && function.read.is_none() {
            return Err("a compiler made it as the program ran, and its code is gone".into());
        }
        let file = self.files.get(function.read.as_ref())?;
        let code = file.function_at(function.start);
        let code = code.map_err(|why| why.to_string())?;
        let instructions = disassembly::instructions(file, &code, self.syntax)?;
        let lines: Vec<_> = instructions
            .iter()
            .map(|instruction| file.source_at(instruction.address))
            .collect();
        let shown = text::Shown {
            event: &event.name,
            function,
            hits,
            address: code.address,
            instructions: &instructions,
            lines: &lines,
        };
        Ok(shown.text(&mut self.sources, self.with_lines, layout))
    }
}
