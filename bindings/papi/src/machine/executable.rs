//! The executable and the shared libraries of the process, from `/proc/self/maps` (proc(5)).

use std::sync::Mutex;

use crate::abi::{AddressMap, ExeInfo, ShlibInfo};
use crate::boundary::call::call_or;
use crate::boundary::pointer::put;
use crate::library::{if_initialized, lock};

/// One mapping: its addresses, whether code can be executed and data written there, and its file.
struct ProcMapping<'t> {
    start: usize,
    end: usize,
    is_code: bool,
    is_writable: bool,
    file: &'t str,
}

fn mapping(line: &str) -> Option<ProcMapping<'_>> {
    let (addresses, rest) = line.split_once(' ')?;
    let (start, end) = addresses.split_once('-')?;
    let mut words = rest.splitn(5, ' ');
    let rights = words.next()?;
    let file = words.nth(3).unwrap_or_default().trim_start();
    Some(ProcMapping {
        start: usize::from_str_radix(start, 16).ok()?,
        end: usize::from_str_radix(end, 16).ok()?,
        is_code: rights.contains('x'),
        is_writable: rights.contains('w'),
        file,
    })
}

/// Returns the files that are mapped with code, each with its addresses, in their order.
fn files(maps: &str) -> Vec<AddressMap> {
    let mut found: Vec<(&str, AddressMap)> = Vec::new();
    let mut last = "";
    for mapping in maps.lines().filter_map(mapping) {
        if mapping.file.is_empty() {
            // Memory behind the data of a file is what it has without contents.
            if let Some((name, map)) = found.last_mut()
                && *name == last
                && mapping.is_writable
                && map.data_end == mapping.start
            {
                (map.bss_start, map.bss_end) = (mapping.start, mapping.end);
            }
            continue;
        }
        last = mapping.file;
        if !mapping.file.starts_with('/') {
            continue;
        }
        let at = found.iter().position(|(name, _)| *name == mapping.file);
        let at = at.unwrap_or_else(|| {
            let mut map = AddressMap::zeroed();
            put(&mut map.name, mapping.file);
            found.push((mapping.file, map));
            found.len() - 1
        });
        let map = &mut found[at].1;
        if mapping.is_code {
            if map.text_start == 0 {
                map.text_start = mapping.start;
            }
            map.text_end = mapping.end;
        } else if mapping.is_writable {
            if map.data_start == 0 {
                map.data_start = mapping.start;
            }
            map.data_end = mapping.end;
        }
    }
    found.retain(|(_, map)| map.text_start != 0);
    found.into_iter().map(|(_, map)| map).collect()
}

fn maps() -> String {
    std::fs::read_to_string("/proc/self/maps").unwrap_or_default()
}

fn own_path() -> String {
    std::env::current_exe()
        .map(|path| path.to_string_lossy().into_owned())
        .unwrap_or_default()
}

/// Structs that programs have the address of. They are overwritten and never freed.
struct Published {
    executable: Option<Box<ExeInfo>>,
    libraries: Option<Box<ShlibInfo>>,
    maps: Vec<AddressMap>,
}

// SAFETY: the pointers in it are to parts of itself.
unsafe impl Send for Published {}

static PUBLISHED: Mutex<Published> = Mutex::new(Published {
    executable: None,
    libraries: None,
    maps: Vec::new(),
});

/// Returns the address of the facts of the executable.
pub(crate) fn info() -> *const ExeInfo {
    let mut published = lock(&PUBLISHED);
    let info = published
        .executable
        .get_or_insert_with(|| Box::new(ExeInfo::zeroed()));
    let path = own_path();
    put(&mut info.fullname, &path);
    let mut wanted = AddressMap::zeroed();
    put(&mut wanted.name, &path);
    let own = files(&maps())
        .into_iter()
        .find(|map| map.name == wanted.name);
    info.address_info = own.unwrap_or(wanted);
    let name = path.rsplit('/').next().unwrap_or_default();
    put(&mut info.address_info.name, name);
    &raw const **info
}

/// Returns the address of the list of shared libraries. The list is valid until the next is asked for.
pub(crate) fn shared_libraries() -> *const ShlibInfo {
    let mut published = lock(&PUBLISHED);
    let mut wanted = AddressMap::zeroed();
    put(&mut wanted.name, &own_path());
    published.maps = files(&maps());
    published.maps.retain(|map| map.name != wanted.name);
    let (map, count) = (published.maps.as_mut_ptr(), published.maps.len());
    let info = published
        .libraries
        .get_or_insert_with(|| Box::new(ShlibInfo::zeroed()));
    info.map = map;
    info.count = i32::try_from(count).unwrap_or(i32::MAX);
    &raw const **info
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_get_executable_info() -> *const ExeInfo {
    call_or(std::ptr::null(), || if_initialized(info))
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_get_shared_lib_info() -> *const ShlibInfo {
    call_or(std::ptr::null(), || if_initialized(shared_libraries))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_data_and_what_lies_behind_are_told_apart() {
        let maps = "\
5000-6000 r--p 00000000 08:01 1      /bin/a b
6000-8000 r-xp 00001000 08:01 1      /bin/a b
8000-9000 rw-p 00003000 08:01 1      /bin/a b
9000-a000 rw-p 00000000 00:00 0
b000-c000 rw-p 00000000 00:00 0      [heap]
d000-e000 r--p 00000000 08:01 2      /usr/share/data
f000-ff00 r-xp 00000000 00:00 0      [vdso]
";
        let files = files(maps);
        assert_eq!(files.len(), 1);
        let map = &files[0];
        let mut name = AddressMap::zeroed();
        put(&mut name.name, "/bin/a b");
        assert!(map.name == name.name);
        assert_eq!((map.text_start, map.text_end), (0x6000, 0x8000));
        assert_eq!((map.data_start, map.data_end), (0x8000, 0x9000));
        assert_eq!((map.bss_start, map.bss_end), (0x9000, 0xa000));
    }
}
