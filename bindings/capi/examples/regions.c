/*
 * What parts of a program cost: regions with names, one inside of the other, and a table of them.
 *
 *     cc regions.c $(pkg-config --cflags --libs quipu) && ./a.out
 *
 * Without quipu_region_events() the marks cost a test each, until the user asks: QUIPU_REGIONS=- ./a.out
 */
#include <stdio.h>
#include <stdlib.h>

#include <quipu.h>

static double solve(void)
{
    double sum = 0;
    int step, i;

    QUIPU_REGION_BEGIN("solve");
    for (step = 0; step < 3; step++) {
        QUIPU_REGION_BEGIN("step");
        for (i = 1; i < 100000; i++)
            sum += 1.0 / i;
        QUIPU_REGION_END("step");
    }
    QUIPU_REGION_END("solve");
    return sum;
}

int main(void)
{
    char *table;
    size_t size = 0;
    double sum;

    if (quipu_region_events("task-clock,page-faults") != QUIPU_OK) {
        quipu_perror("regions");
        return EXIT_FAILURE;
    }
    sum = solve();
    if (sum < 0)
        return EXIT_FAILURE;

    /* No other thread counts, so that the report stays as long as it is. */
    (void)quipu_region_report(QUIPU_REGION_TABLE, NULL, 0, &size);
    table = (char *)malloc(size);
    if (table == NULL || quipu_region_report(QUIPU_REGION_TABLE, table, size, NULL) != QUIPU_OK) {
        quipu_perror("regions");
        return EXIT_FAILURE;
    }
    fputs(table, stdout);
    free(table);
    return EXIT_SUCCESS;
}
