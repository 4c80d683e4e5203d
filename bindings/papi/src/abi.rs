//! The structs and unions of `papi.h`, as C has them, in the versions that differ.

use std::ffi::c_char;
use std::ffi::c_float;
use std::ffi::c_int;
use std::ffi::c_long;
use std::ffi::c_longlong;
use std::ffi::c_uint;
use std::ffi::c_ulong;
use std::ffi::c_void;

/// The interface of PAPI 7.0, which programs have that ask for none; 7.1 has the same.
pub(crate) const V7_0: c_int = version(0);
/// That of 7.2: components that are partly disabled, events with qualifiers, more ways to enumerate.
pub(crate) const V7_2: c_int = version(2);
/// That of 7.3: presets of half precision.
pub(crate) const V7_3: c_int = version(3);
/// The versions that a program may ask for.
pub(crate) const VERSIONS: [c_int; 4] = [V7_0, version(1), V7_2, V7_3];

const fn version(minor: c_int) -> c_int {
    7 << 24 | minor << 16
}

pub(crate) const NULL: c_int = -1;

pub(crate) const PRESET_MASK: c_int = c_int::MIN;
pub(crate) const NATIVE_MASK: c_int = 0x4000_0000;

pub(crate) const MIN_STR_LEN: usize = 64;
pub(crate) const MAX_STR_LEN: usize = 128;
const TWO_MAX_STR_LEN: usize = 256;
pub(crate) const HUGE_STR_LEN: usize = 1024;
pub(crate) const MAX_INFO_TERMS: usize = 12;
const MAX_QUALIFIERS: usize = 8;
const PMU_MAX: usize = 80;

