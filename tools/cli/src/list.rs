//! `quipu list`: the events, and those of them that are available here.

pub mod catalog;
mod description;
pub mod entry;
#[cfg(target_os = "freebsd")]
mod freebsd;
#[cfg(target_os = "linux")]
pub mod linux;
mod metrics;
mod native;
pub mod probe;
pub mod report;
pub mod selection;
pub mod short;
mod spelling;
mod uncore;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use serde::Serialize;
use serde_json::Value;

use crate::events::CpuChoice;
use crate::perf;
use catalog::Catalog;
use description::Descriptions;
use metrics::Metrics;
use native::Native;
use quipu_shell::pager;
use quipu_shell::terminal::Layout;
use quipu_shell::{Failure, output_file};
use selection::ListFilter;
use uncore::Uncore;

/// The time to probe tracepoints in; opening and closing one takes some 37 ms.
const TRACEPOINT_BUDGET: Duration = Duration::from_millis(200);

/// The kinds that the event database alone has.
const DATABASE: [&str; 5] = ["native", "uncore", "cpus", "metrics", "metricgroups"];

/// Words of perf for some of them.
const OF_PERF: [(&str, &str); 2] = [("metric", "metrics"), ("metricgroup", "metricgroups")];

/// Why the listing of metrics is empty.
const NO_METRIC: &str = "this CPU has no metric of this name; --cpu ID lists those of another: there are some of Intel from Skylake on, \
     AMD from Zen 4 on, and Arm Neoverse";

/// Why the listing of uncore events is empty.
const NO_UNCORE: &str = "no event of this name belongs to a unit that the kernel shows here; -a lists all that this CPU \
     may have, --cpu ID those of another";

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Kinds (hw, sw, tool, cache, raw, pmu, tracepoint, breakpoint) and parts of names; `*` stands for
    /// anything. Several words in quotes ("cache miss") are searched in descriptions too. `native` lists only the CPU's own events and presets, `uncore` those of the units
    /// outside of its cores, `metrics` and `metricgroups` what `quipu stat -M` measures, `cpus` the CPUs of
    /// the event database. Without a word a terminal gets a short listing, and a pipe all of it, as does a terminal with `all`
    #[arg(value_name = "KIND|TEXT")]
    filters: Vec<String>,

    /// Also list events that are not available here, with the reason
    #[arg(short, long)]
    all: bool,

    /// Print one JSON array
    #[arg(short, long)]
    json: bool,

    /// Print names alone, with blanks between them: for completions of shells
    #[arg(long, conflicts_with_all = ["json", "long", "none"])]
    raw_dump: bool,

    /// Print all that is known of each event: without it the first sentence, which a terminal cuts where its line ends
    #[arg(short = 'v', long = "long-desc")]
    long: bool,

    /// Print no descriptions
    #[arg(long = "no-desc", conflicts_with = "long")]
    none: bool,

    /// Write to FILE
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Do not page on a terminal
    #[arg(long)]
    no_pager: bool,

    #[command(flatten)]
    choice: CpuChoice,
}

/// Lists the events that were asked for on standard output. The exit status is 1 when no event
/// matches at all.
pub(crate) fn run(options: &Options) -> Result<ExitCode, Failure> {
    if let Some(text) = database(options)? {
        return options.write(&text);
    }
    let layout = options.layout();
    let is_text = !options.json && !options.raw_dump;
    let is_short = is_text && layout.width.is_some() && options.filters.is_empty() && !options.all;
    let filters = match options.filters.as_slice() {
        [all] if all == "all" => &[],
        filters => filters,
    };
    let selection = ListFilter::new(filters);
    let mut catalog = Catalog::of_this_machine(&selection);
    let native = selection
        .is_of_any_kind()
        .then(|| Native::of_this_machine(&options.choice, &selection));
    let uncore = native
        .as_ref()
        .map(|native| Uncore::new(native.tables(), &selection, options.all));
    let none_native = native.as_ref().is_none_or(Native::is_empty)
        && uncore.as_ref().is_none_or(Uncore::is_empty);
    if catalog.entries.is_empty() && none_native && !selection.texts().is_empty() {
        let of_perf = selection
            .texts()
            .iter()
            .find_map(|word| perf::advice_on_word("list", word));
        let why = of_perf.unwrap_or_else(|| {
            let all = Native::of(&options.choice, &ListFilter::new(&[])).ok();
            let of_cpus: Vec<&str> = all.iter().flat_map(Native::texts).collect();
            catalog.nothing_matches(&selection, &of_cpus)
        });
        return Err(Failure::with_status(why, 1));
    }
    let mut spent = None;
    probe::probe(&mut catalog.entries, &probe::open_here, &mut || {
        // The clock starts at the second tracepoint: the first is probed in any case.
        !is_short && spent.get_or_insert_with(Instant::now).elapsed() < TRACEPOINT_BUDGET
    });
    let text = if is_short {
        let mut database = native.as_ref().map(Native::short).unwrap_or_default();
        database.extend(uncore.as_ref().and_then(Uncore::short));
        short::text(&catalog, &database, layout)
    } else if !is_text {
        let mut native = native.as_ref().map(Native::entries).unwrap_or_default();
        native.extend(uncore.iter().flat_map(Uncore::entries));
        match options.raw_dump {
            true => {
                let counts = |entry: &Value| options.all || entry["state"] != "refused";
                native.retain(counts);
                let objects = report::objects(&catalog, native, options.all)?;
                names(&objects)
            }
            false => report::json(&catalog, native, options.all)?,
        }
    } else {
        let descriptions = options.descriptions();
        let text = report::text(&catalog, options.all, layout);
        let native = native.map(|native| native.section(&selection, descriptions, layout));
        let mut native = native.unwrap_or_default();
        native.extend(uncore.map(|uncore| uncore.section(descriptions, layout)));
        // Between sections there is an empty line, but none before the first.
        let start = usize::from(text.is_empty() && native.starts_with('\n'));
        text + &native[start..]
    };
    options.write(&text)
}

