//! The place of a function in the file of a program or library.

use std::fs::File;
use std::path::Path;

use object::read::ReadCache;
use object::{Object as _, ObjectSegment as _, ObjectSymbol as _, SymbolKind};
use quipu_hal::{Error, ErrorKind, Result};

use crate::machine::hint::did_you_mean;
use crate::machine::kernel_file;

/// The byte of an ELF file at which a function starts, by the names of its symbol tables as they
/// stand there (mangled).
///
/// # Errors
/// [`UnsupportedEvent`](ErrorKind::UnsupportedEvent) when the file is not there or has no such
/// function, with the nearest names as the hint; [`NoPermission`](ErrorKind::NoPermission);
/// [`InvalidConfiguration`](ErrorKind::InvalidConfiguration) when it is not an ELF file.
pub(crate) fn file_offset(path: &Path, symbol: &str) -> Result<u64> {
    let attempted = || {
        format!(
            "find the function {} in {}",
            symbol.escape_debug(),
            path.display()
        )
    };
    let fail = |kind, reason: &str| Error::new(kind, attempted()).with_reason(reason);
    let file = File::open(path).map_err(|e| match e.raw_os_error() {
        Some(libc::ENOENT) => fail(ErrorKind::UnsupportedEvent, "there is no such file"),
        _ => kernel_file::error(attempted(), path, &e),
    })?;
    let cache = ReadCache::new(file);
    let not_elf = |_| fail(ErrorKind::InvalidConfiguration, "it is not an ELF file");
    let elf = object::File::parse(&cache).map_err(not_elf)?;
    let functions = || {
        let all = elf.symbols().chain(elf.dynamic_symbols());
        all.filter(|s| s.is_definition() && s.kind() == SymbolKind::Text)
    };
    let Some(found) = functions().find(|s| s.name_bytes() == Ok(symbol.as_bytes())) else {
        let names: Vec<String> = functions()
            .filter_map(|s| s.name().ok().map(str::to_owned))
            .collect();
        let error = fail(
            ErrorKind::UnsupportedEvent,
            "its symbol tables contain no function of this name",
        );
        return Err(match names.as_slice() {
            [] => error.with_hint("it is stripped; give the offset in the file instead"),
            names => error.with_hint(did_you_mean(symbol, names, "it has")),
        });
    };
    // 32-bit ARM says in the lowest bit that the function is Thumb code.
    let thumb = u64::from(elf.architecture() == object::Architecture::Arm);
    let address = found.address() & !thumb;
    elf.segments()
        .find_map(|segment| {
            let (start, len) = segment.file_range();
            let within = address.checked_sub(segment.address())?;
            (within < len).then(|| start.checked_add(within)).flatten()
        })
        .ok_or_else(|| {
            fail(
                ErrorKind::UnsupportedEvent,
                "the function is in no loadable segment",
            )
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt as _;

    fn landmark_of_this_test(n: u64) -> u64 {
        std::hint::black_box(n).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    /// Returns the name that the compiler has given the landmark.
    fn name_of_landmark(own: &Path) -> String {
        let file = std::fs::read(own).expect("readable");
        let elf = object::File::parse(&*file).expect("an ELF file");
        let names = elf.symbols().filter_map(|symbol| symbol.name().ok());
        let mut own = names.filter(|name| name.contains("landmark_of_this_test"));
        own.next().expect("it is there").to_owned()
    }

    /// The code in memory is the code at that place of the file.
    #[test]
    fn a_function_is_where_its_bytes_are() {
        let own = std::env::current_exe().expect("a path");
        let offset = file_offset(&own, &name_of_landmark(&own)).expect("it is there");
        let file = std::fs::read(&own).expect("readable");
        let start = usize::try_from(offset).expect("within the file");
        let code = landmark_of_this_test as fn(u64) -> u64 as *const u8;
        let mut in_memory = [0; 16];
        let memory = File::open("/proc/self/mem").expect("proc is mounted");
        memory
            .read_exact_at(&mut in_memory, code.addr() as u64)
            .expect("code is readable");
        assert_eq!(file[start..start + 16], in_memory);
    }

    #[test]
    fn what_is_not_there_is_said() {
        let own = std::env::current_exe().expect("a path");
        let name = name_of_landmark(&own);
        let mistyped = name.replace("of_this_test", "of_this_tset");
        let e = file_offset(&own, &mistyped).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::UnsupportedEvent);
        let hint = e.hint().unwrap_or_default();
        assert!(hint.contains(&name), "{hint}");
        let e = file_offset(Path::new("/no/such/file"), "main").unwrap_err();
        assert_eq!(e.kind(), ErrorKind::UnsupportedEvent);
        let e = file_offset(Path::new("/proc/self/maps"), "main").unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidConfiguration);
    }
}
