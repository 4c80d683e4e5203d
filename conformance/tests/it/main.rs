//! The suite over simulated machines, proper ones and faulty ones.

mod faulty_hardware;
mod mutants;
mod sim;
