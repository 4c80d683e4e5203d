//! Which samples are shown: those of these commands, processes, CPUs, times, files and functions.

use clap::Args;
use quipu_perf_data::{CpuMode, Sample};
use quipu_text::parse_cpu_list;

use quipu_shell::Failure;
use quipu_shell::numbers;

use super::function_names::last_part;

/// The options that choose samples by names, of recordings and of what runs.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct NameOptions {
    /// Only samples of threads of these names
    #[arg(
        long,
        alias = "comm",
        value_name = "NAME,..",
        value_delimiter = ',',
        help_heading = "Which samples"
    )]
    pub(crate) comms: Vec<String>,
    /// Only samples whose instruction is in these files
    #[arg(
        long,
        alias = "dso",
        value_name = "FILE,..",
        value_delimiter = ',',
        help_heading = "Which samples"
    )]
    pub(crate) dsos: Vec<String>,
    /// Only samples whose instruction is in these functions: their names, or the last parts of their paths (histogram of
    /// wordcount::histogram)
    #[arg(
        short = 'S',
        long,
        value_name = "FUNCTION,..",
        value_delimiter = ',',
        help_heading = "Which samples"
    )]
    pub(crate) symbols: Vec<String>,
}

/// The options that choose samples, which subcommands that read recordings share.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct SelectionOptions {
    #[command(flatten)]
    pub(crate) names: NameOptions,
    /// Only samples of these processes
    #[arg(
        long,
        value_name = "PID,..",
        value_delimiter = ',', value_parser = numbers::recorded_id,
        help_heading = "Which samples"
    )]
    pub(crate) pid: Vec<i32>,
    /// Only samples of these threads
    #[arg(
        long,
        value_name = "TID,..",
        value_delimiter = ',', value_parser = numbers::recorded_id,
        help_heading = "Which samples"
    )]
    pub(crate) tid: Vec<i32>,
    /// Only samples on these CPUs (0-3,8)
    #[arg(short = 'C', long, value_name = "LIST", help_heading = "Which samples")]
    pub(crate) cpu: Option<String>,
    /// Only samples from one time to another, in seconds as script prints them; either may be left out (12.5,)
    #[arg(
        long,
        value_name = "START,END",
        allow_hyphen_values = true,
        help_heading = "Which samples"
    )]
    pub(crate) time: Option<String>,
}

/// The samples that are shown.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct SampleSelection {
    comms: Vec<String>,
    pids: Vec<i32>,
    tids: Vec<i32>,
    cpus: Option<Vec<u32>>,
    /// The first and the last time, in ns.
    times: Option<(u64, u64)>,
    dsos: Vec<String>,
    symbols: Vec<String>,
    /// True if the last part of a function's path is enough.
    by_last_part: bool,
    /// True if functions without names are left out.
    named_only: bool,
    /// True if what runs in the kernel is left out, and what runs in user mode.
    hides: (bool, bool),
}

impl SelectionOptions {
    /// Returns the samples that the options choose.
    pub(crate) fn selection(&self) -> Result<SampleSelection, Failure> {
        let cpus = self.cpu.as_deref().map(parse_cpu_list).transpose()?;
        let times = self.time.as_deref().map(parse_times).transpose()?;
        Ok(SampleSelection {
            pids: self.pid.clone(),
            tids: self.tid.clone(),
            cpus,
            times,
            ..self.names.selection()
        })
    }
}

impl NameOptions {
    /// Returns the samples that the options choose.
    pub(crate) fn selection(&self) -> SampleSelection {
        SampleSelection {
            comms: self.comms.clone(),
            dsos: self.dsos.clone(),
            symbols: self.symbols.clone(),
            ..SampleSelection::default()
        }
    }
}

impl SampleSelection {
    /// Leaves out samples of functions without names, or leaves all as it is.
    pub(crate) fn with_named_only(self, named_only: bool) -> Self {
        Self { named_only, ..self }
    }

    /// Takes functions of which a name is the last part of the path too: of what is sampled now all names are not known.
    #[cfg(any(target_os = "linux", target_os = "freebsd"))]
    pub(crate) fn with_last_parts(self) -> Self {
        Self {
            by_last_part: true,
            ..self
        }
    }

    /// Leaves out samples of the kernel, or of user mode.
    #[cfg(any(target_os = "linux", target_os = "freebsd"))]
    pub(crate) fn with_hidden(self, kernel: bool, user: bool) -> Self {
        Self {
            hides: (kernel, user),
            ..self
        }
    }

    /// Returns true if samples of a mode of the CPU are left out.
    pub(crate) fn hides(&self, mode: CpuMode) -> bool {
        let (kernel, user) = self.hides;
        (kernel && mode == CpuMode::Kernel) || (user && mode == CpuMode::User)
    }

    /// Returns true if every sample is chosen.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns true if a sample of a thread of this name is chosen, as far as its function does not decide.
    pub(crate) fn has(&self, sample: &Sample<'_>, name: &str) -> bool {
        self.is_then_and_there(sample) && self.has_thread(sample, name)
    }

