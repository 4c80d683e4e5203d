/* Opens an event of the CPU, of which a file of events says that registers count it, and says why that is refused:
 * consent FILE CPU [allow] */
#include <stdio.h>

#include "quipu.h"

int main(int argc, char **argv)
{
    quipu_config config;
    quipu_error error;
    quipu_set *set;

    if (argc < 3)
        return 2;
    QUIPU_INIT(config);
    QUIPU_INIT(error);
    config.events_file = argv[1];
    config.cpu_model = argv[2];
    config.flags = argc > 3 ? QUIPU_ALLOW_MSR : 0;
    if (quipu_set_create(&config, &set) != QUIPU_OK || quipu_set_add(set, "cycles") != QUIPU_OK) {
        quipu_last_error(&error);
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    /* Of a thread, so that no register is written where they could be. */
    if (quipu_set_open(set) == QUIPU_OK) {
        puts("opened");
    } else {
        quipu_set_event_error(set, 0, &error);
        printf("%s\n%s\n", error.message, error.hint ? error.hint : "");
    }
    quipu_set_close(set);
    return 0;
}
