//! The events of one of libpfm4's tables, and how an event file says them.

use std::fmt::Write;

use crate::c_tables::{Structure, Tables, Token, text};

/// Names that the headers of libpfm4 take from others of its files (`lib/pfmlib_intel_x86_priv.h`).
pub(crate) const SHIFTS: &str = "
#define INTEL_X86_EDGE_BIT 18
#define INTEL_X86_ANY_BIT 21
#define INTEL_X86_INV_BIT 23
#define INTEL_X86_CMASK_BIT 24
#define INTEL_X86_MOD_EDGE (1 << 18)
#define INTEL_X86_MOD_ANY (1 << 21)
#define INTEL_X86_MOD_INV (1 << 23)
";

/// Masks that are equal to others, which are equal to others: as many are followed.
const MOST_EQUALS: usize = 8;

/// A table of events, with what tells its own from those of other models.
pub(crate) struct Source<'t> {
    pub(crate) tables: &'t Tables,
    /// The model whose events and masks are taken, beside those of all: `PFM_PMU_INTEL_SKX`.
    pub(crate) model: &'t str,
}

/// An event and its masks.
pub(crate) struct Event {
    pub(crate) name: String,
    pub(crate) masks: Vec<String>,
    /// Those of them that others can be put to.
    pub(crate) combining: Vec<String>,
    /// The event in the form of an event file.
    pub(crate) text: String,
}

/// Returns a field of an event, whose name has a prefix in the tables of POWER.
fn field<'s>(event: &'s Structure, name: &str) -> Option<&'s Vec<Token>> {
    event
        .get(name)
        .or_else(|| event.get(&format!("pme_{name}")))
}

/// The bits of a select word and of the register beside it.
#[derive(Default, Clone, Copy, PartialEq)]
struct Word {
    select: u64,
    value: u64,
}

