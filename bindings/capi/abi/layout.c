/*
 * The binary interface: what may not change without a new soname. Fields that are added to a struct that
 * begins with its size go to its end, and only its size here changes.
 */
#include <quipu.h>

#define SIZE(type, size) _Static_assert(sizeof(type) == (size), "the size of " #type)
#define FIELD(type, field, at) _Static_assert(offsetof(type, field) == (at), #type "." #field)
#define VALUE(name, number) _Static_assert((name) == (number), "the value of " #name)

/* Sizes and offsets are those of systems with 64-bit pointers. */
_Static_assert(sizeof(void *) == 8, "a 64-bit system");

SIZE(quipu_error, 56);
FIELD(quipu_error, size, 0);
FIELD(quipu_error, status, 8);
FIELD(quipu_error, os_errno, 12);
FIELD(quipu_error, member, 16);
FIELD(quipu_error, message, 24);
FIELD(quipu_error, attempted, 32);
FIELD(quipu_error, reason, 40);
FIELD(quipu_error, hint, 48);

SIZE(quipu_backend_info, 64);
FIELD(quipu_backend_info, size, 0);
FIELD(quipu_backend_info, name, 8);
FIELD(quipu_backend_info, status, 16);
FIELD(quipu_backend_info, on_request, 20);
FIELD(quipu_backend_info, message, 24);
FIELD(quipu_backend_info, hint, 32);
FIELD(quipu_backend_info, targets, 40);
FIELD(quipu_backend_info, features, 44);
FIELD(quipu_backend_info, filters, 48);
FIELD(quipu_backend_info, simultaneity, 52);
FIELD(quipu_backend_info, counters, 56);
FIELD(quipu_backend_info, counting_counters, 60);

SIZE(quipu_config, 72);
FIELD(quipu_config, size, 0);
FIELD(quipu_config, target, 8);
FIELD(quipu_config, flags, 12);
FIELD(quipu_config, id, 16);
FIELD(quipu_config, cpu_count, 20);
FIELD(quipu_config, cpus, 24);
FIELD(quipu_config, cgroup, 32);
FIELD(quipu_config, backends, 40);
FIELD(quipu_config, events_file, 48);
FIELD(quipu_config, cpu_model, 56);
FIELD(quipu_config, sim, 64);

SIZE(quipu_spread, 24);
FIELD(quipu_spread, lowest, 0);
FIELD(quipu_spread, median, 8);
FIELD(quipu_spread, highest, 16);

SIZE(quipu_overhead, 56);
FIELD(quipu_overhead, start_to_stop, 0);
FIELD(quipu_overhead, read_to_read, 24);
FIELD(quipu_overhead, status, 48);
FIELD(quipu_overhead, reserved, 52);

SIZE(quipu_event_info, 88);
FIELD(quipu_event_info, size, 0);
FIELD(quipu_event_info, status, 8);
FIELD(quipu_event_info, flags, 12);
FIELD(quipu_event_info, name, 16);
FIELD(quipu_event_info, opened_as, 24);
FIELD(quipu_event_info, backend, 32);
FIELD(quipu_event_info, unit, 40);
FIELD(quipu_event_info, errata, 48);
FIELD(quipu_event_info, scale, 56);
FIELD(quipu_event_info, group, 64);
FIELD(quipu_event_info, simultaneity, 68);
FIELD(quipu_event_info, readings, 72);
FIELD(quipu_event_info, first_reading, 80);

SIZE(quipu_part_info, 32);
FIELD(quipu_part_info, size, 0);
FIELD(quipu_part_info, cpu, 8);
FIELD(quipu_part_info, thread, 12);
FIELD(quipu_part_info, core, 16);
FIELD(quipu_part_info, term, 24);

SIZE(quipu_count, 40);
FIELD(quipu_count, value, 0);
FIELD(quipu_count, time_enabled, 8);
FIELD(quipu_count, time_running, 16);
FIELD(quipu_count, state, 24);
FIELD(quipu_count, flags, 28);
FIELD(quipu_count, missing, 32);
FIELD(quipu_count, status, 36);

SIZE(quipu_reading, 40);
FIELD(quipu_reading, value, 0);
FIELD(quipu_reading, time_enabled, 8);
FIELD(quipu_reading, time_running, 16);
FIELD(quipu_reading, status, 24);
FIELD(quipu_reading, flags, 28);
FIELD(quipu_reading, max_rate, 32);

