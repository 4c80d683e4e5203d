//! The server of requests for metrics.

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, VARY,
};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use quipu_shell::Failure;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use crate::reader::Reader;
use crate::text::Form;

/// The most connections at once; others wait for one to end.
const MOST_CONNECTIONS: usize = 256;
/// The longest time for the head of a request, on a new connection and on one that waits for the next.
const LONGEST_HEAD: Duration = Duration::from_secs(10);
/// The longest time of a connection, and of what it still has to write then: whoever reads slowly holds a place for no longer.
const LONGEST_CONNECTION: Duration = Duration::from_secs(60);
const LONGEST_END: Duration = Duration::from_secs(5);
const LONGEST_READ: Duration = Duration::from_secs(10);
/// The most bytes and lines of a head.
const LARGEST_HEAD: usize = 16 << 10;
const MOST_HEADERS: usize = 64;

/// Returns the address that a port or address means; a port alone is one of this machine alone.
fn address(text: &str) -> Result<SocketAddr, Failure> {
    let port = text.trim_start_matches(':').parse::<u16>();
    let address = match port {
        Ok(port) => Ok(SocketAddr::from(([127, 0, 0, 1], port))),
        Err(_) => text.replacen("localhost:", "127.0.0.1:", 1).parse(),
    };
    address.map_err(|_| {
        let text = text.escape_debug();
        Failure::usage(format_args!(
            "--listen {text}: write a port, or an address with a port: 127.0.0.1:9743, [::]:9743"
        ))
    })
}

/// Takes an address.
///
/// # Errors
/// If it is none, or cannot be had.
pub(crate) fn bind(text: &str) -> Result<StdListener, Failure> {
    let address = address(text)?;
    let bound = StdListener::bind(address);
    let listener = bound.and_then(|listener| {
        listener.set_nonblocking(true)?;
        Ok(listener)
    });
    listener.map_err(|e| {
        let advice = match e.kind() {
            io::ErrorKind::AddrInUse => {
                "; another program listens there: choose another port with --listen"
            }
            io::ErrorKind::PermissionDenied => "; ports below 1024 are for root",
            _ => "",
        };
        Failure::new(format_args!("cannot listen on {address}: {e}{advice}"))
    })
}

/// Answers requests for as long as it is polled.
pub(crate) async fn serve(listener: TcpListener, reader: Reader) {
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((stream, _)) => {
                let reader = reader.clone();
                tokio::spawn(async move {
                    connection(stream, reader).await;
                    drop(place);
                });
            }
            // The process may have no file left for it: those who wait are taken when it has.
            Err(_) => sleep(Duration::from_millis(100)).await,
        }
    }
}

/// Serves a connection. One that breaks is the client's affair.
async fn connection(stream: TcpStream, reader: Reader) {
    let service = service_fn(move |request| {
        let reader = reader.clone();
        async move { Ok::<_, Infallible>(answer(&request, &reader).await) }
    });
    let mut connection = std::pin::pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(LONGEST_HEAD)
            .max_buf_size(LARGEST_HEAD)
            .max_headers(MOST_HEADERS)
            .serve_connection(TokioIo::new(stream), service)
    );
    if timeout(LONGEST_CONNECTION, connection.as_mut())
        .await
        .is_err()
    {
        connection.as_mut().graceful_shutdown();
        let _ = timeout(LONGEST_END, connection).await;
    }
}

async fn answer(request: &Request<Incoming>, reader: &Reader) -> Response<Full<Bytes>> {
    if ![Method::GET, Method::HEAD].contains(request.method()) {
        return page(StatusCode::METHOD_NOT_ALLOWED, "There is GET and HEAD.\n");
    }
    match request.uri().path() {
        "/metrics" => {}
        "/" => {
            return page(StatusCode::OK, "quipu export: metrics are at /metrics\n");
        }
        _ => return page(StatusCode::NOT_FOUND, "Metrics are at /metrics.\n"),
    }
    let Ok(Some(read)) = timeout(LONGEST_READ, reader.read()).await else {
        return page(StatusCode::SERVICE_UNAVAILABLE, "The read is not done.\n");
    };
    let form = form(request.headers());
    let zipped = takes_gzip(request.headers());
    let mut answer = Response::builder()
        .header(CONTENT_TYPE, form.content_type())
        .header(VARY, "Accept, Accept-Encoding");
    if zipped {
        answer = answer.header(CONTENT_ENCODING, "gzip");
    }
    let answer = answer.body(Full::new(read.text(form, zipped)));
    answer.unwrap_or_else(|_| page(StatusCode::INTERNAL_SERVER_ERROR, ""))
}

