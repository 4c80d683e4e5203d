/* Locks all of a file that it may only read, for some seconds: hold read|flock FILE SECONDS. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
    int fd, refused;

    if (argc != 4 || (fd = open(argv[2], O_RDONLY)) < 0)
        return 2;
    refused = strcmp(argv[1], "flock") == 0 ? flock(fd, LOCK_EX) : fcntl(fd, F_SETLK, &lock);
    if (refused) {
        perror(argv[2]);
        return 1;
    }
    puts("locked");
    fflush(stdout);
    sleep((unsigned)atoi(argv[3]));
    return 0;
}
