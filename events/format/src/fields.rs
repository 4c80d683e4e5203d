//! Deserializes TOML values into derived structures, noting everything that does not fit.
//!
//! serde stops at the first error. Here every field of a structure is a [`Checked`] value: the deserializer
//! notes an error with its span, the field is left wrong, and reading goes on.

use std::cell::RefCell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Range, RangeInclusive};

use quipu_text::nearest_of;
use serde::de::value::{MapDeserializer, SeqDeserializer};
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, Expected, IntoDeserializer, SeqAccess,
    Unexpected, Visitor,
};
use serde::{Deserialize, forward_to_deserialize_any};
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use crate::diagnostics::{Findings, Source};
use crate::model::Location;
use crate::printable::shortened;
use crate::strings::{Strings, Text};

/// Words of vendors' lists and of perf, and the keys here that mean the same.
const ELSEWHERE: [(&str, &str); 8] = [
    ("umask", "unit-mask"),
    ("cmask", "counter-mask"),
    ("inv", "invert"),
    ("any", "any-thread"),
    ("event", "code"),
    ("eventcode", "code"),
    ("eventsel", "code"),
    ("desc", "description"),
];

/// One file being read: its text, its position in the set of files, and its findings.
pub(crate) struct Reading<'a> {
    pub(crate) source: &'a Source<'a>,
    pub(crate) file: u32,
    pub(crate) findings: RefCell<Findings>,
    pub(crate) strings: RefCell<Strings>,
}

impl Reading<'_> {
    pub(crate) fn location(&self, at: &Range<usize>) -> Location {
        Location {
            file: self.file,
            start: u32::try_from(at.start).unwrap_or(u32::MAX),
            line: self.source.line(at.start),
        }
    }

    /// Keeps a string.
    pub(crate) fn text(&self, text: &str) -> Text {
        self.strings.borrow_mut().add(text)
    }

    pub(crate) fn note(&self, at: &Range<usize>, message: impl Into<String>) {
        let mut findings = self.findings.borrow_mut();
        findings.add(self.source, at, message.into());
    }

    /// Notes a key that is there a second time, which TOML forbids.
    pub(crate) fn note_duplicate(&self, at: usize) {
        self.note(&(at..at), "not valid TOML: duplicate key");
    }

    /// Deserializes the value of a key, or notes why it does not fit.
    pub(crate) fn read<T: DeserializeOwned>(&self, node: Node<'_, '_>) -> Option<T> {
        self.read_except(&[], node)
    }

    /// Deserializes the value of a key as a structure of which some keys are not known here.
    pub(crate) fn read_except<T: DeserializeOwned>(
        &self,
        except: &[&str],
        node: Node<'_, '_>,
    ) -> Option<T> {
        let value = Value {
            reading: self,
            node,
            except,
        };
        T::deserialize(value)
            .map_err(|error| value.note(error))
            .ok()
    }

    /// Takes a table of which the file chooses the keys.
    pub(crate) fn table<'v, 'd>(&self, node: Node<'v, 'd>) -> Option<&'v DeTable<'d>> {
        let table = node.1.get_ref().as_table();
        table.or_else(|| self.wants("a table", node))
    }

    /// Takes an array.
    pub(crate) fn array<'v, 'd>(&self, node: Node<'v, 'd>) -> Option<&'v DeArray<'d>> {
        let array = node.1.get_ref().as_array();
        array.or_else(|| self.wants("an array", node))
    }

    /// Reads a file that is an array of tables of one key, table by table.
    pub(crate) fn each_table(&self, key: &str, mut read: impl FnMut(Node<'_, '_>)) {
        let (document, errors) = DeTable::parse_recoverable(self.source.text);
        for error in errors {
            let message = shortened(&error.message().replace('\n', ", "));
            let at = error.span().unwrap_or(0..0);
            self.note(&at, format!("not valid TOML: {message}"));
        }
        let document = document.get_ref();
        self.check_keys(document, &[key]);
        let array = document.get(key);
        let array = array.and_then(|value| self.array((key, value)));
        for table in array.into_iter().flatten() {
            read((key, table));
        }
    }

    /// Notes that a value has the wrong type.
    fn wants<T>(&self, wanted: &str, (key, value): Node<'_, '_>) -> Option<T> {
        let found = match value.get_ref() {
            DeValue::String(_) => "a string",
            DeValue::Integer(_) => "a number",
            DeValue::Float(_) => "a fraction",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "an array",
            DeValue::Table(_) => "a table",
        };
        let key = shortened(key);
        self.note(
            &value.span(),
            format!("`{key}` wants {wanted}, not {found}"),
        );
        None
    }

    /// Notes every key of a table that is not known there, with the nearest that is.
    pub(crate) fn check_keys(&self, table: &DeTable<'_>, known: &[&str]) {
        for key in table.keys() {
            if known.contains(&key.get_ref().as_ref()) {
                continue;
            }
            let mut message = format!("unknown key `{}`", shortened(key.get_ref()));
            let elsewhere = ELSEWHERE.iter().find(|(word, ours)| {
                key.get_ref().eq_ignore_ascii_case(word) && known.contains(ours)
            });
            if let Some((_, ours)) = elsewhere {
                message += &format!("; here it is `{ours}`");
            } else if let [nearest, ..] = nearest_of(key.get_ref(), known.iter().copied())[..] {
                message += &format!("; did you mean `{nearest}`?");
            } else {
                message += &format!("; known here are {}", known.join(", "));
            }
            self.note(&key.span(), message);
        }
    }

    /// Returns the meaning of a word, or notes the words that there are.
    pub(crate) fn one_of<T: Copy>(
        &self,
        what: &str,
        (word, at): &(String, Range<usize>),
        known: &[(&str, T)],
    ) -> Option<T> {
        let found = known.iter().find(|(name, _)| name == word);
        if found.is_none() {
            let word = shortened(word);
            let known: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
            let known = known.join(", ");
            self.note(at, format!("unknown {what} `{word}`; there are {known}"));
        }
        found.map(|(_, meaning)| *meaning)
    }
}

