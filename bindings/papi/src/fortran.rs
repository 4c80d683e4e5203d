//! The entry points for Fortran, each under the four spellings that compilers look for. Everything is passed by its address,
//! and the lengths of texts follow behind all other arguments.

use std::ffi::{CStr, CString, c_char, c_float, c_int, c_longlong, c_ulong, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::abi::{EventInfo, InheritOption, MAX_STR_LEN, NULL, PapiOption, ScopeOption};
use crate::boundary::call::PAPI_perror;
use crate::boundary::pointer::{c_text, read, write};
use crate::code::{EINVAL, OK};
use crate::component::info::{PAPI_num_cmp_hwctrs, PAPI_num_hwctrs};
use crate::event::enumerate::PAPI_enum_event;
use crate::event::info::PAPI_get_event_info;
use crate::event::lookup::*;
use crate::event_set::functions::*;
use crate::high_level::{PAPI_hl_read, PAPI_hl_region_begin, PAPI_hl_region_end, PAPI_hl_stop};
use crate::initialize::{PAPI_is_initialized, PAPI_library_init, PAPI_shutdown};
use crate::machine::clock::*;
use crate::machine::device::{PAPI_enum_dev_type, PAPI_get_dev_attr, PAPI_get_dev_type_attr};
use crate::machine::hardware::PAPI_get_hardware_info;
use crate::machine::memory::PAPI_get_dmem_info;
use crate::option::number::*;
use crate::option::*;
use crate::rate::*;
use crate::thread::*;

/// Defines functions under the four spellings: as they are, with one and two underscores, and in capitals.
macro_rules! spelled {
    ($($name:ident $capitals:ident($($argument:ident: $type:ty),*) $body:block)*) => {$(
        mod $name {
            #[allow(unused_imports, reason = "not every function needs all of it")]
            use super::*;

            #[unsafe(no_mangle)]
            extern "C" fn $name($($argument: $type),*) $body
            #[unsafe(export_name = concat!(stringify!($name), "_"))]
            extern "C" fn underscore($($argument: $type),*) { $name($($argument),*) }
            #[unsafe(export_name = concat!(stringify!($name), "__"))]
            extern "C" fn underscores($($argument: $type),*) { $name($($argument),*) }
            #[unsafe(no_mangle)]
            extern "C" fn $capitals($($argument: $type),*) { $name($($argument),*) }
        }
    )*};
}

/// Defines functions whose last argument is written: with a number, behind which only lengths follow.
macro_rules! with_result {
    ($(
        $name:ident $capitals:ident($($argument:ident: $type:ty),*)
            -> $out:ty = $value:expr $(, with $length:ident)?;
    )*) => {
        spelled! {$(
            $name $capitals($($argument: $type,)* out: *mut $out $(, $length: c_int)?) { put(out, $value) }
        )*}
    };
}

/// Returns the argument that is passed by its address.
fn of(address: *const c_int) -> c_int {
    // SAFETY: null, or the caller's number.
    unsafe { read(address) }.unwrap_or(0)
}

fn put<T>(address: *mut T, value: T) {
    // SAFETY: null, or the caller's variable.
    let _ = unsafe { write(address, value) };
}

/// Returns the text of a variable without the blanks that fill it.
fn text(variable: *const c_char, length: c_int) -> CString {
    let length = usize::try_from(length).unwrap_or(0);
    if variable.is_null() {
        return CString::default();
    }
    // SAFETY: not null, and the caller's variable is as long as it says.
    let bytes = unsafe { std::slice::from_raw_parts(variable.cast::<u8>(), length) };
    c_text(String::from_utf8_lossy(bytes).trim_end_matches(' '))
}

/// Fills a variable with a text, as much as fits, and blanks behind it.
fn fill(variable: *mut c_char, length: c_int, text: *const c_char) {
    let length = usize::try_from(length).unwrap_or(0);
    if variable.is_null() || text.is_null() {
        return;
    }
    // SAFETY: not null, and a text of this library's with a NUL at its end.
    let text = unsafe { CStr::from_ptr(text) }.to_bytes();
    let copied = text.len().min(length);
    let to: *mut u8 = variable.cast();
    // SAFETY: not null, and the caller's variable is as long as it says; it is none of the library's.
    unsafe {
        to.copy_from_nonoverlapping(text.as_ptr(), copied);
        to.add(copied).write_bytes(b' ', length - copied);
    }
}

with_result! {
    papif_accum PAPIF_ACCUM(set: *const c_int, values: *mut c_longlong) -> c_int
        = PAPI_accum(of(set), values);
    papif_add_event PAPIF_ADD_EVENT(set: *const c_int, event: *const c_int) -> c_int
        = PAPI_add_event(of(set), of(event));
    papif_add_events PAPIF_ADD_EVENTS(set: *const c_int, events: *mut c_int, number: *const c_int) -> c_int
        = PAPI_add_events(of(set), events, of(number));
    papif_add_named_event PAPIF_ADD_NAMED_EVENT(set: *const c_int, name: *const c_char) -> c_int
        = PAPI_add_named_event(of(set), text(name, length).as_ptr()), with length;
    papif_assign_eventset_component PAPIF_ASSIGN_EVENTSET_COMPONENT(set: *const c_int, component: *const c_int) -> c_int
        = PAPI_assign_eventset_component(of(set), of(component));
    papif_cleanup_eventset PAPIF_CLEANUP_EVENTSET(set: *const c_int) -> c_int
        = PAPI_cleanup_eventset(of(set));
    papif_create_eventset PAPIF_CREATE_EVENTSET(set: *mut c_int) -> c_int
        = PAPI_create_eventset(set);
    papif_destroy_eventset PAPIF_DESTROY_EVENTSET(set: *mut c_int) -> c_int
        = PAPI_destroy_eventset(set);
    papif_list_events PAPIF_LIST_EVENTS(set: *const c_int, events: *mut c_int, number: *mut c_int) -> c_int
        = PAPI_list_events(of(set), events, number);
    papif_num_events PAPIF_NUM_EVENTS(set: *const c_int) -> c_int = PAPI_num_events(of(set));
    papif_read PAPIF_READ(set: *const c_int, values: *mut c_longlong) -> c_int
        = PAPI_read(of(set), values);
    papif_read_ts PAPIF_READ_TS(set: *const c_int, values: *mut c_longlong, cycles: *mut c_longlong) -> c_int
        = PAPI_read_ts(of(set), values, cycles);
    papif_remove_event PAPIF_REMOVE_EVENT(set: *const c_int, event: *const c_int) -> c_int
        = PAPI_remove_event(of(set), of(event));
    papif_remove_events PAPIF_REMOVE_EVENTS(set: *const c_int, events: *mut c_int, number: *const c_int) -> c_int
        = PAPI_remove_events(of(set), events, of(number));
    papif_remove_named_event PAPIF_REMOVE_NAMED_EVENT(set: *const c_int, name: *const c_char) -> c_int
        = PAPI_remove_named_event(of(set), text(name, length).as_ptr()), with length;
    papif_reset PAPIF_RESET(set: *const c_int) -> c_int = PAPI_reset(of(set));
    papif_start PAPIF_START(set: *const c_int) -> c_int = PAPI_start(of(set));
    papif_state PAPIF_STATE(set: *const c_int, state: *mut c_int) -> c_int
        = PAPI_state(of(set), state);
    papif_stop PAPIF_STOP(set: *const c_int, values: *mut c_longlong) -> c_int
        = PAPI_stop(of(set), values);
    papif_write PAPIF_WRITE(set: *const c_int, values: *mut c_longlong) -> c_int
        = PAPI_write(of(set), values);
    papif_get_multiplex PAPIF_GET_MULTIPLEX(set: *const c_int) -> c_int = PAPI_get_multiplex(of(set));
    papif_set_multiplex PAPIF_SET_MULTIPLEX(set: *const c_int) -> c_int = PAPI_set_multiplex(of(set));
    papif_multiplex_init PAPIF_MULTIPLEX_INIT() -> c_int = PAPI_multiplex_init();

    papif_enum_event PAPIF_ENUM_EVENT(event: *mut c_int, modifier: *const c_int) -> c_int
        = PAPI_enum_event(event, of(modifier));
    papif_event_name_to_code PAPIF_EVENT_NAME_TO_CODE(name: *const c_char, event: *mut c_int) -> c_int
        = PAPI_event_name_to_code(text(name, length).as_ptr(), event), with length;
    papif_query_event PAPIF_QUERY_EVENT(event: *const c_int) -> c_int = PAPI_query_event(of(event));
    papif_query_named_event PAPIF_QUERY_NAMED_EVENT(name: *const c_char) -> c_int
        = PAPI_query_named_event(text(name, length).as_ptr()), with length;

    papif_get_real_cyc PAPIF_GET_REAL_CYC() -> c_longlong = PAPI_get_real_cyc();
    papif_get_real_nsec PAPIF_GET_REAL_NSEC() -> c_longlong = PAPI_get_real_nsec();
    papif_get_real_usec PAPIF_GET_REAL_USEC() -> c_longlong = PAPI_get_real_usec();
    papif_get_virt_cyc PAPIF_GET_VIRT_CYC() -> c_longlong = PAPI_get_virt_cyc();
    papif_get_virt_usec PAPIF_GET_VIRT_USEC() -> c_longlong = PAPI_get_virt_usec();

    papif_get_clockrate PAPIF_GET_CLOCKRATE() -> c_int = PAPI_get_opt(CLOCKRATE, null_mut());
    papif_get_dmem_info PAPIF_GET_DMEM_INFO(numbers: *mut c_longlong) -> c_int
        = PAPI_get_dmem_info(numbers.cast());
    papif_num_cmp_hwctrs PAPIF_num_cmp_hwctrs(component: *const c_int) -> c_int
        = PAPI_num_cmp_hwctrs(of(component));
    papif_num_hwctrs PAPIF_num_hwctrs() -> c_int = PAPI_num_hwctrs();
    papif_is_initialized PAPIF_IS_INITIALIZED() -> c_int = PAPI_is_initialized();
    papif_lock PAPIF_LOCK(number: *const c_int) -> c_int = PAPI_lock(of(number));
    papif_unlock PAPIF_unlock(number: *const c_int) -> c_int = PAPI_unlock(of(number));
    papif_register_thread PAPIF_REGISTER_THREAD() -> c_int = PAPI_register_thread();
    papif_unregister_thread PAPIF_UNREGISTER_THREAD() -> c_int = PAPI_unregister_thread();
    papif_unregster_thread PAPIF_UNREGSTER_THREAD() -> c_int = PAPI_unregister_thread();
    papif_thread_id PAPIF_THREAD_ID() -> c_ulong = PAPI_thread_id();
    papif_thread_init PAPIF_THREAD_INIT(function: Option<IdFunction>) -> c_int
        = PAPI_thread_init(function);

    papif_set_cmp_domain PAPIF_SET_CMP_DOMAIN(domain: *const c_int, component: *const c_int) -> c_int
        = PAPI_set_cmp_domain(of(domain), of(component));
    papif_set_cmp_granularity PAPIF_SET_CMP_GRANULARITY(granularity: *const c_int, component: *const c_int) -> c_int
        = PAPI_set_cmp_granularity(of(granularity), of(component));
    papif_set_debug PAPIF_SET_DEBUG(level: *const c_int) -> c_int = PAPI_set_debug(of(level));
    papif_set_domain PAPIF_SET_DOMAIN(domain: *const c_int) -> c_int = PAPI_set_domain(of(domain));
    papif_set_event_domain PAPIF_SET_EVENT_DOMAIN(set: *const c_int, domain: *const c_int) -> c_int
        = PAPI_set_opt(DOMAIN, &mut PapiOption { scope: scope_of(of(set), of(domain)) });
    papif_set_granularity PAPIF_SET_GRANULARITY(granularity: *const c_int) -> c_int
        = PAPI_set_granularity(of(granularity));
    // It names no event set, so that there is none to set it for.
    papif_set_inherit PAPIF_SET_INHERIT(inherit: *const c_int) -> c_int
        = PAPI_set_opt(INHERIT, &mut PapiOption { inherit: InheritOption { eventset: NULL, inherit: of(inherit) } });
    papif_get_domain PAPIF_GET_DOMAIN(set: *const c_int, domain: *mut c_int, mode: *const c_int) -> c_int
        = get_scope(of(set), domain, of(mode), [DEFDOM, DOMAIN]);
    papif_get_granularity PAPIF_GET_GRANULARITY(set: *const c_int, granularity: *mut c_int, mode: *const c_int) -> c_int
        = get_scope(of(set), granularity, of(mode), [DEFGRN, GRANUL]);

    papif_ipc PAPIF_IPC(real: *mut c_float, of_thread: *mut c_float, instructions: *mut c_longlong, rate: *mut c_float)
        -> c_int = PAPI_ipc(real, of_thread, instructions, rate);
    // The event of these three is passed by value, as in PAPI.
    papif_epc PAPIF_EPC(
        event: c_int, real: *mut c_float, of_thread: *mut c_float, reference: *mut c_longlong, cycles: *mut c_longlong,
        events: *mut c_longlong, rate: *mut c_float
    ) -> c_int = PAPI_epc(event, real, of_thread, reference, cycles, events, rate);
    papif_flips_rate PAPIF_FLIPS_RATE(
        event: c_int, real: *mut c_float, of_thread: *mut c_float, events: *mut c_longlong, rate: *mut c_float
    ) -> c_int = PAPI_flips_rate(event, real, of_thread, events, rate);
    papif_flops_rate PAPIF_FLOPS_RATE(
        event: c_int, real: *mut c_float, of_thread: *mut c_float, events: *mut c_longlong, rate: *mut c_float
    ) -> c_int = PAPI_flops_rate(event, real, of_thread, events, rate);
    papif_rate_stop PAPIF_RATE_STOP() -> c_int = PAPI_rate_stop();

    papif_hl_read PAPIF_HL_READ(region: *const c_char) -> c_int
        = PAPI_hl_read(text(region, length).as_ptr()), with length;
    papif_hl_region_begin PAPIF_HL_REGION_BEGIN(region: *const c_char) -> c_int
        = PAPI_hl_region_begin(text(region, length).as_ptr()), with length;
    papif_hl_region_end PAPIF_HL_REGION_END(region: *const c_char) -> c_int
        = PAPI_hl_region_end(text(region, length).as_ptr()), with length;
    papif_hl_stop PAPIF_HL_STOP() -> c_int = PAPI_hl_stop();

    papif_event_code_to_name PAPIF_EVENT_CODE_TO_NAME(event: *const c_int, name: *mut c_char) -> c_int = {
        let mut found = [0; MAX_STR_LEN];
        let code = PAPI_event_code_to_name(of(event), found.as_mut_ptr());
        fill(name, length, found.as_ptr());
        code
    }, with length;
    papif_get_preload PAPIF_GET_PRELOAD(variable: *mut c_char) -> c_int = {
        fill(variable, length, c"LD_PRELOAD".as_ptr());
        OK
    }, with length;
    papif_enum_dev_type PAPIF_ENUM_DEV_TYPE(modifier: *const c_int, index: *mut c_int) -> c_int = {
        let mut device = null_mut();
        let code = PAPI_enum_dev_type(of(modifier), &mut device);
        DEVICE.store(device, Ordering::Relaxed);
        put(index, 0);
        code
    };
    papif_get_dev_type_attr PAPIF_GET_DEV_TYPE_ATTR(
        index: *mut c_int, attribute: *const c_int, value: *mut c_int, name: *mut c_char
    ) -> c_int = {
        put(index, 0);
        let attribute = of(attribute);
        attribute_of([2, 4].contains(&attribute), value, name, length, |device, value| {
            PAPI_get_dev_type_attr(device, attribute, value)
        })
    }, with length;
    papif_get_dev_attr PAPIF_GET_DEV_ATTR(
        index: *mut c_int, id: *const c_int, attribute: *const c_int, value: *mut c_int, name: *mut c_char
    ) -> c_int = {
        put(index, 0);
        let attribute = of(attribute);
        attribute_of(attribute == 0, value, name, length, |device, value| {
            PAPI_get_dev_attr(device, of(id), attribute, value)
        })
    }, with length;
}

/// The device that was enumerated last.
static DEVICE: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// Asks for an attribute of the device: a text or a number.
fn attribute_of(
    is_text: bool,
    value: *mut c_int,
    name: *mut c_char,
    length: c_int,
    ask: impl FnOnce(*mut c_void, *mut c_void) -> c_int,
) -> c_int {
    let device = DEVICE.load(Ordering::Relaxed);
    if !is_text {
        return ask(device, value.cast());
    }
    let mut found: *const c_char = std::ptr::null();
    let code = ask(device, (&raw mut found).cast());
    fill(name, length, found);
    code
}

fn scope_of(eventset: c_int, scope: c_int) -> ScopeOption {
    ScopeOption {
        def_cidx: 0,
        eventset,
        scope,
    }
}

/// Gets a domain or granularity: the default or that of a set, as `mode` says.
fn get_scope(set: c_int, value: *mut c_int, mode: c_int, [default, own]: [c_int; 2]) -> c_int {
    if mode == default {
        put(value, PAPI_get_opt(mode, null_mut()));
        return OK;
    }
    if mode != own {
        return EINVAL.number();
    }
    let mut option = PapiOption {
        scope: scope_of(set, 0),
    };
    let code = PAPI_get_opt(mode, &mut option);
    if code == OK {
        // SAFETY: the member that the option is of.
        put(value, unsafe { option.scope.scope });
    }
    code
}

spelled! {
    papif_library_init PAPIF_LIBRARY_INIT(version: *mut c_int) {
        put(version, PAPI_library_init(of(version)));
    }
    papif_shutdown PAPIF_SHUTDOWN() {
        PAPI_shutdown();
    }
    papif_perror PAPIF_PERROR(message: *const c_char, length: c_int) {
        PAPI_perror(text(message, length).as_ptr());
    }
    papif_get_event_info PAPIF_GET_EVENT_INFO(
        event: *const c_int, symbol: *mut c_char, long: *mut c_char, short: *mut c_char, count: *mut c_int,
        note: *mut c_char, _flags: *mut c_int, out: *mut c_int,
        symbol_length: c_int, long_length: c_int, short_length: c_int, note_length: c_int
    ) {
        let mut info = EventInfo::zeroed();
        let code = PAPI_get_event_info(of(event), &mut info);
        put(out, code);
        if code == OK {
            fill(symbol, symbol_length, info.symbol.as_ptr());
            fill(long, long_length, info.long_descr.as_ptr());
            fill(short, short_length, info.short_descr.as_ptr());
            fill(note, note_length, info.note.as_ptr());
            put(count, info.count.cast_signed());
        }
    }
    papif_get_exe_info PAPIF_GET_EXE_INFO(
        path: *mut c_char, name: *mut c_char, text_start: *mut c_longlong, text_end: *mut c_longlong,
        data_start: *mut c_longlong, data_end: *mut c_longlong, bss_start: *mut c_longlong, bss_end: *mut c_longlong,
        out: *mut c_int, path_length: c_int, name_length: c_int
    ) {
        let mut option = PapiOption { exe_info: std::ptr::null() };
        let code = PAPI_get_opt(EXEINFO, &mut option);
        put(out, code);
        if code != OK {
            return;
        }
        // SAFETY: the member that the option is of, which points to the library's own, as long as the process lives.
        let info = unsafe { &*option.exe_info };
        let map = &info.address_info;
        fill(path, path_length, info.fullname.as_ptr());
        fill(name, name_length, map.name.as_ptr());
        put(text_start, map.text_start as c_longlong);
        put(text_end, map.text_end as c_longlong);
        put(data_start, map.data_start as c_longlong);
        put(data_end, map.data_end as c_longlong);
        put(bss_start, map.bss_start as c_longlong);
        put(bss_end, map.bss_end as c_longlong);
    }
    papif_get_hardware_info PAPIF_GET_HARDWARE_INFO(
        ncpu: *mut c_int, nnodes: *mut c_int, totalcpus: *mut c_int, vendor: *mut c_int, vendor_name: *mut c_char,
        model: *mut c_int, model_name: *mut c_char, revision: *mut c_float, mhz: *mut c_float,
        vendor_length: c_int, model_length: c_int
    ) {
        // SAFETY: null, or the library's own, which lives as long as the process.
        if let Some(info) = unsafe { PAPI_get_hardware_info().as_ref() } {
            put(ncpu, info.ncpu);
            put(nnodes, info.nnodes);
            put(totalcpus, info.totalcpus);
            put(vendor, info.vendor);
            fill(vendor_name, vendor_length, info.vendor_string.as_ptr());
            put(model, info.model);
            fill(model_name, model_length, info.model_string.as_ptr());
            put(revision, info.revision);
            put(mhz, info.cpu_max_mhz as c_float);
        }
    }
}
