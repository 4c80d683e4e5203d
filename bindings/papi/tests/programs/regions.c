/* Regions of the high level, one inside of another, with a read. */
#include "check.h"

int main(void)
{
    for (int turn = 0; turn < 2; turn++) {
        CHECK(PAPI_hl_region_begin("outer \"x\""), PAPI_OK);
        CHECK(PAPI_hl_region_begin("inner"), PAPI_OK);
        fault(64);
        CHECK(PAPI_hl_region_end("inner"), PAPI_OK);
        CHECK(PAPI_hl_region_end("inner"), PAPI_EMISC);
        CHECK(PAPI_hl_region_end("outer \"x\""), PAPI_OK);
        CHECK(PAPI_hl_region_begin("read"), PAPI_OK);
        fault(64);
        CHECK(PAPI_hl_read("read"), PAPI_OK);
        CHECK(PAPI_hl_region_end("read"), PAPI_OK);
    }
    CHECK(PAPI_hl_stop(), PAPI_OK);
    return 0;
}
