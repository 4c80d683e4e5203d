/* Null pointers, numbers of no set, calls before initialization: PAPI's codes, and no crash. */
#include "check.h"

static void without_a_set(int set)
{
    long long values[4];
    int numbers[4] = {0};
    int none = 1;
    CHECK(PAPI_start(set), PAPI_ENOEVST);
    CHECK(PAPI_stop(set, values), PAPI_ENOEVST);
    CHECK(PAPI_read(set, values), PAPI_ENOEVST);
    CHECK(PAPI_read_ts(set, values, values), PAPI_ENOEVST);
    CHECK(PAPI_accum(set, values), PAPI_ENOEVST);
    CHECK(PAPI_write(set, values), PAPI_ENOEVST);
    CHECK(PAPI_reset(set), PAPI_ENOEVST);
    CHECK(PAPI_state(set, numbers), PAPI_ENOEVST);
    CHECK(PAPI_add_event(set, PAPI_TOT_CYC), PAPI_ENOEVST);
    CHECK(PAPI_remove_event(set, PAPI_TOT_CYC), PAPI_ENOEVST);
    CHECK(PAPI_cleanup_eventset(set), PAPI_ENOEVST);
    CHECK(PAPI_num_events(set), PAPI_ENOEVST);
    CHECK(PAPI_list_events(set, numbers, &none), PAPI_ENOEVST);
    CHECK(PAPI_get_eventset_component(set), PAPI_ENOEVST);
    CHECK(PAPI_set_multiplex(set), PAPI_ENOEVST);
    CHECK(PAPI_get_multiplex(set), 0);
    CHECK(PAPI_overflow(set, PAPI_TOT_CYC, 1, 0, NULL), PAPI_ENOEVST);
    CHECK(PAPI_profil(values, 8, NULL, 65536, set, PAPI_TOT_CYC, 1, 0), PAPI_ENOEVST);
    CHECK(PAPI_destroy_eventset(&set), PAPI_ENOEVST);
}

