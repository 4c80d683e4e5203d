//! The processes that `/proc` shows.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;

use nix::unistd::User;

/// A process that has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub id: i32,
    /// The name that ps(1) shows.
    pub name: String,
    /// The process that made it, or has taken it over since.
    pub parent: i32,
    /// Its process group.
    pub group: i32,
    /// Its session.
    pub session: i32,
    /// Clock ticks after boot.
    pub started: u64,
}

/// Returns the numbers of all processes, from the lowest on.
pub fn ids() -> io::Result<Vec<i32>> {
    let entries = fs::read_dir("/proc")?;
    let mut ids: Vec<i32> = entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    ids.sort_unstable();
    Ok(ids)
}

/// Returns the number of the user that a process runs as; none if it has ended.
pub fn user_of(id: i32) -> Option<u32> {
    Some(fs::metadata(format!("/proc/{id}")).ok()?.uid())
}

/// Returns the number of a user, by that or by the name; none if there is no such user.
pub fn user_number(user: &str) -> Option<u32> {
    if let Ok(number) = user.parse() {
        return Some(number);
    }
    let user = User::from_name(user).ok().flatten()?;
    Some(user.uid.as_raw())
}

impl Process {
    /// Reads a process that has not ended (proc_pid_stat(5)).
    pub fn read(id: i32) -> Option<Self> {
        let stat = fs::read(format!("/proc/{id}/stat")).ok()?;
        Self::parse(id, &String::from_utf8_lossy(&stat))
    }

    fn parse(id: i32, stat: &str) -> Option<Self> {
        // The name is in parentheses and may contain anything.
        let (head, tail) = stat.rsplit_once(')')?;
        let (_, name) = head.split_once('(')?;
        let fields: Vec<&str> = tail.split_ascii_whitespace().collect();
        if matches!(*fields.first()?, "Z" | "X" | "x") {
            return None;
        }
        Some(Self {
            id,
            name: name.to_owned(),
            parent: fields.get(1)?.parse().ok()?,
            group: fields.get(2)?.parse().ok()?,
            session: fields.get(3)?.parse().ok()?,
            started: fields.get(19)?.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_named_or_numbered() {
        assert_eq!(user_number("0"), Some(0));
        assert_eq!(user_number("root"), Some(0));
        assert_eq!(user_number("no such user"), None);
    }

    #[test]
    fn a_process_is_read_whatever_its_name_is() {
        let stat = "7 (a ) b) S 1 5 3 0 -1 64 1 0 0 0 0 0 0 0 20 0 1 0 8123 4 5";
        let expected = Process {
            id: 7,
            name: "a ) b".to_owned(),
            parent: 1,
            group: 5,
            session: 3,
            started: 8123,
        };
        assert_eq!(Process::parse(7, stat), Some(expected));
        assert_eq!(Process::parse(7, &stat.replace(" S ", " Z ")), None);
        assert_eq!(Process::parse(7, "7 (a) S 1"), None);
    }
}
