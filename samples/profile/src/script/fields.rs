//! The fields of a line: those that perf prints of events of each type, and those that are asked for
//! (`output` and `parse_output_fields`, `tools/perf/builtin-script.c`).

use quipu_perf_data::{EventAttr, SampleType};

use quipu_shell::Failure;

/// A field of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    Comm,
    Tid,
    Pid,
    Time,
    Cpu,
    Event,
    Trace,
    Ip,
    Symbol,
    Object,
    Address,
    Offset,
    SourceLine,
    Period,
    Branches,
    BranchSymbols,
    DataSource,
    Weight,
    InstructionLatency,
}

/// Every field by its name.
const FIELDS: [(&str, Field); 19] = [
    ("comm", Field::Comm),
    ("tid", Field::Tid),
    ("pid", Field::Pid),
    ("time", Field::Time),
    ("cpu", Field::Cpu),
    ("event", Field::Event),
    ("trace", Field::Trace),
    ("ip", Field::Ip),
    ("sym", Field::Symbol),
    ("dso", Field::Object),
    ("addr", Field::Address),
    ("symoff", Field::Offset),
    ("srcline", Field::SourceLine),
    ("period", Field::Period),
    ("brstack", Field::Branches),
    ("brstacksym", Field::BranchSymbols),
    ("data_src", Field::DataSource),
    ("weight", Field::Weight),
    ("ins_lat", Field::InstructionLatency),
];

/// Fields of perf that are not printed here.
const NOT_HERE: [&str; 19] = [
    "iregs",
    "uregs",
    "flags",
    "bpf-output",
    "brstackinsn",
    "brstackinsnlen",
    "brstackoff",
    "callindent",
    "insn",
    "insnlen",
    "synth",
    "phys_addr",
    "metric",
    "misc",
    "srccode",
    "ipc",
    "tod",
    "data_page_size",
    "code_page_size",
];

/// A set of fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct FieldSet(u32);

impl FieldSet {
    const USUAL: Self = Self::of(&[
        Field::Comm,
        Field::Tid,
        Field::Cpu,
        Field::Time,
        Field::Event,
        Field::Ip,
        Field::Symbol,
        Field::Offset,
        Field::Object,
        Field::Period,
    ]);
    const OF_TRACEPOINTS: Self = Self::of(&[
        Field::Comm,
        Field::Tid,
        Field::Cpu,
        Field::Time,
        Field::Event,
        Field::Trace,
    ]);
    /// Fields of the functions of a call chain.
    const OF_CHAINS: Self = Self::of(&[Field::Ip, Field::Symbol, Field::Offset, Field::Object]);

    const fn of(fields: &[Field]) -> Self {
        let (mut bits, mut at) = (0, 0);
        while at < fields.len() {
            bits |= 1 << fields[at] as u32;
            at += 1;
        }
        Self(bits)
    }

    pub(super) fn has(self, field: Field) -> bool {
        self.0 & 1 << field as u32 != 0
    }

    fn set(&mut self, field: Field, yes: bool) {
        self.0 &= !(1 << field as u32);
        self.0 |= u32::from(yes) << field as u32;
    }
}

/// A type of events, of which the fields are chosen together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EventClass {
    Hardware,
    Software,
    Tracepoint,
    Raw,
    Other,
}

impl EventClass {
    const ALL: [Self; 5] = [
        Self::Hardware,
        Self::Software,
        Self::Tracepoint,
        Self::Raw,
        Self::Other,
    ];

    /// Returns the type of an event (`enum perf_type_id`, `include/uapi/linux/perf_event.h`).
    fn of(attr: &EventAttr) -> Self {
        match attr.event_type() {
            0 => Self::Hardware,
            1 => Self::Software,
            2 => Self::Tracepoint,
            4 => Self::Raw,
            _ => Self::Other,
        }
    }

    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "hw" => Self::Hardware,
            "sw" => Self::Software,
            "trace" => Self::Tracepoint,
            "raw" => Self::Raw,
            _ => return None,
        })
    }

    fn usual(self) -> FieldSet {
        match self {
            Self::Tracepoint => FieldSet::OF_TRACEPOINTS,
            Self::Raw => {
                let mut fields = FieldSet::USUAL;
                for of_memory in [
                    Field::Address,
                    Field::DataSource,
                    Field::Weight,
                    Field::InstructionLatency,
                ] {
                    fields.set(of_memory, true);
                }
                fields
            }
            _ => FieldSet::USUAL,
        }
    }
}

/// The fields of each type of events.
#[derive(Debug, Clone)]
pub(super) struct Fields {
    sets: [FieldSet; 5],
    /// Those that a person asked for.
    asked: [FieldSet; 5],
    /// True for types of which the fields were chosen.
    chosen: [bool; 5],
}

impl Fields {
    /// Returns the fields that these options ask for.
    pub(super) fn new(requests: &[String]) -> Result<Self, Failure> {
        let mut fields = Self {
            sets: EventClass::ALL.map(EventClass::usual),
            asked: [FieldSet::default(); 5],
            chosen: [false; 5],
        };
        for request in requests {
            let (kinds, list) = match request.split_once(':') {
                Some((kind, list)) => (
                    vec![EventClass::named(kind).ok_or_else(|| no_type(kind))?],
                    list,
                ),
                None => (EventClass::ALL.to_vec(), request.as_str()),
            };
            for kind in kinds {
                fields.choose(kind, list)?;
            }
        }
        Ok(fields)
    }

