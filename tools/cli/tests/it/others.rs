//! `quipu script` and `quipu report --header` of recordings that other tools make: what is said of them is what perf says.

use assert_cmd::Command;

use crate::report_of_chains::{ids, record, words};

/// `PERF_SAMPLE_*`.
const IP: u64 = 1;
const TID: u64 = 1 << 1;
const TIME: u64 = 1 << 2;
const ADDR: u64 = 1 << 3;
const CALLCHAIN: u64 = 1 << 5;
const PERIOD: u64 = 1 << 8;
const STACKS: u64 = 1 << 12 | 1 << 13;
const WEIGHT: u64 = 1 << 14;
const DATA_SRC: u64 = 1 << 15;
/// `PERF_CONTEXT_KERNEL` and `PERF_CONTEXT_USER`.
const KERNEL: u64 = -128_i64 as u64;
const USER: u64 = -512_i64 as u64;

/// A file of one event, without names.
struct Recording {
    event: (u32, u64),
    sample_type: u64,
    registers: u64,
    records: Vec<Vec<u8>>,
    features: Vec<(u32, Vec<u8>)>,
}

impl Recording {
    fn new(event: (u32, u64), sample_type: u64) -> Self {
        Self {
            event,
            sample_type,
            registers: 0,
            records: Vec::new(),
            features: Vec::new(),
        }
    }

    /// `struct perf_file_header`, one `struct perf_file_attr`, the records, and the sections of features.
    fn bytes(&self) -> Vec<u8> {
        let mut attr = [ids(&[self.event.0, 112]), words(&[self.event.1, 1])].concat();
        attr.extend(words(&[self.sample_type, 0, 0]));
        attr.resize(80, 0);
        attr.extend(words(&[self.registers]));
        attr.extend(ids(&[if self.registers > 0 { 16 } else { 0 }]));
        attr.resize(112, 0);
        let data = self.records.concat();
        let mut bits = [0; 4];
        for (number, _) in &self.features {
            bits[(number / 64) as usize] |= 1_u64 << (number % 64);
        }
        let magic = u64::from_ne_bytes(*b"PERFILE2");
        let data_at = 104 + 128;
        let len = data.len() as u64;
        let mut file = words(&[magic, 104, 128, 104, 128, data_at, len, 0, 0]);
        file.extend(words(&bits));
        file.extend([attr, words(&[0, 0]), data].concat());
        let mut at = (file.len() + 16 * self.features.len()) as u64;
        for (_, section) in &self.features {
            file.extend(words(&[at, section.len() as u64]));
            at += section.len() as u64;
        }
        for (_, section) in &self.features {
            file.extend(section);
        }
        file
    }

    /// Returns the lines that a command prints of it, without blanks around them.
    fn lines(&self, command: &[&str]) -> Vec<String> {
        let mut quipu = Command::cargo_bin("quipu").expect("built");
        let quipu = quipu.args(command).args(["-i", "-"]);
        let output = quipu.write_stdin(self.bytes()).output().expect("it runs");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{error}");
        let text = String::from_utf8(output.stdout).expect("text");
        let lines = text.lines().map(|line| line.trim().to_owned());
        lines.filter(|line| !line.is_empty()).collect()
    }
}

/// `PERF_RECORD_MMAP` of executable memory, before all that has a time.
fn mapping(start: u64, len: u64, offset: u64, file: &str) -> Vec<u8> {
    let mut name = file.as_bytes().to_vec();
    name.resize((name.len() + 1).next_multiple_of(8), 0);
    let body = [ids(&[7, 7]), words(&[start, len, offset]), name];
    record(1, &body.concat(), None)
}

/// `PERF_RECORD_COMM` at exec.
fn exec(name: &[u8; 7]) -> Vec<u8> {
    let body = [&ids(&[7, 7]), &name[..], &[0]];
    let mut record = record(3, &body.concat(), None);
    // `PERF_RECORD_MISC_COMM_EXEC`.
    record[4..6].copy_from_slice(&(1_u16 << 13).to_ne_bytes());
    record
}

