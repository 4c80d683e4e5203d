/*
 * Regions of C programs in the ways that its argument names. The reports are read by the test that runs it.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <quipu.h>

enum { PAGES = 512, PAGE = 4096 };

#define CHECK(what)                                                                                 \
    do {                                                                                            \
        if (!(what)) {                                                                              \
            fprintf(stderr, "%s:%d: not %s\n", __FILE__, __LINE__, #what);                          \
            quipu_perror("the last error");                                                         \
            _exit(1);                                                                               \
        }                                                                                           \
    } while (0)

static volatile char *fresh(size_t pages)
{
    void *memory = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    (void)madvise(memory, pages * PAGE, MADV_NOHUGEPAGE);
    return (volatile char *)memory;
}

static void touch(volatile char *memory, size_t pages)
{
    size_t page;
    for (page = 0; page < pages; page++)
        memory[page * PAGE] = 1;
}

/* What the first calls of everything here fault for is over. */
static void warm_up(const char *name)
{
    int turn;
    for (turn = 0; turn < 3; turn++) {
        CHECK(quipu_region_begin(name) == QUIPU_OK);
        touch(fresh(1), 1);
        CHECK(quipu_region_end(name) == QUIPU_OK);
    }
}

static void fill(const char *name, size_t pages)
{
    volatile char *memory = fresh(pages);
    uint32_t region = quipu_region(name);
    warm_up("warm");
    CHECK(quipu_region_enter(region) == QUIPU_OK && quipu_region_leave(region) == QUIPU_OK);
    CHECK(quipu_region_enter(region) == QUIPU_OK);
    touch(memory, pages);
    CHECK(quipu_region_leave(region) == QUIPU_OK);
    munmap((void *)memory, pages * PAGE);
}

static void *thread_that_fills(void *name)
{
    fill((const char *)name, PAGES);
    return NULL;
}

static void *thread_that_stays(void *unused)
{
    (void)unused;
    CHECK(quipu_region_begin("stays") == QUIPU_OK);
    return NULL;
}

static void threads(void)
{
    static const char *const names[4] = {"fill 0", "fill 1", "fill 2", "fill 3"};
    pthread_t all[4], other;
    int i;
    for (i = 0; i < 4; i++)
        CHECK(pthread_create(&all[i], NULL, thread_that_fills, (void *)names[i]) == 0);
    CHECK(pthread_create(&other, NULL, thread_that_stays, NULL) == 0);
    for (i = 0; i < 4; i++)
        CHECK(pthread_join(all[i], NULL) == 0);
    CHECK(pthread_join(other, NULL) == 0);
    /* The thread that entered it has ended: nobody can leave it. */
    CHECK(quipu_region_end("stays") == QUIPU_EINVAL);
}

/* A child leaves what its parent has entered, which is nothing, and counts its own from 0. */
static void forks(void)
{
    int status;
    pid_t child;
    volatile char *memory = fresh(PAGES);
    fill("own", 10);
    CHECK(quipu_region_begin("around") == QUIPU_OK && quipu_region_begin("fork") == QUIPU_OK);
    touch(memory, PAGES);
    child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        char report[1 << 16];
        CHECK(quipu_region_end("fork") == QUIPU_OK && quipu_region_end("around") == QUIPU_OK);
        CHECK(quipu_region_end("around") == QUIPU_EINVAL);
        fill("own", 20);
        CHECK(quipu_region_report(QUIPU_REGION_CSV, report, sizeof report, NULL) == QUIPU_OK);
        CHECK(strstr(report, ",around,") == NULL && strstr(report, ",fork,") == NULL);
        CHECK(strstr(report, ",own,2,0,") != NULL && strstr(report, ",page-faults,20,20,exact") != NULL);
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(quipu_region_end("fork") == QUIPU_OK && quipu_region_end("around") == QUIPU_OK);
}

