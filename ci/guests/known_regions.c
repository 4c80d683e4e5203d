/*
 * Regions of known instructions: `outer`, entered five times, has 2,000,000 in a loop each time, and 400,000 in `inner`.
 */
#include <quipu.h>

/* Exactly 2 N instructions. */
static void spin(unsigned long n)
{
    __asm__ volatile("1: sub $1, %0\n\tjne 1b" : "+r"(n) : : "cc");
}

int main(void)
{
    int call;

    for (call = 0; call < 5; call++) {
        QUIPU_REGION_BEGIN("outer");
        spin(1000000);
        QUIPU_REGION_BEGIN("inner");
        spin(200000);
        QUIPU_REGION_END("inner");
        QUIPU_REGION_END("outer");
    }
    return 0;
}
