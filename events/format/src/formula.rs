//! Formulas over events, of which presets are made.
//!
//! A formula is parsed once into a list of steps and evaluated from it; there is no code per preset.

use std::fmt;

use quipu_hal::{CacheEvent, Event, Hardware, PmuEvent, Software};

use crate::generalized::is_generalized;

/// A formula over events: names, numbers, `+ - * /`, parentheses, `max(A, B)` and `min(A, B)`.
///
/// A hyphen inside a name belongs to the name (`branch-misses`); to subtract, put spaces around it. An event of one core
/// PMU of several is written as perf does: `cpu_atom@INST_RETIRED.ANY@`.
///
/// ```
/// use quipu_events_format::Formula;
///
/// let misses = Formula::parse("L1D.REPLACEMENT + 2 * (ICACHE.MISSES - branch-misses)").unwrap();
/// assert_eq!(misses.events(), ["L1D.REPLACEMENT", "ICACHE.MISSES", "branch-misses"]);
/// assert_eq!(misses.evaluate(&[10.0, 5.0, 1.0]), Some(18.0));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Formula {
    text: String,
    events: Vec<String>,
    steps: Vec<Step>,
}

/// One step on a stack of numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Step {
    Number(f64),
    Event(usize),
    Add,
    Subtract,
    Multiply,
    Divide,
    Largest,
    Smallest,
}

/// The reason why a text is no formula.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FormulaError {
    /// The byte offset in the text.
    pub at: usize,
    /// The fault at that position.
    pub reason: &'static str,
}

impl fmt::Display for FormulaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at character {}: {}", self.at + 1, self.reason)
    }
}

impl std::error::Error for FormulaError {}

impl Formula {
    /// The longest formula, in bytes.
    const LONGEST: usize = 4096;

    /// The most numbers that wait on the stack.
    const ROOM: usize = 32;

    /// Parses a formula.
    ///
    /// # Errors
    /// The first fault of the text and its position, when it is no formula.
    pub fn parse(text: &str) -> Result<Self, FormulaError> {
        if text.len() > Self::LONGEST {
            return Err(FormulaError {
                at: Self::LONGEST,
                reason: "the formula is too long",
            });
        }
        let mut parser = Parser {
            text,
            at: 0,
            depth: 0,
            formula: Self {
                text: text.trim().to_owned(),
                events: Vec::new(),
                steps: Vec::new(),
            },
        };
        parser.expression()?;
        match parser.peek() {
            None if parser.formula.height() > Self::ROOM => {
                parser.at = 0;
                Err(parser.error("too many numbers wait for an operator"))
            }
            None => Ok(parser.formula),
            Some(')') => Err(parser.error("this parenthesis was never opened")),
            Some(other) => Err(parser.no_operator(other)),
        }
    }

    /// Returns the names of its events, each once, in the order they are first named.
    pub fn events(&self) -> &[String] {
        &self.events
    }

    /// Returns the event of a formula that is one event and nothing else.
    pub fn single(&self) -> Option<&str> {
        match self.steps[..] {
            [Step::Event(index)] => self.events.get(index).map(String::as_str),
            _ => None,
        }
    }

