/* Overflow by the kernel's signal: as many calls of the handler as the threshold is contained in what occurred, in the thread
 * that counts, with the address of the instruction. */
#include "check.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { PAGE = 65536 };

static volatile int calls, wrong, stops;
static volatile long long vectors;
static pthread_t thread;
static int faults;

static char *fresh(int pages)
{
    char *place = mmap(NULL, (size_t)pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (place == MAP_FAILED)
        abort();
    madvise(place, (size_t)pages * PAGE, MADV_NOHUGEPAGE);
    return place;
}

/* Each page is missing once, in this function. */
__attribute__((noinline)) static void touch(char *place, int pages)
{
    for (int page = 0; page < pages; page++)
        ((volatile char *)place)[(long)page * PAGE] = 1;
}
__attribute__((noinline)) static void behind_touch(void) { __asm__ volatile(""); }

static void handler(int set, void *address, long long vector, void *context)
{
    long long values[2] = {0, 0};
    int saved = errno;
    if (context == NULL || !pthread_equal(pthread_self(), thread) || PAPI_read(set, values) != PAPI_OK)
        wrong++;
    if ((char *)address < (char *)touch || (char *)address >= (char *)touch + 4096)
        wrong++;
    calls++;
    vectors |= vector;
    if (stops && PAPI_stop(set, NULL) != PAPI_OK)
        wrong++;
    /* Memory is neither allocated nor freed here, also of a set that the handler has stopped. */
    int own = set, none = PAPI_NULL;
    if (PAPI_cleanup_eventset(set) != PAPI_EISRUN || PAPI_destroy_eventset(&own) != PAPI_EISRUN ||
        PAPI_add_named_event(set, "perf::MAJOR-FAULTS") != PAPI_EISRUN || PAPI_remove_event(set, faults) != PAPI_EISRUN ||
        PAPI_create_eventset(&none) != PAPI_EISRUN || none != PAPI_NULL)
        wrong++;
    errno = saved + 1;
}

/* Counts a set over page faults, and returns the value of the first event. */
static long long count(int set, int pages)
{
    long long values[2] = {0, 0};
    char *place = fresh(pages);
    calls = 0;
    vectors = 0;
    wrong = 0;
    errno = 77;
    CHECK(PAPI_start(set), PAPI_OK);
    touch(place, pages);
    CHECK(errno, 77);
    if (!stops)
        CHECK(PAPI_stop(set, values), PAPI_OK);
    munmap(place, (size_t)pages * PAGE);
    CHECK(wrong, 0);
    return values[0];
}

static void *elsewhere(void *unused)
{
    (void)unused;
    int set = PAPI_NULL;
    CHECK(PAPI_create_eventset(&set), PAPI_OK);
    CHECK(PAPI_add_event(set, faults), PAPI_OK);
    CHECK(PAPI_overflow(set, faults, 5, 0, handler), PAPI_OK);
    thread = pthread_self();
    CHECK(count(set, 50), 50);
    CHECK(calls, 10);
    CHECK(PAPI_cleanup_eventset(set), PAPI_OK);
    CHECK(PAPI_destroy_eventset(&set), PAPI_OK);
    return NULL;
}

int main(void)
{
    int set = PAPI_NULL;
    thread = pthread_self();
    CHECK(PAPI_library_init(PAPI_VER_CURRENT), PAPI_VER_CURRENT);
    CHECK(PAPI_thread_init((unsigned long (*)(void))pthread_self), PAPI_OK);
    const PAPI_component_info_t *component = PAPI_get_component_info(0);
    CHECK(component->hardware_intr, 1);
    CHECK(component->hardware_intr_sig, SIGRTMIN + 2);
    faults = code_of("perf::PAGE-FAULTS:u=1");
    int minor = code_of("perf::MINOR-FAULTS:u=1");
    CHECK(PAPI_create_eventset(&set), PAPI_OK);
    CHECK(PAPI_add_event(set, faults), PAPI_OK);
    CHECK(PAPI_add_event(set, minor), PAPI_OK);
    touch(fresh(1), 1);
    behind_touch();

    /* One event of two, the second: 7 is contained 14 times in 100, and 2 that are left are forgotten. */
    CHECK(PAPI_overflow(set, minor, 7, 0, handler), PAPI_OK);
    /* The first time, pages of the library's code may be missing too. */
    count(set, 100);
    for (int turn = 0; turn < 3; turn++) {
        CHECK(count(set, 100), 100);
        CHECK(calls, 14);
        CHECK(vectors, 2);
    }
    /* Both, each fault being an overflow of the first. */
    CHECK(PAPI_overflow(set, faults, 1, 0, handler), PAPI_OK);
    CHECK(count(set, 70), 70);
    CHECK(calls, 80);
    CHECK(vectors, 3);
    CHECK(PAPI_overflow(set, minor, 10, PAPI_OVERFLOW_FORCE_SW, handler), PAPI_ECNFLCT);
    CHECK(PAPI_overflow(set, faults, 0, 0, handler), PAPI_OK);
    CHECK(count(set, 70), 70);
    CHECK(calls, 10);

    /* A handler that stops the set is called once. */
    stops = 1;
    count(set, 70);
    CHECK(calls, 1);
    int state = 0;
    CHECK(PAPI_state(set, &state), PAPI_OK);
    CHECK(state, PAPI_STOPPED | PAPI_OVERFLOWING);
    stops = 0;

    CHECK(PAPI_overflow(set, minor, 0, 0, handler), PAPI_OK);

    /* In the thread that counts, while others do not. */
    pthread_t other;
    CHECK(pthread_create(&other, NULL, elsewhere, NULL), 0);
    CHECK(pthread_join(other, NULL), 0);
    thread = pthread_self();

    /* A profile has a bucket counted up for each overflow. */
    static unsigned int bucket[1];
    CHECK(PAPI_profil(bucket, sizeof bucket, NULL, 2, set, faults, 4, PAPI_PROFIL_BUCKET_32), PAPI_OK);
    CHECK(count(set, 100), 100);
    CHECK(calls, 0);
    CHECK(bucket[0], 25);
    CHECK(PAPI_profil(bucket, sizeof bucket, NULL, 2, set, faults, 0, PAPI_PROFIL_BUCKET_32), PAPI_OK);
    CHECK(PAPI_cleanup_eventset(set), PAPI_OK);
    CHECK(PAPI_destroy_eventset(&set), PAPI_OK);
    return 0;
}
