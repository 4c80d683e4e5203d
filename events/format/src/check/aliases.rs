//! Checks aliases, and gives each table of them to the CPU entries that it names.

use std::collections::HashMap;

use super::{Noted, twice};
use crate::BaseLayer;
use crate::model::{Aliases, Cpu, by_name};
use crate::printable::shortened;
use crate::strings::Strings;

/// Gives each table to its CPU entries, and returns the entries by id: with those that a layer only adds aliases to.
pub(super) fn attach(
    cpus: &mut Vec<Cpu>,
    aliases: &[Aliases],
    strings: &Strings,
    mut by_id: HashMap<String, usize>,
    below: &dyn BaseLayer,
    noted: &mut Noted,
) -> HashMap<String, usize> {
    for (at, table) in aliases.iter().enumerate() {
        for (id, location) in &table.cpus {
            let mut note = |what| noted.push((*location, format!("`{}` {what}", shortened(id))));
            let known = by_id.get(id).copied();
            let cpu = match known {
                Some(cpu) => cpu,
                None if below.scheme(id).is_some() => {
                    cpus.push(Cpu::empty(id, *location));
                    by_id.insert(id.clone(), cpus.len() - 1);
                    cpus.len() - 1
                }
                None => {
                    note("is no CPU entry");
                    continue;
                }
            };
            if cpus[cpu].aliases.replace(at).is_some() {
                note("has aliases in another table already");
            }
        }
        for entry in twice(&by_name(&table.entries, strings), strings) {
            let name = shortened(strings.get(entry.name));
            noted.push((entry.location, format!("there is another alias `{name}`")));
        }
    }
    by_id
}
