/*
 * likwid.h - the functions of markers, as LIKWID 5.2 has them; on Quipu. Others of LIKWID are not there.
 *
 * Functions that return a number return 0, or -EFAULT: where nothing is measured, or the region is not the last one that the
 * thread has started and not stopped.
 */
#ifndef LIKWID_H
#define LIKWID_H

#ifndef LIKWID_MARKER_INIT
#include <likwid-marker.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** Begins to measure where LIKWID_EVENTS, LIKWID_FILEPATH or QUIPU_REGIONS is in the environment. Call it once. */
void likwid_markerInit(void);

/** Notes on which CPU the calling thread is. It is not bound to it, and counts wherever it runs. */
void likwid_markerThreadInit(void);

/** Makes the name of a region known. */
int likwid_markerRegisterRegion(const char *regionTag);

/** Enters a region in the calling thread. */
int likwid_markerStartRegion(const char *regionTag);

/** Leaves the region that the calling thread has entered last. */
int likwid_markerStopRegion(const char *regionTag);

/** Forgets what the calling thread has counted in a region that it is not inside of. */
int likwid_markerResetRegion(const char *regionTag);

/** Has likwid_markerGetRegion return the next group of events. All groups are counted all the time. */
void likwid_markerNextGroup(void);

/**
 * Fills in what the calling thread has counted in a region: at most *nr_events events of the group, which becomes their number,
 * the time in seconds, and the number of calls. An event that has no value is not a number (NAN). Of a region that the
 * thread does not have nothing is filled in.
 */
void likwid_markerGetRegion(const char *regionTag, int *nr_events, double *events, double *time, int *count);

/** Writes what was counted up to now to a file, in the form of LIKWID. */
int likwid_markerWriteFile(const char *markerfile);

/** Writes what was counted: to the file of LIKWID_FILEPATH; else, unless QUIPU_REGIONS asks for a report, to standard error. */
void likwid_markerClose(void);

/** Returns the number of the CPU that the calling thread is on, or -1 where the system does not say. */
int likwid_getProcessorId(void);

/** Binds the calling thread to a CPU. Returns 1, or 0 if it cannot be. */
int likwid_pinThread(int processorId);

/** Binds the calling thread, and threads that it starts later, to a CPU. Returns 1, or 0 if it cannot be. */
int likwid_pinProcess(int processorId);

#ifdef __cplusplus
}
#endif

#endif
