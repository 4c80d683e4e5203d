//! The report for people.

use super::facts::{Abilities, BackendFacts, DeviceFacts, Facts, MachineFacts, SelectionFacts};
use super::linux_facts::{CounterFacts, LinuxFacts, PmuFacts, PrivilegeFacts};
use super::refusal::Refusal;
use super::words::{bytes, limited, may_count, paranoia, ranges, what_helps};
use comfy_table::{CellAlignment, ColumnConstraint, Table, Width};
use quipu_shell::terminal::{Layout, table_lines};

/// The width of the labels.
const LABELS: u16 = 20;
/// The least width of the report.
const NARROWEST: usize = 46;

/// Returns the whole report.
pub(super) fn text(facts: &Facts, layout: Layout) -> String {
    let mut report = Report {
        out: String::new(),
        layout,
        rows: layout.table(NARROWEST),
    };
    report.machine(&facts.machine);
    if let Some(linux) = &facts.linux {
        report.pmus(linux, facts.machine.virtual_machine);
        report.counters(&linux.counters);
        report.privileges(&linux.privileges);
        report.limits(linux);
        report.tracepoints(linux);
    }
    if let Some(user) = facts.machine.user_id {
        report.user(user, facts.device.as_ref());
    }
    report.selection(&facts.selection, facts.machine.system);
    report.backends(&facts.backends, facts.device.as_ref());
    report.end_rows();
    report.out
}

struct Report {
    out: String,
    layout: Layout,
    /// The labels and texts of the section that is being written.
    rows: Table,
}

