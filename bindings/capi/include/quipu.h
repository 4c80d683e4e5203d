/*
 * quipu.h - CPU performance counters, portably.
 *
 * Generated from the Rust source of the library; do not edit.
 *
 * Every function that can fail returns a quipu_status: QUIPU_OK, which is 0, or a negative number.
 * quipu_strerror() has it in words; quipu_last_error() has what was attempted, the reason, the errno and
 * a hint, for each thread.
 *
 * A pointer may be null only where it is said so; otherwise that is QUIPU_EINVAL. It has to be good for
 * what it is of as long as the call lasts. Texts are UTF-8 and end with a NUL; paths may be any bytes.
 *
 * Handles (quipu_set *, quipu_cpu *, ...) are not addresses: one that is null, of another kind, closed
 * already or never given out is QUIPU_EHANDLE.
 *
 * A call is not to be left: no longjmp(3) and no exception out of a function that the library calls, and
 * no cancelling of a thread that is in it (pthread_cancel(3)). A signal handler may call quipu_set_read()
 * and its like on a set of its own whose counters can be read: they allocate nothing and take no lock.
 *
 * Structs that may grow begin with their size, which the caller sets: QUIPU_INIT(object) does. Numbers of
 * enumerations never change, and lists of them grow at the end.
 */

#ifndef QUIPU_H
#define QUIPU_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/** Makes a struct of this library zero, but for its size, which it sets. */
#define QUIPU_INIT(object) \
    ((void)memset(&(object), 0, sizeof(object)), (void)((object).size = sizeof(object)))

/**
 * Enters a region until QUIPU_REGION_END of its name, where regions are on (quipu_region_if_on()). The
 * name is looked up once for each place, so it has to be the same each time. Where regions are off this
 * is one test of a static variable, and nothing with QUIPU_NO_REGIONS defined.
 */
#ifdef QUIPU_NO_REGIONS
#define QUIPU_REGION_BEGIN(name) ((void)0)
#define QUIPU_REGION_END(name) ((void)0)
#else
#ifdef __GNUC__
#define QUIPU_REGION_LOAD(place) __atomic_load_n(&(place), __ATOMIC_RELAXED)
#define QUIPU_REGION_STORE(place, region) __atomic_store_n(&(place), region, __ATOMIC_RELAXED)
#else
#define QUIPU_REGION_LOAD(place) (place)
#define QUIPU_REGION_STORE(place, region) ((place) = (region))
#endif
#define QUIPU_REGION_CALL(call, name)                                                             \
    do {                                                                                          \
        static uint32_t quipu_place_;                                                             \
        uint32_t quipu_here_ = QUIPU_REGION_LOAD(quipu_place_);                                   \
        if (quipu_here_ != QUIPU_REGION_OFF) {                                                    \
            if (quipu_here_ == 0) {                                                               \
                quipu_here_ = quipu_region_if_on(name);                                           \
                QUIPU_REGION_STORE(quipu_place_, quipu_here_);                                    \
            }                                                                                     \
            if (quipu_here_ != QUIPU_REGION_OFF)                                                  \
                (void)call(quipu_here_);                                                          \
        }                                                                                         \
    } while (0)
#define QUIPU_REGION_BEGIN(name) QUIPU_REGION_CALL(quipu_region_enter, name)
#define QUIPU_REGION_END(name) QUIPU_REGION_CALL(quipu_region_leave, name)
#endif

/**
 * The version of the header: this and the next two. quipu_version() has the library's.
 */
#define QUIPU_VERSION_MAJOR 0

/**
 * See QUIPU_VERSION_MAJOR.
 */
#define QUIPU_VERSION_MINOR 1

/**
 * See QUIPU_VERSION_MAJOR.
 */
#define QUIPU_VERSION_PATCH 0

/**
 * The number that QUIPU_REGION_BEGIN keeps where regions are off.
 */
#define QUIPU_REGION_OFF 4294967295

/**
 * The result of every function that can fail: 0, or a negative number that says what kind of failure
 * it was. quipu_last_error() has the details.
 */
enum quipu_status
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * Done.
     */
    QUIPU_OK = 0,
    /**
     * The event does not exist here: not on this CPU, kernel or backend.
     */
    QUIPU_EEVENT = -1,
    /**
     * The event exists, but something asked of it (a filter, inheritance, a target) is not offered.
     */
    QUIPU_EFEATURE = -2,
    /**
     * Not permitted for this user; the hint says which permission is missing.
     */
    QUIPU_EPERM = -3,
    /**
     * No such thread, process, CPU or control group.
     */
    QUIPU_ETARGET = -4,
    /**
     * No such device or driver: the whole backend is missing.
     */
    QUIPU_EDEVICE = -5,
    /**
     * The group has more events than can ever be counted at the same time.
     */
    QUIPU_ETOOMANY = -6,
    /**
     * Another process holds the counters.
     */
    QUIPU_EBUSY = -7,
    /**
     * An argument is wrong: null where it may not be, of the wrong size, malformed, contradictory.
     */
    QUIPU_EINVAL = -8,
    /**
     * The counter is in the error state: a pinned group could not be put on the PMU.
     */
    QUIPU_ESTATE = -9,
    /**
     * The device is tied to another thread than the calling one.
     */
    QUIPU_ETHREAD = -10,
    /**
     * The registers were changed by another process during the measurement.
     */
    QUIPU_EINTERFERENCE = -11,
    /**
     * Any other refusal by the operating system; see the errno.
     */
    QUIPU_EOS = -12,
    /**
     * The handle is none that was given out, or was closed already.
     */
    QUIPU_EHANDLE = -13,
    /**
     * Another thread is in a call with the same handle.
     */
    QUIPU_EINUSE = -14,
    /**
     * A defect of the library itself, which was contained.
     */
    QUIPU_EBUG = -15,
    /**
     * The counter moved further than its event can have occurred: its value means nothing.
     */
    QUIPU_EJUMP = -16,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum quipu_status quipu_status;
#else
typedef int32_t quipu_status;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Targets: the threads, processes, control groups or CPUs that are measured.
 */
enum quipu_target
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * The calling thread, on whatever CPU it runs.
     */
    QUIPU_THIS_THREAD = 0,
    /**
     * One thread: `id` is its number, as gettid(2) gives it.
     */
    QUIPU_THREAD = 1,
    /**
     * A process with all the threads it has now: `id` is its number. With QUIPU_INHERIT also those it
     * makes later.
     */
    QUIPU_PROCESS = 2,
    /**
     * The CPU that the calling thread runs on when the set is opened.
     */
    QUIPU_THIS_CPU = 3,
    /**
     * One CPU, everything that runs on it: `id` is its number.
     */
    QUIPU_CPU = 4,
    /**
     * Several CPUs, a part each: `cpus` and `cpu_count`.
     */
    QUIPU_CPUS = 5,
    /**
     * Every CPU that is online, a part each.
     */
    QUIPU_ALL_CPUS = 6,
    /**
     * The tasks of the control group at `cgroup`, on `cpus` (all that are online when `cpu_count` is 0).
     */
    QUIPU_CGROUP = 7,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum quipu_target quipu_target;
#else
typedef uint32_t quipu_target;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Options for opening a set; several are added.
 */
