//! Importing vendors' lists.

use quipu_events::{Database, check_text};
use quipu_import::lists::{Format, import};

const INTEL: &str = r#"{ "Header": {}, "Events": [
 { "EventCode": "0x00", "UMask": "0x01", "EventName": "INST_RETIRED.ANY", "Counter": "Fixed counter 0",
   "MSRIndex": "0", "MSRValue": "0", "CounterMask": "0", "Invert": "0", "EdgeDetect": "0", "Errata": "null",
   "BriefDescription": "not to be carried over" },
 { "EventCode": "0xC0", "UMask": "0x00", "EventName": "INST_RETIRED.ANY_P", "Counter": "0,1,2,3",
   "MSRIndex": "0", "MSRValue": "0", "CounterMask": "0", "Invert": "0", "EdgeDetect": "0", "Errata": "XYZ1, XYZ2" },
 { "EventCode": "0xC0", "UMask": "0x00", "EventName": "INST_RETIRED.OLD", "Counter": "0,1,2,3", "Deprecated": "1",
   "MSRIndex": "0", "MSRValue": "0", "CounterMask": "0", "Invert": "0", "EdgeDetect": "0" },
 { "EventCode": "0x48", "UMask": "0x01", "EventName": "L1D_PEND_MISS.PENDING_CYCLES", "Counter": "2",
   "MSRIndex": "0", "MSRValue": "0", "CounterMask": "1", "Invert": "1", "EdgeDetect": "1", "UMaskExt": "0x02" },
 { "EventCode": "0xB7, 0xBB", "UMask": "0x01", "EventName": "OCR.READ.MISS", "Counter": "0,1,2,3",
   "MSRIndex": "0x1a6,0x1a7", "MSRValue": "0x3FFC400001", "CounterMask": "0", "Invert": "0", "EdgeDetect": "0" }
] }"#;

#[test]
fn intel_lists_keep_names_numbers_and_constraints_only() {
    let imported = import(Format::IntelPerfmon, &[("x.json", INTEL)]).unwrap();
    assert_eq!(
        imported.text,
        r#"[cpu.events]

[cpu.events.INST_RETIRED]
code = 0xc0
masks.ANY = { bits = 0x01, code = 0x00, fixed = 0 }
masks.ANY_P = { bits = 0x00, errata = ["XYZ1", "XYZ2"] }
masks.OLD = { bits = 0x00, deprecated = true, same-as = "INST_RETIRED.ANY_P" }

[cpu.events.L1D_PEND_MISS]
code = 0x48
counters = [2]
masks.PENDING_CYCLES = { bits = 0x01, second-mask = 0x02, counter-mask = 1, edge = true, invert = true }

[cpu.events.OCR]
code = 0xb7
register = 0x1a6
register-value = true
unit-mask = 0x01
masks."READ.MISS" = { bits = 0x01, value = 0x3ffc400001 }
"#
    );
    let file = format!(
        "[[cpu]]\nid = \"x-a\"\nscheme = \"intel-core\"\n{}",
        imported.text
    );
    assert_eq!(check_text("f", &file, &Database::embedded()), []);
}

const MATRIX: &str = r#"{ "Events": [
 { "MATRIX_REQUEST": "RD", "MATRIX_RESPONSE": "Null", "MATRIX_VALUE": "0x0001", "MATRIX_REGISTER": "0,1" },
 { "MATRIX_REQUEST": "WR", "MATRIX_RESPONSE": "NULL", "MATRIX_VALUE": "0x0100", "MATRIX_REGISTER": "1" },
 { "MATRIX_REQUEST": "Null", "MATRIX_RESPONSE": "HIT.ANY", "MATRIX_VALUE": "0x18002", "MATRIX_REGISTER": "0,1" },
 { "MATRIX_REQUEST": "Null", "MATRIX_RESPONSE": "WAIT", "MATRIX_VALUE": "0x400000", "MATRIX_REGISTER": "0" },
 { "MATRIX_REQUEST": "Null", "MATRIX_RESPONSE": "PF_CODE", "MATRIX_VALUE": "0x40", "MATRIX_REGISTER": "0,1" }
] }"#;