    /// Returns the event that each of [`events`](Self::events) stands for: a generalized event by its usual
    /// name, else an event by the name that a CPU has for it.
    ///
    /// ```
    /// use quipu_events_format::Formula;
    /// use quipu_hal::{Event, Software};
    ///
    /// let formula = Formula::parse("page-faults - L1D.REPLACEMENT").unwrap();
    /// let terms: Vec<Event> = formula.terms().collect();
    /// assert_eq!(terms[0], Event::Software(Software::PageFaults));
    /// assert_eq!(terms[1], Event::Named("L1D.REPLACEMENT".into()));
    /// ```
    pub fn terms(&self) -> impl ExactSizeIterator<Item = Event> + '_ {
        self.events.iter().map(|name| term(name))
    }

    /// Returns the text of the formula with every event that is not software counted on one core PMU.
    ///
    /// ```
    /// use quipu_events_format::Formula;
    ///
    /// let formula = Formula::parse("max(INST_RETIRED.ANY, 2) / task-clock").unwrap();
    /// let on_atom = formula.on_core("cpu_atom");
    /// assert_eq!(on_atom, "max(cpu_atom@INST_RETIRED.ANY@, 2) / task-clock");
    /// let event = Formula::parse(&on_atom).unwrap().terms().next().unwrap();
    /// assert_eq!(event.to_string(), "cpu_atom/INST_RETIRED.ANY/");
    /// ```
    pub fn on_core(&self, pmu: &str) -> String {
        let mut text = String::new();
        let mut rest = self.text.as_str();
        while let Some(at) = rest.find(starts_word) {
            let (between, from_word) = rest.split_at(at);
            let (word, after) = from_word.split_at(word_length(from_word));
            text += between;
            let is_event = self.events.iter().any(|event| event == word);
            let has_pmu = word.contains('@');
            match is_event && !has_pmu && !matches!(term(word), Event::Software(_)) {
                true => text += &format!("{pmu}@{word}@"),
                false => text += word,
            }
            rest = after;
        }
        text + rest
    }

    /// Returns true if whole numbers always give a whole number: nothing is divided, and no number has a
    /// fraction.
    pub fn is_whole(&self) -> bool {
        self.steps.iter().all(|step| match step {
            Step::Divide => false,
            Step::Number(number) => whole(*number).is_some(),
            _ => true,
        })
    }

    /// Returns the unit of the formula's value for the units of its events, in the order of
    /// [`events`](Self::events); a plain count has the unit `""`. `None` where it is no unit of theirs.
    ///
    /// ```
    /// use quipu_events_format::Formula;
    ///
    /// let formula = Formula::parse("(A - 2 * B) / C").unwrap();
    /// assert_eq!(formula.unit(&["ns", "ns", ""]), Some("ns"));
    /// assert_eq!(formula.unit(&["ns", "ns", "ns"]), Some(""));
    /// assert_eq!(formula.unit(&["ns", "", ""]), None);
    /// ```
    pub fn unit<'u>(&self, units: &[&'u str]) -> Option<&'u str> {
        self.run(
            units,
            |_| Some(""),
            |operator, left: &str, right| match (operator, left, right) {
                (Step::Add | Step::Subtract | Step::Largest | Step::Smallest, _, _) => {
                    (left == right).then_some(left)
                }
                (_, _, "") => Some(left),
                (Step::Multiply, "", _) => Some(right),
                (Step::Divide, _, _) => (left == right).then_some(""),
                _ => None,
            },
        )
    }

    /// Returns the value of a [whole](Self::is_whole) formula, exactly, for one value of each event in the order
    /// of [`events`](Self::events).
    ///
    /// `None` when the formula is not whole, a value is missing, or a result has more than 127 bits.
    ///
    /// ```
    /// use quipu_events_format::Formula;
    ///
    /// let operations = Formula::parse("SCALAR + 4 * PACKED").unwrap();
    /// let odd = (1 << 60) + 1;
    /// assert_eq!(operations.evaluate_whole(&[odd, 1]), Some(odd + 4));
    /// ```
    pub fn evaluate_whole(&self, values: &[i128]) -> Option<i128> {
        self.run(
            values,
            whole,
            |operator, left: i128, right| match operator {
                Step::Add => left.checked_add(right),
                Step::Subtract => left.checked_sub(right),
                Step::Multiply => left.checked_mul(right),
                Step::Largest => Some(left.max(right)),
                Step::Smallest => Some(left.min(right)),
                _ => None,
            },
        )
    }

    /// Returns the value of the formula for one value of each event, in the order of [`events`](Self::events).
    ///
    /// `None` when a value is missing, or where the formula divides by zero.
    pub fn evaluate(&self, values: &[f64]) -> Option<f64> {
        self.run(values, Some, |operator, left: f64, right| match operator {
            Step::Add => Some(left + right),
            Step::Subtract => Some(left - right),
            Step::Multiply => Some(left * right),
            Step::Largest => Some(left.max(right)),
            Step::Smallest => Some(left.min(right)),
            _ if right == 0.0 => None,
            _ => Some(left / right),
        })
    }

    /// Returns true if lower bounds of its events give a lower bound of its value: nothing is subtracted, and no event is
    /// divided by.
    ///
    /// ```
    /// use quipu_events_format::Formula;
    ///
    /// let keeps = |text| Formula::parse(text).unwrap().keeps_lower_bounds();
    /// assert!(keeps("2 * max(A, B) / 3 + C"));
    /// assert!(!keeps("A - B"));
    /// assert!(!keeps("A / B"));
    /// ```
    pub fn keeps_lower_bounds(&self) -> bool {
        let is_event = vec![true; self.events.len()];
        let kept = self.run(
            &is_event,
            |_| Some(false),
            |operator, left, right| match operator {
                Step::Subtract => None,
                Step::Divide if right => None,
                _ => Some(left || right),
            },
        );
        kept.is_some()
    }

    /// Returns the most numbers that are on the stack at a time.
    fn height(&self) -> usize {
        let heights = self.steps.iter().scan(0, |height, step| {
            match step {
                Step::Number(_) | Step::Event(_) => *height += 1,
                _ => *height -= 1,
            }
            Some(*height)
        });
        heights.max().unwrap_or(0)
    }

    /// Runs the steps, in one kind of number. Allocates nothing.
    fn run<N: Copy + Default>(
        &self,
        values: &[N],
        number: impl Fn(f64) -> Option<N>,
        apply: impl Fn(Step, N, N) -> Option<N>,
    ) -> Option<N> {
        let mut stack = [N::default(); Self::ROOM];
        let mut height = 0;
        for step in &self.steps {
            let value = match *step {
                Step::Number(value) => number(value)?,
                Step::Event(index) => *values.get(index)?,
                operator => {
                    let [left, right] = stack[..height].last_chunk()?;
                    height -= 2;
                    apply(operator, *left, *right)?
                }
            };
            *stack.get_mut(height)? = value;
            height += 1;
        }
        stack[..height].last().copied()
    }
}

