// Catch2 with counts: what a function costs as an assertion, which no other load on the machine disturbs.
// c++ -std=c++17 catch2.cpp -lquipu
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
#include <quipu.hpp>

#include "pages.hpp"

TEST_CASE("fresh pages fault once each") {
    touch_fresh_pages(1); // What is touched first of the program itself faults too.
    const auto measured = quipu::measure("page-faults", [] { touch_fresh_pages(512); });
    INFO(measured.error().what());
    REQUIRE(measured.has_value());
    const quipu::Count faults = (*measured)["page-faults"];
    INFO(faults.text());
    // Of an estimate or a part nothing is asserted.
    REQUIRE(faults.is_exact());
    CHECK(*faults.exact() >= 512);
    CHECK(*faults.exact() < 520);
}
