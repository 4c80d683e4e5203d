/* Each option with values that are right, in each state of an event set, each in a forked process: prints what setting it returned, what is then
 * read back, and whether the set starts. */
#include <papi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static int handler(int code) { return code; }

/* An option and its members: numbers in the order of papi.h. */
static const struct { const char *name; int option, first, second, third; } values[] = {
    {"PAPI_DETACH", PAPI_DETACH, 0, 0, 0},
    {"PAPI_DEBUG quiet", PAPI_DEBUG, PAPI_QUIET, 0, 0},
    {"PAPI_DEBUG with a handler", PAPI_DEBUG, PAPI_VERB_ECONT, 1, 0},
    {"PAPI_MULTIPLEX", PAPI_MULTIPLEX, 0, PAPI_MULTIPLEX_DEFAULT, 0},
    {"PAPI_MULTIPLEX of 1 ms", PAPI_MULTIPLEX, 1000000, PAPI_MULTIPLEX_DEFAULT, 0},
    {"PAPI_MULTIPLEX by software", PAPI_MULTIPLEX, 1000000, PAPI_MULTIPLEX_FORCE_SW, 0},
    {"PAPI_DEFDOM user", PAPI_DEFDOM, PAPI_DOM_USER, 0, 0},
    {"PAPI_DEFDOM kernel", PAPI_DEFDOM, PAPI_DOM_KERNEL, 0, 0},
    {"PAPI_DEFDOM user and kernel", PAPI_DEFDOM, PAPI_DOM_USER | PAPI_DOM_KERNEL, 0, 0},
    {"PAPI_DEFDOM other", PAPI_DEFDOM, PAPI_DOM_OTHER, 0, 0},
    {"PAPI_DEFDOM supervisor", PAPI_DEFDOM, PAPI_DOM_SUPERVISOR, 0, 0},
    {"PAPI_DEFDOM all", PAPI_DEFDOM, PAPI_DOM_ALL, 0, 0},
    {"PAPI_DEFDOM all of a component without counters", PAPI_DEFDOM, PAPI_DOM_ALL, 1, 0},
    {"PAPI_DOMAIN user", PAPI_DOMAIN, PAPI_DOM_USER, 0, 0},
    {"PAPI_DOMAIN kernel", PAPI_DOMAIN, PAPI_DOM_KERNEL, 0, 0},
    {"PAPI_DOMAIN user and kernel", PAPI_DOMAIN, PAPI_DOM_USER | PAPI_DOM_KERNEL, 0, 0},
    {"PAPI_DOMAIN other", PAPI_DOMAIN, PAPI_DOM_OTHER, 0, 0},
    {"PAPI_DOMAIN supervisor", PAPI_DOMAIN, PAPI_DOM_SUPERVISOR, 0, 0},
    {"PAPI_DOMAIN all", PAPI_DOMAIN, PAPI_DOM_ALL, 0, 0},
    {"PAPI_DEFGRN thread", PAPI_DEFGRN, PAPI_GRN_THR, 0, 0},
    {"PAPI_DEFGRN process", PAPI_DEFGRN, PAPI_GRN_PROC, 0, 0},
    {"PAPI_DEFGRN process group", PAPI_DEFGRN, PAPI_GRN_PROCG, 0, 0},
    {"PAPI_DEFGRN CPU", PAPI_DEFGRN, PAPI_GRN_SYS, 0, 0},
    {"PAPI_DEFGRN all CPUs", PAPI_DEFGRN, PAPI_GRN_SYS_CPU, 0, 0},
    {"PAPI_DEFGRN CPU of a component without counters", PAPI_DEFGRN, PAPI_GRN_SYS, 1, 0},
    {"PAPI_GRANUL thread", PAPI_GRANUL, PAPI_GRN_THR, 0, 0},
    {"PAPI_GRANUL process", PAPI_GRANUL, PAPI_GRN_PROC, 0, 0},
    {"PAPI_GRANUL process group", PAPI_GRANUL, PAPI_GRN_PROCG, 0, 0},
    {"PAPI_GRANUL CPU", PAPI_GRANUL, PAPI_GRN_SYS, 0, 0},
    {"PAPI_GRANUL all CPUs", PAPI_GRANUL, PAPI_GRN_SYS_CPU, 0, 0},
    {"PAPI_DEF_MPX_NS", PAPI_DEF_MPX_NS, 1000000, 0, 0},
    {"PAPI_MAX_MPX_CTRS", PAPI_MAX_MPX_CTRS, 0, 0, 0},
    {"PAPI_PRELOAD", PAPI_PRELOAD, 0, 0, 0},
    {"PAPI_CLOCKRATE", PAPI_CLOCKRATE, 0, 0, 0},
    {"PAPI_MAX_HWCTRS", PAPI_MAX_HWCTRS, 0, 0, 0},
    {"PAPI_HWINFO", PAPI_HWINFO, 0, 0, 0},
    {"PAPI_EXEINFO", PAPI_EXEINFO, 0, 0, 0},
    {"PAPI_MAX_CPUS", PAPI_MAX_CPUS, 0, 0, 0},
    {"PAPI_ATTACH to a child", PAPI_ATTACH, 1, 0, 0},
    {"PAPI_ATTACH to itself", PAPI_ATTACH, 0, 0, 0},
    {"PAPI_SHLIBINFO", PAPI_SHLIBINFO, 0, 0, 0},
    {"PAPI_LIB_VERSION", PAPI_LIB_VERSION, 0, 0, 0},
    {"PAPI_COMPONENTINFO", PAPI_COMPONENTINFO, 0, 0, 0},
    {"PAPI_DATA_ADDRESS", PAPI_DATA_ADDRESS, 0, 0, 0},
    {"PAPI_INSTR_ADDRESS", PAPI_INSTR_ADDRESS, 0, 0, 0},
    {"PAPI_DEF_ITIMER", PAPI_DEF_ITIMER, ITIMER_VIRTUAL, SIGVTALRM, 5000000},
    {"PAPI_DEF_ITIMER without an interval", PAPI_DEF_ITIMER, ITIMER_REAL, SIGALRM, 0},
    {"PAPI_DEF_ITIMER_NS", PAPI_DEF_ITIMER_NS, 0, 0, 5000000},
    {"PAPI_DEF_ITIMER_NS of 0", PAPI_DEF_ITIMER_NS, 0, 0, 0},
    {"PAPI_CPU_ATTACH", PAPI_CPU_ATTACH, 0, 0, 0},
    {"PAPI_INHERIT all", PAPI_INHERIT, PAPI_INHERIT_ALL, 0, 0},
    {"PAPI_INHERIT none", PAPI_INHERIT, PAPI_INHERIT_NONE, 0, 0},
    {"PAPI_USER_EVENTS_FILE", PAPI_USER_EVENTS_FILE, 0, 0, 0},
};

