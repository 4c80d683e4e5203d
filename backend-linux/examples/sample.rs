//! Samples this program's own work and prints where it was: `cargo run -p quipu-linux --example sample`.

#[cfg(target_os = "linux")]
fn main() -> quipu_hal::Result<()> {
    use std::collections::BTreeMap;

    use quipu_hal::{EventSpec, Filter, Software, Target};
    use quipu_linux::LinuxBackend;
    use quipu_linux::sampling::{Rate, Record, SampleType, SamplerSpec};

    let clock = EventSpec::new(Software::CpuClock).with_filter(Filter::USER_ONLY);
    let mut spec = SamplerSpec::new([(clock, Rate::Frequency(4000))]);
    spec.sample_type |= SampleType::CALLCHAIN;
    let mut sampler = LinuxBackend::new()?.open_sampler(&spec, &Target::CurrentThread)?;
    work();
    sampler.disable()?;

    let layout = *sampler.layout();
    let mut functions = BTreeMap::<&str, u64>::new();
    let ring = &mut sampler.rings_mut()[0];
    for record in &mut ring.records() {
        if let Record::Sample(sample) = record?.decode(&layout)? {
            *functions.entry(name(sample.ip())).or_default() += 1;
        }
    }
    println!("samples: {functions:?}, lost: {:?}", ring.losses());
    Ok(())
}

/// Sums up numbers for a while.
#[cfg(target_os = "linux")]
#[inline(never)]
fn work() {
    let sum: u64 = (0..50_000_000u64).map(std::hint::black_box).sum();
    std::hint::black_box(sum);
}

/// Which function an address is in, as far as this program knows its own.
#[cfg(target_os = "linux")]
fn name(ip: Option<u64>) -> &'static str {
    let start = work as *const () as u64;
    match ip {
        Some(ip) if (start..start + 1024).contains(&ip) => "work",
        _ => "elsewhere",
    }
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("perf_event_open is Linux's");
}