enum quipu_set_flag
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * Threads and processes that the target makes later are counted too.
     */
    QUIPU_INHERIT = 1,
    /**
     * Always on the PMU, or in the error state.
     */
    QUIPU_PINNED = 2,
    /**
     * Alone on the PMU while scheduled.
     */
    QUIPU_EXCLUSIVE = 4,
    /**
     * Starts when the target executes a new program (execve(2)).
     */
    QUIPU_ENABLE_ON_EXEC = 8,
    /**
     * Counts user mode only if counting in the kernel is not permitted, and the event says so
     * (QUIPU_EVENT_USER_ONLY).
     */
    QUIPU_USER_FALLBACK = 16,
    /**
     * Of what QUIPU_INHERIT follows, threads are counted and processes are not.
     */
    QUIPU_INHERIT_THREAD = 32,
    /**
     * Taken off a task that executes a new program (execve(2)).
     */
    QUIPU_REMOVE_ON_EXEC = 64,
    /**
     * Consents to model-specific registers where the event database prefers them for this CPU. They count whole CPUs, and
     * writing them taints a Linux kernel.
     */
    QUIPU_ALLOW_MSR = 128,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum quipu_set_flag quipu_set_flag;
#else
typedef uint32_t quipu_set_flag;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Properties of an event; several are added.
 */
enum quipu_event_flag
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * It counts user mode only because kernel mode is not permitted (QUIPU_USER_FALLBACK).
     */
    QUIPU_EVENT_USER_ONLY = 1,
    /**
     * A momentary value (a temperature): it is never scaled, added or subtracted.
     */
    QUIPU_EVENT_GAUGE = 2,
    /**
     * A preset: a formula over several events, each counted by itself.
     */
    QUIPU_EVENT_PRESET = 4,
    /**
     * Its group is read in user space, without a system call, whenever that is possible: by the thread that is counted,
     * while the events have their counters. Such a read is not ordered with the instructions around it: to count a few of
     * them, put a fence around it (LFENCE of x86, ISB of ARM).
     */
    QUIPU_EVENT_USER_READ = 8,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum quipu_event_flag quipu_event_flag;
#else
typedef uint32_t quipu_event_flag;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * The simultaneity with which the events of a group are read.
 */
enum quipu_simultaneity
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * No relation between the members.
     */
    QUIPU_UNRELATED = 0,
    /**
     * One after the other: skewed by the time the read itself takes.
     */
    QUIPU_SEQUENTIAL = 1,
    /**
     * One snapshot; members share both times.
     */
    QUIPU_ATOMIC = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum quipu_simultaneity quipu_simultaneity;
#else
typedef uint32_t quipu_simultaneity;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Kinds of values.
 */
enum quipu_state
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * There is no value: the event could not be opened or read, or its counter jumped; the status says why.
     */
    QUIPU_NOT_READ = 0,
    /**
     * Counted all the time: a fact.
     */
    QUIPU_EXACT = 1,
    /**
     * Counted a part of the time, and scaled up: value x enabled / running, rounded.
     */
    QUIPU_ESTIMATED = 2,
    /**
     * Some parts of the target were never counted; the value covers the others only.
     */
    QUIPU_PARTIAL = 3,
    /**
     * Enabled, but never on the PMU: there is no value.
     */
    QUIPU_NOT_COUNTED = 4,
    /**
     * A lower bound: a part of the time may not have been counted.
     */
    QUIPU_AT_LEAST = 5,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum quipu_state quipu_state;
#else
typedef uint32_t quipu_state;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Properties of a count; several are added.
 */
enum quipu_count_flag
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * The value has an estimate in it; so it is with every estimated and with some partial ones.
     */
    QUIPU_COUNT_ESTIMATE = 1,
    /**
     * The value does not fit in 64 bits and is the largest that does.
     */
    QUIPU_COUNT_SATURATED = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum quipu_count_flag quipu_count_flag;
#else
typedef uint32_t quipu_count_flag;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Properties of a reading.
 */
enum quipu_reading_flag
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * A part of the time may not have been counted: the value is a lower bound (QUIPU_AT_LEAST).
     */
    QUIPU_READING_AT_LEAST = 1,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum quipu_reading_flag quipu_reading_flag;
#else
typedef uint32_t quipu_reading_flag;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Kinds of targets that a backend can count on; several are added. The bit of a quipu_target is 1
 * shifted by it, but QUIPU_CPU and QUIPU_CPUS share one.
 */
enum quipu_target_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * The calling thread.
     */
    QUIPU_ON_THIS_THREAD = 1,
    /**
     * Any thread.
     */
    QUIPU_ON_THREAD = 2,
    /**
     * A process.
     */
    QUIPU_ON_PROCESS = 4,
    /**
     * The CPU one is on.
     */
    QUIPU_ON_THIS_CPU = 8,
    /**
     * One CPU or several.
     */
    QUIPU_ON_CPU = 16,
    /**
     * All CPUs.
     */
    QUIPU_ON_ALL_CPUS = 32,
    /**
     * A control group.
     */
    QUIPU_ON_CGROUP = 64,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum quipu_target_kind quipu_target_kind;
#else
typedef uint32_t quipu_target_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Features that not every backend has; several are added.
 */
enum quipu_feature
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * QUIPU_INHERIT.
     */
    QUIPU_CAN_INHERIT = 1,
    /**
     * QUIPU_PINNED.
     */
    QUIPU_CAN_PIN = 2,
    /**
     * QUIPU_EXCLUSIVE.
     */
    QUIPU_CAN_EXCLUDE = 4,
    /**
     * QUIPU_ENABLE_ON_EXEC.
     */
    QUIPU_CAN_ENABLE_ON_EXEC = 8,
    /**
     * More groups can be open than fit on the PMU; they take turns.
     */
    QUIPU_CAN_MULTIPLEX = 16,
    /**
     * Events that need a PMU can be counted on this machine.
     */
    QUIPU_HAS_HARDWARE_EVENTS = 32,
    /**
     * Software events can be counted.
     */
    QUIPU_HAS_SOFTWARE_EVENTS = 64,
    /**
     * Breakpoints can be counted.
     */
    QUIPU_HAS_BREAKPOINTS = 128,
    /**
     * Tracepoints can be counted.
     */
    QUIPU_HAS_TRACEPOINTS = 256,
    /**
     * Named PMUs with terms can be counted.
     */
    QUIPU_HAS_NAMED_PMUS = 512,
    /**
     * Sets can be used from any thread.
     */
    QUIPU_HAS_ANY_THREAD = 1024,
    /**
     * QUIPU_INHERIT_THREAD.
     */
    QUIPU_CAN_INHERIT_THREAD = 4096,
    /**
     * QUIPU_REMOVE_ON_EXEC.
     */
    QUIPU_CAN_REMOVE_ON_EXEC = 8192,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum quipu_feature quipu_feature;
#else
typedef uint32_t quipu_feature;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Modes of the CPU that events are counted in; several are added.
 */
enum quipu_filter
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * User mode (":u").
     */
    QUIPU_IN_USER = 1,
    /**
     * Kernel mode (":k").
     */
    QUIPU_IN_KERNEL = 2,
    /**
     * Hypervisor mode (":h").
     */
    QUIPU_IN_HYPERVISOR = 4,
    /**
     * While the CPU idles.
     */
    QUIPU_IN_IDLE = 8,
    /**
     * On the host (":H").
     */
    QUIPU_IN_HOST = 16,
    /**
     * In guests (":G").
     */
    QUIPU_IN_GUEST = 32,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum quipu_filter quipu_filter;
