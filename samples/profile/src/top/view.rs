//! The screen of `quipu top`, and the work of its keys.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Modifier, Style};
use ratatui::widgets::{Cell, Paragraph, Row as TableRow, Table, TableState};

use crate::report::{Profile, Seen};

use super::keys::Key;
use super::rows::{self, Order, TopForm, TopRow};

const KEYS: &str = "\
Up Down PgUp PgDn Home   choose a function
Enter                    its instructions, with their shares
+                        its callers, where -g is given
s                        sort by share or another column
/                        show rows with a text in them
e                        the next event
z                        begin anew
p, Space                 pause and go on
h, ?                     these keys
q, Esc, Ctrl-C           back, or end";

/// A request of a key beyond the view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    None,
    End,
    Zero,
    /// The instructions of a function of the event.
    Annotate(Seen),
}

/// A page that covers the table, or the table.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Page {
    Table,
    Text { text: String, first: u16 },
}

/// The state of the screen.
#[derive(Debug)]
pub(super) struct View {
    form: TopForm,
    rows: Vec<TopRow>,
    /// The rows of which the callers are shown, by their cells.
    open: Vec<Vec<String>>,
    state: TableState,
    order: Order,
    filter: String,
    is_typing: bool,
    pub(super) is_paused: bool,
    event: usize,
    page: Page,
}

impl View {
    pub(super) fn new(form: TopForm) -> Self {
        Self {
            form,
            rows: Vec::new(),
            open: Vec::new(),
            state: TableState::default(),
            order: Order::Share,
            filter: String::new(),
            is_typing: false,
            is_paused: false,
            event: 0,
            page: Page::Table,
        }
    }

    /// Takes the rows of the event that is shown; the chosen one stays chosen.
    pub(super) fn update(&mut self, profile: &Profile) {
        let chosen = self.chosen().map(|row| row.cells.clone());
        let shown = (self.order, &*self.filter);
        self.rows = rows::rows(profile, self.event, &self.form, shown);
        let at = chosen.and_then(|chosen| self.rows.iter().position(|row| row.cells == chosen));
        let last = self.rows.len().checked_sub(1);
        let before = self.state.selected().unwrap_or(0);
        self.state.select(at.or(last.map(|last| before.min(last))));
    }

    /// Returns the number of the event that is shown.
    pub(super) fn event(&self) -> usize {
        self.event
    }

    fn chosen(&self) -> Option<&TopRow> {
        self.rows.get(self.state.selected()?)
    }

    /// Covers the table with a text.
    pub(super) fn show(&mut self, text: String) {
        self.page = Page::Text { text, first: 0 };
    }

    /// Does what a key stands for.
    pub(super) fn key(&mut self, key: Key, profile: &Profile) -> Action {
        if key == Key::Interrupt {
            return Action::End;
        }
        if self.is_typing {
            match key {
                Key::Enter => self.is_typing = false,
                Key::Escape => {
                    self.is_typing = false;
                    self.filter.clear();
                }
                Key::Backspace => drop(self.filter.pop()),
                Key::Char(c) => self.filter.push(c),
                _ => {}
            }
            self.update(profile);
            return Action::None;
        }
        if let Page::Text { first, .. } = &mut self.page {
            match key {
                Key::Up => *first = first.saturating_sub(1),
                Key::Down => *first = first.saturating_add(1),
                Key::PageUp => *first = first.saturating_sub(20),
                Key::PageDown | Key::Char(' ') => *first = first.saturating_add(20),
                Key::Home => *first = 0,
                _ => self.page = Page::Table,
            }
            return Action::None;
        }
        match key {
            Key::Char('q') | Key::Escape => return Action::End,
            Key::Char('h' | '?') => self.show(KEYS.to_owned()),
            Key::Char('s') => self.order = self.order.next(&self.form.keys),
            Key::Char('/') => self.is_typing = true,
            Key::Char('p' | ' ') => self.is_paused = !self.is_paused,
            Key::Char('e') => self.event = (self.event + 1) % profile.events.len().max(1),
            Key::Char('z') => return Action::Zero,
            Key::Up => self.state.select_previous(),
            Key::Down => self.state.select_next(),
            Key::PageUp => self.state.scroll_up_by(20),
            Key::PageDown => self.state.scroll_down_by(20),
            Key::Home => self.state.select_first(),
            Key::Char('+') => {
                let chosen = self.chosen().map(|row| row.cells.clone());
                if let Some(cells) = chosen {
                    match self.open.iter().position(|open| *open == cells) {
                        Some(at) => drop(self.open.remove(at)),
                        None => self.open.push(cells),
                    }
                }
            }
            Key::Enter => match self.chosen().map(|row| row.function.clone()) {
                Some(Some(function)) => return Action::Annotate(function),
                Some(None) => {
                    self.show("no functions are told apart: add sym to --sort".to_owned());
                }
                None => {}
            },
            _ => return Action::None,
        }
        self.update(profile);
        Action::None
    }

