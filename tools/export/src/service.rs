//! The service: answers, writes and sends until it is asked to end.

use std::io;
use std::net::TcpListener as StdListener;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use quipu_shell::{Failure, terminal};
use tokio::net::TcpListener;
use tokio::runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::spawn_blocking;
use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::Options;
use crate::collector::Collector;
use crate::config::Config;
use crate::http;
use crate::otlp::{Endpoint, Sender, batches};
use crate::outcomes::Outcomes;
use crate::reader::{Exposition, Reader};
use crate::text::Form;
use crate::textfile;

/// The longest time for what is left to be sent when the service ends.
const LONGEST_FLUSH: Duration = Duration::from_secs(2);

/// The ways that series go.
pub(crate) struct Outlets {
    listener: Option<StdListener>,
    folder: Option<PathBuf>,
    endpoint: Option<Endpoint>,
}

impl Outlets {
    /// Takes the address, and looks at the rest.
    ///
    /// # Errors
    /// If one of them cannot be used.
    pub(crate) fn open(options: &Options) -> Result<Self, Failure> {
        let none = options.textfile.is_none() && options.otlp.is_none();
        let listen = options.listen.as_deref().or(none.then_some("9743"));
        let endpoint = options.otlp.as_deref().map(Endpoint::parse);
        let endpoint = endpoint.transpose()?;
        if let Some(folder) = &options.textfile
            && !folder.is_dir()
        {
            let folder = folder.display();
            return Err(Failure::usage(format_args!(
                "--textfile {folder}: this is no folder"
            )));
        }
        Ok(Self {
            listener: listen.map(http::bind).transpose()?,
            folder: options.textfile.clone(),
            endpoint,
        })
    }
}

/// Serves until it is asked to end.
pub(crate) fn run(
    options: &Options,
    collector: Collector,
    outlets: Outlets,
) -> Result<ExitCode, Failure> {
    let cannot = |e: io::Error| Failure::new(format_args!("cannot serve: {e}"));
    let mut builder = runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().build().map_err(cannot)?;
    let outcomes = Arc::clone(&collector.outcomes);
    let period = collector.interval();
    let reader = Reader::start(collector)?;
    runtime.block_on(async {
        let mut reloads = signal(SignalKind::hangup()).map_err(cannot)?;
        let mut ends = Ends::watch().map_err(cannot)?;
        let listener = outlets.listener.map(TcpListener::from_std);
        if let Some(listener) = listener.transpose().map_err(cannot)? {
            if let Ok(address) = listener.local_addr() {
                terminal::warn(format_args!("metrics are at http://{address}/metrics"));
            }
            tokio::spawn(http::serve(listener, reader.clone()));
        }
        let sender = outlets
            .endpoint
            .map(|endpoint| Arc::new(Sender::new(endpoint, Arc::clone(&outcomes))));
        let sending = sender.as_ref().map(|sender| {
            let sender = Arc::clone(sender);
            tokio::spawn(async move { sender.run().await })
        });
        let mut outlet = Outlet {
            folder: outlets.folder,
            sender,
            outcomes,
            last: None,
            has_failed: false,
        };
        let mut ticks = ticks(period);
        loop {
            tokio::select! {
                _ = ticks.tick() => {
                    if let Some(read) = reader.read().await {
                        outlet.give(&read).await;
                    }
                }
                _ = reloads.recv() => {
                    if let Some(period) = reload(options, &reader).await {
                        ticks = self::ticks(period);
                    }
                }
                () = ends.arrived() => break,
            }
        }
        if let Some(sending) = sending {
            sending.abort();
            let _ = sending.await;
        }
        if let Some(read) = reader.read().await {
            outlet.give(&read).await;
        }
        if let Some(sender) = &outlet.sender {
            sender.flush(LONGEST_FLUSH).await;
        }
        Ok(ExitCode::SUCCESS)
    })
}

fn ticks(period: Duration) -> Interval {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// Reads the file again; one that is wrong changes nothing.
async fn reload(options: &Options, reader: &Reader) -> Option<Duration> {
    let config = Config::of(options);
    if let Err(failure) = &config {
        terminal::warn(format_args!("{failure}\nall goes on as before"));
    }
    reader.reload(config).await
}

/// The signals that ask to end.
struct Ends {
    terminate: Signal,
    interrupt: Signal,
}

impl Ends {
    fn watch() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for one of them.
    async fn arrived(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// The file and the receiver that a read is given to.
struct Outlet {
    folder: Option<PathBuf>,
    sender: Option<Arc<Sender>>,
    outcomes: Arc<Outcomes>,
    /// The time of the last read that was given.
    last: Option<SystemTime>,
    /// True if the last file could not be written, which is said once.
    has_failed: bool,
}

impl Outlet {
    /// Gives a read, unless it was given already.
    async fn give(&mut self, read: &Arc<Exposition>) {
        let at = read.snapshot.at;
        if std::mem::replace(&mut self.last, at) == at {
            return;
        }
        if let Some(sender) = &self.sender {
            sender.push(batches(&read.snapshot));
        }
        let Some(folder) = self.folder.clone() else {
            return;
        };
        let text = read.text(Form::Prometheus, false);
        let shown = folder.display().to_string();
        let written = spawn_blocking(move || textfile::write(&folder, &text)).await;
        let written = written.unwrap_or_else(|e| Err(io::Error::other(e)));
        self.has_failed = match written {
            Ok(()) => {
                self.outcomes.files_written.add(1);
                false
            }
            Err(e) => {
                self.outcomes.files_failed.add(1);
                if !self.has_failed {
                    terminal::warn(format_args!(
                        "cannot write {} in {shown}: {e}; the file there stays, and it is tried again",
                        textfile::NAME
                    ));
                }
                true
            }
        };
    }
}
