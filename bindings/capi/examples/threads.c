/*
 * Eight threads, each with an event set of its own, each counting what it does itself.
 */
#define _DEFAULT_SOURCE /* mmap(2) and madvise(2), with -std=c11 too */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <quipu.h>

#ifndef MAP_ANONYMOUS
#define MAP_ANONYMOUS MAP_ANON
#endif

#define THREADS 8

struct job {
    pthread_t thread;
    size_t pages;
    quipu_count faults;
    int failed;
};

/* Touches so many fresh pages, once each, so that there are as many faults at least. */
static int touch(size_t pages)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *memory = mmap(NULL, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    size_t i;

    if (memory == MAP_FAILED)
        return 0;
#ifdef MADV_NOHUGEPAGE
    /* Where there are no huge pages this fails, and is not needed. */
    (void)madvise(memory, pages * page, MADV_NOHUGEPAGE);
#endif
    for (i = 0; i < pages; i++)
        ((volatile char *)memory)[i * page] = 1;
    return munmap(memory, pages * page) == 0;
}

static void *run(void *argument)
{
    struct job *job = (struct job *)argument;
    quipu_config config;
    quipu_set *set;

    job->failed = 1;
    QUIPU_INIT(config);
    config.flags = QUIPU_USER_FALLBACK;
    if (quipu_set_create(&config, &set) != QUIPU_OK || quipu_set_add(set, "page-faults") != QUIPU_OK ||
        quipu_set_open(set) != QUIPU_OK || quipu_set_start(set) != QUIPU_OK ||
        !touch(job->pages) || quipu_set_stop(set) != QUIPU_OK ||
        quipu_set_read(set, &job->faults, 1) != QUIPU_OK || quipu_set_close(set) != QUIPU_OK) {
        quipu_perror("threads");
        return NULL;
    }
    job->failed = 0;
    return NULL;
}

int main(void)
{
    struct job jobs[THREADS];
    int i;

    for (i = 0; i < THREADS; i++) {
        jobs[i].pages = (size_t)(i + 1) * 100;
        if (pthread_create(&jobs[i].thread, NULL, run, &jobs[i]) != 0) {
            fputs("threads: a thread cannot be started\n", stderr);
            return EXIT_FAILURE;
        }
    }
    for (i = 0; i < THREADS; i++) {
        if (pthread_join(jobs[i].thread, NULL) != 0 || jobs[i].failed)
            return EXIT_FAILURE;
        printf("thread %d: %zu pages touched, %" PRIu64 " faults (%s)\n", i, jobs[i].pages,
               jobs[i].faults.value, jobs[i].faults.state == QUIPU_EXACT ? "exact" : "not exact");
    }
    return EXIT_SUCCESS;
}
