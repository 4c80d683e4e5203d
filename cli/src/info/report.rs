//! The report for people.

use super::facts::{
    BackendFacts, Facts, LinuxFacts, MachineFacts, PmuFacts, PrivilegeFacts, Refusal,
};
use super::words::{bytes, limited, may_count, paranoia, ranges, what_helps};
use crate::terminal::Layout;

/// Where the text beside the labels starts.
const INDENT: usize = 20;

/// The whole report.
pub(super) fn text(facts: &Facts, layout: Layout) -> String {
    let mut report = Report {
        out: String::new(),
        layout,
    };
    report.machine(&facts.machine);
    if let Some(linux) = &facts.linux {
        report.pmus(linux, facts.machine.virtual_machine);
        report.privileges(&linux.privileges);
        report.limits(linux);
        report.tracepoints(linux);
    }
    report.backends(&facts.backends);
    report.out
}

struct Report {
    out: String,
    layout: Layout,
}

impl Report {
    fn machine(&mut self, machine: &MachineFacts) {
        self.heading("Machine");
        let system = match machine.system {
            "linux" => "Linux",
            other => other,
        };
        let kernel = machine.kernel.as_deref().unwrap_or_default();
        self.row("kernel", &format!("{system} {kernel}"));
        let guest = match machine.virtual_machine {
            Some(true) => ", in a virtual machine",
            _ => "",
        };
        let cpu = or_unknown(machine.cpu.as_ref());
        self.row("CPU", &format!("{cpu}{guest}"));
        let sockets = match machine.sockets {
            Some(1) => ", 1 socket".to_owned(),
            Some(sockets) => format!(", {sockets} sockets"),
            None => String::new(),
        };
        let cpus = or_unknown(machine.cpus_online.as_ref());
        self.row("CPUs", &format!("{cpus} online{sockets}"));
    }

    fn pmus(&mut self, linux: &LinuxFacts, virtual_machine: Option<bool>) {
        self.heading("PMUs (performance monitoring units) the kernel knows");
        let width = |pmu: &PmuFacts| pmu.name.chars().count();
        let names = linux.pmus.iter().map(width).max().unwrap_or(0).max(4);
        if !linux.pmus.is_empty() {
            let columns = format!("  {:names$}  type  fields  events  CPUs", "name");
            let columns = self.layout.dim(&columns).into_owned();
            self.line(&columns);
        }
        for pmu in &linux.pmus {
            let cpus = match &pmu.cpus {
                None => "any".to_owned(),
                Some(cpus) if pmu.system_wide => format!("{}, whole CPUs only", ranges(cpus)),
                Some(cpus) => ranges(cpus),
            };
            self.line(&format!(
                "  {:names$}  {:>4}  {:>6}  {:>6}  {cpus}",
                pmu.name, pmu.type_, pmu.fields, pmu.events
            ));
        }
        if linux.has_cpu_pmu {
            return;
        }
        self.note(
            "None of them is of CPU cores, so hardware events (cycles, instructions, cache misses) \
             cannot be counted here.",
        );
        self.note(match virtual_machine {
            Some(true) => {
                "Whoever runs this virtual machine can give it a virtual PMU, if its host has one \
                 to give (with QEMU and KVM: -cpu host,pmu=on)."
            }
            _ => {
                "Virtual machines often hide it; else the firmware may have it switched off, or \
                 the kernel lacks a driver for this CPU."
            }
        });
    }

    fn privileges(&mut self, privileges: &PrivilegeFacts) {
        self.heading("Privileges");
        let user = match privileges.user_id {
            Some(0) => "0 (root)".to_owned(),
            id => or_unknown(id.as_ref()),
        };
        self.row("user id", &user);
        self.row("may count", &may_count(privileges));
        let paranoid = match privileges.perf_event_paranoid {
            None => "not there: this kernel has no perf_event_open".to_owned(),
            Some(level) if privileges.exempt => {
                format!("{level}, which does not bind this process")
            }
            Some(level) => format!("{level}: {}", paranoia(level)),
        };
        self.row("paranoid setting", &paranoid);
        let capabilities = match privileges.capabilities.as_slice() {
            [] => "none of those that matter for counting".to_owned(),
            some => some.join(", "),
        };
        self.row("capabilities", &capabilities);
        if privileges.initial_user_namespace == Some(false) {
            self.row(
                "user namespace",
                "not the initial one, as in a rootless container: capabilities do not help counting",
            );
        }
        match privileges.seccomp {
            Some("disabled") => self.row("seccomp", "system calls are not filtered"),
            Some(mode) => {
                let text = format!(
                    "{mode}: system calls are filtered; the profile of a container may forbid \
                     perf_event_open"
                );
                self.row("seccomp", &text);
            }
            None => {}
        }
        if let Some(help) = what_helps(privileges) {
            self.row("what would help", &help);
        }
    }

    fn limits(&mut self, linux: &LinuxFacts) {
        self.heading("Limits");
        if let Some(limit) = linux.limits.open_files {
            let limit = limited(limit, |files| files.to_string());
            let text = format!("{limit}; an event takes one for each thread or CPU counted");
            self.row("open files", &text);
        }
        if let Some(limit) = linux.limits.locked_memory {
            let limit = limited(limit, bytes);
            let text = format!("{limit}; counting needs none");
            self.row("locked memory", &text);
        }
    }

    fn tracepoints(&mut self, linux: &LinuxFacts) {
        self.heading("Tracepoints");
        let tracepoints = &linux.tracepoints;
        if let (Some(path), Some(systems)) = (&tracepoints.path, tracepoints.systems) {
            self.row(
                "tracefs",
                &format!("{path}, {systems} systems of tracepoints"),
            );
        }
        if let Some(refusal) = &tracepoints.refusal {
            self.refusal("tracefs", refusal);
        }
    }

    fn backends(&mut self, backends: &[BackendFacts]) {
        self.heading("Backends (ways to count)");
        for backend in backends {
            if let Some(refusal) = &backend.refusal {
                self.refusal(backend.name, refusal);
            }
            let Some(abilities) = &backend.abilities else {
                continue;
            };
            self.row(backend.name, "usable");
            self.row("  counts", &abilities.events.join(", "));
            if !abilities.no_events.is_empty() {
                self.row("  does not count", &abilities.no_events.join(", "));
            }
            self.row("  on", &abilities.targets.join(", "));
            let groups = match abilities.simultaneity {
                "atomic" => "read in one snapshot",
                "sequential" => "read one event after the other",
                _ => "not read together",
            };
            self.row("  groups", groups);
        }
    }

    fn refusal(&mut self, label: &str, refusal: &Refusal) {
        self.row(label, &refusal.reason);
        if let Some(hint) = &refusal.hint {
            self.row("  what would help", hint);
        }
    }

    fn heading(&mut self, text: &str) {
        if !self.out.is_empty() {
            self.out.push('\n');
        }
        let text = self.layout.bold(text).into_owned();
        self.line(&text);
    }

    fn row(&mut self, label: &str, text: &str) {
        let mut start = format!("  {label}");
        for line in self.layout.wrap(text, INDENT + 2) {
            self.line(&format!("{start:INDENT$}  {line}"));
            start.clear();
        }
    }

    fn note(&mut self, text: &str) {
        for line in self.layout.wrap(text, 2) {
            self.line(&format!("  {line}"));
        }
    }

    fn line(&mut self, line: &str) {
        self.out.push_str(line.trim_end());
        self.out.push('\n');
    }
}

fn or_unknown<T: ToString>(fact: Option<&T>) -> String {
    fact.map_or_else(|| "unknown".to_owned(), ToString::to_string)
}
