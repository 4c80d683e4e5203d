//! `quipu events`, `encode`, `decode` and `list native`, run as people run them.

use assert_cmd::Command;
use tempfile::TempDir;

/// Runs `quipu` with no event files of this machine's user.
fn quipu(home: &TempDir, args: &[&str]) -> (String, String, i32) {
    let output = Command::new(env!("CARGO_BIN_EXE_quipu"))
        .args(args)
        .env("XDG_CONFIG_HOME", home.path())
        .env_remove("QUIPU_EVENTS")
        .output()
        .unwrap();
    (
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
        output.status.code().unwrap(),
    )
}

#[test]
fn an_uncore_event_is_encoded_as_pmu_and_terms_and_listed() {
    let home = TempDir::new().unwrap();
    let (out, _, status) = quipu(
        &home,
        &["encode", "unc_m_cas_count.rd", "--cpu", "intel-skx"],
    );
    assert_eq!(status, 0);
    assert!(
        out.contains("linux  uncore_imc/event=0x04,umask=0x03/\n"),
        "{out}"
    );
    let list = ["list", "uncore", "--cpu", "intel-skx"];
    let (out, _, status) = quipu(&home, &[&list[..], &["llc_misses.mem_read"]].concat());
    assert_eq!(status, 0);
    assert_eq!(
        out,
        "intel-skx (Intel Skylake X), uncore\n  \
         LLC_MISSES.MEM_READ  uncore_imc/event=0x04,umask=0x03/; in Bytes, 64 each\n"
    );
    let (out, _, _) = quipu(
        &home,
        &[&list[..], &["llc_misses.mem_read", "--json"]].concat(),
    );
    let objects: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(objects[0]["pmu"], "uncore_imc");
    assert_eq!(objects[0]["unit"], "Bytes");
    assert_eq!(objects[0]["scale"], 64.0);
    // Nothing is listed of a CPU without units, and why is told.
    let (out, err, status) = quipu(&home, &["list", "uncore", "--cpu", "intel-p6"]);
    assert_eq!((out.as_str(), status), ("", 1));
    assert!(err.contains("--cpu ID"), "{err}");
}

/// The fields are the chosen CPU's, whatever PMU this machine has.
#[test]
fn terms_of_the_cores_pmu_are_encoded_for_a_cpu_of_the_database() {
    let home = TempDir::new().unwrap();
    let encode = |cpu: &str, event: &str| {
        let (out, err, _) = quipu(&home, &["encode", "--cpu", cpu, "--for", "linux", event]);
        out + &err
    };
    for (cpu, event, bits) in [
        ("intel-skl", "cpu/event=0xc0/", "type 4, config 0xc0"),
        (
            "intel-skl",
            "cpu/event=0x0e,umask=1,inv,cmask=1/u",
            "type 4, config 0x180010e",
        ),
        ("intel-skl", "cpu/config=0x412e/", "type 4, config 0x412e"),
        ("amd-zen4", "cpu/event=0x1c0/", "type 4, config 0x1000000c0"),
        ("intel-skl", "cpu/event=0x1c0/", "event is at most 0xff"),
        (
            "amd-zen4",
            "cpu/event=0xc0,any/",
            "the PMU of this CPU has no field any",
        ),
    ] {
        let said = encode(cpu, event);
        assert!(said.contains(bits), "{event} on {cpu}: {said}");
    }
}

