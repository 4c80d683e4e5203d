//! Formulas over events: what a preset is made of.
//!
//! A formula is read once into a list of steps and evaluated from it; there is no code per preset.

use std::fmt;

use quipu_hal::{CacheEvent, Event, Hardware, Software};

use crate::source::generalized::is_generalized;

/// A formula over events: names, numbers, `+ - * /` and parentheses.
///
/// A hyphen inside a name belongs to the name (`branch-misses`); to subtract, put spaces around it.
///
/// ```
/// use quipu_events::Formula;
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
}

/// Why a text is no formula.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormulaError {
    /// The byte offset in the text.
    pub at: usize,
    /// What is wrong there.
    pub reason: &'static str,
}

impl fmt::Display for FormulaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at character {}: {}", self.at + 1, self.reason)
    }
}

impl std::error::Error for FormulaError {}

/// What waits for its right-hand side while a formula is read.
#[derive(Clone, Copy, PartialEq)]
enum Pending {
    Open(usize),
    Operator(Step),
}

impl Formula {
    /// The longest formula, in bytes.
    const LONGEST: usize = 4096;

    /// Reads a formula.
    ///
    /// # Errors
    /// What is wrong and where, when the text is none.
    pub fn parse(text: &str) -> Result<Self, FormulaError> {
        if text.len() > Self::LONGEST {
            return Err(FormulaError {
                at: Self::LONGEST,
                reason: "the formula is too long",
            });
        }
        let mut formula = Self {
            text: text.trim().to_owned(),
            events: Vec::new(),
            steps: Vec::new(),
        };
        let mut pending: Vec<Pending> = Vec::new();
        let mut wants_operand = true;
        let mut at = 0;
        while let Some(first) = text[at..].chars().next() {
            let here = at;
            at += first.len_utf8();
            if first.is_ascii_whitespace() {
                continue;
            }
            let error = |reason| Err(FormulaError { at: here, reason });
            if first.is_ascii_alphanumeric() || first == '_' {
                if !wants_operand {
                    return error("an operator is missing before this");
                }
                let length = text[here..]
                    .find(|c: char| !is_word(c))
                    .unwrap_or(text.len() - here);
                at = here + length;
                let Some(step) = formula.operand(&text[here..at]) else {
                    return error("this is neither a number nor a name");
                };
                formula.steps.push(step);
                wants_operand = false;
                continue;
            }
            match first {
                '(' if wants_operand => pending.push(Pending::Open(here)),
                '(' => return error("an operator is missing before this"),
                ')' if wants_operand => return error("something is missing before this"),
                ')' => formula.close(&mut pending, here)?,
                '+' | '-' | '*' | '/' if wants_operand => {
                    return error("something is missing before this operator");
                }
                '+' => formula.operator(&mut pending, Step::Add),
                '-' => formula.operator(&mut pending, Step::Subtract),
                '*' => formula.operator(&mut pending, Step::Multiply),
                '/' => formula.operator(&mut pending, Step::Divide),
                _ => return error("this is no part of a formula"),
            }
            wants_operand = first != ')';
        }
        if wants_operand {
            return Err(FormulaError {
                at: text.len(),
                reason: "the formula ends where something is missing",
            });
        }
        while let Some(waiting) = pending.pop() {
            match waiting {
                Pending::Operator(step) => formula.steps.push(step),
                Pending::Open(at) => {
                    return Err(FormulaError {
                        at,
                        reason: "this parenthesis is never closed",
                    });
                }
            }
        }
        Ok(formula)
    }

    /// The events it is made of, each once, in the order they are first named.
    pub fn events(&self) -> &[String] {
        &self.events
    }

    /// The event, when the formula is nothing but one.
    pub fn single(&self) -> Option<&str> {
        match self.steps[..] {
            [Step::Event(index)] => self.events.get(index).map(String::as_str),
            _ => None,
        }
    }

    /// What each of [`events`](Self::events) stands for: a generalized event by its usual name, else an
    /// event by the name a CPU has for it.
    ///
    /// ```
    /// use quipu_events::Formula;
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

    /// Whether whole numbers always give a whole number: nothing is divided, and no number has a
    /// fraction.
    pub fn is_whole(&self) -> bool {
        self.steps.iter().all(|step| match step {
            Step::Divide => false,
            Step::Number(number) => whole(*number).is_some(),
            _ => true,
        })
    }

