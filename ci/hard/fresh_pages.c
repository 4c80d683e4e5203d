/* Writes to 512 fresh pages, as many times as the argument says, or once: so many page faults in main. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGES = 512 };

int main(int argc, char **argv)
{
    long size = sysconf(_SC_PAGESIZE);
    for (long rounds = argc > 1 ? atol(argv[1]) : 1; rounds > 0; rounds--) {
        char *pages = mmap(0, PAGES * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (pages == MAP_FAILED || madvise(pages, PAGES * size, MADV_NOHUGEPAGE))
            return 1;
        for (int i = 0; i < PAGES; i++)
            ((volatile char *)pages)[i * size] = 1;
        if (munmap(pages, PAGES * size))
            return 1;
    }
    return 0;
}