#else
typedef uint32_t quipu_filter;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * The scheme in which a CPU's events are encoded.
 */
enum quipu_scheme
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * None that this version of the header knows.
     */
    QUIPU_SCHEME_OTHER = 0,
    /**
     * Pentium: two 9-bit functions in one register.
     */
    QUIPU_SCHEME_P5 = 1,
    /**
     * Pentium Pro to Pentium III and their like.
     */
    QUIPU_SCHEME_P6 = 2,
    /**
     * Intel architectural performance monitoring.
     */
    QUIPU_SCHEME_INTEL = 3,
    /**
     * AMD K7 and K8: 8-bit events.
     */
    QUIPU_SCHEME_AMD_K7 = 4,
    /**
     * AMD family 10h and later: 12-bit events.
     */
    QUIPU_SCHEME_AMD_10H = 5,
    /**
     * ARMv8 PMUv3.
     */
    QUIPU_SCHEME_ARMV8 = 6,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum quipu_scheme quipu_scheme;
#else
typedef uint32_t quipu_scheme;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Which list of a CPU's events.
 */
enum quipu_event_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * The vendor's: every event, and every event with one of its unit masks ("EVENT.MASK").
     */
    QUIPU_NATIVE = 0,
    /**
     * The portable names: hardware, software and cache events.
     */
    QUIPU_GENERALIZED = 1,
    /**
     * PAPI's names and the formulas they are here.
     */
    QUIPU_PRESET = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum quipu_event_kind quipu_event_kind;
#else
typedef uint32_t quipu_event_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Properties of an event of a CPU; several are added.
 */
enum quipu_name_flag
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * It cannot be counted without a unit mask.
     */
    QUIPU_NEEDS_MASK = 1,
    /**
     * This unit mask is taken when none is named.
     */
    QUIPU_DEFAULT_MASK = 2,
    /**
     * The vendor advises against it.
     */
    QUIPU_DEPRECATED = 4,
    /**
     * The operating system counts it; the CPU has no part in it.
     */
    QUIPU_SOFTWARE = 8,
    /**
     * This unit mask may be put together with others of its event ("EVENT.ONE:OTHER").
     */
    QUIPU_MASK_COMBINES = 16,
    /**
     * It counts rising edges.
     */
    QUIPU_EDGE = 32,
    /**
     * Its comparison with the counter mask is inverted.
     */
    QUIPU_INVERT = 64,
    /**
     * It counts on all threads of the core.
     */
    QUIPU_ANY_THREAD = 128,
    /**
     * It counts in transactional regions.
     */
    QUIPU_IN_TX = 256,
    /**
     * It leaves out what aborted transactions counted.
     */
    QUIPU_IN_TX_CHECKPOINTED = 512,
    /**
     * It is compared with the counter mask for equality.
     */
    QUIPU_EQUAL = 1024,
    /**
     * Pentium: it counts clocks, not events.
     */
    QUIPU_CLOCKS = 2048,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum quipu_name_flag quipu_name_flag;
#else
typedef uint32_t quipu_name_flag;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * The interface that bits are for.
 */
enum quipu_interface
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * Linux's perf_event_open(2).
     */
    QUIPU_FOR_LINUX = 0,
    /**
     * OpenBSD's pctr(4).
     */
    QUIPU_FOR_PCTR = 1,
    /**
     * The registers themselves.
     */
    QUIPU_FOR_MSR = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum quipu_interface quipu_interface;
#else
typedef uint32_t quipu_interface;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * The meaning of the words of a quipu_encoding.
 */
enum quipu_encoding_form
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * perf_event_attr's `type` and `config` to `config3`. Filters are elsewhere in that struct.
     */
    QUIPU_PERF = 1,
    /**
     * An x86 event select word in `config`, and an extra register.
     */
    QUIPU_X86_SELECT = 2,
    /**
     * A Pentium function in `config`.
     */
    QUIPU_P5_FUNCTION = 3,
    /**
     * A fixed counter: `type` is its number, `config` its control bits.
     */
    QUIPU_FIXED_COUNTER = 4,
    /**
     * An ARMv8 event type register in `config`.
     */
    QUIPU_ARMV8_EVENT = 5,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum quipu_encoding_form quipu_encoding_form;
#else
typedef uint32_t quipu_encoding_form;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * The form of a report of regions.
 */
enum quipu_region_format
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * A table for people.
     */
    QUIPU_REGION_TABLE = 0,
    /**
     * JSON, a line: by thread, with the kind of each count.
     */
    QUIPU_REGION_JSON = 1,
    /**
     * Lines with commas, one for each thread, region and event.
     */
    QUIPU_REGION_CSV = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum quipu_region_format quipu_region_format;
#else
typedef uint32_t quipu_region_format;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Optional contents of samples; several are added.
 */
enum quipu_sampling_flag
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * The callers, found by following frame pointers.
     */
    QUIPU_CALL_CHAINS = 1,
    /**
     * The address that the event is about: the page that was missing, the data that a breakpoint
     * watches.
     */
    QUIPU_ADDRESSES = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum quipu_sampling_flag quipu_sampling_flag;
#else
typedef uint32_t quipu_sampling_flag;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Properties of a sample or a caller; several are added.
 */
enum quipu_sample_flag
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * The address of the instruction is one of the kernel.
     */
    QUIPU_SAMPLE_IN_KERNEL = 1,
    /**
     * There is an address that the event is about.
     */
    QUIPU_SAMPLE_HAS_ADDRESS = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum quipu_sample_flag quipu_sample_flag;
#else
typedef uint32_t quipu_sample_flag;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * A CPU of the event database, with its events. A handle, not an address; any threads may use it.
 */
typedef struct quipu_cpu quipu_cpu;

/**
 * An open event database. A handle, not an address; any threads may use it.
 */
typedef struct quipu_database quipu_database;

/**
 * Samples being taken of events on a target. A handle, not an address. One thread at a time may use it,
 * any thread; a second meanwhile gets QUIPU_EINUSE.
 */
typedef struct quipu_sampler quipu_sampler;

/**
 * An event set: several events and groups on one target, possibly on several backends. A handle, not
 * an address. One thread at a time may use it, any thread; a second meanwhile gets QUIPU_EINUSE.
 */
typedef struct quipu_set quipu_set;

/**
 * A simulated PMU: its events happen by a script and its clock stands still until it is advanced, so
 * what a counter must show is known exactly. A handle, not an address; any threads may use it.
 */
typedef struct quipu_sim quipu_sim;

/**
 * Why something could not be done. Set `size` first (QUIPU_INIT).
 *
 * The texts are the calling thread's and stay until its next call that fails or asks for an error.
 */
typedef struct quipu_error {
    /**
     * sizeof (quipu_error).
     */
    size_t size;
    /**
     * The kind of failure; QUIPU_OK when there is none.
     */
    int status;
    /**
     * The operating system's error number, or 0.
     */
    int os_errno;
    /**
     * The position in its group of the event that was refused, or -1.
     */
    int member;
    /**
     * All of it in one sentence, without the hint; empty when there is no error.
     */
    const char *message;
    /**
     * The operation that failed; completes "cannot ...".
     */
    const char *attempted;
    /**
     * The reason, or null.
     */
    const char *reason;
    /**
     * Advice for a person on this machine, or null.
     */
    const char *hint;
} quipu_error;

