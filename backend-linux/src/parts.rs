//! Fans a group out: the parts of a target, and the bits that each part counts.

use std::ffi::CString;

use quipu_hal::Part;

use crate::event_bits::EventBits;
use crate::sys::Attach;
use crate::sysfs::CorePmu;

/// The CPUs or core PMUs that can count an event, with its bits there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Placement {
    /// On every CPU, with the same bits.
    Anywhere(EventBits),
    /// On these core PMUs (by position), with bits for each.
    Cores(Vec<(usize, EventBits)>),
    /// On these CPUs only, each standing for the part of the machine around it.
    Cpus(Vec<u32>, EventBits),
    /// On every CPU, with bits that point to the text.
    Probe(EventBits, CString),
}

impl Placement {
    /// More core PMUs, for an event that differs between them.
    pub(crate) fn add_cores(&mut self, more: Vec<(usize, EventBits)>) {
        if let Self::Cores(cores) = self {
            cores.extend(more);
        }
    }

    /// The bits of the event on a core PMU and CPU, if it can be counted there. They are good for as
    /// long as this placement is.
    fn bits(&self, core: Option<usize>, cpu: Option<u32>) -> Option<EventBits> {
        match self {
            Self::Anywhere(bits) => Some(*bits),
            Self::Probe(bits, text) => Some(bits.pointing_to(text)),
            Self::Cores(cores) => {
                let core = core?;
                let (_, bits) = cores.iter().find(|(i, _)| *i == core)?;
                Some(*bits)
            }
            Self::Cpus(cpus, bits) => cpu.is_none_or(|cpu| cpus.contains(&cpu)).then_some(*bits),
        }
    }
}

/// A point to attach counters to: a thread, a CPU, a cgroup on a CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Attachment {
    pub(crate) attach: Attach,
    pub(crate) part: Part,
}

/// One kernel group to be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlannedPart {
    pub(crate) attach: Attach,
    pub(crate) part: Part,
    /// The bits of each member in this part.
    pub(crate) bits: Vec<EventBits>,
}

impl PlannedPart {
    /// Asks for counters that can be read in user space, of those that have to be asked.
    pub(crate) fn request_user_reads(&mut self) {
        let on_core = self.part.core.is_some();
        for bits in &mut self.bits {
            *bits = bits.readable_in_user_space(on_core);
        }
    }
}

/// The kernel groups of a group whose members go to `members`, on `attachments`: one for each attachment and
/// core PMU. Siblings (the core PMUs of one attachment) are neighbours. On a CPU there is only the core
/// PMU that the CPU has, and nothing where a member cannot be counted.
pub(crate) fn plan(
    members: &[Placement],
    cores: &[CorePmu],
    attachments: &[Attachment],
) -> Vec<PlannedPart> {
    let on_cores = members.iter().any(|m| matches!(m, Placement::Cores(_)));
    let mut planned = Vec::with_capacity(attachments.len());
    for attachment in attachments {
        let mut add = |core: Option<(usize, &CorePmu)>| {
            let bits: Option<Vec<_>> = members
                .iter()
                .map(|m| m.bits(core.map(|(i, _)| i), attachment.part.cpu))
                .collect();
            let Some(bits) = bits else { return };
            let part = attachment.part.clone();
            planned.push(PlannedPart {
                attach: attachment.attach,
                part: match core {
                    Some((_, core)) => part.with_core(core.name.as_str()),
                    None => part,
                },
                bits,
            });
        };
        if on_cores {
            for (i, core) in cores.iter().enumerate() {
                let there = |cpu| core.cpus.is_empty() || core.cpus.contains(&cpu);
                if attachment.part.cpu.is_none_or(there) {
                    add(Some((i, core)));
                }
            }
        } else {
            add(None);
        }
    }
    planned
}

#[cfg(test)]
mod tests {
    use super::*;
    use quipu_hal::{Hardware, Software};

