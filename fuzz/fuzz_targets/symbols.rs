//! Files from which functions get their names: ELF files with debug information, else any text as the
//! kernel's symbols, a compiler's map, mappings, a mangled name, and names that were kept with a recording.
#![no_main]

use libfuzzer_sys::fuzz_target;
use quipu_fuzz::written;
use quipu_symbols::{
    AddressOwner, Architecture, KeptNames, KernelSymbols, Mapped, MapsLine, Processes, Symbolizer, ThreadState, demangle,
};

/// Addresses at which functions are looked for.
const PLACES: u64 = 0x4000;

fuzz_target!(|input: &[u8]| {
    let mut functions = Vec::new();
    let mut processes = Processes::new();
    let pid = std::process::id() as i32;
    let owner = AddressOwner::Process(pid);
    if input.starts_with(b"\x7fELF") {
        let path = written("program", input);
        let path = path.as_os_str().as_encoded_bytes();
        processes.map(pid, Mapped::new(0..PLACES, 0, path));
        let mut symbolizer = Symbolizer::new().with_lines(true);
        for address in (0..PLACES).step_by(0x40) {
            symbolizer.resolve(&processes, owner, address, &mut functions);
        }
        // Registers and stack are the end of the file, which frames may lead back into.
        let stack = &input[input.len().saturating_sub(512)..];
        for architecture in [Architecture::X86_64, Architecture::Aarch64] {
            for address in (0..PLACES).step_by(0x40) {
                let registers = |register| match register {
                    8 | 32 => Some(address),
                    7 | 31 => Some(0x1000),
                    register => Some(0x1000 + u64::from(register)),
                };
                let thread = ThreadState::new(architecture, registers, stack);
                let mut chain = Vec::new();
                symbolizer.unwind(&processes, pid, thread, 127, &mut chain);
                assert!((1..=127).contains(&chain.len()));
            }
        }
        return;
    }
    if let Some(kept) = KeptNames::read(input) {
        assert!(kept.to_bytes().and_then(|bytes| KeptNames::read(&bytes)).is_some_and(|same| same.len() == kept.len()));
        for file in kept.files().cloned().collect::<Vec<_>>() {
            processes.map(pid, Mapped::new(0..u64::MAX, 0, file.path).of(file.identity));
        }
        let mut symbolizer = Symbolizer::new().with_lines(true).with_kept(Some(kept));
        for address in 0..PLACES {
            symbolizer.resolve(&processes, owner, address, &mut functions);
            symbolizer.resolve(&processes, AddressOwner::Kernel, address, &mut functions);
        }
        return;
    }
    let text = String::from_utf8_lossy(input);
    let _ = demangle(&text);
    for line in input.split(|byte| *byte == b'\n') {
        if let Some(line) = MapsLine::parse(line) {
            let _ = format!("{line:?}");
        }
    }
    let kernel = KernelSymbols::parse(&text);
    let map = format!("/tmp/perf-{pid}.map");
    std::fs::write(&map, input).expect("written");
    let mut symbolizer = Symbolizer::new().with_kernel(kernel).of_this_machine(true);
    for address in (0..PLACES).step_by(0x100) {
        symbolizer.resolve(&processes, owner, address, &mut functions);
        let place = 0xffff_ffff_8100_0000 + address;
        symbolizer.resolve(&processes, AddressOwner::Kernel, place, &mut functions);
    }
    let _ = std::fs::remove_file(map);
});
