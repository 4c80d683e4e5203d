//! The event database, and what this machine's backends are.

use std::ffi::{CStr, c_char, c_int};
use std::ptr::{null, null_mut};

use quipu_capi::quipu_status::*;
use quipu_capi::*;

const NATIVE: u32 = quipu_event_kind::QUIPU_NATIVE as u32;
const GENERALIZED: u32 = quipu_event_kind::QUIPU_GENERALIZED as u32;
const PRESET: u32 = quipu_event_kind::QUIPU_PRESET as u32;

fn text<'t>(text: *const c_char) -> Option<&'t str> {
    // SAFETY: the library's texts end with a NUL and are still there.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_str().unwrap())
}

fn database() -> *mut quipu_database {
    let mut database = null_mut();
    // SAFETY: good arguments.
    let status = unsafe { quipu_database_open(null(), &mut database) };
    assert_eq!(status, QUIPU_OK);
    database
}

fn cpu(id: &CStr) -> *mut quipu_cpu {
    let (database, mut cpu) = (database(), null_mut());
    // SAFETY: good arguments. A CPU stays open when its database is closed.
    unsafe {
        assert_eq!(quipu_cpu_open(database, id.as_ptr(), 0, &mut cpu), QUIPU_OK);
        assert_eq!(quipu_database_close(database), QUIPU_OK);
    }
    cpu
}

fn find(cpu: *mut quipu_cpu, kind: u32, name: &CStr) -> Result<quipu_name_info, quipu_status> {
    let mut info = init!(quipu_name_info);
    // SAFETY: good arguments.
    match unsafe { quipu_cpu_find(cpu, kind, name.as_ptr(), &mut info) } {
        QUIPU_OK => Ok(info),
        status => Err(status),
    }
}

#[test]
fn cpus_are_listed_and_described() {
    let database = database();
    let mut count = 0;
    let mut found = Vec::new();
    // SAFETY: good arguments.
    unsafe {
        assert_eq!(quipu_database_cpu_count(database, &mut count), QUIPU_OK);
        for index in 0..count {
            let mut info = init!(quipu_cpu_info);
            assert_eq!(quipu_database_cpu(database, index, &mut info), QUIPU_OK);
            found.push((text(info.id).unwrap(), info.scheme, info.general_counters));
        }
        let mut info = init!(quipu_cpu_info);
        assert_eq!(quipu_database_cpu(database, count, &mut info), QUIPU_EINVAL);
    }
    let p5 = quipu_scheme::QUIPU_SCHEME_P5 as u32;
    assert!(found.contains(&("intel-p5", p5, 2)), "{found:?}");
    let mut cpu = null_mut();
    // SAFETY: good arguments.
    unsafe {
        let wrong = c"intel-p55";
        assert_eq!(
            quipu_cpu_open(database, wrong.as_ptr(), 0, &mut cpu),
            QUIPU_EINVAL
        );
        let right = c"intel-p5";
        assert_eq!(
            quipu_cpu_open(database, right.as_ptr(), 1, &mut cpu),
            QUIPU_EINVAL
        );
        assert_eq!(quipu_database_close(database), QUIPU_OK);
        assert_eq!(quipu_database_close(database), QUIPU_EHANDLE);
    }
}

/// A file on top, under a name that is no text.
#[cfg(target_os = "linux")]
#[test]
fn a_file_adds_a_cpu() {
    use std::ffi::{CString, OsStr};
    use std::os::unix::ffi::OsStrExt;

    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join(OsStr::from_bytes(b"\xff.toml"));
    let entry = "[[cpu]]\nid = \"made-up\"\nbase = \"intel-p5\"\nname = \"Made up\"\n";
    std::fs::write(&path, entry).expect("a file");
    let path = CString::new(path.as_os_str().as_bytes()).expect("no NUL");
    let (mut database, mut cpu, mut none) = (null_mut(), null_mut(), null_mut());
    let mut info = init!(quipu_cpu_info);
    // SAFETY: good arguments.
    unsafe {
        assert_eq!(quipu_database_open(path.as_ptr(), &mut database), QUIPU_OK);
        let id = c"made-up".as_ptr();
        assert_eq!(quipu_cpu_open(database, id, 0, &mut cpu), QUIPU_OK);
        assert_eq!(quipu_cpu_get_info(cpu, &mut info), QUIPU_OK);
        assert_eq!(text(info.name), Some("Made up"));
        assert_eq!(quipu_cpu_close(cpu), QUIPU_OK);
        assert_eq!(quipu_database_close(database), QUIPU_OK);
        let missing = c"/no/such/file".as_ptr();
        assert_ne!(quipu_database_open(missing, &mut none), QUIPU_OK);
    }
}

