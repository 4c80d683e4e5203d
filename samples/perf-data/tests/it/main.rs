//! Records, samples and files, from bytes.

mod byte_orders;
mod descriptions;
mod encoding;
mod forms;
mod names;
mod records;
mod records_in_sequence;
mod round_trip;
mod samples;
mod trace_format;
mod trace_pointers;
mod trace_print;