static const char *const states[] = {
    "no set", "a new set", "a set of a component", "a set of an event", "a running set", "an attached set", "a set of a CPU", "a multiplexed set",
    "an inherited set", "a cleaned up set",
};

static int set = PAPI_NULL;
static pid_t other;
static PAPI_option_t option;

/* Brings the library into a state; false where that cannot be had. */
static int enter(unsigned state)
{
    if (state == 0)
        return 1;
    if (PAPI_create_eventset(&set) != PAPI_OK)
        return 0;
    if (state == 1)
        return 1;
    if (PAPI_assign_eventset_component(set, 0) != PAPI_OK)
        return 0;
    if (state == 2)
        return 1;
    if (state == 7)
        return PAPI_set_multiplex(set) == PAPI_OK;
    if (PAPI_add_named_event(set, "perf::PAGE-FAULTS") != PAPI_OK)
        return 0;
    memset(&option, 0, sizeof option);
    option.inherit.eventset = option.cpu.eventset = set;
    switch (state) {
    case 4: return PAPI_start(set) == PAPI_OK;
    case 5: return PAPI_attach(set, (unsigned long)other) == PAPI_OK;
    case 6: return PAPI_set_opt(PAPI_CPU_ATTACH, &option) == PAPI_OK;
    case 8: return option.inherit.inherit = 1, PAPI_set_opt(PAPI_INHERIT, &option) == PAPI_OK;
    case 9: return PAPI_cleanup_eventset(set) == PAPI_OK;
    default: return 1;
    }
}

/* Fills in the members of an option. */
static void fill(unsigned at)
{
    int first = values[at].first, second = values[at].second, third = values[at].third;
    memset(&option, 0, sizeof option);
    switch (values[at].option) {
    case PAPI_DEBUG: option.debug.level = first, option.debug.handler = second ? handler : NULL; break;
    case PAPI_MULTIPLEX: option.multiplex.eventset = set, option.multiplex.ns = first, option.multiplex.flags = second; break;
    case PAPI_DEF_MPX_NS: option.multiplex.ns = first; break;
    case PAPI_DEFDOM: option.defdomain.domain = first, option.defdomain.def_cidx = second ? PAPI_get_component_index("sysdetect") : 0; break;
    case PAPI_DOMAIN: option.domain.eventset = set, option.domain.domain = first; break;
    case PAPI_DEFGRN: option.defgranularity.granularity = first, option.defgranularity.def_cidx = second ? PAPI_get_component_index("sysdetect") : 0; break;
    case PAPI_GRANUL: option.granularity.eventset = set, option.granularity.granularity = first; break;
    case PAPI_DETACH:
    case PAPI_ATTACH: option.attach.eventset = set, option.attach.tid = (unsigned long)(first ? other : getpid()); break;
    case PAPI_CPU_ATTACH: option.cpu.eventset = set, option.cpu.cpu_num = (unsigned)first; break;
    case PAPI_DEF_ITIMER:
    case PAPI_DEF_ITIMER_NS: option.itimer.itimer_num = first, option.itimer.itimer_sig = second, option.itimer.ns = third; break;
    case PAPI_INHERIT: option.inherit.eventset = set, option.inherit.inherit = first; break;
    case PAPI_DATA_ADDRESS:
    case PAPI_INSTR_ADDRESS: option.addr.eventset = set, option.addr.start = (void *)4096, option.addr.end = (void *)8192; break;
    default: break;
    }
}