#[test]
fn events_of_another_cpu_are_named_and_described() {
    let cpu = cpu(c"intel-skl");
    let mut counts = [0; 3];
    for (kind, count) in (0..).zip(&mut counts) {
        // SAFETY: good arguments.
        assert_eq!(unsafe { quipu_cpu_name_count(cpu, kind, count) }, QUIPU_OK);
        assert!(*count > 0);
        let mut info = init!(quipu_name_info);
        for index in 0..*count {
            // SAFETY: good arguments.
            let status = unsafe { quipu_cpu_name(cpu, kind, index, &mut info) };
            assert_eq!(status, QUIPU_OK);
            assert!(text(info.name).is_some());
            assert!(text(info.stands_for).is_none() || text(info.reason).is_none());
        }
        // SAFETY: good arguments.
        let beyond = unsafe { quipu_cpu_name(cpu, kind, *count, &mut info) };
        assert_eq!(beyond, QUIPU_EINVAL);
    }
    // SAFETY: good arguments.
    let status = unsafe { quipu_cpu_name_count(cpu, 3, &mut counts[0]) };
    assert_eq!(status, QUIPU_EINVAL);

    let misses = find(cpu, NATIVE, c"l2_rqsts.miss").unwrap();
    assert_eq!(text(misses.name), Some("L2_RQSTS.MISS"));
    assert_eq!(
        (text(misses.event), text(misses.mask)),
        (Some("L2_RQSTS"), Some("MISS"))
    );
    assert_eq!((misses.code, misses.unit_mask), (0x24, 0x3f));
    let sentence = Some("All requests that miss L2 cache");
    assert_eq!(text(misses.description), sentence);
    assert_eq!(
        find(cpu, NATIVE, c"NO_SUCH_EVENT").err(),
        Some(QUIPU_EEVENT)
    );

    let cycles = find(cpu, GENERALIZED, c"cycles").unwrap();
    assert!(
        text(cycles.stands_for)
            .unwrap()
            .starts_with("CPU_CLK_UNHALTED")
    );
    assert_eq!((text(cycles.unit), text(cycles.reason)), (Some(""), None));
    assert!(text(cycles.description).unwrap().starts_with("CPU cycles"));
    let misses = find(cpu, GENERALIZED, c"dTLB-load-misses").unwrap();
    assert_eq!(text(misses.description), Some("data TLB: loads that miss"));
    let clock = find(cpu, GENERALIZED, c"task-clock").unwrap();
    assert_eq!(text(clock.unit), Some("ns"));
    let faults = find(cpu, GENERALIZED, c"page-faults").unwrap();
    assert_eq!(faults.flags, quipu_name_flag::QUIPU_SOFTWARE as u32);
    let instructions = find(cpu, PRESET, c"PAPI_TOT_INS").unwrap();
    assert!(
        text(instructions.stands_for)
            .unwrap()
            .contains("INST_RETIRED")
    );

    let stands_for = text(instructions.stands_for).unwrap();
    let described = format!("instructions: {stands_for}");
    assert_eq!(text(instructions.description), Some(&*described));

    let mut info = init!(quipu_cpu_info);
    // SAFETY: good arguments.
    unsafe {
        assert_eq!(quipu_cpu_get_info(cpu, &mut info), QUIPU_OK);
        assert_eq!(text(info.vendor), Some("GenuineIntel"));
        assert_eq!((info.family, info.general_width), (6, 48));
        assert_eq!(quipu_cpu_close(cpu), QUIPU_OK);
    }
}

/// Further facts about a unit mask: how it counts, what it goes with, and on which counters.
#[test]
fn masks_have_properties_and_constraints() {
    use quipu_name_flag::*;

    let any = u64::MAX;
    // Event number, unit mask, second one, counter mask, group.
    for (id, name, flag, numbers, counters) in [
        (
            c"intel-skl",
            c"IDQ.MS_SWITCHES",
            Some(QUIPU_EDGE),
            [0x79, 0x30, 0, 1, 0],
            any,
        ),
        (
            c"intel-skl",
            c"INST_RETIRED.TOTAL_CYCLES_PS",
            Some(QUIPU_INVERT),
            [0xc0, 1, 0, 10, 0],
            0b1101,
        ),
        (
            c"intel-skl",
            c"INT_MISC.RECOVERY_CYCLES_ANY",
            Some(QUIPU_ANY_THREAD),
            [0x0d, 1, 0, 0, 0],
            any,
        ),
        (
            c"intel-arl-core",
            c"BR_INST_RETIRED.COND",
            None,
            [0xc4, 0x11, 1, 0, 0],
            any,
        ),
        (
            c"amd-10h-barcelona",
            c"HYPERTRANSPORT_LINK0.DATA_DWORD_SENT",
            Some(QUIPU_MASK_COMBINES),
            [0xf6, 2, 0, 0, 1],
            any,
        ),
    ] {
        let cpu = cpu(id);
        let info = find(cpu, NATIVE, name).unwrap();
        assert_eq!(info.flags, flag.map_or(0, |flag| flag as u32), "{name:?}");
        let found = [
            info.code,
            info.unit_mask,
            info.second_mask,
            info.counter_mask,
            info.mask_group,
        ];
        assert_eq!(
            (found, info.general_counters),
            (numbers, counters),
            "{name:?}"
        );
        // SAFETY: a handle.
        assert_eq!(unsafe { quipu_cpu_close(cpu) }, QUIPU_OK);
    }
}

