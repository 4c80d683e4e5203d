//! The client: what it asks, what it keeps, and how much time and room it takes.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, SystemTime};

use ureq::Agent;

use super::Artifact;
use crate::debug_files::cache_of_clients;

/// No longer file is kept, unless `DEBUGINFOD_MAXSIZE` says otherwise.
const LONGEST: u64 = 2 << 30;
/// Time in which a server has to begin its answer, unless `DEBUGINFOD_TIMEOUT` says otherwise.
const TO_BEGIN: Duration = Duration::from_secs(30);
/// Time in which it has to end it, unless `DEBUGINFOD_MAXTIME` says otherwise.
const TO_END: Duration = Duration::from_secs(300);
/// No server is asked so soon for a file that no server had, which a file without content notes (`cache_miss_s`).
const UNTIL_ASKED_AGAIN: Duration = Duration::from_secs(600);

/// Returns a file of a build, as [`super::fetch`].
pub(super) fn fetch(build_id: &[u8], artifact: Artifact) -> Option<PathBuf> {
    static CLIENT: OnceLock<Option<Mutex<Client>>> = OnceLock::new();
    let client = CLIENT.get_or_init(|| Client::new(quipu_environment::variable).map(Mutex::new));
    client.as_ref()?.lock().ok()?.fetch(build_id, artifact)
}

/// The servers, as far as they answer.
#[derive(Debug)]
struct Client {
    agent: Agent,
    servers: Vec<String>,
    cache: PathBuf,
    longest: u64,
}

impl Client {
    /// Returns the one that variables of the environment ask for; `None` if they name no server, or no place to keep files.
    fn new(variable: impl Fn(&str) -> Option<OsString>) -> Option<Self> {
        let servers = variable("DEBUGINFOD_URLS")?.into_string().ok()?;
        let servers = servers.split_whitespace().map(str::to_owned).collect();
        let number = |name| variable(name)?.to_str()?.parse().ok().filter(|n| *n > 0);
        let seconds = |name, usual| number(name).map_or(usual, Duration::from_secs);
        let config = Agent::config_builder()
            .timeout_connect(Some(seconds("DEBUGINFOD_TIMEOUT", TO_BEGIN)))
            .timeout_recv_response(Some(seconds("DEBUGINFOD_TIMEOUT", TO_BEGIN)))
            .timeout_global(Some(seconds("DEBUGINFOD_MAXTIME", TO_END)))
            .http_status_as_error(false)
            .user_agent(concat!("quipu/", env!("CARGO_PKG_VERSION")))
            .build();
        Some(Self {
            agent: config.into(),
            servers,
            cache: cache_of_clients(&variable)?,
            longest: number("DEBUGINFOD_MAXSIZE").unwrap_or(LONGEST),
        })
    }

    fn fetch(&mut self, build_id: &[u8], artifact: Artifact) -> Option<PathBuf> {
        let id: String = build_id.iter().map(|byte| format!("{byte:02x}")).collect();
        if id.is_empty() || self.servers.is_empty() {
            return None;
        }
        let directory = self.cache.join(&id);
        let place = directory.join(artifact.name());
        match known(&place) {
            Known::Kept => return Some(place),
            Known::Missing => return None,
            Known::Nothing => {}
        }
        create_directory(&directory).ok()?;
        let mut found = false;
        let path = format!("buildid/{id}/{}", artifact.name());
        let servers = std::mem::take(&mut self.servers);
        for server in servers {
            let url = format!("{}/{path}", server.trim_end_matches('/'));
            // One that does not answer is not asked again.
            if found {
                self.servers.push(server);
            } else if let Ok(has_it) = self.get(&url, &place) {
                self.servers.push(server);
                found = has_it;
            }
        }
        if !found && !self.servers.is_empty() {
            // It cannot be noted where nothing can be kept.
            let _ = File::create(&place);
        }
        found.then_some(place)
    }

    /// Has a server asked for a file, and keeps it. Returns false if it has none, or a longer one than is kept.
    fn get(&self, url: &str, place: &Path) -> Result<bool, Box<dyn std::error::Error>> {
        let mut answer = self.agent.get(url).call()?;
        match answer.status().as_u16() {
            200 => {}
            404 => return Ok(false),
            other => return Err(format!("status {other}").into()),
        }
        // Others that ask for it at the same time have files of their own, until one of them is in its place.
        let unfinished = place.with_extension(std::process::id().to_string());
        let kept = self.keep(answer.body_mut().as_reader(), &unfinished);
        let kept = match kept {
            Ok(true) => fs::rename(&unfinished, place).map(|()| true),
            other => {
                // It may not have been made.
                let _ = fs::remove_file(&unfinished);
                other
            }
        };
        Ok(kept?)
    }

    /// Writes what a server sends to a file; returns false if it is longer than any that is kept.
    fn keep(&self, content: impl Read, path: &Path) -> io::Result<bool> {
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create_new(true).open(path)?;
        let len = io::copy(&mut content.take(self.longest.saturating_add(1)), &mut file)?;
        Ok(len > 0 && len <= self.longest)
    }
}

/// State of a file in the cache.
enum Known {
    Kept,
    /// No server had it a short time ago.
    Missing,
    Nothing,
}

fn known(place: &Path) -> Known {
    let Ok(found) = place.metadata() else {
        return Known::Nothing;
    };
    let age = found
        .modified()
        .map(|then| SystemTime::now().duration_since(then));
    match age {
        _ if found.len() > 0 => Known::Kept,
        Ok(Ok(age)) if age >= UNTIL_ASKED_AGAIN => Known::Nothing,
        _ => Known::Missing,
    }
}

