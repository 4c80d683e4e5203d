/* Each function of papi.h with bad arguments, in each state that the library can be in, in a process of its own: prints what it returned, or the
 * signal that ended it. */
#include <papi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WILD = 1 << 30, NATIVE = 0x4ffffff0 };

static int set, none;
static long long values[16], more[16];
static int numbers[16];
static char text[4096];
static float real, process, rate;
static void *pointer;
static PAPI_option_t option;
static union { PAPI_event_info_t event; PAPI_dmem_info_t memory; } info;

static void handler(int a, void *b, long long c, void *d) { (void)a, (void)b, (void)c, (void)d; }

static const struct { const char *name; int state; } states[] = {
    {"before init", 0}, {"initialized", 1}, {"an empty set", 2}, {"a stopped set", 3}, {"a running set", 4}, {"after shutdown", 5},
};

/* Brings the library into a state; false where that cannot be had. */
static int enter(int state)
{
    set = none = PAPI_NULL;
    if (state == 0)
        return 1;
    if (PAPI_library_init(PAPI_VER_CURRENT) != PAPI_VER_CURRENT)
        return 0;
    if (state == 5) {
        PAPI_shutdown();
        return 1;
    }
    if (state == 1)
        return 1;
    if (PAPI_create_eventset(&set) != PAPI_OK)
        return 0;
    if (state == 2)
        return 1;
    if (PAPI_add_named_event(set, "perf::PAGE-FAULTS") != PAPI_OK)
        return 0;
    return state == 3 || PAPI_start(set) == PAPI_OK;
}

/* Counts the calls; makes the one that is asked for, and returns what that returned. */
#define CALL(call)                                           \
    do {                                                     \
        if (at++ == wanted) {                                \
            *name = #call;                                   \
            if (make)                                        \
                return (long long)(call);                    \
        }                                                    \
    } while (0)
#define POINTER(call) CALL((call) != NULL)
#define NOTHING(call) CALL(((call), 0))
/* What it returns is not to be compared. */
#define SOME(call) CALL(((void)(call), 0))