/// A key and its value.
pub(crate) type Node<'v, 'd> = (&'v str, &'v Spanned<DeValue<'d>>);

/// A value that is being deserialized.
#[derive(Clone, Copy)]
struct Value<'v, 'd, 'r> {
    reading: &'r Reading<'r>,
    node: Node<'v, 'd>,
    /// Fields of a structure that are not known here.
    except: &'r [&'r str],
}

impl<'v, 'd> Value<'v, 'd, '_> {
    /// Returns a value inside this one.
    fn inner(self, key: &'v str, value: &'v Spanned<DeValue<'d>>) -> Self {
        let node = (key, value);
        Self { node, ..self }
    }

    /// Notes an error, unless a value inside this one had it.
    fn note(self, error: Error) -> Error {
        let (key, value) = self.node;
        match error {
            Error::Noted => {}
            Error::Type(wanted) => self.reading.wants(&wanted, self.node).unwrap_or_default(),
            Error::Unfit(wanted) => {
                let written = match value.get_ref() {
                    DeValue::Integer(integer) => integer.to_string(),
                    other => format!("`{}`", other.as_str().unwrap_or_default()),
                };
                let (key, written) = (shortened(key), shortened(&written));
                let message = format!("`{key}` is {written}, which is {wanted}");
                self.reading.note(&value.span(), message);
            }
        }
        Error::Noted
    }
}

impl<'de> Deserializer<'de> for Value<'_, '_, '_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let result = match self.node.1.get_ref() {
            DeValue::String(text) => visitor.visit_str(text),
            DeValue::Boolean(truth) => visitor.visit_bool(*truth),
            DeValue::Integer(integer) => {
                let number = i128::from_str_radix(integer.as_str(), integer.radix());
                visitor.visit_i128(number.unwrap_or(i128::MAX))
            }
            DeValue::Array(items) => {
                let items = items.iter().map(|item| self.inner(self.node.0, item));
                visitor.visit_seq(SeqDeserializer::new(items))
            }
            DeValue::Float(_) | DeValue::Datetime(_) | DeValue::Table(_) => {
                Err(de::Error::invalid_type(Unexpected::Unit, &visitor))
            }
        };
        result.map_err(|error| self.note(error))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let DeValue::Table(table) = self.node.1.get_ref() else {
            let error = de::Error::invalid_type(Unexpected::Unit, &visitor);
            return Err(self.note(error));
        };
        let mut known = fields.to_vec();
        known.retain(|field| !self.except.contains(field));
        self.reading.check_keys(table, &known);
        let values = table.iter().filter_map(|(key, value)| {
            let key: &str = key.get_ref();
            let value = self.inner(key, value);
            known.contains(&key).then_some((key, value))
        });
        visitor.visit_map(MapDeserializer::new(values))
    }

    /// Gives all keys of a table, of which the file chooses them.
    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let DeValue::Table(table) = self.node.1.get_ref() else {
            let error = de::Error::invalid_type(Unexpected::Unit, &visitor);
            return Err(self.note(error));
        };
        let values = table.iter().map(|(key, value)| {
            let key: &str = key.get_ref();
            (key, self.inner(key, value))
        });
        visitor.visit_map(MapDeserializer::new(values))
    }

    /// Gives a [`Checked`] value its span.
    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, Error> {
        let Range { start, end } = self.node.1.span();
        visitor.visit_seq(WithSpan {
            ends: vec![end, start],
            value: self,
        })
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple enum identifier
    }
}

impl<'de> IntoDeserializer<'de, Error> for Value<'_, '_, '_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// The start of a value, its end, and the value.
struct WithSpan<'v, 'd, 'r> {
    /// The ends that are still to be given, in reverse.
    ends: Vec<usize>,
    value: Value<'v, 'd, 'r>,
}

