/*
 * Loaded before the C library (LD_PRELOAD): makes one call of read(2), write(2) and their like, the one that
 * $SHORT_CALL says, move one byte only. The calls are numbered from 1. In programs that are executed by the
 * process there is no change.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/types.h>
#include <sys/uio.h>

static int is_this_call(void)
{
    static long calls, wanted = -1;
    if (wanted < 0) {
        const char *text = getenv("SHORT_CALL");
        wanted = text ? atol(text) : 0;
        unsetenv("LD_PRELOAD");
    }
    return ++calls == wanted;
}

#define SHORTENED(name, ...)                                                   \
    static ssize_t (*next_##name)();                                           \
    if (!next_##name)                                                          \
        next_##name = (ssize_t(*)())dlsym(RTLD_NEXT, #name);                   \
    if (size > 1 && is_this_call())                                            \
        size = 1;                                                              \
    return next_##name(__VA_ARGS__)

ssize_t read(int fd, void *to, size_t size)
{
    SHORTENED(read, fd, to, size);
}

ssize_t write(int fd, const void *from, size_t size)
{
    SHORTENED(write, fd, from, size);
}

ssize_t pread64(int fd, void *to, size_t size, off64_t at)
{
    SHORTENED(pread64, fd, to, size, at);
}

ssize_t pwrite64(int fd, const void *from, size_t size, off64_t at)
{
    SHORTENED(pwrite64, fd, from, size, at);
}

ssize_t writev(int fd, const struct iovec *from, int count)
{
    if (count > 0 && is_this_call())
        return write(fd, from->iov_base, from->iov_len > 1 ? 1 : from->iov_len);
    static ssize_t (*next)(int, const struct iovec *, int);
    if (!next)
        next = (ssize_t(*)(int, const struct iovec *, int))dlsym(RTLD_NEXT, "writev");
    return next(fd, from, count);
}
