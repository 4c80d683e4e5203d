//! Sending: each message until it was taken or refused, with growing pauses while the receiver is away.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{CONTENT_TYPE, HOST, RETRY_AFTER, USER_AGENT};
use hyper::{Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use prost::Message;
use quipu_shell::{Failure, terminal};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use super::message::Response;
use super::queue::{Batch, Queue};
use crate::outcomes::Outcomes;

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
const LONGEST_ANSWER: Duration = Duration::from_secs(10);
const LARGEST_ANSWER: usize = 64 << 10;

/// The place that messages are sent to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Endpoint {
    /// The host, in brackets if it is an IPv6 address, and the port.
    authority: String,
    path: String,
}

impl Endpoint {
    /// Reads a URL.
    pub(crate) fn parse(url: &str) -> Result<Self, Failure> {
        let refused = |why: &str| {
            let url = url.escape_debug();
            Failure::usage(format_args!("--otlp {url}: {why}"))
        };
        let uri: Uri = url
            .parse()
            .map_err(|_| refused("this is no URL: write http://127.0.0.1:4318"))?;
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") => {
                return Err(refused(
                    "quipu speaks no TLS: send to a collector on this machine by http, which sends on by https",
                ));
            }
            _ => return Err(refused("the URL has to begin with http://")),
        }
        let authority = uri.authority().filter(|a| !a.host().is_empty());
        let authority = authority.ok_or_else(|| refused("the URL names no host"))?;
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        Ok(Self {
            authority: format!(
                "{}:{}",
                authority.host(),
                authority.port_u16().unwrap_or(4318)
            ),
            path: match path {
                "/" => "/v1/metrics".to_owned(),
                path => path.to_owned(),
            },
        })
    }
}

/// The outcome of an attempt.
enum Attempt {
    Taken,
    /// Refused for good, by these words; the number of points that were not taken, if not all.
    Refused(String, Option<u64>),
    /// To be tried again, after this time if the receiver says so.
    Later(String, Option<Duration>),
}

/// The queue and the receiver of a process.
pub(crate) struct Sender {
    endpoint: Endpoint,
    queue: Mutex<Queue>,
    more: Notify,
    outcomes: Arc<Outcomes>,
    /// True while the receiver cannot be reached, which is written once.
    is_away: Mutex<bool>,
}

