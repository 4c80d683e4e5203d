//! Formulas over events: what a preset is made of.
//!
//! A formula is read once into a list of steps and evaluated from it; there is no code per preset.

use std::fmt;

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

    /// The value of the formula for one value of each event, in the order of [`events`](Self::events).
    ///
    /// `None` when a value is missing, or where the formula divides by zero.
    pub fn evaluate(&self, values: &[f64]) -> Option<f64> {
        let mut stack = Vec::with_capacity(self.steps.len());
        for step in &self.steps {
            let value = match *step {
                Step::Number(number) => number,
                Step::Event(index) => *values.get(index)?,
                operator => {
                    let right = stack.pop()?;
                    let left: f64 = stack.pop()?;
                    match operator {
                        Step::Add => left + right,
                        Step::Subtract => left - right,
                        Step::Multiply => left * right,
                        _ if right == 0.0 => return None,
                        _ => left / right,
                    }
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
