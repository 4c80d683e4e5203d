//! Fans a group out: the parts of a target, and the bits that each part counts.

use quipu_hal::Part;

use super::attachments::Attachment;
use crate::events::{Counting, EventBits, Placement};
use crate::machine::sysfs::CorePmu;
use crate::sys::Attach;

/// One kernel group to be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlannedPart {
    pub(crate) attach: Attach,
    pub(crate) part: Part,
    /// The bits of each member in this part.
    pub(crate) bits: Vec<EventBits>,
}

impl PlannedPart {
    /// Returns true if the kernel counts a member [while it happens](EventBits::is_counted_live).
    pub(crate) fn has_live(&self) -> bool {
        self.bits.iter().any(EventBits::is_counted_live)
    }

    /// Asks for counters that can be read in user space, of those that have to be asked.
    pub(crate) fn request_user_reads(&mut self) {
        let on_core = self.part.core.is_some();
        for bits in &mut self.bits {
            *bits = bits.readable_in_user_space(on_core);
        }
    }
}

/// Returns the kernel groups of a group whose members go to `members`, on `attachments`: one for each attachment and core
/// PMU, or instance of the unit outside of the cores that members are counted by. Siblings (the PMUs of one attachment)
/// are neighbours. On a CPU there is only the core PMU that the CPU has, and nothing where a member cannot be counted.
pub(crate) fn plan(
    members: &[Placement],
    cores: &[CorePmu],
    attachments: &[Attachment],
) -> Vec<PlannedPart> {
    let on_cores = members.iter().any(|m| matches!(m, Placement::Cores(_)));
    let units = members.iter().find_map(Placement::units);
    let units = units.filter(|_| !on_cores);
    let mut parts = Vec::with_capacity(attachments.len());
    for attachment in attachments {
        let mut add = |on: Counting<'_>| {
            let cpu = attachment.part.cpu;
            let bits = members.iter().map(|member| member.bits(on, cpu));
            let Some(bits) = bits.collect() else {
                return;
            };
            let part = attachment.part.clone();
            parts.push(PlannedPart {
                attach: attachment.attach,
                part: match on {
                    Counting::Any => part,
                    Counting::Core(core) => part.with_core(cores[core].name.as_str()),
                    Counting::Unit(pmu) => part.with_pmu(pmu),
                },
                bits,
            });
        };
        if on_cores {
            for (i, core) in cores.iter().enumerate() {
                let there = |cpu| core.cpus.is_empty() || core.cpus.contains(&cpu);
                if attachment.part.cpu.is_none_or(there) {
                    add(Counting::Core(i));
                }
            }
        } else if let Some(units) = units {
            for unit in units {
                add(Counting::Unit(&unit.pmu));
            }
        } else {
            add(Counting::Any);
        }
    }
    parts
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

    /// Instances of a unit, on CPU 0, with the number of each in its bits.
    #[cfg(feature = "names")]
    fn units(pmu: &str, numbers: &[u64]) -> Placement {
        let unit = |number: &u64| crate::events::Unit {
            pmu: format!("{pmu}_{number}"),
            cpus: vec![0, 2],
            bits: EventBits::of(quipu_hal::PerfConfig::new(20, *number)),
        };
        Placement::Units(numbers.iter().map(unit).collect())
    }

    #[test]
    #[cfg(feature = "names")]
    fn an_uncore_event_is_counted_once_for_each_cpu_of_its_mask_and_instance() {
        goes_to(
            &[units("imc", &[0, 1])],
            &[cpu(0), cpu(1), cpu(2)],
            &[
                ("CPU 0, imc_0", &[0]),
                ("CPU 0, imc_1", &[1]),
                ("CPU 2, imc_0", &[0]),
                ("CPU 2, imc_1", &[1]),
            ],
        );
    }

    #[test]
    #[cfg(feature = "names")]
    fn a_group_is_on_the_instances_that_all_its_members_have() {
        let members = [units("imc", &[0, 1]), anywhere(), units("imc", &[1, 2])];
        goes_to(&members, &[cpu(0)], &[("CPU 0, imc_1", &[1, 1, 1])]);
        // Units of two kinds are two PMUs, which the kernel puts into no group.
        goes_to(
            &[units("imc", &[0, 1]), units("cha", &[0, 1])],
            &[cpu(0)],
            &[],
        );
    }
}