/// Defines structs that are plain data: all bytes zero is a value of each.
macro_rules! plain {
    ($($(#[$doc:meta])* struct $name:ident { $($field:ident: $type:ty,)* })*) => {$(
        $(#[$doc])*
        #[repr(C)]
        #[derive(Clone, Copy)]
        #[allow(dead_code, reason = "C reads the fields")]
        pub(crate) struct $name { $(pub(crate) $field: $type,)* }

        impl $name {
            /// Returns one of zeros.
            #[allow(dead_code, reason = "some are only read from the caller's memory")]
            pub(crate) fn zeroed() -> Self {
                // SAFETY: numbers, pointers and arrays of those, for which zeros are values.
                unsafe { std::mem::zeroed() }
            }
        }
    )*};
}

plain! {
    struct EventInfo {
        event_code: c_uint,
        symbol: [c_char; HUGE_STR_LEN],
        short_descr: [c_char; MIN_STR_LEN],
        long_descr: [c_char; HUGE_STR_LEN],
        component_index: c_int,
        units: [c_char; MIN_STR_LEN],
        location: c_int,
        data_type: c_int,
        value_type: c_int,
        timescope: c_int,
        update_type: c_int,
        update_freq: c_int,
        count: c_uint,
        event_type: c_uint,
        derived: [c_char; MIN_STR_LEN],
        postfix: [c_char; TWO_MAX_STR_LEN],
        code: [c_uint; MAX_INFO_TERMS],
        name: [[c_char; TWO_MAX_STR_LEN]; MAX_INFO_TERMS],
        note: [c_char; HUGE_STR_LEN],
    }

    /// Since 7.2. All before is of 4 bytes, so that what follows stands right behind it.
    struct QualifiedEventInfo {
        event: EventInfo,
        num_quals: c_int,
        quals: [[c_char; HUGE_STR_LEN]; MAX_QUALIFIERS],
        quals_descrs: [[c_char; HUGE_STR_LEN]; MAX_QUALIFIERS],
    }

    struct AddressMap {
        name: [c_char; HUGE_STR_LEN],
        text_start: usize,
        text_end: usize,
        data_start: usize,
        data_end: usize,
        bss_start: usize,
        bss_end: usize,
    }

    struct ExeInfo {
        fullname: [c_char; HUGE_STR_LEN],
        address_info: AddressMap,
    }

    struct ShlibInfo {
        map: *mut AddressMap,
        count: c_int,
    }

    struct TlbInfo {
        kind: c_int,
        num_entries: c_int,
        page_size: c_int,
        associativity: c_int,
    }

    struct CacheInfo {
        kind: c_int,
        size: c_int,
        line_size: c_int,
        num_lines: c_int,
        associativity: c_int,
    }

    struct MemoryLevel {
        tlb: [TlbInfo; 6],
        cache: [CacheInfo; 6],
    }

    struct MemoryHierarchy {
        levels: c_int,
        level: [MemoryLevel; 4],
    }

    struct HwInfo {
        ncpu: c_int,
        threads: c_int,
        cores: c_int,
        sockets: c_int,
        nnodes: c_int,
        totalcpus: c_int,
        vendor: c_int,
        vendor_string: [c_char; MAX_STR_LEN],
        model: c_int,
        model_string: [c_char; MAX_STR_LEN],
        revision: c_float,
        cpuid_family: c_int,
        cpuid_model: c_int,
        cpuid_stepping: c_int,
        cpu_max_mhz: c_int,
        cpu_min_mhz: c_int,
        mem_hierarchy: MemoryHierarchy,
        virtualized: c_int,
        virtual_vendor_string: [c_char; MAX_STR_LEN],
        virtual_vendor_version: [c_char; MAX_STR_LEN],
        mhz: c_float,
        clock_mhz: c_int,
        reserved: [c_int; 8],
    }

    struct DmemInfo {
        peak: c_longlong,
        size: c_longlong,
        resident: c_longlong,
        high_water_mark: c_longlong,
        shared: c_longlong,
        text: c_longlong,
        library: c_longlong,
        heap: c_longlong,
        locked: c_longlong,
        stack: c_longlong,
        pagesize: c_longlong,
        pte: c_longlong,
    }

    struct AllThreads {
        num: c_int,
        id: *mut c_ulong,
        data: *mut *mut c_void,
    }

    struct Sprofil {
        base: *mut c_void,
        size: c_uint,
        offset: usize,
        scale: c_uint,
    }

    struct PreloadInfo {
        lib_preload_env: [c_char; MAX_STR_LEN],
        lib_preload_sep: c_char,
        lib_dir_env: [c_char; MAX_STR_LEN],
        lib_dir_sep: c_char,
    }

    struct DebugOption {
        level: c_int,
        handler: usize,
    }

    struct InheritOption {
        eventset: c_int,
        inherit: c_int,
    }

    /// Of domains and of granularities.
    struct ScopeOption {
        def_cidx: c_int,
        eventset: c_int,
        scope: c_int,
    }

    struct AttachOption {
        eventset: c_int,
        tid: c_ulong,
    }

    struct CpuOption {
        eventset: c_int,
        cpu_num: c_uint,
    }

    struct MultiplexOption {
        eventset: c_int,
        ns: c_int,
        flags: c_int,
    }

    struct ItimerOption {
        itimer_num: c_int,
        itimer_sig: c_int,
        ns: c_int,
        flags: c_int,
    }

    struct AddrRangeOption {
        eventset: c_int,
        start: usize,
        end: usize,
        start_off: c_int,
        end_off: c_int,
    }
}

/// Defines the struct of components, that of 7.2 with two fields between the `head` and the `tail`, and the way from one to the other.
macro_rules! component_infos {
    (head { $($head:ident: $of_head:ty,)* } tail { $($tail:ident: $of_tail:ty,)* }) => {
        plain! {
            struct ComponentInfo {
                $($head: $of_head,)*
                $($tail: $of_tail,)*
            }

            /// Since 7.2.
            struct PartialComponentInfo {
                $($head: $of_head,)*
                partially_disabled_reason: [c_char; HUGE_STR_LEN],
                partially_disabled: c_int,
                $($tail: $of_tail,)*
            }
        }

        impl From<&ComponentInfo> for PartialComponentInfo {
            /// Returns the same of a component of which no part is disabled.
            fn from(info: &ComponentInfo) -> Self {
                Self {
                    $($head: info.$head,)*
                    $($tail: info.$tail,)*
                    ..Self::zeroed()
                }
            }
        }
    };
}

component_infos! {
    head {
        name: [c_char; MAX_STR_LEN],
        short_name: [c_char; MIN_STR_LEN],
        description: [c_char; MAX_STR_LEN],
        version: [c_char; MIN_STR_LEN],
        support_version: [c_char; MIN_STR_LEN],
        kernel_version: [c_char; MIN_STR_LEN],
        disabled_reason: [c_char; HUGE_STR_LEN],
        disabled: c_int,
    }
    tail {
        initialized: c_int,
        cmp_idx: c_int,
        num_cntrs: c_int,
        num_mpx_cntrs: c_int,
        num_preset_events: c_int,
        num_native_events: c_int,
        default_domain: c_int,
        available_domains: c_int,
        default_granularity: c_int,
        available_granularities: c_int,
        hardware_intr_sig: c_int,
        component_type: c_int,
        pmu_names: [*mut c_char; PMU_MAX],
        reserved: [c_int; 8],
        flags: c_uint,
    }
}

/// `PAPI_option_t`. Every member is plain data, so that any bytes are a value of each.
#[repr(C)]
pub(crate) union PapiOption {
    pub(crate) preload: PreloadInfo,
    pub(crate) debug: DebugOption,
    pub(crate) inherit: InheritOption,
    pub(crate) scope: ScopeOption,
    pub(crate) attach: AttachOption,
    pub(crate) cpu: CpuOption,
    pub(crate) multiplex: MultiplexOption,
    pub(crate) itimer: ItimerOption,
    pub(crate) addr: AddrRangeOption,
    pub(crate) hw_info: *const HwInfo,
    pub(crate) shlib_info: *const ShlibInfo,
    pub(crate) exe_info: *const ExeInfo,
    pub(crate) cmp_info: *const c_void,
}

const _: () = assert!(size_of::<c_long>() == size_of::<usize>());

/// The program's handler: it gets the set, the address of the code, the events as bits, and the context.
pub(crate) type OverflowHandler = extern "C" fn(c_int, *mut c_void, c_longlong, *mut c_void);