/// A formula while it is parsed by recursive descent; operands and operators are pushed in postfix order.
struct Parser<'t> {
    text: &'t str,
    at: usize,
    /// The number of open parentheses.
    depth: usize,
    formula: Formula,
}

impl Parser<'_> {
    /// The most parentheses inside one another.
    const DEEPEST: usize = 64;

    fn error(&self, reason: &'static str) -> FormulaError {
        FormulaError {
            at: self.at,
            reason,
        }
    }

    /// Returns the next character that is no space, and moves to it.
    fn peek(&mut self) -> Option<char> {
        let rest = &self.text[self.at..];
        let space = rest.find(|c: char| !c.is_ascii_whitespace());
        self.at += space.unwrap_or(rest.len());
        self.text[self.at..].chars().next()
    }

    /// Parses terms joined by `+` and `-`.
    fn expression(&mut self) -> Result<(), FormulaError> {
        self.joined([('+', Step::Add), ('-', Step::Subtract)], Self::term)
    }

    /// Parses factors joined by `*` and `/`.
    fn term(&mut self) -> Result<(), FormulaError> {
        self.joined([('*', Step::Multiply), ('/', Step::Divide)], Self::factor)
    }

    fn joined(
        &mut self,
        operators: [(char, Step); 2],
        operand: fn(&mut Self) -> Result<(), FormulaError>,
    ) -> Result<(), FormulaError> {
        operand(self)?;
        while let Some(next) = self.peek()
            && let Some((_, step)) = operators.iter().find(|(operator, _)| *operator == next)
        {
            self.at += 1;
            let (at, first) = (self.at, self.formula.steps.len());
            operand(self)?;
            if *step == Step::Divide && self.is_zero(first) {
                self.at = at;
                return Err(self.error("this is a division by zero"));
            }
            self.formula.steps.push(*step);
        }
        Ok(())
    }

    /// Returns true if the steps from one on make a number, and that is zero.
    fn is_zero(&self, first: usize) -> bool {
        let mut operand = self.formula.clone();
        operand.steps.drain(..first);
        operand.evaluate(&[]) == Some(0.0)
    }

    /// Parses a number, a name, or an expression in parentheses.
    fn factor(&mut self) -> Result<(), FormulaError> {
        match self.peek() {
            None => Err(self.error("the formula ends where something is missing")),
            Some('(') => self.parenthesis(),
            Some(first) if starts_word(first) => self.word(),
            Some(')') => Err(self.error("something is missing before this")),
            Some('+' | '-' | '*' | '/') => {
                Err(self.error("something is missing before this operator"))
            }
            Some(_) => Err(self.error("this is no part of a formula")),
        }
    }

    fn parenthesis(&mut self) -> Result<(), FormulaError> {
        let open = self.at;
        self.enter()?;
        self.expression()?;
        self.leave(open)
    }

    /// Goes into a parenthesis.
    fn enter(&mut self) -> Result<(), FormulaError> {
        if self.depth == Self::DEEPEST {
            return Err(self.error("the parentheses nest too deeply"));
        }
        self.depth += 1;
        self.at += 1;
        Ok(())
    }

    /// Leaves the parenthesis that was opened at a place.
    fn leave(&mut self, open: usize) -> Result<(), FormulaError> {
        match self.peek() {
            Some(')') => self.at += 1,
            Some(other) => return Err(self.no_operator(other)),
            None => {
                self.at = open;
                return Err(self.error("this parenthesis is never closed"));
            }
        }
        self.depth -= 1;
        Ok(())
    }

    /// Parses the two operands of a function, in parentheses.
    fn function(&mut self, step: Step) -> Result<(), FormulaError> {
        let open = self.at;
        self.enter()?;
        self.expression()?;
        match self.peek() {
            Some(',') => self.at += 1,
            _ => return Err(self.error("a comma and a second number are missing here")),
        }
        self.expression()?;
        self.leave(open)?;
        self.formula.steps.push(step);
        Ok(())
    }

    fn word(&mut self) -> Result<(), FormulaError> {
        let rest = &self.text[self.at..];
        let word = &rest[..word_length(rest)];
        if rest[word.len()..].starts_with('@') {
            self.at += word.len();
            return Err(self.error("the event of a PMU stands between two `@`"));
        }
        let function = match word {
            "max" => Some(Step::Largest),
            "min" => Some(Step::Smallest),
            _ => None,
        };
        if let Some(step) = function.filter(|_| rest[word.len()..].starts_with('(')) {
            self.at += word.len();
            return self.function(step);
        }
        // Vendors have events such as 0INST_COMMIT and 32_BYTE_INSTRUCTION_CACHE_MISSES; no number has an underscore.
        let is_number = word.starts_with(|c: char| c.is_ascii_digit()) && !word.contains('_');
        let step = if is_number {
            let digits = word.bytes().all(|b| b.is_ascii_digit() || b == b'.');
            let number = word.parse().ok().filter(|_| digits);
            Step::Number(number.ok_or_else(|| self.error("this is neither a number nor a name"))?)
        } else {
            let events = &mut self.formula.events;
            let known = events.iter().position(|event| event == word);
            Step::Event(known.unwrap_or_else(|| {
                events.push(word.to_owned());
                events.len() - 1
            }))
        };
        self.formula.steps.push(step);
        self.at += word.len();
        Ok(())
    }

    /// Returns the error for a character where an operator or the end belongs.
    fn no_operator(&self, found: char) -> FormulaError {
        self.error(match found {
            _ if found == '(' || starts_word(found) => "an operator is missing before this",
            _ => "this is no part of a formula",
        })
    }
}

