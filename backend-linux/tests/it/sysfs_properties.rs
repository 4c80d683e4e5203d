//! Properties for any text that a PMU's files could hold: no panic, and the bits where they belong.

use std::fs;

use proptest::prelude::*;
use quipu_hal::{PerfConfig, PmuEvent};
use quipu_linux::sysfs::{Field, SysfsPmus};
use quipu_text::parse_cpu_list;

/// The ranges of a mask, as a format file has them.
fn ranges(mask: u64) -> String {
    let bits: Vec<String> = (0..64)
        .filter(|bit| mask >> bit & 1 == 1)
        .map(|bit| bit.to_string())
        .collect();
    bits.join(",")
}

/// Text made of what such files are made of, in any order.
fn near_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("config".to_owned()),
        Just("event".to_owned()),
        Just("0x".to_owned()),
        Just("99999999999999999999".to_owned()),
        "[:=,?\\-. \n\0]",
        "[0-9]{1,3}",
        any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn a_field_holds_the_bits_of_a_value_in_order(mask in 1u64.., value: u64, before: u64) {
        let field: Field = format!("config1:{}", ranges(mask)).parse().unwrap();
        prop_assert_eq!(field.mask(), mask);
        prop_assert_eq!(field.to_string().parse::<Field>().unwrap(), field);
        let mut config = PerfConfig::new(0, 0).with_config1(before);
        field.set(&mut config, value & field.max());
        prop_assert_eq!(config.config1 & !mask, before & !mask);
        let bits = (0..64).filter(|bit| mask >> bit & 1 == 1);
        let read = bits.enumerate().map(|(i, bit)| (config.config1 >> bit & 1) << i).sum::<u64>();
        prop_assert_eq!(read, value & field.max());
    }

    #[test]
    fn lists_of_cpus_are_ascending_whatever_they_are(text in near_text()) {
        if let Ok(cpus) = parse_cpu_list(&text) {
            prop_assert!(cpus.is_sorted_by(|a, b| a < b));
        }
    }

    #[test]
    fn no_text_in_a_pmus_files_panics(
        type_ in near_text(),
        cpumask in near_text(),
        format in near_text(),
        event in near_text(),
        scale in near_text(),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let pmu = dir.path().join("pmu");
        fs::create_dir_all(pmu.join("format")).unwrap();
        fs::create_dir_all(pmu.join("events")).unwrap();
        for (file, text) in [
            ("type", "7"),
            ("cpumask", &cpumask),
            ("format/event", &format),
            ("events/odd", &event),
            ("events/odd.scale", &scale),
        ] {
            fs::write(pmu.join(file), text).unwrap();
        }
        let pmus = SysfsPmus::at(dir.path());
        for terms in [PmuEvent::new("pmu").with("odd"), PmuEvent::new("pmu").with_value("event", 1)] {
            if let Ok(resolved) = pmus.resolve(&terms) {
                prop_assert!(resolved.info.scale.is_finite());
                prop_assert_eq!(resolved.config.type_, 7);
            }
        }
        let listed = pmus.pmus().unwrap();
        prop_assert_eq!(listed.len(), usize::from(pmus.pmu("pmu").is_ok()));
        fs::write(pmu.join("type"), &type_).unwrap();
        if let Ok(pmu) = pmus.pmu("pmu") {
            prop_assert_eq!(type_.trim_end().parse(), Ok(pmu.type_));
        }
    }
}
