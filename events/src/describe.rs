//! The fields of an encoding, for a person.

use quipu_hal::{Armv8Event, Encoding, FixedCounter, P5Function, Scheme, X86Select};

/// One field of an encoding.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Field {
    /// The field's name in the manuals.
    pub name: &'static str,
    /// The bits it adds to the word.
    pub bits: u64,
    /// The value by itself; `None` for a flag. For an extra register, its address.
    pub value: Option<u64>,
}

/// Returns the fields of an encoding, lowest bits first; extra registers come last.
///
/// Flags that are not set and words that are zero are left out. `scheme` is the CPU's, which a perf config
/// word does not say.
///
/// ```
/// use quipu_events::describe;
/// use quipu_hal::{Encoding, Scheme, X86Select};
///
/// let word = X86Select::new(0xc0, 0x01).with_flags(X86Select::EDGE);
/// let fields = describe(Scheme::IntelArchitectural, &Encoding::X86(word));
/// let names: Vec<&str> = fields.iter().map(|field| field.name).collect();
/// assert_eq!(names, ["event", "unit mask", "E: edge"]);
/// ```
pub fn describe(scheme: Scheme, encoding: &Encoding) -> Vec<Field> {
    match encoding {
        Encoding::X86(word) => {
            let mut fields = x86(word.select);
            fields.extend(word.extra.iter().map(|extra| Field {
                name: "extra register",
                bits: extra.value,
                value: Some(u64::from(extra.address)),
            }));
            fields
        }
        Encoding::P5(function) => {
            let word = u64::from(function.0);
            let mut fields = vec![number("event", word, 0, 6)];
            fields.extend(flags(
                word,
                &[
                    ("K: kernel mode", u64::from(P5Function::KERNEL)),
                    ("U: user mode", u64::from(P5Function::USER)),
                    ("C: clocks instead of events", u64::from(P5Function::CLOCKS)),
                ],
            ));
            fields
        }
        Encoding::Fixed(counter) => flags(
            u64::from(counter.control),
            &[
                ("kernel mode", u64::from(FixedCounter::KERNEL)),
                ("user mode", u64::from(FixedCounter::USER)),
                ("any thread", u64::from(FixedCounter::ANY_THREAD)),
                ("interrupt", u64::from(FixedCounter::INTERRUPT)),
            ],
        ),
        Encoding::Armv8(event) => {
            let word = u64::from(event.0);
            let mut fields = vec![number("event", word, 0, 16)];
            fields.extend(flags(
                word,
                &[
                    ("NSH: count at EL2", u64::from(Armv8Event::INCLUDE_EL2)),
                    ("U: not at EL0", u64::from(Armv8Event::EXCLUDE_EL0)),
                    ("P: not at EL1", u64::from(Armv8Event::EXCLUDE_EL1)),
                ],
            ));
            fields
        }
        Encoding::Perf(perf) => {
            let mut fields = match scheme {
                Scheme::Armv8 => vec![number("event", perf.config, 0, 16)],
                _ => x86(perf.config),
            };
            for (name, value) in [
                ("config1", perf.config1),
                ("config2", perf.config2),
                ("config3", perf.config3),
            ] {
                if value != 0 {
                    fields.push(Field {
                        name,
                        bits: value,
                        value: Some(value),
                    });
                }
            }
            fields
        }
        Encoding::Simulated(event) => vec![number("event", *event, 0, 63)],
        _ => Vec::new(),
    }
}

fn number(name: &'static str, word: u64, shift: u32, width: u32) -> Field {
    let value = word >> shift & ((1 << width) - 1);
    Field {
        name,
        bits: value << shift,
        value: Some(value),
    }
}

fn flags(word: u64, known: &[(&'static str, u64)]) -> Vec<Field> {
    known
        .iter()
        .filter(|(_, bit)| word & bit != 0)
        .map(|(name, bit)| Field {
            name,
            bits: *bit,
            value: None,
        })
        .collect()
}

fn x86(word: u64) -> Vec<Field> {
    let mut fields = vec![number("event", word, 0, 8), number("unit mask", word, 8, 8)];
    fields.extend(flags(
        word,
        &[
            ("USR: user mode", X86Select::USER),
            ("OS: kernel mode", X86Select::KERNEL),
            ("E: edge", X86Select::EDGE),
            ("PC: pin control", X86Select::PIN),
            ("INT: interrupt", X86Select::INTERRUPT),
            ("ANY: any thread", X86Select::ANY_THREAD),
            ("EN: enable", X86Select::ENABLE),
            ("INV: invert", X86Select::INVERT),
        ],
    ));
    let above = [
        number("counter mask", word, 24, 8),
        number("bits 32-39 (AMD: event bits 8-11)", word, 32, 8),
        number("bits 40-47 (Intel: second unit mask)", word, 40, 8),
    ];
    fields.extend(above.into_iter().filter(|field| field.bits != 0));
    fields
}
