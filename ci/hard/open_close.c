/*
 * open_close SECONDS: eight threads open, start, read and close sets of software events, and count what they
 * themselves do: a page fault on each fresh page. Fails when a count is below that, or when descriptors or
 * memory have grown after a tenth of the time.
 */
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "quipu.h"

enum { THREADS = 8, PAGES = 16, MOST_KIB = 1024 };

static volatile int done;
static long rounds[THREADS];

static long descriptors(void)
{
    long count = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (readdir(dir))
        count++;
    closedir(dir);
    return count;
}

static long kib(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%*d %ld", &pages) != 1)
        exit(1);
    fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static void *work(void *number)
{
    long size = sysconf(_SC_PAGESIZE);
    while (!done) {
        quipu_set *set;
        quipu_count counts[2];
        quipu_config config;
        QUIPU_INIT(config);
        char *pages = mmap(0, PAGES * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        madvise(pages, PAGES * size, MADV_NOHUGEPAGE);
        if (quipu_set_create(&config, &set) || quipu_set_add(set, "page-faults:u,task-clock") ||
            quipu_set_open(set) || quipu_set_start(set)) {
            quipu_perror("open_close");
            exit(1);
        }
        for (int i = 0; i < PAGES; i++)
            ((volatile char *)pages)[i * size] = 1;
        if (quipu_set_read(set, counts, 2) || quipu_set_close(set) || counts[0].value < PAGES) {
            fprintf(stderr, "%llu faults\n", (unsigned long long)counts[0].value);
            exit(1);
        }
        munmap(pages, PAGES * size);
        rounds[(long)number]++;
    }
    return 0;
}

int main(int argc, char **argv)
{
    long seconds = argc > 1 ? atol(argv[1]) : 10, sum = 0;
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], 0, work, (void *)i);
    sleep(seconds / 10 + 1);
    long before = kib();
    sleep(seconds);
    long after = kib();
    done = 1;
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], 0);
        sum += rounds[i];
    }
    long left = descriptors();
    printf("%ld sets, %ld KiB then %ld KiB, %ld descriptors left\n", sum, before, after, left);
    /* ".", "..", the three standard ones and that of the directory; a few of the library's own. */
    return after > before + MOST_KIB || left > 6 + 8;
}