#[test]
fn names_become_bits_and_bits_names() {
    let cpu = cpu(c"intel-skl");
    let event = c"L2_RQSTS.MISS:u";
    let mut name = [1 as c_char; 64];
    let mut levels = -2;
    for (interface, form, config) in [
        (0, quipu_encoding_form::QUIPU_PERF, 0x3f24),
        (2, quipu_encoding_form::QUIPU_X86_SELECT, 0x41_3f24),
    ] {
        let mut bits = init!(quipu_encoding);
        // SAFETY: good arguments.
        unsafe {
            let status = quipu_encode(cpu, event.as_ptr(), interface, &mut bits);
            assert_eq!(status, QUIPU_OK);
            assert_eq!((bits.form, bits.config), (form as u32, config));
            let out = name.as_mut_ptr();
            let status = quipu_decode(cpu, &bits, out, name.len(), &mut levels);
            assert_eq!(status, QUIPU_OK);
            assert_eq!(text(name.as_ptr()), Some("L2_RQSTS.MISS"));
            // Linux keeps the levels elsewhere.
            let user = quipu_filter::QUIPU_IN_USER as c_int;
            assert_eq!(levels, if interface == 0 { -1 } else { user });
            assert_eq!(quipu_decode(cpu, &bits, out, 14, null_mut()), QUIPU_OK);
            assert_eq!(quipu_decode(cpu, &bits, out, 13, null_mut()), QUIPU_EINVAL);
            assert_eq!(
                quipu_decode(cpu, &bits, null_mut(), 64, null_mut()),
                QUIPU_EINVAL
            );
            bits.form = 99;
            assert_eq!(quipu_decode(cpu, &bits, out, 64, null_mut()), QUIPU_EINVAL);
        }
    }
    let mut bits = init!(quipu_encoding);
    // SAFETY: good arguments.
    unsafe {
        assert_eq!(
            quipu_encode(cpu, event.as_ptr(), 3, &mut bits),
            QUIPU_EINVAL
        );
        let none = c"NO_SUCH_EVENT";
        assert_eq!(quipu_encode(cpu, none.as_ptr(), 0, &mut bits), QUIPU_EEVENT);
        assert_eq!(quipu_cpu_close(cpu), QUIPU_OK);
    }
}

