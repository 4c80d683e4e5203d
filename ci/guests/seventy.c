/*
 * Samples a process that spends 70 and 30 of each 100 instructions in two functions, by libquipu:
 * seventy [EVENT [BACKEND]]. The process is a fork of this one, so that its functions are here. It does not
 * begin before it is sampled. `seventy alone [TIMES]` spends them itself, without samples; `seventy briefly` 2,000,000 of them.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <quipu.h>

#define PERIOD 100003
#define ROUNDS 10

/* Loops of two instructions, with a frame that call chains are followed by. */
#define SPIN(name)                                                                                \
    __asm__(".text\n.globl " name "\n.type " name ", @function\n" name ":\npush %rbp\n"          \
            "mov %rsp, %rbp\n1: dec %rdi\njne 1b\npop %rbp\nret\n.size " name ", . - " name "\n" \
            ".globl " name "_end\n" name "_end:\n")
SPIN("seventy");
SPIN("thirty");
void seventy(uint64_t rounds), seventy_end(void), thirty(uint64_t rounds), thirty_end(void);

static struct counts {
    unsigned all, seventy, thirty, called, other_thread;
    uint64_t last;
    unsigned backwards;
    int pid;
} counts;

static uint64_t part = 1000000;

__attribute__((noinline)) static void work(void)
{
    int i;

    for (i = 0; i < ROUNDS; i++) {
        seventy(7 * part);
        thirty(3 * part);
    }
    /* The last call is none that does not come back here. */
    __asm__ volatile("");
}

__attribute__((noinline)) static void end_of_work(void)
{
    __asm__ volatile("");
}

static int within(uint64_t address, void (*begin)(void), void (*end)(void))
{
    return address >= (uint64_t)(uintptr_t)begin && address < (uint64_t)(uintptr_t)end;
}

static void on_sample(const quipu_sample *sample, void *data)
{
    struct counts *to = data;
    int in_seventy = within(sample->ip, (void (*)(void))seventy, seventy_end);
    int in_thirty = within(sample->ip, (void (*)(void))thirty, thirty_end);

    to->all++;
    to->seventy += in_seventy;
    to->thirty += in_thirty;
    to->other_thread += sample->pid != to->pid || sample->period != PERIOD;
    to->backwards += sample->time < to->last;
    to->last = sample->time;
    if ((in_seventy || in_thirty) && sample->caller_count > 1)
        to->called += within(sample->callers[0].return_address, work, end_of_work);
}

static int failed(void)
{
    quipu_perror("seventy");
    return EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    const char *event = argc > 1 ? argv[1] : "instructions:u";
    quipu_config config;
    quipu_sampling how;
    quipu_sampler *sampler;
    uint64_t lost;
    int begin[2], status;
    char byte = 0;

    if (strcmp(event, "briefly") == 0) {
        part = 10000;
        work();
        return EXIT_SUCCESS;
    }
    if (strcmp(event, "alone") == 0) {
        int times = argc > 2 ? atoi(argv[2]) : 1;
        while (times-- > 0)
            work();
        return EXIT_SUCCESS;
    }
    if (pipe(begin) != 0)
        return EXIT_FAILURE;
    counts.pid = fork();
    if (counts.pid == 0) {
        close(begin[1]);
        if (read(begin[0], &byte, 1) == 1)
            work();
        _exit(0);
    }
    QUIPU_INIT(config);
    config.target = QUIPU_PROCESS;
    config.id = counts.pid;
    config.backends = argc > 2 ? argv[2] : NULL;
    QUIPU_INIT(how);
    how.period = PERIOD;
    how.flags = QUIPU_CALL_CHAINS;
    if (quipu_sampler_open(&config, event, &how, &sampler) != QUIPU_OK ||
        quipu_sampler_start(sampler) != QUIPU_OK)
        return failed();
    if (write(begin[1], &byte, 1) != 1 || waitpid(counts.pid, &status, 0) != counts.pid || status != 0)
        return EXIT_FAILURE;
    if (quipu_sampler_drain(sampler, on_sample, &counts) != QUIPU_OK ||
        quipu_sampler_lost(sampler, &lost) != QUIPU_OK)
        return failed();
    printf("%u samples, %u in seventy, %u in thirty, %u called by work\n", counts.all, counts.seventy,
           counts.thirty, counts.called);
    printf("%u of others, %u backwards, %llu lost\n", counts.other_thread, counts.backwards,
           (unsigned long long)lost);
    if (quipu_sampler_close(sampler) != QUIPU_OK)
        return failed();

    /* The driver opens a log for this process once more, and refuses this process itself. */
    QUIPU_INIT(config);
    if (quipu_sampler_open(&config, event, &how, &sampler) == QUIPU_OK)
        return EXIT_FAILURE;
    quipu_perror("this thread");
    config.target = QUIPU_CPU;
    config.id = 0;
    if (quipu_sampler_open(&config, event, &how, &sampler) != QUIPU_OK) {
        quipu_perror("CPU 0");
        return EXIT_SUCCESS;
    }
    counts = (struct counts){.pid = getpid()};
    if (quipu_sampler_start(sampler) != QUIPU_OK)
        return failed();
    work();
    if (quipu_sampler_stop(sampler) != QUIPU_OK ||
        quipu_sampler_drain(sampler, on_sample, &counts) != QUIPU_OK ||
        quipu_sampler_close(sampler) != QUIPU_OK)
        return failed();
    printf("CPU 0: %u samples, %u in seventy, %u in thirty\n", counts.all, counts.seventy, counts.thirty);
    return EXIT_SUCCESS;
}