fn offcore(name: &str, registers: &str, value: &str) -> String {
    format!(
        r#"{{ "EventCode": "0xB7", "UMask": "0x01,0x02", "EventName": "OFFCORE_RESPONSE.{name}", "Counter": "0,1",
            "MSRIndex": "{registers}", "MSRValue": "{value}" }}"#
    )
}

#[test]
fn a_matrix_puts_requests_and_responses_together() {
    let listed = [
        offcore("RD.HIT.ANY", "0x1a6,0x1a7", "0x1800020011"),
        offcore("WR.OTHER", "0x1a7", "0x10100"),
    ];
    let list = format!("[{}]", listed.join(","));
    let files = [("core.json", list.as_str()), ("matrix.json", MATRIX)];
    let imported = import(Format::IntelPerfmon, &files).unwrap();
    // The list's request bit 4 is none of the matrix: its value is not taken.
    assert_eq!(
        imported.text,
        r#"[cpu.events]

[cpu.events.OFFCORE_RESPONSE]
code = 0xb7
register = 0x1a6
register-value = true
unit-mask = 0x01
masks."RD.HIT.ANY" = { bits = 0x01, value = 0x180020001 }
masks."WR.OTHER" = { bits = 0x02, register = 0x1a7, value = 0x10100 }
masks."RD.WAIT" = { bits = 0x01, value = 0x4000000001 }
masks."WR.HIT.ANY" = { bits = 0x02, register = 0x1a7, value = 0x180020100 }
"#
    );
    assert_eq!(
        imported.left_out,
        [
            "PF_CODE: it is a request, listed as a response",
            "OFFCORE_RESPONSE.WR.WAIT: no register takes both parts"
        ]
    );
    // Responses as they stand in the register.
    let whole = MATRIX
        .replace("0x18002", "0x180020000")
        .replace("0x400000", "0x4000000000")
        .replace("0x40\"", "0x400000\"");
    let files = [("core.json", list.as_str()), ("matrix.json", &whole)];
    assert_eq!(import(Format::IntelPerfmon, &files).unwrap(), imported);
    let alone = import(Format::IntelPerfmon, &[("matrix.json", MATRIX)]).unwrap();
    assert_eq!(alone.events, 0);
    assert!(
        alone
            .left_out
            .contains(&"OFFCORE_RESPONSE.RD.WAIT: no list has its event".to_owned())
    );
}

#[test]
fn linux_lists_resolve_architectural_events_and_leave_other_units_out() {
    let common = r#"[ { "EventCode": "0x08", "EventName": "INST_RETIRED" },
                      { "EventCode": "0x11", "EventName": "CPU_CYCLES" } ]"#;
    let core = r#"[ { "ArchStdEvent": "INST_RETIRED" }, { "ArchStdEvent": "UNKNOWN" },
                    { "EventCode": "0xe1", "EventName": "OWN" }, { "MetricName": "ipc", "MetricExpr": "a / b" } ]"#;
    let imported = import(
        Format::LinuxPmuEvents,
        &[
            ("a/common-and-microarch.json", common),
            ("a/core.json", core),
        ],
    )
    .unwrap();
    assert_eq!(
        imported.text,
        "[cpu.events]\nINST_RETIRED = 0x08\nOWN = 0xe1\n"
    );
    assert_eq!(imported.left_out, ["UNKNOWN: its number is not known"]);
    let amd = r#"[ { "EventName": "ls_dispatch.ld_dispatch", "EventCode": "0x29", "UMask": "0x01" },
                   { "EventName": "ls_dispatch.store_dispatch", "EventCode": "0x29", "UMask": "0x02" },
                   { "EventName": "l3", "EventCode": "0x9a", "UMask": "0x1f", "Unit": "L3PMC" } ]"#;
    let imported = import(Format::LinuxPmuEvents, &[("core.json", amd)]).unwrap();
    assert_eq!(
        imported.text,
        "[cpu.events]\n\n[cpu.events.ls_dispatch]\ncode = 0x29\ncombine = true\n\
         masks.ld_dispatch = 0x01\nmasks.store_dispatch = 0x02\n"
    );
}

