//! The text of a record.
//!
//! A header, the boot it is of where that is known, the process, a line for each step (address,
//! mask and value in hexadecimal), and `end`: without it the record was never finished, and nothing
//! had been written to a register yet.

use std::fmt::Write;

use crate::guard::RestoreStep;

const HEADER: &str = "quipu-msr 1";

pub(super) fn compose(boot: Option<&str>, steps: &[RestoreStep]) -> String {
    let mut text = format!(
        "{HEADER}\nboot {}\npid {}\n",
        boot.unwrap_or("-"),
        std::process::id()
    );
    for step in steps {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{:x} {:x} {:x}", step.address, step.mask, step.value);
    }
    text.push_str("end\n");
    text
}

/// Returns the steps of a complete record, or `None` if it is not one.
pub(super) fn steps(text: &str) -> Option<Vec<RestoreStep>> {
    let mut lines = text.strip_suffix("end\n")?.lines();
    (lines.next()? == HEADER).then_some(())?;
    lines.next()?.strip_prefix("boot ")?;
    lines.next()?.strip_prefix("pid ")?;
    lines.map(step).collect()
}

fn step(line: &str) -> Option<RestoreStep> {
    let mut words = line.split(' ');
    let mut word = || u64::from_str_radix(words.next()?, 16).ok();
    let step = RestoreStep {
        address: word()?.try_into().ok()?,
        mask: word()?,
        value: word()?,
    };
    words.next().is_none().then_some(step)
}

pub(super) fn is_complete(text: &str) -> bool {
    steps(text).is_some()
}

/// Returns the id of the process that wrote a record.
pub(super) fn owner(text: &str) -> Option<u32> {
    field(text, "pid ")?.parse().ok()
}

/// Returns true if the machine has rebooted since, which has reset every register.
pub(super) fn is_of_another_boot(text: &str, boot: Option<&str>) -> bool {
    match (field(text, "boot "), boot) {
        (Some(then), Some(now)) => then != "-" && then != now,
        _ => false,
    }
}

fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_record_reads_as_it_was_written(
            wanted in prop::collection::vec((any::<u32>(), any::<u64>(), any::<u64>()), 0..20),
        ) {
            let wanted: Vec<_> = wanted
                .into_iter()
                .map(|(address, mask, value)| RestoreStep { address, mask, value })
                .collect();
            let text = compose(Some("x"), &wanted);
            prop_assert_eq!(steps(&text), Some(wanted));
            prop_assert_eq!(owner(&text), Some(std::process::id()));
            prop_assert!(!is_of_another_boot(&text, Some("x")));
            prop_assert!(is_of_another_boot(&text, Some("y")));
            for end in 0..text.len() {
                prop_assert_eq!(steps(&text[..end]), None);
            }
        }

        #[test]
        fn no_text_makes_it_panic(text in "(quipu-msr 1\nboot -\npid 1\n)?[0-9a-f \n]{0,80}(end\n)?") {
            let _ = (steps(&text), owner(&text));
        }
    }
}