    /// Draws.
    pub(super) fn draw(&mut self, frame: &mut Frame<'_>, profile: &Profile, lost: u64) {
        let [head, body, foot] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Min(1),
            Constraint::Length(1),
        ])
        .areas(frame.area());
        let bold = Style::new().add_modifier(Modifier::BOLD);
        let event = profile.events.get(self.event);
        let (name, samples) = event.map_or(("", 0), |event| (&*event.name, event.total.samples));
        let paused = if self.is_paused { ", paused" } else { "" };
        let title = format!(
            "quipu top  {name}: {samples} recent samples, {lost} lost; by {}{paused}",
            self.order.name(&self.form.keys)
        );
        frame.render_widget(Paragraph::new(title).style(bold), head);
        match &self.page {
            Page::Text { text, first } => {
                frame.render_widget(Paragraph::new(text.as_str()).scroll((*first, 0)), body);
            }
            Page::Table => {
                // One row at least, the heading and the first line of a row stand beside the callers.
                let most = usize::from(body.height.saturating_sub(2));
                let count = |text: String| self.form.with_samples.then_some(text);
                let lines = self.rows.iter().map(|row| {
                    let numbers = [
                        Some(format!("{:8.2}%", row.percent)),
                        count(format!("{:>8}", row.samples)),
                    ];
                    let is_open = self.open.contains(&row.cells);
                    let callers = if is_open { &*row.callers } else { &[] };
                    let callers = &callers[..callers.len().min(most)];
                    let mut texts = row.cells.clone();
                    if let Some(last) = texts.last_mut() {
                        for caller in callers {
                            *last = format!("{last}\n{caller}");
                        }
                    }
                    let cells = numbers.into_iter().flatten().chain(texts);
                    TableRow::new(cells.map(Cell::new)).height(1 + callers.len() as u16)
                });
                let keys = &self.form.keys;
                let titles = [
                    Some("Overhead".to_owned()),
                    count(format!("{:>8}", "Samples")),
                ];
                let titles = titles.into_iter().flatten();
                let titles = titles.chain(keys.iter().map(|key| key.title().to_owned()));
                let numbers = [
                    Some(Constraint::Length(9)),
                    self.form.with_samples.then_some(Constraint::Length(8)),
                ];
                let before = keys.len().saturating_sub(1);
                let texts = std::iter::repeat_n(Constraint::Max(24), before);
                let texts = texts.chain([Constraint::Min(20)]);
                let table = Table::new(lines, numbers.into_iter().flatten().chain(texts))
                    .header(TableRow::new(titles).style(bold))
                    .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
                frame.render_stateful_widget(table, body, &mut self.state);
            }
        }
        let foot_line = match (self.is_typing, self.filter.is_empty()) {
            (true, _) => format!("/{}_", self.filter),
            (false, false) => format!("filter: {} (/ changes it)", self.filter),
            (false, true) => {
                let callers = if self.form.with_callers {
                    "  +: callers"
                } else {
                    ""
                };
                format!("q: end  h: keys  Enter: instructions{callers}")
            }
        };
        frame.render_widget(Paragraph::new(foot_line), foot);
    }
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;
    use crate::report::{self, EventProfile, Key as Column, Stack, Task, Weight};

    /// Returns 75 ns of work, called by main and by twice as much of other, and 25 ns of malloc.
    fn profile() -> Profile {
        let mut profile = Profile::default();
        let mut event = EventProfile {
            name: "cpu-clock".into(),
            ..EventProfile::default()
        };
        let of = |object: &str, name: &str| Seen {
            object: object.into(),
            name: Some(name.into()),
            inlined: false,
            in_kernel: false,
            source: None,
        };
        for (object, name, caller, period) in [
            ("/lib/libc.so.6", "malloc", "main", 25),
            ("/bin/a", "work", "main", 25),
            ("/bin/a", "work", "other", 50),
        ] {
            let frames = [of(object, name), of("/bin/a", caller)];
            let frames = frames.map(|function| profile.functions.place(function));
            let task = Task {
                command: "a".into(),
                pid: None,
                tid: None,
                cpu: None,
            };
            let stack = Stack {
                task,
                branch: None,
                frames: frames.into(),
            };
            event.total.add(Weight::of_sample(period));
            event.stacks.insert(
                stack,
                Weight {
                    samples: 256,
                    period,
                },
            );
        }
        profile.events.push(event);
        profile
    }

    fn view_of(with_samples: bool, with_callers: bool) -> View {
        View::new(TopForm {
            keys: vec![Column::Object, Column::Symbol],
            report: report::Options::default(),
            with_callers,
            with_samples,
            limit: 0.0,
        })
    }

    fn screen(view: &mut View, profile: &Profile) -> String {
        let mut terminal = Terminal::new(TestBackend::new(80, 12)).expect("in memory");
        let drawn = terminal.draw(|frame| view.draw(frame, profile, 3));
        let buffer = drawn.expect("in memory").buffer.clone();
        let cells = buffer.content.chunks(80);
        let lines = cells.map(|line| {
            line.iter()
                .map(ratatui::buffer::Cell::symbol)
                .collect::<String>()
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    fn press(view: &mut View, profile: &Profile, key: Key) -> Action {
        view.key(key, profile)
    }

    #[test]
    fn rows_are_sorted_filtered_and_chosen_by_keys() {
        let profile = profile();
        let mut view = view_of(false, false);
        view.update(&profile);
        let text = screen(&mut view, &profile);
        assert!(
            text.contains("cpu-clock: 3 recent samples, 3 lost"),
            "{text}"
        );
        assert!(text.contains("75.00% a "), "{text}");
        assert!(text.find("work") < text.find("malloc"), "{text}");
        press(&mut view, &profile, Key::Char('s'));
        press(&mut view, &profile, Key::Char('s'));
        let text = screen(&mut view, &profile);
        assert!(
            text.contains("by Symbol") && text.find("malloc") < text.find("work"),
            "{text}"
        );
        // What was chosen stays chosen in another order.
        let Action::Annotate(function) = press(&mut view, &profile, Key::Enter) else {
            panic!("a function is chosen");
        };
        assert_eq!(function.name.as_deref(), Some("work"));
        for key in "/LIBC".chars() {
            assert_eq!(press(&mut view, &profile, Key::Char(key)), Action::None);
        }
        let text = screen(&mut view, &profile);
        assert!(text.contains("malloc") && !text.contains("work"), "{text}");
        press(&mut view, &profile, Key::Escape);
        assert!(screen(&mut view, &profile).contains("work"));
        assert_eq!(press(&mut view, &profile, Key::Char('q')), Action::End);
        let mut view = view_of(true, false);
        view.update(&profile);
        let text = screen(&mut view, &profile);
        assert!(text.contains("Overhead   Samples Shared Object"), "{text}");
        assert!(text.contains("75.00%        2 a "), "{text}");
    }

    #[test]
    fn pages_of_text_cover_the_table_until_a_key() {
        let profile = profile();
        let mut view = view_of(false, false);
        view.update(&profile);
        press(&mut view, &profile, Key::Char('h'));
        assert!(screen(&mut view, &profile).contains("these keys"));
        assert_eq!(press(&mut view, &profile, Key::Char('q')), Action::None);
        assert!(screen(&mut view, &profile).contains("malloc"));
        press(&mut view, &profile, Key::Char('p'));
        assert!(view.is_paused && screen(&mut view, &profile).contains("paused"));
    }

    #[test]
    fn callers_of_a_row_are_shown_under_it_while_it_is_open() {
        let profile = profile();
        let mut view = view_of(false, true);
        view.update(&profile);
        let text = screen(&mut view, &profile);
        assert!(
            text.contains("+: callers") && !text.contains("other"),
            "{text}"
        );
        press(&mut view, &profile, Key::Char('+'));
        let text = screen(&mut view, &profile);
        let lines: Vec<_> = text.lines().map(str::trim).collect();
        let at = lines.iter().position(|line| line.ends_with("work"));
        let at = at.expect(&text);
        assert_eq!(
            lines[at + 1..at + 3],
            ["50.00%  other", "25.00%  main"],
            "{text}"
        );
        assert!(lines[at + 3].ends_with("malloc"), "{text}");
        press(&mut view, &profile, Key::Char('+'));
        assert!(!screen(&mut view, &profile).contains("other"));
    }
}
