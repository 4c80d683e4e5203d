/* Handlers of overflows that never return, as they leave by siglongjmp: the thread goes on as if there had been none. */
#include "check.h"
#include <dirent.h>
#include <setjmp.h>
#include <string.h>

static sigjmp_buf here;

static void handler(int set, void *address, long long vector, void *context)
{
    (void)address, (void)vector, (void)context;
    CHECK(PAPI_cleanup_eventset(set), PAPI_EISRUN);
    siglongjmp(here, 1);
}

/* Calls itself, so that what it does is deeper on the stack than the handler was. */
__attribute__((noinline)) static int add_deep_down(int set, int depth)
{
    volatile char room[4096];
    room[0] = (char)depth;
    return depth ? add_deep_down(set, depth - 1) + room[0] - (char)depth : PAPI_add_named_event(set, "perf::MINOR-FAULTS");
}

static int descriptors(void)
{
    int number = 0;
    DIR *open = opendir("/proc/self/fd");
    while (readdir(open))
        number++;
    closedir(open);
    return number;
}

static volatile unsigned long sink;

/* Leaves the handler of an event, and uses the library then. */
static void leave(const char *event, int threshold, int flags)
{
    int set = PAPI_NULL;
    long long values[2];
    CHECK(PAPI_create_eventset(&set), PAPI_OK);
    CHECK(PAPI_add_named_event(set, event), PAPI_OK);
    int code = code_of(event);
    CHECK(PAPI_overflow(set, code, threshold, flags, handler), PAPI_OK);
    for (int turn = 0; turn < 3; turn++) {
        CHECK(PAPI_start(set), PAPI_OK);
        if (sigsetjmp(here, 1) == 0) {
            fault(100);
            for (unsigned long long at = 0; at < 20000000000; at++)
                sink += at;
            CHECK("the handler was not called", 0);
        }
        CHECK(PAPI_stop(set, values), PAPI_OK);
        CHECK(values[0] >= threshold, 1);
    }
    CHECK(PAPI_overflow(set, code, 0, 0, handler), PAPI_OK);
    CHECK(add_deep_down(set, 30), PAPI_OK);
    CHECK(PAPI_cleanup_eventset(set), PAPI_OK);
    CHECK(PAPI_destroy_eventset(&set), PAPI_OK);
}

int main(void)
{
    CHECK(PAPI_library_init(PAPI_VER_CURRENT), PAPI_VER_CURRENT);
    leave("perf::PAGE-FAULTS:u=1", 7, 0);
    int before = descriptors();
    leave("perf::PAGE-FAULTS:u=1", 7, 0);
    leave("perf::TASK-CLOCK:u=1", 20000000, PAPI_OVERFLOW_FORCE_SW);
    CHECK(descriptors(), before);
    return 0;
}
