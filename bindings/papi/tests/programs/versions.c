/* A program that is written for one of the versions: what the library writes has its layout. */
#include "check.h"
#include <string.h>

/* PAPI_get_event_info writes all of the struct, and nothing behind it. */
static void check_event(int code, const char *name, unsigned kind)
{
    struct {
        PAPI_event_info_t info;
        unsigned char behind[64];
    } event;
    memset(&event, 0x5a, sizeof event);
    CHECK(PAPI_get_event_info(code, &event.info), PAPI_OK);
    CHECK(strcmp(event.info.symbol, name), 0);
    CHECK(event.info.event_type, kind);
#if QUIPU_PAPI_MINOR >= 2
    CHECK(event.info.num_quals, 0);
    CHECK(event.info.quals[0][0], 0);
    CHECK(event.info.quals_descrs[PAPI_MAX_COMP_QUALS - 1][PAPI_HUGE_STR_LEN - 1], 0);
#endif
    for (size_t at = 0; at < sizeof event.behind; at++)
        CHECK(event.behind[at], 0x5a);
}

static void check_component(void)
{
    const PAPI_component_info_t *info = PAPI_get_component_info(0);
    PAPI_option_t option;
    CHECK(PAPI_get_cmp_opt(PAPI_COMPONENTINFO, &option, 0), PAPI_OK);
    CHECK(option.cmp_info == info, 1);
    CHECK(info->disabled, 0);
    CHECK(info->initialized, 1);
    CHECK(info->CmpIdx, 0);
    CHECK(info->num_mpx_cntrs, PAPI_get_cmp_opt(PAPI_MAX_MPX_CTRS, NULL, 0));
    CHECK(info->default_domain, PAPI_DOM_USER);
    CHECK(info->pmu_names[0] != NULL, 1);
    CHECK(info->attach, 1);
#if QUIPU_PAPI_MINOR >= 2
    CHECK(info->partially_disabled, 0);
    CHECK(info->partially_disabled_reason[0], 0);
#endif
}

static int reported;

static int report(int code)
{
    (void)code;
    reported++;
    return PAPI_OK;
}

/* Returns the number of codes that come behind the first. */
static int behind(int code, int modifier)
{
    int number = 0;
    while (PAPI_enum_cmp_event(&code, modifier, 0) == PAPI_OK)
        number++;
    return number;
}

static void check_enumeration(void)
{
    int code = PAPI_END, native = PAPI_NATIVE_MASK;
    PAPI_option_t handling = {.debug = {.level = PAPI_VERB_ECONT, .handler = report}};
    CHECK(PAPI_set_opt(PAPI_DEBUG, &handling), PAPI_OK);
    CHECK(PAPI_enum_cmp_event(&code, PAPI_ENUM_FIRST, 0), PAPI_OK);
    CHECK(code, PAPI_L1_DCM);
    CHECK(behind(PAPI_L1_DCM, PAPI_ENUM_EVENTS), (PAPI_END & PAPI_PRESET_AND_MASK) - 1);
    const PAPI_component_info_t *info = PAPI_get_component_info(0);
    CHECK(behind(PAPI_L1_DCM, PAPI_PRESET_ENUM_AVAIL) <= info->num_preset_events, 1);
    CHECK(PAPI_enum_cmp_event(&native, PAPI_ENUM_FIRST, 0), PAPI_OK);
    CHECK(behind(native, PAPI_ENUM_EVENTS), info->num_native_events - 1);
    code = code_of("perf::PAGE-FAULTS");
    CHECK(PAPI_enum_cmp_event(&code, PAPI_NTV_ENUM_UMASKS, 0), PAPI_OK);
    char name[PAPI_MAX_STR_LEN];
    CHECK(PAPI_event_code_to_name(code, name), PAPI_OK);
    CHECK(strstr(name, "FAULTS:") != NULL, 1);
    /* That a list has ended is no error. */
    CHECK(reported, 0);
    code = 0;
    CHECK(PAPI_enum_event(&code, PAPI_ENUM_EVENTS), PAPI_EINVAL);
    CHECK(reported, 1);
#if QUIPU_PAPI_MINOR >= 2
    CHECK(behind(PAPI_L1_DCM, PAPI_PRESET_ENUM_CPU), behind(PAPI_L1_DCM, PAPI_ENUM_EVENTS));
    CHECK(behind(PAPI_L1_DCM, PAPI_PRESET_ENUM_CPU_AVAIL), behind(PAPI_L1_DCM, PAPI_PRESET_ENUM_AVAIL));
    code = PAPI_L1_DCM;
    CHECK(PAPI_enum_event(&code, PAPI_PRESET_ENUM_FIRST_COMP), PAPI_ENOEVNT);
    CHECK(PAPI_enum_event(&code, PAPI_PRESET_ENUM_INS), PAPI_EINVAL);
#else
    CHECK(behind(PAPI_L1_DCM, PAPI_PRESET_ENUM_INS) <= behind(PAPI_L1_DCM, PAPI_PRESET_ENUM_AVAIL), 1);
#endif
}

int main(void)
{
    CHECK(PAPI_library_init(PAPI_VERSION_NUMBER(7, 4, 0, 0)), PAPI_EINVAL);
    /* The high level asks for no version. */
    float real, of_process, rate;
    long long instructions;
    PAPI_ipc(&real, &of_process, &instructions, &rate);
    PAPI_rate_stop();
    CHECK(PAPI_library_init(PAPI_VER_CURRENT), PAPI_VER_CURRENT);
    CHECK(PAPI_library_init(PAPI_VER_CURRENT), PAPI_VER_CURRENT);
    CHECK(PAPI_library_init(PAPI_VER_CURRENT ^ PAPI_VERSION_NUMBER(0, 1, 0, 0)), PAPI_EINVAL);
    CHECK(PAPI_get_opt(PAPI_LIB_VERSION, NULL) & 0xffff0000, PAPI_VER_CURRENT);
    check_event(PAPI_TOT_INS, "PAPI_TOT_INS", PAPI_PRESET_BIT_INS);
    check_event(PAPI_L2_TCA, "PAPI_L2_TCA", PAPI_PRESET_BIT_CACH | PAPI_PRESET_BIT_L2);
    check_event(code_of("perf::PAGE-FAULTS"), "perf::PAGE-FAULTS", 0);
    check_component();
    check_enumeration();
    CHECK(PAPI_strerror(1 - PAPI_NUM_ERRORS) != NULL, 1);
    CHECK(PAPI_strerror(-PAPI_NUM_ERRORS) == NULL, 1);
    int code;
#if QUIPU_PAPI_MINOR >= 3
    CHECK(code_of("PAPI_VEC_HP"), PAPI_VEC_HP);
    check_event(PAPI_HP_OPS, "PAPI_HP_OPS", PAPI_PRESET_BIT_INS | PAPI_PRESET_BIT_FP);
#else
    CHECK(PAPI_event_name_to_code("PAPI_VEC_HP", &code), PAPI_ENOEVNT);
#endif
    int set = PAPI_NULL;
    long long faults;
    code = code_of("perf::PAGE-FAULTS");
    CHECK(PAPI_create_eventset(&set), PAPI_OK);
    CHECK(PAPI_add_event(set, code), PAPI_OK);
    CHECK(PAPI_start(set), PAPI_OK);
    fault(512);
    CHECK(PAPI_stop(set, &faults), PAPI_OK);
    CHECK(faults, 512);
    PAPI_shutdown();
    return 0;
}
