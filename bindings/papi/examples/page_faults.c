/* Counts the page faults of a piece of code by PAPI's interface: no counters of the CPU are needed.
 *
 *     cc -Ibindings/papi/include bindings/papi/examples/page_faults.c -L DIRECTORY -lpapi */
#include <papi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failed(const char *what)
{
    PAPI_perror(what);
    return EXIT_FAILURE;
}

int main(void)
{
    int set = PAPI_NULL;
    long long faults = 0;
    if (PAPI_library_init(PAPI_VER_CURRENT) != PAPI_VER_CURRENT)
        return failed("PAPI_library_init");
    if (PAPI_create_eventset(&set) != PAPI_OK)
        return failed("PAPI_create_eventset");
    if (PAPI_add_named_event(set, "perf::PAGE-FAULTS") != PAPI_OK)
        return failed("perf::PAGE-FAULTS");
    if (PAPI_start(set) != PAPI_OK)
        return failed("PAPI_start");
    size_t size = 4 << 20;
    char *memory = malloc(size);
    if (memory != NULL)
        memset(memory, 1, size);
    if (PAPI_stop(set, &faults) != PAPI_OK)
        return failed("PAPI_stop");
    free(memory);
    printf("%lld page faults\n", faults);
    return EXIT_SUCCESS;
}
