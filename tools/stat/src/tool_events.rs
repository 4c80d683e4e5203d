//! Events that are times of the run, as perf-list(1) has them: `duration_time`, `user_time`, `system_time`; and
//! `peak_memory`. No counter counts them.

use quipu::command::Exit;
use quipu::{Count, Event, EventSpec};

use quipu_shell::Failure;

use super::events::Request;
use super::rows::{Row, Unit};

/// Rows of tool events, each with the number of events before it.
type Tools = Vec<(usize, Row)>;

/// An event that is known of the run as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolEvent {
    /// The time that passed, in nanoseconds.
    Duration,
    /// The time that the command spent in user mode, in nanoseconds.
    User,
    /// The time that the command spent in the kernel, in nanoseconds.
    System,
    /// The largest resident set of the command, in bytes.
    PeakMemory,
}

impl ToolEvent {
    pub const ALL: [Self; 4] = [Self::Duration, Self::User, Self::System, Self::PeakMemory];

    /// Returns the name that it is asked for by.
    pub fn name(self) -> &'static str {
        match self {
            Self::Duration => "duration_time",
            Self::User => "user_time",
            Self::System => "system_time",
            Self::PeakMemory => "peak_memory",
        }
    }

    /// Returns what it is, in words.
    pub fn description(self) -> &'static str {
        match self {
            Self::Duration => "the time that passed, in nanoseconds",
            Self::User => "the time that the command spent in user mode, in nanoseconds",
            Self::System => "the time that the command spent in the kernel, in nanoseconds",
            Self::PeakMemory => "the most memory that the command had, in bytes",
        }
    }

    /// Returns the event that an event names, if it is one of these.
    pub fn of(spec: &EventSpec) -> Option<Self> {
        let Event::Named(name) = &spec.event else {
            return None;
        };
        Self::ALL.into_iter().find(|event| event.name() == name)
    }

    /// Returns its row, without modifiers: they would change nothing.
    pub fn row(self, label: &str) -> Row {
        let unit = match self {
            Self::PeakMemory => "bytes",
            _ => "ns",
        };
        // Not in milliseconds, as clocks are: scripts read these as perf writes them.
        let unit = Unit {
            name: unit.into(),
            factor: 1.0,
        };
        let spec = EventSpec::new(Event::Named(self.name().into()));
        Row {
            reason: Some("wait4(2) reports on a command only when it has ended".into()),
            ..Row::uncounted(label.into(), spec.into(), unit)
        }
    }
}

/// Enters the seconds that passed into rows of these events, and what is known of a command that has ended.
pub fn fill(rows: &mut [Row], elapsed: f64, exit: Option<&Exit>) {
    for row in rows {
        let value = match (ToolEvent::of(&row.spec), exit) {
            (Some(ToolEvent::Duration), _) => (elapsed * 1e9).round() as u128,
            (Some(ToolEvent::User), Some(exit)) => exit.user_time.as_nanos(),
            (Some(ToolEvent::System), Some(exit)) => exit.system_time.as_nanos(),
            (Some(ToolEvent::PeakMemory), Some(exit)) => exit.max_resident.into(),
            _ => continue,
        };
        row.count = Count::Exact(value);
        row.reason = None;
        row.enabled = (elapsed * 1e9).round() as u64;
        row.running = row.enabled;
    }
}

/// Returns the requests without those of tool events, and the rows of these.
pub fn split(requests: Vec<Request>) -> Result<(Vec<Request>, Tools), Failure> {
    let (mut counted, mut tools, mut before) = (Vec::new(), Tools::new(), 0);
    for request in requests {
        let members = request.group.members.as_slice();
        let mut events = members.iter().filter_map(ToolEvent::of);
        match (events.next(), members) {
            (Some(tool), [_]) => {
                let label = request.labels.first().map(ToString::to_string);
                tools.push((before, tool.row(label.as_deref().unwrap_or(tool.name()))));
            }
            (Some(tool), _) => {
                return Err(Failure::usage(format_args!(
                    "{} is known of the run as a whole and cannot be in a group: write it outside of the braces",
                    tool.name()
                )));
            }
            (None, _) => {
                before += members.len();
                counted.push(request);
            }
        }
    }
    Ok((counted, tools))
}

/// Adds the tool events that are not among them, all if the target is a command.
pub fn complete(tools: &mut Tools, requests: &[Request], of_command: bool) {
    let before = requests.iter().map(|r| r.group.members.len()).sum();
    for event in ToolEvent::ALL {
        let is_known = |(_, row): &(usize, Row)| ToolEvent::of(&row.spec) == Some(event);
        if (of_command || event == ToolEvent::Duration) && !tools.iter().any(is_known) {
            tools.push((before, event.row(event.name())));
        }
    }
}
