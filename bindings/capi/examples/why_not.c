/*
 * Says for each event whether it can be counted here, and if not, why and what to do about it.
 *
 *     ./why_not cycles page-faults:k no-such-event
 */
#include <stdio.h>
#include <stdlib.h>

#include <quipu.h>

static int look_at(const char *event)
{
    quipu_set *set;
    quipu_event_info info;
    quipu_error error;
    quipu_status status;

    if (quipu_set_create(NULL, &set) != QUIPU_OK) {
        quipu_perror("why_not");
        return 0;
    }
    status = quipu_set_add(set, event);
    if (status == QUIPU_OK)
        status = quipu_set_open(set);
    if (status == QUIPU_OK) {
        QUIPU_INIT(info);
        if (quipu_set_event_info(set, 0, &info) == QUIPU_OK)
            printf("%s: counted by %s\n", event, info.backend);
    } else {
        QUIPU_INIT(error);
        if (quipu_last_error(&error) == QUIPU_OK) {
            printf("%s: %s\n", event, quipu_strerror(status));
            printf("    %s\n", error.message);
            if (error.os_errno != 0)
                printf("    errno %d\n", error.os_errno);
            if (error.hint != NULL)
                printf("    hint: %s\n", error.hint);
        }
    }
    return quipu_set_close(set) == QUIPU_OK;
}

int main(int argc, char **argv)
{
    int i;
    size_t backend, backends;

    if (quipu_backend_count(&backends) != QUIPU_OK) {
        quipu_perror("why_not");
        return EXIT_FAILURE;
    }
    for (backend = 0; backend < backends; backend++) {
        quipu_backend_info info;

        QUIPU_INIT(info);
        if (quipu_backend_get(backend, &info) != QUIPU_OK) {
            quipu_perror("why_not");
            return EXIT_FAILURE;
        }
        if (info.status == QUIPU_OK)
            printf("backend %s: usable\n", info.name);
        else
            printf("backend %s: %s\n", info.name, info.message);
    }
    for (i = 1; i < argc; i++) {
        if (!look_at(argv[i]))
            return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
