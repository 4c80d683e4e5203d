/* Reads an event set of Quipu as a C program does. */
#include <time.h>

#include <quipu.h>

#include "five_events.h"

static quipu_set *set;

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

int open_events(void)
{
    return quipu_set_create(NULL, &set) || quipu_set_add(set, QUIPU_EVENTS) || quipu_set_open(set) ||
           quipu_set_start(set);
}

/* Nanoseconds a read takes, totals of every event; negative when one fails. */
double read_totals(int times)
{
    quipu_count counts[EVENTS];
    const double start = now();
    int i;

    for (i = 0; i < times; i++) {
        if (quipu_set_read(set, counts, EVENTS) != QUIPU_OK || counts[0].state != QUIPU_EXACT)
            return -1;
    }
    return (now() - start) / times;
}

/* The same without totals. */
double read_parts(int times)
{
    quipu_reading readings[EVENTS];
    const double start = now();
    int i;

    for (i = 0; i < times; i++) {
        if (quipu_set_read_parts(set, readings, EVENTS) != QUIPU_OK || readings[0].status != QUIPU_OK)
            return -1;
    }
    return (now() - start) / times;
}

void close_events(void)
{
    quipu_set_close(set);
}
