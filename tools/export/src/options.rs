//! The options of `quipu export`.

use std::path::PathBuf;

use clap::Args;

use crate::config::interval;

const EXAMPLES: &str = "\
Examples:
  quipu export                            the whole machine, for Prometheus
  quipu export -e page-faults --listen 99  these events, on this port
  quipu export --config FILE --check      is a file right, and what is here?
  quipu export --config FILE --textfile /var/lib/node-exporter
  quipu export --config FILE --otlp http://127.0.0.1:4318

It counts until SIGTERM or Ctrl-C; SIGHUP reads the file again. Started as root, it opens its counters
and goes on as another user with CAP_PERFMON alone (--user). What it can count without is what any user
can: see `quipu help permissions`. What is exported, by which names, and the file: docs/exporting.md.

Exit status:
  0 when it was asked to end; 125 when it fails, or its file is wrong, which is 1 with --check; 2 when
  the command line is wrong.";

/// Give counts of this machine to Prometheus and OpenTelemetry, for as long as it runs
#[derive(Debug, Clone, Default, Args)]
#[command(after_help = EXAMPLES)]
pub struct Options {
    /// Events to count, as `quipu stat -e` takes them, where the file names none
    #[arg(short, long = "event", value_name = "EVENTS", help_heading = "What")]
    pub event: Vec<String>,
    /// Read events, targets, metrics and labels from FILE (TOML), and again at SIGHUP
    #[arg(long, value_name = "FILE", help_heading = "What")]
    pub config: Option<PathBuf>,
    /// Check the file, and show what is found and what cannot be counted here
    #[arg(long, help_heading = "What")]
    pub check: bool,

    /// Answer requests for metrics here: a port or ADDRESS:PORT; 127.0.0.1:9743 unless --textfile or --otlp is given
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = "9743", help_heading = "Where to")]
    pub listen: Option<String>,
    /// Write quipu.prom into DIR at each interval, for node_exporter's collector of text files
    #[arg(long, value_name = "DIR", help_heading = "Where to")]
    pub textfile: Option<PathBuf>,
    /// Send metrics to a collector of OpenTelemetry at each interval, by HTTP: http://127.0.0.1:4318
    #[arg(long, value_name = "URL", help_heading = "Where to")]
    pub otlp: Option<String>,
    /// The seconds from one file or message to the next; 10, or what the file says
    #[arg(long, value_name = "SECONDS", value_parser = interval, allow_negative_numbers = true, help_heading = "Where to")]
    pub interval: Option<u64>,

    /// Go on as this user when started as root, once counters are open; by default one without rights
    #[arg(long, value_name = "NAME", help_heading = "Rights")]
    pub user: Option<String>,
}
