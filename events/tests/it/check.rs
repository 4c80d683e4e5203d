//! Every finding in an event file, with its location.

use std::path::Path;

use proptest::prelude::*;
use quipu_events::{Database, check_text};
use quipu_hal::{Event, EventMap, Filter};

/// The findings as text, without the file's name.
fn findings(text: &str) -> Vec<String> {
    check_text("f", text, &Database::embedded())
        .iter()
        .map(|finding| finding.to_string().trim_start_matches("f:").to_owned())
        .collect()
}

/// A CPU entry with something more in it.
fn cpu(rest: &str) -> String {
    format!("[[cpu]]\nid = \"x-a\"\nscheme = \"amd-10h\"\n{rest}")
}

#[test]
fn every_finding_is_reported_with_line_and_column() {
    let text = "\
[[cpu]]
id = \"Intel\"
scheme = \"p7\"
nmae = \"x\"

[[cpu]]
id = \"x-a\"
scheme = \"p6\"
counters = { general = 2, general-width = 40 }
backends = { linux = [\"linux\", \"lunix\"], openbsd = [\"pctr\", \"pctr\"], plan9 = [] }

[cpu.events]
A = 0x1ff
B = { code = 1, counters = [0, 5] }
C = { code = 1, counters = [0] }
D = { code = 2, masks = { M = 0x100, N = { bits = 1, edge = 3 } } }

[cpu.presets]
P = \"A + MISSING\"
Q = \"A +\"
";
    assert_eq!(
        findings(text),
        [
            "2:6: `Intel` gives no `scheme`, and no other entry gives one for it; did you mean `intel-adl-core`?",
            "2:6: `Intel` is no id: lower-case letters and digits in words joined by hyphens, vendor first",
            "3:10: unknown encoding scheme `p7`; there are p5, p6, intel-core, amd-k7, amd-10h, armv8, perf",
            "4:1: unknown key `nmae`; did you mean `name`?",
            "10:32: unknown backend `lunix`; did you mean `linux`?",
            "10:61: `pctr` is there twice",
            "10:70: unknown key `plan9`; known here are linux, openbsd, freebsd, dragonfly, netbsd",
            "13:1: A: event number 0x1ff is larger than the scheme's 0xff",
            "14:1: B: `counters` names one beyond the 2 there are",
            "15:1: C has the same bits as B; say `same-as` if that is meant",
            "16:31: `M` is 0x100, which is not between 0x0 and 0xff",
            "16:61: `edge` wants true or false, not a number",
            "19:5: P names `MISSING`: there is no such event",
            "20:5: Q: at character 4: the formula ends where something is missing",
        ]
    );
}

#[test]
fn backends_are_quipus_or_names_of_a_programs_own_and_consent_is_to_those_that_need_it() {
    let text = "\
allow = [\"msr\", \"linux\"]
[[cpu]]
id = \"amd-zen4\"
backends = { linux = [\"acme-2\", \"posix\", \"Acme\", \"\"], freebsd = [\"hwpmc\", \"mrs\"] }
";
    assert_eq!(
        findings(text),
        [
            "1:17: `linux` needs no consent, or is no backend; msr does",
            "4:42: `Acme` is no name of a backend; there are hwpmc, linux, msr, pctr, posix, and those that programs \
             register, in lower-case letters",
            "4:50: `` is no name of a backend; there are hwpmc, linux, msr, pctr, posix, and those that programs \
             register, in lower-case letters",
            "4:75: unknown backend `mrs`; did you mean `msr`?",
        ]
    );
    assert!(findings("allow = []\n[[cpu]]\nid = \"amd-zen4\"\n").is_empty());
}

#[test]
fn every_wrong_value_of_a_table_is_reported() {
    let text = "\
[[cpu]]
id = \"x-a\"
scheme = \"amd-10h\"
name = -1
fallback = 1.5
match = [{ vendor = 7, family = 0x200, models = [3, \"9-2\", 0x100, 1979-05-27], steppings = [] }, 4]
counters = { general = 4 }
backends = [\"linux\"]

[cpu.events]
A = \"1\"
B = { bits = 1, code = 18446744073709551616, edge = 1, errata = [1, \"2\"], invert = \"no\" }
C = { code = 1, masks = { M = [], N = { bit = 3, bits = 3, group = 4 } } }

[cpu.presets]
P = 1
Q = { reason = \"\" }
";
    assert_eq!(
        findings(text),
        [
            "4:8: `name` wants a string, not a number",
            "5:12: `fallback` wants true or false, not a fraction",
            "6:21: `vendor` wants a string, not a number",
            "6:33: `family` is 0x200, which is not between 0x0 and 0x10e",
            "6:53: `models` is `9-2`, which is no range of numbers to 0xff, such as \"0x10-0x1f\"",
            "6:60: `models` is 0x100, which is not between 0x0 and 0xff",
            "6:67: `models` wants a number or a range, not a date",
            "6:92: `steppings` wants a number or a range, not an array",
            "6:98: `match` wants a table, not a number",
            "7:12: `general` needs `general-width` beside it",
            "8:12: `backends` wants a table, not an array",
            "11:5: `A` wants a table or a number, not a string",
            "12:7: unknown key `bits`; known here are code, unit-mask, second-mask, counter-mask, edge, invert, any-thread, in-tx, in-tx-cp, equal, clocks, counters, fixed, fixed-only, register, value, register-value, modifiers, same-as, description, unit, er…",
            "12:24: `code` is 18446744073709551616, which is not between 0x0 and 0xffffffffffffffff",
            "12:53: `edge` wants true or false, not a number",
            "12:66: `errata` wants a string, not a number",
            "12:84: `invert` wants true or false, not a string",
            "13:31: `M` wants a table or a number, not an array",
            "13:41: unknown key `bit`; did you mean `bits`?",
            "13:68: `group` is 4, which is not between 0x1 and 0x3",
            "16:5: `P` wants a string, not a number",
            "17:5: `Q` says neither what it is nor why it is absent",
            "17:7: unknown key `reason`; known here are absent",
        ]
    );
}

#[test]
fn words_of_others_and_misspelt_vendors_are_known() {
    let text = "\
[[cpu]]
id = \"x-a\"
scheme = \"intel-core\"
counters = { general = 4, general-width = 48 }
match = [{ vendor = \"GenuineIntl\", family = 6 }, { vendor = \"Me\", family = 6 }]

[cpu.events]
A = { event = 1 }
B = { code = 2, umask = 1 }
";
    assert_eq!(
        findings(text),
        [
            "5:21: unknown vendor `GenuineIntl`; did you mean `GenuineIntel`?",
            "5:61: a vendor has the 12 characters that CPUID leaf 0 gives, as `GenuineIntel`",
            "8:5: `A` has no `code`",
            "8:7: unknown key `event`; here it is `code`",
            "9:17: unknown key `umask`; here it is `unit-mask`",
        ]
    );
}

#[test]
fn syntax_errors_do_not_hide_the_rest() {
    let found = findings("[[cpu]]\nid = \"x-a\"\nscheme = \"p6\"\nname = \nbsae = 1\n");
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].starts_with("4:8: not valid TOML"), "{found:?}");
    assert_eq!(found[1], "5:1: unknown key `bsae`; did you mean `base`?");
}

#[test]
fn duplicates_are_found_in_any_letter_case() {
    let found = findings(&cpu("[cpu.events]\nabc = 1\nABC = 2\n"));
    assert_eq!(
        found,
        ["5:1: there is another event `abc` (letter case does not distinguish events)"]
    );
    let found = findings(&cpu("[cpu.events]\nabc = 1\nabc = 2\n"));
    assert!(
        found[0].starts_with("6:1: not valid TOML: duplicate key"),
        "{found:?}"
    );
}

#[test]
fn entries_that_can_never_match_are_found() {
    let rule = |id: &str, rest: &str| {
        format!(
            "[[cpu]]\nid = \"x-{id}\"\nscheme = \"p6\"\nmatch = [{{ vendor = \"GenuineIntel\", family = 6{rest} }}]\n"
        )
    };
    let halves = rule("a", ", models = [\"0-0x7f\"]") + &rule("b", ", models = [\"0x80-0xff\"]");
    let found = findings(&(halves.clone() + &rule("c", ", models = [\"0x70-0x90\"]")));
    assert_eq!(
        found,
        ["10:6: `x-c` can never match: earlier entries take every CPU it describes"]
    );
    let reachable = rule("a", ", models = [1], steppings = \"0-3\"") + &rule("b", ", models = [1]");
    assert_eq!(findings(&reachable), [""; 0]);
    let hybrid = rule("a", ", core-type = \"atom\"") + &rule("b", ", core-type = \"core\"");
    assert_eq!(findings(&hybrid), [""; 0]);
    let shadowed = rule("a", "") + &rule("b", ", core-type = \"core\"");
    assert_eq!(findings(&shadowed).len(), 1);
}

#[test]
fn same_as_must_be_the_same() {
    let good = cpu("[cpu.events]\nA = 1\nB = { code = 1, same-as = \"A\" }\n");
    assert_eq!(findings(&good), [""; 0]);
    let bad = cpu(
        "[cpu.events]\nA = 1\nB = { code = 2, same-as = \"A\" }\nC = { code = 1, same-as = \"Z\" }\n",
    );
    assert_eq!(
        findings(&bad),
        [
            "6:1: B is not the same as `A`: its bits differ",
            "7:1: C: `same-as` names `Z`: there is no such event",
        ]
    );
}

#[test]
fn a_file_may_build_on_the_layers_below() {
    let good =
        "[[cpu]]\nid = \"intel-p6\"\n[cpu.presets]\nMINE = \"INST_RETIRED / CPU_CLK_UNHALTED\"\n";
    assert_eq!(findings(good), [""; 0]);
    let bad = good.replace("INST_RETIRED /", "INST_RETIRE /");
    assert_eq!(findings(&bad).len(), 1);
}

#[test]
fn formulas_may_use_generalized_events_of_lower_layers_and_software_events() {
    let preset = |formula: &str| {
        findings(&format!(
            "[[cpu]]\nid = \"amd-zen4\"\n[cpu.presets]\nP = \"{formula}\"\n"
        ))
    };
    for formula in [
        "cycles - instructions",
        "minor-faults + major-faults",
        "ex_ret_instr / task-clock",
    ] {
        assert_eq!(preset(formula), [""; 0], "{formula}");
    }
    assert_eq!(
        preset("bus-cycles + 1"),
        ["4:5: P uses `bus-cycles`, which this entry does not define"]
    );
    assert_eq!(preset("2 * 2"), ["4:5: P counts no event"]);
    let new = cpu("[cpu.presets]\nP = \"cycles + page-faults\"\n");
    assert_eq!(
        findings(&new),
        ["5:5: P uses `cycles`, which this entry does not define"]
    );
}

#[test]
fn bases_end_somewhere_near() {
    let entry = |id: &str, scheme: &str, base: &str| {
        format!("[[cpu]]\nid = \"x-{id}\"\nscheme = \"{scheme}\"\nbase = \"{base}\"\n")
    };
    let circle = entry("a", "p6", "x-b") + &entry("b", "p6", "x-c") + &entry("c", "p6", "x-a");
    assert_eq!(
        findings(&circle),
        [
            "2:6: its bases lead back to it",
            "6:6: its bases lead back to it",
            "10:6: its bases lead back to it",
        ]
    );
    let chain = |length: usize| -> String {
        let bases = (0..length).map(|n| entry(&n.to_string(), "p6", &format!("x-{}", n + 1)));
        bases.collect::<String>() + &entry(&length.to_string(), "p6", "intel-p6")
    };
    assert_eq!(findings(&chain(3)), [""; 0]);
    assert_eq!(
        findings(&chain(4)),
        ["2:6: it has more than 4 bases, one on the other"]
    );
    assert_eq!(
        findings(&entry("a", "p5", "intel-p6")),
        ["2:6: the base `intel-p6` has another scheme"]
    );
}

#[test]
fn hostile_files_are_findings_and_nothing_else() {
    let deep_array = format!("a = {}", "[".repeat(200_000));
    let deep_table = format!("a = {}", "{a=".repeat(100_000));
    let deep_key = format!("[{}a]", "a.".repeat(100_000));
    let number = cpu(&format!("[cpu.events]\nA = {}\n", "9".repeat(1_000_000)));
    let negative = cpu("[cpu.events]\nA = -1\nB = 0xffffffffffffffffff\nC = 1e400\nD = nan\n");
    let junk = "\u{1}é]{=\"".repeat(200_000);
    let lines = "=\n".repeat(500_000);
    let formula = cpu(&format!(
        "[cpu.presets]\nP = \"{}\"\n",
        "(".repeat(1_000_000)
    ));
    for text in [
        deep_array, deep_table, deep_key, number, negative, junk, lines, formula,
    ] {
        let found = check_text("f", &text, &Database::embedded());
        assert!(!found.is_empty());
        assert!(found.len() <= 1001, "{}", found.len());
        assert!(found.iter().all(|finding| finding.message.len() < 1000));
    }
    let many: String = (0..3000)
        .map(|n| format!("[[cpu]]\nid = \"x-{n}\"\nscheme = \"p6\"\nmatch = [{{ vendor = \"GenuineIntel\", family = 6 }}]\n"))
        .collect();
    assert!(!check_text("f", &many, &Database::embedded()).is_empty());
}

#[test]
fn names_that_can_never_be_reached_are_findings() {
    let text = "[[cpu]]\nid = \"amd-zen4\"\n[cpu.events]\ncycles = 0x10\nMINE = 0x11\nr1c0 = 0x12\n\
        L1D = { code = 0x13, masks = { A = 1 } }\n[cpu.presets]\nLLC = \"MINE\"\nMINE = \"MINE + 1\"\n\
        ex_ret_instr = \"MINE + 1\"\nGOOD = \"MINE + 1\"\n";
    let read = |name| {
        format!(
            "`{name}` is read as the event that every system has by that name, never as this one"
        )
    };
    assert_eq!(
        findings(text),
        [
            format!("4:1: {}", read("cycles")),
            format!("6:1: {}", read("r1c0")),
            format!("9:7: {}", read("LLC")),
            "10:8: the event `MINE` hides this preset".to_owned(),
            "11:16: the event `ex_ret_instr` hides this preset".to_owned(),
        ]
    );
}

#[test]
fn formulas_and_ids_that_cannot_be_used_get_the_right_word() {
    let text = "[[cpu]]\nid = \"amd-zen4\"\n[cpu.presets]\nA = \"B + 1\"\nB = \"ex_ret_instr + 1\"\nC = \"C\"\n\
        D = \"PAPI_BR_NTK + 1\"\nE = \"ex_ret_instr / 0\"\nF = \"ex_ret_instr / (1 - 1)\"\nG = \"0 / ex_ret_instr\"\n";
    let is_preset = "there is no such event; a formula names events, and that is a preset";
    assert_eq!(
        findings(text),
        [
            format!("4:5: A names `B`: {is_preset}"),
            format!("6:5: C names `C`: {is_preset}"),
            format!("7:5: D names `PAPI_BR_NTK`: {is_preset}"),
            "8:5: E: at character 15: this is a division by zero".to_owned(),
            "9:5: F: at character 15: this is a division by zero".to_owned(),
        ]
    );
    assert_eq!(
        findings("[[cpu]]\nid = \"amd-zen33\"\n"),
        [
            "2:6: `amd-zen33` gives no `scheme`, and no other entry gives one for it; did you mean `amd-zen3`?"
        ]
    );
}

#[test]
fn no_finding_controls_a_terminal() {
    let text = "[[cpu]]\nid = \"x-\\u001b[31m\"\nscheme = \"\\u0000\"\n[cpu.events]\n\"a\\u001b]0;x\\u0007\" = 1\n\
        B = { code = 1, \"\\u009b\" = 2 }\n[cpu.presets]\n\"\\u007f\" = \"B\"\nP = \"\\u001b\"\n";
    let found = findings(text);
    assert!(found.len() >= 5, "{found:#?}");
    for finding in found {
        assert!(!finding.contains(char::is_control), "{finding:?}");
    }
    let error = Database::embedded()
        .cpu("amd-zen4")
        .unwrap()
        .events_for(quipu_events::Interface::Linux);
    let name = Event::Named("a\u{1b}[31mb".to_owned());
    let error = format!("{:#}", error.resolve(&name, Filter::all()).unwrap_err());
    assert!(!error.contains(char::is_control), "{error:?}");
}

#[test]
fn a_cpu_says_which_modifiers_it_has() {
    let text = |modifiers: &str| {
        format!(
            "[[cpu]]\nid = \"x-a\"\nscheme = \"intel-core\"\nmodifiers = [{modifiers}]\n[cpu.events]\nA = 1\n\
             B = {{ code = 2, modifiers = [\"any-thread\"] }}\n[cpu.generalized]\ncycles = \"A:t\"\nbranches = \"B:t\"\n"
        )
    };
    assert_eq!(findings(&text("\"any-thread\"")), [""; 0]);
    assert_eq!(
        findings(&text("\"edge\"")),
        ["9:10: cycles names `A:t`: this event has no modifier `t`; did you mean `A`?"]
    );
    let unknown = &findings(&text("\"precise\""))[0];
    assert!(
        unknown.starts_with("4:14: unknown modifier `precise`"),
        "{unknown}"
    );
}

#[test]
fn a_layer_with_findings_is_refused_with_the_first() {
    let refused = |text| {
        let error = Database::embedded()
            .with_text(Path::new("mine.toml"), text)
            .unwrap_err();
        format!("{error:#}")
    };
    let first = "cannot use the event file: mine.toml:1:1: this CPU entry has no `id`";
    assert_eq!(refused("[[cpu]]\n"), first);
    assert_eq!(
        refused("[[cpu]]\n[[cpu]]\n"),
        format!("{first}; `quipu events check mine.toml` lists all 2")
    );
}

/// Pieces that event files are made of, to be put together wrongly.
const PIECES: [&str; 30] = [
    "[[cpu]]\n",
    "[cpu]\n",
    "[cpu.events]\n",
    "[cpu.events.A]\n",
    "[cpu.presets]\n",
    "id = \"x-a\"\n",
    "scheme = \"p6\"\n",
    "scheme = \"intel-core\"\n",
    "base = \"x-a\"\n",
    "base = \"intel-p6\"\n",
    "match = [{ vendor = \"GenuineIntel\", family = 6 }]\n",
    "match = [{ part = 1 }]\n",
    "counters = { general = 2, general-width = 40 }\n",
    "A = 1\n",
    "a = { code = 1 }\n",
    "B = { code = 2, masks = { M = 1, N = { bits = 2, default = true } } }\n",
    "masks.M = 1\n",
    "code = 3\n",
    "same-as = \"A\"\n",
    "P = \"A + B.M\"\n",
    "P = { absent = \"no\" }\n",
    "\"",
    "[",
    "{",
    "= ",
    "\n",
    "é",
    "0x",
    "cycles = \"A\"\n",
    "[cpu.generalized]\n",
];

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in any::<String>()) {
        let _ = check_text("f", &text, &Database::embedded());
    }

    #[test]
    fn no_mixture_of_pieces_makes_the_parser_panic(
        pieces in proptest::collection::vec(proptest::sample::select(&PIECES[..]), 0..40)
    ) {
        let text = pieces.concat();
        let database = Database::embedded();
        let found = check_text("f", &text, &database);
        let layered = database.with_text(Path::new("f"), &text);
        prop_assert_eq!(found.is_empty(), layered.is_ok());
        if let Ok(layered) = layered {
            for cpu in layered.cpus() {
                prop_assert!(layered.cpu(&cpu.id).is_ok());
            }
        }
    }
}