#[test]
fn uncore_units_are_no_core_events_in_either_form() {
    let list = r#"[
 { "EventCode": "0x84", "UMask": "0x01", "EventName": "UNC_ARB_COH_TRK_REQUESTS.ALL", "Counter": "0,1", "Unit": "ARB" },
 { "EventCode": "0x22", "UMask": "0x41", "EventName": "UNC_CBO_XSNP_RESPONSE.MISS", "Counter": "0,1", "Unit": "CBO" },
 { "EventCode": "0x34", "UMask": "0x8f", "EventName": "UNC_CBO_CACHE_LOOKUP.ANY_I", "Counter": "0,1", "Unit": "CBO" },
 { "EventCode": "0x3c", "UMask": "0x00", "EventName": "CPU_CLK", "Counter": "0,1,2,3", "Unit": "cpu_core" }
]"#;
    for format in [Format::IntelPerfmon, Format::LinuxPmuEvents] {
        let imported = import(format, &[("x.json", list)]).unwrap();
        assert_eq!(imported.text, "[cpu.events]\nCPU_CLK = 0x3c\n");
        assert_eq!(
            imported.left_out,
            [
                "1 of unit ARB: that is no core",
                "2 of unit CBO: that is no core"
            ]
        );
    }
}

/// An import is a file that reads back.
#[test]
fn uncore_units_and_texts_that_a_file_cannot_hold_are_left_out() {
    let list = r#"[
 { "EventCode": "0x29", "EventName": "good", "Unit": "CBO" },
 { "EventCode": "0x29", "EventName": "bad_unit", "Unit": "\u00b4PMC" },
 { "EventCode": "0x29", "EventName": "bad\"name", "Unit": "CBO" },
 { "EventCode": "0x29", "EventName": "bad_scale", "Unit": "CBO", "ScaleUnit": "64\nBytes" }
]"#;
    let imported = import(Format::LinuxUncore, &[("x.json", list)]).unwrap();
    let (events, left_out) = (imported.events, imported.left_out);
    assert_eq!((events, left_out.len()), (1, 3), "{left_out:?}");
    let file = format!(
        "[[cpu]]\nid = \"x\"\nname = \"x\"\nscheme = \"perf\"\n{}",
        imported.text
    );
    assert!(file.contains("good = "), "{file}");
    assert!(
        !check_text("x.toml", &file, &Database::embedded())
            .iter()
            .any(|d| d.message.contains("TOML")),
        "{file}"
    );
}

