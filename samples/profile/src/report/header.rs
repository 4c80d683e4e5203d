//! The description of the machine and the recording that a file begins with, in the lines of `perf report --header`
//! (`perf_header__fprintf_info`, `tools/perf/util/header.c`).

mod hardware;

use std::fmt::Write;
use std::path::Path;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use quipu_perf_data::{EventAttr, Features, ReadFormat, RecordedEvent, SampleType};

use quipu_shell::terminal::escaped;

/// The flags of an event by their bits (`struct perf_event_attr`, perf_event_open(2)). `precise_ip` is two bits wide.
const FLAGS: [(u32, &str); 37] = [
    (0, "disabled"),
    (1, "inherit"),
    (2, "pinned"),
    (3, "exclusive"),
    (4, "exclude_user"),
    (5, "exclude_kernel"),
    (6, "exclude_hv"),
    (7, "exclude_idle"),
    (8, "mmap"),
    (9, "comm"),
    (10, "freq"),
    (11, "inherit_stat"),
    (12, "enable_on_exec"),
    (13, "task"),
    (14, "watermark"),
    (15, "precise_ip"),
    (17, "mmap_data"),
    (18, "sample_id_all"),
    (19, "exclude_host"),
    (20, "exclude_guest"),
    (21, "exclude_callchain_kernel"),
    (22, "exclude_callchain_user"),
    (23, "mmap2"),
    (24, "comm_exec"),
    (25, "use_clockid"),
    (26, "context_switch"),
    (27, "write_backward"),
    (28, "namespaces"),
    (29, "ksymbol"),
    (30, "bpf_event"),
    (31, "aux_output"),
    (32, "cgroup"),
    (33, "text_poke"),
    (34, "build_id"),
    (35, "inherit_thread"),
    (36, "remove_on_exec"),
    (37, "sigtrap"),
];

/// Branches that are recorded, and what of them, by bits (`PERF_SAMPLE_BRANCH_*`).
const BRANCHES: [&str; 20] = [
    "USER",
    "KERNEL",
    "HV",
    "ANY",
    "ANY_CALL",
    "ANY_RETURN",
    "IND_CALL",
    "ABORT_TX",
    "IN_TX",
    "NO_TX",
    "COND",
    "CALL_STACK",
    "IND_JUMP",
    "CALL",
    "NO_FLAGS",
    "NO_CYCLES",
    "TYPE_SAVE",
    "HW_INDEX",
    "PRIV_SAVE",
    "COUNTERS",
];

/// Returns the lines; `path` is that of the file, if it is one, `in_full` is true if the topology is told.
pub(super) fn text(
    (path, in_full): (Option<&Path>, bool),
    (events, features, names): (&[RecordedEvent], &Features, &[String]),
) -> String {
    let mut out = "# ========\n".to_owned();
    let written = path.and_then(|path| std::fs::metadata(path).ok()?.modified().ok());
    let written = written.and_then(|written| Timestamp::try_from(written).ok());
    line(
        &mut out,
        "captured on    ",
        written.map(|written| {
            let local = written.to_zoned_datetime(TimeZone::system());
            local.strftime("%a %b %e %H:%M:%S %Y").to_string()
        }),
    );
    line(&mut out, "hostname ", features.host_name.clone());
    line(&mut out, "os release ", features.os_release.clone());
    line(&mut out, "perf version ", features.version.clone());
    line(&mut out, "arch ", features.arch.clone());
    let cpus = |number: fn((u32, u32)) -> u32| features.cpus.map(|all| number(all).to_string());
    line(&mut out, "nrcpus online ", cpus(|(_, online)| online));
    line(&mut out, "nrcpus avail ", cpus(|(all, _)| all));
    line(&mut out, "cpudesc ", features.cpu_description.clone());
    line(&mut out, "cpuid ", features.cpu_id.clone());
    let memory = features.total_memory;
    line(
        &mut out,
        "total memory ",
        memory.map(|kib| format!("{kib} kB")),
    );
    let command = features.command_line.join(" ");
    line(
        &mut out,
        "cmdline ",
        (!command.is_empty()).then_some(command),
    );
    for (event, name) in events.iter().zip(names) {
        line(&mut out, "event ", Some(description(event, name)));
    }
    hardware::places(&mut out, features, in_full);
    for group in &features.groups {
        let first = group.leader as usize;
        let members = names.iter().skip(first).take(group.len as usize);
        let members: Vec<_> = members.map(String::as_str).collect();
        let name = match group.name.as_str() {
            "{anon_group}" => "",
            name => name,
        };
        line(
            &mut out,
            "group",
            Some(format!("{name}{{{}}}", members.join(","))),
        );
    }
    if features.has_traces {
        out.push_str("# contains AUX area data (e.g. instruction trace)\n");
    }
    hardware::caches(&mut out, features, in_full);
    if let Some((first, last)) = features.sample_time {
        let seconds = |ns: u64| format!("{}.{:06}", ns / 1_000_000_000, ns / 1000 % 1_000_000);
        line(&mut out, "time of first sample ", Some(seconds(first)));
        line(&mut out, "time of last sample ", Some(seconds(last)));
        let duration = last.saturating_sub(first) as f64 / 1e6;
        line(
            &mut out,
            "sample duration ",
            Some(format!("{duration:10.3} ms")),
        );
    }
    hardware::memory(&mut out, features, in_full);
    bpf_programs(&mut out, features);
    if let Some(compression) = features.compression {
        let (level, ratio) = (compression.level, compression.ratio);
        let text = format!("Zstd, level = {level}, ratio = {ratio}");
        line(&mut out, "compressed ", Some(text));
    }
    hardware::core_pmus(&mut out, features, in_full);
    for (name, value) in &features.simpleperf {
        line(&mut out, &format!("{name} "), Some(value.clone()));
    }
    out.push_str("# ========\n#\n");
    out
}

