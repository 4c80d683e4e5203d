/* Event sets: states, values, options, names and enumeration, with page faults as the event that is exact. */
#include "check.h"
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void values_are_exact(void)
{
    int set = PAPI_NULL, state = 0, number = 0, codes[4];
    long long values[2] = {-1, -1};
    CHECK(PAPI_create_eventset(&set), PAPI_OK);
    CHECK(PAPI_create_eventset(&set), PAPI_EINVAL);
    CHECK(PAPI_get_eventset_component(set), PAPI_ENOCMP);
    CHECK(PAPI_start(set), PAPI_ENOCMP);
    CHECK(PAPI_add_named_event(set, "perf::PAGE-FAULTS"), PAPI_OK);
    CHECK(PAPI_add_named_event(set, "perf::page-faults"), PAPI_ECNFLCT);
    CHECK(PAPI_add_named_event(set, "minor-faults"), PAPI_OK);
    CHECK(PAPI_get_eventset_component(set), 0);
    CHECK(PAPI_num_events(set), 2);
    number = 4;
    CHECK(PAPI_list_events(set, codes, &number), PAPI_OK);
    CHECK(number, 2);
    CHECK(codes[1], code_of("minor-faults"));
    CHECK(PAPI_read(set, values), PAPI_OK);
    CHECK(values[0], 0);
    CHECK(PAPI_stop(set, values), PAPI_ENOTRUN);
    CHECK(PAPI_start(set), PAPI_OK);
    CHECK(PAPI_start(set), PAPI_EISRUN);
    CHECK(PAPI_state(set, &state), PAPI_OK);
    CHECK(state, PAPI_RUNNING);
    CHECK(PAPI_add_named_event(set, "perf::TASK-CLOCK"), PAPI_EISRUN);
    CHECK(PAPI_remove_event(set, codes[0]), PAPI_EISRUN);
    CHECK(PAPI_cleanup_eventset(set), PAPI_EISRUN);
    CHECK(PAPI_write(set, values), PAPI_ENOSUPP);
    CHECK(PAPI_reset(set), PAPI_OK);
    fault(100);
    CHECK(PAPI_read(set, values), PAPI_OK);
    CHECK(values[0], 100);
    values[0] = 1000;
    CHECK(PAPI_accum(set, values), PAPI_OK);
    CHECK(values[0], 1100);
    CHECK(PAPI_read(set, values), PAPI_OK);
    CHECK(values[0], 0);
    fault(7);
    CHECK(PAPI_stop(set, values), PAPI_OK);
    CHECK(values[0], 7);
    CHECK(values[1], 7);
    fault(3);
    values[0] = 0;
    CHECK(PAPI_read(set, values), PAPI_OK);
    CHECK(values[0], 7);
    CHECK(PAPI_reset(set), PAPI_OK);
    CHECK(PAPI_read(set, values), PAPI_OK);
    CHECK(values[0], 0);
    CHECK(PAPI_start(set), PAPI_OK);
    CHECK(PAPI_stop(set, NULL), PAPI_OK);
    CHECK(PAPI_destroy_eventset(&set), PAPI_EINVAL);
    CHECK(PAPI_remove_event(set, codes[0]), PAPI_OK);
    CHECK(PAPI_remove_event(set, codes[0]), PAPI_EINVAL);
    CHECK(PAPI_cleanup_eventset(set), PAPI_OK);
    CHECK(PAPI_destroy_eventset(&set), PAPI_OK);
    CHECK(set, PAPI_NULL);
}

/* Events that are added in one call: up to the first that cannot be, how many they are. */
static void several_are_added_at_once(void)
{
    int set = PAPI_NULL, number = 5, listed[5];
    long long values[3] = {0};
    CHECK(PAPI_create_eventset(&set), PAPI_OK);
    int faults = code_of("perf::PAGE-FAULTS"), minor = code_of("minor-faults"), clock = code_of("perf::TASK-CLOCK");
    int codes[5] = {faults, minor, faults, clock, PAPI_NATIVE_MASK | 0xffff};
    CHECK(PAPI_add_events(set, codes + 4, 1), PAPI_ENOCMP);
    CHECK(PAPI_num_events(set), 0);
    /* What follows an event that is refused is not looked at. */
    CHECK(PAPI_add_events(set, codes, 1 << 30), 2);
    CHECK(PAPI_add_events(set, codes, 5), PAPI_ECNFLCT);
    CHECK(PAPI_num_events(set), 2);
    CHECK(PAPI_add_events(set, codes + 3, 2), 1);
    CHECK(PAPI_list_events(set, listed, &number), PAPI_OK);
    CHECK(number == 3 && listed[0] == faults && listed[1] == minor && listed[2] == clock, 1);
    CHECK(PAPI_start(set), PAPI_OK);
    CHECK(PAPI_add_events(set, codes + 3, 1), PAPI_EISRUN);
    fault(50);
    CHECK(PAPI_stop(set, values), PAPI_OK);
    CHECK(values[0] >= 50 && values[1] >= 50 && values[2] > 0, 1);
    CHECK(PAPI_remove_events(set, codes + 1, 2), PAPI_OK);
    CHECK(PAPI_remove_events(set, codes + 3, 1 << 30), 1);
    CHECK(PAPI_num_events(set), 0);
    CHECK(PAPI_remove_events(set, codes, 5), PAPI_EINVAL);
    CHECK(PAPI_cleanup_eventset(set), PAPI_OK);
}

