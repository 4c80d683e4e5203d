/*
 * Subtracts from each count what starting and stopping the set itself adds to it: for a short stretch of code
 * that can be most of the count.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <quipu.h>

#define EVENTS 3
#define PAGES 256
#define PAGE 4096

static char memory[PAGES * PAGE] __attribute__((aligned(PAGE)));

static int failed(void)
{
    quipu_perror("calibrated");
    return EXIT_FAILURE;
}

int main(void)
{
    static const char *const names[EVENTS] = {"page-faults:u", "instructions:u", "task-clock:u"};
    quipu_overhead overhead[EVENTS];
    quipu_count counts[EVENTS];
    quipu_set *set;
    size_t i;

    /* By default the calling thread is counted, and with it the set's own calls. */
    if (quipu_set_create(NULL, &set) != QUIPU_OK)
        return failed();
    for (i = 0; i < EVENTS; i++) {
        if (quipu_set_add(set, names[i]) != QUIPU_OK)
            return failed();
    }
    /* Calibrating leaves the set stopped, with values of zero. */
    if (quipu_set_open(set) != QUIPU_OK || quipu_set_calibrate(set, overhead, EVENTS) != QUIPU_OK)
        return failed();

    if (quipu_set_start(set) != QUIPU_OK)
        return failed();
    for (i = 0; i < sizeof(memory); i += PAGE)
        ((volatile char *)memory)[i] = 1;
    if (quipu_set_stop(set) != QUIPU_OK || quipu_set_read(set, counts, EVENTS) != QUIPU_OK)
        return failed();

    for (i = 0; i < EVENTS; i++) {
        const quipu_spread *own = &overhead[i].start_to_stop;

        /* An event that could not be opened, or was not counted all the time, has no overhead either. */
        if (overhead[i].status != QUIPU_OK || counts[i].state != QUIPU_EXACT) {
            printf("%s: not counted\n", names[i]);
            continue;
        }
        printf("%s: %" PRIu64 ", less %" PRIu64 " of the set's own (%" PRIu64 " to %" PRIu64 ")\n", names[i],
               counts[i].value > own->median ? counts[i].value - own->median : 0, own->median,
               own->lowest, own->highest);
    }
    return quipu_set_close(set) == QUIPU_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