impl<'de> SeqAccess<'de> for WithSpan<'_, '_, '_> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        match self.ends.pop() {
            Some(end) => seed.deserialize(end.into_deserializer()).map(Some),
            None => match seed.deserialize(self.value) {
                Ok(value) => Ok(Some(value)),
                Err(error) => Err(self.value.note(error)),
            },
        }
    }
}

/// The reason why a value does not fit.
#[derive(Debug)]
enum Error {
    /// It has been noted.
    Noted,
    /// The type that is wanted.
    Type(String),
    /// The fault of a value of that type, as a phrase.
    Unfit(String),
}

impl de::Error for Error {
    fn custom<T: fmt::Display>(fault: T) -> Self {
        Self::Unfit(fault.to_string())
    }

    fn invalid_type(_: Unexpected<'_>, wanted: &dyn Expected) -> Self {
        Self::Type(match wanted.to_string().as_str() {
            "a boolean" => "true or false".to_owned(),
            "a sequence" => "an array".to_owned(),
            "i128" => "a number".to_owned(),
            "a map" => "a table".to_owned(),
            wanted => wanted.to_owned(),
        })
    }
}

impl std::error::Error for Error {}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

/// A field of a structure, which may be absent or wrong.
#[derive(Default)]
pub enum Checked<T> {
    /// Not there.
    #[default]
    Absent,
    /// There, but of the wrong type or out of range, which has been noted.
    Wrong,
    /// There, with its place in the file.
    Given(T, Range<usize>),
}

impl<T> Checked<T> {
    /// Returns true if it is not there.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }

    /// Returns the value, if there is one that fits.
    #[must_use]
    pub fn value(self) -> Option<T> {
        self.spanned().map(|(value, _)| value)
    }

    /// Returns the value and its span, if there is one that fits.
    #[must_use]
    pub fn spanned(self) -> Option<(T, Range<usize>)> {
        match self {
            Self::Given(value, at) => Some((value, at)),
            _ => None,
        }
    }
}

impl<T> Checked<Vec<Checked<T>>> {
    /// Returns the items of an array that fit, each with its span.
    pub fn items(self) -> impl Iterator<Item = (T, Range<usize>)> {
        let items = self.value().into_iter().flatten();
        items.filter_map(Checked::spanned)
    }
}

impl<const FIRST: u64, const LAST: u64> Checked<Number<FIRST, LAST>> {
    pub(crate) fn number(&self) -> Option<u64> {
        match self {
            Self::Given(Number(number), _) => Some(*number),
            _ => None,
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Checked<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_tuple_struct("Checked", 3, CheckedVisitor(PhantomData))
    }
}

struct CheckedVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for CheckedVisitor<T> {
    type Value = Checked<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value with its span")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Checked<T>, A::Error> {
        let start = values.next_element()?.unwrap_or_default();
        let end = values.next_element()?.unwrap_or_default();
        Ok(match values.next_element() {
            Ok(Some(value)) => Checked::Given(value, start..end),
            _ => Checked::Wrong,
        })
    }
}

/// A number of a range.
#[derive(Clone, Copy, Deserialize)]
#[serde(try_from = "i128")]
pub(crate) struct Number<const FIRST: u64, const LAST: u64>(pub(crate) u64);

impl<const FIRST: u64, const LAST: u64> TryFrom<i128> for Number<FIRST, LAST> {
    type Error = String;

    fn try_from(number: i128) -> Result<Self, String> {
        let fits = u64::try_from(number).ok();
        fits.filter(|number| (FIRST..=LAST).contains(number))
            .map(Self)
            .ok_or_else(|| format!("not between {FIRST:#x} and {LAST:#x}"))
    }
}

/// A number, or a range of them as text: `"0x10-0x2f"`.
pub(crate) struct Numbers<const LAST: u64>(pub(crate) RangeInclusive<u16>);

impl<'de, const LAST: u64> Deserialize<'de> for Numbers<LAST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumbersVisitor::<LAST>)
    }
}

struct NumbersVisitor<const LAST: u64>;

impl<const LAST: u64> Visitor<'_> for NumbersVisitor<LAST> {
    type Value = Numbers<LAST>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number or a range")
    }

    fn visit_i128<E: de::Error>(self, number: i128) -> Result<Self::Value, E> {
        let number = Number::<0, LAST>::try_from(number).map_err(E::custom)?;
        Ok(Numbers(number.0 as u16..=number.0 as u16))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        match parse_number(first).zip(parse_number(last)) {
            Some((first, last)) if first <= last && u64::from(last) <= LAST => {
                Ok(Numbers(first..=last))
            }
            _ => Err(E::custom(format!(
                "no range of numbers to {LAST:#x}, such as \"0x10-0x1f\""
            ))),
        }
    }
}

fn parse_number(text: &str) -> Option<u16> {
    let text = text.trim();
    match text.strip_prefix("0x") {
        Some(digits) => u16::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}
