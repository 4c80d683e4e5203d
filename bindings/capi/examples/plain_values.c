/*
 * The shortest form: plain numbers, or the reason why there are none. Nothing here passes an estimate off as a
 * count.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <quipu.h>

#define PAGES 256
#define PAGE 4096

static char memory[PAGES * PAGE] __attribute__((aligned(PAGE)));

static int failed(void)
{
    quipu_perror("plain_values");
    return EXIT_FAILURE;
}

int main(void)
{
    uint64_t values[2], begin = 0, end = 0;
    quipu_set *set;
    size_t i;

    /* quipu_set_open_all() refuses the set if one of its events cannot be counted here. */
    if (quipu_set_create(NULL, &set) != QUIPU_OK ||
        quipu_set_add(set, "page-faults:u,perf::PERF_COUNT_SW_TASK_CLOCK:u=1") != QUIPU_OK ||
        quipu_set_open_all(set) != QUIPU_OK || quipu_set_start(set) != QUIPU_OK)
        return failed();
    /* The time stamp counter costs no system call; not every CPU has one. */
    (void)quipu_time_stamp(&begin);
    for (i = 0; i < sizeof(memory); i += PAGE)
        ((volatile char *)memory)[i] = 1;
    (void)quipu_time_stamp(&end);
    if (quipu_set_stop(set) != QUIPU_OK || quipu_set_values(set, values, 2) != QUIPU_OK)
        return failed();
    printf("%" PRIu64 " page faults in %" PRIu64 " ns\n", values[0], values[1]);
    printf("%" PRIu64 " ticks of the time stamp counter\n", end - begin);
    return quipu_set_close(set) == QUIPU_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
