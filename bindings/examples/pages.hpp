// The work that the examples measure: fresh pages, each of which faults once when it is touched.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <sys/mman.h>
#include <unistd.h>

inline void touch_fresh_pages(std::size_t pages) {
    static const std::size_t size = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    void *memory = mmap(nullptr, pages * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        std::abort();
#ifdef MADV_NOHUGEPAGE
    madvise(memory, pages * size, MADV_NOHUGEPAGE);
#endif
    for (std::size_t at = 0; at < pages * size; at += size)
        static_cast<volatile char *>(memory)[at] = 1;
    munmap(memory, pages * size);
}
