//! Calls of the C library, a sequence from the input: handles that are open, closed, of another kind and
//! null, sizes that are right and wrong, on a simulated PMU.
//!
//! Arguments are what C promises: pointers are null or good, and arrays have room for what is passed.
#![no_main]

use std::ffi::{CString, c_int, c_void};
use std::ptr::{null, null_mut};

use libfuzzer_sys::fuzz_target;
use quipu_capi::*;

/// Most calls of a sequence.
const MOST_CALLS: usize = 200;
/// Room of the arrays; sizes that are passed are less.
const ROOM: usize = 40;

/// The input, byte by byte, then zeros.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn byte(&mut self) -> usize {
        match self.0.split_first() {
            Some((byte, rest)) => {
                self.0 = rest;
                usize::from(*byte)
            }
            None => 0,
        }
    }

    /// Returns a number of which small ones are more likely.
    fn number(&mut self) -> u64 {
        let (shift, byte) = (self.byte() % 64, self.byte() as u64);
        byte.rotate_right(shift as u32 * 8)
    }

    /// Returns a size up to the room of the arrays, most often the one that is right.
    fn size(&mut self, right: usize) -> usize {
        match self.byte() {
            byte if byte < 200 => right.min(ROOM),
            byte => byte % ROOM,
        }
    }

    /// Returns a name that is known, or the text up to the next NUL.
    fn text(&mut self) -> CString {
        const KNOWN: [&str; 12] = [
            "cycles",
            "instructions",
            "{cycles,instructions}",
            "cycles:u,branches:k",
            "a+b",
            "cycles/instructions",
            "INST_RETIRED.ANY",
            "intel-skl",
            "amd-zen3",
            "software",
            "BRANCHES",
            "",
        ];
        let which = self.byte();
        if let Some(known) = KNOWN.get(which) {
            return CString::new(*known).expect("no NUL");
        }
        let len = self.0.iter().position(|byte| *byte == 0).unwrap_or(self.0.len());
        let (text, rest) = self.0.split_at(len);
        self.0 = rest;
        CString::new(text).expect("no NUL")
    }
}

/// Handles, four of each kind, of which all may be any; and those that others have replaced, with their kinds.
#[derive(Default)]
struct Handles {
    held: [usize; 16],
    replaced: Vec<(usize, usize)>,
}

impl Handles {
    fn any<T>(&self, kind: usize, input: &mut Input<'_>) -> *mut T {
        let byte = input.byte();
        let place = match byte {
            // Of another kind.
            250.. => byte % 16,
            _ => kind * 4 + byte % 4,
        };
        self.held[place] as *mut T
    }

    fn keep<T>(&mut self, kind: usize, input: &mut Input<'_>, handle: *mut T) {
        let place = &mut self.held[kind * 4 + input.byte() % 4];
        self.replaced.push((kind, std::mem::replace(place, handle as usize)));
    }
}

const SIMS: usize = 0;
const SETS: usize = 1;
const DATABASES: usize = 2;
const CPUS: usize = 3;

fuzz_target!(|bytes: &[u8]| {
    let input = &mut Input(bytes);
    let mut handles = Handles::default();
    for _ in 0..MOST_CALLS {
        if input.0.is_empty() {
            break;
        }
        // SAFETY: see the head of this file; handles are never followed.
        unsafe { call(&mut handles, input) };
    }
    let held = handles.held.into_iter().enumerate();
    let held = held.map(|(place, handle)| (place / 4, handle));
    for (kind, handle) in held.chain(handles.replaced) {
        // SAFETY: handles are never followed.
        let status = unsafe {
            match kind {
                SIMS => quipu_sim_close(handle as *mut _),
                SETS => quipu_set_close(handle as *mut _),
                DATABASES => quipu_database_close(handle as *mut _),
                _ => quipu_cpu_close(handle as *mut _),
            }
        };
        let _ = status;
    }
});

/// A struct of zeros with its size set, as QUIPU_INIT makes it: integers and pointers, for all of which zero
/// is a value. It stands in the `unsafe` block below.
macro_rules! init {
    ($kind:ty) => {{
        let mut made: $kind = std::mem::zeroed();
        made.size = size_of::<$kind>();
        made
    }};
}

