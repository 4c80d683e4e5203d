//! One CPU's table: its events, masks, constraints, generalized events and presets, through all layers.

use quipu_events_format::name::{NameError, Names, SelectedEvent, select};
use quipu_events_format::packed::{CpuView, EntryView, MappingView};
use quipu_events_format::{Bits, Counters, cache_key, flag, isa_of};
use quipu_hal::{CounterBank, CpuIdentity, CpuModel, Event, Scheme, SlotClass};

use crate::architectural::Refused;
use crate::details::{EventDetails, GeneralizedEvent, PresetEvent};
use crate::encode::{Interface, general};
use crate::layers::{Layer, LayerFile, Layers};
use crate::pmu_names::pmu_names;
use crate::standard_presets;

/// One CPU's table, through all layers of a [`Database`](crate::Database).
///
/// ```
/// use quipu_events::Database;
///
/// let table = Database::embedded().cpu("amd-zen4")?;
/// let loads = table.event("ls_dispatch.ld_dispatch").expect("Zen 4 has it");
/// assert_eq!((loads.code, loads.unit_mask), (0x29, 0x01));
/// let preset = table.preset("PAPI_TOT_INS").expect("every table has it");
/// assert_eq!(preset.formula.unwrap().single(), Some("ex_ret_instr"));
/// # Ok::<(), quipu_hal::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct CpuTable {
    layers: Layers,
    /// Layer and position of each part: the CPU's own entries from the top layer down, then its base's.
    sections: Vec<(usize, usize)>,
    id: String,
    name: String,
    scheme: Scheme,
    model: CpuModel,
    refused: Refused,
    recognised_by: Option<String>,
}

/// The facts that a core states of itself, and the rule that recognised it.
pub(crate) struct CoreFacts {
    pub(crate) identity: CpuIdentity,
    /// Empty when it does not say.
    pub(crate) counters: Vec<CounterBank>,
    pub(crate) refused: Refused,
    /// The rule of the entry that describes it; `None` when the entry was chosen.
    pub(crate) recognised_by: Option<String>,
}

impl CpuTable {
    /// The longest chain of bases that is followed.
    const DEEPEST: usize = 8;

    pub(crate) fn new(layers: Layers, id: &str) -> Option<Self> {
        let mut sections = Vec::new();
        let mut next = id.to_owned();
        for _ in 0..Self::DEEPEST {
            let mut base = String::new();
            for (layer, view) in layers.views(&next) {
                let mut cpus = layers.get(layer)?.table.cpus();
                let at = cpus.position(|cpu| cpu.id() == next)?;
                sections.push((layer, at));
                if base.is_empty() {
                    base = view.base().to_owned();
                }
            }
            if base.is_empty() {
                break;
            }
            next = base;
        }
        let views = || {
            sections
                .iter()
                .filter_map(|&(layer, at)| layers.get(layer)?.table.cpu(at))
        };
        if views().next()?.id() != id {
            return None;
        }
        let scheme = views().find_map(|view| view.scheme())?;
        let own = |view: &CpuView<'_>| view.id() == id;
        let name = views()
            .filter(own)
            .map(|view| view.name().to_owned())
            .find(|name| !name.is_empty())
            .unwrap_or_else(|| id.to_owned());
        let mut counters = Vec::new();
        let general = views().find_map(|view| view.general());
        let fixed = views().find_map(|view| view.fixed());
        for (class, bank) in [(SlotClass::General, general), (SlotClass::Fixed, fixed)] {
            if let Some(Counters { number, width }) = bank
                && number > 0
            {
                counters.push(CounterBank {
                    class,
                    number,
                    width,
                });
            }
        }
        let core_type = views()
            .filter(own)
            .flat_map(|view| view.rules())
            .map(|rule| rule.core_type().to_owned())
            .find(|core_type| !core_type.is_empty());
        let model = CpuModel::new(identity(views().filter(own)), scheme, counters)
            .with_core_type(core_type);
        Some(Self {
            sections,
            id: id.to_owned(),
            name,
            scheme,
            model,
            refused: Refused::default(),
            recognised_by: None,
            layers,
        })
    }

    /// Puts a core's own identity and counters in the place of the table's.
    pub(crate) fn on_core(mut self, core: CoreFacts) -> Self {
        self.model.identity = core.identity;
        if !core.counters.is_empty() {
            self.model.counters = core.counters;
        }
        self.refused = core.refused;
        self.recognised_by = core.recognised_by;
        self
    }

