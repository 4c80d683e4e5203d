//! Benchmarks of criterion in a crate that knows nothing of this workspace: loops of exactly 2 N instructions.

use std::arch::asm;

use criterion::{Criterion, criterion_group, criterion_main};
use quipu_criterion::{Counter, counting};

fn spin(rounds: u64) {
    // SAFETY: it counts a register down to 0 and touches nothing else.
    unsafe {
        asm!("2:", "sub {rounds}, 1", "jne 2b", rounds = inout(reg) rounds => _, options(nomem, nostack));
    }
}

fn loops(criterion: &mut Criterion<Counter>) {
    for rounds in [1_000, 2_000] {
        criterion.bench_function(&rounds.to_string(), |bencher| bencher.iter(|| spin(rounds)));
    }
}

criterion_group! { name = benches; config = counting("instructions:u"); targets = loops }
criterion_main!(benches);
