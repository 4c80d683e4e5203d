//! Page faults, exactly: one for each untouched page of an anonymous mapping.

use std::fs::File;
use std::hint::black_box;
use std::io::Read;

use memmap2::MmapMut;
use quipu_hal::Filter;

use crate::Workload;

/// Work that takes so many page faults: in user mode by writing to each page, in kernel mode by
/// reading a file into them.
pub(super) fn page_faults(level: Filter, times: u64) -> Option<Workload> {
    let (mut pages, page) = pages(times)?;
    let bytes = if times == 0 { 0 } else { pages.len() };
    if level == Filter::USER {
        return Some(Box::new(move || {
            for byte in pages[..bytes].iter_mut().step_by(page) {
                *byte = 1;
            }
            black_box(&pages);
        }));
    }
    let mut zeros = File::open("/dev/zero").ok()?;
    Some(Box::new(move || {
        // The file has no end, so this cannot come up short.
        let _ = zeros.read_exact(&mut pages[..bytes]);
    }))
}

/// Takes the faults that come along with the first ones: of code not loaded yet, of page tables.
pub(super) fn warm_up() {
    for level in [Filter::USER, Filter::USER, Filter::KERNEL, Filter::KERNEL] {
        if let Some(work) = page_faults(level, 100) {
            work();
        }
    }
}

/// Untouched pages; small ones, whatever the system's taste.
fn pages(count: u64) -> Option<(MmapMut, usize)> {
    let page = rustix::param::page_size();
    let bytes = usize::try_from(count).ok()?.checked_mul(page)?;
    let pages = MmapMut::map_anon(bytes.max(page)).ok()?;
    #[cfg(target_os = "linux")]
    // Kernels without huge pages refuse the advice and do not need it.
    let _ = pages.advise(memmap2::Advice::NoHugePage);
    Some((pages, page))
}