#[test]
fn an_event_is_encoded_for_every_interface_and_decoded() {
    let home = TempDir::new().unwrap();
    let (out, _, status) = quipu(&home, &["encode", "L2_RQSTS:MISS:u", "--cpu", "intel-skl"]);
    assert_eq!(status, 0);
    assert!(out.contains("linux  type 4, config 0x3f24\n"), "{out}");
    assert!(out.contains("pctr   function 0x00413f24\n"), "{out}");
    assert!(out.contains("msr    select 0x413f24\n"), "{out}");
    assert!(
        out.contains("0x0000000000010000  USR: user mode\n"),
        "{out}"
    );
    let (out, _, _) = quipu(&home, &["decode", "0x413f24", "--cpu", "intel-skl"]);
    assert_eq!(out, "intel-skl: L2_RQSTS.MISS:u\n");
    let (out, _, _) = quipu(&home, &["decode", "0x01990056", "--cpu", "intel-p5"]);
    assert_eq!(
        out,
        "intel-p5: counter 0: INSTRUCTIONS_EXECUTED:k\n\
         intel-p5: counter 1: WRITE_BUFFER_FULL_STALL_DURATION:clocks:u\n"
    );
    let (out, _, _) = quipu(&home, &["decode", "0x56", "--cpu", "intel-p5"]);
    assert_eq!(out, "intel-p5: INSTRUCTIONS_EXECUTED:k\n");
    let (_, err, status) = quipu(&home, &["encode", "L2_RQSTS.MISSS", "--cpu", "intel-skl"]);
    assert_eq!(status, 125);
    assert!(err.contains("L2_RQSTS has "), "{err}");
    let preset = [
        "encode",
        "PAPI_L1_TCM",
        "--cpu",
        "intel-skl",
        "--for",
        "linux",
    ];
    let (out, _, status) = quipu(&home, &preset);
    assert_eq!(status, 0);
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(
        lines[1],
        "  PAPI_L1_TCM = L1D.REPLACEMENT + L2_RQSTS.ALL_CODE_RD"
    );
    assert_eq!(
        lines[2..4],
        ["L1D.REPLACEMENT", "  linux  type 4, config 0x151"]
    );
    assert!(
        out.contains("\nL2_RQSTS.ALL_CODE_RD\n  linux  type 4, config 0xe424\n"),
        "{out}"
    );
    let (out, err, _) = quipu(&home, &["encode", "page-faults", "--cpu", "intel-skl"]);
    assert!(out.contains("  linux  type 1, config 0x2\n"), "{out}{err}");
    assert!(out.contains("the operating system counts it"), "{out}{err}");
    let (_, err, _) = quipu(&home, &["encode", "cycles", "--cpu", "intel-slk"]);
    assert!(err.contains("did you mean intel-skl?"), "{err}");
}

/// The words of perf_event_attr that are opened, of which the kernel's own files have the numbers.
#[test]
#[cfg(target_os = "linux")]
fn events_of_the_kernel_have_the_words_that_are_opened() {
    let home = TempDir::new().unwrap();
    let program = env!("CARGO_BIN_EXE_quipu");
    let watched = "type 5, config 0x0, config1 0x1000, config2 0x4, bp_type 0x3";
    let number = |path: &str| std::fs::read_to_string(path).map(|text| text.trim().to_owned());
    let mut expected = vec![
        ("cycles".to_owned(), "type 0, config 0x0".to_owned()),
        (
            "context-switches".to_owned(),
            "type 1, config 0x3".to_owned(),
        ),
        ("mem:0x1000/4:rw".to_owned(), watched.to_owned()),
    ];
    match number("/sys/kernel/tracing/events/sched/sched_switch/id") {
        Ok(id) => {
            let id: u32 = id.parse().unwrap();
            expected.push((
                "sched:sched_switch".into(),
                format!("type 2, config {id:#x}"),
            ));
        }
        Err(error) => println!("SKIP the words of a tracepoint: {error}"),
    }
    match number("/sys/bus/event_source/devices/uprobe/type") {
        Ok(pmu) => expected.push((
            format!("uprobe:{program}:main"),
            format!("type {pmu}, config 0x0, config2 "),
        )),
        Err(error) => println!("SKIP the words of a probe: {error}"),
    }
    for (event, words) in expected {
        let (out, err, _) = quipu(
            &home,
            &["encode", "--for", "linux", "--cpu", "intel-skl", &event],
        );
        assert!(
            out.contains(&format!("  linux  {words}")),
            "{event}: {out}{err}"
        );
        let is_probe = event.starts_with("uprobe");
        assert_eq!(out.contains("config1: the address"), is_probe, "{out}");
    }
}

#[test]
fn a_users_file_with_findings_is_left_out_loudly() {
    let home = TempDir::new().unwrap();
    std::fs::create_dir(home.path().join("quipu")).unwrap();
    std::fs::write(home.path().join("quipu/events.toml"), "[[cpu]]\n").unwrap();
    let warning = "quipu: an event file is ignored: cannot use the event file: ";
    let (out, err, status) = quipu(&home, &["encode", "cycles", "--cpu", "amd-k7"]);
    assert!(out.starts_with("amd-k7 ") && status == 0, "{out}");
    assert!(err.starts_with(warning), "{err}");
    // Only a name that the database has to resolve makes anybody read event files.
    if cfg!(target_os = "linux") {
        let (_, err, _) = quipu(&home, &["stat", "-e", "page-faults", "true"]);
        assert!(!err.contains(warning), "{err}");
        let (_, err, _) = quipu(&home, &["stat", "-e", "NO_SUCH.EVENT", "true"]);
        assert_eq!(err.matches(warning).count(), 1, "{err}");
    }
}
