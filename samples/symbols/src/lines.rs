//! Debug information: inlined functions and source lines.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::str;
use std::sync::Arc;

use addr2line::{Context, LookupContinuation, LookupResult, SplitDwarfLoad};
use gimli::{
    AbbreviationsCacheStrategy, Dwarf, DwarfPackage, EndianArcSlice, Reader, RunTimeEndian,
};
use object::read::{Object, ReadCache};

use crate::debug_files::BuildFiles;
use crate::demangled::{Style, demangle_as};
use crate::elf::build_id_of;
use crate::inline_depth::{self, InlineDepths, is_shallow};
use crate::input::input_file;
use crate::left_out::LeftOut;
use crate::section;

type Section = EndianArcSlice<RunTimeEndian>;

/// A function at an address as the source has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    /// Its name, readable.
    pub(crate) function: Option<String>,
    /// The file it is in, as the compiler was given it.
    pub(crate) file: Option<String>,
    /// The line.
    pub(crate) line: Option<u32>,
}

/// The debug information of a file.
pub(crate) struct Lines {
    dwarf: Arc<Dwarf<Section>>,
    depths: InlineDepths,
    /// A section that could not be read.
    unreadable: Cell<Option<&'static str>>,
    /// True if inlined functions were left out because they nest too deep.
    left_out: Cell<bool>,
    context: Context<Section>,
    /// The file where that of all its units lies apart (`.dwp`).
    package: Option<DwarfPackage<Section>>,
}

impl Lines {
    /// That of a file, or of the file where it lies apart, which serves too if a section of the file cannot be read.
    pub(crate) fn open(path: &Path, debug_file: Option<&Path>) -> Option<Self> {
        let places = [Some(path), debug_file].into_iter().flatten();
        let mut found = places.filter_map(whole).peekable();
        let first = found.next_if(|(_, unreadable)| unreadable.is_some());
        let readable = found.find(|(_, unreadable)| unreadable.is_none());
        let (dwarf, unreadable) = readable.or(first)?;
        let package = [Some(path), debug_file].into_iter().flatten();
        let package = package.map(package_of).find_map(|path| {
            let empty = Section::new(Arc::from([]), RunTimeEndian::Little);
            sections(&path, |section| {
                DwarfPackage::load(|id| Ok(section(id.dwo_name())), empty)
            })
        });
        let (package, unreadable_apart) = package.unzip();
        let dwarf = Arc::new(dwarf);
        Some(Self {
            depths: InlineDepths::new(&dwarf),
            unreadable: Cell::new(unreadable.or(unreadable_apart.flatten())),
            left_out: Cell::new(false),
            context: Context::from_arc_dwarf(dwarf.clone()).ok()?,
            dwarf,
            package,
        })
    }

    /// The functions that were inlined at an address of the file, the innermost first, and the one
    /// that they were inlined into.
    pub(crate) fn at(&mut self, address: u64, style: Style) -> Vec<Line> {
        let mut lines = Vec::new();
        // What reads it adds one to an address.
        if address == u64::MAX {
            return lines;
        }
        if !self.depths.is_shallow_at(&self.dwarf, address) {
            self.left_out.set(true);
            let location = self.context.find_location(address).ok().flatten();
            lines.extend(location.map(|location| Line {
                function: None,
                file: location.file.map(str::to_owned),
                line: location.line,
            }));
            return lines;
        }
        let mut lookup = self.context.find_frames(address);
        let frames = loop {
            match lookup {
                LookupResult::Output(frames) => break frames,
                LookupResult::Load { load, continuation } => {
                    lookup = continuation.resume(self.unit_apart(&load).map(Arc::new));
                }
            }
        };
        let Ok(mut frames) = frames else {
            return lines;
        };
        while let Ok(Some(frame)) = frames.next() {
            let name = frame.function.and_then(|f| {
                let raw = f.raw_name().ok()?;
                Some(demangle_as(&raw, style).into_owned())
            });
            lines.push(Line {
                function: name,
                file: frame
                    .location
                    .as_ref()
                    .and_then(|l| l.file)
                    .map(str::to_owned),
                line: frame.location.as_ref().and_then(|l| l.line),
            });
        }
        lines
    }

    /// Returns why some of it was left out, if that was so.
    pub(crate) fn left_out(&self) -> Option<LeftOut> {
        let unreadable = self.unreadable.get();
        let unreadable = unreadable.map(|name| LeftOut::Section { name });
        let too_deep = || LeftOut::TooDeep {
            deepest: inline_depth::DEEPEST,
        };
        unreadable.or_else(|| self.left_out.get().then(too_deep))
    }

