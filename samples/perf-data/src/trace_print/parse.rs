//! Reading the C expressions of a tracepoint's `print fmt`, as far as macros of the kernel's trace events leave them there
//! (`include/trace/stages/stage3_trace_output.h`).

use crate::trace_format::TraceFormat;

/// Deeper expressions are not read.
const DEEPEST: u32 = 200;
/// Formats with more binary operators are not read: those of a chain nest in what is made of them.
const MOST_OPERATORS: u32 = 1000;

/// An argument, which is a number or text.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Argument {
    Number(u64),
    /// A name of the kernel whose number is not in the format.
    Unknown,
    Text(String),
    /// A field, by its position in the format.
    Field(usize),
    /// One number of a field.
    Element(usize, Box<Self>),
    /// The length of a field that lies elsewhere, in bytes.
    Len(usize),
    /// A number of this many bytes.
    Cast(u32, Box<Self>),
    Unary(char, Box<Self>),
    Binary(&'static str, Box<Self>, Box<Self>),
    Choice(Box<[Self; 3]>),
    /// The names of the bits that are set, with text between them.
    Flags(Box<Self>, String, Names),
    /// The name of a number.
    Symbol(Box<Self>, Names),
    /// Bytes of a field, and how many; with text between them.
    Hex(usize, Box<Self>, &'static str),
    /// Numbers of a field: how many, and the size of each in bytes.
    Numbers(usize, Box<[Self; 2]>),
    /// Bits of a field, in hexadecimal.
    Mask(usize),
    /// Numbers of the bits of a field.
    Cpus(usize),
}

/// Numbers and their names; `None` for a number that is not in the format.
pub(super) type Names = Vec<(Option<u64>, String)>;

/// Binary operators, those that bind stronger later.
const OPERATORS: [&[&str]; 10] = [
    &["||"],
    &["&&"],
    &["|"],
    &["^"],
    &["&"],
    &["==", "!="],
    &["<=", ">=", "<", ">"],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "%"],
];

/// The text that is left, and what it is of.
pub(super) struct Parser<'a> {
    rest: &'a str,
    format: &'a TraceFormat,
    depth: u32,
    operators: u32,
}

impl<'a> Parser<'a> {
    /// Begins with the text of a format.
    pub(super) fn new(format: &'a TraceFormat) -> Self {
        Self {
            rest: format.print_format(),
            format,
            depth: 0,
            operators: 0,
        }
    }