static void one_set_runs_in_a_thread(void)
{
    int first = PAPI_NULL, second = PAPI_NULL, elsewhere = PAPI_NULL;
    pid_t child = fork();
    if (child == 0) {
        alarm(10);
        pause();
        _exit(0);
    }
    CHECK(PAPI_create_eventset(&first), PAPI_OK);
    CHECK(PAPI_create_eventset(&second), PAPI_OK);
    CHECK(PAPI_add_named_event(first, "perf::PAGE-FAULTS"), PAPI_OK);
    CHECK(PAPI_add_named_event(second, "perf::PAGE-FAULTS"), PAPI_OK);
    CHECK(PAPI_start(first), PAPI_OK);
    CHECK(PAPI_start(second), PAPI_EISRUN);
    /* One that counts in another process runs beside it. */
    CHECK(PAPI_create_eventset(&elsewhere), PAPI_OK);
    CHECK(PAPI_add_named_event(elsewhere, "perf::PAGE-FAULTS"), PAPI_OK);
    CHECK(PAPI_attach(elsewhere, (unsigned long)child), PAPI_OK);
    CHECK(PAPI_start(elsewhere), PAPI_OK);
    CHECK(PAPI_stop(elsewhere, NULL), PAPI_OK);
    CHECK(PAPI_stop(first, NULL), PAPI_OK);
    CHECK(PAPI_start(second), PAPI_OK);
    CHECK(PAPI_stop(second, NULL), PAPI_OK);
    CHECK(kill(child, SIGKILL), 0);
    CHECK(waitpid(child, NULL, 0) == child, 1);
}

static void options_are_kept(void)
{
    int set = PAPI_NULL;
    PAPI_option_t option;
    CHECK(PAPI_create_eventset(&set), PAPI_OK);
    CHECK(PAPI_set_multiplex(set), PAPI_ENOCMP);
    CHECK(PAPI_assign_eventset_component(set, 99), PAPI_ENOCMP);
    CHECK(PAPI_assign_eventset_component(set, 0), PAPI_OK);
    CHECK(PAPI_assign_eventset_component(set, 0), PAPI_EINVAL);
    CHECK(PAPI_get_multiplex(set), 0);
    CHECK(PAPI_set_multiplex(set), PAPI_OK);
    CHECK(PAPI_set_multiplex(set), PAPI_EINVAL);
    CHECK(PAPI_get_multiplex(set), 1);
    option.domain.eventset = set;
    option.domain.domain = PAPI_DOM_ALL;
    CHECK(PAPI_set_opt(PAPI_DOMAIN, &option), PAPI_OK);
    option.domain.domain = 0;
    CHECK(PAPI_get_opt(PAPI_DOMAIN, &option), PAPI_OK);
    CHECK(option.domain.domain, PAPI_DOM_USER | PAPI_DOM_KERNEL | PAPI_DOM_SUPERVISOR);
    option.domain.domain = 99;
    CHECK(PAPI_set_opt(PAPI_DOMAIN, &option), PAPI_EINVAL_DOM);
    CHECK(PAPI_attach(set, 0x7ffffff), PAPI_ESYS);
    CHECK(PAPI_get_opt(PAPI_LIB_VERSION, NULL), PAPI_VERSION);
    CHECK(PAPI_get_opt(PAPI_HWINFO, NULL), PAPI_EINVAL);
    CHECK(PAPI_get_opt(999, &option), PAPI_EINVAL);
    CHECK(PAPI_set_opt(PAPI_USER_EVENTS_FILE, &option), PAPI_OK);
    CHECK(PAPI_add_named_event(set, "perf::PAGE-FAULTS"), PAPI_OK);
    CHECK(PAPI_detach(set), PAPI_EINVAL);
    CHECK(PAPI_attach(set, (unsigned long)getpid()), PAPI_OK);
    CHECK(PAPI_attach(set, (unsigned long)getpid()), PAPI_EINVAL);
    long long value = 0;
    CHECK(PAPI_start(set), PAPI_OK);
    fault(20);
    CHECK(PAPI_stop(set, &value), PAPI_OK);
    CHECK(value >= 20, 1);
    CHECK(PAPI_detach(set), PAPI_OK);
}