/**
 * A backend on this machine: usable, or why it is not. Set `size` first (QUIPU_INIT). Texts are never
 * freed.
 */
typedef struct quipu_backend_info {
    /**
     * sizeof (quipu_backend_info).
     */
    size_t size;
    /**
     * Its name: "linux".
     */
    const char *name;
    /**
     * QUIPU_OK when it can be used here, else why it cannot.
     */
    int status;
    /**
     * Not 0 when it is used only where quipu_config names it.
     */
    int on_request;
    /**
     * Why it cannot be used, in one sentence; empty when it can.
     */
    const char *message;
    /**
     * Advice for a person, or null.
     */
    const char *hint;
    /**
     * The targets it can count on: sum of quipu_target_kind.
     */
    uint32_t targets;
    /**
     * Sum of quipu_feature.
     */
    uint32_t features;
    /**
     * Which filters hardware events honour: sum of quipu_filter.
     */
    uint32_t filters;
    /**
     * The best simultaneity that a group is read with: a quipu_simultaneity.
     */
    uint32_t simultaneity;
    /**
     * The number of counters that can be on the PMU simultaneously, or -1 if it is not known; on a machine with
     * several kinds of core, the fewest of any kind.
     */
    int counters;
    /**
     * The number of counters that were shown to count, likewise, or -1 if it was not tested. A hypervisor may hold
     * the others.
     */
    int counting_counters;
} quipu_backend_info;

/**
 * The target and options of an event set. Set `size` first (QUIPU_INIT); everything zero is the calling
 * thread, counted by the backends of this machine.
 */
typedef struct quipu_config {
    /**
     * sizeof (quipu_config).
     */
    size_t size;
    /**
     * A quipu_target.
     */
    uint32_t target;
    /**
     * Sum of quipu_set_flag.
     */
    uint32_t flags;
    /**
     * The thread, process or CPU.
     */
    int id;
    /**
     * The number of CPUs at `cpus`.
     */
    uint32_t cpu_count;
    /**
     * The CPUs of QUIPU_CPUS and QUIPU_CGROUP.
     */
    const uint32_t *cpus;
    /**
     * The directory of QUIPU_CGROUP: absolute, or relative to where the cgroup file system is mounted.
     */
    const char *cgroup;
    /**
     * The backends to use, by name, with commas between them, those that are preferred first ("linux,posix"); null
     * for those of this machine.
     */
    const char *backends;
    /**
     * A file of events (TOML) on top of those of this system and user, or null. Unlike $QUIPU_EVENTS, programs with
     * more rights than their users (set-user-ID) read it too.
     */
    const char *events_file;
    /**
     * The CPU of the event database whose events are used, by its id, or null for that of this machine. To be
     * counted with, it has to take the same bits as this machine's.
     */
    const char *cpu_model;
    /**
     * The simulated PMU to count on instead of this machine's, or null.
     */
    struct quipu_sim *sim;
} quipu_config;

/**
 * An event of an open set. Set `size` first (QUIPU_INIT). Texts stay until the set is closed; those of
 * an event that could not be opened are null, but for its name.
 */
typedef struct quipu_event_info {
    /**
     * sizeof (quipu_event_info).
     */
    size_t size;
    /**
     * QUIPU_OK when it is open, else why it is not; quipu_set_event_error() has the details.
     */
    int status;
    /**
     * Sum of quipu_event_flag.
     */
    uint32_t flags;
    /**
     * As it was asked for: "page-faults:u".
     */
    const char *name;
    /**
     * The name it was opened under: its own, or the native one it was resolved to.
     */
    const char *opened_as;
    /**
     * The backend that counts it: "linux".
     */
    const char *backend;
    /**
     * The unit of its values; empty for a plain count.
     */
    const char *unit;
    /**
     * Known errata, or null.
     */
    const char *errata;
    /**
     * The factor that turns a value into that unit; 1 for almost all events, a millionth for presets
     * that may have fractions.
     */
    double scale;
    /**
     * The group or lone event it was asked for in, numbered from 0.
     */
    uint32_t group;
    /**
     * The simultaneity its group is read with: a quipu_simultaneity.
     */
    uint32_t simultaneity;
    /**
     * The number of its readings: one for each part its target fanned out into, and that for each event
     * of a preset; 0 when it is not open.
     */
    size_t readings;
    /**
     * The position of its first reading in an array of readings; the others follow.
     */
    size_t first_reading;
} quipu_event_info;

/**
 * The subject of one reading: a part of the target, a kernel group or register set of its own. Set `size`
 * first (QUIPU_INIT). Texts stay until the set is closed.
 */
typedef struct quipu_part_info {
    /**
     * sizeof (quipu_part_info).
     */
    size_t size;
    /**
     * The CPU it counts on, or -1 when it counts on no one CPU.
     */
    int cpu;
    /**
     * The thread it counts, or -1 when it counts no one thread.
     */
    int thread;
    /**
     * The core PMU on a machine with several core types, or null.
     */
    const char *core;
    /**
     * The event that is counted: itself, or one of a preset.
     */
    const char *term;
} quipu_part_info;

/**
 * A count over all parts of a target or in one. The struct does not grow, so that arrays of it stay
 * what they are.
 */
typedef struct quipu_count {
    /**
     * The value, for the whole time enabled; 0 where there is none.
     */
    uint64_t value;
    /**
     * Nanoseconds enabled; over several parts, their sum.
     */
    uint64_t time_enabled;
    /**
     * Nanoseconds really counting; over several parts, their sum.
     */
    uint64_t time_running;
    /**
     * The kind of value: a quipu_state.
     */
    uint32_t state;
    /**
     * Sum of quipu_count_flag.
     */
    uint32_t flags;
    /**
     * The number of parts that have no value (QUIPU_PARTIAL).
     */
    uint32_t missing;
    /**
     * QUIPU_OK, or why there is no value (QUIPU_NOT_READ).
     */
    int status;
} quipu_count;

/**
 * The value of a counter in one part of a target: not scaled, good for subtracting and adding. It does
 * not grow, so that arrays of it stay what they are.
 */
typedef struct quipu_reading {
    /**
     * The count as it stands.
     */
    uint64_t value;
    /**
     * Nanoseconds enabled since the last reset.
     */
    uint64_t time_enabled;
    /**
     * Nanoseconds really counting since the last reset.
     */
    uint64_t time_running;
    /**
     * QUIPU_OK, or why this could not be read; then the numbers are 0. With QUIPU_EJUMP the value is more than
     * can have been counted: it means nothing, but what is counted from there on does
     * (quipu_set_difference).
     */
    int status;
    /**
     * Sum of quipu_reading_flag.
     */
    uint32_t flags;
    /**
     * The most that the event can occur in a second really counting, 0 where it is not known.
     */
    uint64_t max_rate;
} quipu_reading;

/**
 * The spread of a measurement that was made several times, in the event's own unit. It does not grow.
 */
typedef struct quipu_spread {
    /**
     * The lowest value.
     */
    uint64_t lowest;
    /**
     * The median: the value to subtract.
     */
    uint64_t median;
    /**
     * The highest value.
     */
    uint64_t highest;
} quipu_spread;

/**
 * The overhead that a set adds to the count of one of its events. The struct does not grow, so that arrays of it
 * stay what they are.
 */