/// Makes one call.
///
/// # Safety
/// None is asked of the caller: every pointer is made here.
unsafe fn call(handles: &mut Handles, input: &mut Input<'_>) {
    let mut counts = [quipu_count::default(); ROOM];
    let mut readings = [quipu_reading::default(); ROOM];
    let mut others = [quipu_reading::default(); ROOM];
    let (mut events, mut parts, mut number) = (0usize, 0usize, 0u64);
    let which = input.byte() % 29;
    let set: *mut quipu_set = handles.any(SETS, input);
    let sim: *mut quipu_sim = handles.any(SIMS, input);
    let cpu: *mut quipu_cpu = handles.any(CPUS, input);
    // SAFETY: pointers are to the locals above and below, as long as their sizes say.
    unsafe {
        quipu_set_size(set, &mut events, &mut parts);
        match which {
            0 => {
                let mut config = init!(quipu_sim_config);
                config.cpus = input.byte() as u32 % 8;
                config.counters = input.byte() as u32 % 80;
                config.width = input.byte() as u32 % 80;
                let mut made = null_mut();
                let config = if input.byte() % 2 == 0 { null() } else { &raw const config };
                quipu_sim_create(config, &mut made);
                let _ = quipu_sim_close(sim);
                handles.keep(SIMS, input, made);
            }
            1..4 => {
                let mut config = init!(quipu_config);
                config.target = input.byte() as u32 % 9;
                config.flags = input.byte() as u32;
                config.id = input.byte() as c_int % 4;
                config.sim = sim;
                let mut made = null_mut();
                // Only on simulated PMUs: what this machine does with its own is another matter.
                if !sim.is_null() {
                    quipu_set_create(&config, &mut made);
                }
                let _ = quipu_set_close(set);
                handles.keep(SETS, input, made);
            }
            4..7 => {
                quipu_set_add(set, input.text().as_ptr());
            }
            7 => {
                quipu_set_define(set, input.text().as_ptr(), input.text().as_ptr());
            }
            8 | 9 => {
                quipu_set_open(set);
            }
            10 => {
                quipu_set_start(set);
            }
            11 => {
                quipu_set_stop(set);
            }
            12 => {
                quipu_set_reset(set);
            }
            13 => {
                quipu_sim_advance(sim, input.number());
            }
            14 => {
                quipu_sim_tick(sim);
            }
            15 => {
                let (user, kernel) = (input.number(), input.number());
                quipu_sim_happen(sim, input.text().as_ptr(), input.byte() as u32 % 8, user, kernel);
            }
            16 => {
                quipu_sim_truth(sim, input.text().as_ptr(), input.byte() as u32 % 8, &mut number);
            }
            17 => {
                quipu_set_read(set, counts.as_mut_ptr(), input.size(events));
            }
            18 => {
                quipu_set_read_parts(set, readings.as_mut_ptr(), input.size(parts));
            }
            19 => {
                let (sum, last) = (readings.as_mut_ptr(), others.as_mut_ptr());
                quipu_set_accumulate(set, sum, last, input.size(parts));
            }
            20 => {
                let size = input.size(parts);
                for reading in readings.iter_mut().take(size) {
                    reading.value = input.number();
                    reading.time_enabled = input.number();
                    reading.time_running = input.number();
                    let _ = quipu_scale(reading, &mut counts[0]);
                }
                let out = counts.as_mut_ptr();
                quipu_set_total(set, readings.as_ptr(), size, out, input.size(events));
                let out = readings.as_mut_ptr();
                quipu_set_difference(set, out, others.as_ptr(), out, size);
            }
            21 => {
                let mut info = init!(quipu_event_info);
                quipu_set_event_info(set, input.byte() % 8, &mut info);
                let mut info = init!(quipu_part_info);
                quipu_set_part_info(set, input.byte() % 8, input.byte() % 8, &mut info);
                let mut error = init!(quipu_error);
                quipu_set_event_error(set, input.byte() % 8, &mut error);
                quipu_last_error(&mut error);
            }
            22 => {
                let mut made = null_mut();
                quipu_database_open(null(), &mut made);
                let _ = quipu_database_close(handles.any(DATABASES, input));
                handles.keep(DATABASES, input, made);
            }
            23 => {
                let mut made = null_mut();
                let database = handles.any(DATABASES, input);
                quipu_cpu_open(database, input.text().as_ptr(), input.byte() % 3, &mut made);
                let _ = quipu_cpu_close(cpu);
                handles.keep(CPUS, input, made);
            }
            24 => {
                let mut info = init!(quipu_name_info);
                quipu_cpu_name(cpu, input.byte() as u32 % 4, input.byte() * 16, &mut info);
                quipu_cpu_find(cpu, input.byte() as u32 % 4, input.text().as_ptr(), &mut info);
                quipu_cpu_name_count(cpu, input.byte() as u32 % 4, &mut events);
            }
            25 => {
                let mut encoding = init!(quipu_encoding);
                let interface = input.byte() as u32 % 5;
                quipu_encode(cpu, input.text().as_ptr(), interface, &mut encoding);
                let mut name = [0; 64];
                let size = input.size(name.len());
                quipu_decode(cpu, &encoding, name.as_mut_ptr(), size, null_mut());
            }
            26 => {
                let mut encoding = init!(quipu_encoding);
                encoding.form = input.byte() as u32 % 6;
                encoding.r#type = input.byte() as u32;
                encoding.config = input.number();
                encoding.config1 = input.number();
                encoding.extra_value = input.number();
                encoding.extra_register = input.number() as u32;
                let (mut name, mut levels) = ([0; 64], 0);
                quipu_decode(cpu, &encoding, name.as_mut_ptr(), name.len(), &mut levels);
            }
            27 => {
                let mut config = init!(quipu_config);
                config.sim = sim;
                let mut sampler = null_mut();
                if !sim.is_null() {
                    quipu_sampler_open(&config, input.text().as_ptr(), null(), &mut sampler);
                }
                quipu_sampler_drain(sampler, Some(ignore), null_mut());
                quipu_sampler_close(sampler);
            }
            _ => {
                let _ = quipu_set_close(set);
            }
        }
    }
}

unsafe extern "C" fn ignore(_: *const quipu_sample, _: *mut c_void) {}
