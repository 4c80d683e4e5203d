//! The report: `papi_hl_output/rank_NNNNNN.json` in `PAPI_OUTPUT_DIRECTORY`, and on standard output where
//! `PAPI_REPORT` asks for it.

use std::ffi::c_longlong;
use std::fmt::Write as _;
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use nix::unistd::geteuid;

use super::regions::{REGIONS, Region, RegionEvent, Regions, events};
use crate::component;
use crate::library::lock;
use crate::machine::hardware::{info, max_mhz};

/// Writes the report when the process ends; a failure cannot be reported.
pub(super) extern "C" fn at_exit() {
    let written = std::panic::catch_unwind(|| {
        let Ok(events) = events() else {
            return;
        };
        let threads = lock(&REGIONS);
        let threads: Vec<_> = threads.iter().map(|regions| lock(regions)).collect();
        if threads.iter().all(|regions| regions.all.is_empty()) {
            return;
        }
        let all: Vec<&Regions> = threads.iter().map(|regions| &**regions).collect();
        let report = json(events, &all);
        let _ = write(&report);
        if quipu_environment::variable("PAPI_REPORT").is_some() {
            let _ = write!(std::io::stdout(), "{report}");
        }
    });
    // A panic must not leave the process's end half done.
    drop(written);
}

/// Returns the rank of a process that a launcher of parallel programs gave it, or a number of its own.
fn rank() -> u64 {
    quipu_environment::rank().unwrap_or_else(|| u64::from(std::process::id()))
}

/// Writes the report; a directory of an earlier run gets the time of that in its name. A program that has more rights than
/// its user, who chooses where it runs, writes none.
fn write(report: &str) -> std::io::Result<()> {
    if quipu_environment::has_more_rights() {
        return Ok(());
    }
    let place = quipu_environment::variable("PAPI_OUTPUT_DIRECTORY").map(PathBuf::from);
    let place = place.unwrap_or_else(|| PathBuf::from("."));
    let directory = place.join("papi_hl_output");
    if let Ok(known) = std::fs::metadata(&directory)
        && quipu_environment::variable("OMPI_COMM_WORLD_RANK").is_none()
    {
        let then = known
            .modified()?
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_nanos();
        std::fs::rename(
            &directory,
            Path::new(&format!("{}-{then}", directory.display())),
        )?;
    }
    std::fs::create_dir_all(&directory)?;
    check_owner(&directory)?;
    std::fs::write(directory.join(format!("rank_{:06}.json", rank())), report)
}

/// Fails if a directory is another user's, who chose by links what is overwritten in it.
fn check_owner(directory: &Path) -> std::io::Result<()> {
    match std::fs::symlink_metadata(directory)?.uid() == geteuid().as_raw() {
        true => Ok(()),
        false => Err(std::io::ErrorKind::PermissionDenied.into()),
    }
}

/// Returns a text of JSON in quotes.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c < ' ' => {
                // Writing into a text does not fail.
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out + "\""
}

fn json(events: &[RegionEvent], threads: &[&Regions]) -> String {
    let definitions: Vec<String> = events.iter().map(definition).collect();
    let threads: Vec<String> = threads
        .iter()
        .enumerate()
        .map(|(at, regions)| {
            let regions: Vec<String> = regions.all.iter().map(|r| region(events, r)).collect();
            let regions = regions.join(",\n");
            format!("    \"{at}\": {{\n      \"regions\": {{\n{regions}\n      }}\n    }}")
        })
        .collect();
    let text = |field: &[std::ffi::c_char]| {
        let bytes: Vec<u8> = field
            .iter()
            .map(|c| c.to_ne_bytes()[0])
            .take_while(|c| *c != 0)
            .collect();
        quoted(&String::from_utf8_lossy(&bytes))
    };
    let machine = format!(
        "  \"papi_version\": \"7.0.0.0\",\n  \"cpu_info\": {},\n  \"max_cpu_rate_mhz\": \"{}\",\n  \
         \"min_cpu_rate_mhz\": \"{}\"",
        text(&info().model_string),
        max_mhz(),
        info().cpu_min_mhz
    );
    format!(
        "{{\n{machine},\n  \"event_definitions\": {{\n{}\n  }},\n  \"threads\": {{\n{}\n  }}\n}}\n",
        definitions.join(",\n"),
        threads.join(",\n")
    )
}

fn definition(event: &RegionEvent) -> String {
    let kind = if event.is_instant { "instant" } else { "delta" };
    format!(
        "    {}: {{\n      \"component\": {},\n      \"type\": \"{kind}\"\n    }}",
        quoted(&event.name),
        quoted(component::name(event.component))
    )
}

fn region(events: &[RegionEvent], region: &Region) -> String {
    let names = ["cycles", "real_time_nsec"].into_iter();
    let names = names.chain(events.iter().map(|event| &*event.name));
    let values = names.enumerate().map(|(at, name)| {
        let value = |values: &Vec<c_longlong>| values.get(at).copied().unwrap_or(0);
        let total = region.total.as_ref().map_or(0, value);
        if region.reads.is_empty() {
            return format!("          {}: \"{total}\"", quoted(name));
        }
        let reads = region.reads.iter().enumerate();
        let reads = reads
            .map(|(at, read)| format!(",\n            \"read_{}\": \"{}\"", at + 1, value(read)));
        format!(
            "          {}: {{\n            \"region_value\": \"{total}\"{}\n          }}",
            quoted(name),
            reads.collect::<String>()
        )
    });
    let parent = region.parent.map_or(-1, |parent| parent as i64);
    format!(
        "        \"{}\": {{\n          \"name\": {},\n          \"parent_region_id\": \"{parent}\",\n{}\n        }}",
        region.id,
        quoted(&region.name),
        values.collect::<Vec<_>>().join(",\n")
    )
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::chown;

    use super::*;

    #[test]
    fn nothing_is_written_where_another_user_put_the_directory() {
        let directory = tempfile::tempdir().expect("a directory");
        check_owner(directory.path()).expect("ours");
        if chown(directory.path(), Some(65_533), None).is_err() {
            assert!(check_owner(Path::new("/")).is_err(), "root's");
            return;
        }
        assert!(check_owner(directory.path()).is_err());
    }
}
