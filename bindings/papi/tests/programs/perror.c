/* Errors, and what PAPI_perror says of each. */
#include "check.h"
#include <sys/resource.h>

int main(void)
{
    int set = PAPI_NULL, nowhere = 1 << 30;
    CHECK(PAPI_library_init(PAPI_VER_CURRENT), PAPI_VER_CURRENT);
    CHECK(PAPI_create_eventset(&set), PAPI_OK);
    CHECK(PAPI_add_named_event(set, "perf::PAGE-FAULTS"), PAPI_OK);
    PAPI_perror("at first");
    CHECK(PAPI_attach(set, nowhere) < 0, 1);
    PAPI_perror("attach");
    CHECK(PAPI_start(nowhere), PAPI_ENOEVST);
    PAPI_perror("start");
    set = PAPI_NULL;
    CHECK(PAPI_create_eventset(&set), PAPI_OK);
    PAPI_perror("no failure");
    if (PAPI_query_event(PAPI_TOT_CYC) != PAPI_OK) {
        CHECK(PAPI_add_event(set, PAPI_TOT_CYC), PAPI_ENOEVNT);
        PAPI_perror("preset");
    }
    struct rlimit few = {3, 3};
    CHECK(setrlimit(RLIMIT_NOFILE, &few), 0);
    CHECK(PAPI_add_named_event(set, "perf::PAGE-FAULTS"), PAPI_ECOUNT);
    return 0;
}