impl Report {
    fn machine(&mut self, machine: &MachineFacts) {
        self.heading("Machine");
        let system = match machine.system {
            "linux" => "Linux",
            "openbsd" => "OpenBSD",
            "freebsd" => "FreeBSD",
            "netbsd" => "NetBSD",
            "dragonfly" => "DragonFly",
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
        let clock = machine.clock_mhz.map(|mhz| format!("{:.2} GHz", mhz / 1e3));
        let about: Vec<String> = machine.cpu_id.iter().cloned().chain(clock).collect();
        if !about.is_empty() {
            self.row("", &about.join(", "));
        }
        if let Some(counters) = &machine.counters_by_cpuid {
            self.row("counters by CPUID", counters);
        }
        let sockets = match machine.sockets {
            Some(1) => ", 1 socket".to_owned(),
            Some(sockets) => format!(", {sockets} sockets"),
            None => String::new(),
        };
        let cpus = or_unknown(machine.cpus_online.as_ref());
        self.row("CPUs", &format!("{cpus} online{sockets}"));
    }

    fn pmus(&mut self, linux: &LinuxFacts, virtual_machine: Option<bool>) {
        self.heading("PMUs (performance monitoring units) known to the kernel");
        if !linux.pmus.is_empty() {
            let mut table = self.layout.table(NARROWEST);
            table.add_row(["name", "type", "fields", "events", "CPUs"]);
            table.add_rows(linux.pmus.iter().map(pmu_row));
            let numbers = table.column_iter_mut().skip(1).take(3);
            numbers.for_each(|column| column.set_cell_alignment(CellAlignment::Right));
            let mut lines = table_lines(table, 2);
            let columns = lines.next().unwrap_or_default();
            let columns = self.layout.dim(&columns).into_owned();
            std::iter::once(columns)
                .chain(lines)
                .for_each(|line| self.line(&line));
        }
        if linux.pmus.is_empty() {
            self.note("They cannot be listed: /sys is not mounted or cannot be read.");
        }
        if linux.has_cpu_pmu {
            return;
        }
        let none = match linux.pmus.as_slice() {
            [] => {
                "The kernel opens no hardware events (cycles, instructions, cache misses) either."
            }
            _ => {
                "None of them belongs to the CPU cores, so hardware events (cycles, instructions, cache \
                 misses) cannot be counted here."
            }
        };
        self.note(none);
        self.note(match virtual_machine {
            Some(true) => "The host can provide a virtual PMU: with QEMU/KVM, -cpu host,pmu=on.",
            _ => {
                "Virtual machines often hide it; otherwise it may be disabled in the firmware, or \
                 the kernel has no driver for this CPU."
            }
        });
    }

    fn counters(&mut self, counters: &CounterFacts) {
        self.heading("Hardware counters");
        for test in &counters.tests {
            // A single PMU needs no name.
            let pmu = test.pmu.as_deref().filter(|_| counters.tests.len() > 1);
            self.row(pmu.unwrap_or("state"), &test.state);
        }
        match &counters.no_user_reads {
            None => self.row("user-space reads", "of the calling thread's own counters"),
            Some(refusal) => self.refusal("user-space reads", refusal),
        }
    }

    fn privileges(&mut self, privileges: &PrivilegeFacts) {
        self.heading("Privileges");
        let user = privileges.user_id.map(user_id);
        self.row("user id", &or_unknown(user.as_ref()));
        self.row("may count", &may_count(privileges));
        let paranoid = match privileges.perf_event_paranoid {
            None if privileges.may_count.user_mode => {
                "not visible: /proc cannot be read".to_owned()
            }
            None => "not visible: /proc cannot be read, or this kernel has no perf_event_open"
                .to_owned(),
            Some(level) if privileges.exempt => {
                format!("{level}, but this process is exempt from it")
            }
            Some(level) => format!(
                "{level}: {}",
                paranoia(level, privileges.may_count.user_mode)
            ),
        };
        self.row("paranoid setting", &paranoid);
        let capabilities = match privileges.capabilities.as_slice() {
            [] => "none that matter for counting".to_owned(),
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

    /// The privileges of systems whose counters are behind a device.
    fn user(&mut self, user: u32, device: Option<&DeviceFacts>) {
        self.heading("Privileges");
        self.row("user id", &user_id(user));
        if let Some(device) = device {
            self.row(&device.path, permission(device));
        }
    }

    fn limits(&mut self, linux: &LinuxFacts) {
        self.heading("Limits");
        if linux.limits.open_files.is_none() && linux.limits.locked_memory.is_none() {
            self.note("They are not visible: /proc cannot be read.");
        }
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

    fn selection(&mut self, selection: &SelectionFacts, system: &str) {
        self.heading("Selection (which backends are used, and why)");
        for cpu in &selection.cpus {
            let by = match &cpu.recognised_by {
                Some(rule) => format!("recognised by {rule}"),
                None => "as asked for".to_owned(),
            };
            self.row("CPU entry", &format!("{} ({}), {by}", cpu.id, cpu.name));
            let prefers = match cpu.prefers.as_slice() {
                [] => format!("no backend on {system}"),
                some => format!("{} on {system}", some.join(", then ")),
            };
            self.row("  prefers", &prefers);
        }
        if let Some(refusal) = &selection.refusal {
            self.refusal("CPU entry", refusal);
        }
        for considered in &selection.considered {
            let verdict = if considered.chosen { "chosen: " } else { "" };
            let reasons = considered.reasons.join("; ");
            self.row(&considered.backend, &format!("{verdict}{reasons}"));
        }
    }

    fn backends(&mut self, backends: &[BackendFacts], device: Option<&DeviceFacts>) {
        self.heading("Backends (interfaces for counting)");
        for backend in backends {
            if let Some(refusal) = &backend.refusal {
                self.refusal(backend.name, refusal);
            }
            let read_only = device.is_some_and(|d| d.backend == backend.name && !d.writable);
            match &backend.abilities {
                // The time stamp counter is all that is left to it.
                Some(_) if read_only => self.row(
                    backend.name,
                    "counts nothing for this user, who may not write the device: run it as root",
                ),
                Some(abilities) => self.abilities(backend.name, abilities),
                None => {}
            }
            if backend.name == "msr" && cfg!(all(target_os = "linux", target_arch = "x86_64")) {
                self.row(
                    "  kernel taint",
                    "S, from the first write to a register until the next reboot",
                );
            }
        }
    }

    fn abilities(&mut self, backend: &str, abilities: &Abilities) {
        self.row(
            backend,
            match backend {
                "msr" => "usable, by name (--backend msr) or after consent (--allow-msr)",
                _ => "usable",
            },
        );
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

    fn refusal(&mut self, label: &str, refusal: &Refusal) {
        self.row(label, &refusal.reason);
        if let Some(hint) = &refusal.hint {
            self.row("  what would help", hint);
        }
    }

    fn heading(&mut self, text: &str) {
        self.end_rows();
        if !self.out.is_empty() {
            self.out.push('\n');
        }
        let text = self.layout.bold(text).into_owned();
        self.line(&text);
    }

    fn row(&mut self, label: &str, text: &str) {
        self.rows.add_row([label, text]);
    }

    /// Writes the rows of a section.
    fn end_rows(&mut self) {
        let mut rows = std::mem::replace(&mut self.rows, self.layout.table(NARROWEST));
        if let Some(labels) = rows.column_mut(0) {
            labels.set_constraint(ColumnConstraint::Absolute(Width::Fixed(LABELS)));
        }
        table_lines(rows, 2).for_each(|line| self.line(&line));
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

fn pmu_row(pmu: &PmuFacts) -> [String; 5] {
    let cpus = match &pmu.cpus {
        None => "any".to_owned(),
        Some(cpus) if pmu.system_wide => format!("{}, whole CPUs only", ranges(cpus)),
        Some(cpus) => ranges(cpus),
    };
    let numbers = [pmu.type_ as usize, pmu.fields, pmu.events].map(|n| n.to_string());
    let [type_, fields, events] = numbers;
    [pmu.name.clone(), type_, fields, events, cpus]
}

fn user_id(id: u32) -> String {
    match id {
        0 => "0 (root)".to_owned(),
        id => id.to_string(),
    }
}

fn permission(device: &DeviceFacts) -> &'static str {
    match (device.exists, device.readable, device.writable) {
        (false, ..) => "is not there",
        (_, _, true) => "may be written: counters can be set",
        (_, true, false) => "may be read, not written: no counter can be set",
        _ => "may be neither read nor written",
    }
}

fn or_unknown<T: ToString>(fact: Option<&T>) -> String {
    fact.map_or_else(|| "unknown".to_owned(), ToString::to_string)
}
