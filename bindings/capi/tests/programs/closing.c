/* Loads and closes a library that has regions, and with it the one that counts: in threads that end, and in the first one. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static const char *path;

static void *use(void *unused)
{
    void (*work)(void);
    void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    (void)unused;
    if (plugin == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    *(void **)&work = dlsym(plugin, "work");
    if (work == NULL)
        exit(1);
    work();
    if (dlclose(plugin) != 0)
        exit(1);
    return NULL;
}

int main(int count, char **words)
{
    int turn;
    if (count < 2)
        return 1;
    path = words[1];
    for (turn = 0; turn < 3; turn++) {
        pthread_t other;
        if (pthread_create(&other, NULL, use, NULL) != 0 || pthread_join(other, NULL) != 0)
            return 1;
    }
    use(NULL);
    return 0;
}