    /// The unit of the formula's value for the units of its events, in the order of
    /// [`events`](Self::events); a plain count has the unit `""`. Nothing where it is no unit of theirs.
    ///
    /// ```
    /// use quipu_events::Formula;
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
                (Step::Add | Step::Subtract, _, _) => (left == right).then_some(left),
                (_, _, "") => Some(left),
                (Step::Multiply, "", _) => Some(right),
                (Step::Divide, _, _) => (left == right).then_some(""),
                _ => None,
            },
        )
    }

    /// The value of a [whole](Self::is_whole) formula, exactly, for one value of each event in the order
    /// of [`events`](Self::events).
    ///
    /// `None` when the formula is not whole, a value is missing, or a result has more than 127 bits.
    ///
    /// ```
    /// use quipu_events::Formula;
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
                _ => None,
            },
        )
    }

    /// The value of the formula for one value of each event, in the order of [`events`](Self::events).
    ///
    /// `None` when a value is missing, or where the formula divides by zero.
    pub fn evaluate(&self, values: &[f64]) -> Option<f64> {
        self.run(values, Some, |operator, left: f64, right| match operator {
            Step::Add => Some(left + right),
            Step::Subtract => Some(left - right),
            Step::Multiply => Some(left * right),
            _ if right == 0.0 => None,
            _ => Some(left / right),
        })
    }

    /// Takes the steps, in one kind of number.
    fn run<N: Copy>(
        &self,
        values: &[N],
        number: impl Fn(f64) -> Option<N>,
        apply: impl Fn(Step, N, N) -> Option<N>,
    ) -> Option<N> {
        let mut stack = Vec::with_capacity(self.steps.len());
        for step in &self.steps {
            let value = match *step {
                Step::Number(value) => number(value)?,
                Step::Event(index) => *values.get(index)?,
                operator => {
                    let right = stack.pop()?;
                    let left = stack.pop()?;
                    apply(operator, left, right)?
                }
            };
            stack.push(value);
        }
        stack.pop()
    }

    fn operand(&mut self, word: &str) -> Option<Step> {
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            return word
                .bytes()
                .all(|b| b.is_ascii_digit() || b == b'.')
                .then(|| word.parse().ok().map(Step::Number))?;
        }
        let index = match self.events.iter().position(|event| event == word) {
            Some(index) => index,
            None => {
                self.events.push(word.to_owned());
                self.events.len() - 1
            }
        };
        Some(Step::Event(index))
    }

    fn operator(&mut self, pending: &mut Vec<Pending>, step: Step) {
        while let Some(Pending::Operator(earlier)) = pending.last().copied()
            && rank(earlier) >= rank(step)
        {
            self.steps.push(earlier);
            pending.pop();
        }
        pending.push(Pending::Operator(step));
    }

    fn close(&mut self, pending: &mut Vec<Pending>, at: usize) -> Result<(), FormulaError> {
        loop {
            match pending.pop() {
                Some(Pending::Operator(step)) => self.steps.push(step),
                Some(Pending::Open(_)) => return Ok(()),
                None => {
                    return Err(FormulaError {
                        at,
                        reason: "this parenthesis was never opened",
                    });
                }
            }
        }
    }
}

impl fmt::Display for Formula {
    /// The formula as it was written.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A number of a formula that has no fraction. Up to 2^53, every whole number is one.
fn whole(number: f64) -> Option<i128> {
    const LARGEST: f64 = (1u64 << 53) as f64;
    (number.fract() == 0.0 && number.abs() <= LARGEST).then_some(number as i128)
}

/// What a name in a formula stands for.
fn term(name: &str) -> Event {
    let hardware = Hardware::ALL.into_iter().find(|event| event.name() == name);
    let software = Software::ALL.into_iter().find(|event| event.name() == name);
    let cache = || CacheEvent::from_name(name).filter(|_| is_generalized(name));
    match (hardware, software) {
        (Some(event), _) => event.into(),
        (_, Some(event)) => event.into(),
        _ => cache().map_or_else(|| Event::Named(name.to_owned()), Event::from),
    }
}

/// Names run on over points, colons and hyphens; an operator needs space before it.
fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | ':' | '=' | '-')
}

fn rank(step: Step) -> u8 {
    match step {
        Step::Multiply | Step::Divide => 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Option<f64> {
        Formula::parse(text).unwrap().evaluate(&[7.0, 3.0])
    }

    #[test]
    fn operators_bind_as_in_arithmetic() {
        assert_eq!(value("A - B - 1"), Some(3.0));
        assert_eq!(value("A - (B - 1)"), Some(5.0));
        assert_eq!(value("1 + A * B / 2"), Some(11.5));
        assert_eq!(value("(1 + A) * B"), Some(24.0));
        assert_eq!(value("A/0"), None);
    }

    #[test]
    fn a_hyphen_inside_a_name_does_not_subtract() {
        let formula = Formula::parse("branch-misses - L2_RQSTS:MISS:c=1").unwrap();
        assert_eq!(formula.events(), ["branch-misses", "L2_RQSTS:MISS:c=1"]);
        assert_eq!(formula.single(), None);
        assert_eq!(Formula::parse("(A)").unwrap().single(), Some("A"));
    }

    #[test]
    fn whole_formulas_are_exact_and_others_are_none() {
        let whole = |text: &str| {
            let formula = Formula::parse(text).unwrap();
            (formula.is_whole(), formula.evaluate_whole(&[7, 3]))
        };
        assert_eq!(whole("A - 4 * B"), (true, Some(-5)));
        assert_eq!(whole("A / B"), (false, None));
        assert_eq!(whole("A * 0.5"), (false, None));
        assert_eq!(whole("A + 9007199254740994"), (false, None));
        assert_eq!(whole("A + B - C"), (true, None));
        let square = Formula::parse("A * A").unwrap();
        assert_eq!(square.evaluate_whole(&[1 << 64]), None);
    }

    #[test]
    fn terms_are_generalized_events_by_their_own_names_alone() {
        let formula = Formula::parse("cycles + LLC-load-misses + cs + l1d-loads").unwrap();
        let terms: Vec<Event> = formula.terms().collect();
        let misses = CacheEvent::from_name("LLC-load-misses").unwrap();
        assert_eq!(terms[..2], [Hardware::Cycles.into(), misses.into()]);
        assert_eq!(
            terms[2..],
            ["cs", "l1d-loads"].map(|name| Event::Named(name.into()))
        );
        assert_eq!(
            formula.to_string(),
            "cycles + LLC-load-misses + cs + l1d-loads"
        );
    }

    #[test]
    fn errors_say_where() {
        for (text, at) in [
            ("", 0),
            ("A +", 3),
            ("A B", 2),
            ("(A", 0),
            ("A)", 1),
            ("A + ()", 5),
            ("A $ B", 2),
            ("1x", 0),
            ("* A", 0),
        ] {
            assert_eq!(Formula::parse(text).unwrap_err().at, at, "{text}");
        }
        assert!(Formula::parse(&"(".repeat(4000)).is_err());
        assert!(Formula::parse(&"é".repeat(3000)).is_err());
    }
}