SIZE(quipu_sampling, 40);
FIELD(quipu_sampling, size, 0);
FIELD(quipu_sampling, period, 8);
FIELD(quipu_sampling, frequency, 16);
FIELD(quipu_sampling, room, 24);
FIELD(quipu_sampling, wake_after, 32);
FIELD(quipu_sampling, flags, 36);

SIZE(quipu_caller, 16);
FIELD(quipu_caller, return_address, 0);
FIELD(quipu_caller, flags, 8);
FIELD(quipu_caller, reserved, 12);

SIZE(quipu_sample, 80);
FIELD(quipu_sample, size, 0);
FIELD(quipu_sample, ip, 8);
FIELD(quipu_sample, time, 16);
FIELD(quipu_sample, period, 24);
FIELD(quipu_sample, address, 32);
FIELD(quipu_sample, callers, 40);
FIELD(quipu_sample, caller_count, 48);
FIELD(quipu_sample, event, 56);
FIELD(quipu_sample, cpu, 60);
FIELD(quipu_sample, pid, 64);
FIELD(quipu_sample, tid, 68);
FIELD(quipu_sample, flags, 72);
FIELD(quipu_sample, reserved, 76);

SIZE(quipu_cpu_info, 88);
FIELD(quipu_cpu_info, size, 0);
FIELD(quipu_cpu_info, id, 8);
FIELD(quipu_cpu_info, name, 16);
FIELD(quipu_cpu_info, vendor, 24);
FIELD(quipu_cpu_info, core_type, 32);
FIELD(quipu_cpu_info, source, 40);
FIELD(quipu_cpu_info, midr, 48);
FIELD(quipu_cpu_info, family, 56);
FIELD(quipu_cpu_info, model, 60);
FIELD(quipu_cpu_info, stepping, 64);
FIELD(quipu_cpu_info, scheme, 68);
FIELD(quipu_cpu_info, general_counters, 72);
FIELD(quipu_cpu_info, general_width, 76);
FIELD(quipu_cpu_info, fixed_counters, 80);
FIELD(quipu_cpu_info, fixed_width, 84);

SIZE(quipu_name_info, 136);
FIELD(quipu_name_info, size, 0);
FIELD(quipu_name_info, name, 8);
FIELD(quipu_name_info, event, 16);
FIELD(quipu_name_info, mask, 24);
FIELD(quipu_name_info, description, 32);
FIELD(quipu_name_info, unit, 40);
FIELD(quipu_name_info, stands_for, 48);
FIELD(quipu_name_info, reason, 56);
FIELD(quipu_name_info, instead, 64);
FIELD(quipu_name_info, errata, 72);
FIELD(quipu_name_info, flags, 80);
FIELD(quipu_name_info, code, 84);
FIELD(quipu_name_info, unit_mask, 88);
FIELD(quipu_name_info, counter_mask, 92);
FIELD(quipu_name_info, general_counters, 96);
FIELD(quipu_name_info, fixed_counters, 104);
FIELD(quipu_name_info, extra_value, 112);
FIELD(quipu_name_info, extra_register, 120);
FIELD(quipu_name_info, second_mask, 124);
FIELD(quipu_name_info, mask_group, 128);
FIELD(quipu_name_info, reserved, 132);

SIZE(quipu_encoding, 80);
FIELD(quipu_encoding, size, 0);
FIELD(quipu_encoding, form, 8);
FIELD(quipu_encoding, type, 12);
FIELD(quipu_encoding, config, 16);
FIELD(quipu_encoding, config1, 24);
FIELD(quipu_encoding, config2, 32);
FIELD(quipu_encoding, config3, 40);
FIELD(quipu_encoding, extra_value, 48);
FIELD(quipu_encoding, extra_register, 56);
FIELD(quipu_encoding, bp_type, 60);
FIELD(quipu_encoding, general_counters, 64);
FIELD(quipu_encoding, fixed_counters, 72);

SIZE(quipu_sim_phase, 24);
FIELD(quipu_sim_phase, duration, 0);
FIELD(quipu_sim_phase, user, 8);
FIELD(quipu_sim_phase, kernel, 16);

