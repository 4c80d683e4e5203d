/*
 * Counts what a function costs: the shortest use there is.
 *
 *     cc count_function.c $(pkg-config --cflags --libs quipu) && ./a.out
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <quipu.h>

#define EVENTS 4

/* The function to look at: it writes to each page of fresh memory. */
static unsigned long work(void)
{
    const size_t bytes = 4u << 20;
    unsigned char *memory = (unsigned char *)malloc(bytes);
    unsigned long sum = 0;
    size_t i;

    if (memory == NULL)
        return 0;
    for (i = 0; i < bytes; i += 512) {
        memory[i] = (unsigned char)(i >> 12);
        sum += memory[i];
    }
    free(memory);
    return sum;
}

/* Why an event has no value: it could not be opened, or not be read. */
static void say_why(quipu_set *set, size_t event, const char *name, int status)
{
    quipu_error error;

    QUIPU_INIT(error);
    if (quipu_set_event_error(set, event, &error) == QUIPU_OK && error.status != QUIPU_OK)
        printf("%14s  %s: %s\n", "-", name, error.message);
    else
        printf("%14s  %s: %s\n", "-", name, quipu_strerror(status));
}

int main(void)
{
    static const char *const names[EVENTS] = {"task-clock", "page-faults", "cycles", "instructions"};
    quipu_config config;
    quipu_set *set;
    quipu_count counts[EVENTS];
    unsigned long sum;
    size_t i;

    QUIPU_INIT(config);
    config.flags = QUIPU_USER_FALLBACK;
    if (quipu_set_create(&config, &set) != QUIPU_OK ||
        quipu_set_add(set, "task-clock,page-faults,{cycles,instructions}") != QUIPU_OK ||
        quipu_set_open(set) != QUIPU_OK || quipu_set_start(set) != QUIPU_OK) {
        quipu_perror("count_function");
        return EXIT_FAILURE;
    }
    sum = work();
    if (quipu_set_stop(set) != QUIPU_OK || quipu_set_read(set, counts, EVENTS) != QUIPU_OK) {
        quipu_perror("count_function");
        return EXIT_FAILURE;
    }

    printf("work() returned %lu\n", sum);
    for (i = 0; i < EVENTS; i++) {
        if (counts[i].state == QUIPU_EXACT)
            printf("%14" PRIu64 "  %s\n", counts[i].value, names[i]);
        else if (counts[i].state == QUIPU_ESTIMATED)
            printf("%14" PRIu64 "  %s (estimated)\n", counts[i].value, names[i]);
        else if (counts[i].state == QUIPU_NOT_READ)
            say_why(set, i, names[i], counts[i].status);
        else
            printf("%14s  %s: not counted\n", "-", names[i]);
    }
    return quipu_set_close(set) == QUIPU_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
