//! Text of events: what is read is written as text that reads back as the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use quipu_hal::text::{parse_cpu_list, parse_list};
use quipu_hal::{EventSpec, GroupSpec};

fuzz_target!(|text: &str| {
    let _ = parse_cpu_list(text);
    if let Ok(groups) = parse_list(text) {
        let written: Vec<String> = groups.iter().map(ToString::to_string).collect();
        let again = parse_list(&written.join(",")).expect("it was written by Quipu");
        assert_eq!(groups, again);
    }
    if let Ok(group) = text.parse::<GroupSpec>() {
        assert_eq!(group.to_string().parse().as_ref(), Ok(&group));
    }
    if let Ok(event) = text.parse::<EventSpec>() {
        assert_eq!(event.to_string().parse().as_ref(), Ok(&event));
    }
});