/// Appends BPF programs with their functions, and the types that there are.
fn bpf_programs(out: &mut String, features: &Features) {
    for program in &features.bpf_programs {
        let mut types = features.bpf_types.iter();
        let types = types.find(|types| types.id == program.types);
        let functions = program.functions.iter().map(|function| {
            let (name, address, len) = (function.name(types), function.address, function.len);
            format!("{} addr {address:#x} size {len}", escaped(&name))
        });
        match functions.collect::<Vec<_>>().as_slice() {
            [] => {}
            [one] => {
                let _ = writeln!(out, "# bpf_prog_info {}: {one}", program.id);
            }
            several => {
                let _ = writeln!(out, "# bpf_prog_info {}:", program.id);
                for (at, function) in several.iter().enumerate() {
                    let _ = writeln!(out, "# \tsub_prog {at}: {function}");
                }
            }
        }
    }
    for types in &features.bpf_types {
        let _ = writeln!(out, "# btf info of id {}", types.id);
    }
}

/// Appends a line, if there is something to tell.
fn line(out: &mut String, name: &str, value: Option<String>) {
    if let Some(value) = value {
        let _ = writeln!(out, "# {name}: {}", escaped(&value));
    }
}

/// Returns the attributes of an event that are not 0, as `perf_event_attr__fprintf` has them.
fn description(event: &RecordedEvent, name: &str) -> String {
    let attr = event.attr();
    let mut out = format!("name = {name}");
    let ids: Vec<_> = event.ids().iter().map(u64::to_string).collect();
    if !ids.is_empty() {
        let _ = write!(out, ", id = {{ {} }}", ids.join(", "));
    }
    let (event_type, size) = (attr.event_type(), attr.bytes().len());
    let _ = write!(out, ", type = {event_type}, size = {size}");
    let mut field = |name: &str, value: String| {
        if !matches!(value.as_str(), "" | "0" | "0x0") {
            let _ = write!(out, ", {name} = {value}");
        }
    };
    let hex = |value: u64| format!("{value:#x}");
    field("config", hex(attr.config()));
    let period = attr.period_or_frequency();
    field("{ sample_period, sample_freq }", period.to_string());
    let fields = SampleType::from_bits_truncate(attr.sample_type());
    field("sample_type", joined(fields.iter_names().map(|(n, _)| n)));
    let format = ReadFormat::from_bits_truncate(attr.read_format());
    field("read_format", joined(format.iter_names().map(|(n, _)| n)));
    for (bit, name) in FLAGS {
        field(name, flag(attr, bit).to_string());
    }
    let wakeup = number(attr, 48, 4);
    field("{ wakeup_events, wakeup_watermark }", wakeup.to_string());
    field("bp_type", number(attr, 52, 4).to_string());
    field("{ bp_addr, config1 }", hex(number(attr, 56, 8)));
    field("{ bp_len, config2 }", hex(number(attr, 64, 8)));
    let bits = attr.branch_sample_type();
    let branches = BRANCHES.iter().enumerate();
    let branches = branches.filter(|(bit, _)| bits >> bit & 1 != 0);
    field(
        "branch_sample_type",
        joined(branches.map(|(_, name)| *name)),
    );
    field("sample_regs_user", hex(attr.user_registers()));
    field("sample_stack_user", number(attr, 88, 4).to_string());
    field("clockid", number(attr, 92, 4).to_string());
    field("sample_regs_intr", hex(attr.interrupt_registers()));
    field("aux_watermark", number(attr, 104, 4).to_string());
    field("sample_max_stack", number(attr, 108, 2).to_string());
    field("aux_sample_size", number(attr, 112, 4).to_string());
    out
}

fn joined<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join("|")
}

/// Returns a flag of the attributes.
fn flag(attr: &EventAttr, bit: u32) -> u64 {
    let width = if bit == 15 { 2 } else { 1 };
    // C numbers bit-fields from the other end on big-endian machines.
    let shift = match cfg!(target_endian = "big") {
        true => 64 - bit - width,
        false => bit,
    };
    number(attr, 40, 8) >> shift & ((1 << width) - 1)
}

/// Returns a number of the attributes, 0 where they end before it.
fn number(attr: &EventAttr, offset: usize, len: usize) -> u64 {
    let Some(bytes) = attr.bytes().get(offset..offset + len) else {
        return 0;
    };
    let mut word = [0; 8];
    match cfg!(target_endian = "big") {
        true => word[8 - len..].copy_from_slice(bytes),
        false => word[..len].copy_from_slice(bytes),
    }
    u64::from_ne_bytes(word)
}