/// Makes a directory that is the user's alone, and those that it is in.
fn create_directory(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Write};
    use std::net::{TcpListener, TcpStream};
    use std::sync::Arc;

    /// A server that answers for one build, and notes what it was asked.
    struct Server {
        url: String,
        asked: Arc<Mutex<Vec<String>>>,
    }

    impl Server {
        fn start() -> Self {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
            let url = format!("http://{}/", listener.local_addr().expect("bound"));
            let asked = Arc::new(Mutex::new(Vec::new()));
            let noted = asked.clone();
            std::thread::spawn(move || {
                for stream in listener.incoming().flatten() {
                    let noted = noted.clone();
                    std::thread::spawn(move || answer(stream, &noted));
                }
            });
            Self { url, asked }
        }

        fn asked(&self) -> usize {
            self.asked.lock().expect("no panic").len()
        }
    }

    fn answer(mut stream: TcpStream, asked: &Mutex<Vec<String>>) -> Option<()> {
        let mut line = String::new();
        let mut request = BufReader::new(stream.try_clone().ok()?);
        request.read_line(&mut line).ok()?;
        let path = line.split(' ').nth(1)?.to_owned();
        asked.lock().ok()?.push(path.clone());
        let head = |status, len| {
            format!("HTTP/1.1 {status}\r\nContent-Length: {len}\r\nConnection: close\r\n\r\n")
        };
        match path.as_str() {
            "/buildid/ab01/debuginfo" => {
                stream.write_all(head("200 OK", 7).as_bytes()).ok()?;
                stream.write_all(b"content").ok()
            }
            // It does not end, or does not begin.
            "/buildid/ab02/debuginfo" => {
                stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").ok()?;
                while stream.write_all(&[0; 4096]).is_ok() {}
                Some(())
            }
            "/buildid/ab03/debuginfo" => {
                std::thread::sleep(Duration::from_secs(60));
                Some(())
            }
            _ => stream.write_all(head("404 Not Found", 0).as_bytes()).ok(),
        }
    }

    fn client(cache: &Path, servers: &str) -> Client {
        let client = Client::new(|name| match name {
            "DEBUGINFOD_URLS" => Some(servers.into()),
            "DEBUGINFOD_CACHE_PATH" => Some(cache.into()),
            "DEBUGINFOD_MAXSIZE" => Some("100000".into()),
            "DEBUGINFOD_TIMEOUT" => Some("1".into()),
            _ => None,
        });
        client.expect("a server and a cache")
    }

    #[test]
    fn a_file_is_asked_for_once_and_kept() {
        let cache = tempfile::tempdir().expect("writable");
        let (first, second) = (Server::start(), Server::start());
        let path = |name: &str| cache.path().join("sub").join(name);
        let ask = |client: &mut Client, last| client.fetch(&[0xab, last], Artifact::DebugInfo);
        let mut client = client(&path(""), &format!("{} {}", first.url, second.url));
        let kept = ask(&mut client, 1);
        assert_eq!(kept, Some(path("ab01/debuginfo")));
        assert_eq!(fs::read(path("ab01/debuginfo")).expect("kept"), b"content");
        assert_eq!((first.asked(), second.asked()), (1, 0));
        assert_eq!(ask(&mut client, 1), kept);
        assert_eq!(first.asked(), 1);
        // What no server has is asked for at each of them, and once in a while.
        for _ in 0..2 {
            assert_eq!(ask(&mut client, 9), None);
            assert_eq!((first.asked(), second.asked()), (2, 1));
        }
        let noted = path("ab09/debuginfo");
        assert_eq!(noted.metadata().expect("noted").len(), 0);
        let long_ago = SystemTime::now() - 2 * UNTIL_ASKED_AGAIN;
        let file = File::options().write(true).open(&noted).expect("noted");
        file.set_modified(long_ago).expect("it is ours");
        assert_eq!(ask(&mut client, 9), None);
        assert_eq!((first.asked(), second.asked()), (3, 2));
    }

    #[test]
    fn an_answer_has_a_bound_of_length_and_of_time() {
        let cache = tempfile::tempdir().expect("writable");
        let server = Server::start();
        let mut client = client(cache.path(), &server.url);
        assert_eq!(client.fetch(&[0xab, 2], Artifact::DebugInfo), None);
        let left = fs::read_dir(cache.path().join("ab02")).expect("made");
        let left: Vec<_> = left.flatten().map(|entry| entry.file_name()).collect();
        assert_eq!(left, ["debuginfo"]);
        // One that does not answer is left alone after that.
        assert_eq!(client.fetch(&[0xab, 3], Artifact::DebugInfo), None);
        assert_eq!(server.asked(), 2);
        assert_eq!(client.fetch(&[0xab, 1], Artifact::DebugInfo), None);
        assert_eq!(server.asked(), 2);
    }

    #[test]
    fn no_server_is_asked_that_was_not_named() {
        let none = Client::new(|name| (name == "HOME").then(|| "/home/x".into()));
        assert!(none.is_none());
        let cache = tempfile::tempdir().expect("writable");
        assert_eq!(
            client(cache.path(), " ").fetch(&[1], Artifact::Executable),
            None
        );
        assert_eq!(fs::read_dir(cache.path()).expect("there").count(), 0);
    }
}
