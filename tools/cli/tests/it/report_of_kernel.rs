//! `quipu report` of the kernel: its modules, BPF programs and guests, and which kernel it was.

use std::fs;

use quipu_perf_data::{BuildId, BuildIdOwner, Features, synthesized};

use crate::report_of_chains::{ids, record, rows, words};
use crate::skip;

const START: u64 = 0xffff_ffff_8100_0000;
const MODULE: u64 = 0xffff_ffff_c000_0000;
/// Bytes of a thread and a time behind records that are no samples.
const TRAILER: usize = 16;
/// Modes of the CPU, `PERF_RECORD_MISC_*`.
const KERNEL: u8 = 1;
const USER: u8 = 2;
const HYPERVISOR: u8 = 3;
const GUEST_KERNEL: u8 = 4;
const GUEST_USER: u8 = 5;

/// Returns a sample of a process in a mode, without callers.
fn sample(time: u64, mode: u8, address: u64) -> Vec<u8> {
    let body = [words(&[address]), ids(&[7, 7]), words(&[time, 0])];
    let mut record = record(9, &body.concat(), None);
    record[if cfg!(target_endian = "big") { 5 } else { 4 }] = mode;
    record
}

/// Returns the object and the symbol of each row, by their names.
fn names(features: &Features, records: &[Vec<u8>]) -> Vec<(String, Option<String>)> {
    let rows = rows(features, &["--sort", "dso,sym"], records).into_iter();
    let names = rows.map(|row| {
        let object = row["object"].as_str().expect("an object").to_owned();
        let symbol = row["symbol"].as_str().map(str::to_owned);
        (object, symbol.filter(|symbol| symbol != "[unknown]"))
    });
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}

#[test]
fn addresses_are_of_modules_programs_and_guests_as_the_file_says() {
    let program = {
        let mut symbol = synthesized::bpf_symbol(MODULE + 0x8000, 64, b"bpf_prog_6_f", TRAILER);
        let len = symbol.len();
        symbol[len - 8..].copy_from_slice(&20u64.to_ne_bytes());
        symbol
    };
    let module = b"/lib/modules/6.1/kernel/arch/x86/kvm/kvm-intel.ko";
    let records = [
        synthesized::kernel(START, 0x10_0000, b"_text", START, TRAILER),
        synthesized::kernel_module(MODULE, 0x1000, 0, module, TRAILER),
        sample(10, KERNEL, START + 8),
        sample(11, KERNEL, MODULE + 8),
        // Before the program came, after it, and an address of user mode, as precise events have.
        sample(12, KERNEL, MODULE + 0x8008),
        program,
        sample(21, KERNEL, MODULE + 0x8008),
        sample(22, KERNEL, 0x7f50_7af8_fa64),
        sample(23, GUEST_KERNEL, START + 8),
        sample(24, GUEST_USER, 0x1000),
        sample(25, HYPERVISOR, 0x1000),
        sample(26, USER, 0x1000),
    ];
    let expected = [
        ("[guest.kernel]", None),
        ("[guest]", None),
        ("[hypervisor]", None),
        ("[kernel.kallsyms]", None),
        ("[kvm_intel]", None),
        ("[unknown]", None),
        ("bpf_prog_6_f", Some("bpf_prog_6_f")),
    ];
    let found = names(&Features::default(), &records);
    let mut found: Vec<_> = found
        .iter()
        .map(|(o, s)| (o.as_str(), s.as_deref()))
        .collect();
    // Rows of one name in two modes.
    found.dedup();
    assert_eq!(found, expected);
}

#[test]
fn instructions_in_no_mapping_and_of_guests_are_apart() {
    let records = [
        sample(1, USER, 0x1000),
        sample(2, USER, 0x2000),
        sample(3, USER, 0x2000),
        sample(4, GUEST_KERNEL, START),
        sample(5, GUEST_KERNEL, START + 8),
        sample(6, GUEST_USER, 0x1000),
    ];
    let rows = rows(&Features::default(), &["--sort", "dso,sym"], &records);
    let mut found: Vec<_> = rows
        .iter()
        .map(|row| {
            let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
            (text("object"), text("address"), row["samples"].as_u64())
        })
        .collect();
    found.sort();
    let row = |object: &str, address: u64, samples| {
        (object.to_owned(), format!("{address:#x}"), Some(samples))
    };
    let expected = [
        row("[guest.kernel]", START, 1),
        row("[guest.kernel]", START + 8, 1),
        row("[guest]", 0x1000, 1),
        row("[unknown]", 0x1000, 1),
        row("[unknown]", 0x2000, 2),
    ];
    assert_eq!(found, expected);
}

/// A function of the kernel that runs here, and its address.
fn own_function() -> Option<(u64, String)> {
    let symbols = fs::read_to_string("/proc/kallsyms").ok()?;
    symbols.lines().find_map(|line| {
        let mut fields = line.split_whitespace();
        let address = u64::from_str_radix(fields.next()?, 16).ok()?;
        let (kind, name) = (fields.next()?, fields.next()?);
        (address > 0 && kind == "T" && name == "schedule").then(|| (address, name.to_owned()))
    })
}

#[test]
fn a_kernel_is_known_by_its_build_id_where_there_is_one() {
    const TEST: &str = "a_kernel_is_known_by_its_build_id_where_there_is_one";
    let (Some((address, name)), Some(id)) =
        (own_function(), quipu_symbols::build_id_of_this_kernel())
    else {
        let reason = "where the kernel is may not be seen, or it has no build ID";
        return skip(TEST, reason);
    };
    let own = |name: &str| {
        let text = fs::read_to_string(format!("/proc/sys/kernel/{name}")).expect("readable");
        text.trim().to_owned()
    };
    let symbol = |host: String, release: String, id: Option<&[u8]>| {
        let mut features = Features::default();
        features.host_name = Some(host);
        features.os_release = Some(release);
        let id = id.map(|id| BuildId::new(BuildIdOwner::Kernel, id, "[kernel.kallsyms]"));
        features.build_ids.extend(id);
        let rows = names(&features, &[sample(10, KERNEL, address + 1)]);
        rows[0].1.clone()
    };
    let (host, release) = (own("hostname"), own("osrelease"));
    let mut other = id.clone();
    other[0] ^= 1;
    let (named, unnamed) = (Some(name), None);
    assert_eq!(symbol(host.clone(), release.clone(), None), named);
    // Another build under the same names.
    assert_eq!(symbol(host.clone(), release.clone(), Some(&other)), unnamed);
    // A container, and what makes IDs 20 bytes long.
    assert_eq!(symbol("box7".into(), release.clone(), Some(&id)), named);
    assert_eq!(symbol("box7".into(), release, None), unnamed);
    assert_eq!(symbol(host, "6.0".into(), None), unnamed);
}