SIZE(quipu_sim_event, 40);
FIELD(quipu_sim_event, name, 0);
FIELD(quipu_sim_event, also, 8);
FIELD(quipu_sim_event, counters, 16);
FIELD(quipu_sim_event, phases, 24);
FIELD(quipu_sim_event, phase_count, 32);

SIZE(quipu_sim_config, 32);
FIELD(quipu_sim_config, size, 0);
FIELD(quipu_sim_config, cpus, 8);
FIELD(quipu_sim_config, counters, 12);
FIELD(quipu_sim_config, width, 16);
FIELD(quipu_sim_config, event_count, 20);
FIELD(quipu_sim_config, events, 24);

SIZE(quipu_status, 4);
VALUE(QUIPU_OK, 0);
VALUE(QUIPU_EEVENT, -1);
VALUE(QUIPU_EFEATURE, -2);
VALUE(QUIPU_EPERM, -3);
VALUE(QUIPU_ETARGET, -4);
VALUE(QUIPU_EDEVICE, -5);
VALUE(QUIPU_ETOOMANY, -6);
VALUE(QUIPU_EBUSY, -7);
VALUE(QUIPU_EINVAL, -8);
VALUE(QUIPU_ESTATE, -9);
VALUE(QUIPU_ETHREAD, -10);
VALUE(QUIPU_EINTERFERENCE, -11);
VALUE(QUIPU_EOS, -12);
VALUE(QUIPU_EHANDLE, -13);
VALUE(QUIPU_EINUSE, -14);
VALUE(QUIPU_EBUG, -15);
VALUE(QUIPU_EJUMP, -16);

SIZE(quipu_target, 4);
VALUE(QUIPU_THIS_THREAD, 0);
VALUE(QUIPU_THREAD, 1);
VALUE(QUIPU_PROCESS, 2);
VALUE(QUIPU_THIS_CPU, 3);
VALUE(QUIPU_CPU, 4);
VALUE(QUIPU_CPUS, 5);
VALUE(QUIPU_ALL_CPUS, 6);
VALUE(QUIPU_CGROUP, 7);

SIZE(quipu_set_flag, 4);
VALUE(QUIPU_INHERIT, 1);
VALUE(QUIPU_PINNED, 2);
VALUE(QUIPU_EXCLUSIVE, 4);
VALUE(QUIPU_ENABLE_ON_EXEC, 8);
VALUE(QUIPU_USER_FALLBACK, 16);
VALUE(QUIPU_INHERIT_THREAD, 32);
VALUE(QUIPU_REMOVE_ON_EXEC, 64);
VALUE(QUIPU_ALLOW_MSR, 128);

SIZE(quipu_event_flag, 4);
VALUE(QUIPU_EVENT_USER_ONLY, 1);
VALUE(QUIPU_EVENT_GAUGE, 2);
VALUE(QUIPU_EVENT_PRESET, 4);
VALUE(QUIPU_EVENT_USER_READ, 8);

SIZE(quipu_simultaneity, 4);
VALUE(QUIPU_UNRELATED, 0);
VALUE(QUIPU_SEQUENTIAL, 1);
VALUE(QUIPU_ATOMIC, 2);

SIZE(quipu_state, 4);
VALUE(QUIPU_NOT_READ, 0);
VALUE(QUIPU_EXACT, 1);
VALUE(QUIPU_ESTIMATED, 2);
VALUE(QUIPU_PARTIAL, 3);
VALUE(QUIPU_NOT_COUNTED, 4);
VALUE(QUIPU_AT_LEAST, 5);

SIZE(quipu_count_flag, 4);
VALUE(QUIPU_COUNT_ESTIMATE, 1);
VALUE(QUIPU_COUNT_SATURATED, 2);

SIZE(quipu_reading_flag, 4);
VALUE(QUIPU_READING_AT_LEAST, 1);

SIZE(quipu_sampling_flag, 4);
VALUE(QUIPU_CALL_CHAINS, 1);
VALUE(QUIPU_ADDRESSES, 2);

SIZE(quipu_sample_flag, 4);
VALUE(QUIPU_SAMPLE_IN_KERNEL, 1);
VALUE(QUIPU_SAMPLE_HAS_ADDRESS, 2);

