/* Children of a thread that counts, and what a set means to them: after fork(2) with and without initializing the library, and
 * after execve(2). Prints what each call returned. */
#include <papi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGES = 100, PAGE = 4096 };

static const char *const kinds[] = {"counting", "overflowing", "overflowing by software"};
static const char event[] = "perf::PAGE-FAULTS";
static volatile int told;
static int calls;
static int set = PAPI_NULL;

static void handler(int a, void *b, long long c, void *d) { (void)a, (void)b, (void)c, (void)d, told++; }

static void touch(void)
{
    volatile char *pages = mmap(NULL, (size_t)PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED)
        exit(2);
    for (int page = 0; page < PAGES; page++)
        pages[page * PAGE] = 1;
    munmap((void *)pages, (size_t)PAGES * PAGE);
}

/* Makes and starts a set; what stands in the way is returned. */
static int start(int *number, int kind)
{
    int code, returned = PAPI_create_eventset(number);
    if (returned == PAPI_OK)
        returned = PAPI_add_named_event(*number, event);
    if (returned == PAPI_OK && kind > 0) {
        PAPI_event_name_to_code(event, &code);
        returned = PAPI_overflow(*number, code, PAGES / 10, kind == 2 ? PAPI_OVERFLOW_FORCE_SW : 0, handler);
    }
    return returned == PAPI_OK ? PAPI_start(*number) : returned;
}

static const char *all_or(long long count) { return count >= PAGES ? "all" : count > 0 ? "some" : "none"; }

/* Software looks at its own times, which is not told. */
static const char *often(int kind) { return kind == 2 ? "?" : told > 5 ? "often" : told ? "seldom" : "never"; }

static void child(const char *what, int kind, int initializes)
{
    long long value = 0, before;
    int state = -1, own = PAPI_NULL, returned;
    told = 0;
#define SAY(call, format, ...) \
    do { \
        returned = call; \
        printf("%s, %d: %s\t%d" format "\n", what, ++calls, #call, returned, __VA_ARGS__); \
    } while (0)
    if (initializes)
        SAY(PAPI_library_init(PAPI_VER_CURRENT) == PAPI_VER_CURRENT, "%s", "");
    SAY(PAPI_is_initialized(), "%s", "");
    SAY(PAPI_state(set, &state), ", state %d", state);
    SAY(PAPI_num_events(set), "%s", "");
    SAY(PAPI_read(set, &value), ", %s", all_or(value));
    before = value;
    touch();
    SAY(PAPI_read(set, &value), " again, %s more, told %s", all_or(value - before), often(kind));
    told = 0;
    SAY(start(&own, kind), "%s", "");
    touch();
    value = 0;
    SAY(PAPI_stop(own, &value), ", %s, told %s", all_or(value), often(kind));
    SAY(PAPI_stop(set, &value), "%s", "");
    SAY(PAPI_start(set), "%s", "");
    SAY(PAPI_cleanup_eventset(set), "%s", "");
    SAY(PAPI_destroy_eventset(&set), "%s", "");
    PAPI_shutdown();
    exit(0);
}

static void parent(int kind, int initializes)
{
    char what[80];
    long long value = 0;
    int status, returned;
    snprintf(what, sizeof what, "a %s set, %s", kinds[kind], initializes ? "initialized again" : "not initialized again");
    if (PAPI_library_init(PAPI_VER_CURRENT) != PAPI_VER_CURRENT)
        exit(2);
    int ready[2];
    if (pipe(ready))
        exit(2);
    SAY(start(&set, kind), "%s", "");
    touch();
    pid_t other = fork();
    if (other == 0) {
        char byte;
        if (read(ready[0], &byte, 1) != 1)
            exit(2);
        child(what, kind, initializes);
    }
    /* Pages that are copied on write fault here, and not while the child reads what its parent counts. */
    if (waitpid(other, &status, WNOHANG) != 0 || write(ready[1], "", 1) != 1)
        exit(2);
    if (waitpid(other, &status, 0) != other)
        exit(2);
    printf("%s, the child ended with\t%d\n", what, status);
    told = 0;
    touch();
    returned = PAPI_stop(set, &value);
    printf("%s, in the parent then\t%d, %s, told %s\n", what, returned, all_or(value), often(kind));
    exit(0);
}

/* Executes this program once more, which counts again. */
static void executor(int kind)
{
    char number[2] = {(char)('0' + kind), 0};
    if (PAPI_library_init(PAPI_VER_CURRENT) != PAPI_VER_CURRENT || start(&set, kind) != PAPI_OK)
        exit(2);
    execl("/proc/self/exe", "children", number, NULL);
    exit(2);
}

static int executed(int kind)
{
    char what[80];
    long long value = 0;
    int returned, own = PAPI_NULL;
    snprintf(what, sizeof what, "executed from a %s set", kinds[kind]);
    SAY(PAPI_library_init(PAPI_VER_CURRENT) == PAPI_VER_CURRENT, "%s", "");
    SAY(start(&own, kind), "%s", "");
    touch();
    SAY(PAPI_stop(own, &value), ", %s, told %s", all_or(value), often(kind));
    return 0;
}

int main(int count, char **words)
{
    setvbuf(stdout, NULL, _IONBF, 0);
    alarm(60);
    if (count > 1)
        return executed(atoi(words[1]));
    for (int kind = 0; kind < 3; kind++)
        for (int how = 0; how < 3; how++) {
            int status;
            pid_t other = fork();
            if (other == 0) {
                if (how == 2)
                    executor(kind);
                parent(kind, how);
            }
            if (waitpid(other, &status, 0) != other || status)
                printf("a %s set, %d, ended with\t%d\n", kinds[kind], how, status);
        }
    return 0;
}
