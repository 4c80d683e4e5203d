//! `quipu archive`: the files that a recording's samples hit, for another machine, as `perf archive` puts them together.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, EntryType, Header};

use crate::hit_files::{HitFile, HitFiles};
use crate::recording::Input;
use quipu_shell::terminal;
use quipu_shell::{Failure, output_file};

const EXAMPLES: &str = "\
Examples:
  quipu archive                 perf.data.tar.gz, of the programs and libraries that were hit
  tar xf perf.data.tar.gz -C ~/.debug   for quipu and perf, where it is read

What quipu record writes has the names of what was hit in itself: report, script and diff show them
without the programs. annotate needs those, and so does perf. Files without a build ID are left
out: nothing says which they are.";

/// Put the programs that were hit into an archive, for another machine
#[derive(Debug, Clone, Default, Args)]
#[command(after_help = EXAMPLES)]
pub struct Options {
    /// Read FILE
    #[arg(short, long, value_name = "FILE", default_value = crate::DEFAULT_FILE)]
    input: PathBuf,
    /// Read files that belong to other users
    #[arg(short, long)]
    force: bool,
    /// Write to FILE; the recording's name and .tar.gz unless named
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Reads a recording and writes the archive.
///
/// # Errors
/// If the recording cannot be read, or nothing that it hit is here, or the archive cannot be written.
pub fn run(options: &Options) -> Result<ExitCode, Failure> {
    let input = Input {
        path: &options.input,
        force: options.force,
        lines: false,
        parameters: true,
        symbols: None,
        keeping: false,
        copies: None,
    };
    let hit = HitFiles::of(input)?;
    for path in &hit.left_out {
        terminal::warn(format_args!(
            "{path}: left out, as it is not here or has no build ID"
        ));
    }
    if hit.files.is_empty() {
        return Err(Failure::new(format_args!(
            "nothing that {} hit is here and has a build ID",
            options.input.display()
        )));
    }
    let output = options.output.clone().unwrap_or_else(|| {
        let mut name = options.input.as_os_str().to_owned();
        name.push(".tar.gz");
        name.into()
    });
    let written = write(&output, &hit);
    written.map_err(|e| Failure::new(format_args!("cannot write {}: {e}", output.display())))?;
    let text = format!(
        "{} files in {}; where the recording is read: mkdir -p ~/.debug && tar xf {} -C ~/.debug\n",
        hit.files.len(),
        output.display(),
        output.display()
    );
    terminal::print(&text).map_err(Failure::new)?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the files and the links by which they are found.
fn write(output: &Path, hit: &HitFiles) -> io::Result<()> {
    let file = output_file::open(output, false)?;
    let mut archive = Builder::new(GzEncoder::new(file, Compression::default()));
    for file in &hit.files {
        append(&mut archive, file)?;
    }
    archive.into_inner()?.finish()?.flush()
}

fn append(archive: &mut Builder<impl Write>, file: &HitFile) -> io::Result<()> {
    // Files of /proc have no length.
    let mut content = Vec::new();
    File::open(&file.source)?.read_to_end(&mut content)?;
    let mut header = Header::new_gnu();
    header.set_mode(0o755);
    header.set_size(content.len() as u64);
    archive.append_data(&mut header, file.path(), &*content)?;
    let (link, target) = file.link();
    let mut header = Header::new_gnu();
    header.set_entry_type(EntryType::Symlink);
    header.set_mode(0o777);
    header.set_size(0);
    archive.append_link(&mut header, link, target)
}
