//! Sources of names besides the recording and the places of its files: options that perf has too.

use std::path::{Path, PathBuf};

use clap::Args;
use quipu_perf_data::Features;
use quipu_symbols::{KernelSymbols, build_id_of, is_same_build_id};

use quipu_shell::{Failure, numbers};

use super::kernel::id_of_kernel;

/// The options, which subcommands that read recordings share.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct SymbolOptions {
    /// Look for files under DIR in place of /: a copy of the file system that was recorded
    #[arg(long, value_name = "DIR", help_heading = "What")]
    pub(crate) symfs: Option<PathBuf>,
    /// Read the kernel's symbols from FILE, the vmlinux of the recorded kernel
    #[arg(short = 'k', long, value_name = "FILE", help_heading = "What")]
    pub(crate) vmlinux: Option<PathBuf>,
    /// Read the kernel's symbols from FILE, a copy of its /proc/kallsyms
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "vmlinux",
        help_heading = "What"
    )]
    pub(crate) kallsyms: Option<PathBuf>,
    /// Read what takes up to so many megabytes of memory; 400, and more for long files, unless it is named
    #[arg(long, value_name = "MB", value_parser = numbers::positive::<u64>, allow_negative_numbers = true,
          help_heading = "What")]
    pub(crate) max_memory: Option<u64>,
}

impl SymbolOptions {
    /// Returns the kernel's symbols that are named, `None` if none are.
    pub(super) fn kernel(
        &self,
        features: &Features,
        force: bool,
    ) -> Result<Option<KernelSymbols>, Failure> {
        if let Some(path) = &self.vmlinux {
            let (own, recorded) = (build_id_of(path), id_of_kernel(features));
            let is_other = match (&own, &recorded) {
                (Some(own), Some(recorded)) => !is_same_build_id(own, recorded),
                _ => false,
            };
            if is_other && !force {
                return Err(Failure::new(format_args!(
                    "--vmlinux {}: it is not the kernel that was recorded, as its build ID differs; -f reads it all the same",
                    path.display()
                )));
            }
            return symbols("--vmlinux", path, KernelSymbols::of_vmlinux(path)).map(Some);
        }
        let Some(path) = &self.kallsyms else {
            return Ok(None);
        };
        let text = std::fs::read_to_string(path);
        let found = text.map(|text| KernelSymbols::parse(&text));
        symbols("--kallsyms", path, found).map(Some)
    }
}

/// Returns the symbols of a file, if it has some.
fn symbols(
    option: &str,
    path: &Path,
    found: std::io::Result<Option<KernelSymbols>>,
) -> Result<KernelSymbols, Failure> {
    let path = path.display();
    match found {
        Ok(Some(found)) => Ok(found),
        Ok(None) => Err(Failure::new(format_args!(
            "{option} {path}: it has no symbols of a kernel, or their addresses are hidden"
        ))),
        Err(error) => Err(Failure::new(format_args!("{option} {path}: {error}"))),
    }
}