/// Rows as they stand in Linux's `tools/perf/pmu-events/arch/x86/skylake`, with keys that would be 0 left out.
const SKYLAKE: &str = r#"[
 { "EventName": "INST_RETIRED.ANY", "SampleAfterValue": "2000003", "UMask": "0x1" },
 { "EventName": "INST_RETIRED.PREC_DIST", "SampleAfterValue": "2000003", "UMask": "0x1" },
 { "EventName": "CPU_CLK_UNHALTED.REF_TSC", "Counter": "Fixed counter 2", "SampleAfterValue": "2000003", "UMask": "0x3" },
 { "EventName": "CPU_CLK_UNHALTED.THREAD_P_ANY", "AnyThread": "1", "EventCode": "0x3C", "SampleAfterValue": "2000003" },
 { "EventName": "L1D_PEND_MISS.PENDING", "Counter": "2", "EventCode": "0x48", "UMask": "0x1", "SampleAfterValue": "2000003" },
 { "EventName": "L2_RQSTS.MISS", "Counter": "0,1,2,3", "EventCode": "0x24", "UMask": "0x3f", "SampleAfterValue": "200003" },
 { "EventName": "MEM_TRANS_RETIRED.LOAD_LATENCY_GT_16", "EventCode": "0xcd", "MSRIndex": "0x3F6", "MSRValue": "0x10",
   "UMask": "0x1", "Data_LA": "1", "PEBS": "2", "SampleAfterValue": "20011" },
 { "EventName": "MEM_TRANS_RETIRED.LOAD_LATENCY_GT_4", "EventCode": "0xcd", "MSRIndex": "0x3F6", "MSRValue": "0x4",
   "UMask": "0x1", "BriefDescript6ion": "x", "PEBS": "2", "SampleAfterValue": "100003" },
 { "EventName": "OFFCORE_RESPONSE.DEMAND_CODE_RD.L3_MISS", "EventCode": "0xB7, 0xBB", "MSRIndex": "0x1a6,0x1a7",
   "MSRValue": "0x3FFC400004", "UMask": "0x1", "SampleAfterValue": "100003" },
 { "EventName": "WIDE", "EventCode": "0xe4", "UMask": "0x80201", "SampleAfterValue": "100003" },
 { "EventName": "TWO_MASKS", "EventCode": "0xe5", "UMask": "0x4201", "SampleAfterValue": "100003" },
 { "EventName": "NOTHING", "SampleAfterValue": "100003" }
]"#;

#[test]
fn intel_events_in_linux_lists_keep_register_counters_and_threads() {
    let imported = import(Format::LinuxPmuEvents, &[("skylake.json", SKYLAKE)]).unwrap();
    assert_eq!(
        imported.text,
        r#"[cpu.events]
TWO_MASKS = { code = 0xe5, unit-mask = 0x01, second-mask = 0x42 }

[cpu.events.CPU_CLK_UNHALTED]
code = 0x00
masks.REF_TSC = { bits = 0x03, fixed = 2 }
masks.THREAD_P_ANY = { bits = 0x00, code = 0x3c, any-thread = true }

[cpu.events.INST_RETIRED]
code = 0x00
masks.ANY = { bits = 0x01, fixed = 0 }
masks.PREC_DIST = { bits = 0x01, fixed = 0, fixed-only = true }

[cpu.events.L1D_PEND_MISS]
code = 0x48
counters = [2]
masks.PENDING = 0x01

[cpu.events.L2_RQSTS]
code = 0x24
masks.MISS = 0x3f

[cpu.events.MEM_TRANS_RETIRED]
code = 0xcd
register = 0x3f6
register-value = true
unit-mask = 0x01
masks.LOAD_LATENCY_GT_16 = { bits = 0x01, value = 0x10 }
masks.LOAD_LATENCY_GT_4 = { bits = 0x01, value = 0x4 }

[cpu.events.OFFCORE_RESPONSE]
code = 0xb7
register = 0x1a6
register-value = true
unit-mask = 0x01
masks."DEMAND_CODE_RD.L3_MISS" = { bits = 0x01, value = 0x3ffc400004 }
"#
    );
    assert_eq!(
        imported.left_out,
        [
            "the key `BriefDescript6ion` is not known and was not read: 1 have it, MEM_TRANS_RETIRED.LOAD_LATENCY_GT_4 first",
            "WIDE: its unit mask is too large",
            "NOTHING: its number is not known",
        ]
    );
}

