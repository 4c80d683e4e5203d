/* Events that the file of PAPI_USER_EVENTS_FILE defines: prints what is told of them, and checks what they count. */
#include "check.h"
#include <string.h>

static void tell(const char *name)
{
    int code = 0;
    /* The code of an unknown name is what the last of PAPI's components says. */
    if (PAPI_event_name_to_code(name, &code) != PAPI_OK) {
        printf("%s is not there\n", name);
        return;
    }
    printf("%s: %#x\n", name, (unsigned)code);
    char told[PAPI_MAX_STR_LEN] = "";
    PAPI_event_info_t info;
    printf("  name %d %s\n", PAPI_event_code_to_name(code, told), told);
    printf("  query %d, component %d\n", PAPI_query_event(code), PAPI_get_event_component(code));
    CHECK(PAPI_get_event_info(code, &info), PAPI_OK);
    printf("  %s %s '%s' '%s' '%s' %s, %d terms:", info.symbol, info.derived, info.short_descr, info.long_descr, info.note,
           info.postfix, info.count);
    for (unsigned at = 0; at < info.count; at++)
        printf(" %s", info.name[at]);
    printf("\n");
}

int main(void)
{
    CHECK(PAPI_library_init(PAPI_VER_CURRENT), PAPI_VER_CURRENT);
    int code = 0;
    if (PAPI_event_name_to_code("OWN_FAULTS", &code) != PAPI_OK)
        return 77;
    const char *names[] = {"OWN_FAULTS", "own_sum", "OWN_TWICE", "OWN_INFIX", "OWN_RATE", "OWN_RATES",
                           "OWN_OTHERS", "OWN_MISSING"};
    for (size_t at = 0; at < sizeof names / sizeof *names; at++)
        tell(names[at]);
    code = PAPI_UE_MASK | 7;
    printf("first %d %#x,", PAPI_enum_event(&code, PAPI_ENUM_FIRST), (unsigned)code);
    while (PAPI_enum_event(&code, PAPI_ENUM_EVENTS) == PAPI_OK)
        printf(" %#x", (unsigned)code);
    printf("\n");
    int set = PAPI_NULL;
    long long values[6];
    CHECK(PAPI_create_eventset(&set), PAPI_OK);
    for (int at = 0; at < 6; at++)
        CHECK(PAPI_add_named_event(set, names[at]), PAPI_OK);
    CHECK(PAPI_start(set), PAPI_OK);
    fault(100);
    CHECK(PAPI_stop(set, values), PAPI_OK);
    /* Page faults; minor and major ones; twice the difference of both; four times the first less twice that; the clock of
       the CPU where there are as many faults as cycles, and twice as many. */
    long long hertz = PAPI_get_hardware_info()->cpu_max_mhz * 1000000LL;
    CHECK(values[0], 100);
    CHECK(values[1], 100);
    CHECK(values[2], 0);
    CHECK(values[3], 200);
    CHECK(values[4], hertz);
    CHECK(values[5], 2 * hertz);
    CHECK(PAPI_remove_named_event(set, "OWN_SUM"), PAPI_OK);
    CHECK(PAPI_num_events(set), 5);
    CHECK(PAPI_add_event(set, (int)(PAPI_UE_MASK | 40)), PAPI_EINVAL);
    PAPI_shutdown();
    return 0;
}