static void names_and_codes_lead_to_each_other(void)
{
    char name[PAPI_MAX_STR_LEN];
    PAPI_event_info_t info;
    int code = PAPI_NATIVE_MASK, listed = 0;
    CHECK(PAPI_enum_cmp_event(&code, PAPI_ENUM_FIRST, 0), PAPI_OK);
    do {
        CHECK(PAPI_event_code_to_name(code, name), PAPI_OK);
        CHECK(code_of(name), code);
        CHECK(PAPI_get_event_info(code, &info), PAPI_OK);
        CHECK(strcmp(info.symbol, name), 0);
        CHECK(PAPI_get_event_component(code), 0);
        listed++;
    } while (PAPI_enum_cmp_event(&code, PAPI_ENUM_EVENTS, 0) == PAPI_OK);
    CHECK(listed, PAPI_get_component_info(0)->num_native_events);
    CHECK(PAPI_get_component_info(0)->attach, 1);
    CHECK(PAPI_get_component_info(0)->attach_must_ptrace, 1);
    CHECK(listed >= 9, 1);
    int presets = 0;
    code = PAPI_PRESET_MASK;
    CHECK(PAPI_enum_event(&code, PAPI_ENUM_FIRST), PAPI_OK);
    do {
        CHECK(PAPI_event_code_to_name(code, name), PAPI_OK);
        CHECK(code_of(name), code);
        CHECK(PAPI_get_event_info(code, &info), PAPI_OK);
        CHECK(PAPI_query_event(code), info.count ? PAPI_OK : PAPI_ENOEVNT);
        CHECK(info.long_descr[0] != 0, 1);
        presets++;
    } while (PAPI_enum_event(&code, PAPI_ENUM_EVENTS) == PAPI_OK);
    CHECK(presets, PAPI_END_idx);
    CHECK(PAPI_event_name_to_code("perf::NO_SUCH_EVENT", &code), PAPI_ENOEVNT);
    CHECK(PAPI_event_name_to_code("perf::FAULTS:u=x", &code), PAPI_ENOEVNT);
    CHECK(PAPI_event_name_to_code("perf::FAULTS:period=x", &code), PAPI_ENOEVNT);
    CHECK(PAPI_event_name_to_code("perf::FAULTS:hw_smpl=1", &code), PAPI_ENOEVNT);
    CHECK(PAPI_event_name_to_code("perf::FAULTS:pinned=2", &code), PAPI_ENOEVNT);
    const char *modified[] = {"perf::FAULTS:period=1000", "perf::FAULTS:freq=10:u", "perf::FAULTS:pinned", "perf::FAULTS:excl=1:pinned=0"};
    for (int at = 0; at < 4; at++) {
        int set = PAPI_NULL;
        long long value = 0;
        CHECK(PAPI_create_eventset(&set), PAPI_OK);
        CHECK(PAPI_add_named_event(set, modified[at]), PAPI_OK);
        CHECK(PAPI_start(set), PAPI_OK);
        fault(30);
        CHECK(PAPI_stop(set, &value), PAPI_OK);
        CHECK(value >= 30, 1);
        CHECK(PAPI_cleanup_eventset(set), PAPI_OK);
    }
    CHECK(PAPI_event_name_to_code("nothing", &code), PAPI_ENOEVNT);
    CHECK(code_of("perf_event:::perf::FAULTS:u=1") & PAPI_NATIVE_MASK, PAPI_NATIVE_MASK);
    CHECK(PAPI_event_name_to_code("peu:::perf::FAULTS", &code), PAPI_ENOEVNT);
}

/* What is behind the colon of a mask's or modifier's description is printed by PAPI's utilities. */
static void masks_are_described(void)
{
    int code = PAPI_NATIVE_MASK, mask, masks = 0;
    PAPI_event_info_t info;
    CHECK(code_of("perf::PERF_COUNT_SW_CPU_CLOCK:u=0") < 0, 0);
    CHECK(PAPI_enum_cmp_event(&code, PAPI_ENUM_FIRST, 0), PAPI_OK);
    do {
        for (mask = code; PAPI_enum_cmp_event(&mask, PAPI_NTV_ENUM_UMASKS, 0) == PAPI_OK; masks++) {
            CHECK(PAPI_get_event_info(mask, &info), PAPI_OK);
            CHECK(strstr(info.long_descr, "masks:") != NULL, 1);
        }
    } while (masks < 50 && PAPI_enum_cmp_event(&code, PAPI_ENUM_EVENTS, 0) == PAPI_OK);
    CHECK(masks >= 50, 1);
}

int main(void)
{
    CHECK(PAPI_library_init(PAPI_VERSION_NUMBER(6, 0, 0, 0)), PAPI_EINVAL);
    CHECK(PAPI_library_init(PAPI_VER_CURRENT), PAPI_VER_CURRENT);
    CHECK(PAPI_is_initialized(), PAPI_LOW_LEVEL_INITED);
    values_are_exact();
    several_are_added_at_once();
    one_set_runs_in_a_thread();
    options_are_kept();
    names_and_codes_lead_to_each_other();
    masks_are_described();
    PAPI_shutdown();
    CHECK(PAPI_is_initialized(), PAPI_NOT_INITED);
    return 0;
}
