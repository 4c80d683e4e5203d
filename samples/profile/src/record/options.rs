//! The options of `quipu record`, as people know them from perf-record(1).

use std::path::PathBuf;
use std::str::FromStr;

use clap::{ArgAction, Args, ValueEnum};

use quipu_perf_data::BranchSampleType;

use crate::report::ViewerOptions;

use super::call_graph::CallGraph;
use super::switch::SwitchOn;
use quipu_shell::control::ControlFiles;
use quipu_shell::numbers;
use quipu_shell::target::TargetOptions;

const EXAMPLES: &str = "\
Examples:
  quipu record -- make                     where a build spends its time
  quipu record -g -- ./bench               with call chains, for flame graphs
  quipu record --call-graph dwarf ./bench  with call chains, also without frame pointers
  quipu record -F 999 -p 1234              a running process, until it ends or Ctrl-C
  quipu record -a -- sleep 10              every CPU for ten seconds
  quipu record -e page-faults -c 1 -d ls   every page fault, with its address
  quipu record -e '{cycles,instructions}:S' ./bench   where cycles go, and what they retire
  quipu record --off-cpu -- ./server       and where its threads sleep, and for how long
  quipu report                             what was recorded
  quipu record -o - make | quipu report -i -   without a file
  quipu report --flamegraph out.svg        the same as a picture
  quipu record -g --firefox out.json.gz -- make   and a file for profiler.firefox.com, in one step

perf report and perf script can read the file. An existing file is kept as FILE.old.
Names of what was hit are kept in it, so that it shows the same without the programs (--names).
-g follows frame pointers: build with -fno-omit-frame-pointer (Rust: -C force-frame-pointers). Programs and libraries
without them are followed by --call-graph dwarf, with files of 8 KB a sample.

Exit status:
  that of the command (128 + n when signal n ended it); 126 when it cannot be executed, 127 when it
  does not exist; 125 when quipu itself fails; 2 when the command line is wrong; 0 without a command.";

/// The options of what is sampled and how often, which `record` and `top` share.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct SamplingOptions {
    /// Events to sample, with modifiers :u :k :p; cycles unless named, cpu-clock without a PMU
    #[arg(short, long = "event", value_name = "EVENTS", help_heading = "What")]
    pub(crate) event: Vec<String>,
    /// Take N samples a second; the kernel adjusts the period for it. max: as many as it allows
    #[arg(
        short = 'F',
        long = "freq",
        value_name = "N",
        conflicts_with = "count",
        allow_negative_numbers = true,
        help_heading = "What"
    )]
    pub(crate) frequency: Option<Frequency>,
    /// Take a sample every N events; 1 samples every event
    #[arg(short, long, value_name = "N", value_parser = numbers::positive::<u64>, allow_negative_numbers = true,
          help_heading = "What")]
    pub(crate) count: Option<u64>,
    /// Take call chains, by frame pointers
    #[arg(short = 'g', help_heading = "What")]
    pub(crate) callchains: bool,
    /// Take call chains by frame pointers (fp), those of user mode later and once for a stay in the kernel (fp,defer: Linux
    /// 6.19), by copies of SIZE bytes of the stack, 8192 unless named (dwarf,SIZE), or by the CPU's last branch records (lbr)
    #[arg(long, value_name = "METHOD", help_heading = "What")]
    pub(crate) call_graph: Option<CallGraph>,
    /// Pages of each ring buffer, a power of two; with more, fewer samples are lost
    #[arg(short, long, value_name = "PAGES", default_value_t = 128,
          value_parser = numbers::pages, allow_negative_numbers = true, help_heading = "How")]
    pub(crate) mmap_pages: u32,
}

/// The options by which there are several recordings, or one of another name.
const SEVERAL_FILES: [&str; 2] = ["switch_output", "timestamp_filename"];

