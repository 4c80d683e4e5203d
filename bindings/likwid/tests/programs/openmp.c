/* Each of four threads touches pages of its own in a region, and in another one inside of it: as many as its number says. */
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <likwid-marker.h>

enum { THREADS = 4, PAGE = 4096, CALLS = 3 };

static int failed;

static volatile char *fresh(int pages)
{
    void *memory = mmap(NULL, (size_t)pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        exit(2);
    (void)madvise(memory, (size_t)pages * PAGE, MADV_NOHUGEPAGE);
    return (volatile char *)memory;
}

static void touch(volatile char *memory, int pages)
{
    for (int page = 0; page < pages; page++)
        memory[(size_t)page * PAGE] = 1;
}

static void fill(const char *outer, const char *inner, int pages)
{
    volatile char *memory[2] = {fresh(pages), fresh(2 * pages)};
    LIKWID_MARKER_START(outer);
    touch(memory[0], pages);
    LIKWID_MARKER_START(inner);
    touch(memory[1], 2 * pages);
    LIKWID_MARKER_STOP(inner);
    LIKWID_MARKER_STOP(outer);
    munmap((void *)memory[0], (size_t)pages * PAGE);
    munmap((void *)memory[1], (size_t)2 * pages * PAGE);
}

static void expect(const char *region, double faults, int calls)
{
    double events[8] = {0}, time = -1;
    int number = 8, count = -1;
    LIKWID_MARKER_GET(region, &number, events, &time, &count);
#pragma omp critical
    if (number != 2 || events[0] != faults || !isnan(events[1]) || count != calls || time <= 0) {
        fprintf(stderr, "thread %d, %s: %d events, %g faults of %g, %g, %d calls, %g s\n", omp_get_thread_num(), region, number,
                events[0], faults, events[1], count, time);
        failed = 1;
    }
}

int main(void)
{
    LIKWID_MARKER_INIT;
    omp_set_num_threads(THREADS);
#pragma omp parallel
    {
        LIKWID_MARKER_THREADINIT;
        LIKWID_MARKER_REGISTER("outer");
        /* Pages of code and of the library are there after the first time. */
        fill("outer", "inner", 1);
    }
#pragma omp parallel
    {
        int pages = 100 * (omp_get_thread_num() + 1);
        LIKWID_MARKER_RESET("outer");
        LIKWID_MARKER_RESET("inner");
        for (int call = 0; call < CALLS; call++)
            fill("outer", "inner", pages);
        expect("outer", 3.0 * CALLS * pages, CALLS);
        expect("inner", 2.0 * CALLS * pages, CALLS);
        /* Stopped already: refused, and nothing changes. */
        if (likwid_markerStopRegion("inner") >= 0)
            failed = 1;
        expect("inner", 2.0 * CALLS * pages, CALLS);
    }
    LIKWID_MARKER_SWITCH;
    LIKWID_MARKER_CLOSE;
    return failed;
}
