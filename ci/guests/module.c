/*
 * A module of FreeBSD's kernel that spends 70 and 30 of each 100 instructions in two functions, in sections of their own, when it
 * is unloaded. With CHANGED it is another one, whose functions are elsewhere.
 */

/*
 * struct sysinit of sys/kernel.h, and one of its subsystems, SI_SUB_DRIVERS. FreeBSD 12 calls the first function with the second for
 * its data; later ones keep the place of the first for a list, and call the second.
 */
struct call {
    unsigned subsystem, order;
    void (*function)(const void *), (*later)(const void *);
    const void *data;
};
#define DRIVERS 0x3100000

#define SPIN(section, name)                                                                       \
    __asm__(".section " section ",\"ax\",@progbits\n.globl " name "\n.type " name ", @function\n" \
            name ":\n1: dec %rdi\njne 1b\nret\n.size " name ", . - " name "\n.text\n")
#ifdef CHANGED
SPIN(".text", "before");
#endif
SPIN(".text", "kernel_seventy");
SPIN(".text.second", "kernel_thirty");
void kernel_seventy(unsigned long rounds), kernel_thirty(unsigned long rounds);

static void work(const void *data)
{
    int i;

    (void)data;
    for (i = 0; i < 10; i++) {
        kernel_seventy(7000000);
        kernel_thirty(3000000);
    }
}

static struct call at_end = {DRIVERS, 0, work, work, 0};
__attribute__((section("set_sysuninit_set"), used)) static struct call *const ends[] = {&at_end};
