//! The three ways into the event database: event files, names on a CPU, and vendors' lists. The first
//! byte of an input says which: `f`, `n` or `l`.
#![no_main]

use std::path::Path;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use quipu_events::identify::from_text;
use quipu_events::{Database, Formula, Interface, check_text};
use quipu_hal::{Event, EventMap};
use quipu_import::lists::{Format, import};

static DATABASE: LazyLock<Database> = LazyLock::new(Database::embedded);

fuzz_target!(|input: &[u8]| match input {
    [b'f', file @ ..] => event_file(&DATABASE, file),
    [b'n', name @ ..] => event_name(&DATABASE, name),
    [b'l', list @ ..] => vendors_list(&DATABASE, list),
    _ => {}
});

/// The most findings that are kept of a file, and the one that says so.
const MOST_FINDINGS: usize = 1001;
/// The longest message of a finding, whatever the file says.
const LONGEST_MESSAGE: usize = 1000;

/// An event file: findings are bounded and have a place in the file; a file without any is a layer whose
/// every event encodes and decodes.
fn event_file(database: &Database, input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let findings = check_text("f", &text, database);
    assert!(findings.len() <= MOST_FINDINGS, "{}", findings.len());
    let lines = text.split('\n').count() as u32;
    for finding in &findings {
        assert!(finding.message.len() < LONGEST_MESSAGE, "{finding}");
        assert!((1..=lines).contains(&finding.line), "{finding}");
        assert!(finding.column >= 1, "{finding}");
    }
    let layered = database.with_text(Path::new("f"), &text);
    assert_eq!(findings.is_empty(), layered.is_ok());
    let Ok(layered) = layered else { return };
    // The CPUs of the file, whose ids are there between quotation marks.
    let own = layered.cpus().into_iter().filter(|cpu| {
        let id = &cpu.id;
        text.contains(&format!("\"{id}\"")) || text.contains(&format!("'{id}'"))
    });
    for cpu in own.take(8) {
        let table = layered.cpu(&cpu.id).expect("it is listed");
        for event in table.events().iter().take(64) {
            event_name(&layered, format!("{}\n{}", cpu.id, event.name).as_bytes());
            table.origins(&event.name);
        }
        table.generalized();
        table.presets();
    }
}

/// A CPU's id and a name, a line each: bits that a name has are decoded to a name that has them.
fn event_name(database: &Database, input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let (id, name) = text.split_once('\n').unwrap_or(("intel-skl", &text));
    let _ = from_text(id);
    let _ = Formula::parse(name);
    let Ok(table) = database.cpu(id) else { return };
    let _ = (table.event(name), table.preset(name), table.origins(name));
    let Ok(spec) = quipu_text::parse_spec(name, &quipu_text::NoNames) else {
        return;
    };
    // Raw bits may have some that no name stands for.
    let is_raw = matches!(spec.event, Event::Raw(_));
    for &interface in Interface::ALL {
        let events = table.events_for(interface);
        let Ok(resolved) = events.resolve(&spec.event, spec.filter) else {
            continue;
        };
        let decoded = match table.decode(&resolved.encoding) {
            Ok(decoded) if !is_raw => decoded,
            _ => continue,
        };
        let again = quipu_text::parse_spec(&decoded.name, &quipu_text::NoNames).expect("a decoded name is a name");
        let filter = decoded.levels.unwrap_or(spec.filter);
        let again = events.resolve(&again.event, spec.filter.with_levels(filter));
        let encoding = again.expect("a decoded name resolves").encoding;
        assert_eq!(encoding, resolved.encoding, "{name} and {}", decoded.name);
    }
}

/// A vendor's list: what is imported is an event file, and bounded by the list.
fn vendors_list(database: &Database, input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    for &format in Format::ALL {
        let Ok(imported) = import(format, &[("list.json", &text)]) else {
            continue;
        };
        assert!(imported.text.len() <= 64 * text.len() + 4096);
        let head = "[[cpu]]\nid = \"x-a\"\nscheme = \"intel-core\"\n";
        let findings = check_text("f", &format!("{head}{}", imported.text), database);
        let syntax = findings
            .iter()
            .find(|finding| finding.message.starts_with("not valid TOML"));
        assert!(syntax.is_none(), "{syntax:?} in {}", imported.text);
    }
}
