/* The bare system calls: what the calls of the library are measured against. */
#include <linux/perf_event.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOST 5

static const uint64_t events[2][MOST] = {
    {
        PERF_COUNT_SW_PAGE_FAULTS,
        PERF_COUNT_SW_TASK_CLOCK,
        PERF_COUNT_SW_CONTEXT_SWITCHES,
        PERF_COUNT_SW_CPU_MIGRATIONS,
        PERF_COUNT_SW_PAGE_FAULTS_MIN,
    },
    {
        PERF_COUNT_HW_INSTRUCTIONS,
        PERF_COUNT_HW_CPU_CYCLES,
        PERF_COUNT_HW_BRANCH_INSTRUCTIONS,
        PERF_COUNT_HW_BRANCH_MISSES,
        PERF_COUNT_HW_CACHE_REFERENCES,
    },
};
static int fds[MOST];
static int opened;
static struct perf_event_mmap_page *pages[MOST];
/* What was read: values, and both times. */
static volatile uint64_t values[MOST], enabled, running;

int raw_open(int hardware, int count)
{
    for (opened = 0; opened < count; opened++) {
        struct perf_event_attr attr = {
            .type = hardware ? PERF_TYPE_HARDWARE : PERF_TYPE_SOFTWARE,
            .size = sizeof attr,
            .config = events[hardware][opened],
            .disabled = opened == 0,
            .exclude_kernel = 1,
            .exclude_hv = 1,
            .read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
        };

        if (count > 1)
            attr.read_format |= PERF_FORMAT_GROUP | PERF_FORMAT_ID;
        fds[opened] = (int)syscall(SYS_perf_event_open, &attr, 0, -1, opened ? fds[0] : -1,
                                   PERF_FLAG_FD_CLOEXEC);
        if (fds[opened] < 0)
            return -1;
        if (count > 1) {
            uint64_t id;

            if (ioctl(fds[opened], PERF_EVENT_IOC_ID, &id) < 0)
                return -1;
        }
        pages[opened] = hardware ? mmap(NULL, sysconf(_SC_PAGESIZE), PROT_READ, MAP_SHARED, fds[opened], 0) : NULL;
    }
    return 0;
}

int raw_start(void)
{
    return ioctl(fds[0], PERF_EVENT_IOC_ENABLE, 0);
}

int raw_stop(void)
{
    return ioctl(fds[0], PERF_EVENT_IOC_DISABLE, 0);
}

int raw_read(void)
{
    uint64_t words[3 + 2 * MOST];

    return read(fds[0], words, sizeof words) > 0 ? 0 : -1;
}

/* The loop of the header's comment for each page, with the times of the first where it tells any. */
int raw_read_mapped(void)
{
#ifdef __x86_64__
    for (int i = 0; i < opened; i++) {
        const volatile struct perf_event_mmap_page *page = pages[i];
        uint32_t seq;
        uint64_t count, on, ran;

        if (page == NULL || page == MAP_FAILED)
            return -1;
        do {
            uint32_t index, low, high;

            seq = page->lock;
            __asm__ volatile("" ::: "memory");
            on = page->time_enabled;
            ran = page->time_running;
            if (i == 0 && page->cap_user_time) {
                uint64_t cycles, quot, rem, delta;

                __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
                cycles = (uint64_t)high << 32 | low;
                quot = cycles >> page->time_shift;
                rem = cycles & (((uint64_t)1 << page->time_shift) - 1);
                delta = page->time_offset + quot * page->time_mult + ((rem * page->time_mult) >> page->time_shift);
                on += delta;
                ran += delta;
            }
            index = page->index;
            count = page->offset;
            if (!page->cap_user_rdpmc || index == 0)
                return -1;
            __asm__ volatile("rdpmc" : "=a"(low), "=d"(high) : "c"(index - 1));
            count += (int64_t)(((uint64_t)high << 32 | low) << (64 - page->pmc_width)) >> (64 - page->pmc_width);
            __asm__ volatile("" ::: "memory");
        } while (page->lock != seq);
        values[i] = count;
        if (i == 0) {
            enabled = on;
            running = ran;
        }
    }
    return 0;
#else
    return -1;
#endif
}

/* Returns true if the pages tell times. */
int raw_has_times(void)
{
    return opened > 0 && pages[0] != NULL && pages[0] != MAP_FAILED && pages[0]->cap_user_time;
}

void raw_close(void)
{
    while (opened > 0) {
        opened--;
        if (pages[opened] != NULL && pages[opened] != MAP_FAILED)
            munmap(pages[opened], sysconf(_SC_PAGESIZE));
        close(fds[opened]);
    }
}
