/* The same work by libpfm4: pfm_initialize and 20 encodings, then one encoding over and over.
   Prints nanoseconds: the first in this process, then the median of single encodings. */
#define _POSIX_C_SOURCE 200809L
#include <perfmon/pfmlib.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *events[] = {
#include "events.inc"
};

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int encode(const char *name)
{
    pfm_pmu_encode_arg_t arg;
    memset(&arg, 0, sizeof arg);
    arg.size = sizeof arg;
    int result = pfm_get_os_event_encoding(name, PFM_PLM0 | PFM_PLM3, PFM_OS_NONE, &arg);
    free(arg.codes);
    return result;
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

int main(void)
{
    enum { COUNT = sizeof events / sizeof *events, RUNS = 20001 };
    static uint64_t runs[RUNS];
    uint64_t start = now();
    if (pfm_initialize() != PFM_SUCCESS)
        return 1;
    for (int i = 0; i < COUNT; i++)
        if (encode(events[i]) != PFM_SUCCESS) {
            fprintf(stderr, "libpfm4 does not encode %s\n", events[i]);
            return 1;
        }
    uint64_t all = now() - start;
    for (int i = 0; i < RUNS; i++) {
        start = now();
        encode(events[i % COUNT]);
        runs[i] = now() - start;
    }
    qsort(runs, RUNS, sizeof *runs, compare);
    printf("%llu %llu\n", (unsigned long long)all, (unsigned long long)runs[RUNS / 2]);
    return 0;
}