impl Source<'_> {
    /// Returns the events of a table.
    ///
    /// # Errors
    /// The event whose numbers cannot be read.
    pub(crate) fn events(&self, table: &str, intel: bool) -> Result<Vec<Event>, String> {
        let mut events: Vec<Event> = Vec::new();
        for entry in self.tables.array(table) {
            let name = text(field(entry, "name"));
            let again = events.iter().any(|event| event.name == name);
            if name.is_empty() || again || !self.is_of_model(entry, "model") {
                continue;
            }
            let event = self.event(table, entry, &name, intel);
            events.push(event.map_err(|reason| format!("{name}: {reason}"))?);
        }
        Ok(events)
    }

    fn is_of_model(&self, structure: &Structure, key: &str) -> bool {
        let words = self.tables.words(structure.get(key));
        words.is_empty() || words.iter().any(|word| word == self.model)
    }

    /// Returns the code of an event, or that of the event and mask that it says to be equal to: libpfm4 takes those.
    fn event_code(&self, table: &str, entry: &Structure) -> Result<u64, String> {
        let own = self.tables.number(field(entry, "code"));
        let equal = text(entry.get("equiv"));
        let (event, mask) = equal.split_once(':').unwrap_or((&equal, ""));
        let events = self.tables.array(table);
        let named = |other: &&Structure| text(field(other, "name")) == event;
        let Some(event) = events.iter().find(named) else {
            return own;
        };
        let code = self.tables.number(field(event, "code"))?;
        if mask.is_empty() {
            return Ok(code);
        }
        let masks = self.masks(event);
        match masks.iter().find(|other| text(other.get("uname")) == mask) {
            Some(mask) => Ok(code | self.tables.number(mask.get("ucode"))?),
            None => own,
        }
    }

    fn masks(&self, event: &Structure) -> &[Structure] {
        let array = self.tables.words(event.get("umasks"));
        array.first().map_or(&[], |name| self.tables.array(name))
    }

    /// Returns the code of a mask, or that of the masks and modifiers that it says to be equal to, which may be equal to
    /// others in turn: the alias of an alias has the code of what both stand for.
    fn mask_code(&self, masks: &[Structure], mask: &Structure) -> Result<u64, String> {
        self.code_of_equals(masks, mask, MOST_EQUALS)
    }

    fn code_of_equals(
        &self,
        masks: &[Structure],
        mask: &Structure,
        most: usize,
    ) -> Result<u64, String> {
        let own = self.tables.number(mask.get("ucode"))?;
        let equal = text(mask.get("uequiv"));
        let mut code = 0;
        for part in equal.split(':') {
            let of_model = masks
                .iter()
                .filter(|other| self.is_of_model(other, "umodel"));
            let mut named = of_model.filter(|other| text(other.get("uname")) == part);
            code |= match (named.next(), part.strip_prefix("c=")) {
                (Some(_), _) if most == 0 => return Ok(own),
                (Some(other), _) => self.code_of_equals(masks, other, most - 1)?,
                (None, Some(count)) => match count.parse::<u64>() {
                    Ok(count) => count << 24,
                    Err(_) => return Ok(own),
                },
                (None, None) => match part {
                    "e" | "e=1" => 1 << 18,
                    "t" | "t=1" => 1 << 21,
                    "i" | "i=1" => 1 << 23,
                    _ => return Ok(own),
                },
            };
        }
        Ok(code)
    }

    fn event(
        &self,
        table: &str,
        entry: &Structure,
        name: &str,
        intel: bool,
    ) -> Result<Event, String> {
        let code = self.event_code(table, entry)?;
        let flags = self.tables.words(entry.get("flags"));
        let is = |flags: &[String], name: &str| flags.iter().any(|flag| flag == name);
        let offcore = is(&flags, "INTEL_X86_NHM_OFFCORE");
        let frontend = is(&flags, "INTEL_X86_FRONTEND");
        let base = if intel { code & !0xff } else { 0 };
        let number = if intel { code & 0xff } else { code };
        let grouped = self.tables.number(entry.get("ngrp"))? > 1;
        let mut masks: Vec<String> = Vec::new();
        let mut lines = String::new();
        let mut combining = Vec::new();
        let array = self.masks(entry);
        let mut register = match (offcore, frontend, code) {
            (_, true, _) => Some(0x3f7),
            (true, _, 0x1b7 | 0x12a) => Some(0x1a6),
            (true, ..) => Some(0x1a7),
            _ => None,
        };
        for mask in array {
            let mask_name = text(mask.get("uname"));
            let again = masks
                .iter()
                .any(|known| known.eq_ignore_ascii_case(&mask_name));
            if again || !self.is_of_model(mask, "umodel") {
                continue;
            }
            let flags = self.tables.words(mask.get("uflags"));
            let mut bits = self.mask_code(array, mask)?;
            let mut fields = Vec::new();
            if is(&flags, "INTEL_X86_CODE_OVERRIDE") && bits & 0xff != number {
                fields.push(format!("code = {:#04x}", bits & 0xff));
            }
            bits = if intel { bits & !0xff } else { bits << 8 };
            let mut word = Word {
                select: base | bits,
                value: 0,
            };
            if register == Some(0x3f6) || is(&flags, "INTEL_X86_LDLAT") {
                // The latency that libpfm4 takes when a name gives none.
                (register, word.value) = (Some(0x3f6), 3);
            } else if register.is_some() {
                word.value = bits >> 8;
                word.select = base;
                if is(&flags, "INTEL_X86_FETHR") && word.value & 0xf_ff00 == 0 {
                    word.value |= 1 << 8;
                }
            }
            fields.extend(word.fields(number == 0 && intel)?);
            let alone = ["INTEL_X86_NCOMBO", "AMD64_FL_NCOMBO"]
                .iter()
                .any(|flag| is(&flags, flag));
            if alone {
                fields.push("alone = true".to_owned());
            }
            if grouped || !alone {
                combining.push(mask_name.clone());
            }
            let default = ["INTEL_X86_DFL", "AMD64_FL_DFL"]
                .iter()
                .any(|flag| is(&flags, flag));
            if default && !is(&flags, "INTEL_X86_GRP_DFL_NONE") {
                fields.push("default = true".to_owned());
            }
            let closing = ["INTEL_X86_EXCL_GRP_GT", "INTEL_X86_EXCL_GRP_BUT_0"];
            if grouped && closing.iter().any(|flag| is(&flags, flag)) {
                fields.push("closes = true".to_owned());
            }
            if grouped {
                // One that no group goes with but the first is in the place of the second.
                let group = match is(&flags, "INTEL_X86_EXCL_GRP_BUT_0") {
                    true => 1,
                    false => self.tables.number(mask.get("grpid"))? & 0xff,
                };
                fields.push(format!("group = {}", group.min(2) + 1));
            }
            let unit_mask = format!("{:#04x}", word.select >> 8 & 0xff);
            let key = key(&mask_name);
            let _ = match fields[..] {
                [] => writeln!(lines, "masks.{key} = {unit_mask}"),
                _ => writeln!(
                    lines,
                    "masks.{key} = {{ bits = {unit_mask}, {} }}",
                    fields.join(", ")
                ),
            };
            masks.push(mask_name);
        }
        let combine = !combining.is_empty();
        if !combine {
            lines = lines.replace(", alone = true", "");
        }
        let mut text = format!("code = {number:#04x}\n");
        if masks.is_empty() {
            let word = Word {
                select: base,
                value: 0,
            };
            if base >> 8 & 0xff != 0 {
                let _ = writeln!(text, "unit-mask = {:#04x}", base >> 8 & 0xff);
            }
            for field in word.fields(number == 0 && intel)? {
                let _ = writeln!(text, "{field}");
            }
        }
        if combine {
            text.push_str("combine = true\n");
        }
        if let Some(register) = register {
            let _ = writeln!(text, "register = {register:#x}\nregister-value = true");
        }
        let text = if text.lines().count() == 1 && masks.is_empty() {
            format!("{} = {number:#04x}\n", key(name))
        } else {
            format!("\n[EVENTS.{}]\n{text}{lines}", key(name))
        };
        Ok(Event {
            name: name.to_owned(),
            masks,
            combining,
            text,
        })
    }
}

impl Word {
    /// Returns everything but the unit mask; `fixed` where the event number names the fixed counters.
    fn fields(self, fixed: bool) -> Result<Vec<String>, String> {
        let mut fields = Vec::new();
        if self.select & !0xff_03ff_a4ff_ff00 & !(0xff << 24) & !0xffff != 0 {
            return Err(format!("{:#x} has bits of no known meaning", self.select));
        }
        for (key, number) in [
            ("second-mask", self.select >> 40 & 0xff),
            ("counter-mask", self.select >> 24 & 0xff),
        ] {
            if number != 0 {
                fields.push(format!("{key} = {number}"));
            }
        }
        for (key, bit) in [
            ("edge", 18),
            ("any-thread", 21),
            ("invert", 23),
            ("in-tx", 32),
            ("in-tx-cp", 33),
        ] {
            if self.select >> bit & 1 == 1 {
                fields.push(format!("{key} = true"));
            }
        }
        let unit_mask = self.select >> 8 & 0xff;
        if fixed && (1..=3).contains(&unit_mask) {
            fields.push(format!("fixed = {}", unit_mask - 1));
        }
        if self.value != 0 {
            fields.push(format!("value = {:#x}", self.value));
        }
        Ok(fields)
    }
}

fn key(name: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
    if name.bytes().all(plain) {
        name.to_owned()
    } else {
        format!("\"{name}\"")
    }
}
