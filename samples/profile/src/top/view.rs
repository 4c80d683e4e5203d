//! The screen of `quipu top`, and the work of its keys.

use std::iter;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier};
use ratatui::widgets::{Cell, Paragraph, Row as TableRow, Table, TableState, Wrap};

use crate::report::{HOT, Profile, Seen};

use quipu_shell::terminal::shortened;

use super::keys::Key;
use super::rows::{self, Order, TopForm, TopRow};

const KEYS: &str = "\
Up Down PgUp PgDn Home   choose a function
Enter                    its instructions, with their shares
+                        its callers, where -g is given
s                        sort by share or another column
/                        show rows with a text in them
e                        the next event
i                        hide idle functions, or show them
z                        count from zero
p, Space                 pause and go on
h, ?                     these keys
q, Ctrl-C                end
Esc                      back; undo the filter; end";

/// The least lines of a terminal that has one for notes.
const LEAST_WITH_NOTE: u16 = 7;
/// The least columns for the name of a function, where there are others.
const NAME_WIDTH: usize = 20;
/// The least and the most columns for another key.
const LEAST_WIDTH: usize = 10;
const MOST_WIDTH: usize = 24;

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

/// The samples of an event when the table was last brought up to date.
#[derive(Debug)]
struct ShownEvent {
    name: String,
    samples: u64,
    rows: Vec<TopRow>,
}

/// The state of the screen.
#[derive(Debug)]
pub(super) struct View {
    form: TopForm,
    /// True if colours are used.
    colour: bool,
    /// Notes on what is sampled otherwise than it was asked for.
    notes: Vec<String>,
    /// All rows of all events: keys choose among what is on the screen, not among what is sampled meanwhile.
    shown: Vec<ShownEvent>,
    /// The rows of the event that are chosen, in order.
    rows: Vec<TopRow>,
    /// The rows of which the callers are shown, by their cells.
    open: Vec<Vec<String>>,
    state: TableState,
    order: Order,
    filter: String,
    hides_idle: bool,
    is_typing: bool,
    pub(super) is_paused: bool,
    event: usize,
    page: Page,
}

impl View {
    pub(super) fn new(form: TopForm, notes: &[String], colour: bool) -> Self {
        Self {
            form,
            colour,
            notes: notes.to_vec(),
            shown: Vec::new(),
            rows: Vec::new(),
            open: Vec::new(),
            state: TableState::default(),
            order: Order::Share,
            filter: String::new(),
            hides_idle: false,
            is_typing: false,
            is_paused: false,
            event: 0,
            page: Page::Table,
        }
    }

    /// Takes the samples of all events; the chosen row stays chosen.
    pub(super) fn update(&mut self, profile: &Profile) {
        let events = profile.events.iter().map(|event| ShownEvent {
            name: event.name.clone(),
            samples: event.total.samples,
            rows: rows::rows(profile, event, &self.form),
        });
        self.shown = events.collect();
        self.choose();
    }

    /// Chooses the rows of the event that is shown; the chosen row stays chosen.
    fn choose(&mut self) {
        let chosen = self.chosen().map(|row| row.cells.clone());
        let all = self.shown.get(self.event);
        let all = all.map_or(&[][..], |shown| &shown.rows);
        self.rows = rows::chosen(all, self.order, &self.filter);
        self.rows.retain(|row| !(row.is_idle && self.hides_idle));
        let at = chosen.and_then(|chosen| self.rows.iter().position(|row| row.cells == chosen));
        let last = self.rows.len().checked_sub(1);
        let before = self.state.selected().unwrap_or(0);
        self.state.select(at.or(last.map(|last| before.min(last))));
    }

