/*
 * More events than counters: they take turns, and every number says what it is.
 *
 * Four events share a simulated PMU of two counters, so that the output is the same on every machine.
 * With a PMU, leave `config.sim` out and measure a thread: nothing else changes.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <quipu.h>

#define EVENTS 5

static void fail(const char *what)
{
    quipu_perror(what);
    exit(EXIT_FAILURE);
}

static void print(quipu_set *set, const quipu_count *counts)
{
    size_t i;

    for (i = 0; i < EVENTS; i++) {
        const quipu_count *count = &counts[i];
        quipu_event_info info;
        quipu_error error;

        QUIPU_INIT(info);
        if (quipu_set_event_info(set, i, &info) != QUIPU_OK)
            fail("event");
        switch (count->state) {
        case QUIPU_EXACT:
            printf("%12" PRIu64 "  %s\n", count->value, info.name);
            break;
        case QUIPU_ESTIMATED:
            printf("%12" PRIu64 "  %s (estimated: counted for %" PRIu64 "%% of the time)\n",
                   count->value, info.name, count->time_running * 100 / count->time_enabled);
            break;
        case QUIPU_PARTIAL:
            printf("%12" PRIu64 "  %s (without %" PRIu32 " parts)\n", count->value, info.name,
                   count->missing);
            break;
        case QUIPU_AT_LEAST:
            printf("%12" PRIu64 "  %s (at least)\n", count->value, info.name);
            break;
        case QUIPU_NOT_COUNTED:
            printf("%12s  %s (never had a counter)\n", "-", info.name);
            break;
        default:
            QUIPU_INIT(error);
            if (quipu_set_event_error(set, i, &error) != QUIPU_OK)
                fail("error");
            printf("%12s  %s: %s\n", "-", info.name, error.message);
        }
    }
}

int main(void)
{
    quipu_sim_config machine;
    quipu_sim *sim;
    quipu_config config;
    quipu_set *set;
    quipu_count counts[EVENTS];
    int turn;

    QUIPU_INIT(machine);
    machine.cpus = 1;
    machine.counters = 2;
    if (quipu_sim_create(&machine, &sim) != QUIPU_OK)
        fail("simulated PMU");

    QUIPU_INIT(config);
    config.target = QUIPU_CPU;
    config.id = 0;
    config.sim = sim;
    if (quipu_set_create(&config, &set) != QUIPU_OK ||
        quipu_set_add(set, "cycles:D,instructions,branches,SYSTEM_CALLS,NO_SUCH_EVENT") != QUIPU_OK ||
        quipu_set_open(set) != QUIPU_OK || quipu_set_start(set) != QUIPU_OK)
        fail("event set");

    /* Before anybody had a second turn. */
    if (quipu_sim_advance(sim, 1000000) != QUIPU_OK)
        fail("advance");
    if (quipu_set_read(set, counts, EVENTS) != QUIPU_OK)
        fail("read");
    puts("after 1 ms:");
    print(set, counts);

    for (turn = 0; turn < 8; turn++) {
        if (quipu_sim_tick(sim) != QUIPU_OK || quipu_sim_advance(sim, 1000000) != QUIPU_OK)
            fail("turn");
    }
    if (quipu_set_stop(set) != QUIPU_OK || quipu_set_read(set, counts, EVENTS) != QUIPU_OK)
        fail("read");
    puts("after 9 ms:");
    print(set, counts);

    if (quipu_set_close(set) != QUIPU_OK || quipu_sim_close(sim) != QUIPU_OK)
        fail("close");
    return EXIT_SUCCESS;
}