/// `PERF_RECORD_SAMPLE`, whose time is 0: records come in the order of the file.
fn sample(ip: u64, rest: &[u64]) -> Vec<u8> {
    let body = [words(&[ip]), ids(&[7, 7]), words(&[0]), words(rest)];
    record(9, &body.concat(), None)
}

/// A text of a section: its padded length and itself.
fn text(text: &str) -> Vec<u8> {
    let mut bytes = ids(&[64]);
    bytes.extend(text.as_bytes());
    bytes.resize(4 + 64, 0);
    bytes
}

/// A text that a NUL ends.
fn ended(text: &str) -> Vec<u8> {
    [text.as_bytes(), &[0]].concat()
}

#[test]
fn sources_of_data_and_weights_are_printed_of_raw_events() {
    let mut file = Recording::new(
        (4, 0x1cd),
        IP | TID | TIME | ADDR | PERIOD | WEIGHT | DATA_SRC,
    );
    for (weight, source) in [(22, 0x6810_0442), (7, 0x6810_0242), (6, 0x6810_0142)] {
        let rest = [0xffff_8820, 1, weight, source];
        file.records.push(sample(0x1000, &rest));
    }
    let common =
        |level: &str| format!("|OP LOAD|LVL {level} hit|SNP None|TLB L1 or L2 hit|LCK No|BLK  N/A");
    let expected = |source: &str, level: &str, width: usize, weight: u64| {
        let source = format!("{source:>16} {}", common(level));
        format!(
            ":7     7     0.000000:          1 r01cd:         ffff8820{source:<width$}{weight:>16}             1000 [unknown] ([unknown])"
        )
    };
    let width = 17 + common("LFB/MAB").len();
    assert_eq!(
        file.lines(&["script"]),
        [
            expected("68100442", "L2", 0, 22),
            expected("68100242", "LFB/MAB", 0, 7),
            // As wide as the widest up to there.
            expected("68100142", "L1", width, 6),
        ]
    );
    assert_eq!(file.lines(&["script", "-F", "weight"]), ["22", "7", "6"]);
    let json = file.lines(&["script", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json[0]).expect("JSON");
    assert_eq!(json["weight"], 22);
    assert_eq!(json["data-source"], common("L2"));
}

#[test]
fn addresses_in_memory_of_no_file_are_those_of_the_process() {
    let mut file = Recording::new((0, 0), IP | TID | TIME | CALLCHAIN);
    file.records = vec![
        mapping(0x5000_0000, 0x1000, 0, "//anon"),
        mapping(0x6000_0000, 0x1000, 0x2000, "/no/such/file"),
        sample(0x5000_0010, &[3, USER, 0x5000_0010, 0x6000_0020]),
    ];
    let lines = file.lines(&["script"]);
    let frames = [
        "50000010 [unknown] (/tmp/perf-7.map)",
        "2020 [unknown] (/no/such/file)",
    ];
    assert_eq!(lines[1..], frames);
}

#[test]
fn callers_of_execve_are_of_the_program_of_before() {
    let mut file = Recording::new((0, 0), IP | TID | TIME | CALLCHAIN);
    let in_kernel = u64::MAX - 0xfff;
    let in_execve = |user: u64| sample(in_kernel, &[4, KERNEL, in_kernel, USER, user]);
    let mut before = sample(0x1010, &[2, USER, 0x1010]);
    before[4] = 2;
    file.records = vec![
        mapping(0x1000, 0x1000, 0, "/no/such/sh"),
        before,
        exec(b"program"),
        in_execve(0x1010),
        mapping(0x8000, 0x1000, 0, "/no/such/program"),
        in_execve(0x1010),
        // It runs, and what is where the other one was is not known.
        in_execve(0x8010),
        in_execve(0x1010),
    ];
    let users = |lines: Vec<String>| -> Vec<String> {
        let of_user = lines
            .into_iter()
            .filter(|line| line.contains("10 [unknown]"));
        of_user.collect()
    };
    let (old, new) = (
        "10 [unknown] (/no/such/sh)",
        "10 [unknown] (/no/such/program)",
    );
    assert_eq!(
        users(file.lines(&["script"])),
        [old, old, old, new, "1010 [unknown] ([unknown])"]
    );
    let rows = file.lines(&["report", "--children", "--sort", "dso", "--json"]);
    let rows = rows
        .iter()
        .map(|row| -> serde_json::Value { serde_json::from_str(row).expect("JSON") });
    let sh = rows.filter(|row| row["object"] == "/no/such/sh");
    let samples: Vec<_> = sh.map(|row| row["children-samples"].as_u64()).collect();
    assert_eq!(samples, [Some(3)]);
}

#[test]
fn registers_tell_a_machine_that_is_not_named() {
    let mut file = Recording::new((0, 0), IP | TID | TIME | CALLCHAIN | STACKS);
    // All of x86_64's; the eighth is its program counter. Then a stack of 16 bytes.
    file.registers = 0xff_0fff;
    let mut registers = [0; 20];
    registers[8] = 0x6000_0892;
    let rest = [
        &[2, KERNEL, u64::MAX - 0xfff, 2][..],
        &registers[..],
        &[16, 0, 0, 16],
    ]
    .concat();
    file.records = vec![
        mapping(0x6000_0000, 0x1000, 0, "/no/such/file"),
        sample(u64::MAX - 0xfff, &rest),
    ];
    let lines = file.lines(&["script"]);
    assert_eq!(lines[2..], ["892 [unknown] (/no/such/file)"]);
}

#[test]
fn simpleperf_lists_the_functions_and_names_the_events() {
    let mut file = Recording::new((6, 17), IP | TID | TIME | CALLCHAIN);
    let in_kernel = u64::MAX - 0xff_ffff;
    let chain = [4, KERNEL, in_kernel + 8, USER, 0x7000_0850, 0x7100_0040];
    let chain = [&[6][..], &chain[1..], &[0x7100_0080]].concat();
    file.records = vec![
        mapping(0x7000_0000, 0x1000, 0x1000, "/system/lib64/libc.so"),
        mapping(0x7100_0000, 0x1000, 0, "/system/app.apk!/lib.so"),
        sample(in_kernel + 8, &chain),
    ];
    // `FILE`: of type, the first executable address, and symbols; then the offset of that address.
    let symbol =
        |address: u64, len: u32, name: &str| [words(&[address]), ids(&[len]), ended(name)].concat();
    let entry = |path: &str, of: u32, first: u64, symbols: &[Vec<u8>], rest: &[u64]| {
        let count = ids(&[symbols.len() as u32]);
        let body = [
            ended(path),
            ids(&[of]),
            words(&[first]),
            count,
            symbols.concat(),
            words(rest),
        ]
        .concat();
        [ids(&[body.len() as u32]), body].concat()
    };
    let libc = [symbol(0x12_840, 0x20, "copy_all")];
    let kernel = [symbol(in_kernel, 0x40, "do_exit")];
    let files = [
        entry("[kernel.kallsyms]", 0, 0, &kernel, &[]),
        entry("/system/lib64/libc.so", 2, 0x12_000, &libc, &[0x1000]),
    ];
    // `FILE2`: the same as a message: path, type, address, symbols, and the offset.
    let message = [
        &b"\x0a\x17/system/app.apk!/lib.so\x10\x02\x18\x80\x20"[..],
        b"\x22\x0e\x08\xc0\x20\x10\x20\x1a\x07compute\x32\x02\x08\x00",
    ]
    .concat();
    let messages = [ids(&[message.len() as u32]), message].concat();
    let meta = [
        "clockid",
        "monotonic",
        "event_type_info",
        "cpu-cycles,0,0\nbus-access,6,17",
    ];
    file.features = vec![
        (128, files.concat()),
        (129, meta.map(ended).concat()),
        (132, messages),
    ];
    assert_eq!(
        file.lines(&["script", "-F", "event,ip,sym,symoff,dso"]),
        [
            "bus-access:".to_owned(),
            format!("{:x} do_exit+0x8 ([kernel.kallsyms])", in_kernel + 8),
            "1850 copy_all+0x10 (/system/lib64/libc.so)".to_owned(),
            "40 compute+0x0 (/system/app.apk!/lib.so)".to_owned(),
            "80 [unknown] (/system/app.apk!/lib.so)".to_owned(),
        ]
    );
    let header = file.lines(&["report", "--header-only"]);
    assert!(
        header.contains(&"# clockid : monotonic".to_owned()),
        "{header:?}"
    );
}

#[test]
fn descriptions_of_pmus_branches_traces_and_programs_are_those_of_perf() {
    let mut file = Recording::new((0, 0), IP | TID | TIME);
    file.records = vec![sample(0x1000, &[])];
    let pair = |name: &str, value: &str| [text(name), text(value)].concat();
    let hybrid = [
        ids(&[2]),
        pair("cpu_core", "0-15"),
        pair("cpu_atom", "16-23"),
    ];
    let capabilities = [
        ids(&[2, 2]),
        pair("branches", "32"),
        pair("pmu_name", "alderlake_hybrid"),
        text("cpu_core"),
        ids(&[1]),
        pair("branches", "16"),
        text("cpu_atom"),
    ];
    // Types of an integer, a prototype and two functions, and a program of those two.
    let strings = b"\0int\0entry\0helper\0";
    let types = [
        &[1, 1 << 24, 4, 32, 0, 13 << 24 | 1, 0, 0, 1][..],
        &[5, 12 << 24, 2, 11, 12 << 24, 2],
    ]
    .concat();
    let types_len = 4 * types.len() as u32;
    let start = [0xeb9f_u16, 1].map(u16::to_ne_bytes).concat();
    let rest = ids(&[24, 0, types_len, types_len, strings.len() as u32]);
    let btf = [start, rest, ids(&types), strings.to_vec()].concat();
    let btf = [ids(&[1, 7, btf.len() as u32]), btf].concat();
    let mut info = vec![0; 232];
    let mut set = |at: usize, bytes: Vec<u8>| info[at..at + bytes.len()].copy_from_slice(&bytes);
    set(4, ids(&[3]));
    set(104, ids(&[2, 2]));
    set(112, words(&[0, 16]));
    set(128, ids(&[7, 8]));
    set(136, words(&[24]));
    set(144, ids(&[2]));
    set(180, ids(&[2]));
    set(184, words(&[40]));
    let code = 0xffff_ffff_c000_0000;
    let arrays = [
        words(&[code, code + 0x1000]),
        ids(&[256, 257]),
        ids(&[0, 3, 0, 4]),
        vec![1; 8],
        vec![2; 8],
    ]
    .concat();
    let lens = ids(&[info.len() as u32, arrays.len() as u32]);
    let program = [
        ids(&[1]),
        lens,
        words(&[1 << 3 | 1 << 4 | 1 << 5 | 1 << 8]),
        info,
        arrays,
    ];
    file.features = vec![
        (15, vec![]),
        (18, words(&[0])),
        (25, program.concat()),
        (26, btf),
        (30, hybrid.concat()),
        (31, capabilities.concat()),
    ];
    let shown = |options: &[&str]| -> Vec<String> {
        let lines = file.lines(&[&["report", "--header-only"], options].concat());
        let told = lines
            .into_iter()
            .filter(|line| !line.contains("event : name"));
        told.filter(|line| line.len() > 2 && line != "# ========")
            .collect()
    };
    let expected = [
        "# contains samples with branch stack",
        "# contains AUX area data (e.g. instruction trace)",
        "# bpf_prog_info 3:",
        "# \tsub_prog 0: bpf_prog_0101010101010101_entry addr 0xffffffffc0000000 size 256",
        "# \tsub_prog 1: bpf_prog_0202020202020202_helper addr 0xffffffffc0001000 size 257",
        "# btf info of id 7",
        "# hybrid cpu system:",
        "# cpu_core cpu list : 0-15",
        "# cpu_atom cpu list : 16-23",
        "# cpu_core pmu capabilities: branches=32, pmu_name=alderlake_hybrid",
        "# cpu_atom pmu capabilities: branches=16",
    ];
    assert_eq!(shown(&["-I"]), expected);
    let short = shown(&[]);
    assert!(short.contains(&"# HYBRID_TOPOLOGY info available, use -I to display".to_owned()));
    assert_eq!(short.len(), expected.len() - 2);
}
