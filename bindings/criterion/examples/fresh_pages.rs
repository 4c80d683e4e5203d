//! A benchmark measured in page faults: each page of fresh memory faults once, so that the result is known.
//! `cargo run -p quipu-criterion --example fresh_pages -- --bench` measures; without `--bench` criterion runs it once.

use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use memmap2::MmapMut;
use quipu_criterion::{Counter, counting};

const PAGES: usize = 512;

/// Touches pages that the process never had.
fn touch() -> MmapMut {
    let mut memory = MmapMut::map_anon(PAGES * 4096).expect("memory");
    #[cfg(target_os = "linux")]
    let _ = memory.advise(memmap2::Advice::NoHugePage);
    memory.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
    memory
}

fn fresh_pages(criterion: &mut Criterion<Counter>) {
    let mut group = criterion.benchmark_group("fresh pages");
    group.throughput(Throughput::Elements(PAGES as u64));
    group.bench_function("touch", |bencher| bencher.iter(touch));
    group.finish();
}

fn counting_faults() -> Criterion<Counter> {
    counting("page-faults")
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_secs(1))
}

criterion_group! {
    name = benches;
    config = counting_faults();
    targets = fresh_pages
}
criterion_main!(benches);