typedef struct quipu_overhead {
    /**
     * In the count from quipu_set_start() to quipu_set_stop().
     */
    struct quipu_spread start_to_stop;
    /**
     * In the difference between one quipu_set_read() and the next.
     */
    struct quipu_spread read_to_read;
    /**
     * QUIPU_OK, or why there is no overhead: the event could not be opened, or was not counted all the time.
     */
    int status;
    /**
     * 0.
     */
    uint32_t reserved;
} quipu_overhead;

/**
 * The rate and contents of samples. Set `size` first (QUIPU_INIT); everything zero is 1000 samples a second,
 * or as many as the system takes at present if these are fewer.
 */
typedef struct quipu_sampling {
    /**
     * sizeof (quipu_sampling).
     */
    size_t size;
    /**
     * Once in so many events; 1 takes each of them. 0 where `frequency` says how often.
     */
    uint64_t period;
    /**
     * So many times a second, for which the period is adjusted. 0 where `period` says how often.
     */
    uint64_t frequency;
    /**
     * Bytes of room for samples in each part of the target, 0 for 512 KiB.
     */
    size_t room;
    /**
     * After how many samples a descriptor becomes readable; 0 is when the room is half full.
     */
    uint32_t wake_after;
    /**
     * Sum of quipu_sampling_flag.
     */
    uint32_t flags;
} quipu_sampling;

/**
 * A caller in a call chain. It does not grow, so that arrays of it stay what they are.
 */
typedef struct quipu_caller {
    /**
     * The address that the call returns to: the instruction after the call.
     */
    uint64_t return_address;
    /**
     * Sum of quipu_sample_flag.
     */
    uint32_t flags;
    /**
     * Zero.
     */
    uint32_t reserved;
} quipu_caller;

/**
 * One sample. The library sets `size`; what a later one adds comes at the end.
 */
typedef struct quipu_sample {
    /**
     * sizeof (quipu_sample) as the library knows it.
     */
    size_t size;
    /**
     * The address of the instruction.
     */
    uint64_t ip;
    /**
     * When it was taken, in nanoseconds of a clock that never goes back.
     */
    uint64_t time;
    /**
     * The number of events it stands for; 0 where the counter jumped, so that it is not known.
     */
    uint64_t period;
    /**
     * The address that the event is about (QUIPU_SAMPLE_HAS_ADDRESS), or 0.
     */
    uint64_t address;
    /**
     * The callers of the function of `ip`, the innermost first (QUIPU_CALL_CHAINS), or null.
     */
    const struct quipu_caller *callers;
    /**
     * The number of callers at `callers`.
     */
    size_t caller_count;
    /**
     * The position of the event among those asked for, from 0.
     */
    uint32_t event;
    /**
     * The CPU.
     */
    uint32_t cpu;
    /**
     * The process.
     */
    int pid;
    /**
     * The thread.
     */
    int tid;
    /**
     * Sum of quipu_sample_flag.
     */
    uint32_t flags;
    /**
     * Zero.
     */
    uint32_t reserved;
} quipu_sample;

/**
 * Takes one sample, which is there for as long as the call lasts; `data` is what quipu_sampler_drain()
 * was given. It must return, and may call this library, but for the same sampler.
 */
typedef void (*quipu_sample_fn)(const struct quipu_sample *sample, void *data);

/**
 * A CPU of the database. Set `size` first (QUIPU_INIT). Texts stay until the handle that was asked is
 * closed.
 */
typedef struct quipu_cpu_info {
    /**
     * sizeof (quipu_cpu_info).
     */
    size_t size;
    /**
     * Its id in the database: "intel-p5".
     */
    const char *id;
    /**
     * Its name for people.
     */
    const char *name;
    /**
     * The vendor as CPUID says it: "GenuineIntel"; null for what is not x86.
     */
    const char *vendor;
    /**
     * The core type on a hybrid CPU: "core", "atom"; else null.
     */
    const char *core_type;
    /**
     * The source of the facts about its events.
     */
    const char *source;
    /**
     * The main id register (MIDR_EL1); 0 for what is not ARM.
     */
    uint64_t midr;
    /**
     * x86: family, with the extended one added in.
     */
    uint32_t family;
    /**
     * x86: model, with the extended one added in.
     */
    uint32_t model;
    /**
     * x86: stepping.
     */
    uint32_t stepping;
    /**
     * The encoding of its events: a quipu_scheme.
     */
    uint32_t scheme;
    /**
     * The number of counters that take any event, and their width in bits; 0 if it is not known.
     */
    uint32_t general_counters;
    /**
     * See general_counters.
     */
    uint32_t general_width;
    /**
     * The number of counters that are for one event each, and their width in bits.
     */
    uint32_t fixed_counters;
    /**
     * See fixed_counters.
     */
    uint32_t fixed_width;
} quipu_cpu_info;

/**
 * An event of a CPU. Set `size` first (QUIPU_INIT). Texts stay until the CPU is closed; those that
 * there are none of are null.
 */
typedef struct quipu_name_info {
    /**
     * sizeof (quipu_name_info).
     */
    size_t size;
    /**
     * Its name, as quipu_set_add() takes it.
     */
    const char *name;
    /**
     * Native: the event's part of the name.
     */
    const char *event;
    /**
     * Native: the unit mask's part of the name.
     */
    const char *mask;
    /**
     * A sentence that says what it counts, where its source has one; for a preset its formula too, after a colon.
     */
    const char *description;
    /**
     * The unit of its values; empty for a plain count.
     */
    const char *unit;
    /**
     * Generalized: the native event it is here. Preset: its events, with commas between them.
     */
    const char *stands_for;
    /**
     * Why this CPU has no such generalized event or preset.
     */
    const char *reason;
    /**
     * Native: what to use instead of one that is deprecated.
     */
    const char *instead;
    /**
     * Native: the numbers of its errata, with commas between them.
     */
    const char *errata;
    /**
     * Sum of quipu_name_flag.
     */
    uint32_t flags;
    /**
     * Native: the event number.
     */
    uint32_t code;
    /**
     * Native: the unit mask.
     */
    uint32_t unit_mask;
    /**
     * Native: the counter mask.
     */
    uint32_t counter_mask;
    /**
     * Native: which general counters can count it, a bit each; all ones when any can.
     */
    uint64_t general_counters;
    /**
     * Native: which fixed counters can count it, a bit each.
     */
    uint64_t fixed_counters;
    /**
     * Native: the value of the extra register it needs; without one, the event number if that is above 32 bits.
     */
    uint64_t extra_value;
    /**
     * Native: the extra register it needs, or 0.
     */
    uint32_t extra_register;
    /**
     * Native: the second unit mask (Intel).
     */
    uint32_t second_mask;
    /**
     * Native: the group of the unit mask, from 1, in an event where one of each group makes up the whole;
     * 0 for none.
     */
    uint32_t mask_group;
    /**
     * Zero.
     */
    uint32_t reserved;
} quipu_name_info;

/**
 * The bits that program an event. Set `size` first (QUIPU_INIT).
 */
