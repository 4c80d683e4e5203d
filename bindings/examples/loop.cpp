// A loop of one's own, as nanobench has: epochs of iterations, and the median of what an iteration costs. For ankerl::nanobench
// itself, put the two lines that read the set around its run().
// c++ -std=c++17 loop.cpp -lquipu
#include <quipu.hpp>

#include <algorithm>
#include <cstdio>

#include "pages.hpp"

template <class Work> static int bench(const char *name, quipu::EventSet &set, Work work) {
    static const std::size_t epochs = 11, iterations = 20;
    std::vector<std::vector<double>> costs(set.names().size());
    quipu::Reading before, after;
    work();
    for (std::size_t epoch = 0; epoch < epochs; epoch++) {
        if (!set.read_into(before))
            return 1;
        for (std::size_t iteration = 0; iteration < iterations; iteration++)
            work();
        if (!set.read_into(after))
            return 1;
        for (std::size_t event = 0; event < costs.size(); event++) {
            // An estimate is no number to subtract from.
            const auto first = before[event].exact(), last = after[event].exact();
            if (first && last)
                costs[event].push_back(static_cast<double>(*last - *first) / iterations);
        }
    }
    for (std::size_t event = 0; event < costs.size(); event++) {
        std::vector<double> &cost = costs[event];
        if (cost.size() < epochs) {
            const auto why = set.error(event);
            std::printf("%s: %s: not counted%s%s\n", name, set.names()[event].c_str(), why ? ": " : "", why ? why->what() : "");
            continue;
        }
        std::nth_element(cost.begin(), cost.begin() + epochs / 2, cost.end());
        std::printf("%s: %.1f %s\n", name, cost[epochs / 2], set.names()[event].c_str());
    }
    return 0;
}

int main() {
    auto set = quipu::EventSet::open("page-faults,instructions:u");
    if (!set || !set->start()) {
        std::fprintf(stderr, "%s\n%s\n", set.error().what(), set.error().hint().c_str());
        return 1;
    }
    return bench("fresh pages", *set, [] { touch_fresh_pages(512); });
}
