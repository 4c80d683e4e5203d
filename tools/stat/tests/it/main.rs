//! `quipu stat` as a library: plans, reports, and measurements on simulated machines.
#![cfg(unix)]

mod session;
mod stat_in_parts;
mod stat_on_jumps;
mod stat_on_metrics;
mod stat_on_pctr;
mod stat_on_registers;
mod stat_on_units;
mod stat_plan;
mod stat_report;