    fn hybrid() -> Vec<CorePmu> {
        let core = |name: &str, type_, cpus: &[u32]| CorePmu {
            name: name.into(),
            type_,
            cpus: cpus.into(),
        };
        vec![core("cpu_core", 4, &[0, 1]), core("cpu_atom", 10, &[2])]
    }

    fn on_every_core(event: Hardware) -> Placement {
        let bits = EventBits::hardware(event);
        let on = |(i, core): (usize, &CorePmu)| (i, bits.on_core(core.type_));
        Placement::Cores(hybrid().iter().enumerate().map(on).collect())
    }

    fn anywhere() -> Placement {
        Placement::Anywhere(EventBits::software(Software::TaskClock))
    }

    fn thread(tid: i32) -> Attachment {
        crate::targets::thread(tid)
    }

    fn cpu(n: u32) -> Attachment {
        Attachment {
            attach: Attach::cpu(n),
            part: Part::on_cpu(n),
        }
    }

    /// Asserts that a group goes to these parts, with these configs.
    #[track_caller]
    fn goes_to(members: &[Placement], attachments: &[Attachment], parts: &[(&str, &[u64])]) {
        let planned = plan(members, &hybrid(), attachments);
        let shape = |p: &PlannedPart| {
            let configs: Vec<u64> = p.bits.iter().map(|b| b.config.config).collect();
            (p.part.to_string(), configs)
        };
        let wanted = |(part, configs): &(&str, &[u64])| ((*part).to_owned(), configs.to_vec());
        let planned: Vec<_> = planned.iter().map(shape).collect();
        assert_eq!(planned, parts.iter().map(wanted).collect::<Vec<_>>());
    }

    #[test]
    fn a_thread_on_a_hybrid_machine_has_a_part_for_each_core_type() {
        let (p, e) = (4 << 32 | 1, 10 << 32 | 1);
        goes_to(
            &[on_every_core(Hardware::Instructions), anywhere()],
            &[thread(7), thread(8)],
            &[
                ("thread 7, cpu_core", &[p, 1]),
                ("thread 7, cpu_atom", &[e, 1]),
                ("thread 8, cpu_core", &[p, 1]),
                ("thread 8, cpu_atom", &[e, 1]),
            ],
        );
    }

    #[test]
    fn a_cpu_has_a_part_for_its_own_core_type_only() {
        goes_to(
            &[on_every_core(Hardware::Cycles)],
            &[cpu(0), cpu(1), cpu(2)],
            &[
                ("CPU 0, cpu_core", &[4 << 32]),
                ("CPU 1, cpu_core", &[4 << 32]),
                ("CPU 2, cpu_atom", &[10 << 32]),
            ],
        );
    }

    #[test]
    fn events_that_no_core_owns_are_not_split() {
        let parts: [(&str, &[u64]); 2] = [("thread 7", &[1]), ("CPU 2", &[1])];
        goes_to(&[anywhere()], &[thread(7), cpu(2)], &parts);
    }

    #[test]
    fn an_event_of_one_core_type_takes_the_group_there() {
        let cycles = EventBits::hardware(Hardware::Cycles);
        let only = |core, type_| Placement::Cores(vec![(core, cycles.on_core(type_))]);
        goes_to(
            &[on_every_core(Hardware::Cycles), only(1, 10)],
            &[thread(7), cpu(0), cpu(2)],
            &[
                ("thread 7, cpu_atom", &[10 << 32; 2]),
                ("CPU 2, cpu_atom", &[10 << 32; 2]),
            ],
        );
        goes_to(&[only(0, 4), only(1, 10)], &[thread(7)], &[]);
    }

    #[test]
    fn an_uncore_event_is_counted_once_for_each_box() {
        let uncore = Placement::Cpus(vec![0], EventBits::default());
        goes_to(&[uncore], &[cpu(0), cpu(1), cpu(2)], &[("CPU 0", &[0])]);
    }
}