/* Writes the members of an option as they were read back; what is of the machine, as whether it is there. */
static int show(char *to, size_t room, unsigned at, int got)
{
    const char *is_there = got > 0 ? "some" : "none";
    switch (values[at].option) {
    case PAPI_DEBUG: return snprintf(to, room, "%d level %d, %s", got, option.debug.level, option.debug.handler == handler ? "the handler" : "no handler");
    case PAPI_MULTIPLEX: return snprintf(to, room, "%d ns %d flags %d", got, option.multiplex.ns, option.multiplex.flags);
    case PAPI_DEF_MPX_NS: return snprintf(to, room, "%d ns %d", got, option.multiplex.ns);
    case PAPI_DOMAIN: return snprintf(to, room, "%d domain %d", got, option.domain.domain);
    case PAPI_GRANUL: return snprintf(to, room, "%d granularity %d", got, option.granularity.granularity);
    case PAPI_DETACH:
    case PAPI_ATTACH: {
        unsigned long tid = option.attach.tid;
        return snprintf(to, room, "%d tid of %s", got, tid == 0 ? "none" : tid == (unsigned long)other ? "the child" : tid == (unsigned long)getpid() ? "its own" : "another");
    }
    case PAPI_CPU_ATTACH: return snprintf(to, room, "%d CPU %u", got, option.cpu.cpu_num);
    case PAPI_DEF_ITIMER: return snprintf(to, room, "%d timer %d signal %d ns %d flags %d", got, option.itimer.itimer_num, option.itimer.itimer_sig, option.itimer.ns, option.itimer.flags);
    case PAPI_DEF_ITIMER_NS: return snprintf(to, room, "%d ns %d", got, option.itimer.ns);
    case PAPI_INHERIT: return snprintf(to, room, "%d inherit %d", got, option.inherit.inherit);
    case PAPI_PRELOAD: return snprintf(to, room, "%d %s '%c' %s '%c'", got, option.preload.lib_preload_env, option.preload.lib_preload_sep, option.preload.lib_dir_env, option.preload.lib_dir_sep);
    case PAPI_HWINFO: return snprintf(to, room, "%d, %d CPUs", got, option.hw_info ? option.hw_info->totalcpus : -1);
    case PAPI_EXEINFO: return snprintf(to, room, "%d, %s", got, option.exe_info ? strrchr(option.exe_info->fullname, '/') : "none");
    case PAPI_SHLIBINFO: return snprintf(to, room, "%d, %s", got, option.shlib_info && option.shlib_info->count > 1 ? "some" : "none");
    case PAPI_COMPONENTINFO: return snprintf(to, room, "%d, %s", got, option.cmp_info ? option.cmp_info->name : "none");
    case PAPI_CLOCKRATE:
    case PAPI_MAX_HWCTRS: return snprintf(to, room, "%s", is_there);
    default: return snprintf(to, room, "%d", got);
    }
}

/* Sets an option and writes what came of it. */
static void try(char *to, size_t room, unsigned at)
{
    long long read[8] = {0};
    int state = -1, length;
    fill(at);
    length = snprintf(to, room, "%d; ", PAPI_set_opt(values[at].option, &option));
    fill(at);
    length += show(to + length, room - (size_t)length, at, PAPI_get_opt(values[at].option, &option));
    if (PAPI_state(set, &state) != PAPI_OK)
        return;
    int started = PAPI_start(set);
    int stopped = PAPI_stop(set, read);
    snprintf(to + length, room - (size_t)length, "; state %d; started %d, stopped %d", state, started, stopped);
}

int main(void)
{
    if (PAPI_library_init(PAPI_VER_CURRENT) != PAPI_VER_CURRENT)
        return 1;
    other = fork();
    if (other == 0)
        for (;;)
            pause();
    for (unsigned state = 0; state < sizeof states / sizeof *states; state++)
        for (unsigned at = 0; at < sizeof values / sizeof *values; at++) {
            char said[256] = "";
            int pipes[2], status = 0;
            if (pipe(pipes))
                return 1;
            pid_t child = fork();
            if (child == 0) {
                alarm(20);
                close(2);
                if (!enter(state))
                    _exit(2);
                try(said, sizeof said, at);
                _exit(write(pipes[1], said, strlen(said)) < 0);
            }
            close(pipes[1]);
            ssize_t got = read(pipes[0], said, sizeof said - 1);
            close(pipes[0]);
            if (child < 0 || waitpid(child, &status, 0) != child)
                return 1;
            if (WIFEXITED(status) && WEXITSTATUS(status) == 2)
                continue;
            said[got > 0 ? got : 0] = 0;
            if (WIFEXITED(status))
                printf("%s of %s\t%s\n", values[at].name, states[state], said);
            else
                printf("%s of %s\tended by signal %d\n", values[at].name, states[state], WTERMSIG(status));
        }
    kill(other, SIGKILL);
    return 0;
}