/* A child of a program in which another thread has the locks all the time. */
static volatile int ends;
static void *names_and_reports(void *unused)
{
    char name[32];
    unsigned number = 0;
    (void)unused;
    while (!ends) {
        size_t needed;
        snprintf(name, sizeof name, "name %u", number++ % 5000);
        (void)quipu_region(name);
        (void)quipu_region_report(QUIPU_REGION_CSV, NULL, 0, &needed);
    }
    return NULL;
}

static void forks_beside(void)
{
    pthread_t other;
    int turn, status;
    CHECK(pthread_create(&other, NULL, names_and_reports, NULL) == 0);
    for (turn = 0; turn < 300; turn++) {
        pid_t child;
        CHECK(quipu_region_begin("around") == QUIPU_OK);
        child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            alarm(20);
            CHECK(quipu_region_end("around") == QUIPU_OK);
            CHECK(quipu_region_begin("child") == QUIPU_OK && quipu_region_end("child") == QUIPU_OK);
            _exit(0);
        }
        CHECK(waitpid(child, &status, 0) == child && status == 0);
        CHECK(quipu_region_end("around") == QUIPU_OK);
    }
    ends = 1;
    CHECK(pthread_join(other, NULL) == 0);
}

/* Handlers enter and leave while the thread does: they are in, or refused as busy, and nothing waits for itself. */
static uint32_t handled, outer;
static volatile int in, refused, wrong;
static void handler(int number)
{
    quipu_status status = quipu_region_enter(handled);
    (void)number;
    if (status == QUIPU_EBUSY)
        refused++;
    else if (status != QUIPU_OK || quipu_region_leave(handled) != QUIPU_OK)
        wrong++;
    else
        in++;
}

static void signals(void)
{
    struct itimerval often = {{0, 50}, {0, 50}}, never = {{0, 0}, {0, 0}};
    struct sigaction action;
    long turns = 0;
    char *report = (char *)malloc(1 << 20), row[64];
    CHECK(report != NULL);
    handled = quipu_region("handled");
    outer = quipu_region("outer");
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    /* Each region once where it is entered later: from then on nothing is allocated. */
    CHECK(quipu_region_enter(outer) == QUIPU_OK);
    handler(0);
    CHECK(quipu_region_leave(outer) == QUIPU_OK);
    handler(0);
    CHECK(in == 2 && sigaction(SIGALRM, &action, NULL) == 0 && setitimer(ITIMER_REAL, &often, NULL) == 0);
    while (in < 2000 || refused < 200) {
        CHECK(quipu_region_enter(outer) == QUIPU_OK && quipu_region_leave(outer) == QUIPU_OK);
        if (++turns % 64 == 0) {
            size_t needed;
            (void)quipu_region_report(QUIPU_REGION_CSV, NULL, 0, &needed);
        }
    }
    CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0 && wrong == 0);
    CHECK(quipu_region_report(QUIPU_REGION_CSV, report, 1 << 20, NULL) == QUIPU_OK);
    snprintf(row, sizeof row, ",outer,%ld,0,", turns + 1);
    CHECK(strstr(report, row) != NULL);
    free(report);
}

/* Marks that are off are no calls. */
static void marks(void)
{
    int turn;
    for (turn = 0; turn < 3; turn++) {
        QUIPU_REGION_BEGIN("marked");
        if (turn == 2)
            QUIPU_REGION_BEGIN("inside");
        if (turn == 2)
            QUIPU_REGION_END("inside");
        QUIPU_REGION_END("marked");
    }
}

int main(int count, char **words)
{
    const char *what = count > 1 ? words[1] : "";
    alarm(120);
    if (strcmp(what, "threads") == 0)
        threads();
    else if (strcmp(what, "forks") == 0)
        forks();
    else if (strcmp(what, "forks beside") == 0)
        forks_beside();
    else if (strcmp(what, "signals") == 0)
        signals();
    else if (strcmp(what, "marks") == 0)
        marks();
    else if (strcmp(what, "exec") == 0) {
        fill("before", 7);
        CHECK(quipu_region_begin("entered") == QUIPU_OK);
        execl(words[0], words[0], "marks", (char *)NULL);
        return 1;
    } else
        return 1;
    return 0;
}