typedef struct quipu_encoding {
    /**
     * sizeof (quipu_encoding).
     */
    size_t size;
    /**
     * The meaning of the words: a quipu_encoding_form.
     */
    uint32_t form;
    /**
     * See quipu_encoding_form.
     */
    uint32_t type;
    /**
     * See quipu_encoding_form.
     */
    uint64_t config;
    /**
     * See quipu_encoding_form.
     */
    uint64_t config1;
    /**
     * See quipu_encoding_form.
     */
    uint64_t config2;
    /**
     * See quipu_encoding_form.
     */
    uint64_t config3;
    /**
     * The value of the extra register.
     */
    uint64_t extra_value;
    /**
     * The extra register it needs, or 0.
     */
    uint32_t extra_register;
    /**
     * QUIPU_PERF: the accesses that a breakpoint counts (`bp_type`); its address and length are `config1` and `config2`.
     */
    uint32_t bp_type;
    /**
     * Which general counters can count it, a bit each; all ones when any can. Not read for decoding.
     */
    uint64_t general_counters;
    /**
     * Which fixed counters can count it, a bit each. Not read for decoding.
     */
    uint64_t fixed_counters;
} quipu_encoding;

/**
 * A steady rate for a time.
 */
typedef struct quipu_sim_phase {
    /**
     * The duration in nanoseconds. After the last phase comes the first again.
     */
    uint64_t duration;
    /**
     * Events a microsecond in user mode.
     */
    uint64_t user;
    /**
     * Events a microsecond in kernel mode.
     */
    uint64_t kernel;
} quipu_sim_phase;

/**
 * An event of a simulated PMU.
 */
typedef struct quipu_sim_event {
    /**
     * Its native name.
     */
    const char *name;
    /**
     * The generalized event that it is too ("cycles"), or null.
     */
    const char *also;
    /**
     * The counters that can count it, a bit each; 0 is all.
     */
    uint64_t counters;
    /**
     * When it happens, besides quipu_sim_happen().
     */
    const struct quipu_sim_phase *phases;
    /**
     * The number of phases; without any it happens only when a program causes it.
     */
    size_t phase_count;
} quipu_sim_event;

/**
 * A simulated PMU to be made. Set `size` first (QUIPU_INIT); what is zero is as the PMU of
 * docs/c-api.md has it: two CPUs with four counters of 48 bits, and thirteen events.
 */
typedef struct quipu_sim_config {
    /**
     * sizeof (quipu_sim_config).
     */
    size_t size;
    /**
     * The number of CPUs, which are numbered from 0.
     */
    uint32_t cpus;
    /**
     * The number of counters of each CPU, 64 at most.
     */
    uint32_t counters;
    /**
     * The width of a counter in bits, 64 at most.
     */
    uint32_t width;
    /**
     * The number of events at `events`.
     */
    uint32_t event_count;
    /**
     * Its events, numbered from 1.
     */
    const struct quipu_sim_event *events;
} quipu_sim_config;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * A status in a few words, for any number: "event not supported". The text is never freed.
 */
const char *quipu_strerror(int status);

/**
 * Says what the calling thread's last failure was. A call that succeeds leaves it as it is.
 *
 * Returns QUIPU_OK, or QUIPU_EINVAL when `out` is null or its size is not set.
 */
quipu_status quipu_last_error(struct quipu_error *out);

/**
 * Writes the calling thread's last failure and its hint to standard error, after `prefix` and a
 * colon where `prefix` is not null.
 */
void quipu_perror(const char *prefix);

/**
 * The version of the library: major << 16 | minor << 8 | patch.
 */
uint32_t quipu_version(void);

/**
 * The version of the library as text: "0.1.0". The text is never freed.
 */
const char *quipu_version_string(void);

/**
 * Says how many backends the library knows.
 */
quipu_status quipu_backend_count(size_t *out);

/**
 * Describes a backend, in order of preference from 0: what it can do here, or why it cannot be used.
 */
quipu_status quipu_backend_get(size_t index,
                               struct quipu_backend_info *out);

/**
 * Makes an event set that has no events yet; a null `config` is the calling thread, counted by the
 * backends of this machine. quipu_set_close() closes it.
 *
 * Returns QUIPU_OK and the handle in `out`, or QUIPU_EINVAL for a wrong argument, or why a backend, file or CPU
 * that `config` names cannot be used here.
 */
quipu_status quipu_set_create(const struct quipu_config *config,
                              struct quipu_set **out);

/**
 * Adds events, in any spelling that `quipu stat -e` takes: one ("page-faults:u"), several with commas
 * between them, and groups in braces ("{cycles,instructions}:u"), whose members are counted at the
 * same time or not at all. May be called again until the set is opened.
 *
 * Returns QUIPU_EINVAL when the text is malformed (nothing of it is added then) or the set is open.
 * Only quipu_set_open() finds out if an event exists here.
 */
quipu_status quipu_set_add(struct quipu_set *set,
                           const char *events);

/**
 * Makes a name stand for a formula over events in this set: numbers, names, + - * / and parentheses, as
 * in "branches - branch-misses" (with spaces around an operator). It hides what else has the name; the
 * event that is added under it is counted term by term. A preset of several events is no term.
 *
 * Returns QUIPU_EINVAL when the formula is malformed or the set is open.
 */
quipu_status quipu_set_define(struct quipu_set *set,
                              const char *name,
                              const char *formula);

/**
 * Opens the set: every group on the first backend that can count it. Nothing counts yet.
 *
 * A group that cannot be counted does not sink the others: its events keep their error, which
 * quipu_set_event_error() returns, and the call still returns QUIPU_OK as long as any event is open.
 * When there is none, it returns the status of the first; the set is open all the same. One that nothing was
 * added to is QUIPU_EINVAL, and is not open.
 */
quipu_status quipu_set_open(struct quipu_set *set);

/**
 * Opens the set as quipu_set_open() does, if each event of it can be counted.
 *
 * Returns the status of the first event that cannot; quipu_last_error() says which and why. Nothing is open then, and
 * the set is as it was.
 */
quipu_status quipu_set_open_all(struct quipu_set *set);

/**
 * Starts counting, group by group. Values and times go on from where they are.
 *
 * Returns the first refusal of a backend; the groups after it are still started.
 */
quipu_status quipu_set_start(struct quipu_set *set);

/**
 * Stops counting, group by group. Values and times are kept.
 *
 * Returns the first refusal of a backend; the groups after it are still stopped.
 */
quipu_status quipu_set_stop(struct quipu_set *set);

/**
 * Sets all values to zero, counting or not; times start over with them.
 *
 * Returns the first refusal of a backend; the groups after it are still reset.
 */
quipu_status quipu_set_reset(struct quipu_set *set);

/**
 * Closes a set, open or not, and gives everything back. A null `set` is nothing to close.
 *
 * Returns QUIPU_EHANDLE when it was closed before, QUIPU_EINUSE while another thread uses it.
 */
quipu_status quipu_set_close(struct quipu_set *set);

/**
 * Returns the numbers of events and readings of an open set: for each event that could be opened one
 * reading for each part of its target, for a preset that for each of its events. Either pointer may be
 * null.
 */
quipu_status quipu_set_size(struct quipu_set *set,
                            size_t *events,
                            size_t *readings);

/**
 * Describes an event of an open set, by its position in the order of adding, from 0.
 */
quipu_status quipu_set_event_info(struct quipu_set *set,
                                  size_t event,
                                  struct quipu_event_info *out);

/**
 * Says why an event of an open set could not be opened; the status in `out` is QUIPU_OK when it
 * could.
 */
quipu_status quipu_set_event_error(struct quipu_set *set, size_t event, struct quipu_error *out);

/**
 * Describes what a reading of an event of an open set is of, both numbered from 0.
 */
quipu_status quipu_set_part_info(struct quipu_set *set,
                                 size_t event,
                                 size_t reading,
                                 struct quipu_part_info *out);

