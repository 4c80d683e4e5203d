//! Benchmarks in the event that `BENCH_EVENT` names, left out without a counter if `BENCH_SKIP` is there. With
//! `--profile-time SECONDS` they are recorded on Linux, and a flame graph says where their time goes.

use std::env;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use quipu_criterion::{Counter, Counting};

#[inline(never)]
fn fibonacci(n: u64) -> u64 {
    match n {
        0 | 1 => n,
        n => fibonacci(n - 1) + fibonacci(n - 2),
    }
}

fn recursion(criterion: &mut Criterion<Counter>) {
    criterion.bench_function("fibonacci", |bencher| {
        bencher.iter(|| fibonacci(std::hint::black_box(15)));
    });
}

fn chosen() -> Criterion<Counter> {
    let event = env::var("BENCH_EVENT").unwrap_or_else(|_| "instructions:u".into());
    let mut counting = Counting::of(event).expect("an event");
    if env::var_os("BENCH_SKIP").is_some() {
        counting = counting.skip_without_counter();
    }
    let criterion = counting
        .criterion()
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_secs(1));
    // Only Linux has recordings.
    #[cfg(target_os = "linux")]
    let criterion = criterion.with_profiler(quipu_criterion::Recorder::default());
    criterion
}

criterion_group! {
    name = benches;
    config = chosen();
    targets = recursion
}
criterion_main!(benches);
