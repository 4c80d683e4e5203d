/* The bare system calls: what the calls of the library are measured against. */
#include <linux/perf_event.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOST 5

static const uint64_t events[MOST] = {
    PERF_COUNT_SW_PAGE_FAULTS,    PERF_COUNT_SW_TASK_CLOCK,     PERF_COUNT_SW_CONTEXT_SWITCHES,
    PERF_COUNT_SW_CPU_MIGRATIONS, PERF_COUNT_SW_PAGE_FAULTS_MIN,
};
static int fds[MOST];
static int opened;

int raw_open(int count)
{
    for (opened = 0; opened < count; opened++) {
        struct perf_event_attr attr = {
            .type = PERF_TYPE_SOFTWARE,
            .size = sizeof attr,
            .config = events[opened],
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

void raw_close(void)
{
    while (opened > 0)
        close(fds[--opened]);
}