int main(void)
{
    int set = PAPI_NULL, code = 0;
    char name[PAPI_MAX_STR_LEN];
    PAPI_event_info_t info;
    PAPI_option_t option;
    CHECK(PAPI_create_eventset(&set), PAPI_ENOINIT);
    CHECK(PAPI_event_name_to_code("PAPI_TOT_CYC", &code), PAPI_ENOINIT);
    CHECK(PAPI_register_thread(), PAPI_ENOINIT);
    CHECK(PAPI_thread_init(NULL), PAPI_ENOINIT);
    CHECK(PAPI_get_opt(PAPI_HWINFO, &option), PAPI_ENOINIT);
    CHECK(PAPI_set_opt(PAPI_MULTIPLEX, &option), PAPI_ENOINIT);
    CHECK(PAPI_set_thr_specific(PAPI_USR1_TLS, &set), PAPI_ENOINIT);
    without_a_set(0);
    PAPI_shutdown();
    CHECK(PAPI_disable_component(99), PAPI_ENOCMP);
    CHECK(PAPI_library_init(0), PAPI_EINVAL);
    CHECK(PAPI_library_init(PAPI_VER_CURRENT), PAPI_VER_CURRENT);
    CHECK(PAPI_library_init(PAPI_VER_CURRENT), PAPI_VER_CURRENT);
    CHECK(PAPI_disable_component(0), PAPI_ENOINIT);
    without_a_set(-1);
    without_a_set(0);
    without_a_set(1 << 30);
    CHECK(PAPI_create_eventset(NULL), PAPI_EINVAL);
    CHECK(PAPI_destroy_eventset(NULL), PAPI_EINVAL);
    CHECK(PAPI_create_eventset(&set), PAPI_OK);
    CHECK(PAPI_add_event(set, 0), PAPI_EINVAL);
    CHECK(PAPI_add_event(set, PAPI_NATIVE_MASK | 0xffff), PAPI_ENOCMP);
    CHECK(PAPI_add_event(set, PAPI_PRESET_MASK | 0x7f), PAPI_ENOEVNT);
    CHECK(PAPI_add_named_event(set, NULL), PAPI_EINVAL);
    CHECK(PAPI_add_named_event(set, "perf::PAGE-FAULTS"), PAPI_OK);
    CHECK(PAPI_add_events(set, NULL, 1), PAPI_EINVAL);
    CHECK(PAPI_add_events(set, &code, 0), PAPI_EINVAL);
    CHECK(PAPI_list_events(set, &code, NULL), PAPI_EINVAL);
    CHECK(PAPI_state(set, NULL), PAPI_EINVAL);
    CHECK(PAPI_start(set), PAPI_OK);
    CHECK(PAPI_read(set, NULL), PAPI_EINVAL);
    CHECK(PAPI_read_ts(set, NULL, NULL), PAPI_EINVAL);
    CHECK(PAPI_accum(set, NULL), PAPI_EINVAL);
    CHECK(PAPI_write(set, NULL), PAPI_EINVAL);
    CHECK(PAPI_stop(set, NULL), PAPI_OK);
    CHECK(PAPI_event_name_to_code(NULL, &code), PAPI_EINVAL);
    CHECK(PAPI_event_name_to_code("PAPI_TOT_CYC", NULL), PAPI_EINVAL);
    CHECK(PAPI_event_code_to_name(PAPI_TOT_CYC, NULL), PAPI_EINVAL);
    CHECK(PAPI_event_code_to_name(PAPI_PRESET_MASK | 0x7f, name), PAPI_ENOTPRESET);
    CHECK(PAPI_event_code_to_name(0, name), PAPI_ENOEVNT);
    CHECK(PAPI_get_event_info(PAPI_TOT_CYC, NULL), PAPI_EINVAL);
    CHECK(PAPI_get_event_info(PAPI_NATIVE_MASK | 0xffff, &info), PAPI_ENOEVNT);
    CHECK(PAPI_enum_event(NULL, PAPI_ENUM_FIRST), PAPI_EINVAL);
    CHECK(PAPI_enum_cmp_event(&code, PAPI_ENUM_FIRST, 99), PAPI_ENOCMP);
    CHECK(PAPI_get_dmem_info(NULL), PAPI_EINVAL);
    CHECK(PAPI_get_component_info(99) == NULL, 1);
    CHECK(PAPI_get_component_index("nothing"), PAPI_ENOCMP);
    CHECK(PAPI_get_component_index(NULL), PAPI_EINVAL);
    CHECK(PAPI_list_threads(NULL, NULL), PAPI_EINVAL);
    CHECK(PAPI_lock(99), PAPI_EINVAL);
    CHECK(PAPI_unlock(-1), PAPI_EINVAL);
    CHECK(PAPI_get_thr_specific(PAPI_USR1_TLS, NULL), PAPI_EINVAL);
    CHECK(PAPI_get_overflow_event_index(set, 0, &code, &code), PAPI_EINVAL);
    CHECK(PAPI_enum_dev_type(0, NULL), PAPI_EINVAL);
    CHECK(PAPI_get_dev_attr(NULL, 0, 0, NULL), PAPI_EINVAL);
    CHECK(PAPI_ipc(NULL, NULL, NULL, NULL), PAPI_EINVAL);
    CHECK(PAPI_rate_stop(), PAPI_ENOEVNT);
    CHECK(PAPI_hl_region_begin(NULL), PAPI_EINVAL);
    CHECK(PAPI_hl_region_end("never"), PAPI_EMISC);
    CHECK(PAPI_set_debug(17), PAPI_EINVAL);
    option.events_file = "/there-is-no-such-file";
    CHECK(PAPI_set_opt(PAPI_USER_EVENTS_FILE, &option), PAPI_OK);
    CHECK(PAPI_set_opt(PAPI_USER_EVENTS_FILE, NULL), PAPI_EINVAL);
    CHECK(PAPI_get_opt(PAPI_USER_EVENTS_FILE, &option), PAPI_EINVAL);
    CHECK(PAPI_strerror(1) == NULL && PAPI_strerror(-1000) == NULL, 1);
    CHECK(PAPI_strerror(PAPI_EMULPASS) != NULL, 1);
    PAPI_perror(NULL);
    PAPI_perror("a message");
    return 0;
}
