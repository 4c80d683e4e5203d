//! Files that processes have mapped, found by the mappings of those that run.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;

use quipu_symbols::{
    FileIdentity, MapsLine, ProcessMaps, build_id_of, build_id_of_mapped, identity_of_file,
    open_mapped,
};

fn own_pid() -> i32 {
    i32::try_from(std::process::id()).expect("a pid")
}

/// Returns an address of this program.
fn own_address() -> u64 {
    own_address as fn() -> u64 as usize as u64
}

/// Calls a function with the mapping of this program's code, and its identity by the place that the mapping says.
fn with_own_line<T>(look: impl Fn(&MapsLine<'_>, FileIdentity) -> T) -> T {
    let maps = fs::read("/proc/self/maps").expect("proc is mounted");
    let lines = maps.split(|byte| *byte == b'\n');
    let mut lines = lines.filter_map(MapsLine::parse);
    let line = lines.find(|line| (line.start..line.end).contains(&own_address()));
    let line = line.expect("this program is mapped");
    let identity = FileIdentity::Inode {
        device: line.device,
        inode: line.inode,
        generation: 0,
    };
    look(&line, identity)
}

/// Returns an identity whose inode is the next one.
fn next(identity: &FileIdentity) -> FileIdentity {
    let mut identity = identity.clone();
    if let FileIdentity::Inode { inode, .. } = &mut identity {
        *inode += 1;
    }
    identity
}

#[test]
fn the_build_id_of_a_mapping_is_that_of_its_file() {
    const TEST: &str = "the_build_id_of_a_mapping_is_that_of_its_file";
    let own = std::env::current_exe().expect("it runs");
    let Some(id) = build_id_of(&own) else {
        let _ = writeln!(
            std::io::stderr(),
            "SKIP {TEST}: the linker makes no build ids"
        );
        return;
    };
    with_own_line(|line, identity| {
        let found = fs::metadata(&own).expect("there");
        let has_place = (found.ino(), found.dev()) == (line.inode, device_of(line));
        let maps = ProcessMaps::read(own_pid()).expect("it runs");
        if !has_place && maps.build_id_of(line).is_none() {
            let reason = "the file system has layers, and this user may not open what is mapped";
            let _ = writeln!(std::io::stderr(), "SKIP {TEST}: {reason}");
            return;
        }
        assert_eq!(maps.build_id_of(line), Some(id.clone()));
        let of = |pid, address, path: &[u8], identity: &FileIdentity| {
            build_id_of_mapped(pid, address, path, identity)
        };
        let found = of(own_pid(), line.start, line.path, &identity);
        assert_eq!(found, Some(id.clone()));
        // The mapping is found by what its path begins with: what else is there has a longer one.
        let found = of(own_pid(), line.start, b"/", &identity);
        assert_eq!(found, Some(id.clone()));
        // If the process is gone, or has something else there, the path counts if the file has that place.
        if has_place {
            let no_process = of(i32::MAX, line.start, line.path, &identity);
            assert_eq!(no_process, Some(id.clone()));
            let elsewhere = of(own_pid(), 1, line.path, &identity);
            assert_eq!(elsewhere, Some(id.clone()));
        }
        let another = next(&identity);
        assert_eq!(of(own_pid(), line.start, line.path, &another), None);
        assert_eq!(of(i32::MAX, line.start, line.path, &another), None);
        let other_path = of(own_pid(), line.start, b"/nowhere/a", &identity);
        assert_eq!(other_path, None);
    });
}

/// Returns the device of a mapping as `stat` has it, for numbers that are a byte each.
fn device_of(line: &MapsLine<'_>) -> u64 {
    let (major, minor) = line.device;
    u64::from(major) << 8 | u64::from(minor & 0xff) | u64::from(minor & !0xff) << 12
}

#[test]
fn a_file_that_is_mapped_is_opened_by_its_identity() {
    let own = std::env::current_exe().expect("it runs");
    let inode = fs::metadata(&own).expect("there").ino();
    let opened = |pid, path: &[u8], identity: &FileIdentity| {
        let file = open_mapped(pid, own_address(), path, identity)?;
        Some(file.metadata().expect("it is open").ino())
    };
    let path = own.as_os_str().as_encoded_bytes();
    let identity = identity_of_file(&own);
    assert_eq!(opened(own_pid(), path, &identity), Some(inode));
    assert_eq!(opened(i32::MAX, path, &identity), None);
    let other = match &identity {
        FileIdentity::BuildId(id) => FileIdentity::BuildId(id[1..].into()),
        of_place => next(of_place),
    };
    assert_eq!(opened(own_pid(), path, &other), None);
    with_own_line(|line, of_mapping| {
        let another = next(&of_mapping);
        assert_eq!(opened(own_pid(), path, &another), None);
        // Not every user may open the mapping itself, and layers of file systems may have inodes of their own.
        let found = opened(own_pid(), b"/nowhere", &of_mapping);
        let is_own = found.is_none_or(|found| found == inode);
        assert!(is_own || line.inode != inode, "{found:?}");
        assert_eq!(opened(own_pid(), b"/nowhere", &another), None);
    });
}
