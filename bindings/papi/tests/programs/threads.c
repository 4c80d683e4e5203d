/* Threads count for themselves and have pointers of their own; a child counts after it initializes the library. */
#include "check.h"
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static void count(int pages)
{
    int set = PAPI_NULL;
    long long value = 0;
    CHECK(PAPI_create_eventset(&set), PAPI_OK);
    CHECK(PAPI_add_named_event(set, "perf::PAGE-FAULTS"), PAPI_OK);
    CHECK(PAPI_start(set), PAPI_OK);
    CHECK(PAPI_reset(set), PAPI_OK);
    fault(pages);
    CHECK(PAPI_stop(set, &value), PAPI_OK);
    CHECK(value, pages);
    CHECK(PAPI_cleanup_eventset(set), PAPI_OK);
    CHECK(PAPI_destroy_eventset(&set), PAPI_OK);
}

static long total;

static void *thread(void *argument)
{
    int pages = *(int *)argument;
    void *mine = NULL;
    CHECK(PAPI_register_thread(), PAPI_OK);
    CHECK(PAPI_get_thr_specific(PAPI_USR1_TLS, &mine), PAPI_OK);
    CHECK(mine == NULL, 1);
    CHECK(PAPI_set_thr_specific(PAPI_USR1_TLS, argument), PAPI_OK);
    for (int turn = 0; turn < 20; turn++) {
        count(pages);
        CHECK(PAPI_lock(PAPI_USR1_LOCK), PAPI_OK);
        total++;
        CHECK(PAPI_unlock(PAPI_USR1_LOCK), PAPI_OK);
    }
    CHECK(PAPI_get_thr_specific(PAPI_USR1_TLS, &mine), PAPI_OK);
    CHECK(mine == argument, 1);
    CHECK(PAPI_unregister_thread(), PAPI_OK);
    return NULL;
}

static unsigned long self(void) { return (unsigned long)pthread_self(); }

int main(void)
{
    pthread_t threads[4];
    int pages[4] = {10, 20, 30, 40}, number = 0;
    unsigned long ids[8];
    CHECK(PAPI_library_init(PAPI_VER_CURRENT), PAPI_VER_CURRENT);
    CHECK((int)PAPI_thread_id(), PAPI_EMISC);
    CHECK(PAPI_thread_init(self), PAPI_OK);
    CHECK(PAPI_thread_id() == self(), 1);
    CHECK(PAPI_is_initialized(), PAPI_LOW_LEVEL_INITED | PAPI_THREAD_LEVEL_INITED);
    for (int at = 0; at < 4; at++)
        CHECK(pthread_create(&threads[at], NULL, thread, &pages[at]), 0);
    for (int at = 0; at < 4; at++)
        CHECK(pthread_join(threads[at], NULL), 0);
    CHECK(total, 80);
    number = 8;
    CHECK(PAPI_list_threads(ids, &number), PAPI_OK);
    CHECK(number, 1);
    CHECK(ids[0] == self(), 1);
    pid_t child = fork();
    if (child == 0) {
        CHECK(PAPI_library_init(PAPI_VER_CURRENT), PAPI_VER_CURRENT);
        CHECK(PAPI_is_initialized(), PAPI_LOW_LEVEL_INITED);
        count(15);
        _exit(0);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0), child);
    CHECK(status, 0);
    count(5);
    return 0;
}
