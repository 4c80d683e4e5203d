//! Checks aliases, and gives each table of them to the CPU entries that it names.

use std::collections::{HashMap, HashSet};

use crate::BaseLayer;
use crate::fields::shortened;
use crate::model::{Aliases, Cpu, Location};

/// Gives each table to its CPU entries, and returns the entries by id: with those that a layer only adds aliases to.
pub(super) fn attach(
    cpus: &mut Vec<Cpu>,
    aliases: &[Aliases],
    mut by_id: HashMap<String, usize>,
    below: &dyn BaseLayer,
    noted: &mut Vec<(Location, String)>,
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
        let mut names = HashSet::new();
        for entry in &table.entries {
            let name = entry.full_name();
            if !names.insert(name.to_ascii_uppercase()) {
                let message = format!("there is another alias `{}`", shortened(&name));
                noted.push((entry.location, message));
            }
        }
    }
    by_id
}