impl fmt::Display for Formula {
    /// Writes the formula as it was written.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Returns a number of a formula that has no fraction. Up to 2^53, every whole number is one.
fn whole(number: f64) -> Option<i128> {
    const LARGEST: f64 = (1u64 << 53) as f64;
    (number.fract() == 0.0 && number.abs() <= LARGEST).then_some(number as i128)
}

/// Returns the length of the word that a text begins with, with the event of a PMU between two `@`.
fn word_length(text: &str) -> usize {
    let end = |text: &str| text.find(|c| !is_word(c)).unwrap_or(text.len());
    let word = end(text);
    let behind = text[word..]
        .strip_prefix('@')
        .map(|event| &event[..end(event)]);
    match behind {
        Some(event) if !event.is_empty() && text[word + 1 + event.len()..].starts_with('@') => {
            word + event.len() + 2
        }
        _ => word,
    }
}

/// Returns the event that a name in a formula stands for. What Intel's register of top-down metrics counts has names in
/// Linux alone (`/sys/bus/event_source/devices/cpu/events`).
fn term(name: &str) -> Event {
    let behind_pmu = name.strip_suffix('@').and_then(|name| name.split_once('@'));
    if let Some((pmu, event)) = behind_pmu {
        return Event::Pmu(PmuEvent::new(pmu).with(event));
    }
    let hardware = Hardware::ALL
        .iter()
        .copied()
        .find(|event| event.name() == name);
    let software = Software::ALL
        .iter()
        .copied()
        .find(|event| event.name() == name);
    let cache = || CacheEvent::from_name(name).filter(|_| is_generalized(name));
    match (hardware, software) {
        (Some(event), _) => event.into(),
        (_, Some(event)) => event.into(),
        _ if name == "slots" || name.starts_with("topdown-") => {
            Event::Pmu(PmuEvent::new("cpu").with(name))
        }
        _ => cache().map_or_else(|| Event::Named(name.to_owned()), Event::from),
    }
}

/// Names run on over points, colons and hyphens; an operator needs space before it.
fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | ':' | '=' | '-')
}

fn starts_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}
