/*
 * A tool's own test: on the simulated PMU every count is known beforehand, to the last event.
 *
 * It needs no PMU and no permission, and does the same on every machine.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <quipu.h>

static void fail(const char *what)
{
    quipu_perror(what);
    exit(EXIT_FAILURE);
}

static void expect(const char *what, uint64_t found, uint64_t wanted)
{
    printf("%-34s %10" PRIu64 "\n", what, found);
    if (found != wanted) {
        fprintf(stderr, "simulated: %s is %" PRIu64 " and has to be %" PRIu64 "\n", what, found, wanted);
        exit(EXIT_FAILURE);
    }
}

int main(void)
{
    /* 2000 a microsecond for one millisecond, then nothing for three, and so on. */
    static const quipu_sim_phase burst[] = {{1000000, 1500, 500}, {3000000, 0, 0}};
    static const quipu_sim_phase steady[] = {{1000, 70, 30}};
    const quipu_sim_event events[] = {
        {"CYCLES", "cycles", 0, burst, 2},
        {"LOADS", NULL, 0, steady, 1},
        {"CALLS", NULL, 0, NULL, 0},
    };
    quipu_sim_config machine;
    quipu_sim *sim;
    quipu_config config;
    quipu_set *set;
    quipu_count counts[4];
    quipu_reading before[8], after[8];
    quipu_event_info info;
    uint64_t truth;
    size_t n, readings;

    QUIPU_INIT(machine);
    machine.cpus = 2;
    machine.width = 32;
    machine.events = events;
    machine.event_count = 3;
    if (quipu_sim_create(&machine, &sim) != QUIPU_OK)
        fail("simulated PMU");

    QUIPU_INIT(config);
    config.target = QUIPU_ALL_CPUS;
    config.sim = sim;
    if (quipu_set_create(&config, &set) != QUIPU_OK ||
        quipu_set_add(set, "{cycles,cycles:u},LOADS:k,CALLS") != QUIPU_OK ||
        quipu_set_open(set) != QUIPU_OK || quipu_set_start(set) != QUIPU_OK ||
        quipu_set_size(set, &n, &readings) != QUIPU_OK)
        fail("event set");
    expect("events", n, 4);
    expect("readings: each on two CPUs", readings, 8);

    if (quipu_sim_advance(sim, 2000000) != QUIPU_OK || quipu_sim_happen(sim, "CALLS", 1, 40, 2) != QUIPU_OK ||
        quipu_set_read(set, counts, 4) != QUIPU_OK)
        fail("read");
    expect("cycles on both CPUs", counts[0].value, 2 * 2000000);
    expect("cycles in user mode", counts[1].value, 2 * 1500000);
    expect("loads in kernel mode", counts[2].value, 2 * 2000 * 30);
    expect("calls", counts[3].value, 42);
    expect("state: exact", counts[0].state, QUIPU_EXACT);
    expect("nanoseconds enabled, both CPUs", counts[0].time_enabled, 2 * 2000000);
    if (quipu_sim_truth(sim, "CYCLES", 0, &truth) != QUIPU_OK)
        fail("truth");
    expect("cycles that happened on CPU 0", truth, 2000000);

    /* The difference of two readings, part by part, and its total. */
    if (quipu_set_read_parts(set, before, 8) != QUIPU_OK || quipu_sim_advance(sim, 2500000) != QUIPU_OK ||
        quipu_set_read_parts(set, after, 8) != QUIPU_OK ||
        quipu_set_difference(set, after, before, after, 8) != QUIPU_OK ||
        quipu_set_total(set, after, 8, counts, 4) != QUIPU_OK)
        fail("difference");
    expect("cycles in the next 2.5 ms", counts[0].value, 2 * 1000000);
    QUIPU_INIT(info);
    if (quipu_set_event_info(set, 2, &info) != QUIPU_OK)
        fail("event");
    expect("loads in 2.5 ms on the second CPU", after[info.first_reading + 1].value, 2500 * 30);

    if (quipu_set_reset(set) != QUIPU_OK || quipu_set_read(set, counts, 4) != QUIPU_OK)
        fail("reset");
    expect("cycles after a reset", counts[0].value, 0);
    if (quipu_set_close(set) != QUIPU_OK || quipu_sim_close(sim) != QUIPU_OK)
        fail("close");
    if (quipu_set_read(set, counts, 4) != QUIPU_EHANDLE)
        fail("a closed set is read");
    puts("as expected");
    return EXIT_SUCCESS;
}