impl Sender {
    pub(crate) fn new(endpoint: Endpoint, outcomes: Arc<Outcomes>) -> Self {
        Self {
            endpoint,
            outcomes,
            queue: Mutex::default(),
            more: Notify::new(),
            is_away: Mutex::new(false),
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds messages to be sent.
    pub(crate) fn push(&self, batches: Vec<Batch>) {
        for batch in batches {
            let lost = self.queue().push(batch);
            self.outcomes.points_lost.add(lost);
        }
        self.more.notify_one();
    }

    /// Sends for as long as it is polled.
    pub(crate) async fn run(&self) {
        let mut sending = Returned {
            sender: self,
            batch: None,
        };
        let mut pause = FIRST_PAUSE;
        loop {
            if sending.batch.is_none() {
                sending.batch = self.queue().pop();
            }
            let Some(batch) = &sending.batch else {
                self.more.notified().await;
                continue;
            };
            match self.attempt(batch).await {
                Attempt::Later(why, after) => {
                    self.say_away(&why);
                    // Many machines whose receiver comes back do not come all at once.
                    let own = pause.mul_f64(0.5 + fastrand::f64() / 2.0);
                    sleep(after.map_or(own, |after| after.min(LONGEST_PAUSE))).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                ended => {
                    let points = batch.points;
                    self.end(points, ended);
                    sending.batch = None;
                    pause = FIRST_PAUSE;
                }
            }
        }
    }

    /// Sends what waits, each message once, until one is not taken or the time is over. What is left is lost.
    pub(crate) async fn flush(&self, time: Duration) {
        let _ = timeout(time, async {
            loop {
                let Some(batch) = self.queue().pop() else {
                    return;
                };
                let mut sending = Returned {
                    sender: self,
                    batch: Some(batch.clone()),
                };
                match self.attempt(&batch).await {
                    Attempt::Later(why, _) => return self.say_away(&why),
                    ended => {
                        sending.batch = None;
                        self.end(batch.points, ended);
                    }
                }
            }
        })
        .await;
        let lost = self.queue().clear();
        if lost > 0 {
            self.outcomes.points_lost.add(lost);
            terminal::warn(format_args!(
                "{lost} points are lost: {} did not take them",
                self.endpoint.authority
            ));
        }
    }

    fn end(&self, points: u64, attempt: Attempt) {
        let mut is_away = self.is_away.lock().unwrap_or_else(PoisonError::into_inner);
        *is_away = false;
        let lost = match attempt {
            Attempt::Refused(why, lost) => {
                terminal::warn(format_args!(
                    "{} refuses points: {why}",
                    self.endpoint.authority
                ));
                lost.unwrap_or(points).min(points)
            }
            _ => 0,
        };
        self.outcomes.points_lost.add(lost);
        self.outcomes.points_sent.add(points - lost);
    }

    fn say_away(&self, why: &str) {
        let mut is_away = self.is_away.lock().unwrap_or_else(PoisonError::into_inner);
        if !*is_away {
            terminal::warn(format_args!(
                "cannot send to {}: {why}; it is tried again",
                self.endpoint.authority
            ));
        }
        *is_away = true;
    }

    async fn attempt(&self, batch: &Batch) -> Attempt {
        match timeout(LONGEST_ANSWER, self.send(batch)).await {
            Ok(attempt) => attempt.unwrap_or_else(|why| Attempt::Later(why, None)),
            Err(_) => Attempt::Later("there is no answer".to_owned(), None),
        }
    }

    /// Sends a message by a connection of its own, as the receiver may have closed one that was kept open.
    async fn send(&self, batch: &Batch) -> Result<Attempt, String> {
        let Endpoint { authority, path } = &self.endpoint;
        let stream = TcpStream::connect(authority).await;
        let stream = stream.map_err(|e| e.to_string())?;
        let (mut requests, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|e| e.to_string())?;
        tokio::spawn(connection);
        let request = Request::post(path)
            .header(HOST, authority)
            .header(USER_AGENT, concat!("quipu/", env!("CARGO_PKG_VERSION")))
            .header(CONTENT_TYPE, "application/x-protobuf")
            .body(Full::new(batch.bytes.clone()))
            .map_err(|e| e.to_string())?;
        let answer = requests.send_request(request).await;
        let answer = answer.map_err(|e| e.to_string())?;
        let status = answer.status();
        let after = answer.headers().get(RETRY_AFTER);
        let after = after.and_then(|after| after.to_str().ok()?.parse().ok());
        if status.is_success() {
            // It was taken, whatever the answer is.
            let body = Limited::new(answer.into_body(), LARGEST_ANSWER)
                .collect()
                .await;
            let body = body
                .map(http_body_util::Collected::to_bytes)
                .unwrap_or_default();
            return Ok(taken(&body));
        }
        // As the protocol has it; all others would be refused again.
        let is_temporary = matches!(
            status,
            StatusCode::TOO_MANY_REQUESTS
                | StatusCode::BAD_GATEWAY
                | StatusCode::SERVICE_UNAVAILABLE
                | StatusCode::GATEWAY_TIMEOUT
        );
        Ok(match is_temporary {
            true => Attempt::Later(status.to_string(), after.map(Duration::from_secs)),
            false => Attempt::Refused(status.to_string(), None),
        })
    }
}

/// Returns what an answer of success says.
fn taken(body: &Bytes) -> Attempt {
    let partial = Response::decode(body.clone()).ok();
    match partial.and_then(|answer| answer.partial_success) {
        Some(partial) if partial.rejected_data_points > 0 => Attempt::Refused(
            partial.error_message,
            u64::try_from(partial.rejected_data_points).ok(),
        ),
        _ => Attempt::Taken,
    }
}

/// A message that is being sent, which goes back into the queue where sending is given up.
struct Returned<'a> {
    sender: &'a Sender,
    batch: Option<Batch>,
}

impl Drop for Returned<'_> {
    fn drop(&mut self) {
        if let Some(batch) = self.batch.take() {
            self.sender.queue().put_back(batch);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read_or_refused_in_a_sentence() {
        let parsed = |url: &str| Endpoint::parse(url).map(|e| (e.authority, e.path));
        let is = |authority: &str, path: &str| (authority.to_owned(), path.to_owned());
        let local = parsed("http://127.0.0.1:4318").expect("a URL");
        assert_eq!(local, is("127.0.0.1:4318", "/v1/metrics"));
        let named = parsed("http://otel.example/otlp/v1/metrics").expect("a URL");
        assert_eq!(named, is("otel.example:4318", "/otlp/v1/metrics"));
        assert_eq!(parsed("http://[::1]:1/").expect("a URL").0, "[::1]:1");
        let refused = parsed("https://otel.example").expect_err("no TLS");
        assert!(
            refused.to_string().contains("quipu speaks no TLS"),
            "{refused}"
        );
        for url in ["", "127.0.0.1:4318", "grpc://a:1", "http://", "http:// "] {
            assert!(parsed(url).is_err(), "{url}");
        }
    }
}