    /// Returns the format of printf and its arguments. The error is the text that is not understood.
    pub(super) fn parse(mut self) -> Result<(String, Vec<Argument>), &'a str> {
        self.all().ok_or(self.rest)
    }

    fn all(&mut self) -> Option<(String, Vec<Argument>)> {
        let template = self.text()?;
        let mut arguments = Vec::new();
        while self.take(",") {
            arguments.push(self.expression()?);
        }
        self.skip_space();
        self.rest.is_empty().then_some((template, arguments))
    }

    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start();
    }

    /// Takes a punctuation mark, if it is the next one. An operator is not the beginning of a longer one.
    fn take(&mut self, mark: &str) -> bool {
        self.skip_space();
        let Some(rest) = self.rest.strip_prefix(mark) else {
            return false;
        };
        let longer = match mark {
            "|" | "&" => rest.starts_with(mark),
            "<" | ">" => rest.starts_with(['=', '<', '>']),
            "!" => rest.starts_with('='),
            _ => false,
        };
        if !longer {
            self.rest = rest;
        }
        !longer
    }

    fn need(&mut self, mark: &str) -> Option<()> {
        self.take(mark).then_some(())
    }

    /// Takes text in quotation marks; several that follow each other are one.
    fn text(&mut self) -> Option<String> {
        let mut text = String::new();
        self.need("\"")?;
        loop {
            let mut chars = self.rest.char_indices();
            let end = loop {
                match chars.next()? {
                    (at, '"') => break at,
                    (_, '\\') => match chars.next()?.1 {
                        'n' => text.push('\n'),
                        't' => text.push('\t'),
                        other => text.push(other),
                    },
                    (_, other) => text.push(other),
                }
            };
            self.rest = &self.rest[end + 1..];
            if !self.take("\"") {
                return Some(text);
            }
        }
    }

    fn word(&mut self) -> Option<&'a str> {
        self.skip_space();
        let is_in_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let end = self
            .rest
            .find(|c| !is_in_word(c))
            .unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        if word.is_empty() {
            return None;
        }
        self.rest = rest;
        Some(word)
    }

    fn expression(&mut self) -> Option<Argument> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return None;
        }
        let condition = self.operation(0)?;
        let whole = if self.take("?") {
            let yes = self.expression()?;
            self.need(":")?;
            let no = self.expression()?;
            Argument::Choice(Box::new([condition, yes, no]))
        } else {
            condition
        };
        self.depth -= 1;
        Some(whole)
    }

    fn operation(&mut self, level: usize) -> Option<Argument> {
        let Some(operators) = OPERATORS.get(level) else {
            return self.operand();
        };
        let mut left = self.operation(level + 1)?;
        while let Some(operator) = operators.iter().find(|operator| self.take(operator)) {
            self.operators += 1;
            if self.operators > MOST_OPERATORS {
                return None;
            }
            let right = self.operation(level + 1)?;
            left = Argument::Binary(operator, left.into(), right.into());
        }
        Some(left)
    }

    fn operand(&mut self) -> Option<Argument> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return None;
        }
        let operand = self.operand_within()?;
        self.depth -= 1;
        Some(operand)
    }

    fn operand_within(&mut self) -> Option<Argument> {
        for mark in ['!', '~', '-', '+', '&', '*'] {
            if self.take(mark.encode_utf8(&mut [0; 4])) {
                // Addresses of fields and what is at an address are not known.
                return match mark {
                    '&' | '*' => None,
                    _ => Some(Argument::Unary(mark, self.operand()?.into())),
                };
            }
        }
        if self.take("(") {
            if let Some(size) = self.cast() {
                return Some(Argument::Cast(size, self.operand()?.into()));
            }
            let inner = self.expression()?;
            self.need(")")?;
            return Some(inner);
        }
        self.skip_space();
        if self.rest.starts_with('"') {
            return self.text().map(Argument::Text);
        }
        if let Some(rest) = self.rest.strip_prefix('\'') {
            let (letter, rest) = rest.split_once('\'')?;
            self.rest = rest;
            return letter
                .bytes()
                .next()
                .map(|byte| Argument::Number(byte.into()));
        }
        let word = self.word()?;
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            return number(word).map(Argument::Number);
        }
        if word == "REC" {
            self.need("->")?;
            let field = self.field()?;
            if self.take("[") {
                let index = self.expression()?;
                self.need("]")?;
                return Some(Argument::Element(field, index.into()));
            }
            return Some(Argument::Field(field));
        }
        if !self.take("(") {
            return Some(Argument::Unknown);
        }
        let value = self.call(word)?;
        self.need(")")?;
        Some(value)
    }

    /// Takes the rest of a cast, if what follows a bracket is the name of a type; returns its size in bytes.
    fn cast(&mut self) -> Option<u32> {
        let before = self.rest;
        let mut words = Vec::new();
        while let Some(word) = self.word() {
            words.push(word);
        }
        let mut is_pointer = false;
        while self.take("*") {
            is_pointer = true;
        }
        let is_type = words.first().is_some_and(|first| {
            *first != "REC" && !first.starts_with(|c: char| c.is_ascii_digit())
        });
        if is_type && self.take(")") {
            return Some(if is_pointer { 8 } else { size_of_type(&words) });
        }
        self.rest = before;
        None
    }

    /// Takes the name of a field, and returns its position.
    fn field(&mut self) -> Option<usize> {
        let name = self.word()?;
        let fields = self.format.fields();
        fields.iter().position(|field| field.name() == name)
    }

    /// Takes the arguments of a function that the kernel has for printing.
    fn call(&mut self, function: &str) -> Option<Argument> {
        Some(match function {
            "__get_str"
            | "__get_rel_str"
            | "__get_dynamic_array"
            | "__get_rel_dynamic_array"
            | "__get_sockaddr"
            | "__get_rel_sockaddr" => Argument::Field(self.field()?),
            "__get_dynamic_array_len" | "__get_rel_dynamic_array_len" => {
                Argument::Len(self.field()?)
            }
            "__get_bitmask" | "__get_rel_bitmask" => Argument::Mask(self.field()?),
            "__get_cpumask" | "__get_rel_cpumask" => Argument::Cpus(self.field()?),
            "__print_flags" | "__print_flags_u64" => {
                let value = self.expression()?;
                self.need(",")?;
                let between = self.text()?;
                Argument::Flags(value.into(), between, self.names()?)
            }
            "__print_symbolic" | "__print_symbolic_u64" => {
                let value = self.expression()?;
                Argument::Symbol(value.into(), self.names()?)
            }
            "__print_hex" | "__print_hex_str" => {
                let field = self.field_expression()?;
                self.need(",")?;
                let len = self.expression()?;
                let between = if function == "__print_hex" { " " } else { "" };
                Argument::Hex(field, len.into(), between)
            }
            "__print_array" => {
                let field = self.field_expression()?;
                self.need(",")?;
                let count = self.expression()?;
                self.need(",")?;
                Argument::Numbers(field, Box::new([count, self.expression()?]))
            }
            "__builtin_expect" => {
                let value = self.expression()?;
                self.need(",")?;
                self.expression()?;
                value
            }
            "sizeof" => {
                let mut words = Vec::new();
                while let Some(word) = self.word() {
                    words.push(word);
                }
                let is_pointer = self.take("*");
                let size = if is_pointer { 8 } else { size_of_type(&words) };
                Argument::Number(size.into())
            }
            _ => return None,
        })
    }

    /// Takes an expression that is a field.
    fn field_expression(&mut self) -> Option<usize> {
        match self.expression()? {
            Argument::Field(field) => Some(field),
            _ => None,
        }
    }

    /// Takes pairs of a number and its name.
    fn names(&mut self) -> Option<Names> {
        let mut names = Vec::new();
        while self.take(",") {
            self.need("{")?;
            let value = match self.expression()? {
                Argument::Unknown => None,
                value => Some(super::number(&value, &[], self.format)),
            };
            self.need(",")?;
            self.skip_space();
            if self.rest.starts_with('"') {
                names.push((value, self.text()?));
            } else {
                // A null pointer, which ends some lists.
                self.expression()?;
            }
            self.need("}")?;
        }
        Some(names)
    }
}

/// Returns a number as C writes it, in base 8, 10 or 16.
fn number(word: &str) -> Option<u64> {
    let digits = word.trim_end_matches(['u', 'U', 'l', 'L']);
    let hex = digits.strip_prefix("0x").or(digits.strip_prefix("0X"));
    match hex {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None if digits.len() > 1 && digits.starts_with('0') => u64::from_str_radix(digits, 8).ok(),
        None => digits.parse().ok(),
    }
}

/// Returns the size of a type in bytes; of an unknown one, the largest.
fn size_of_type(words: &[&str]) -> u32 {
    match words.last().copied().unwrap_or_default() {
        "char" | "u8" | "s8" | "__u8" | "__s8" | "uint8_t" | "int8_t" | "bool" => 1,
        "short" | "u16" | "s16" | "__u16" | "__s16" | "uint16_t" | "int16_t" => 2,
        "int" if words.contains(&"short") => 2,
        "int" if words.contains(&"long") => 8,
        "int" | "u32" | "s32" | "__u32" | "__s32" | "uint32_t" | "int32_t" => 4,
        "unsigned" | "signed" => 4,
        _ => 8,
    }
}
