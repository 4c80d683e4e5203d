/*
 * likwid-marker.h - markers around the parts of a program that are measured, as LIKWID 5.2 has them; on Quipu.
 *
 * With LIKWID_PERFMON defined they call the library; without it they are nothing.
 */
#ifndef LIKWID_MARKER_H
#define LIKWID_MARKER_H

#ifdef LIKWID_PERFMON
#include <likwid.h>

#define LIKWID_MARKER_INIT likwid_markerInit()
#define LIKWID_MARKER_THREADINIT likwid_markerThreadInit()
#define LIKWID_MARKER_REGISTER(regionTag) likwid_markerRegisterRegion(regionTag)
#define LIKWID_MARKER_START(regionTag) likwid_markerStartRegion(regionTag)
#define LIKWID_MARKER_STOP(regionTag) likwid_markerStopRegion(regionTag)
#define LIKWID_MARKER_SWITCH likwid_markerNextGroup()
#define LIKWID_MARKER_GET(regionTag, nevents, events, time, count) \
    likwid_markerGetRegion(regionTag, nevents, events, time, count)
#define LIKWID_MARKER_RESET(regionTag) likwid_markerResetRegion(regionTag)
#define LIKWID_MARKER_WRITE_FILE(markerfile) likwid_markerWriteFile(markerfile)
#define LIKWID_MARKER_CLOSE likwid_markerClose()
#else
#define LIKWID_MARKER_INIT
#define LIKWID_MARKER_THREADINIT
#define LIKWID_MARKER_REGISTER(regionTag)
#define LIKWID_MARKER_START(regionTag)
#define LIKWID_MARKER_STOP(regionTag)
#define LIKWID_MARKER_SWITCH
#define LIKWID_MARKER_GET(regionTag, nevents, events, time, count)
#define LIKWID_MARKER_RESET(regionTag)
#define LIKWID_MARKER_WRITE_FILE(markerfile)
#define LIKWID_MARKER_CLOSE
#endif

/* Markers of graphics processors, which are not measured. */
#ifdef LIKWID_NVMON
#error "Quipu has no markers of graphics processors: compile without LIKWID_NVMON"
#endif
#define LIKWID_NVMARKER_INIT
#define LIKWID_NVMARKER_THREADINIT
#define LIKWID_NVMARKER_REGISTER(regionTag)
#define LIKWID_NVMARKER_START(regionTag)
#define LIKWID_NVMARKER_STOP(regionTag)
#define LIKWID_NVMARKER_SWITCH
#define LIKWID_NVMARKER_GET(regionTag, ngpus, nevents, events, time, count)
#define LIKWID_NVMARKER_RESET(regionTag)
#define LIKWID_NVMARKER_CLOSE

#endif
