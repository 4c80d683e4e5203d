//! The events, generalized events and presets of a CPU, for listing.

use quipu_events_format::packed::{EntryView, MappingView};
use quipu_events_format::{Formula, flag};
use quipu_hal::{Event, SlotSet};

use crate::description::Description;
use crate::encode::{Interface, slots};
use crate::layers::{Layer, LayerFile};
use crate::standard_presets;

/// An event, or an event with one of its unit masks, for listing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventDetails {
    /// The name: `EVENT` or `EVENT.MASK`.
    pub name: String,
    /// The event's part of the name.
    pub event: String,
    /// The mask's part of the name; empty for the event alone.
    pub mask: String,
    /// The event number: the whole config word on CPUs whose events are numbers of Linux's driver
    /// ([`Scheme::Perf`](quipu_hal::Scheme::Perf)).
    pub code: u64,
    /// The unit mask.
    pub unit_mask: u8,
    /// The second unit mask (Intel, version 6).
    pub second_mask: u8,
    /// The counter mask.
    pub counter_mask: u8,
    /// Flags of the select word and other properties, in words: `edge`, `invert`, `combines`.
    pub flags: Vec<&'static str>,
    /// The counters that can count it.
    pub slots: SlotSet,
    /// The extra register it needs, and its value.
    pub register: Option<(u32, u64)>,
    /// True if the event alone cannot be counted because it needs a mask.
    pub needs_mask: bool,
    /// The group of the mask, from 1, in an event where one of each group makes up the whole; 0 for none.
    pub group: u8,
    /// True if the mask is taken when none is named.
    pub is_default: bool,
    /// True if the vendor advises against it.
    pub is_deprecated: bool,
    /// The event to use instead, where that is known.
    pub instead: Option<String>,
    /// The entry that has the same bits on purpose.
    pub same_as: Option<String>,
    /// The numbers of its errata.
    pub errata: Vec<String>,
    /// The layer it came from.
    pub layer: LayerFile,
    pub(crate) description: Description,
}

/// A generalized event of a CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct GeneralizedEvent {
    /// The name, as `perf list` has it.
    pub name: String,
    /// The native event, or why there is none.
    pub event: Result<String, String>,
}

/// A preset of a CPU.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct PresetEvent {
    /// The name: `PAPI_TOT_INS`.
    pub name: String,
    /// The formula, or why the CPU has none.
    pub formula: Result<Formula, String>,
}

impl EventDetails {
    /// Returns what an entry of a layer says.
    pub(crate) fn of(layer: &Layer, entry: &EntryView<'_>) -> Self {
        let bits = entry.bits();
        let word = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let mut flags: Vec<&'static str> = flag::KEYS
            .iter()
            .filter(|(_, flag)| bits.flags & flag != 0)
            .map(|(name, _)| *name)
            .collect();
        if bits.flags & flag::COMBINES != 0 {
            flags.push("combines");
        }
        Self {
            name: entry.name().to_owned(),
            event: entry.event().to_owned(),
            mask: entry.mask().to_owned(),
            code: bits.config(),
            unit_mask: bits.unit_mask,
            second_mask: bits.second_mask,
            counter_mask: bits.counter_mask,
            flags,
            slots: slots(bits, Interface::Msr),
            register: (bits.register != 0).then_some((bits.register, bits.value)),
            needs_mask: bits.flags & flag::NEEDS_MASK != 0,
            group: flag::group(bits.flags),
            is_default: bits.flags & flag::DEFAULT != 0,
            is_deprecated: bits.flags & flag::DEPRECATED != 0,
            instead: word(entry.instead()),
            same_as: word(entry.same_as()),
            errata: entry.errata().map(str::to_owned).collect(),
            layer: layer.origin.clone(),
            description: Description::new(entry.description(), entry.described()),
        }
    }

    /// Returns the sentence that says what it counts, where the source or the file has one. The first call for an
    /// event of the embedded tables inflates their sentences, which takes some milliseconds.
    ///
    /// ```
    /// use quipu_events::Database;
    ///
    /// let table = Database::embedded().cpu("intel-skl")?;
    /// let misses = table.event("L2_RQSTS.MISS").expect("Skylake has it");
    /// assert_eq!(misses.description(), Some("All requests that miss L2 cache"));
    /// # Ok::<(), quipu_hal::Error>(())
    /// ```
    pub fn description(&self) -> Option<&str> {
        self.description.text()
    }

    /// Returns all that the source says of it, where that is more than the one sentence.
    ///
    /// ```
    /// use quipu_events::Database;
    ///
    /// let table = Database::embedded().cpu("intel-skl")?;
    /// let replaced = table.event("L1D.REPLACEMENT").expect("Skylake has it");
    /// let (short, long) = (replaced.description(), replaced.long_description());
    /// assert!(long.is_some_and(|long| long.len() > 2 * short.unwrap_or_default().len()));
    /// # Ok::<(), quipu_hal::Error>(())
    /// ```
    pub fn long_description(&self) -> Option<String> {
        self.description.long_text()
    }
}

impl GeneralizedEvent {
    /// Returns what a mapping says.
    pub(crate) fn of(mapping: MappingView<'_>) -> Self {
        Self {
            name: mapping.name().to_owned(),
            event: mapping.text().map(str::to_owned).map_err(str::to_owned),
        }
    }

    /// Returns the words that say what it counts, those of [`quipu_text::describe`].
    pub fn description(&self) -> Option<String> {
        quipu_text::describe(&Event::generalized(&self.name)?)
    }
}

impl PresetEvent {
    /// Returns what a mapping says.
    pub(crate) fn of(mapping: MappingView<'_>) -> Self {
        Self {
            name: mapping.name().to_owned(),
            formula: match mapping.text() {
                Ok(text) => Formula::parse(text).map_err(|error| error.to_string()),
                Err(reason) => Err(reason.to_owned()),
            },
        }
    }

    /// Returns the words that say what it counts, for those that PAPI names on every CPU.
    ///
    /// ```
    /// use quipu_events::Database;
    ///
    /// let table = Database::embedded().cpu("amd-zen4")?;
    /// let misses = table.preset("PAPI_L1_DCM").expect("every table has it");
    /// assert_eq!(misses.description(), Some("misses of the level 1 data cache"));
    /// # Ok::<(), quipu_hal::Error>(())
    /// ```
    pub fn description(&self) -> Option<&'static str> {
        standard_presets::counted_by(&self.name)
    }
}