/// Take samples of what a command, a process or the whole machine does
#[derive(Debug, Clone, Default, Args)]
#[command(
    after_help = EXAMPLES,
    mut_arg("firefox", |option| option.conflicts_with_all(SEVERAL_FILES)),
    mut_arg("pprof", |option| option.conflicts_with_all(SEVERAL_FILES)),
    mut_arg("speedscope", |option| option.conflicts_with_all(SEVERAL_FILES)),
    override_usage = "quipu record [OPTIONS] [--] COMMAND [ARGUMENT]...\n       \
        quipu record [OPTIONS] -p PID | -t TID | -u USER | -G CGROUP | -a | -C CPUS [COMMAND...]"
)]
pub struct Options {
    #[command(flatten)]
    pub(crate) sampling: SamplingOptions,
    /// Refuse a rate that the kernel does not allow at present, instead of the highest that it does
    #[arg(long, help_heading = "What")]
    pub(crate) strict_freq: bool,
    /// Sample in user mode only: every event that can, unless it has a mode of its own
    #[arg(long, conflicts_with = "all_kernel", help_heading = "What")]
    pub(crate) all_user: bool,
    /// Sample in the kernel only: every event that can, unless it has a mode of its own
    #[arg(long, help_heading = "What")]
    pub(crate) all_kernel: bool,
    /// Record the branches before each sample: the CPU's stack of taken branches
    #[arg(
        short = 'b',
        long,
        conflicts_with = "branch_filter",
        help_heading = "What"
    )]
    pub(crate) branch_any: bool,
    /// Record branches of these kinds (any_call, any_ret, ind_call, ind_jmp, cond, call, stack, abort_tx, in_tx, no_tx), at
    /// these levels (u,k,hv), with what is known of them (save_type,priv,counter,hw_index) or not (no_flags,no_cycles)
    #[arg(short = 'j', long, value_name = "FILTER,..", help_heading = "What")]
    pub(crate) branch_filter: Option<BranchFilter>,
    /// Record what each event counts in each thread and process that is made meanwhile, when it ends: report -T shows it
    #[arg(short = 's', long, conflicts_with_all = ["all_cpus", "cpus", "per_thread", "no_inherit"], help_heading = "What")]
    pub(crate) stat: bool,
    /// Record context switches too
    #[arg(long, help_heading = "What")]
    pub(crate) switch_events: bool,
    /// Sample the time off the CPU too: offcpu-time, by the nanoseconds that threads slept, with the call chains of where
    /// they went to sleep; other samples have chains as well, as with -g. Without -e, cpu-clock has the time on the CPU in
    /// nanoseconds too
    #[arg(long, conflicts_with = "overwrite", help_heading = "What")]
    pub(crate) off_cpu: bool,
    /// Record the addresses of data: of page faults, breakpoints and memory events
    #[arg(short, long, help_heading = "What")]
    pub(crate) data: bool,

    #[command(flatten)]
    pub(crate) target: TargetOptions,
    /// Sample the tasks of these control groups, on every CPU or those of -C
    #[arg(short = 'G', long, value_name = "CGROUP,..", value_delimiter = ',',
          conflicts_with_all = ["pid", "tid", "user"], help_heading = "Where")]
    pub(crate) cgroup: Vec<PathBuf>,
    /// Sample the processes of a user, by name or number, that run now, and those that they start
    #[arg(short, long, alias = "uid", value_name = "USER", conflicts_with_all = ["pid", "tid", "all_cpus", "cpus"],
          help_heading = "Where")]
    pub(crate) user: Option<String>,
    /// Use a ring buffer for each thread, not for each CPU; threads that start later are left out
    #[arg(long, conflicts_with_all = ["all_cpus", "cpus"], help_heading = "Where")]
    pub(crate) per_thread: bool,

    /// Write to FILE; - is standard output, for `| quipu report -i -`
    #[arg(short, long, value_name = "FILE", default_value = crate::DEFAULT_FILE, help_heading = "How")]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) viewers: ViewerOptions,
    /// Start sampling MS milliseconds later than the command; -1: not until --control says so
    #[arg(short = 'D', long, value_name = "MS", value_parser = numbers::delay,
          allow_negative_numbers = true, help_heading = "How")]
    pub(crate) delay: Option<i64>,
    /// Start and stop sampling when `enable` or `disable` is read from a descriptor (`fd:CONTROL[,ACK]`) or a named
    /// pipe (`fifo:CONTROL[,ACK]`), end at `stop`; `ack` is written when it is done
    #[arg(long, value_name = "FILES", help_heading = "How")]
    pub(crate) control: Option<ControlFiles>,
    /// Stop when the file is SIZE long, a number of bytes with B, K, M or G; a command is ended with SIGTERM
    #[arg(long, value_name = "SIZE", value_parser = numbers::size, help_heading = "How")]
    pub(crate) max_size: Option<u64>,
    /// Have each ring buffer keep the newest records, written at the end and when the file is switched
    #[arg(long, help_heading = "How")]
    pub(crate) overwrite: bool,
    /// Go on in a new file at SIGUSR2, or after SIZE (100M) or TIME (30s); each is kept as FILE.TIMESTAMP
    #[arg(long, value_name = "signal|SIZE|TIME", num_args = 0..=1, require_equals = true,
          default_missing_value = "signal", help_heading = "How")]
    pub(crate) switch_output: Option<SwitchOn>,
    /// With --switch-output, keep the last N files
    #[arg(long, value_name = "N", requires = "switch_output", value_parser = numbers::files,
          allow_negative_numbers = true, help_heading = "How")]
    pub(crate) switch_max_files: Option<usize>,
    /// Write to FILE.TIMESTAMP
    #[arg(long, help_heading = "How")]
    pub(crate) timestamp_filename: bool,
    /// Compress records with zstd, at a level from 1 to 22; 1 unless named, 0 is off
    #[arg(short = 'z', long, value_name = "LEVEL", num_args = 0..=1, require_equals = true, default_missing_value = "1",
          value_parser = numbers::level, help_heading = "How")]
    pub(crate) compression_level: Option<i32>,
    /// Keep the names of what was hit, for a time when the programs are gone: in the file, in perf's cache (~/.debug, copies of the
    /// programs), or not
    #[arg(
        long,
        value_name = "WHERE",
        value_enum,
        default_value_t,
        help_heading = "How"
    )]
    pub(crate) names: NamesIn,
    /// The clock of all times, one of clock_gettime(2)
    #[arg(short = 'k', long, value_name = "CLOCK", help_heading = "How")]
    pub(crate) clockid: Option<Clock>,
    /// Print errors only
    #[arg(short, long, conflicts_with = "verbose", help_heading = "How")]
    pub(crate) quiet: bool,
    /// Print how each event was opened and how many samples it has
    #[arg(short, long, action = ArgAction::SetTrue, help_heading = "How")]
    pub(crate) verbose: bool,
}

