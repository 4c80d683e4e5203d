/* Enumeration from codes of each kind by each modifier, each in a forked process: prints what it returned, and what the code became. */
#include <papi.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ANY = 3, MODIFIERS = PAPI_NTV_ENUM_GROUPS + 3 };

static const char *const components[] = {"perf_event", "perf_event_uncore", "sysdetect", "any component"};
static const char *const froms[] = {
    "the first native", "the first preset", "the first of the user's", "a named event", "an event that was enumerated", "the last preset",
    "a preset", "0", "a native that is none",
};

/* Returns a code to enumerate from; -1 where there is none. */
static int code_of(int from, int component)
{
    int code = 0;
    switch (from) {
    case 0: return PAPI_NATIVE_MASK;
    case 1: return PAPI_PRESET_MASK;
    case 2: return PAPI_PRESET_MASK | PAPI_NATIVE_MASK;
    case 3: return PAPI_event_name_to_code("perf::PAGE-FAULTS", &code) == PAPI_OK ? code : -1;
    case 4: code = PAPI_NATIVE_MASK; return PAPI_enum_cmp_event(&code, PAPI_ENUM_FIRST, component) == PAPI_OK ? code : -1;
    case 5: return PAPI_PRESET_MASK | (PAPI_MAX_PRESET_EVENTS - 1);
    case 6: return PAPI_event_name_to_code("PAPI_TOT_CYC", &code) == PAPI_OK ? code : -1;
    case 7: return 0;
    default: return PAPI_NATIVE_MASK | 0xfffff;
    }
}

static const char *kind(int code)
{
    if (code & PAPI_PRESET_MASK)
        return code & PAPI_NATIVE_MASK ? "of the user's" : "a preset";
    return code & PAPI_NATIVE_MASK ? "native" : "none";
}

int main(void)
{
    setvbuf(stdout, NULL, _IONBF, 0);
    if (PAPI_library_init(PAPI_VER_CURRENT) != PAPI_VER_CURRENT)
        return 1;
    for (unsigned from = 0; from < sizeof froms / sizeof *froms; from++)
        for (int in = 0; in <= ANY; in++)
            for (int modifier = -1; modifier < MODIFIERS; modifier++) {
                int status;
                pid_t child = fork();
                if (child == 0) {
                    int component = in == ANY ? 0 : PAPI_get_component_index(components[in]);
                    int before = code_of((int)from, component), code = before;
                    if (before == -1)
                        _exit(0);
                    int returned = in == ANY ? PAPI_enum_event(&code, modifier) : PAPI_enum_cmp_event(&code, modifier, component);
                    printf("from %s by %d in %s\t%d, %s, %s\n", froms[from], modifier, components[in], returned, kind(code), code == before ? "the same" : "another");
                    _exit(0);
                }
                if (child < 0 || waitpid(child, &status, 0) != child)
                    return 1;
                if (status)
                    printf("from %s by %d in %s\tended by signal %d\n", froms[from], modifier, components[in], WTERMSIG(status));
            }
    return 0;
}
