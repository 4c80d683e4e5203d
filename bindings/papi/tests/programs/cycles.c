/* Overflow of the CPU's cycles in periods little longer than a handler takes: a call of the handler for each. */
#include "check.h"

static volatile long calls;
static volatile unsigned long sink;

static void handler(int set, void *address, long long vector, void *context)
{
    (void)set, (void)address, (void)vector, (void)context;
    calls++;
}

int main(void)
{
    CHECK(PAPI_library_init(PAPI_VER_CURRENT), PAPI_VER_CURRENT);
    if (PAPI_query_event(PAPI_TOT_CYC) != PAPI_OK) {
        printf("SKIP overflows of cycles: there are no counters of the CPU\n");
        return 0;
    }
    for (int threshold = 1000000; threshold >= 10000; threshold /= 10) {
        int set = PAPI_NULL;
        long long cycles = 0;
        CHECK(PAPI_create_eventset(&set), PAPI_OK);
        CHECK(PAPI_add_event(set, PAPI_TOT_CYC), PAPI_OK);
        CHECK(PAPI_overflow(set, PAPI_TOT_CYC, threshold, 0, handler), PAPI_OK);
        for (int turn = 0; turn < 2; turn++) {
            calls = 0;
            CHECK(PAPI_start(set), PAPI_OK);
            for (int at = 0; at < 200000; at++)
                sink += (unsigned long)at;
            CHECK(PAPI_stop(set, &cycles), PAPI_OK);
            CHECK(cycles / threshold > 0, 1);
            /* Where the kernel stops one that interrupts too often, overflows are lost. */
            CHECK(calls > 0 && calls <= cycles / threshold, 1);
        }
        CHECK(PAPI_cleanup_eventset(set), PAPI_OK);
        CHECK(PAPI_destroy_eventset(&set), PAPI_OK);
    }
    printf("overflows of cycles were told one by one\n");
    return 0;
}
