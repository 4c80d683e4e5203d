//! Compares names, and inlined functions with lines, with those that `blazesym` finds.
//!
//! `cargo bench -p quipu-symbols -- FILE...`, or of this program itself where there are no files. The
//! addresses are those of a file's executable segments, every 64 bytes.

use std::time::{Duration, Instant};

#[cfg(target_os = "linux")]
use peer_blazesym::symbolize::{
    Symbolized,
    source::{Elf, Source},
};
use quipu_symbols::{AddressOwner, Mapped, Processes, Symbolizer};

const STEP: usize = 64;

/// The answers for all addresses, the innermost function first, and the time of the first.
type Answers = (Vec<String>, Duration);

fn main() {
    let mut args = std::env::args();
    let own = args.next().expect("its own path");
    let mut files: Vec<String> = args.filter(|arg| arg != "--bench").collect();
    if files.is_empty() {
        files.push(own);
    }
    println!(
        "| file | what | addresses | quipu, first and all | blazesym, first and all | differ |"
    );
    println!("| --- | --- | --- | --- | --- | --- |");
    for file in &files {
        let offsets = code(file);
        for with_lines in [false, true] {
            let what = if with_lines { "lines" } else { "names" };
            let ((own, first), all) = timed(|| quipu(file, with_lines, &offsets));
            let ours = format!("{first:.1?}, {all:.1?}");
            let ((peer, first), all) = timed(|| blazesym(file, with_lines, &offsets));
            let different = own.iter().zip(&peer).filter(|(a, b)| a != b).count();
            let count = offsets.len();
            println!(
                "| {file} | {what} | {count} | {ours} | {first:.1?}, {all:.1?} | {different} |"
            );
        }
    }
}

fn timed(ask: impl FnOnce() -> Answers) -> (Answers, Duration) {
    let start = Instant::now();
    (ask(), start.elapsed())
}

/// The offsets of the code in a file of this machine's kind.
fn code(file: &str) -> Vec<u64> {
    let bytes = std::fs::read(file).expect("readable");
    let word = |at: usize| u64::from_le_bytes(*bytes[at..].first_chunk().expect("a header"));
    let headers = usize::try_from(word(32)).expect("in the file");
    let count = usize::from(u16::from_le_bytes([bytes[56], bytes[57]]));
    let headers = (0..count).map(|i| headers + 56 * i);
    // `PT_LOAD` and `PF_X`.
    let loaded = headers.filter(|at| word(*at) & 0x1_0000_0000 != 0 && bytes[*at] == 1);
    loaded
        .flat_map(|at| (word(at + 8)..word(at + 8) + word(at + 32)).step_by(STEP))
        .collect()
}

fn quipu(file: &str, with_lines: bool, offsets: &[u64]) -> Answers {
    const START: u64 = 1 << 40;
    let mut processes = Processes::new();
    let mapped = Mapped::new(START..START + (1 << 40), 0, file.as_bytes());
    processes.map(1, mapped);
    let mut symbolizer = Symbolizer::new().with_lines(with_lines);
    let mut functions = Vec::new();
    answers(offsets, |offset| {
        functions.clear();
        let owner = AddressOwner::Process(1);
        symbolizer.resolve(&processes, owner, START + offset, &mut functions);
        let names = functions.iter().map(|f| f.name.as_deref().unwrap_or("-"));
        names.collect::<Vec<_>>().join(";")
    })
}

#[cfg(target_os = "linux")]
fn blazesym(file: &str, with_lines: bool, offsets: &[u64]) -> Answers {
    let symbolizer = peer_blazesym::symbolize::Symbolizer::builder()
        .enable_auto_reload(false)
        .enable_code_info(with_lines)
        .enable_inlined_fns(with_lines)
        .build();
    let mut elf = Elf::new(file);
    elf.debug_syms = with_lines;
    let source = Source::Elf(elf);
    answers(offsets, |offset| {
        let input = peer_blazesym::symbolize::Input::FileOffset(offset);
        let found = symbolizer.symbolize_single(&source, input);
        let Some(symbol) = found.ok().and_then(Symbolized::into_sym) else {
            return "-".to_owned();
        };
        let inlined = symbol.inlined.iter().rev().map(|inlined| &*inlined.name);
        let names = inlined.chain([&*symbol.name]);
        names.collect::<Vec<_>>().join(";")
    })
}

#[cfg(not(target_os = "linux"))]
fn blazesym(_: &str, _: bool, _: &[u64]) -> Answers {
    Answers::default()
}

fn answers(offsets: &[u64], mut ask: impl FnMut(u64) -> String) -> Answers {
    let start = Instant::now();
    let mut first = Duration::ZERO;
    let names = offsets.iter().enumerate().map(|(i, offset)| {
        let answer = ask(*offset);
        if i == 0 {
            first = start.elapsed();
        }
        answer
    });
    (names.collect(), first)
}
