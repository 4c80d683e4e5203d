//! Unit masks put together: never into bits that have another meaning.

use quipu_events::{CpuTable, Database, EventDetails, Interface, check_text};
use quipu_hal::{Encoding, ErrorKind, Event, EventMap, Filter};

fn encoding(table: &CpuTable, name: &str) -> quipu_hal::Result<Encoding> {
    let event = Event::Named(name.to_owned());
    let resolved = table
        .events_for(Interface::Linux)
        .resolve(&event, Filter::all())?;
    Ok(resolved.encoding)
}

/// Every two masks of every event of every table: where they can be put together and a third has the bits of
/// both, the table says that this is meant.
#[test]
fn no_two_masks_make_a_third_by_accident() {
    let database = Database::embedded();
    let mut pairs = 0;
    let mut found = Vec::new();
    for cpu in database.cpus() {
        let table = database.cpu(&cpu.id).unwrap();
        let events = table.events();
        let same_event = |a: &EventDetails, b: &EventDetails| a.event == b.event;
        for masks in events.chunk_by(same_event) {
            let combines = |mask: &&EventDetails| mask.flags.contains(&"combines");
            let parts: Vec<&EventDetails> = masks.iter().filter(combines).collect();
            if parts.len() < 2 {
                continue;
            }
            let alone: Vec<_> = masks
                .iter()
                .map(|mask| encoding(&table, &mask.name).ok())
                .collect();
            for (at, a) in parts.iter().enumerate() {
                for b in &parts[at + 1..] {
                    // Masks with a bit in common are refused together, which takes a search for names.
                    if a.unit_mask & b.unit_mask != 0 {
                        continue;
                    }
                    let name = format!("{}:{}:{}", a.event, a.mask, b.mask);
                    let Ok(both) = encoding(&table, &name) else {
                        continue;
                    };
                    pairs += 1;
                    let by_accident = masks.iter().zip(&alone).find(|(third, bits)| {
                        ![&a.mask, &b.mask].contains(&&third.mask)
                            && third.same_as.is_none()
                            && !third.is_default
                            && !third.needs_mask
                            && third.group == a.group
                            && bits.as_ref() == Some(&both)
                    });
                    if let Some((third, _)) = by_accident {
                        found.push(format!("{}: {name} is {}", cpu.id, third.name));
                    }
                }
            }
        }
    }
    assert!(found.is_empty(), "{} {found:#?}", found.len());
    assert!(pairs > 5000, "{pairs}");
}

#[test]
fn masks_that_are_numbers_are_refused_together() {
    let database = Database::embedded();
    for (cpu, name) in [
        ("amd-zen4", "fp_ops_retired_by_type:scalar_add:scalar_sub"),
        ("amd-zen5", "fp_ops_retired_by_type:vector_add:vector_sub"),
        (
            "amd-zen5",
            "fp_ret_sse_avx_ops:bfloat16_flops:scalar_single_flops",
        ),
        ("amd-zen6", "fp_pack_512b_ops_ret:fp512_add:fp512_sub"),
        ("amd-10h-shanghai", "MAB_REQUESTS:BUFFER_5:BUFFER_6"),
        ("amd-14h", "MAB_WAIT_CYCLES:DC_BUFFER_1:DC_BUFFER_2"),
        ("intel-core2", "SSE_PRE_EXEC:L1:L2"),
        // The same bit twice.
        ("amd-zen3", "ls_dispatch:ld_dispatch:ld_dispatch"),
        ("amd-zen3", "ls_l1_d_tlb_miss:all:tlb_reload_4k_l2_hit"),
    ] {
        let table = database.cpu(cpu).unwrap();
        let error = encoding(&table, name).expect_err(name);
        assert_eq!(error.kind(), ErrorKind::UnsupportedEvent, "{error:#}");
        let reason = error.reason().unwrap_or_default();
        assert!(
            reason.ends_with("cannot be combined with another"),
            "{error:#}"
        );
    }
}

#[test]
fn masks_that_make_another_are_a_finding_unless_meant() {
    let findings = |masks: &str| -> Vec<String> {
        let text = format!(
            "[[cpu]]\nid = \"x-a\"\nscheme = \"amd-10h\"\n[cpu.events.E]\ncode = 1\ncombine = true\n{masks}"
        );
        let found = check_text("f", &text, &Database::embedded());
        found.iter().map(ToString::to_string).collect()
    };
    assert_eq!(
        findings("masks.A = 1\nmasks.B = 2\nmasks.C = 3\n"),
        ["f:9:7: `E:A:B` counts E.C; say `same-as` if that is meant, else leave out `combine`"]
    );
    assert_eq!(
        findings("masks.A = 1\nmasks.B = 2\nmasks.C = 4\nmasks.D = 7\n"),
        ["f:10:7: `E:A:B:C` counts E.D; say `same-as` if that is meant, else leave out `combine`"]
    );
    let meant = [
        "masks.A = 1\nmasks.B = 2\nmasks.C = { bits = 3, same-as = \"E:A:B\" }\n",
        "masks.A = 1\nmasks.B = 2\nmasks.C = { bits = 3, default = true }\n",
        // Masks that share a bit do not go together, nor do those with another counter mask.
        "masks.A = 3\nmasks.B = 6\nmasks.C = 7\n",
        "masks.A = 1\nmasks.B = { bits = 2, counter-mask = 1 }\nmasks.C = 3\n",
        "masks.A = { bits = 1, alone = true }\nmasks.B = 2\nmasks.C = 3\n",
    ];
    for masks in meant {
        assert_eq!(findings(masks), [""; 0], "{masks}");
    }
}

/// libpfm4's bits of these masks are others, and of some none that count.
#[test]
fn an_event_without_a_mask_is_the_one_with_its_default_mask_by_name() {
    for (cpu, event, default) in [
        ("intel-gnr", "EXE", "AMX_BUSY"),
        ("intel-spr", "EXE", "AMX_BUSY"),
        ("intel-glm", "CPU_CLK_UNHALTED", "CORE_P"),
        ("intel-ivt", "MEM_LOAD_UOPS_LLC_MISS_RETIRED", "LOCAL_DRAM"),
        ("intel-snb", "BR_MISP_RETIRED", "ALL_BRANCHES"),
        ("intel-nhm", "INST_RETIRED", "ANY_P"),
    ] {
        let table = Database::embedded().cpu(cpu).unwrap();
        let bits = |name: &str| encoding(&table, name).unwrap();
        let named = bits(&format!("{event}.{default}"));
        assert_eq!(bits(event), named, "{cpu} {event}");
    }
}