    /// Returns the rule by which this machine's CPU was recognised, in words:
    /// `GenuineIntel family 6, model 0x55, steppings 0x0-0x4`. `None` for a table chosen by its id.
    pub fn recognised_by(&self) -> Option<&str> {
        self.recognised_by.as_deref()
    }

    /// Returns the reason why this machine's CPU does not count an entry, when it says so itself.
    pub(crate) fn refusal(&self, bits: Bits, interface: Interface) -> Option<String> {
        let fixed = |bank: &&CounterBank| bank.class == SlotClass::Fixed;
        let has_fixed = |index| {
            let bank = self.model.counters.iter().find(fixed);
            interface != Interface::Pctr && bank.is_some_and(|bank| index < bank.number)
        };
        match bits.fixed.checked_sub(1) {
            Some(index) if has_fixed(index) => None,
            _ => self.refused.reason(general(bits)),
        }
    }

    /// Returns the id: `intel-p5`.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the name for people.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the scheme its events are encoded in.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// Returns the CPU in the vocabulary of backends.
    pub fn model(&self) -> &CpuModel {
        &self.model
    }

    /// Returns true for the table of a fallback entry: events common to CPUs that no other table describes.
    pub fn is_fallback(&self) -> bool {
        let own = |view: &CpuView<'_>| view.id() == self.id;
        self.views()
            .any(|(_, view)| own(&view) && view.is_fallback())
    }

