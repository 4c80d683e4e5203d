//! Call chains of a thread that was sampled, by the call frame information of the files that it had mapped.

use std::fs;

use quipu_symbols::{
    Architecture, CallerOf, KeptNames, Mapped, Processes, Symbolizer, ThreadState,
};

use crate::built::Built;
use crate::mapped::{self, PID, START};

/// A function without a frame of its own, one that makes a frame of 48 bytes, and one that nothing is said of: each of 32 bytes.
/// In the second the return address is 8 bytes below the frame's address.
fn assembly(return_address: u16) -> String {
    format!(
        "
    .text
    .globl leaf, caller, unknown
    .type leaf, %function
    .type caller, %function
    .type unknown, %function
leaf:
    .cfi_startproc
    .cfi_def_cfa_offset 16
    .cfi_offset {return_address}, -8
    .skip 32, 0
    .cfi_endproc
    .size leaf, .-leaf
caller:
    .cfi_startproc
    .skip 4, 0
    .cfi_def_cfa_offset 48
    .cfi_offset {return_address}, -8
    .skip 28, 0
    .cfi_endproc
    .size caller, .-caller
unknown:
    .skip 32, 0
    .size unknown, .-unknown
"
    )
}

/// Returns the machine that the compiler is for, and the number of the register that has the return address.
fn machine() -> (Architecture, u16) {
    match cfg!(target_arch = "aarch64") {
        true => (Architecture::Aarch64, 30),
        false => (Architecture::X86_64, 16),
    }
}

/// Builds the library, in which the functions are described in this section.
fn built(test: &'static str, section: &str) -> Option<Built> {
    let built = Built::new(test);
    let (_, return_address) = machine();
    let text = format!(".cfi_sections {section}\n{}", assembly(return_address));
    fs::write(built.path("a.s"), text).expect("writable");
    let is_built = built.run(&["cc", "-shared", "-nostdlib", "-o", "a.so", "a.s"]);
    is_built.then_some(built)
}

/// Returns the chain of a thread at an address, whose stack has these words.
fn chain(
    symbolizer: &mut Symbolizer,
    processes: &Processes,
    (address, words): (u64, &[u64]),
    most: usize,
) -> Vec<u64> {
    let (machine, _) = machine();
    let stack: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let registers = |register| match register == machine.instruction_register() {
        true => Some(address),
        false => Some(0x7fff_0000),
    };
    let thread = ThreadState::new(machine, registers, &stack);
    let mut found = Vec::new();
    symbolizer.unwind(processes, PID, thread, most, &mut found);
    found
}

#[test]
fn callers_are_found_by_what_files_say_of_their_frames() {
    const TEST: &str = "callers_are_found_by_what_files_say_of_their_frames";
    let (machine, _) = machine();
    for (section, link) in [
        (".eh_frame", false),
        (".debug_frame", false),
        (".debug_frame", true),
    ] {
        let Some(built) = built(TEST, section) else {
            return;
        };
        let library = built.path("a.so");
        let place = |name| mapped::place_of(&library, name).0;
        let [leaf, caller, unknown] = ["leaf", "caller", "unknown"].map(place);
        // Debug information that lies apart is found by the link.
        let link_to = "--add-gnu-debuglink=a.debug";
        if link
            && !(built.run(&["objcopy", "--only-keep-debug", "a.so", "a.debug"])
                && built.run(&["objcopy", "--strip-debug", link_to, "a.so"]))
        {
            return;
        }
        let processes = mapped::with_file(&library);
        let return_to = [caller + 9, caller + 4, unknown + 1];
        // Each frame has its return address as its last word: the frames are of 16, 48 and 48 bytes.
        let mut words = [1; 14];
        for (at, address) in [1, 7, 13].into_iter().zip(return_to) {
            words[at] = address;
        }
        // A call that ends before the frame is made: its address is looked up before that.
        words[7] = caller + 32;
        let whole = [leaf + 5, caller + 8, caller + 31, unknown];
        let mut symbolizer = Symbolizer::new();
        let thread = (leaf + 5, &words[..]);
        for most in 0..=5 {
            let found = chain(&mut symbolizer, &processes, thread, most);
            assert_eq!(found, whole[..most.min(4)], "{section} {link} {most}");
        }
        // The copy of the stack ends in the second frame.
        let found = chain(&mut symbolizer, &processes, (leaf + 5, &words[..7]), 5);
        assert_eq!(found, whole[..2], "{section}");
        // Nothing is known of memory that is not mapped.
        let found = chain(&mut symbolizer, &processes, (START - 1, &words), 5);
        assert_eq!(found, [START - 1]);
        let mut caller_of = |address| symbolizer.caller_of(&processes, PID, address, machine);
        let ways = [leaf, leaf + 31, caller + 31, unknown].map(&mut caller_of);
        let known = Some(CallerOf::Otherwise);
        assert_eq!(ways, [known, known, known, None], "{section}");
    }
}

#[test]
fn rules_that_were_kept_lead_on_when_the_file_is_gone() {
    const TEST: &str = "rules_that_were_kept_lead_on_when_the_file_is_gone";
    let Some(built) = built(TEST, ".eh_frame") else {
        return;
    };
    let library = built.path("a.so");
    let place = |name| mapped::place_of(&library, name).0;
    let [leaf, unknown] = ["leaf", "unknown"].map(place);
    let processes = mapped::with_file(&library);
    let thread = (leaf + 5, &[1, unknown + 1][..]);
    let expected = [leaf + 5, unknown];
    let mut recorder = Symbolizer::new().keeping();
    assert_eq!(chain(&mut recorder, &processes, thread, 9), expected);
    let kept = recorder.take_kept();
    // No name was asked for.
    assert!(kept.has_rules() && kept.is_empty());
    let bytes = kept.to_bytes().expect("few rules");
    fs::remove_file(&library).expect("there");
    let mut reader = Symbolizer::new().with_kept(KeptNames::read(&bytes));
    assert_eq!(chain(&mut reader, &processes, thread, 9), expected);
    // The rules are those of that instruction.
    let next = (leaf + 6, thread.1);
    assert_eq!(chain(&mut reader, &processes, next, 9), [leaf + 6]);
    let mut without = Symbolizer::new();
    assert_eq!(chain(&mut without, &processes, thread, 9), expected[..1]);
}

/// The code of the kernel in this process has the rules that its own file has, which is in memory alone.
#[cfg(target_os = "linux")]
#[test]
fn frames_of_the_vdso_are_known_where_this_kernel_was_recorded() {
    const TEST: &str = "frames_of_the_vdso_are_known_where_this_kernel_was_recorded";
    let Some((start, end)) = mapped::vdso(TEST) else {
        return;
    };
    let mut processes = Processes::new();
    processes.map(PID, Mapped::new(start..end, 0, &b"[vdso]"[..]));
    let (machine, _) = machine();
    let mut symbolizer = Symbolizer::new().of_this_machine(true);
    let clock = (start..end).find(|address| {
        let name = mapped::name(&mut symbolizer, &processes, *address);
        name.is_some_and(|(name, into)| name.ends_with("clock_gettime") && into == 0)
    });
    let clock = clock.expect("each kernel has it");
    // The way to the caller is the stack, or the register of the return address, as nothing has been done yet.
    let way = symbolizer.caller_of(&processes, PID, clock, machine);
    assert_eq!(way, Some(CallerOf::Otherwise));
    // Its header is no code.
    assert_eq!(symbolizer.caller_of(&processes, PID, start, machine), None);
    let mut elsewhere = Symbolizer::new();
    assert_eq!(elsewhere.caller_of(&processes, PID, clock, machine), None);
}
