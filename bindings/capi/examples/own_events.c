/*
 * Counts by a file of events of one's own:
 *
 *     own_events FILE CPU EVENTS
 *
 * FILE is a TOML file as docs/event-database.md describes it, CPU the id of its entry ("" for that of this
 * machine). The events are counted while 256 fresh pages are touched.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <quipu.h>

#define MOST 16
#define PAGES 256
#define PAGE 4096

static char memory[PAGES * PAGE] __attribute__((aligned(PAGE)));

static int failed(void)
{
    quipu_perror("own_events");
    return EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    quipu_config config;
    quipu_count counts[MOST];
    quipu_set *set;
    size_t events, i;

    if (argc != 4) {
        fprintf(stderr, "usage: own_events FILE CPU EVENTS\n");
        return EXIT_FAILURE;
    }
    QUIPU_INIT(config);
    config.events_file = argv[1];
    config.cpu_model = argv[2][0] ? argv[2] : NULL;
    /* What is wrong in the file is said here, with the line. */
    if (quipu_set_create(&config, &set) != QUIPU_OK || quipu_set_add(set, argv[3]) != QUIPU_OK ||
        quipu_set_open(set) != QUIPU_OK || quipu_set_size(set, &events, NULL) != QUIPU_OK)
        return failed();
    if (events > MOST)
        events = MOST;

    if (quipu_set_start(set) != QUIPU_OK)
        return failed();
    for (i = 0; i < sizeof(memory); i += PAGE)
        ((volatile char *)memory)[i] = 1;
    if (quipu_set_stop(set) != QUIPU_OK || quipu_set_read(set, counts, events) != QUIPU_OK)
        return failed();

    for (i = 0; i < events; i++) {
        quipu_event_info info;

        QUIPU_INIT(info);
        if (quipu_set_event_info(set, i, &info) != QUIPU_OK)
            return failed();
        if (info.status != QUIPU_OK)
            printf("%s: %s\n", info.name, quipu_strerror(info.status));
        else if (counts[i].state == QUIPU_EXACT)
            printf("%s: %" PRIu64 "\n", info.name, counts[i].value);
        else
            printf("%s: not counted all the time\n", info.name);
    }
    return quipu_set_close(set) == QUIPU_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
