//! The suite over simulated machines, proper ones and faulty ones.

mod checks;
mod faulty_hardware;
mod mutants;
mod sim;
