// google/benchmark with counts: a column for each event. Where an event has no exact count, a label says what it is.
// c++ -std=c++17 google_benchmark.cpp -lbenchmark -lquipu -lpthread
#include <benchmark/benchmark.h>
#include <quipu.hpp>

#include "pages.hpp"

// Counts a benchmark from here on, and shows the counts of an iteration in the end.
class Counted {
  public:
    Counted(benchmark::State &state, const char *events) : state_(state), set_(quipu::EventSet::open(events)) {
        if (!set_ || !set_->start())
            state_.SetLabel(set_.error().what());
    }

    ~Counted() {
        if (!set_ || !set_->stop())
            return;
        auto reading = set_->read();
        if (!reading)
            return;
        std::string others;
        for (const auto &event : *reading) {
            if (auto count = event.count().exact())
                state_.counters[event.name()] =
                    benchmark::Counter(static_cast<double>(*count), benchmark::Counter::kAvgIterations);
            else
                others += event.name() + ": " + event.count().text() + "; ";
        }
        state_.SetLabel(others);
    }

  private:
    benchmark::State &state_;
    quipu::Result<quipu::EventSet> set_;
};

static void fresh_pages(benchmark::State &state) {
    Counted counted(state, "page-faults,instructions:u,cycles:u");
    for (auto _ : state)
        touch_fresh_pages(512);
}
BENCHMARK(fresh_pages);

BENCHMARK_MAIN();
