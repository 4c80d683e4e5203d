/*
 * storm threads|forks NUMBER: so many threads, or child processes, eight at a time, each of which writes to four
 * fresh pages. A line on standard input starts it. Prints the page faults that the kernel's own account
 * (getrusage(2)) says it took.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGES = 4, TOGETHER = 8 };

static void *work(void *unused)
{
    long size = sysconf(_SC_PAGESIZE);
    char *pages = mmap(0, PAGES * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED)
        exit(1);
    for (int i = 0; i < PAGES; i++)
        ((volatile char *)pages)[i * size] = 1;
    munmap(pages, PAGES * size);
    return unused;
}

static long faults(void)
{
    struct rusage own, children;
    getrusage(RUSAGE_SELF, &own);
    getrusage(RUSAGE_CHILDREN, &children);
    return own.ru_minflt + own.ru_majflt + children.ru_minflt + children.ru_majflt;
}

int main(int argc, char **argv)
{
    long number = argc > 2 ? atol(argv[2]) : 0;
    int forks = argc > 1 && !strcmp(argv[1], "forks");
    getchar();
    long before = faults();
    for (; number > 0; number -= TOGETHER) {
        pthread_t threads[TOGETHER];
        for (int i = 0; i < TOGETHER; i++) {
            if (!forks && pthread_create(&threads[i], 0, work, 0))
                return 1;
            if (!forks)
                continue;
            switch (fork()) {
            case -1: return 1;
            case 0: work(0); _exit(0);
            }
        }
        for (int i = 0; i < TOGETHER; i++)
            if (forks ? wait(0) < 0 : pthread_join(threads[i], 0))
                return 1;
    }
    printf("%ld\n", faults() - before);
    return 0;
}