    /// Returns true if no event has samples.
    pub(super) fn is_empty(&self) -> bool {
        self.shown.iter().all(|shown| shown.samples == 0)
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
    pub(super) fn key(&mut self, key: Key) -> Action {
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
            self.choose();
            return Action::None;
        }
        if let Page::Text { first, .. } = &mut self.page {
            match key {
                Key::Up => *first = first.saturating_sub(1),
                Key::Down => *first = first.saturating_add(1),
                Key::PageUp => *first = first.saturating_sub(20),
                Key::PageDown | Key::Char(' ') => *first = first.saturating_add(20),
                Key::Home => *first = 0,
                Key::Char('q') => return Action::End,
                _ => self.page = Page::Table,
            }
            return Action::None;
        }
        match key {
            Key::Escape if !self.filter.is_empty() => self.filter.clear(),
            Key::Char('q') | Key::Escape => return Action::End,
            Key::Char('h' | '?') => self.show(self.help()),
            Key::Char('s') => self.order = self.order.next(&self.form.keys),
            Key::Char('/') => self.is_typing = true,
            Key::Char('p' | ' ') => self.is_paused = !self.is_paused,
            Key::Char('e') => self.event = (self.event + 1) % self.shown.len().max(1),
            Key::Char('i') => self.hides_idle = !self.hides_idle,
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
        self.choose();
        Action::None
    }

    /// Returns the page on keys, with the notes in full.
    fn help(&self) -> String {
        let mut text = KEYS.to_owned();
        for note in &self.notes {
            text += "\n\n";
            text += note;
        }
        text
    }

    /// Draws.
    pub(super) fn draw(&mut self, frame: &mut Frame<'_>, lost: u64) {
        let area = frame.area();
        let note = match self.notes.len() {
            1.. if area.height >= LEAST_WITH_NOTE => 1,
            _ => 0,
        };
        let [head, body, notes, foot] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Min(1),
            Constraint::Length(note),
            Constraint::Length(1),
        ])
        .areas(area);
        let title = Paragraph::new(self.title(lost));
        frame.render_widget(title.style(Modifier::BOLD), head);
        match &self.page {
            Page::Text { text, first } => {
                let text = Paragraph::new(text.as_str());
                // The keys and instructions are columns; a note is wider than a narrow terminal.
                let text = text.wrap(Wrap { trim: false });
                frame.render_widget(text.scroll((*first, 0)), body);
            }
            Page::Table if self.rows.is_empty() => {
                let why = match self.shown.get(self.event) {
                    Some(shown) if shown.samples > 0 && !self.filter.is_empty() => {
                        "no row has the text of the filter"
                    }
                    Some(shown) if shown.samples > 0 && self.hides_idle => {
                        "nothing but idle functions, which are hidden (i shows them)"
                    }
                    _ => "no samples yet",
                };
                frame.render_widget(Paragraph::new(why), body);
            }
            Page::Table => self.draw_table(frame, body),
        }
        let all = self.notes.join("; ");
        let all = shortened(&all, usize::from(notes.width));
        frame.render_widget(Paragraph::new(all).style(Modifier::DIM), notes);
        frame.render_widget(Paragraph::new(self.foot()), foot);
    }

    fn title(&self, lost: u64) -> String {
        let event = self.shown.get(self.event);
        let (name, samples) = event.map_or(("", 0), |event| (&*event.name, event.samples));
        let idle = if self.hides_idle {
            ", without idle"
        } else {
            ""
        };
        let paused = if self.is_paused { ", paused" } else { "" };
        format!(
            "quipu top  {name}: {samples} recent samples, {lost} lost; by {}{idle}{paused}",
            self.order.name(&self.form.keys)
        )
    }

    fn foot(&self) -> String {
        match (self.is_typing, self.filter.is_empty()) {
            (true, _) => format!("/{}_", self.filter),
            (false, false) => format!("filter: {} (/ changes it, Esc clears it)", self.filter),
            (false, true) => {
                let callers = if self.form.with_callers {
                    "  +: callers"
                } else {
                    ""
                };
                format!("q: end  h: keys  Enter: instructions{callers}")
            }
        }
    }

    fn draw_table(&mut self, frame: &mut Frame<'_>, body: Rect) {
        // One row at least, the heading and the first line of a row stand beside the callers.
        let most = usize::from(body.height.saturating_sub(2));
        let keys = &self.form.keys;
        // The shares and the names say most.
        let numbers = 9 + 1 + 8;
        let with_samples =
            self.form.with_samples && usize::from(body.width) > numbers + LEAST_WIDTH;
        let numbers = if with_samples { numbers } else { 9 };
        let left = usize::from(body.width).saturating_sub(numbers + keys.len());
        let before = match keys.len() - 1 {
            before if left >= before * LEAST_WIDTH + NAME_WIDTH => before,
            _ => 0,
        };
        let first = keys.len() - 1 - before;
        let count = |text: String| with_samples.then_some(text);
        let lines = self.rows.iter().map(|row| {
            let numbers = [
                Some(format!("{:8.2}%", row.percent)),
                count(format!("{:>8}", row.samples)),
            ];
            let is_open = self.open.contains(&row.cells);
            let callers = if is_open { &*row.callers } else { &[] };
            let callers = &callers[..callers.len().min(most)];
            let mut texts = row.cells[first..].to_vec();
            if let Some(last) = texts.last_mut() {
                for caller in callers {
                    *last = format!("{last}\n{caller}");
                }
            }
            let cells = numbers.into_iter().flatten().chain(texts);
            let is_hot = self.colour && row.percent >= HOT && !row.is_idle;
            let cells = cells.enumerate().map(|(at, text)| match at {
                0 if is_hot => Cell::new(text).style(Color::Red),
                _ => Cell::new(text),
            });
            TableRow::new(cells).height(1 + callers.len() as u16)
        });
        let titles = [
            Some("Overhead".to_owned()),
            count(format!("{:>8}", "Samples")),
        ];
        let titles = titles.into_iter().flatten();
        let titles = titles.chain(keys[first..].iter().map(|key| key.title().to_owned()));
        let width = ((left.saturating_sub(NAME_WIDTH)) / before.max(1)).min(MOST_WIDTH);
        let widths = [
            Some(Constraint::Length(9)),
            with_samples.then_some(Constraint::Length(8)),
        ];
        let widths = widths.into_iter().flatten();
        let widths = widths.chain(iter::repeat_n(Constraint::Length(width as u16), before));
        let table = Table::new(lines, widths.chain([Constraint::Fill(1)]))
            .header(TableRow::new(titles).style(Modifier::BOLD))
            .row_highlight_style(Modifier::REVERSED);
        frame.render_stateful_widget(table, body, &mut self.state);
    }
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;
    use crate::report::{self, Key as Column};
    use crate::top::example::profile;

    fn view_of(with_samples: bool, with_callers: bool) -> View {
        let form = TopForm {
            keys: vec![Column::Object, Column::Symbol],
            report: report::Options::default(),
            with_callers,
            with_samples,
            limit: 0.0,
        };
        let mut view = View::new(form, &[], true);
        view.update(&profile());
        view
    }

    fn screen(view: &mut View) -> String {
        sized(view, 80, 12)
    }

    fn sized(view: &mut View, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("in memory");
        let drawn = terminal.draw(|frame| view.draw(frame, 3));
        let buffer = drawn.expect("in memory").buffer.clone();
        let cells = buffer.content.chunks(width.into());
        let lines = cells.map(|line| {
            let line = line.iter().map(ratatui::buffer::Cell::symbol);
            line.collect::<String>().trim_end().to_owned()
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    fn press(view: &mut View, key: Key) -> Action {
        view.key(key)
    }

    #[test]
    fn notes_and_narrow_terminals_leave_room_for_rows() {
        let note = "there is no CPU PMU here: sampling cpu-clock instead of cycles".to_owned();
        let mut view = view_of(true, true);
        view.notes = vec![note];
        press(&mut view, Key::Char('+'));
        let sizes = [
            (80, 12),
            (200, 8),
            (40, 8),
            (25, 8),
            (20, 8),
            (20, 4),
            (3, 3),
            (1, 1),
        ];
        let screens = sizes.map(|(width, height)| {
            let screen = sized(&mut view, width, height);
            assert!(width < 20 || screen.contains("75.00%"), "{screen}");
            format!("{width} x {height}\n{screen}\n")
        });
        insta::assert_snapshot!(screens.join("\n"));
        press(&mut view, Key::Char('h'));
        insta::assert_snapshot!(screen(&mut view));
    }

    #[test]
    fn large_shares_are_red_where_colours_are_used() {
        for colour in [true, false] {
            let mut view = view_of(false, false);
            view.colour = colour;
            let mut terminal = Terminal::new(TestBackend::new(80, 12)).expect("in memory");
            let drawn = terminal.draw(|frame| view.draw(frame, 0));
            let buffer = drawn.expect("in memory").buffer.clone();
            let red = buffer.content.iter().filter(|cell| cell.fg == Color::Red);
            assert_eq!(red.count() > 0, colour);
        }
    }

    #[test]
    fn an_empty_table_says_why() {
        let mut view = view_of(false, false);
        press(&mut view, Key::Char('/'));
        press(&mut view, Key::Char('!'));
        let text = screen(&mut view);
        assert!(text.contains("no row has the text of the filter"), "{text}");
        view.update(&Profile::default());
        assert!(view.is_empty());
        assert!(screen(&mut view).contains("no samples yet"));
    }

    #[test]
    fn idle_functions_are_hidden_by_a_key() {
        let mut view = view_of(false, false);
        view.shown[0].rows[0].is_idle = true;
        for is_shown in [false, true] {
            press(&mut view, Key::Char('i'));
            let text = screen(&mut view);
            assert_eq!(text.contains("work"), is_shown, "{text}");
            assert_eq!(text.contains("by share, without idle"), !is_shown, "{text}");
        }
    }

    #[test]
    fn rows_are_sorted_filtered_and_chosen_by_keys() {
        let mut view = view_of(false, false);
        let text = screen(&mut view);
        assert!(
            text.contains("cpu-clock: 3 recent samples, 3 lost"),
            "{text}"
        );
        assert!(text.contains("75.00% a "), "{text}");
        assert!(text.find("work") < text.find("malloc"), "{text}");
        press(&mut view, Key::Char('s'));
        press(&mut view, Key::Char('s'));
        let text = screen(&mut view);
        assert!(
            text.contains("by Symbol") && text.find("malloc") < text.find("work"),
            "{text}"
        );
        // What was chosen stays chosen in another order.
        let Action::Annotate(function) = press(&mut view, Key::Enter) else {
            panic!("a function is chosen");
        };
        assert_eq!(function.name.as_deref(), Some("work"));
        for key in "/LIBC".chars() {
            assert_eq!(press(&mut view, Key::Char(key)), Action::None);
        }
        let text = screen(&mut view);
        assert!(text.contains("malloc") && !text.contains("work"), "{text}");
        press(&mut view, Key::Escape);
        assert!(screen(&mut view).contains("work"));
        assert_eq!(press(&mut view, Key::Char('q')), Action::End);
        let mut view = view_of(true, false);
        let text = screen(&mut view);
        assert!(text.contains("Overhead   Samples Shared Object"), "{text}");
        assert!(text.contains("75.00%        2 a "), "{text}");
    }

    #[test]
    fn pages_of_text_cover_the_table_until_a_key() {
        let mut view = view_of(false, false);
        press(&mut view, Key::Char('h'));
        assert!(screen(&mut view).contains("these keys"));
        assert_eq!(press(&mut view, Key::Escape), Action::None);
        assert!(screen(&mut view).contains("malloc"));
        press(&mut view, Key::Char('h'));
        assert_eq!(press(&mut view, Key::Char('q')), Action::End);
        press(&mut view, Key::Escape);
        press(&mut view, Key::Char('p'));
        assert!(view.is_paused && screen(&mut view).contains("paused"));
    }

    #[test]
    fn callers_of_a_row_are_shown_under_it_while_it_is_open() {
        let mut view = view_of(false, true);
        let text = screen(&mut view);
        assert!(
            text.contains("+: callers") && !text.contains("other"),
            "{text}"
        );
        press(&mut view, Key::Char('+'));
        let text = screen(&mut view);
        let lines: Vec<_> = text.lines().map(str::trim).collect();
        let at = lines.iter().position(|line| line.ends_with("work"));
        let at = at.expect(&text);
        assert_eq!(
            lines[at + 1..at + 3],
            ["50.00%  other", "25.00%  main"],
            "{text}"
        );
        assert!(lines[at + 3].ends_with("malloc"), "{text}");
        press(&mut view, Key::Char('+'));
        assert!(!screen(&mut view).contains("other"));
    }
}