/// The place where names are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum NamesIn {
    /// In the file
    #[default]
    File,
    /// In perf's cache
    Cache,
    /// Nowhere
    None,
}

/// A number of samples in a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Frequency {
    /// As many as the kernel allows.
    Max,
    Of(u64),
}

impl FromStr for Frequency {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim() {
            "max" => Ok(Self::Max),
            text => match numbers::positive(text) {
                Ok(frequency) => Ok(Self::Of(frequency)),
                Err(_) => Err("expected a positive whole number, or max".to_owned()),
            },
        }
    }
}

/// The branches of a stack, by the words of perf-record(1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BranchFilter(pub(super) BranchSampleType);

impl FromStr for BranchFilter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        use BranchSampleType as B;
        let levels = B::USER | B::KERNEL | B::HYPERVISOR;
        let mut filter = text.split(',').try_fold(B::empty(), |all, word| {
            let word = word.trim();
            let found = BRANCHES.iter().find(|(name, _)| *name == word);
            let (_, bit) = found.ok_or_else(|| {
                let names: Vec<_> = BRANCHES.iter().map(|(name, _)| *name).collect();
                format!("{word:?} is none of {}", names.join(", "))
            })?;
            Ok::<_, String>(all | *bit)
        })?;
        if levels.contains(filter) {
            filter |= B::ANY;
        }
        Ok(Self(filter))
    }
}

/// The words of branch filters (`tools/perf/util/parse-branch-options.c`).
const BRANCHES: &[(&str, BranchSampleType)] = &[
    ("u", BranchSampleType::USER),
    ("k", BranchSampleType::KERNEL),
    ("hv", BranchSampleType::HYPERVISOR),
    ("any", BranchSampleType::ANY),
    ("any_call", BranchSampleType::ANY_CALL),
    ("any_ret", BranchSampleType::ANY_RETURN),
    ("ind_call", BranchSampleType::INDIRECT_CALL),
    ("abort_tx", BranchSampleType::ABORT_TX),
    ("in_tx", BranchSampleType::IN_TX),
    ("no_tx", BranchSampleType::NO_TX),
    ("cond", BranchSampleType::CONDITIONAL),
    ("ind_jmp", BranchSampleType::INDIRECT_JUMP),
    ("call", BranchSampleType::CALL),
    ("no_flags", BranchSampleType::NO_FLAGS),
    ("no_cycles", BranchSampleType::NO_CYCLES),
    ("save_type", BranchSampleType::TYPE_SAVE),
    ("stack", BranchSampleType::CALL_STACK),
    ("hw_index", BranchSampleType::HW_INDEX),
    ("priv", BranchSampleType::PRIV_SAVE),
    ("counter", BranchSampleType::COUNTERS),
];

/// A clock of clock_gettime(2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Clock {
    /// `CLOCK_MONOTONIC`
    #[value(alias = "mono")]
    Monotonic,
    /// `CLOCK_MONOTONIC_RAW`
    #[value(name = "monotonic_raw", aliases = ["raw", "monotonic-raw"])]
    MonotonicRaw,
    /// `CLOCK_REALTIME`
    #[value(alias = "real")]
    Realtime,
    /// `CLOCK_BOOTTIME`
    #[value(alias = "boot")]
    Boottime,
    /// `CLOCK_TAI`
    Tai,
}

impl Clock {
    /// Returns its number (`include/uapi/linux/time.h`).
    pub(super) fn number(self) -> i32 {
        match self {
            Self::Realtime => 0,
            Self::Monotonic => 1,
            Self::MonotonicRaw => 4,
            Self::Boottime => 7,
            Self::Tai => 11,
        }
    }
}
