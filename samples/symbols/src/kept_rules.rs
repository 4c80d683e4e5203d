//! The written form of rules for unwinding, for recordings that keep them.

use std::sync::Arc;

use gimli::{Encoding, Expression, Format, LittleEndian, Register};

use crate::call_frames::{Bytes, Rule, Rules};
use crate::packed::{Input, Output};

/// Expressions are as long as that at most.
const LONGEST_EXPRESSION: usize = 4 << 10;

/// Returns the written form of rules; `None` for those with an expression that is too long.
pub(crate) fn to_bytes(rules: &Rules) -> Option<Vec<u8>> {
    let mut out = Output::default();
    out.number(u64::from(rules.encoding.address_size));
    out.number(u64::from(rules.encoding.version));
    out.number(u64::from(rules.encoding.format == Format::Dwarf64));
    out.number(u64::from(rules.is_signal) | u64::from(rules.is_of_go) << 1);
    out.number(u64::from(rules.return_address.0));
    push(&mut out, &rules.cfa)?;
    out.number(rules.registers.len() as u64);
    for (register, rule) in &rules.registers {
        out.number(u64::from(register.0));
        push(&mut out, rule)?;
    }
    Some(out.bytes)
}

/// Returns the rules of a written form.
pub(crate) fn read(bytes: &[u8]) -> Option<Rules> {
    let mut input = Input(bytes);
    let encoding = Encoding {
        address_size: input.small()?,
        version: input.small()?,
        format: match input.number()? {
            0 => Format::Dwarf32,
            _ => Format::Dwarf64,
        },
    };
    if ![4, 8].contains(&encoding.address_size) || !(1..=5).contains(&encoding.version) {
        return None;
    }
    let flags = input.number()?;
    let return_address = Register(input.small()?);
    let cfa = rule(&mut input)?;
    let registers = (0..input.count()?)
        .map(|_| Some((Register(input.small()?), rule(&mut input)?)))
        .collect::<Option<_>>()?;
    Some(Rules {
        cfa,
        registers,
        return_address,
        is_signal: flags & 1 != 0,
        is_of_go: flags & 2 != 0,
        encoding,
    })
}

fn push(out: &mut Output, rule: &Rule) -> Option<()> {
    let mut expression = |kind, expression: &Expression<Bytes>| {
        let bytes = expression.0.bytes();
        (bytes.len() <= LONGEST_EXPRESSION).then(|| {
            out.number(kind);
            out.text(bytes);
        })
    };
    match rule {
        Rule::Expression(bytes) => return expression(5, bytes),
        Rule::ValueExpression(bytes) => return expression(6, bytes),
        Rule::Undefined => out.number(0),
        Rule::SameValue => out.number(1),
        Rule::Register(register, offset) => {
            out.number(2);
            out.number(u64::from(register.0));
            out.signed(*offset);
        }
        Rule::Offset(offset) => {
            out.number(3);
            out.signed(*offset);
        }
        Rule::ValueOffset(offset) => {
            out.number(4);
            out.signed(*offset);
        }
    }
    Some(())
}

fn rule(input: &mut Input<'_>) -> Option<Rule> {
    let expression = |input: &mut Input<'_>| {
        let bytes = input
            .text()
            .filter(|text| text.len() <= LONGEST_EXPRESSION)?;
        Some(Expression(Bytes::new(Arc::from(bytes), LittleEndian)))
    };
    Some(match input.number()? {
        0 => Rule::Undefined,
        1 => Rule::SameValue,
        2 => Rule::Register(Register(input.small()?), input.signed()?),
        3 => Rule::Offset(input.signed()?),
        4 => Rule::ValueOffset(input.signed()?),
        5 => Rule::Expression(expression(input)?),
        6 => Rule::ValueExpression(expression(input)?),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_come_back() {
        let expression = || Expression(Bytes::new(Arc::from(&[0x77, 8][..]), LittleEndian));
        let kinds = [
            Rule::Undefined,
            Rule::SameValue,
            Rule::Register(Register(7), -8),
            Rule::Offset(-16),
            Rule::ValueOffset(i64::MIN),
            Rule::Expression(expression()),
            Rule::ValueExpression(expression()),
        ];
        let registers = (0..).map(Register).zip(kinds).collect();
        let rules = Rules {
            cfa: Rule::Register(Register(7), 8),
            registers,
            return_address: Register(16),
            is_signal: true,
            is_of_go: true,
            encoding: Encoding {
                address_size: 8,
                format: Format::Dwarf32,
                // That of `.eh_frame`.
                version: 1,
            },
        };
        let bytes = to_bytes(&rules).expect("short");
        let same = read(&bytes).expect("good");
        let fixed = |rules: &Rules| {
            let Rules {
                cfa,
                registers,
                return_address,
                is_signal,
                is_of_go,
                encoding,
            } = rules;
            // Expressions show where they are in memory.
            let registers = &registers[..5];
            format!("{cfa:?} {registers:?} {return_address:?} {is_signal} {is_of_go} {encoding:?}")
        };
        assert_eq!(fixed(&same), fixed(&rules));
        assert_eq!(same.registers.len(), 7);
        let bytes_of = |rule: &Rule| match rule {
            Rule::Expression(it) | Rule::ValueExpression(it) => it.0.bytes().to_vec(),
            other => panic!("{other:?}"),
        };
        for (_, rule) in &same.registers[5..] {
            assert_eq!(bytes_of(rule), [0x77, 8]);
        }
        assert_eq!(to_bytes(&same).as_ref(), Some(&bytes));
        for len in 0..bytes.len() {
            assert!(read(&bytes[..len]).is_none(), "{len}");
        }
    }
}