    /// Returns libpfm4's names of the CPU's PMU, the usual one last; none for a CPU that libpfm4 lacks.
    pub fn pmu_names(&self) -> &'static [&'static str] {
        pmu_names(&self.id)
    }

    /// Returns true if a PMU is the CPU's, by one of libpfm4's names or the id of the CPU, in any letter case.
    pub fn has_pmu(&self, pmu: &str) -> bool {
        let is = |name: &str| name.eq_ignore_ascii_case(pmu);
        is(&self.id) || self.pmu_names().iter().any(|name| is(name))
    }

    /// Returns the name of an event without the CPU's PMU in front of it: `INST_RETIRED` of `skl::INST_RETIRED`.
    pub(crate) fn without_pmu<'n>(&self, name: &'n str) -> &'n str {
        match name.split_once("::") {
            Some((pmu, event)) if self.has_pmu(pmu) => event,
            _ => name,
        }
    }

    /// Returns the source of the table's facts.
    pub fn source(&self) -> &str {
        self.views()
            .map(|(_, view)| view.source())
            .find(|source| !source.is_empty())
            .unwrap_or_default()
    }

    /// Returns the backends for an operating system (`linux`, `openbsd`, ...), in order of preference.
    pub fn backends(&self, os: &str) -> Vec<&str> {
        self.views()
            .map(|(_, view)| view.backends(os).collect::<Vec<_>>())
            .find(|backends| !backends.is_empty())
            .unwrap_or_default()
    }

    /// Returns every event and mask, sorted by name; of those in several layers the one in force.
    pub fn events(&self) -> Vec<EventDetails> {
        let mut events: Vec<EventDetails> = self
            .entries()
            .map(|(layer, entry)| EventDetails::of(layer, &entry))
            .collect();
        events.sort_by_cached_key(|event| event.name.to_ascii_uppercase());
        events
    }

    /// Returns one event or mask by name, without modifiers.
    pub fn event(&self, name: &str) -> Option<EventDetails> {
        let name = self.without_pmu(name);
        let (event, mask) = name.split_once('.').unwrap_or((name, ""));
        self.views().find_map(|(layer, view)| {
            let entry = view.find(event, mask).or_else(|| view.find(name, ""))?;
            Some(EventDetails::of(layer, &entry))
        })
    }

    /// Returns the generalized events, in the order of their names.
    pub fn generalized(&self) -> Vec<GeneralizedEvent> {
        self.mappings(|view| view.generalized().collect())
            .into_iter()
            .map(GeneralizedEvent::of)
            .collect()
    }

    /// Returns the presets, in the order of their names: all that PAPI names, and those of the files.
    pub fn presets(&self) -> Vec<PresetEvent> {
        let mut presets: Vec<PresetEvent> = self
            .mappings(|view| view.presets().collect())
            .into_iter()
            .map(PresetEvent::of)
            .collect();
        for (name, counted) in standard_presets::PRESETS {
            if !presets.iter().any(|preset| preset.name == name) {
                presets.push(self.unknown_preset(name, counted));
            }
        }
        presets.sort_by(|a, b| a.name.cmp(&b.name));
        presets
    }

    /// Returns one of PAPI's presets as one that no formula is known for.
    fn unknown_preset(&self, name: &str, counted: &str) -> PresetEvent {
        PresetEvent {
            name: name.to_ascii_uppercase(),
            formula: Err(format!(
                "no event of {} is known to count {counted}",
                self.id
            )),
        }
    }

    /// Returns a preset by name, in any letter case.
    pub fn preset(&self, name: &str) -> Option<PresetEvent> {
        self.views()
            .flat_map(|(_, view)| view.presets())
            .find(|mapping| mapping.name().eq_ignore_ascii_case(name))
            .map(PresetEvent::of)
            .or_else(|| Some(self.unknown_preset(name, standard_presets::counted_by(name)?)))
    }

    /// Returns a generalized event that a file of the user defines, over what the operating system takes it for.
    pub fn user_defined(&self, event: &Event) -> Option<GeneralizedEvent> {
        let key = match event {
            Event::Hardware(hardware) => hardware.name().to_owned(),
            Event::Cache(cache) => cache_key(*cache),
            _ => return None,
        };
        let own = self
            .views()
            .filter(|(layer, _)| layer.origin != LayerFile::Embedded);
        let mut mappings = own.flat_map(|(_, view)| view.generalized());
        mappings
            .find(|mapping| mapping.name() == key)
            .map(GeneralizedEvent::of)
    }

    /// Returns the native event that a generalized one stands for, or why there is none.
    pub(crate) fn generalized_event(&self, name: &str) -> Option<Result<&str, &str>> {
        self.views()
            .flat_map(|(_, view)| view.generalized())
            .find(|mapping| mapping.name() == name)
            .map(|mapping| mapping.text())
    }

    fn mappings<'t>(
        &'t self,
        list: impl Fn(&CpuView<'t>) -> Vec<MappingView<'t>>,
    ) -> Vec<MappingView<'t>> {
        let mut all: Vec<MappingView<'t>> = Vec::new();
        for (_, view) in self.views() {
            for mapping in list(&view) {
                if !all.iter().any(|known| known.name() == mapping.name()) {
                    all.push(mapping);
                }
            }
        }
        all.sort_by(|a, b| a.name().cmp(b.name()));
        all
    }

    /// Returns the parts of the table, those in force first.
    pub(crate) fn views(&self) -> impl Iterator<Item = (&Layer, CpuView<'_>)> {
        self.sections.iter().filter_map(|&(layer, at)| {
            let layer = self.layers.get(layer)?;
            Some((layer, layer.table.cpu(at)?))
        })
    }

    /// Returns an entry and the layer it is in force from.
    pub(crate) fn entry(&self, event: &str, mask: &str) -> Option<EntryView<'_>> {
        self.views().find_map(|(_, view)| view.find(event, mask))
    }

    /// Returns every entry in force, with its layer.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&Layer, EntryView<'_>)> {
        self.views()
            .enumerate()
            .flat_map(move |(at, (layer, view))| {
                view.entries()
                    .filter(move |entry| {
                        let hides = |(_, above): (&Layer, CpuView<'_>)| {
                            above.find(entry.event(), entry.mask()).is_some()
                        };
                        !self.views().take(at).any(hides)
                    })
                    .map(move |entry| (layer, entry))
            })
    }

    /// Returns the first entry in force that fits.
    pub(crate) fn find_entry(
        &self,
        fits: impl Fn(&EntryView<'_>) -> bool,
    ) -> Option<EntryView<'_>> {
        self.entries().map(|(_, entry)| entry).find(fits)
    }
}

impl CpuTable {
    /// Returns true if this is a written name of an event, with its masks and modifiers, or of a preset.
    pub fn has_event(&self, name: &str) -> bool {
        self.select(name).is_ok()
            || self
                .preset(name)
                .is_some_and(|preset| preset.formula.is_ok())
    }

    /// Looks up a written name: the CPU's own first, then its aliases.
    pub(crate) fn select(&self, name: &str) -> Result<SelectedEvent, NameError> {
        let as_listed = |alias: SelectedEvent| SelectedEvent {
            bits: self.as_listed(alias.bits),
            ..alias
        };
        if let Some((table, name)) = self.architectural(name) {
            return select(&Aliases(&table), name).map(as_listed);
        }
        let name = self.without_pmu(name);
        let error = match select(self, name) {
            Ok(selection) => return Ok(selection),
            Err(error) => error,
        };
        match select(&Aliases(self), name) {
            Ok(alias) => Ok(as_listed(alias)),
            Err(NameError::UnknownEvent) => Err(error),
            Err(of_alias) if error == NameError::UnknownEvent => Err(of_alias),
            Err(_) => Err(error),
        }
    }

