/* Assertions of the test programs, and page faults in a number that is known. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <papi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#ifdef __linux__
#include <link.h>
#endif

#define CHECK(actual, wanted)                                                                          \
    do {                                                                                               \
        long long is = (long long)(actual), to_be = (long long)(wanted);                               \
        if (is != to_be) {                                                                             \
            printf("%s:%d: %s is %lld, not %lld\n", __FILE__, __LINE__, #actual, is, to_be);           \
            exit(1);                                                                                   \
        }                                                                                              \
    } while (0)

#ifdef __linux__
static int map_object(struct dl_phdr_info *object, size_t size, void *unused)
{
    (void)size, (void)unused;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && part->p_flags & PF_R)
            for (ElfW(Addr) at = 0; at < part->p_memsz; at += 4096)
                (void)*(volatile char *)(object->dlpi_addr + part->p_vaddr + at);
    }
    return 0;
}

/* Maps every page of the program and its libraries: the first call of a function may fault for its code,
 * and how many pages one fault maps depends on how the kernel holds the file. */
static __attribute__((constructor)) void map_code(void)
{
    dl_iterate_phdr(map_object, NULL);
}
#endif

/* Touches pages that were never touched, each a page fault. */
static inline void fault(int pages)
{
    long size = 4096L * pages;
    volatile char *memory =
        mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        exit(2);
#ifdef MADV_NOHUGEPAGE
    if (madvise((void *)memory, (size_t)size, MADV_NOHUGEPAGE))
        exit(2);
#endif
    for (long at = 0; at < size; at += 4096)
        memory[at] = 1;
    munmap((void *)memory, (size_t)size);
}

static inline int code_of(const char *name)
{
    int code = 0;
    CHECK(PAPI_event_name_to_code(name, &code), PAPI_OK);
    return code;
}
