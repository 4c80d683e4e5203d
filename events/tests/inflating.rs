//! Sentences are inflated when the first is asked for, and not before.
//!
//! A process of its own: they are inflated once in each.

use allocation_counter::measure;
use quipu_events::{Database, Interface};
use quipu_hal::{Event, EventMap, Filter};

/// More than names and encodings take, and less than the sentences.
const SMALL: u64 = 256 << 10;

#[test]
fn opening_and_resolving_inflates_nothing() {
    let names = [
        "L2_RQSTS.MISS",
        "INST_RETIRED.ANY_P",
        "CPU_CLK_UNHALTED.THREAD_P",
    ];
    let mut misses = None;
    let resolving = measure(|| {
        let table = Database::embedded().cpu("intel-skl").unwrap();
        let events = table.events_for(Interface::Linux);
        for name in names {
            events
                .resolve(&Event::Named(name.into()), Filter::all())
                .unwrap();
        }
        misses = table.event("L2_RQSTS.MISS");
    });
    assert!(resolving.bytes_max < SMALL, "{resolving:?}");
    let misses = misses.unwrap();
    let first = measure(|| assert!(misses.description().is_some()));
    assert!(first.bytes_max > 2 * SMALL, "{first:?}");
    let second = measure(|| assert!(misses.description().is_some()));
    assert_eq!(second.bytes_total, 0);
}
