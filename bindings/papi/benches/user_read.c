/* Reads presets of the CPU so many times: user_read EVENTS READS. What a read takes is the difference of two runs. */
#include <papi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    static const char *const names[] = {"PAPI_TOT_INS", "PAPI_TOT_CYC", "PAPI_BR_INS", "PAPI_REF_CYC"};
    long long values[4];
    int set = PAPI_NULL;
    int events = argc > 1 ? atoi(argv[1]) : 1;
    long reads = argc > 2 ? atol(argv[2]) : 1;

    if (events > 4 || PAPI_library_init(PAPI_VER_CURRENT) != PAPI_VER_CURRENT || PAPI_create_eventset(&set) != PAPI_OK)
        return 1;
    for (int i = 0; i < events; i++) {
        int added = PAPI_add_named_event(set, names[i]);

        if (added != PAPI_OK) {
            printf("%s: %s\n", names[i], PAPI_strerror(added));
            return 1;
        }
    }
    if (PAPI_start(set) != PAPI_OK)
        return 1;
    while (reads-- > 0)
        if (PAPI_read(set, values) != PAPI_OK)
            return 1;
    return 0;
}
