//! The screen of `quipu top`, and the work of its keys.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Modifier, Style};
use ratatui::widgets::{Cell, Paragraph, Row as Line, Table, TableState};

use crate::annotate::{EventHits, Function};

use super::keys::Key;
use super::rows::{self, Order, Row, Shown};

const KEYS: &str = "\
Up Down PgUp PgDn Home   choose a function
Enter                    its instructions, with their shares
s                        sort by share, object or symbol
/                        show functions or objects with a text in their names
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
    Annotate(Function),
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
    rows: Vec<Row>,
    state: TableState,
    order: Order,
    filter: String,
    is_typing: bool,
    limit: f64,
    with_samples: bool,
    pub(super) is_paused: bool,
    event: usize,
    page: Page,
}

impl View {
    pub(super) fn new(limit: f64, with_samples: bool) -> Self {
        Self {
            rows: Vec::new(),
            state: TableState::default(),
            order: Order::Share,
            filter: String::new(),
            is_typing: false,
            limit,
            with_samples,
            is_paused: false,
            event: 0,
            page: Page::Table,
        }
    }

    /// Takes the rows of the event that is shown; the chosen function stays chosen.
    pub(super) fn update(&mut self, events: &[EventHits]) {
        let Some(event) = events.get(self.event) else {
            return;
        };
        let chosen = self.chosen().map(|row| row.function.clone());
        self.rows = rows::rows(
            event,
            Shown {
                order: self.order,
                filter: &self.filter,
                limit: self.limit,
            },
        );
        let at = chosen.and_then(|chosen| self.rows.iter().position(|row| row.function == chosen));
        let last = self.rows.len().checked_sub(1);
        let before = self.state.selected().unwrap_or(0);
        self.state.select(at.or(last.map(|last| before.min(last))));
    }

    /// Returns the number of the event that is shown.
    pub(super) fn event(&self) -> usize {
        self.event
    }

    fn chosen(&self) -> Option<&Row> {
        self.rows.get(self.state.selected()?)
    }

    /// Covers the table with a text.
    pub(super) fn show(&mut self, text: String) {
        self.page = Page::Text { text, first: 0 };
    }

