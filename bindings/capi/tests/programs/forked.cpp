// A set and a sampler that a C++ destructor closes at exit(3), an exit handler that uses them before, and workers that
// are forked and exit as any program does. Prints nothing; the exit status is that of a wrong line, 0 if none is, and
// 255 with the reason if this machine takes no samples.
#include <quipu.h>

#include <cstdlib>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static const size_t PAGE = 4096;
static const int WORKERS = 4, WORKER_STATUS = 23;
static pid_t parent;

// _exit: exit(3) may not be called again by what it calls.
#define CHECK(is_right)                                                                                              \
    do {                                                                                                               \
        if (!(is_right)) _exit(__LINE__);                                                                    \
    } while (0)

struct Meter {
    quipu_set *set = nullptr;
    quipu_sampler *sampler = nullptr;

    ~Meter() {
        CHECK(quipu_sampler_close(sampler) == QUIPU_OK);
        CHECK(quipu_set_close(set) == QUIPU_OK);
        CHECK(quipu_set_close(set) == QUIPU_EHANDLE);
    }
};

static Meter meter;

static void touch(size_t pages) {
    void *memory = mmap(nullptr, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    madvise(memory, pages * PAGE, MADV_NOHUGEPAGE);
    for (size_t at = 0; at < pages * PAGE; at += PAGE)
        static_cast<volatile char *>(memory)[at] = 1;
}

static void ignore(const quipu_sample *, void *) {}

static uint64_t read_count() {
    quipu_count count;
    CHECK(quipu_set_read(meter.set, &count, 1) == QUIPU_OK);
    return count.value;
}

// Rings are not in a forked process; counters can be read there.
static void at_exit() {
    int status = quipu_sampler_drain(meter.sampler, ignore, nullptr);
    CHECK(status == (getpid() == parent ? QUIPU_OK : QUIPU_ETHREAD));
    CHECK(read_count() > 0);
}

int main() {
    parent = getpid();
    quipu_config config;
    QUIPU_INIT(config);
    quipu_sampling sampling;
    QUIPU_INIT(sampling);
    sampling.period = 1;
    if (quipu_sampler_open(&config, "page-faults:u", &sampling, &meter.sampler) != QUIPU_OK) {
        quipu_perror("forked");
        _exit(255);
    }
    CHECK(quipu_set_create(&config, &meter.set) == QUIPU_OK);
    CHECK(quipu_set_add(meter.set, "page-faults:u") == QUIPU_OK);
    CHECK(quipu_set_open(meter.set) == QUIPU_OK);
    CHECK(quipu_set_start(meter.set) == QUIPU_OK);
    CHECK(std::atexit(at_exit) == 0);
    touch(10);
    for (int worker = 0; worker < WORKERS; worker++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            alarm(20);
            touch(1000);
            std::exit(WORKER_STATUS);
        }
        int status = 0;
        CHECK(waitpid(child, &status, 0) == child);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == WORKER_STATUS);
    }
    // What the workers closed still counts here.
    uint64_t before = read_count();
    touch(100);
    CHECK(read_count() >= before + 100);
    return 0;
}
