//! The device files of the CPUs, each opened when it is first needed.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::PathBuf;
use std::sync::OnceLock;

use quipu_hal::{Error, ErrorKind, Result};

use super::errors::{KernelDriver, Operation, Settings};

/// One file for each CPU. They stay open until this is dropped.
#[derive(Debug)]
pub(super) struct CpuFiles {
    driver: KernelDriver,
    settings: fn() -> Settings,
    cpus: Vec<u32>,
    /// By CPU number; `None` for numbers without a CPU.
    files: Box<[Option<CpuFile>]>,
}

#[derive(Debug)]
struct CpuFile {
    path: PathBuf,
    file: OnceLock<File>,
}

/// More than any system has; bounds the table against misleading file names.
const MOST_CPUS: u32 = 1 << 16;

impl CpuFiles {
    /// Creates the table of files and opens the first, so that an error that concerns all of them is
    /// returned here.
    pub(super) fn new(
        driver: KernelDriver,
        settings: fn() -> Settings,
        nodes: impl IntoIterator<Item = (u32, PathBuf)>,
    ) -> Result<Self> {
        let mut nodes: Vec<_> = nodes
            .into_iter()
            .filter(|node| node.0 < MOST_CPUS)
            .collect();
        nodes.sort_unstable();
        nodes.dedup_by_key(|node| node.0);
        let cpus: Vec<u32> = nodes.iter().map(|node| node.0).collect();
        let mut files = Vec::new();
        for (cpu, path) in nodes {
            files.resize_with(cpu as usize, || None);
            files.push(Some(CpuFile {
                path,
                file: OnceLock::new(),
            }));
        }
        let files = Self {
            driver,
            settings,
            files: files.into(),
            cpus,
        };
        let &first = files.cpus.first().ok_or_else(|| driver.missing())?;
        files.of(first)?;
        Ok(files)
    }

    pub(super) fn cpus(&self) -> &[u32] {
        &self.cpus
    }

    #[inline]
    pub(super) fn of(&self, cpu: u32) -> Result<&File> {
        match self.files.get(cpu as usize) {
            Some(Some(node)) => match node.file.get() {
                Some(file) => Ok(file),
                None => self.open(cpu, node),
            },
            _ => Err(self
                .driver
                .error(cpu, Operation::Open, libc::ENXIO, self.settings)),
        }
    }

    #[cold]
    fn open<'a>(&self, cpu: u32, node: &'a CpuFile) -> Result<&'a File> {
        let opened = OpenOptions::new().read(true).write(true).open(&node.path);
        let opened = opened.map_err(|e| self.refused(cpu, Operation::Open, &e))?;
        // Another thread may have been faster; then this file is closed again.
        Ok(node.file.get_or_init(|| opened))
    }

    #[cold]
    pub(super) fn refused(&self, cpu: u32, operation: Operation, error: &io::Error) -> Error {
        match error.raw_os_error() {
            Some(errno) => self.driver.error(cpu, operation, errno, self.settings),
            None => Error::new(ErrorKind::Os, format!("reach the registers of CPU {cpu}"))
                .with_io_error(error),
        }
    }
}
