//! Intel's offcore matrix: the request types and the responses that the offcore response event puts together.
//!
//! A row is a request or a response; an event is one of each, its register value the bits of both
//! (SDM volume 3, "Off-core Response Performance Monitoring"). The requests are the low 16 bits of the
//! register. Some lists give a response as it stands in the register, others without those 16 bits.

use serde_json::{Value, json};

use super::{Events, number, text};

/// The event that a matrix is about.
pub(super) const EVENT: &str = "OFFCORE_RESPONSE";

/// MSR_OFFCORE_RSP_0 and MSR_OFFCORE_RSP_1.
pub(super) const REGISTERS: [u32; 2] = [0x1a6, 0x1a7];

/// The bits of a register that are for requests.
const REQUESTS: u64 = 0xffff;

const REQUEST: &str = "MATRIX_REQUEST";
const RESPONSE: &str = "MATRIX_RESPONSE";

/// Returns true if an object is a row of a matrix.
pub(super) fn is_part(row: &Value) -> bool {
    row.get(REQUEST).is_some()
}

/// The rows of one CPU's matrix.
pub(super) struct Matrix {
    requests: Vec<Part>,
    responses: Vec<Part>,
}

struct Part {
    name: String,
    value: u64,
    /// Which of the registers take it, one bit each.
    registers: u8,
}

/// A request and a response put together.
pub(super) struct Combination {
    /// `OFFCORE_RESPONSE.REQUEST.RESPONSE`.
    pub(super) name: String,
    value: u64,
    register: u32,
    /// The request bits that each register takes.
    known: [u64; REGISTERS.len()],
}

impl Combination {
    /// Returns true if the list has this event with a request bit that its register does not take by the matrix:
    /// Linux refuses such a value (Knights Landing's; `intel_knl_extra_regs`, arch/x86/events/intel/core.c).
    pub(super) fn corrects(&self, name: &str, event: &Value) -> bool {
        let register = number(event, "MSRIndex");
        let mut known = REGISTERS.iter().zip(self.known);
        let known = known.find(|(address, _)| register == Some(u64::from(**address)));
        name == self.name
            && known
                .zip(number(event, "MSRValue"))
                .is_some_and(|((_, known), value)| value & REQUESTS & !known != 0)
    }

    /// Returns the event of the list with this register and value.
    pub(super) fn over(&self, event: &Value) -> Value {
        let mut event = event.clone();
        event["MSRIndex"] = json!(format!("{:#x}", self.register));
        event["MSRValue"] = json!(format!("{:#x}", self.value));
        event
    }
}

impl Matrix {
    pub(super) fn new(rows: &[&Value], events: &mut Events) -> Self {
        let mut requests = Vec::new();
        let mut responses = Vec::new();
        for row in rows {
            let is_null = |key| text(row, key).eq_ignore_ascii_case("null");
            let (key, list) = match (is_null(REQUEST), is_null(RESPONSE)) {
                (false, true) => (REQUEST, &mut requests),
                (true, false) => (RESPONSE, &mut responses),
                _ => continue,
            };
            let name = text(row, key).to_owned();
            // Goldmont Plus has a prefetch among the responses.
            if key == RESPONSE && name.starts_with("PF_") {
                events.leave_out(&name, "it is a request, listed as a response");
                continue;
            }
            match number(row, "MATRIX_VALUE") {
                Some(value) => list.push(Part {
                    name,
                    value,
                    registers: registers(text(row, "MATRIX_REGISTER")),
                }),
                None => events.leave_out(&name, "it has no value"),
            }
        }
        if responses.iter().any(|part| part.value & REQUESTS != 0) {
            for part in &mut responses {
                part.value <<= REQUESTS.count_ones();
            }
        }
        Self {
            requests,
            responses,
        }
    }

    /// Returns every request with every response that the same register takes.
    pub(super) fn combinations(&self, events: &mut Events) -> Vec<Combination> {
        let mut all = Vec::new();
        let known = [1, 2].map(|register| {
            let taken = self
                .requests
                .iter()
                .filter(|part| part.registers & register != 0);
            taken.fold(0, |bits, part| bits | part.value)
        });
        for request in &self.requests {
            for response in &self.responses {
                let name = format!("{EVENT}.{}.{}", request.name, response.name);
                let both = request.registers & response.registers;
                match REGISTERS.get(both.trailing_zeros() as usize) {
                    Some(register) => all.push(Combination {
                        name,
                        value: request.value | response.value,
                        register: *register,
                        known,
                    }),
                    None => events.leave_out(&name, "no register takes both parts"),
                }
            }
        }
        all
    }
}

/// Returns the registers of a list such as `0,1`.
fn registers(list: &str) -> u8 {
    list.split(',')
        .filter_map(|number| number.trim().parse::<u32>().ok())
        .filter(|number| (*number as usize) < REGISTERS.len())
        .fold(0, |mask, number| mask | 1 << number)
}
