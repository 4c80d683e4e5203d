/* The same five software events of the calling thread, in user mode, for every contender. */
#define EVENTS 5
#define QUIPU_EVENTS "{task-clock:u,page-faults:u,context-switches:u,cpu-migrations:u,minor-faults:u}"
#define PAPI_EVENTS                                                                                \
    {                                                                                              \
        "perf::TASK-CLOCK", "perf::PAGE-FAULTS", "perf::CONTEXT-SWITCHES", "perf::CPU-MIGRATIONS", \
            "perf::MINOR-FAULTS"                                                                   \
    }
