/* Prints what libpfm4 encodes: the PMU, a name of one event with at most one mask, and the two registers, for every
   PMU of a core, or with the argument "uncore" of a unit outside of the cores, whether it is in this machine or not. With
   "perf", it is the type and the config of the kernel's generalized events. */
#define _DEFAULT_SOURCE
#include <perfmon/pfmlib_perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void encode(const char *pmu, const char *event, const char *mask)
{
    char name[512];
    const char *colon = *mask ? ":" : "";
    snprintf(name, sizeof name, "%s::%s%s%s", pmu, event, colon, mask);
    if (strncmp(pmu, "netburst", 8) == 0) {
        /* Of a Pentium 4 what Linux takes: its driver has numbers of its own. */
        struct perf_event_attr attr;
        memset(&attr, 0, sizeof attr);
        pfm_perf_encode_arg_t perf;
        memset(&perf, 0, sizeof perf);
        perf.size = sizeof perf;
        perf.attr = &attr;
        if (pfm_get_os_event_encoding(name, PFM_PLM0 | PFM_PLM3, PFM_OS_PERF_EVENT, &perf) == PFM_SUCCESS)
            printf("%s\t%s%s%s\t%#llx\t0\n", pmu, event, colon, mask, (unsigned long long)attr.config);
        return;
    }
    pfm_pmu_encode_arg_t arg;
    memset(&arg, 0, sizeof arg);
    arg.size = sizeof arg;
    int result = pfm_get_os_event_encoding(name, PFM_PLM0 | PFM_PLM3, PFM_OS_NONE, &arg);
    if (result == PFM_SUCCESS)
        printf("%s\t%s%s%s\t%#llx\t%#llx\n", pmu, event, colon, mask, (unsigned long long)arg.codes[0],
               arg.count > 1 ? (unsigned long long)arg.codes[1] : 0);
    free(arg.codes);
}

/* Prints the type and the config of a name of the PMU perf, with its masks. */
static void encode_perf(const char *event, const char *masks)
{
    char name[512];
    struct perf_event_attr attr;
    pfm_perf_encode_arg_t perf;
    memset(&attr, 0, sizeof attr);
    memset(&perf, 0, sizeof perf);
    perf.size = sizeof perf;
    perf.attr = &attr;
    snprintf(name, sizeof name, "perf::%s%s", event, masks);
    if (pfm_get_os_event_encoding(name, PFM_PLM0 | PFM_PLM3, PFM_OS_PERF_EVENT, &perf) == PFM_SUCCESS)
        printf("perf\t%s%s\t%u\t%#llx\n", event, masks, attr.type, (unsigned long long)attr.config);
}

static void encode_all_of_perf(void)
{
    static const char *const operations[] = {"", ":READ", ":WRITE", ":PREFETCH"};
    static const char *const results[] = {"", ":ACCESS", ":MISS"};
    for (int i = 0; i < PFM_PMU_MAX; i++) {
        pfm_pmu_info_t pmu;
        memset(&pmu, 0, sizeof pmu);
        pmu.size = sizeof pmu;
        if (pfm_get_pmu_info(i, &pmu) != PFM_SUCCESS || strcmp(pmu.name, "perf") != 0)
            continue;
        for (int at = pmu.first_event; at != -1; at = pfm_get_event_next(at)) {
            pfm_event_info_t event;
            memset(&event, 0, sizeof event);
            event.size = sizeof event;
            if (pfm_get_event_info(at, PFM_OS_PERF_EVENT, &event) != PFM_SUCCESS)
                continue;
            /* Other names have their masks already. */
            int most = strncmp(event.name, "PERF_COUNT_HW_CACHE_", 20) == 0 ? 12 : 1;
            for (int masks = 0; masks < most; masks++) {
                char both[64];
                snprintf(both, sizeof both, "%s%s", operations[masks / 3], results[masks % 3]);
                encode_perf(event.name, both);
            }
        }
    }
}

static void encode_event(const char *pmu, int index)
{
    pfm_event_info_t event;
    memset(&event, 0, sizeof event);
    event.size = sizeof event;
    if (pfm_get_event_info(index, PFM_OS_NONE, &event) != PFM_SUCCESS)
        return;
    encode(pmu, event.name, "");
    for (int i = 0; i < event.nattrs; i++) {
        pfm_event_attr_info_t mask;
        memset(&mask, 0, sizeof mask);
        mask.size = sizeof mask;
        if (pfm_get_event_attr_info(index, i, PFM_OS_NONE, &mask) == PFM_SUCCESS && mask.type == PFM_ATTR_UMASK)
            encode(pmu, event.name, mask.name);
    }
}

int main(int argc, char **argv)
{
    int uncore = argc > 1 && strcmp(argv[1], "uncore") == 0;
    pfm_pmu_type_t wanted = uncore ? PFM_PMU_TYPE_UNCORE : PFM_PMU_TYPE_CORE;
    setenv("LIBPFM_ENCODE_INACTIVE", "1", 1);
    if (pfm_initialize() != PFM_SUCCESS)
        return 1;
    if (argc > 1 && strcmp(argv[1], "perf") == 0) {
        encode_all_of_perf();
        return 0;
    }
    for (int i = 0; i < PFM_PMU_MAX; i++) {
        pfm_pmu_info_t pmu;
        memset(&pmu, 0, sizeof pmu);
        pmu.size = sizeof pmu;
        if (pfm_get_pmu_info(i, &pmu) != PFM_SUCCESS || pmu.type != wanted)
            continue;
        for (int event = pmu.first_event; event != -1; event = pfm_get_event_next(event))
            encode_event(pmu.name, event);
    }
    return 0;
}