    /// Does what a key stands for.
    pub(super) fn key(&mut self, key: Key, events: &[EventHits]) -> Action {
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
            self.update(events);
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
            Key::Char('s') => self.order = self.order.next(),
            Key::Char('/') => self.is_typing = true,
            Key::Char('p' | ' ') => self.is_paused = !self.is_paused,
            Key::Char('e') => self.event = (self.event + 1) % events.len().max(1),
            Key::Char('z') => return Action::Zero,
            Key::Up => self.state.select_previous(),
            Key::Down => self.state.select_next(),
            Key::PageUp => self.state.scroll_up_by(20),
            Key::PageDown => self.state.scroll_down_by(20),
            Key::Home => self.state.select_first(),
            Key::Enter => {
                let chosen = self.chosen().map(|row| row.function.clone());
                return chosen.map_or(Action::None, Action::Annotate);
            }
            _ => return Action::None,
        }
        self.update(events);
        Action::None
    }

    /// Draws.
    pub(super) fn draw(&mut self, frame: &mut Frame<'_>, event: Option<&EventHits>, lost: u64) {
        let [head, body, foot] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Min(1),
            Constraint::Length(1),
        ])
        .areas(frame.area());
        let bold = Style::new().add_modifier(Modifier::BOLD);
        let (name, samples) = event.map_or(("", 0), |event| (&event.name, event.total.samples));
        let paused = if self.is_paused { ", paused" } else { "" };
        let title = format!(
            "quipu top  {name}: {samples} recent samples, {lost} lost; by {}{paused}",
            self.order.name()
        );
        frame.render_widget(Paragraph::new(title).style(bold), head);
        match &self.page {
            Page::Text { text, first } => {
                frame.render_widget(Paragraph::new(text.as_str()).scroll((*first, 0)), body);
            }
            Page::Table => {
                let count = |text: String| self.with_samples.then_some(text);
                let lines = self.rows.iter().map(|row| {
                    let numbers = [
                        Some(format!("{:8.2}%", row.percent)),
                        count(format!("{:>8}", row.samples)),
                    ];
                    let texts = [&row.object, &row.symbol].map(|text| Cell::new(text.as_str()));
                    Line::new(numbers.into_iter().flatten().map(Cell::new).chain(texts))
                });
                let titles = [
                    Some("Overhead".to_owned()),
                    count(format!("{:>8}", "Samples")),
                    Some("Object".to_owned()),
                    Some("Symbol".to_owned()),
                ];
                let widths = [
                    Some(Constraint::Length(9)),
                    self.with_samples.then_some(Constraint::Length(8)),
                    Some(Constraint::Max(24)),
                    Some(Constraint::Min(20)),
                ];
                let table = Table::new(lines, widths.into_iter().flatten())
                    .header(Line::new(titles.into_iter().flatten()).style(bold))
                    .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
                frame.render_stateful_widget(table, body, &mut self.state);
            }
        }
        let foot_line = match (self.is_typing, self.filter.is_empty()) {
            (true, _) => format!("/{}_", self.filter),
            (false, false) => format!("filter: {} (/ changes it)", self.filter),
            (false, true) => "q: end  h: keys  Enter: instructions".to_owned(),
        };
        frame.render_widget(Paragraph::new(foot_line), foot);
    }
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;
    use crate::annotate::Hits;

    fn events() -> Vec<EventHits> {
        let mut event = EventHits {
            name: "cpu-clock".into(),
            ..EventHits::default()
        };
        for (object, name, period) in [("/lib/libc.so.6", "malloc", 25), ("/bin/a", "work", 75)] {
            let function = Function {
                object: object.into(),
                start: 0,
                name: Some(name.into()),
            };
            let mut hits = Hits::default();
            hits.total.add(period);
            event.total.add(period);
            event.functions.insert(function, hits);
        }
        vec![event]
    }

    fn screen(view: &mut View, events: &[EventHits]) -> String {
        let mut terminal = Terminal::new(TestBackend::new(80, 12)).expect("in memory");
        let drawn = terminal.draw(|frame| view.draw(frame, events.first(), 3));
        let buffer = drawn.expect("in memory").buffer.clone();
        let cells = buffer.content.chunks(80);
        let lines = cells.map(|line| {
            line.iter()
                .map(ratatui::buffer::Cell::symbol)
                .collect::<String>()
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    fn press(view: &mut View, events: &[EventHits], key: Key) -> Action {
        view.key(key, events)
    }

    #[test]
    fn rows_are_sorted_filtered_and_chosen_by_keys() {
        let events = events();
        let mut view = View::new(0.0, false);
        view.update(&events);
        let text = screen(&mut view, &events);
        assert!(
            text.contains("cpu-clock: 2 recent samples, 3 lost"),
            "{text}"
        );
        assert!(text.contains("75.00% a "), "{text}");
        assert!(text.find("work") < text.find("malloc"), "{text}");
        press(&mut view, &events, Key::Char('s'));
        press(&mut view, &events, Key::Char('s'));
        let text = screen(&mut view, &events);
        assert!(
            text.contains("by symbol") && text.find("malloc") < text.find("work"),
            "{text}"
        );
        // What was chosen stays chosen in another order.
        let Action::Annotate(function) = press(&mut view, &events, Key::Enter) else {
            panic!("a function is chosen");
        };
        assert_eq!(function.name.as_deref(), Some("work"));
        for key in "/LIBC".chars() {
            assert_eq!(press(&mut view, &events, Key::Char(key)), Action::None);
        }
        let text = screen(&mut view, &events);
        assert!(text.contains("malloc") && !text.contains("work"), "{text}");
        press(&mut view, &events, Key::Escape);
        assert!(screen(&mut view, &events).contains("work"));
        assert_eq!(press(&mut view, &events, Key::Char('q')), Action::End);
        let mut view = View::new(0.0, true);
        view.update(&events);
        let text = screen(&mut view, &events);
        assert!(text.contains("Overhead   Samples Object"), "{text}");
        assert!(text.contains("75.00%        1 a "), "{text}");
    }

    #[test]
    fn pages_of_text_cover_the_table_until_a_key() {
        let events = events();
        let mut view = View::new(0.0, false);
        view.update(&events);
        press(&mut view, &events, Key::Char('h'));
        assert!(screen(&mut view, &events).contains("these keys"));
        assert_eq!(press(&mut view, &events, Key::Char('q')), Action::None);
        assert!(screen(&mut view, &events).contains("malloc"));
        press(&mut view, &events, Key::Char('p'));
        assert!(view.is_paused && screen(&mut view, &events).contains("paused"));
    }
}
