/* Events whose names say on which CPU they are counted: the thread, while it runs there. */
#define _GNU_SOURCE
#include "check.h"
#include <sched.h>

enum { HERE = 100, THERE = 1000 };

static int move_to(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    return sched_setaffinity(0, sizeof set, &set);
}

int main(void)
{
    CHECK(PAPI_library_init(PAPI_VER_CURRENT), PAPI_VER_CURRENT);
    if (move_to(1) || move_to(0)) {
        printf("SKIP events on one CPU: this process may not move between CPUs 0 and 1\n");
        return 0;
    }
    for (int cpu = 0; cpu < 2; cpu++) {
        int set = PAPI_NULL;
        long long value = 0;
        char name[64];
        snprintf(name, sizeof name, "perf::PAGE-FAULTS:u:cpu=%d", cpu);
        CHECK(PAPI_create_eventset(&set), PAPI_OK);
        CHECK(PAPI_add_named_event(set, name), PAPI_OK);
        /* One set is counted in one place. */
        CHECK(PAPI_add_named_event(set, "perf::MINOR-FAULTS"), PAPI_EINVAL);
        CHECK(move_to(0), 0);
        CHECK(PAPI_start(set), PAPI_OK);
        fault(HERE);
        CHECK(move_to(1), 0);
        fault(THERE);
        CHECK(PAPI_stop(set, &value), PAPI_OK);
        int least = cpu == 0 ? HERE : THERE;
        CHECK(value >= least && value < least + HERE / 2, 1);
        CHECK(PAPI_cleanup_eventset(set), PAPI_OK);
    }
    int set = PAPI_NULL, code;
    CHECK(PAPI_create_eventset(&set), PAPI_OK);
    CHECK(PAPI_event_name_to_code("perf::PAGE-FAULTS:cpu", &code), PAPI_ENOEVNT);
    CHECK(PAPI_event_name_to_code("perf::PAGE-FAULTS:cpu=x", &code), PAPI_ENOEVNT);
    CHECK(PAPI_event_name_to_code("perf::PAGE-FAULTS:cpu=4095", &code), PAPI_OK);
    CHECK(PAPI_add_event(set, code), PAPI_EINVAL);
    return 0;
}
