/* Reads an event set of PAPI as a C program does. */
#include <time.h>

#include <papi.h>

#include "five_events.h"

static int set;

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

int open_events(void)
{
    static const char *const names[EVENTS] = PAPI_EVENTS;
    int i;

    set = PAPI_NULL;
    if (PAPI_is_initialized() == PAPI_NOT_INITED &&
        PAPI_library_init(PAPI_VER_CURRENT) != PAPI_VER_CURRENT)
        return 1;
    if (PAPI_create_eventset(&set) != PAPI_OK)
        return 1;
    for (i = 0; i < EVENTS; i++) {
        if (PAPI_add_named_event(set, names[i]) != PAPI_OK)
            return 1;
    }
    return PAPI_start(set) != PAPI_OK;
}

/* Nanoseconds a read takes; negative when one fails. */
double read_totals(int times)
{
    long long values[EVENTS];
    const double start = now();
    int i;

    for (i = 0; i < times; i++) {
        if (PAPI_read(set, values) != PAPI_OK)
            return -1;
    }
    return (now() - start) / times;
}

void close_events(void)
{
    PAPI_stop(set, NULL);
    PAPI_cleanup_eventset(set);
    PAPI_destroy_eventset(&set);
}
