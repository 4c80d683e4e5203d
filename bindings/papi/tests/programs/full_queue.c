/* Overflow where no signal can be queued: the kernel sends SIGIO in its place, which would end the program. */
#include "check.h"
#include <signal.h>
#include <string.h>
#include <sys/resource.h>

static volatile int calls;

static void handler(int set, void *address, long long vector, void *context)
{
    (void)set, (void)address, (void)context;
    calls += vector == 1;
}

/* Counts page faults with a call for each, and returns the number of faults. */
static long long count(int set, int pages)
{
    long long faults = 0;
    calls = 0;
    CHECK(PAPI_start(set), PAPI_OK);
    fault(pages);
    CHECK(PAPI_stop(set, &faults), PAPI_OK);
    CHECK(faults >= pages, 1);
    return faults;
}

static volatile int others;
static void other(int signal) { others += signal == SIGIO; }

int main(void)
{
    int set = PAPI_NULL;
    const struct rlimit none = {0, 0};
    CHECK(PAPI_library_init(PAPI_VER_CURRENT), PAPI_VER_CURRENT);
    CHECK(PAPI_create_eventset(&set), PAPI_OK);
    CHECK(PAPI_add_named_event(set, "perf::PAGE-FAULTS:u=1"), PAPI_OK);
    int faults = code_of("perf::PAGE-FAULTS:u=1");
    CHECK(PAPI_overflow(set, faults, 1, 0, handler), PAPI_OK);
    long long reported = count(set, 100);
    CHECK(calls, reported);
    CHECK(setrlimit(RLIMIT_SIGPENDING, &none), 0);
    reported = count(set, 100);
    CHECK(calls, reported);

    /* A page is missing first inside of the library: the handler is called when it returns. The first time, pages of the
       library's code may be missing too. */
    for (int time = 0; time < 2; time++) {
        long long *value = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        calls = 0;
        CHECK(PAPI_start(set), PAPI_OK);
        CHECK(PAPI_read(set, value), PAPI_OK);
        CHECK(time == 0 ? calls > 0 : calls == 1, 1);
        CHECK(PAPI_stop(set, NULL), PAPI_OK);
    }
    CHECK(PAPI_cleanup_eventset(set), PAPI_OK);

    /* A program that handles SIGIO keeps its handler. */
    CHECK(signal(SIGIO, other) != SIG_ERR, 1);
    CHECK(PAPI_add_event(set, faults), PAPI_OK);
    CHECK(PAPI_overflow(set, faults, 1, 0, handler), PAPI_OK);
    others = 0;
    count(set, 10);
    CHECK(calls, 0);
    CHECK(others >= 10, 1);
    return 0;
}
