//! The thread that reads: one read at a time, shared by all who ask meanwhile.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use hyper::body::Bytes;
use quipu_shell::Failure;
use tokio::sync::oneshot;

use crate::collector::Collector;
use crate::config::Config;
use crate::series::Snapshot;
use crate::text::{self, Form};

/// The age up to which a read answers those who ask after it: counters that take turns need some time for each.
const SHARED_FOR: Duration = Duration::from_millis(100);

/// A read, in the forms that were asked for.
pub(crate) struct Exposition {
    pub(crate) snapshot: Arc<Snapshot>,
    forms: [OnceLock<Bytes>; 4],
}

impl Exposition {
    fn new(snapshot: Snapshot) -> Self {
        Self {
            snapshot: Arc::new(snapshot),
            forms: Default::default(),
        }
    }

    /// Returns the text, which is made once.
    pub(crate) fn text(&self, form: Form, zipped: bool) -> Bytes {
        let at = usize::from(form == Form::OpenMetrics) * 2 + usize::from(zipped);
        let text = self.forms[at].get_or_init(|| match zipped {
            true => text::zipped(&self.text(form, false)),
            false => text::encode(&self.snapshot, form).into(),
        });
        text.clone()
    }
}

enum Request {
    Read(oneshot::Sender<Arc<Exposition>>),
    Reload(Result<Config, Failure>, oneshot::Sender<Duration>),
}

/// A handle of the thread, which ends with the last of them.
#[derive(Clone)]
pub(crate) struct Reader(Sender<Request>);

impl Reader {
    /// Starts the thread.
    pub(crate) fn start(collector: Collector) -> Result<Self, Failure> {
        let (requests, taken) = channel();
        let thread = thread::Builder::new().name("quipu-reader".to_owned());
        let spawned = thread.spawn(move || serve(collector, &taken));
        spawned.map_err(|e| Failure::new(format_args!("cannot start a thread: {e}")))?;
        Ok(Self(requests))
    }

    /// Returns a read that is at most [`SHARED_FOR`] old; `None` if the thread has ended.
    pub(crate) async fn read(&self) -> Option<Arc<Exposition>> {
        let (answer, answered) = oneshot::channel();
        self.0.send(Request::Read(answer)).ok()?;
        answered.await.ok()
    }

    /// Goes on with another configuration, or takes note that it cannot be used; returns the interval.
    pub(crate) async fn reload(&self, config: Result<Config, Failure>) -> Option<Duration> {
        let (answer, answered) = oneshot::channel();
        self.0.send(Request::Reload(config, answer)).ok()?;
        answered.await.ok()
    }
}

fn serve(mut collector: Collector, requests: &Receiver<Request>) {
    let mut last: Option<(Instant, Arc<Exposition>)> = None;
    while let Ok(request) = requests.recv() {
        // Who asked may be gone.
        match request {
            Request::Read(answer) => {
                let shared = last.take().filter(|(at, _)| at.elapsed() < SHARED_FOR);
                let (at, read) = shared.unwrap_or_else(|| {
                    let read = Arc::new(Exposition::new(collector.collect()));
                    (Instant::now(), read)
                });
                last = Some((at, Arc::clone(&read)));
                let _ = answer.send(read);
            }
            Request::Reload(config, answer) => {
                collector.reloaded = config.is_ok();
                if let Ok(config) = config {
                    collector.reload(config);
                }
                let _ = answer.send(collector.interval());
            }
        }
    }
}