#[test]
fn masks_that_may_be_numbers_are_not_put_together() {
    let row = |name: &str, mask: u8| {
        format!(r#"{{ "EventName": "{name}", "EventCode": "0x0a", "UMask": "{mask:#x}" }}"#)
    };
    let list = |rows: &[String]| format!("[{}]", rows.join(","));
    let numbers = list(&[
        row("ops.add", 1),
        row("ops.sub", 2),
        row("ops.mul", 3),
        row("ops.all", 15),
    ]);
    let imported = import(Format::LinuxPmuEvents, &[("x.json", &numbers)]).unwrap();
    assert!(!imported.text.contains("combine"), "{}", imported.text);
    assert_eq!(
        imported.left_out,
        ["ops: its masks are not put together, ops:add:sub being ops.mul"]
    );
    let bits = list(&[row("fill.a", 1), row("fill.b", 2), row("fill.all", 3)]);
    let imported = import(Format::LinuxPmuEvents, &[("x.json", &bits)]).unwrap();
    assert!(
        imported.text.contains("combine = true"),
        "{}",
        imported.text
    );
    assert!(
        imported
            .text
            .contains(r#"masks.all = { bits = 0x03, same-as = "fill:a:b" }"#),
        "{}",
        imported.text
    );
    assert_eq!(imported.left_out, [""; 0]);
    let file = format!(
        "[[cpu]]\nid = \"x-a\"\nscheme = \"amd-10h\"\n{}",
        imported.text
    );
    assert_eq!(check_text("f", &file, &Database::embedded()), []);
}

#[test]
fn files_of_another_form_are_refused_by_name() {
    for text in ["", "3", "{}", "{\"Events\": 3}", "[", "\u{0}"] {
        let error = import(Format::IntelPerfmon, &[("bad.json", text)]).unwrap_err();
        assert!(
            error.to_string().starts_with("cannot import bad.json"),
            "{error}"
        );
    }
    let junk = r#"[ 1, null, {}, { "EventName": "A", "EventCode": "x", "UMask": [] } ]"#;
    let imported = import(Format::IntelPerfmon, &[("junk.json", junk)]).unwrap();
    assert_eq!(imported.events, 0);
}

#[test]
fn a_list_becomes_terms_and_tells_what_it_leaves_out() {
    let linux = r#"[
        { "EventName": "UNC_Q_A", "EventCode": "0x2", "UMask": "0x8", "Unit": "QPI", "PerPkg": "1" },
        { "EventName": "UNC_U_A", "EventCode": "0x2", "Unit": "UBOX" },
        { "EventName": "X.Y", "Unit": "L3PMC", "EventCode": "0x9a", "ThreadMask": "0x3", "ScaleUnit": "64Bytes" },
        { "EventName": "F", "Unit": "IIO", "EventCode": "0x83", "PortMask": "0x01", "FCMask": "0x0", "Filter": "ch_mask=0x1f" },
        { "EventName": "INST", "EventCode": "0xc0" },
        { "MetricName": "m", "Unit": "QPI", "MetricExpr": "UNC_Q_A / 2" },
        { "EventName": "ODD", "Unit": "QPI", "EventCode": "0x1", "NewKey": "1" },
        { "EventName": "unc_q_a", "EventCode": "0x3", "Unit": "QPI" },
        { "EventName": "unc_u_a", "EventCode": "0x2", "Unit": "UBOX" }
    ]"#;
    let intel = r#"{ "Events": [
        { "EventName": "UNC_Q_A", "EventCode": "0x2", "Unit": "QPI LL", "ExtSel": "1" },
        { "EventName": "UNC_U_A", "EventCode": "0x2", "Unit": "UBOX", "ExtSel": "1" }
    ] }"#;
    let files = [("uncore.json", linux), ("own.json", intel)];
    let imported = import(Format::LinuxUncore, &files).unwrap();
    assert_eq!(
        imported.text,
        "[uncore.pmus.amd_l3]\n\
         \"X.Y\" = { terms = \"event=0x9a,threadmask=0x03\", scale-unit = \"64Bytes\" }\n\
         \n[uncore.pmus.uncore_iio]\nF = \"event=0x83,ch_mask=0x1f\"\n\
         \n[uncore.pmus.uncore_qpi]\nUNC_Q_A = \"event=0x102,umask=0x08\"\n\
         \n[uncore.pmus.uncore_ubox]\nUNC_U_A = \"event=0x02\"\n"
    );
    assert_eq!(imported.events, 4);
    assert_eq!(
        imported.left_out,
        [
            "ODD: the key NewKey is not known",
            "unc_q_a: it is uncore_qpi \"event=0x103\", and already uncore_qpi \"event=0x102,umask=0x08\"",
        ]
    );
}
