/* Makes the root file system of a FreeBSD guest read-only, or writable again: remount ro|rw. */
#include <stdio.h>
#include <string.h>
#include <sys/param.h>
#include <sys/mount.h>
#include <sys/uio.h>

#define WORD(text) {(void *)(text), sizeof(text)}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 && strcmp(argv[1], "ro") == 0 ? "ro" : "rw";
    struct iovec words[] = {
        WORD("fstype"), WORD("ufs"), WORD("fspath"), WORD("/"), WORD("from"), WORD("/dev/md0"),
        {(void *)mode, sizeof "ro"}, {0, 0},
    };

    if (nmount(words, sizeof words / sizeof *words, MNT_UPDATE | MNT_FORCE)) {
        perror("nmount");
        return 1;
    }
    return 0;
}