    /// Returns the events that all Intel CPUs since the Core share, and the name of one of them, if it has their PMU in
    /// front and this is another such CPU: `ix86arch::LLC_MISSES` on a Skylake.
    pub(crate) fn architectural<'n>(&self, name: &'n str) -> Option<(Self, &'n str)> {
        let (pmu, event) = name.split_once("::")?;
        if self.scheme != Scheme::IntelArchitectural || self.has_pmu(pmu) {
            return None;
        }
        let table = Self::new(self.layers.clone(), "intel-arch")?;
        table.has_pmu(pmu).then_some((table, event))
    }

    /// Returns the bits of an alias with what it leaves unsaid, the counters, the largest increment and
    /// the modifiers of this CPU, from the event that has the same bits.
    fn as_listed(&self, bits: Bits) -> Bits {
        let same = |entry: &EntryView<'_>| {
            let own = entry.bits();
            let numbers = |bits: Bits| {
                (
                    (bits.code, bits.unit_mask, bits.second_mask),
                    bits.counter_mask,
                    bits.flags & flag::ENCODED,
                )
            };
            own.flags & flag::NEEDS_MASK == 0 && numbers(own) == numbers(bits)
        };
        match self.find_entry(same) {
            Some(entry) => Bits {
                counters: entry.bits().counters,
                fixed: entry.bits().fixed,
                max_increment: entry.bits().max_increment,
                modifiers: bits.modifiers & entry.bits().modifiers,
                ..bits
            },
            None => bits,
        }
    }

    /// Returns the bits of an alias' mask: those of the CPU's own event of that name, if it has one.
    fn as_named(&self, alias: EntryView<'_>) -> Bits {
        const OF_THE_MASK: u32 = flag::COMBINES | flag::DEFAULT | flag::GROUP | flag::CLOSES;
        match self.entry(alias.event(), alias.mask()) {
            Some(own) => Bits {
                flags: own.bits().flags & !OF_THE_MASK | alias.bits().flags & OF_THE_MASK,
                ..own.bits()
            },
            None => alias.bits(),
        }
    }

    /// Returns the names of the aliases, `EVENT` or `EVENT.MASK`: what other libraries call this CPU's events.
    pub fn aliases(&self) -> impl Iterator<Item = &str> {
        self.views()
            .flat_map(|(_, view)| view.aliases().entries())
            .map(|entry| entry.name())
    }
}

/// The spellings that other libraries give to a CPU's events.
struct Aliases<'t>(&'t CpuTable);

impl Names for Aliases<'_> {
    fn find(&self, event: &str, mask: &str) -> Option<Bits> {
        let mut views = self.0.views();
        let found = views.find_map(|(_, view)| Some(view.aliases().find(event, mask)?.bits()));
        found.map(|bits| self.0.as_listed(bits))
    }

    fn default_masks(&self, event: &str) -> Vec<Bits> {
        let mut tables = self.0.views().map(|(_, view)| view.aliases());
        let table = tables.find(|aliases| aliases.find(event, "").is_some());
        let masks = table
            .into_iter()
            .flat_map(|aliases| aliases.default_masks(event));
        masks.map(|mask| self.0.as_named(mask)).collect()
    }
}

impl Names for CpuTable {
    fn find(&self, event: &str, mask: &str) -> Option<Bits> {
        self.entry(event, mask).map(|entry| entry.bits())
    }

    fn default_masks(&self, event: &str) -> Vec<Bits> {
        let found = self
            .views()
            .find(|(_, view)| view.find(event, "").is_some());
        let masks = found
            .into_iter()
            .flat_map(|(_, view)| view.default_masks(event));
        masks.map(|mask| mask.bits()).collect()
    }
}

/// Returns the first CPU that the rules of an entry describe.
fn identity<'t>(views: impl Iterator<Item = CpuView<'t>>) -> CpuIdentity {
    match views.into_iter().flat_map(|view| view.rules()).next() {
        Some(rule) if rule.is_x86() => CpuIdentity::X86 {
            vendor: rule.vendor().to_owned(),
            family: rule.family() as u16,
            model: rule.models().0 as u16,
            stepping: rule.steppings().0 as u8,
        },
        Some(rule) => match rule.other() {
            Some((isa, id)) => CpuIdentity::Other {
                scheme: isa_of(isa).unwrap_or_default(),
                id: id.to_owned(),
            },
            None => CpuIdentity::Arm {
                midr: u64::from(rule.implementer().unwrap_or(0)) << 24
                    | 0xf << 16
                    | u64::from(rule.part().unwrap_or(0)) << 4,
            },
        },
        None => CpuIdentity::Arm { midr: 0 },
    }
}