/**
 * Reads the set: for each event, in the order of adding, the total over the parts of its target. It
 * takes no lock, makes one system call for each kernel group or less, and allocates nothing as long as
 * the counters can be read, but for a preset of several events.
 *
 * `count` is the number of events (quipu_set_size). An event that cannot be read has the state
 * QUIPU_NOT_READ and a status, and does not sink the others: the call still returns QUIPU_OK.
 */
quipu_status quipu_set_read(struct quipu_set *set,
                            struct quipu_count *out,
                            size_t count);

/**
 * Reads every event and writes its plain value: `values` has room for as many as quipu_set_size() says, in the
 * order of adding.
 *
 * Returns QUIPU_EBUSY when an event had a counter for a part of the time only, or never, so that its value is an
 * estimate or there is none (quipu_set_read() has it); QUIPU_EJUMP when its counter jumped; and why an event could not
 * be opened or read. quipu_last_error() names the event, and nothing is written.
 */
quipu_status quipu_set_values(struct quipu_set *set,
                              uint64_t *values,
                              size_t length);

/**
 * Reads the set part by part and without scaling. The readings of an event's parts are together
 * (`first_reading` in quipu_event_info). It takes no lock, makes one system call for each kernel group or
 * less, and allocates nothing as long as the counters can be read.
 *
 * `count` is the number of readings (quipu_set_size). A reading that fails has a status, and does not
 * sink the others: the call still returns QUIPU_OK.
 */
quipu_status quipu_set_read_parts(struct quipu_set *set,
                                  struct quipu_reading *out,
                                  size_t count);

/**
 * Reads the set, and adds what was counted since `last` to `sum`; `last` becomes what was read.
 *
 * Nothing is reset, so nothing is lost between reading and resetting. Begin with both zero, or with
 * `last` from quipu_set_read_parts(). `count` is the number of readings. A gauge's sum is its present
 * value. Where a counter was reset since `last`, its sum has the status QUIPU_EINVAL from then on.
 */
quipu_status quipu_set_accumulate(struct quipu_set *set,
                                  struct quipu_reading *sum,
                                  struct quipu_reading *last,
                                  size_t count);

/**
 * Computes what was counted between two readings of the same set, `earlier` and `now`; `out` may be
 * either of them. It scales like any reading (quipu_set_total).
 *
 * `count` is the number of readings. Gauges keep their present value. Where a counter was reset in
 * between, the difference has the status QUIPU_EINVAL.
 */
quipu_status quipu_set_difference(struct quipu_set *set,
                                  const struct quipu_reading *now,
                                  const struct quipu_reading *earlier,
                                  struct quipu_reading *out,
                                  size_t count);

/**
 * Computes the totals of a set's events from readings of their parts: as read, as differences, or as
 * sums. Each part is scaled by its own times, then they are added.
 *
 * `reading_count` is the number of readings, `count` the number of events.
 */
quipu_status quipu_set_total(struct quipu_set *set,
                             const struct quipu_reading *readings,
                             size_t reading_count,
                             struct quipu_count *out,
                             size_t count);

/**
 * Computes what one part's reading means for the whole time it was enabled. It is for counters; the
 * value of a gauge is what it is.
 */
quipu_status quipu_scale(const struct quipu_reading *reading, struct quipu_count *out);

/**
 * Measures what an open set itself adds to its counts, by starting, reading and stopping it with nothing in
 * between: for each event, in the order of adding. Instructions in user mode are the same each time as a rule,
 * so that the median can be subtracted. The calls are those of the library: a program in C adds some
 * instructions of its own.
 *
 * `count` is the number of events (quipu_set_size). The set is stopped and its values are zero afterwards. It has
 * to count the calling thread, or the CPU that it is on, to meet its own overhead. Returns the first refusal to
 * start, stop or reset; an event that has no overhead has a status, and does not sink the others.
 */
quipu_status quipu_set_calibrate(struct quipu_set *set,
                                 struct quipu_overhead *out,
                                 size_t count);

/**
 * Returns a number for the region of a name, from 1, by which quipu_region_enter() and quipu_region_leave() know it. It is
 * the same for each call and thread, and never closed.
 *
 * Returns 0, which cannot be entered, if `name` is null or not UTF-8, or in a signal handler that came while the thread
 * looked up a name.
 */
uint32_t quipu_region(const char *name);

/**
 * Enters a region in the calling thread, until quipu_region_leave(). The first time, the thread's counters are opened, as
 * QUIPU_REGION_EVENTS of the environment or quipu_region_events() say. Regions may be inside of others and of themselves.
 *
 * After the first time of a region in the one around it nothing is allocated, and a signal handler may call it too.
 * Returns QUIPU_EBUSY in one that came while the thread entered or left a region, which is not the thread's last error.
 */
quipu_status quipu_region_enter(uint32_t region);

/**
 * Leaves a region, the last one that the calling thread has entered and not left.
 *
 * Returns QUIPU_EINVAL if it is not: another one is inside of it, it was left already, or another thread entered it.
 * Nothing is left then, and the report says so. QUIPU_EBUSY as quipu_region_enter().
 */
quipu_status quipu_region_leave(uint32_t region);

/**
 * Enters the region of a name: quipu_region_enter(quipu_region(name)), which looks the name up each time.
 */
quipu_status quipu_region_begin(const char *name);

/**
 * Leaves the region of a name: quipu_region_leave(quipu_region(name)).
 */
quipu_status quipu_region_end(const char *name);

/**
 * Chooses the events of regions, as quipu_set_add() takes them, and turns QUIPU_REGION_BEGIN on; null are
 * "task-clock,page-faults,instructions,cycles". QUIPU_REGION_EVENTS of the environment goes before them.
 *
 * Returns QUIPU_EINVAL if they are malformed, or a region was entered already.
 */
quipu_status quipu_region_events(const char *events);

/**
 * Returns quipu_region() of a name if regions are on, and QUIPU_REGION_OFF if not: they are on where QUIPU_REGIONS is in the
 * environment, and after quipu_region_events(). QUIPU_REGION_BEGIN asks once for each place.
 */
uint32_t quipu_region_if_on(const char *name);

/**
 * Writes what was counted in regions up to now to the `size` bytes at `text`, with a NUL at its end, as a
 * quipu_region_format: of other threads, up to the last time that they entered or left one. `needed` becomes the
 * number of bytes that the text takes, and may be null; with a `size` of 0 `text` may be.
 *
 * Returns QUIPU_EINVAL when that is more than `size`: nothing is written then but `needed`.
 */
quipu_status quipu_region_report(uint32_t format,
                                 char *text,
                                 size_t size,
                                 size_t *needed);

/**
 * Opens a sampler, which takes no samples until it is started. `events` is as for quipu_set_add(), without
 * groups; a null `config` is the calling thread, a null `how` 1000 samples a second of each
 * event. quipu_sampler_close() closes it.
 *
 * Returns QUIPU_EFEATURE where no backend samples, or those of `config` do not; else why the backend
 * refuses. QUIPU_USER_FALLBACK is QUIPU_EINVAL.
 */
quipu_status quipu_sampler_open(const struct quipu_config *config,
                                const char *events,
                                const struct quipu_sampling *how,
                                struct quipu_sampler **out);

/**
 * Starts sampling.
 */
quipu_status quipu_sampler_start(struct quipu_sampler *sampler);

