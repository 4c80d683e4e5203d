/* Overflow by the timer and by the clock of the kernel: the handler is called in the thread that counts, with an address inside of the program. */
#include "check.h"
#include <string.h>

static volatile int calls;
static volatile long long vectors;
static void *volatile last_address;

static void handler(int set, void *address, long long vector, void *context)
{
    long long value = 0;
    if (context == NULL || PAPI_read(set, &value) != PAPI_OK || value <= 0)
        abort();
    calls++;
    vectors |= vector;
    last_address = address;
}

static volatile unsigned long sink;

/* Takes CPU time until a value is reached. */
static void work(int set, long long until)
{
    long long value = 0;
    while (value < until) {
        for (int turn = 0; turn < 200000; turn++)
            sink += (unsigned long)turn * 7;
        CHECK(PAPI_read(set, &value), PAPI_OK);
    }
}

int main(void)
{
    int set = PAPI_NULL, positions[4], number = 4;
    CHECK(PAPI_library_init(PAPI_VER_CURRENT), PAPI_VER_CURRENT);
    CHECK(PAPI_create_eventset(&set), PAPI_OK);
    CHECK(PAPI_add_named_event(set, "perf::TASK-CLOCK"), PAPI_OK);
    int clock = code_of("perf::TASK-CLOCK");
    CHECK(PAPI_overflow(set, clock, 0, 0, handler), PAPI_EINVAL);
    CHECK(PAPI_overflow(set, clock, 1000, 0, NULL), PAPI_EINVAL);
    CHECK(PAPI_overflow(set, clock, -1, 0, handler), PAPI_EINVAL);
    CHECK(PAPI_overflow(set, code_of("perf::CPU-CLOCK"), 1000, 0, handler), PAPI_ENOEVNT);
    CHECK(PAPI_overflow(set, clock, 20000000, PAPI_OVERFLOW_FORCE_SW, handler), PAPI_OK);
    int state = 0;
    CHECK(PAPI_state(set, &state), PAPI_OK);
    CHECK(state, PAPI_STOPPED | PAPI_OVERFLOWING);
    CHECK(PAPI_start(set), PAPI_OK);
    CHECK(PAPI_overflow(set, clock, 0, 0, handler), PAPI_EISRUN);
    work(set, 300000000);
    CHECK(PAPI_stop(set, NULL), PAPI_OK);
    CHECK(calls >= 3, 1);
    CHECK(calls <= 30, 1);
    CHECK(vectors, 1);
    CHECK(last_address != NULL, 1);
    CHECK(PAPI_get_overflow_event_index(set, vectors, positions, &number), PAPI_OK);
    CHECK(number, 1);
    CHECK(positions[0], 0);
    int before = calls;
    for (int turn = 0; turn < 50000000; turn++)
        sink += (unsigned long)turn;
    CHECK(calls, before);
    CHECK(PAPI_overflow(set, clock, 0, 0, handler), PAPI_OK);
    CHECK(PAPI_state(set, &state), PAPI_OK);
    CHECK(state, PAPI_STOPPED);

    static unsigned int buckets[1];
    CHECK(PAPI_profil(buckets, sizeof buckets, NULL, 1, set, clock, 20000000, 0), PAPI_EINVAL);
    CHECK(PAPI_profil(buckets, sizeof buckets, NULL, 2, set, clock, 20000000,
                      PAPI_PROFIL_BUCKET_16 | PAPI_PROFIL_BUCKET_32), PAPI_EINVAL);
    CHECK(PAPI_profil(buckets, sizeof buckets, NULL, 2, set, clock, 20000000, PAPI_PROFIL_BUCKET_32), PAPI_OK);
    CHECK(PAPI_state(set, &state), PAPI_OK);
    CHECK(state, PAPI_STOPPED | PAPI_OVERFLOWING | PAPI_PROFILING);
    CHECK(PAPI_start(set), PAPI_OK);
    work(set, 300000000);
    CHECK(PAPI_stop(set, NULL), PAPI_OK);
    CHECK(calls, before);
    CHECK(buckets[0] >= 3, 1);
    CHECK(PAPI_profil(buckets, sizeof buckets, NULL, 2, set, clock, 0, PAPI_PROFIL_BUCKET_32), PAPI_OK);
    CHECK(PAPI_state(set, &state), PAPI_OK);
    CHECK(state, PAPI_STOPPED);
    return 0;
}
