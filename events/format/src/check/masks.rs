//! Unit masks that are put together into the bits of another one.

use super::Noted;
use crate::bits::flag;
use crate::masks::Together;
use crate::model::{Cpu, EventEntry};
use crate::printable::shortened;
use crate::strings::Strings;

/// Notes each mask whose bits others of its event have together, so that their names would count it: the
/// unit masks of that event are numbers, not bits. It is meant where the mask is the default or `same-as` them.
pub(super) fn check(cpu: &Cpu, strings: &Strings, noted: &mut Noted) {
    let of_one_event = |a: &EventEntry, b: &EventEntry| a.event(strings) == b.event(strings);
    for masks in cpu.entries.chunk_by(of_one_event) {
        let combining = masks
            .iter()
            .filter(|mask| mask.bits.flags & flag::COMBINES != 0);
        let mut parts: Vec<&EventEntry> = combining.collect();
        parts.sort_by_key(|mask| beside_the_mask(mask));
        let parts = parts.chunk_by(|a, b| beside_the_mask(a) == beside_the_mask(b));
        for parts in parts.filter(|parts| parts.len() > 1) {
            let mut named = Vec::new();
            for mask in parts {
                named.push((mask.bits.unit_mask, mask.mask(strings)));
            }
            let together = Together::new(&named);
            let same = |mask: &&EventEntry| beside_the_mask(mask) == beside_the_mask(parts[0]);
            for mask in masks.iter().filter(same) {
                let meant = !mask.same_as.is_empty() || mask.bits.flags & flag::DEFAULT != 0;
                if let Some(names) = together.names(mask.bits.unit_mask)
                    && !meant
                {
                    let name = shortened(strings.get(mask.name));
                    let names = shortened(&format!("{}:{}", mask.event(strings), names.join(":")));
                    noted.push((
                        mask.location,
                        format!(
                            "`{names}` counts {name}; say `same-as` if that is meant, else leave out `combine`"
                        ),
                    ));
                }
            }
        }
    }
}

/// Returns what masks need in common to be put together.
fn beside_the_mask(mask: &EventEntry) -> impl Ord + use<> {
    let bits = mask.bits;
    (
        (bits.code, bits.flags & (flag::GROUP | flag::ENCODED)),
        (bits.second_mask, bits.counter_mask),
        (bits.register, bits.value),
    )
}