/// The numbers are those of include/uapi/linux/perf_event.h and hw_breakpoint.h.
#[test]
fn every_event_has_the_words_that_linux_is_asked_with() {
    let cpu = cpu(c"amd-zen4");
    let encode = |event: &CStr| {
        let mut bits = init!(quipu_encoding);
        // SAFETY: good arguments.
        let status = unsafe { quipu_encode(cpu, event.as_ptr(), 0, &mut bits) };
        (status, bits)
    };
    for (event, type_, config) in [
        (c"page-faults", 1, 2),
        (c"perf::PERF_COUNT_SW_PAGE_FAULTS:u=1", 1, 2),
        (c"cycles", 0, 0),
        (c"PERF_COUNT_HW_INSTRUCTIONS:u", 0, 1),
        (c"L1-dcache-store-misses", 3, 0x1_0100),
        (c"PERF_COUNT_HW_CACHE_LL:READ:MISS", 3, 0x1_0002),
        (c"r01c0", 4, 0x1c0),
        (c"ex_ret_instr", 4, 0xc0),
        (
            c"amd64_fam19h_zen4::RETIRED_INSTRUCTIONS:c=1:u=1",
            4,
            0x100_00c0,
        ),
    ] {
        let (status, bits) = encode(event);
        assert_eq!(status, QUIPU_OK, "{event:?}");
        assert_eq!((bits.form, bits.r#type), (1, type_), "{event:?}");
        assert_eq!(bits.config, config, "{event:?}");
    }
    let (status, watched) = encode(c"mem:0x1000/8:w");
    assert_eq!((status, watched.r#type, watched.config), (QUIPU_OK, 5, 0));
    let words = (watched.config1, watched.config2, watched.bp_type);
    assert_eq!(words, (0x1000, 8, 2));
    // Numbers of the kernel lead back to names, and never to an event of the CPU that has the number by chance.
    let (_, instructions) = encode(c"instructions");
    let mut name = [1 as c_char; 64];
    // SAFETY: good arguments.
    unsafe {
        let status = quipu_decode(cpu, &instructions, name.as_mut_ptr(), 64, null_mut());
        assert_eq!(
            (status, text(name.as_ptr())),
            (QUIPU_OK, Some("instructions"))
        );
        let status = quipu_decode(cpu, &watched, name.as_mut_ptr(), 64, null_mut());
        assert_eq!(status, QUIPU_EEVENT);
    }
    // A tracepoint has the number of this machine's kernel.
    let ids = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"]
        .map(|folder| std::fs::read_to_string(format!("{folder}/events/sched/sched_switch/id")));
    let id = ids.into_iter().flatten().next();
    match id.and_then(|id| id.trim().parse().ok()) {
        Some(id) => {
            let (status, bits) = encode(c"sched:sched_switch");
            assert_eq!((status, bits.r#type, bits.config), (QUIPU_OK, 2, id));
        }
        None => eprintln!("SKIP the number of a tracepoint: tracefs cannot be read here"),
    }
    // SAFETY: a handle.
    assert_eq!(unsafe { quipu_cpu_close(cpu) }, QUIPU_OK);
}

#[test]
fn every_form_of_bits_comes_back() {
    for (id, event, interface, form) in [
        (
            c"intel-p5",
            c"DATA_READ:u",
            1,
            quipu_encoding_form::QUIPU_P5_FUNCTION,
        ),
        (
            c"intel-skl",
            c"INST_RETIRED.ANY",
            2,
            quipu_encoding_form::QUIPU_FIXED_COUNTER,
        ),
    ] {
        let cpu = cpu(id);
        let mut bits = init!(quipu_encoding);
        let mut name = [0 as c_char; 64];
        // SAFETY: good arguments.
        unsafe {
            let status = quipu_encode(cpu, event.as_ptr(), interface, &mut bits);
            assert_eq!((status, bits.form), (QUIPU_OK, form as u32));
            let out = name.as_mut_ptr();
            assert_eq!(
                quipu_decode(cpu, &bits, out, name.len(), null_mut()),
                QUIPU_OK
            );
            let bare = event.to_str().unwrap();
            let bare = bare.split(':').next().unwrap();
            assert_eq!(text(name.as_ptr()), Some(bare));
            assert_eq!(quipu_cpu_close(cpu), QUIPU_OK);
        }
    }
}

#[test]
fn a_backend_is_usable_or_says_why_not() {
    let mut count = 0;
    // SAFETY: good arguments.
    assert_eq!(unsafe { quipu_backend_count(&mut count) }, QUIPU_OK);
    let machine = quipu::Machine::this();
    let all: Vec<_> = machine
        .backends()
        .iter()
        .chain(machine.on_request())
        .collect();
    assert_eq!(count, all.len());
    for (index, backend) in all.into_iter().enumerate() {
        let mut info = init!(quipu_backend_info);
        // SAFETY: good arguments.
        assert_eq!(unsafe { quipu_backend_get(index, &mut info) }, QUIPU_OK);
        assert_eq!(text(info.name), Some(backend.name()));
        let message = backend.error().map(ToString::to_string).unwrap_or_default();
        assert_eq!(text(info.message), Some(&*message));
        assert_eq!(info.status == 0, message.is_empty());
        let can = backend.backend().map(|usable| usable.capabilities());
        assert_eq!(info.features, can.map_or(0, |can| can.features.bits()));
        assert_eq!(info.targets, can.map_or(0, |can| can.targets.bits().into()));
    }
    let mut info = init!(quipu_backend_info);
    // SAFETY: good arguments.
    assert_eq!(unsafe { quipu_backend_get(count, &mut info) }, QUIPU_EINVAL);
}

#[test]
fn the_version_is_the_headers() {
    let version = quipu_version();
    assert_eq!(
        (version >> 16, version >> 8 & 0xff, version & 0xff),
        (0, 1, 0)
    );
    assert_eq!(text(quipu_version_string()), Some("0.1.0"));
}
