/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine.h - descriptions of machines: caches, latencies, bandwidths, clocks. Measured here, read from a
 * JSON file, or built in.
 */
#ifndef CACHEGRAM_MACHINE_H
#define CACHEGRAM_MACHINE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include "base/error.h"

#define MACHINE_LEVELS 4u
#define MACHINE_CURVE 64u
#define MACHINE_CORES 64u /* core counts for which bandwidth is reported */

struct machine_bandwidth {
    unsigned cores; /* that run at the same time */
    double read_gbps, write_gbps,
        copy_gbps; /* 10^9 bytes per second, of all together; copy counts both directions */
};

/* Unknown numbers are NaN (doubles) or 0 (integers). */
struct machine_level {
    uint64_t size_bytes; /* as the system reports it; of each cache of the level */
    unsigned ways;
    unsigned shared_by;    /* cores that share one */
    double latency_cycles; /* of dependent loads, in cycles of the core clock */
    double latency_ns;
    uint64_t measured_bytes; /* largest size with this level's latency, as measured */
    struct machine_bandwidth bandwidth[MACHINE_CORES];
    size_t nbandwidth;
};

struct machine {
    char name[64], cpu[128], source[512]; /* source: origin of the numbers, in words */
    char hypervisor[32];                  /* empty: none detected */
    unsigned cores, line_bytes;
    int in_order;            /* its cores wait for every load, also for first-level hits */
    double clock_hz, tsc_hz; /* clock: of the core while it was measured */
    struct machine_level level[MACHINE_LEVELS];
    uint32_t levels;
    struct machine_level memory; /* latency and bandwidth; size_bytes: installed */
    /* The measured latency curve: a chain of dependent loads through so many bytes. */
    struct machine_curve_point {
        uint64_t size_bytes;
        double ns;
    } curve[MACHINE_CURVE];
    size_t ncurve;
};

/* --- descriptions --- */
/* Finds a built-in machine by name, or reads a file. -ENOENT, -EINVAL (not such a description). */
int machine_find(const char *name_or_file, struct machine *machine, struct error *err);
/* Built-in machines: i from 0; NULL after the last. Never freed. */
const struct machine *machine_known(size_t i);
/* Writes JSON that machine_read can read; unknown numbers are null. */
void machine_write(FILE *out, const struct machine *machine);
int machine_read(const char *path, struct machine *machine, struct error *err);
/* Whether clock or latencies are unknown, without which there is no model of time: then text says which, why,
 * and what would measure them. It follows "lacks ". */
#define MACHINE_LACKS 256u
int machine_lacks(const struct machine *machine, char text[MACHINE_LACKS]);
/* Buffers so many times as large as the last cache have a size on the latency curve, which rises by half
 * octaves, that is more than twice that cache: there, most loads are from memory. */
#define MACHINE_LARGEST_TIMES 3u

/* --- this machine --- */
/* What the system reports: caches, cores, CPU, hypervisor; nothing is measured. */
int machine_topology(struct machine *machine, struct error *err);
struct machine_probe {
    double seconds_a_point; /* duration of each latency and each bandwidth measurement; the best of its parts
                               counts */
    uint64_t largest_bytes; /* of the latency curve, and of all buffers for the bandwidth of memory; 0: four
                               times the last level's size, at most MACHINE_LARGEST_BYTES; for bandwidth, of
                               each last cache in use */
    unsigned cores;         /* bandwidth for 1 to so many; 0: all on which the process may run */
};
#define MACHINE_LARGEST_BYTES (UINT64_C(1) << 28) /* more would take seconds to set up */
/* Adds clocks, latencies and bandwidths to what machine_topology filled. Takes a while and disturbs the
 * caches of all cores that it uses. interrupted may be NULL. */
int machine_measure(struct machine *machine, const struct machine_probe *probe,
                    const volatile int *interrupted, struct error *err);
/* Finds the sizes at which the latency curve leaves each level: fills measured_bytes and latencies of levels
 * and memory. */
void machine_find_levels(struct machine *machine);

#endif