    /// Returns the debug information of a unit that lies apart (DWARF 5, section 7.3.2): in the package, or in a file of
    /// its own (`.dwo`).
    fn unit_apart(&self, load: &SplitDwarfLoad<Section>) -> Option<Dwarf<Section>> {
        let in_package = self.package.as_ref().and_then(|package| {
            let unit = package.find_cu(load.dwo_id, &load.parent);
            unit.ok().flatten()
        });
        let apart = in_package.or_else(|| {
            let directory = path(load.comp_dir.as_ref()).unwrap_or_default();
            let place = directory.join(path(load.path.as_ref())?);
            let (mut dwarf, unreadable) = sections(&place, |section| {
                Dwarf::load(|id| Ok(section(id.dwo_name())))
            })?;
            self.unreadable.set(self.unreadable.get().or(unreadable));
            let header = dwarf.units().next().ok()??;
            let is_same = dwarf.unit(header).ok()?.dwo_id == Some(load.dwo_id);
            dwarf.make_dwo(&load.parent);
            is_same.then_some(dwarf)
        })?;
        let mut units = apart.units();
        while let Ok(Some(header)) = units.next() {
            if !is_shallow(&apart, header) {
                self.left_out.set(true);
                return None;
            }
        }
        Some(apart)
    }
}

/// Returns the debug information that a file holds, with what it shares with other files (dwz(1)), and a section that could not
/// be read.
fn whole(path: &Path) -> Option<(Dwarf<Section>, Option<&'static str>)> {
    let load = |path: &Path| {
        sections(path, |section| {
            Dwarf::load(|id| Ok(section(Some(id.name()))))
        })
    };
    let (mut dwarf, mut unreadable) = load(path)?;
    if unreadable.is_none() {
        dwarf.units().next().ok()??;
    }
    // Those of a unit are asked for more than once.
    dwarf.populate_abbreviations_cache(AbbreviationsCacheStrategy::All);
    if let Some((shared, unreadable_too)) = shared_by(path).and_then(|path| load(&path)) {
        dwarf.set_sup(shared);
        unreadable = unreadable.or(unreadable_too);
    }
    Some((dwarf, unreadable))
}

/// Returns the path of the file that a file shares debug information with (`.gnu_debugaltlink`).
fn shared_by(path: &Path) -> Option<PathBuf> {
    let cache = ReadCache::new(input_file(path).ok()??);
    let file = object::File::parse(&cache).ok()?;
    let (name, id) = file.gnu_debugaltlink().ok()??;
    let beside = path.parent()?.join(str::from_utf8(name).ok()?);
    let mut places = [beside].into_iter().chain(BuildFiles::of(id).debug);
    places.find(|place| build_id_of(place).as_deref() == Some(id))
}

/// Has what a file holds read from its sections, which are empty where the file has none of that name, and returns the name of
/// one that could not be read beside it.
fn sections<T>(
    path: &Path,
    read: impl FnOnce(&dyn Fn(Option<&'static str>) -> Section) -> Result<T, gimli::Error>,
) -> Option<(T, Option<&'static str>)> {
    let cache = ReadCache::new(input_file(path).ok()??);
    let file = object::File::parse(&cache).ok()?;
    let endian = match file.is_little_endian() {
        true => RunTimeEndian::Little,
        false => RunTimeEndian::Big,
    };
    let unreadable = Cell::new(None);
    let section = |name: Option<&'static str>| {
        let content = name.and_then(|name| {
            let content = section::named(&file, name);
            content.unwrap_or_else(|section::Unreadable| {
                unreadable.set(Some(name));
                None
            })
        });
        Section::new(content.unwrap_or_default(), endian)
    };
    let read = read(&section).ok()?;
    Some((read, unreadable.get()))
}

/// Returns the path of the package of a file.
fn package_of(path: &Path) -> PathBuf {
    let mut package = path.as_os_str().to_owned();
    package.push(".dwp");
    package.into()
}

fn path(text: Option<&Section>) -> Option<PathBuf> {
    let text = text?.to_string_lossy().ok()?;
    Some(PathBuf::from(text.as_ref()))
}

impl std::fmt::Debug for Lines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Lines")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_address_is_no_trap() {
        let own = std::env::current_exe().expect("it runs");
        let mut lines = Lines::open(&own, None).expect("it has debug information");
        assert_eq!(lines.at(u64::MAX, Style::Whole), []);
    }
}