    fn choose(&mut self, kind: EventClass, list: &str) -> Result<(), Failure> {
        let (sets, at) = (&mut self.sets, kind as usize);
        let is_change = |name: &str| name.starts_with(['+', '-']);
        let changes = list.split(',').filter(|name| is_change(name)).count();
        if changes == 0 {
            sets[at] = FieldSet::default();
            self.asked[at] = FieldSet::default();
        } else if changes < list.split(',').count() {
            return Err(Failure::usage(format_args!(
                "-F {list}: add and leave out fields (+{0},-{0}), or name all that you want ({0})",
                "dso"
            )));
        }
        self.chosen[at] |= changes == 0;
        for name in list.split(',').filter(|name| !name.is_empty()) {
            let field = named(name.trim_start_matches(['+', '-']))?;
            let is_valid = field != Field::Trace || kind == EventClass::Tracepoint;
            let yes = is_valid && !name.starts_with('-');
            sets[at].set(field, yes);
            self.asked[at].set(field, yes);
        }
        Ok(())
    }

    /// Returns true if a field is asked for of any type of events.
    pub(super) fn asks(&self, field: Field) -> bool {
        self.asked.iter().any(|asked| asked.has(field))
    }

    /// Returns the fields of each event. Those that its samples do not have are left out, unless they were asked for.
    ///
    /// # Errors
    /// A field that was asked for and that samples do not have.
    pub(super) fn of_events(
        &self,
        attrs: &[&EventAttr],
        names: &[String],
        with_chains: bool,
    ) -> Result<Vec<FieldSet>, Failure> {
        let mut sets = self.sets;
        for (at, kind) in EventClass::ALL.into_iter().enumerate() {
            let mut of_kind = attrs
                .iter()
                .zip(names)
                .filter(|(attr, _)| EventClass::of(attr) == kind);
            let Some((attr, name)) = of_kind.next() else {
                continue;
            };
            let has_chains = |attr: &EventAttr| sample_type(attr).contains(SampleType::CALLCHAIN);
            if kind == EventClass::Tracepoint
                && with_chains
                && !self.chosen[at]
                && (has_chains(attr) || of_kind.any(|(attr, _)| has_chains(attr)))
            {
                sets[at].0 |= FieldSet::OF_CHAINS.0;
            }
            for (text, field) in FIELDS {
                if !sets[at].has(field) || sample_type(attr).intersects(needed(field)) {
                    continue;
                }
                if self.asked[at].has(field) {
                    let hint = match field {
                        Field::Address => "; record -d records it",
                        Field::Branches | Field::BranchSymbols => "; record -b records it",
                        Field::Cpu => "; perf record --sample-cpu and quipu record record it",
                        _ => "",
                    };
                    return Err(Failure::usage(format_args!(
                        "-F {text}: samples of {name} do not have it{hint}"
                    )));
                }
                sets[at].set(field, false);
            }
        }
        Ok(attrs
            .iter()
            .map(|attr| sets[EventClass::of(attr) as usize])
            .collect())
    }
}

fn sample_type(attr: &EventAttr) -> SampleType {
    SampleType::from_bits_truncate(attr.sample_type())
}

/// Returns the fields of a sample of which one is needed for a field of a line.
fn needed(field: Field) -> SampleType {
    match field {
        Field::Comm | Field::Tid | Field::Pid => SampleType::TID,
        Field::Time => SampleType::TIME,
        Field::Cpu => SampleType::CPU,
        Field::Trace => SampleType::RAW,
        Field::Ip => SampleType::IP,
        Field::Address => SampleType::ADDR,
        Field::Symbol | Field::Object | Field::Offset => SampleType::IP | SampleType::ADDR,
        Field::SourceLine => SampleType::IP,
        Field::Branches | Field::BranchSymbols => SampleType::BRANCH_STACK,
        Field::DataSource => SampleType::DATA_SRC,
        Field::Weight => SampleType::WEIGHT | SampleType::WEIGHT_STRUCT,
        Field::InstructionLatency => SampleType::WEIGHT_STRUCT,
        // Of a fixed period, that is it.
        Field::Event | Field::Period => SampleType::all(),
    }
}

fn named(name: &str) -> Result<Field, Failure> {
    if let Some((_, field)) = FIELDS.iter().find(|(known, _)| *known == name) {
        return Ok(*field);
    }
    let known: Vec<_> = FIELDS.iter().map(|(name, _)| *name).collect();
    let known = known.join(", ");
    Err(Failure::usage(match NOT_HERE.contains(&name) {
        true => format!("-F {name} is a field of perf script that is not here; there are {known}"),
        false => format!("-F {name}: there is no such field; there are {known}"),
    }))
}

fn no_type(name: &str) -> Failure {
    Failure::usage(format_args!(
        "-F {name}: there is no such type of events; there are hw, sw, trace and raw"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(requests: &[&str]) -> Result<Fields, Failure> {
        Fields::new(&requests.iter().map(|r| (*r).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn fields_are_named_added_and_left_out() {
        let fields = chosen(&["comm,ip"]).expect("good");
        assert_eq!(fields.sets, [FieldSet::of(&[Field::Comm, Field::Ip]); 5]);
        let fields = chosen(&["sw:time", "+addr,-time"]).expect("good");
        assert_eq!(fields.sets[1], FieldSet::of(&[Field::Address]));
        assert!(fields.sets[0].has(Field::Comm) && !fields.sets[0].has(Field::Time));
        assert!(fields.asks(Field::Address) && !fields.asks(Field::Time));
    }

    #[test]
    fn what_is_no_field_is_refused() {
        for (request, word) in [
            ("nosuch", "no such field"),
            ("comm,+ip", "leave out"),
            ("brstackinsn", "not here"),
            ("xx:comm", "no such type"),
        ] {
            let failure = chosen(&[request]).expect_err(request);
            assert!(failure.to_string().contains(word), "{failure}");
        }
    }
}