/**
 * Stops sampling. What was taken can still be drained.
 */
quipu_status quipu_sampler_stop(struct quipu_sampler *sampler);

/**
 * Says which descriptors to wait on: poll(2) finds one readable when samples are to be drained, and
 * hung up when the thread it is of has ended. There is one for each part of the target. They are the
 * sampler's, and closed with it.
 *
 * `fds` has room for `room` of them, or is null; `count` becomes how many there are, and where that is
 * more than `room`, nothing else is written.
 */
quipu_status quipu_sampler_descriptors(struct quipu_sampler *sampler,
                                       int *fds,
                                       size_t room,
                                       size_t *count);

/**
 * Hands out the samples taken since the last time, one call of `each` for each, and makes room for
 * others. Each part of the target hands out its own in the order of their times, one part after the
 * other.
 *
 * Returns QUIPU_EOS when the kernel wrote something that is no record; what was taken so far is given up
 * then.
 */
quipu_status quipu_sampler_drain(struct quipu_sampler *sampler,
                                 quipu_sample_fn each,
                                 void *data);

/**
 * Says how many samples were lost so far because room was not made in time.
 */
quipu_status quipu_sampler_lost(struct quipu_sampler *sampler, uint64_t *out);

/**
 * Closes a sampler and gives everything back. A null `sampler` is nothing to close.
 *
 * Returns QUIPU_EHANDLE when it was closed before, QUIPU_EINUSE while it is in a call.
 */
quipu_status quipu_sampler_close(struct quipu_sampler *sampler);

/**
 * Opens the event database: what is built in, the files of this system and user, and `file` on top
 * where it is not null. quipu_database_close() closes it.
 */
quipu_status quipu_database_open(const char *file, struct quipu_database **out);

/**
 * Closes a database; the CPUs opened from it stay open. A null `database` is nothing to close.
 */
quipu_status quipu_database_close(struct quipu_database *database);

/**
 * Says how many CPUs a database has.
 */
quipu_status quipu_database_cpu_count(struct quipu_database *database, size_t *out);

/**
 * Describes a CPU of a database, numbered from 0.
 */
quipu_status quipu_database_cpu(struct quipu_database *database,
                                size_t index,
                                struct quipu_cpu_info *out);

/**
 * Opens a CPU of a database by its id; a null `id` is the CPU of this machine, of which a hybrid one
 * has several core types, numbered from 0 by `core`. quipu_cpu_close() closes it.
 *
 * Returns QUIPU_EINVAL when there is no such CPU or core type, QUIPU_EFEATURE when the database does
 * not know this machine's.
 */
quipu_status quipu_cpu_open(struct quipu_database *database,
                            const char *id,
                            size_t core,
                            struct quipu_cpu **out);

/**
 * Closes a CPU. A null `cpu` is nothing to close.
 */
quipu_status quipu_cpu_close(struct quipu_cpu *cpu);

/**
 * Describes an open CPU.
 */
quipu_status quipu_cpu_get_info(struct quipu_cpu *cpu, struct quipu_cpu_info *out);

/**
 * Says how many events of a quipu_event_kind a CPU has.
 */
quipu_status quipu_cpu_name_count(struct quipu_cpu *cpu, uint32_t kind, size_t *out);

/**
 * Describes an event of a quipu_event_kind, numbered from 0.
 */
quipu_status quipu_cpu_name(struct quipu_cpu *cpu,
                            uint32_t kind,
                            size_t index,
                            struct quipu_name_info *out);

/**
 * Describes the event of a quipu_event_kind that has this name, in any letter case.
 *
 * Returns QUIPU_EEVENT when there is none.
 */
quipu_status quipu_cpu_find(struct quipu_cpu *cpu,
                            uint32_t kind,
                            const char *name,
                            struct quipu_name_info *out);

/**
 * Finds the bits of an event for a quipu_interface, on any CPU of the database: this machine need not
 * have it. `event` is one event as quipu_set_add() takes it, modifiers included.
 *
 * For QUIPU_FOR_LINUX they are those that are really opened: the kernel's own numbers for generalized events
 * ("page-faults" is type 1, config 2, "cycles" type 0, config 0) and breakpoints, those of the kernel of this machine for
 * tracepoints, probes and events of PMUs ("sched:sched_switch", "cpu/event=0xc0/"). The `config1` of a probe is the address
 * of the name of its function or file, and 0 here; inherited, it is a tracepoint that is made when it is opened. The event
 * of the CPU that "cycles" is has a name, quipu_name_info.stands_for, and the bits of that.
 */
quipu_status quipu_encode(struct quipu_cpu *cpu,
                          const char *event,
                          uint32_t interface,
                          struct quipu_encoding *out);

/**
 * Finds a name that encodes to these bits on a CPU, and writes it to the `size` bytes at `name`, with a
 * NUL at its end. `levels` becomes where it counts, a sum of quipu_filter, or -1 where the bits do not
 * say; it may be null.
 *
 * Returns QUIPU_EEVENT when the CPU has no such event, QUIPU_EINVAL when `name` is too short.
 */
quipu_status quipu_decode(struct quipu_cpu *cpu,
                          const struct quipu_encoding *encoding,
                          char *name,
                          size_t size,
                          int *levels);

/**
 * Reads the time stamp counter of the CPU that the calling thread is on, without a system call: RDTSC of x86, CNTVCT_EL0
 * of 64-bit ARM.
 *
 * It counts time at a rate of its own on today's CPUs, not the CPU's cycles, which the event "cycles" counts; it counts for
 * the CPU, also while the thread is not running; the CPU may execute it before or after instructions beside it, a
 * hypervisor may intercept it; and in a process that has disabled it (prctl(2), PR_SET_TSC) it ends the program.
 * Counters of events are read without a system call by quipu_set_read() where QUIPU_EVENT_USER_READ says so.
 *
 * Returns QUIPU_EFEATURE on other CPUs.
 */
quipu_status quipu_time_stamp(uint64_t *out);

/**
 * Makes a simulated PMU; a null `config` is the ready-made one. Name it in quipu_config to count on
 * it, on CPU targets: `sim.target = QUIPU_CPU`. quipu_sim_close() closes it.
 */
quipu_status quipu_sim_create(const struct quipu_sim_config *config, struct quipu_sim **out);

/**
 * Lets the time of a simulated PMU pass, in nanoseconds: its events happen by their scripts.
 */
quipu_status quipu_sim_advance(struct quipu_sim *sim, uint64_t nanoseconds);

/**
 * Gives the next groups their turn on the counters of every CPU, as the timer of a kernel does.
 */
quipu_status quipu_sim_tick(struct quipu_sim *sim);

/**
 * Makes an event happen on a CPU now, so often in user mode and in kernel mode.
 */
quipu_status quipu_sim_happen(struct quipu_sim *sim,
                              const char *event,
                              uint32_t cpu,
                              uint64_t user,
                              uint64_t kernel);

/**
 * Says how often an event has happened on a CPU so far, in user and kernel mode: what a perfect
 * counter shows.
 */
quipu_status quipu_sim_truth(struct quipu_sim *sim, const char *event, uint32_t cpu, uint64_t *out);

/**
 * Closes a simulated PMU. Sets that count on it go on; programs can no longer cause events of it. A null
 * `sim` is nothing to close.
 */
quipu_status quipu_sim_close(struct quipu_sim *sim);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* QUIPU_H */
