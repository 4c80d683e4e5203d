/* Unloads a module of FreeBSD's kernel: unload NAME.ko. */
#include <sys/param.h>

#include <sys/linker.h>

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int id = argc == 2 ? kldfind(argv[1]) : -1;

    if (id < 0 || kldunload(id) != 0) {
        perror("unload");
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
