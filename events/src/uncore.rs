//! The events of a CPU's units outside of its cores.

use std::borrow::Cow;
use std::sync::LazyLock;

use quipu_events_format::packed::{UncoreEventView, UncoreTable, UncoreView};
use quipu_hal::{Event, UncoreEvent};
use quipu_text::parse_event;

use crate::cpu_table::CpuTable;
use crate::description::Description;

/// The table of `db/uncore/*.toml`, which `quipu-import pack` makes.
pub(crate) static EMBEDDED: &[u8] = include_bytes!("../tables/uncore.bin");

static TABLE: LazyLock<UncoreTable> = LazyLock::new(|| UncoreTable::new(EMBEDDED));

/// An event of a unit outside of the cores, for listing.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct UncoreDetails {
    /// The name: `UNC_M_CAS_COUNT.RD`.
    pub name: String,
    /// The PMU that Linux has for the unit, without the number of an instance: `uncore_imc`.
    pub pmu: &'static str,
    /// The terms: `event=0x04,umask=0x03`.
    pub terms: &'static str,
    /// The factor of its values and the unit of the products, if they are no plain counts.
    pub scale: Option<(f64, &'static str)>,
    description: Description,
}

impl UncoreDetails {
    fn new(view: UncoreEventView<'static>) -> Self {
        Self {
            name: view.name(),
            pmu: view.pmu(),
            terms: view.terms(),
            scale: view.scale(),
            description: Description::new("", view.described()),
        }
    }

    /// Returns the sentence that says what it counts, where the source has one.
    pub fn description(&self) -> Option<&str> {
        self.description.text()
    }

    /// Returns all that the source says of it, where that is more than the one sentence.
    pub fn long_description(&self) -> Option<String> {
        self.description.long_text()
    }

    /// Returns the event as perf and `quipu stat` take it: `uncore_imc/event=0x04,umask=0x03/`.
    pub fn encoded(&self) -> String {
        format!("{}/{}/", self.pmu, self.terms)
    }

    /// Returns the event in the form that backends take.
    pub fn event(&self) -> Option<UncoreEvent> {
        let Event::Pmu(event) = parse_event(&self.encoded()).ok()? else {
            return None;
        };
        let (scale, unit) = self.scale.unwrap_or((1.0, ""));
        Some(UncoreEvent::new(event).with_unit(Cow::Borrowed(unit), scale))
    }
}

impl CpuTable {
    fn uncore_view(&self) -> Option<UncoreView<'static>> {
        TABLE.cpu(self.id())
    }

    /// Returns the events of the CPU's units outside of its cores, sorted by name.
    pub fn uncore_events(&self) -> Vec<UncoreDetails> {
        let events = self.uncore_view().map(|view| view.events());
        events
            .into_iter()
            .flatten()
            .map(UncoreDetails::new)
            .collect()
    }

    /// Returns an event of a unit outside of the cores by name, `EVENT.MASK` or `EVENT:MASK` in any letter case.
    ///
    /// ```
    /// use quipu_events::Database;
    ///
    /// let table = Database::embedded().cpu("intel-skx")?;
    /// let reads = table.uncore_event("UNC_M_CAS_COUNT.RD").expect("Skylake X has it");
    /// assert_eq!(reads.encoded(), "uncore_imc/event=0x04,umask=0x03/");
    /// # Ok::<(), quipu_hal::Error>(())
    /// ```
    pub fn uncore_event(&self, name: &str) -> Option<UncoreDetails> {
        let name = name.replacen(':', ".", 1);
        self.uncore_view()?.find(&name).map(UncoreDetails::new)
    }

    /// Returns the source of the facts about the units outside of the cores.
    pub fn uncore_source(&self) -> Option<&'static str> {
        Some(self.uncore_view()?.source())
    }
}