SIZE(quipu_target_kind, 4);
VALUE(QUIPU_ON_THIS_THREAD, 1);
VALUE(QUIPU_ON_THREAD, 2);
VALUE(QUIPU_ON_PROCESS, 4);
VALUE(QUIPU_ON_THIS_CPU, 8);
VALUE(QUIPU_ON_CPU, 16);
VALUE(QUIPU_ON_ALL_CPUS, 32);
VALUE(QUIPU_ON_CGROUP, 64);

SIZE(quipu_feature, 4);
VALUE(QUIPU_CAN_INHERIT, 1);
VALUE(QUIPU_CAN_PIN, 2);
VALUE(QUIPU_CAN_EXCLUDE, 4);
VALUE(QUIPU_CAN_ENABLE_ON_EXEC, 8);
VALUE(QUIPU_CAN_MULTIPLEX, 16);
VALUE(QUIPU_HAS_HARDWARE_EVENTS, 32);
VALUE(QUIPU_HAS_SOFTWARE_EVENTS, 64);
VALUE(QUIPU_HAS_BREAKPOINTS, 128);
VALUE(QUIPU_HAS_TRACEPOINTS, 256);
VALUE(QUIPU_HAS_NAMED_PMUS, 512);
VALUE(QUIPU_HAS_ANY_THREAD, 1024);
VALUE(QUIPU_CAN_INHERIT_THREAD, 4096);
VALUE(QUIPU_CAN_REMOVE_ON_EXEC, 8192);

SIZE(quipu_filter, 4);
VALUE(QUIPU_IN_USER, 1);
VALUE(QUIPU_IN_KERNEL, 2);
VALUE(QUIPU_IN_HYPERVISOR, 4);
VALUE(QUIPU_IN_IDLE, 8);
VALUE(QUIPU_IN_HOST, 16);
VALUE(QUIPU_IN_GUEST, 32);

SIZE(quipu_scheme, 4);
VALUE(QUIPU_SCHEME_OTHER, 0);
VALUE(QUIPU_SCHEME_P5, 1);
VALUE(QUIPU_SCHEME_P6, 2);
VALUE(QUIPU_SCHEME_INTEL, 3);
VALUE(QUIPU_SCHEME_AMD_K7, 4);
VALUE(QUIPU_SCHEME_AMD_10H, 5);
VALUE(QUIPU_SCHEME_ARMV8, 6);

SIZE(quipu_event_kind, 4);
VALUE(QUIPU_NATIVE, 0);
VALUE(QUIPU_GENERALIZED, 1);
VALUE(QUIPU_PRESET, 2);

SIZE(quipu_name_flag, 4);
VALUE(QUIPU_NEEDS_MASK, 1);
VALUE(QUIPU_DEFAULT_MASK, 2);
VALUE(QUIPU_DEPRECATED, 4);
VALUE(QUIPU_SOFTWARE, 8);
VALUE(QUIPU_MASK_COMBINES, 16);
VALUE(QUIPU_EDGE, 32);
VALUE(QUIPU_INVERT, 64);
VALUE(QUIPU_ANY_THREAD, 128);
VALUE(QUIPU_IN_TX, 256);
VALUE(QUIPU_IN_TX_CHECKPOINTED, 512);
VALUE(QUIPU_EQUAL, 1024);
VALUE(QUIPU_CLOCKS, 2048);

SIZE(quipu_interface, 4);
VALUE(QUIPU_FOR_LINUX, 0);
VALUE(QUIPU_FOR_PCTR, 1);
VALUE(QUIPU_FOR_MSR, 2);

SIZE(quipu_encoding_form, 4);
VALUE(QUIPU_PERF, 1);
VALUE(QUIPU_X86_SELECT, 2);
VALUE(QUIPU_P5_FUNCTION, 3);
VALUE(QUIPU_FIXED_COUNTER, 4);
VALUE(QUIPU_ARMV8_EVENT, 5);

SIZE(quipu_region_format, 4);
VALUE(QUIPU_REGION_TABLE, 0);
VALUE(QUIPU_REGION_JSON, 1);
VALUE(QUIPU_REGION_CSV, 2);
VALUE(QUIPU_REGION_OFF, 0xffffffff);

int main(void)
{
    return 0;
}