impl Options {
    /// Returns the layout of what is written.
    fn layout(&self) -> Layout {
        match self.output {
            Some(_) => Layout::PLAIN,
            None => Layout::of_stdout(),
        }
    }

    /// Returns which descriptions are printed.
    fn descriptions(&self) -> Descriptions {
        match (self.none, self.long) {
            (true, _) => Descriptions::None,
            (false, true) => Descriptions::Long,
            (false, false) => Descriptions::Short,
        }
    }

    /// Writes a listing to where it was asked for.
    fn write(&self, text: &str) -> Result<ExitCode, Failure> {
        match self.output.as_deref() {
            Some(path) if path != Path::new("-") => output_file::write(path, text)
                .map_err(|e| Failure::new(format_args!("cannot write {}: {e}", path.display())))?,
            _ => pager::print(text, self.no_pager || self.json || self.raw_dump)
                .map_err(Failure::new)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Returns the names of events and metrics in a line, as `perf list --raw-dump` prints them.
fn names(objects: &[Value]) -> String {
    // Others have parts to fill in.
    let is_name = |object: &&Value| {
        let is_form = object["state"] == "form";
        !is_form && object["kind"] != "raw" && object["kind"] != "breakpoint"
    };
    let named = objects.iter().filter(is_name);
    let names = named.filter_map(|object| {
        let keys = ["EventName", "MetricName", "name"].iter();
        keys.filter_map(|key| object[key].as_str()).next()
    });
    names.collect::<Vec<_>>().join(" ") + "\n"
}

/// Returns a value as the text of a JSON file.
fn json_text(value: &impl Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(value).map_err(Failure::new)?;
    Ok(text + "\n")
}

/// Returns the listing of the event database, if it was asked for by its kinds or for another CPU.
fn database(options: &Options) -> Result<Option<String>, Failure> {
    let kind = |word: &str| {
        let of_perf = OF_PERF.iter().find(|(perf, _)| *perf == word);
        let word = of_perf.map_or(word, |(_, kind)| kind);
        DATABASE.into_iter().find(|kind| *kind == word)
    };
    let first = options.filters.split_first();
    let first = first.and_then(|(first, rest)| Some((kind(first)?, rest)));
    let (first, texts) = match first {
        Some(found) => found,
        _ if options.choice.cpu.is_some() => ("native", options.filters.as_slice()),
        _ => return Ok(None),
    };
    if first == "cpus" {
        return Ok(Some(native::cpus(&options.choice)?));
    }
    if first.starts_with("metric") {
        let metrics = Metrics::new(options.choice.tables()?, &ListFilter::of_texts(texts));
        if metrics.is_empty() {
            return Err(Failure::with_status(NO_METRIC, 1));
        }
        let groups = || metrics.groups().into_keys().collect::<Vec<_>>();
        let text = match (first, options.json) {
            ("metrics", _) if options.raw_dump => names(&metrics.objects()),
            (_, _) if options.raw_dump => groups().join(" ") + "\n",
            ("metrics", true) => json_text(&metrics.objects())?,
            ("metrics", false) => metrics.text(options.descriptions(), options.layout()),
            (_, true) => json_text(&metrics.groups())?,
            (_, false) => metrics.groups_text(options.layout()),
        };
        return Ok(Some(text));
    }
    if first == "uncore" {
        let of_all = options.all || options.choice.cpu.is_some();
        let units = Uncore::new(
            options.choice.tables()?,
            &ListFilter::of_texts(texts),
            of_all,
        );
        if units.is_empty() {
            return Err(Failure::with_status(NO_UNCORE, 1));
        }
        if options.raw_dump {
            return Ok(Some(names(&units.objects())));
        }
        if options.json {
            return Ok(Some(json_text(&units.objects())?));
        }
        return Ok(Some(units.text(options.descriptions(), options.layout())));
    }
    let native = Native::of(&options.choice, &ListFilter::of_texts(texts))?;
    if native.is_empty() && !texts.is_empty() {
        let all = Native::of(&options.choice, &ListFilter::of_texts(&[]))?;
        let mut why = format!("no event of {} matches {}", native.ids(), texts.join(", "));
        why.push_str(&spelling::suggestion(texts, all.texts()));
        return Err(Failure::with_status(why, 1));
    }
    if options.raw_dump {
        return Ok(Some(names(&native.objects())));
    }
    if options.json {
        return Ok(Some(json_text(&native.objects())?));
    }
    Ok(Some(native.text(options.descriptions(), options.layout())))
}
