/*
 * Samples every page fault of some memory that is touched for the first time: a function is called for
 * each, with the address of the page.
 */
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <quipu.h>

#define PAGES 256
#define PAGE 4096

static char memory[PAGES * PAGE] __attribute__((aligned(PAGE)));
static unsigned sampled[PAGES];

static void on_sample(const quipu_sample *sample, void *data)
{
    unsigned *count = (unsigned *)data;
    const uint64_t offset = sample->address - (uint64_t)(uintptr_t)memory;

    /* The program has other pages too. */
    if ((sample->flags & QUIPU_SAMPLE_HAS_ADDRESS) != 0 && offset < sizeof(memory))
        count[offset / PAGE]++;
}

static int failed(void)
{
    quipu_perror("sampled");
    return EXIT_FAILURE;
}

int main(void)
{
    quipu_sampling how;
    quipu_sampler *sampler;
    struct pollfd waiting;
    size_t i, descriptors;
    unsigned once = 0, oftener = 0;
    uint64_t lost;

    QUIPU_INIT(how);
    how.period = 1;
    how.flags = QUIPU_ADDRESSES;
    how.wake_after = 1;
    if (quipu_sampler_open(NULL, "page-faults:u", &how, &sampler) != QUIPU_OK ||
        quipu_sampler_descriptors(sampler, &waiting.fd, 1, &descriptors) != QUIPU_OK)
        return failed();

    if (quipu_sampler_start(sampler) != QUIPU_OK)
        return failed();
    for (i = 0; i < sizeof(memory); i += PAGE)
        ((volatile char *)memory)[i] = 1;
    if (quipu_sampler_stop(sampler) != QUIPU_OK)
        return failed();

    /* A tool waits here, in another thread. */
    waiting.events = POLLIN;
    printf("samples wait: %s\n", poll(&waiting, 1, 0) == 1 ? "yes" : "no");
    if (quipu_sampler_drain(sampler, on_sample, sampled) != QUIPU_OK ||
        quipu_sampler_lost(sampler, &lost) != QUIPU_OK || quipu_sampler_close(sampler) != QUIPU_OK)
        return failed();
    for (i = 0; i < PAGES; i++) {
        once += sampled[i] == 1;
        oftener += sampled[i] > 1;
    }
    printf("%u of %u pages sampled once, %u oftener, %llu samples lost\n", once, (unsigned)PAGES, oftener,
           (unsigned long long)lost);
    return EXIT_SUCCESS;
}