fn page(status: StatusCode, text: &'static str) -> Response<Full<Bytes>> {
    let mut page = Response::new(Full::new(Bytes::from_static(text.as_bytes())));
    *page.status_mut() = status;
    let plain = hyper::header::HeaderValue::from_static("text/plain; charset=utf-8");
    page.headers_mut().insert(CONTENT_TYPE, plain);
    page
}

/// Returns the items of a header with their weights (RFC 9110, 12.4.2).
fn weighted(headers: &HeaderMap, name: HeaderName) -> impl Iterator<Item = (&str, Vec<&str>, f32)> {
    let values = headers.get_all(name).into_iter();
    let items = values.flat_map(|value| value.to_str().unwrap_or_default().split(','));
    items.map(|item| {
        let mut words = item.split(';').map(str::trim);
        let kind = words.next().unwrap_or_default();
        let parameters: Vec<&str> = words.collect();
        let weights = parameters.iter();
        let mut weights = weights.filter_map(|word| word.strip_prefix("q=")?.parse().ok());
        let weight = weights.next().unwrap_or(1.0);
        (kind, parameters, weight)
    })
}

/// Returns the form that a client likes best: Prometheus's own unless it asks for OpenMetrics.
fn form(headers: &HeaderMap) -> Form {
    let (mut open, mut plain) = (0.0, 0.0_f32);
    for (kind, parameters, weight) in weighted(headers, ACCEPT) {
        let version = parameters
            .iter()
            .find_map(|word| word.strip_prefix("version="));
        let is_known = version.is_none_or(|version| version.trim_matches('"') == "1.0.0");
        match kind.to_ascii_lowercase().as_str() {
            "application/openmetrics-text" if is_known => open = weight.max(open),
            "text/plain" | "text/*" | "*/*" => plain = weight.max(plain),
            _ => {}
        }
    }
    match open > 0.0 && open >= plain {
        true => Form::OpenMetrics,
        false => Form::Prometheus,
    }
}

/// Returns true if a client takes gzip.
fn takes_gzip(headers: &HeaderMap) -> bool {
    let weight_of = |name: &str| {
        let mut items = weighted(headers, ACCEPT_ENCODING);
        items.find_map(|(kind, _, weight)| kind.eq_ignore_ascii_case(name).then_some(weight))
    };
    let weight = weight_of("gzip").or_else(|| weight_of("*"));
    weight.is_some_and(|weight| weight > 0.0)
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    fn headers(name: HeaderName, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_static(value))])
    }

    #[test]
    fn clients_have_the_form_that_they_like_best() {
        for (accept, open) in [
            // Of Prometheus 2.42 and 3.
            (
                "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
                true,
            ),
            (
                "application/openmetrics-text; version=1.0.0; q=0.2, text/plain; q=0.8",
                false,
            ),
            ("application/openmetrics-text", true),
            ("application/openmetrics-text;version=2.0.0", false),
            ("application/openmetrics-text;q=0", false),
            ("text/plain", false),
            ("*/*", false),
            ("", false),
        ] {
            let form = form(&headers(ACCEPT, accept));
            assert_eq!(form == Form::OpenMetrics, open, "{accept}");
        }
    }

    #[test]
    fn who_takes_gzip_says_so() {
        for (accept, takes) in [
            ("gzip", true),
            ("deflate, gzip;q=0.5", true),
            ("*", true),
            ("gzip;q=0, *", false),
            ("identity", false),
        ] {
            assert_eq!(
                takes_gzip(&headers(ACCEPT_ENCODING, accept)),
                takes,
                "{accept}"
            );
        }
        assert!(!takes_gzip(&HeaderMap::new()));
    }

    #[test]
    fn a_port_alone_is_of_this_machine_alone() {
        let of = |text| address(text).map(|address| address.to_string());
        for (text, is) in [
            ("9743", "127.0.0.1:9743"),
            (":9743", "127.0.0.1:9743"),
            ("localhost:1", "127.0.0.1:1"),
            ("0.0.0.0:9743", "0.0.0.0:9743"),
            ("[::1]:9743", "[::1]:9743"),
        ] {
            assert_eq!(of(text).expect("an address"), is, "{text}");
        }
        for text in ["", "host", "127.0.0.1", "99999", "::1:9743:"] {
            assert!(of(text).is_err(), "{text}");
        }
    }
}