    /// Returns true if a sample is of a CPU and a time that are chosen.
    pub(crate) fn is_then_and_there(&self, sample: &Sample<'_>) -> bool {
        let on_cpu = |cpus: &Vec<u32>| sample.cpu().is_some_and(|cpu| cpus.contains(&cpu));
        let in_time = |(first, last): (u64, u64)| {
            sample
                .time()
                .is_some_and(|time| (first..=last).contains(&time))
        };
        self.cpus.as_ref().is_none_or(on_cpu) && self.times.is_none_or(in_time)
    }

    /// Returns true if a sample is of a thread that is chosen; `name` is its name.
    pub(crate) fn has_thread(&self, sample: &Sample<'_>, name: &str) -> bool {
        let thread = sample.thread();
        let is_in = |list: &[i32], own: Option<i32>| {
            list.is_empty() || own.is_some_and(|own| list.contains(&own))
        };
        is_in(&self.pids, thread.map(|thread| thread.pid))
            && is_in(&self.tids, thread.map(|thread| thread.tid))
            && (self.comms.is_empty() || self.comms.iter().any(|comm| comm == name))
    }

    /// Returns true if the function decides.
    pub(crate) fn is_of_functions(&self) -> bool {
        !self.dsos.is_empty() || !self.symbols.is_empty()
    }

    /// Returns true if a sample of a function in an object is chosen.
    pub(crate) fn has_function(&self, object: &str, function: Option<&str>) -> bool {
        let short = object.rsplit('/').next().unwrap_or(object);
        let of_object = |dso: &String| dso == object || dso == short;
        let of_function = |symbol: &String| {
            let is_last = |name| self.by_last_part && last_part(name) == symbol;
            function.is_some_and(|name| name == symbol || is_last(name))
        };
        (self.dsos.is_empty() || self.dsos.iter().any(of_object))
            && (self.symbols.is_empty() || self.symbols.iter().any(of_function))
    }

    /// Returns true if functions without names are left out.
    pub(crate) fn is_of_named(&self) -> bool {
        self.named_only
    }
}

/// Reads the two ends of a time, in seconds, which both belong to it.
fn parse_times(text: &str) -> Result<(u64, u64), Failure> {
    let wrong = || {
        Failure::usage(format_args!(
            "--time {text}: give the first and the last second, as quipu script prints them, like 26212.5,26213; \
             either may be left out, shares (10%-20%) are not supported"
        ))
    };
    let (first, last) = text.split_once(',').unwrap_or((text, ""));
    let end = |text: &str, open: u64| match text.trim() {
        "" => Ok(open),
        text => nanoseconds(text).ok_or_else(wrong),
    };
    let (first, last) = (end(first, 0)?, end(last, u64::MAX)?);
    if first > last {
        return Err(wrong());
    }
    Ok((first, last))
}

/// Returns a number of seconds in ns, without rounding.
fn nanoseconds(text: &str) -> Option<u64> {
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
    let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !are_digits(seconds) || !are_digits(fraction) || fraction.len() > 9 {
        return None;
    }
    let seconds: u64 = seconds.parse().ok()?;
    let fraction: u64 = format!("{fraction:0<9}").parse().ok()?;
    seconds.checked_mul(1_000_000_000)?.checked_add(fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_to_the_nanosecond() {
        let times = |text| parse_times(text).ok();
        assert_eq!(
            times("1.5,2.000000001"),
            Some((1_500_000_000, 2_000_000_001))
        );
        assert_eq!(times("7"), Some((7_000_000_000, u64::MAX)));
        assert_eq!(times(",0.1"), Some((0, 100_000_000)));
        for wrong in ["2,1", "x", "-1,", "10%-20%", "1.0000000001", "1e3"] {
            assert_eq!(times(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn files_are_known_by_path_and_by_name() {
        let options = NameOptions {
            dsos: vec!["libc.so.6".into()],
            symbols: vec!["malloc".into()],
            ..NameOptions::default()
        };
        let selection = options.selection();
        assert!(selection.has_function("/usr/lib/libc.so.6", Some("malloc")));
        assert!(!selection.has_function("/usr/lib/libc.so.6", Some("free")));
        assert!(!selection.has_function("/usr/lib/libc.so.6", None));
        let of_path = Some("alloc::malloc");
        assert!(!selection.has_function("/usr/lib/libc.so.6", of_path));
        #[cfg(any(target_os = "linux", target_os = "freebsd"))]
        {
            let selection = selection.clone().with_last_parts();
            assert!(selection.has_function("/usr/lib/libc.so.6", of_path));
            assert!(!selection.has_function("/usr/lib/libc.so.6", Some("alloc::malloc_all")));
        }
        assert!(!selection.has_function("/usr/lib/ld.so", Some("malloc")));
    }
}
