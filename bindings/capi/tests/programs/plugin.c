/* A library that is loaded and closed, and has regions. */
#include <quipu.h>

void work(void);

void work(void)
{
    QUIPU_REGION_BEGIN("of the plugin");
    QUIPU_REGION_END("of the plugin");
}
