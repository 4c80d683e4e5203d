/* What the library counts on a system where PAPI has nothing: page faults of the process, and instructions where the CPU's counters may be set. */
#include "check.h"
#include <string.h>

/* Does 4,000,000 instructions and a few, where the architecture is known. */
static void work(void)
{
#if defined __x86_64__ || defined __i386__
    unsigned rounds = 2000000;
    __asm__ volatile("1: dec %0\n\tjnz 1b" : "+r"(rounds) : : "cc");
#else
    static volatile unsigned long sink;
    for (unsigned long at = 0; at < 1000000; at++)
        sink += at;
#endif
}

#ifndef __linux__
static void handler(int set, void *address, long long vector, void *context)
{
    (void)set, (void)address, (void)vector, (void)context;
}
#endif

#if defined __linux__ || defined __FreeBSD__
/* Counts instructions of a CPU, whatever runs there; says what is in the way. */
static void count_on_a_cpu(const char *which)
{
    int set = PAPI_NULL, code, is_attached = strcmp(which, "CPU 0") == 0;
    long long before = 0, values[2] = {0};
    PAPI_option_t option = {0};
    CHECK(PAPI_create_eventset(&set), PAPI_OK);
    CHECK(PAPI_assign_eventset_component(set, 0), PAPI_OK);
    if (is_attached)
        option.cpu.eventset = set;
    else
        option.granularity.eventset = set, option.granularity.granularity = PAPI_GRN_SYS;
    code = PAPI_set_opt(is_attached ? PAPI_CPU_ATTACH : PAPI_GRANUL, &option);
    if (code == PAPI_OK)
        code = PAPI_add_event(set, PAPI_TOT_INS);
    if (code != PAPI_OK) {
        printf("PAPI_TOT_INS on %s: %d\n", which, code);
        PAPI_perror(which);
        return;
    }
    CHECK(PAPI_add_named_event(set, "perf::INSTRUCTIONS"), PAPI_OK);
    CHECK(PAPI_start(set), PAPI_OK);
    for (int turn = 0; turn < 5; turn++, before = values[0]) {
        work();
        CHECK(PAPI_read(set, values), PAPI_OK);
#ifdef __FreeBSD__
        CHECK(values[0] - before > 3000000, 1);
#endif
    }
    CHECK(PAPI_stop(set, values), PAPI_OK);
    CHECK(values[0] >= before && values[1] >= values[0] / 2, 1);
    printf("%lld instructions on %s\n", values[0], which);
    CHECK(PAPI_cleanup_eventset(set), PAPI_OK);
}
#endif

int main(void)
{
    int set = PAPI_NULL, counts = 0;
    long long value = 0;
    CHECK(PAPI_library_init(PAPI_VER_CURRENT), PAPI_VER_CURRENT);
    CHECK(PAPI_num_components(), 3);
    for (int at = 0; at < 3; at++) {
        const PAPI_component_info_t *info = PAPI_get_component_info(at);
        printf("component %s: %s\n", info->name, info->disabled ? info->disabled_reason : "enabled");
        CHECK(!info->disabled || info->disabled_reason[0], 1);
    }
    CHECK(PAPI_query_named_event("no-such-event"), PAPI_ENOEVNT);
    CHECK(PAPI_create_eventset(&set), PAPI_OK);
    CHECK(PAPI_add_named_event(set, "page-faults"), PAPI_OK);
    CHECK(PAPI_start(set), PAPI_OK);
    fault(500);
    CHECK(PAPI_stop(set, &value), PAPI_OK);
    printf("%lld page faults\n", value);
    CHECK(value >= 500 && value < 600, 1);
#ifndef __linux__
    CHECK(PAPI_overflow(set, code_of("page-faults"), 1, 0, handler), PAPI_ECMP);
#endif
    CHECK(PAPI_cleanup_eventset(set), PAPI_OK);

    int added = PAPI_add_event(set, PAPI_TOT_INS);
    if (added == PAPI_OK) {
        CHECK(PAPI_start(set), PAPI_OK);
        for (int turn = 0; turn < 5; turn++) {
            long long more = 0;
            work();
            CHECK(PAPI_read(set, &more), PAPI_OK);
            CHECK(more - value > 3000000 || turn == 0, 1);
            value = more;
        }
        CHECK(PAPI_stop(set, &value), PAPI_OK);
        printf("%lld instructions\n", value);
        /* A counter of FreeBSD's that counts processes counts no CPU. */
        CHECK(PAPI_cleanup_eventset(set), PAPI_OK);
        counts = 1;
    } else {
        printf("PAPI_TOT_INS: %d\n", added);
        PAPI_perror("PAPI_TOT_INS");
    }
#if defined __linux__ || defined __FreeBSD__
    count_on_a_cpu("CPU 0");
    count_on_a_cpu("this CPU");
#endif
    CHECK(PAPI_get_component_info(0)->num_cntrs > 0, 1);
    CHECK((PAPI_get_component_info(0)->num_preset_events > 0) == counts, 1);
    CHECK(PAPI_get_real_nsec() > 0 && PAPI_get_virt_usec() >= 0, 1);
    CHECK(PAPI_get_hardware_info()->totalcpus > 0, 1);
    PAPI_shutdown();
    printf("done\n");
    return 0;
}
