//! Text of events: what is read is written as text that reads back as the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use quipu_text::{NoNames, parse, parse_cpu_list, parse_list, parse_spec};

fuzz_target!(|text: &str| {
    let _ = parse_cpu_list(text);
    if let Ok(groups) = parse_list(text, &NoNames) {
        let written: Vec<String> = groups.iter().map(ToString::to_string).collect();
        let again = parse_list(&written.join(","), &NoNames).expect("it was written by Quipu");
        assert_eq!(groups, again);
    }
    for group in parse(text, &NoNames).unwrap_or_default() {
        for member in group.members {
            assert!(text.contains(member.as_written));
            let alone = parse(member.as_written, &NoNames).expect("it was read before");
            assert_eq!(alone[0].members[0].spec.event, member.spec.event);
        }
    }
    if let Ok(event) = parse_spec(text, &NoNames) {
        assert_eq!(parse_spec(&event.to_string(), &NoNames).as_ref(), Ok(&event));
    }
});
