//! Addresses of the registers that counting needs.
//!
//! Intel SDM volume 4 and volume 3, "Performance Monitoring"; AMD APM volume 2, "Performance
//! Monitoring Counters"; Linux `arch/x86/include/asm/msr-index.h`.

/// `IA32_TIME_STAMP_COUNTER`: every x86 CPU with registers has it.
pub(crate) const TIME_STAMP: u32 = 0x10;

/// P5: the control and event select register, a half for each counter.
pub(crate) const P5_CESR: u32 = 0x11;
/// P5: counter 0; counter 1 follows.
pub(crate) const P5_COUNTER: u32 = 0x12;

/// Intel, P6 on: counter 0. Writes are sign-extended from bit 31.
pub(crate) const INTEL_COUNTER: u32 = 0xc1;
/// Intel: counter 0 again, where all its bits can be written (`IA32_A_PMC0`).
pub(crate) const INTEL_FULL_COUNTER: u32 = 0x4c1;
/// Intel, P6 on: select register 0 (`IA32_PERFEVTSEL0`).
pub(crate) const INTEL_SELECT: u32 = 0x186;
/// Intel: fixed counter 0 (`IA32_FIXED_CTR0`).
pub(crate) const INTEL_FIXED_COUNTER: u32 = 0x309;
/// Intel: what the counters can do (`IA32_PERF_CAPABILITIES`).
pub(crate) const INTEL_CAPABILITIES: u32 = 0x345;
/// Intel: four control bits for each fixed counter (`IA32_FIXED_CTR_CTRL`).
pub(crate) const INTEL_FIXED_CONTROL: u32 = 0x38d;
/// Intel: overflow bits (`IA32_PERF_GLOBAL_STATUS`).
pub(crate) const INTEL_GLOBAL_STATUS: u32 = 0x38e;
/// Intel: an enable bit for each counter (`IA32_PERF_GLOBAL_CTRL`).
pub(crate) const INTEL_GLOBAL_CONTROL: u32 = 0x38f;
/// Intel: writing 1 clears an overflow bit (`IA32_PERF_GLOBAL_OVF_CTRL`, `_STATUS_RESET`).
pub(crate) const INTEL_GLOBAL_CLEAR: u32 = 0x390;

/// Intel, version 6: counter 0 (`IA32_PMC_GP0_CTR`).
pub(crate) const INTEL_V6_COUNTER: u32 = 0x1900;
/// Intel, version 6: select register 0 (`IA32_PMC_GP0_CFG_A`).
pub(crate) const INTEL_V6_SELECT: u32 = 0x1901;
/// Intel, version 6: fixed counter 0 (`IA32_PMC_FX0_CTR`).
pub(crate) const INTEL_V6_FIXED_COUNTER: u32 = 0x1980;
/// Intel, version 6: from one counter's registers to the next one's.
pub(crate) const INTEL_V6_STEP: u32 = 4;

/// AMD K7 on: select register 0 of four.
pub(crate) const AMD_SELECT: u32 = 0xc001_0000;
/// AMD K7 on: counter 0 of four.
pub(crate) const AMD_COUNTER: u32 = 0xc001_0004;
/// AMD family 15h on: select register 0 of six; the first four are the ones above again.
pub(crate) const AMD_CORE_SELECT: u32 = 0xc001_0200;
/// AMD family 15h on: counter 0 of six.
pub(crate) const AMD_CORE_COUNTER: u32 = 0xc001_0201;
/// AMD family 15h on: from one counter's registers to the next one's.
pub(crate) const AMD_CORE_STEP: u32 = 2;
/// AMD PerfMonV2: overflow bits (`PerfCntrGlobalStatus`).
pub(crate) const AMD_GLOBAL_STATUS: u32 = 0xc000_0300;
/// AMD PerfMonV2: an enable bit for each counter (`PerfCntrGlobalCtl`).
pub(crate) const AMD_GLOBAL_CONTROL: u32 = 0xc000_0301;
/// AMD PerfMonV2: writing 1 clears an overflow bit (`PerfCntrGlobalStatusClr`).
pub(crate) const AMD_GLOBAL_CLEAR: u32 = 0xc000_0302;