static long long nth(int wanted, int make, const char **name)
{
    int at = 0;
    *name = NULL;
    /* On a set that there is, or not. */
    for (int turn = 0; turn < 4; turn++) {
        int number = turn == 0 ? set : turn == 1 ? -1 : turn == 2 ? 77 : WILD;
        CALL(PAPI_accum(number, NULL));
        CALL(PAPI_accum(number, values));
        CALL(PAPI_add_event(number, 0));
        CALL(PAPI_add_event(number, (int)(PAPI_PRESET_MASK | 0x40000007)));
        CALL(PAPI_add_event(number, (int)(PAPI_PRESET_MASK | 0x7f)));
        CALL(PAPI_add_event(number, PAPI_NATIVE_MASK | 0xfffff));
        CALL(PAPI_add_events(number, NULL, 1));
        CALL(PAPI_add_events(number, numbers, 0));
        CALL(PAPI_add_events(number, numbers, -1));
        CALL(PAPI_add_events(number, numbers, 2));
        CALL(PAPI_add_named_event(number, NULL));
        CALL(PAPI_add_named_event(number, ""));
        CALL(PAPI_add_named_event(number, "no-such-event"));
        CALL(PAPI_assign_eventset_component(number, -1));
        CALL(PAPI_assign_eventset_component(number, WILD));
        CALL(PAPI_attach(number, WILD));
        CALL(PAPI_cleanup_eventset(number));
        CALL(PAPI_detach(number));
        CALL(PAPI_get_eventset_component(number));
        CALL(PAPI_get_multiplex(number));
        CALL(PAPI_get_overflow_event_index(number, 0, numbers, numbers));
        CALL(PAPI_get_overflow_event_index(number, 1, NULL, numbers));
        CALL(PAPI_get_overflow_event_index(number, 1, numbers, NULL));
        CALL(PAPI_list_events(number, NULL, NULL));
        CALL(PAPI_list_events(number, numbers, NULL));
        CALL(PAPI_num_events(number));
        CALL(PAPI_overflow(number, 0, 1000, 0, NULL));
        CALL(PAPI_overflow(number, 0, 1000, 0, handler));
        CALL(PAPI_overflow(number, NATIVE, -1, -1, handler));
        CALL(PAPI_profil(NULL, 0, NULL, 0, number, 0, 0, 0));
        CALL(PAPI_profil(values, sizeof values, NULL, 65536, number, NATIVE, 1000, PAPI_PROFIL_POSIX));
        CALL(PAPI_profil(values, sizeof values, NULL, 65536, number, NATIVE, 1000, -1));
        CALL(PAPI_read(number, NULL));
        CALL(PAPI_read(number, values));
        CALL(PAPI_read_ts(number, NULL, more));
        CALL(PAPI_read_ts(number, values, NULL));
        CALL(PAPI_remove_event(number, 0));
        CALL(PAPI_remove_event(number, NATIVE));
        CALL(PAPI_remove_events(number, NULL, 1));
        CALL(PAPI_remove_events(number, numbers, 0));
        CALL(PAPI_remove_events(number, numbers, 2));
        CALL(PAPI_remove_named_event(number, NULL));
        CALL(PAPI_remove_named_event(number, "no-such-event"));
        CALL(PAPI_reset(number));
        CALL(PAPI_set_multiplex(number));
        CALL(PAPI_sprofil(NULL, 1, number, 0, 1000, 0));
        CALL(PAPI_sprofil(pointer, 0, number, 0, 1000, 0));
        CALL(PAPI_start(number));
        CALL(PAPI_state(number, NULL));
        CALL(PAPI_stop(number, NULL));
        CALL(PAPI_write(number, NULL));
        CALL(PAPI_write(number, values));
        CALL((none = number, PAPI_destroy_eventset(&none)));
        CALL((none = number, PAPI_create_eventset(&none)));
    }
    CALL(PAPI_create_eventset(NULL));
    CALL(PAPI_destroy_eventset(NULL));
    CALL(PAPI_disable_component(-1));
    CALL(PAPI_disable_component(WILD));
    CALL(PAPI_disable_component_by_name(NULL));
    CALL(PAPI_disable_component_by_name("no-such-component"));
    CALL(PAPI_enum_cmp_event(NULL, PAPI_ENUM_FIRST, 0));
    CALL(PAPI_enum_cmp_event(numbers, PAPI_ENUM_FIRST, -1));
    CALL(PAPI_enum_cmp_event(numbers, PAPI_ENUM_FIRST, WILD));
    CALL(PAPI_enum_cmp_event(numbers, WILD, 0));
    CALL(PAPI_enum_dev_type(-1, NULL));
    CALL(PAPI_enum_dev_type(WILD, &pointer));
    CALL(PAPI_enum_event(NULL, PAPI_ENUM_FIRST));
    CALL(PAPI_enum_event(numbers, WILD));
    CALL(PAPI_epc(0, NULL, NULL, NULL, NULL, NULL, NULL));
    CALL(PAPI_epc(WILD, &real, &process, values, values, values, &rate));
    CALL(PAPI_flips_rate(0, NULL, NULL, NULL, NULL));
    CALL(PAPI_flips_rate(WILD, &real, &process, values, &rate));
    CALL(PAPI_flops_rate(0, NULL, NULL, NULL, NULL));
    CALL(PAPI_flops_rate(WILD, &real, &process, values, &rate));
    CALL(PAPI_ipc(NULL, NULL, NULL, NULL));
    CALL(PAPI_event_code_to_name(0, NULL));
    CALL(PAPI_event_code_to_name(0, text));
    CALL(PAPI_event_code_to_name(-1, text));
    CALL(PAPI_event_code_to_name(PAPI_NATIVE_MASK | 0xfffff, text));
    CALL(PAPI_event_name_to_code(NULL, numbers));
    CALL(PAPI_event_name_to_code("PAPI_TOT_CYC", NULL));
    CALL(PAPI_event_name_to_code("", numbers));
    CALL(PAPI_event_name_to_code(":::::", numbers));
    CALL(PAPI_get_cmp_opt(-1, NULL, 0));
    CALL(PAPI_get_cmp_opt(PAPI_DEF_MPX_NS, NULL, 0));
    CALL(PAPI_get_cmp_opt(PAPI_DEF_MPX_NS, NULL, WILD));
    CALL(PAPI_get_cmp_opt(WILD, &option, -1));
    CALL(PAPI_get_component_index(NULL));
    CALL(PAPI_get_component_index("no-such-component"));
    POINTER(PAPI_get_component_info(-1));
    POINTER(PAPI_get_component_info(WILD));
    CALL(PAPI_get_dev_attr(NULL, 0, 0, NULL));
    CALL(PAPI_get_dev_attr(NULL, -1, (PAPI_dev_attr_e)WILD, values));
    CALL(PAPI_get_dev_type_attr(NULL, 0, NULL));
    CALL(PAPI_get_dev_type_attr(NULL, (PAPI_dev_type_attr_e)WILD, values));
    CALL(PAPI_get_dmem_info(NULL));
    CALL(PAPI_get_event_component(0));
    CALL(PAPI_get_event_component(-1));
    CALL(PAPI_get_event_info(0, NULL));
    CALL(PAPI_get_event_info(0, &info.event));
    CALL(PAPI_get_event_info(-1, &info.event));
    POINTER(PAPI_get_executable_info());
    POINTER(PAPI_get_hardware_info());
    POINTER(PAPI_get_shared_lib_info());
    for (int which = 0; which < 32; which++) {
        CALL(PAPI_get_opt(which, NULL));
        CALL((memset(&option, 0xff, sizeof option), PAPI_get_opt(which, &option)));
        CALL(PAPI_set_opt(which, NULL));
        CALL((memset(&option, 0xff, sizeof option), PAPI_set_opt(which, &option)));
    }
    SOME(PAPI_get_real_cyc());
    SOME(PAPI_get_real_nsec());
    SOME(PAPI_get_real_usec());
    SOME(PAPI_get_virt_cyc());
    SOME(PAPI_get_virt_nsec());
    SOME(PAPI_get_virt_usec());
    CALL(PAPI_get_thr_specific(-1, NULL));
    CALL(PAPI_get_thr_specific(WILD, &pointer));
    CALL(PAPI_get_thr_specific(0, NULL));
    CALL(PAPI_set_thr_specific(-1, NULL));
    CALL(PAPI_set_thr_specific(99, NULL));
    CALL(PAPI_hl_read(NULL));
    CALL(PAPI_hl_read("never"));
    CALL(PAPI_hl_region_begin(NULL));
    CALL(PAPI_hl_region_end(NULL));
    CALL(PAPI_hl_region_end("never"));
    CALL(PAPI_hl_stop());
    CALL(PAPI_is_initialized());
    CALL(PAPI_library_init(0));
    CALL(PAPI_library_init(-1));
    CALL(PAPI_list_threads(NULL, NULL));
    CALL((numbers[0] = -1, PAPI_list_threads((unsigned long *)values, numbers)));
    CALL(PAPI_lock(-1));
    CALL(PAPI_lock(WILD));
    CALL(PAPI_unlock(-1));
    CALL(PAPI_unlock(WILD));
    CALL(PAPI_multiplex_init());
    CALL(PAPI_num_cmp_hwctrs(-1));
    CALL(PAPI_num_cmp_hwctrs(WILD));
    SOME(PAPI_num_components());
    SOME(PAPI_num_hwctrs());
    NOTHING(PAPI_perror(NULL));
    NOTHING(PAPI_perror("%s%n%d"));
    CALL(PAPI_query_event(0));
    CALL(PAPI_query_event(-1));
    CALL(PAPI_query_named_event(NULL));
    CALL(PAPI_query_named_event("no-such-event"));
    CALL(PAPI_rate_stop());
    CALL(PAPI_register_thread());
    CALL(PAPI_unregister_thread());
    SOME(PAPI_thread_id());
    CALL(PAPI_thread_init(NULL));
    CALL(PAPI_set_cmp_domain(-1, 0));
    CALL(PAPI_set_cmp_domain(1, -1));
    CALL(PAPI_set_cmp_granularity(-1, 0));
    CALL(PAPI_set_cmp_granularity(1, WILD));
    CALL(PAPI_set_debug(-1));
    CALL(PAPI_set_debug(99));
    CALL(PAPI_set_domain(-1));
    CALL(PAPI_set_domain(0));
    CALL(PAPI_set_granularity(-1));
    CALL(PAPI_set_granularity(0));
    for (int code = 2; code > -40; code--) {
        CALL(PAPI_strerror(code) == NULL);
        CALL(PAPI_strerror(code) != NULL);
    }
    POINTER(PAPI_strerror(-(WILD)));
    NOTHING(PAPI_shutdown());
    return 0;
}

int main(void)
{
    for (unsigned state = 0; state < sizeof states / sizeof *states; state++) {
        const char *name;
        for (int call = 0; nth(call, 0, &name), name; call++) {
            int pipes[2], status = 0;
            long long returned = 0;
            if (pipe(pipes))
                return 1;
            pid_t child = fork();
            if (child == 0) {
                alarm(20);
                close(2);
                if (!enter(states[state].state))
                    _exit(2);
                returned = nth(call, 1, &name);
                _exit(write(pipes[1], &returned, sizeof returned) != sizeof returned);
            }
            close(pipes[1]);
            ssize_t got = read(pipes[0], &returned, sizeof returned);
            close(pipes[0]);
            if (child < 0 || waitpid(child, &status, 0) != child)
                return 1;
            if (WIFEXITED(status) && WEXITSTATUS(status) == 2)
                continue;
            printf("%s\t%d\t%s\t", states[state].name, call, name);
            if (got == sizeof returned && WIFEXITED(status))
                printf("%lld\n", returned);
            else
                printf("ended by signal %d, status %d\n", WTERMSIG(status), WEXITSTATUS(status));
        }
    }
    return 0;
}
