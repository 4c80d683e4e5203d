// quipu.hpp: counts of every kind on a simulated PMU, errors as values, moves, threads, a forked worker, and regions. Prints nothing;
// the exit status is that of a wrong line modulo 251, 0 if none is, and 255 with the reason if this machine counts no page faults.
#include <quipu.hpp>

#include <cstdio>
#include <cstdlib>
#include <dirent.h>
#include <sstream>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

static const std::size_t PAGE = 4096;

#define CHECK(is_right)                                                                                              \
    do {                                                                                                               \
        if (!(is_right)) {                                                                                             \
            std::fprintf(stderr, "line %d: %s\n", __LINE__, #is_right);                                              \
            _exit(__LINE__ % 251);                                                                                   \
        }                                                                                                              \
    } while (0)

static void touch(std::size_t pages) {
    void *memory = mmap(nullptr, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    madvise(memory, pages * PAGE, MADV_NOHUGEPAGE);
    for (std::size_t at = 0; at < pages * PAGE; at += PAGE)
        static_cast<volatile char *>(memory)[at] = 1;
    munmap(memory, pages * PAGE);
}

static std::size_t descriptors() {
    std::size_t count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (folder && readdir(folder))
        count++;
    if (folder)
        closedir(folder);
    return count;
}

static std::string text(const quipu::Count &count) {
    std::ostringstream out;
    out << count;
    CHECK(out.str() == count.text());
    return out.str();
}

// The numbers of docs/c-api.md: four counters, and more events than that take turns.
static void every_kind() {
    quipu_sim *sim = nullptr;
    CHECK(quipu_sim_create(nullptr, &sim) == QUIPU_OK);
    quipu::Options options;
    options.target = QUIPU_CPU;
    options.sim = sim;
    auto few = quipu::EventSet::open("instructions,NO_SUCH", options);
    CHECK(few.has_value());
    CHECK(!few->error(0) && few->error(1) && few->error(1)->status() == QUIPU_EEVENT);
    CHECK(!quipu::EventSet::open_all("instructions,NO_SUCH", options));
    CHECK(few->start());
    CHECK(quipu_sim_advance(sim, 1000 * 1000) == QUIPU_OK);
    auto read = few->read();
    CHECK(read.has_value() && read->size() == 2);
    CHECK((*read)["instructions"].exact() == 5200000U);
    CHECK(text((*read)[0]) == "5,200,000" && (*read)[0].kind() == quipu::Kind::exact);
    CHECK((*read)["NO_SUCH"].kind() == quipu::Kind::not_read && !(*read)["NO_SUCH"].value());
    CHECK(text((*read)["nothing of the kind"]) == "<not read>" && text((*read)[99]) == "<not read>");
    CHECK(!few->values());
    auto moved = *std::move(few);
    CHECK(moved.read().has_value());
    CHECK(moved.names()[1] == "NO_SUCH" && moved.reset() && moved.stop());

    auto many = quipu::EventSet::open("branches,SYSTEM_CALLS,cycles,instructions,CACHE_MISSES,BRANCH_MISSES,CACHE_REFERENCES", options);
    CHECK(many && many->start());
    quipu::Reading reading;
    CHECK(many->read_into(reading));
    std::size_t never = 0, estimated = 0;
    CHECK(quipu_sim_advance(sim, 1000 * 1000) == QUIPU_OK && many->read_into(reading));
    for (const auto &event : reading)
        never += event.count().kind() == quipu::Kind::not_counted && text(event.count()) == "<not counted>";
    for (int turn = 0; turn < 28; turn++)
        CHECK(quipu_sim_tick(sim) == QUIPU_OK && quipu_sim_advance(sim, 1000 * 1000) == QUIPU_OK);
    CHECK(many->read_into(reading));
    for (const auto &event : reading) {
        const quipu::Count &count = event.count();
        estimated += count.kind() == quipu::Kind::estimated && !count.exact() && count.value() && text(count)[0] == '~';
    }
    CHECK(never == 3 && estimated == 7);
    auto refused = many->values();
    CHECK(!refused && refused.error().status() == QUIPU_EBUSY);
#if defined(__cpp_exceptions)
    bool thrown = false;
    try {
        (void)refused.value();
    } catch (const quipu::Error &error) {
        thrown = error.status() == QUIPU_EBUSY && std::string(error.what()) == refused.error().what();
    }
    CHECK(thrown);
#endif
    many = std::move(moved);
    CHECK(quipu_sim_close(sim) == QUIPU_OK);
}

static void threads_and_forks() {
    quipu::Options options;
    options.flags |= QUIPU_INHERIT;
    auto set = quipu::EventSet::open_all("page-faults", options);
    CHECK(set && set->start());
    touch(100);
    std::thread([] { touch(1000); }).join();
    // A forked worker is counted, reads what its parent does, and closes what it has inherited.
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        alarm(20);
        touch(300);
        CHECK(set->read());
        std::exit(23);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 23);
    auto counted = set->read();
    CHECK(counted && (*counted)[0].is_exact());
    const std::uint64_t faults = *(*counted)[0].exact();
    CHECK(faults >= 1400 && faults < 2400);
}

static void regions() {
    CHECK(quipu_region_events("page-faults") == QUIPU_OK);
    for (int i = 0; i < 3; i++) {
        QUIPU_REGION("outer");
        quipu::Region inner("inner");
        touch(10);
    }
    auto report = quipu::region_report(QUIPU_REGION_CSV);
    CHECK(report && report->find("outer") != std::string::npos && report->find("inner") != std::string::npos);
    CHECK(report->back() == '\n' && report->find('\0') == std::string::npos);
}

int main() {
    auto measured = quipu::measure("page-faults", [] { touch(512); });
    if (!measured || !(*measured)[0].is_exact()) {
        std::fprintf(stderr, "%s\n", measured.error().what());
        _exit(255);
    }
    const std::uint64_t faults = *(*measured)[0].exact();
    CHECK(faults >= 512 && faults < 520);
    CHECK(!quipu::EventSet::open("{page-faults"));
    CHECK(quipu::EventSet::open("{page-faults").error().status() == QUIPU_EINVAL);
    CHECK(!quipu::measure("no-such-event", [] {}));
    const std::size_t before = descriptors();
    every_kind();
    threads_and_forks();
    CHECK(descriptors() == before);
    regions();
    return 0;
}
