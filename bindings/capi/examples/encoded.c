/*
 * The words by which Linux is asked for events, for programs that call perf_event_open(2) by themselves:
 *
 *     encoded CPU EVENT...
 *
 * CPU is the id of a CPU in the event database, such as amd-zen4, or "" for that of this machine. An event is named as
 * vendors, perf, PAPI or libpfm4 name it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <quipu.h>

static int failed(void)
{
    quipu_perror("encoded");
    return EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    quipu_database *database;
    quipu_cpu *cpu;
    int i;

    if (argc < 3) {
        fprintf(stderr, "usage: encoded CPU EVENT...\n");
        return EXIT_FAILURE;
    }
    if (quipu_database_open(NULL, &database) != QUIPU_OK ||
        quipu_cpu_open(database, argv[1][0] ? argv[1] : NULL, 0, &cpu) != QUIPU_OK)
        return failed();
    for (i = 2; i < argc; i++) {
        quipu_encoding words;

        QUIPU_INIT(words);
        if (quipu_encode(cpu, argv[i], QUIPU_FOR_LINUX, &words) != QUIPU_OK) {
            quipu_perror(argv[i]);
            continue;
        }
        printf("%s: type %" PRIu32 ", config %#" PRIx64, argv[i], words.type, words.config);
        if (words.config1 || words.config2)
            printf(", config1 %#" PRIx64 ", config2 %#" PRIx64, words.config1, words.config2);
        if (words.bp_type)
            printf(", bp_type %" PRIu32, words.bp_type);
        putchar('\n');
    }
    if (quipu_cpu_close(cpu) != QUIPU_OK || quipu_database_close(database) != QUIPU_OK)
        return failed();
    return EXIT_SUCCESS;
}
