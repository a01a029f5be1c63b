/* SPDX-License-Identifier: Apache-2.0 */
/*
 * statcc.h - programs that share a cache: who gets how much of it, and how fast each then is (StatCC: Eklov,
 * thesis Paper II; METHODS.md 6). Pure: curves in, numbers out. The method is told in statcc.c.
 *
 * Units: caches in lines, time in cycles of one clock. A program executes instructions, of which each makes
 * references_per_instruction references; its speed is cycles per instruction (CPI).
 */
#ifndef CACHEGRAM_STATCC_H
#define CACHEGRAM_STATCC_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "base/hist.h"
#include "model/curve.h"

#define STATCC_PROGRAMS 64u /* that can be solved together */
#define STATCC_PRIVATE 3u   /* private levels of a core, at most */

/*
 * A program alone. Index b means hist_edge(b) lines; between edges all is linear. Large: allocate it.
 */
struct statcc_curve {
    double miss[HIST_BINS + 1]; /* miss ratio of an LRU cache of so many lines; [0], of none: 1 */
    double
        refs[HIST_BINS + 1]; /* references that touch so many distinct lines, as expected; INFINITY: never */
    double known_lines;      /* the curve carries no answer beyond; INFINITY: it does everywhere */
};

/* The paper's: both from reuse distances, by StatStack. miss[] is what curve_statstack gives. */
int statcc_curve_statstack(const struct hist *reuse, uint64_t dangling, struct statcc_curve *curve,
                           struct error *err);
/* Miss ratios from exact stack distances (miss[] is what curve_exact gives), refs[] from reuse distances. */
int statcc_curve_exact(const struct hist *stack, const struct hist *reuse, uint64_t cold,
                       struct statcc_curve *curve, struct error *err);
/*
 * From a miss-ratio curve of any origin, sizes rising. refs[] by integration: a program that holds c lines
 * gets a new one each 1 / miss(c) references. A NaN ends the curve: known_lines is the size before it. Rising
 * miss ratios (noise) are flattened. -EINVAL: no points, sizes that do not rise, ratios outside 0 .. 1.
 */
int statcc_curve_points(const struct curve_point *points, size_t n, unsigned line_bytes,
                        struct statcc_curve *curve, struct error *err);
/* Miss ratio alone in a cache of so many lines, 0 or more. */
double statcc_curve_miss(const struct statcc_curve *curve, double lines);
/* Distinct lines touched in so many references, as expected; 0 or more. */
double statcc_curve_lines(const struct statcc_curve *curve, double refs);

struct statcc_machine {
    uint32_t privates;                         /* private levels, innermost first */
    double private_lines[STATCC_PRIVATE];      /* of each */
    double shared_lines;                       /* of the cache that all share */
    double latency_cycles[STATCC_PRIVATE + 2]; /* of a hit in each private level, then shared, then memory */
    double bandwidth_lines;                    /* lines a cycle that memory moves at most; 0: no limit */
};
/* Table 1 of the paper: 32 KB private, 2 MB shared, 1/10/130 cycles, lines of 64 bytes, no bandwidth limit.
 */
extern const struct statcc_machine statcc_paper;

struct statcc_program {
    const struct statcc_curve *curve;
    double references_per_instruction; /* above 0 */
    double cpi_base;                   /* cycles of an instruction but for its references; 0 or more */
    double overlap; /* of references with each other and with instructions: latencies count 1/overlap; at
                       least 1 */
    int pipelined;  /* hits in the first level cost nothing but what is in cpi_base, further levels only what
                       they  take longer: a core that goes on meanwhile. 0: all latencies count, as in the
                       paper
                     */
    double lines_per_miss;  /* lines moved for a miss, write-backs included: 1 .. 2 */
    double partition_lines; /* a part of the shared cache that is its own; 0: competes for what is left */
    double cpi_factor;      /* how wrong the CPI model is for it (experiment 3 of the paper); 1: right */
};
/* Of the paper: base 1.0, no overlap, and the rest neutral. */
struct statcc_program statcc_paper_program(const struct statcc_curve *curve,
                                           double references_per_instruction);

struct statcc_result {
    double miss_ratio;                   /* of the shared cache, by references of the program */
    double private_miss[STATCC_PRIVATE]; /* of private levels, likewise */
    double cpi;                          /* without cpi_factor */
    double lines;                        /* the program's share of the shared cache */
    double lines_per_cycle;              /* it moves from and to memory */
    int unknown;                         /* its share is beyond known_lines: the curve does not carry it */
};

struct statcc_solution {
    int converged;       /* 0: residual is what is left, and the results are not to be trusted */
    unsigned iterations; /* of the fixed point */
    double residual;     /* largest relative change of a CPI that another iteration would want */
    double wait_cycles;  /* that the memory's bandwidth adds to each of its accesses */
    double utilisation;  /* of the memory's bandwidth, 0..1; 0 without a limit */
};

/*
 * n (1 .. STATCC_PROGRAMS) programs side by side; results[i] is of the i-th. Programs without a partition
 * share shared_lines less all partitions. 0, or -EINVAL (a value out of its bounds; partitions that leave
 * nothing). Not to converge is no failure: solution->converged says it.
 */
int statcc_solve(const struct statcc_machine *machine, const struct statcc_program *programs, uint32_t n,
                 struct statcc_result *results, struct statcc_solution *solution, struct error *err);

/*
 * CPI of a program with the given miss ratio of the shared cache, private ones as alone:
 *     base + references_per_instruction * (sum over levels of (share of hits * latency) / overlap + miss *
 * wait)
 *
 * pipelined: latencies less that of the first level.
 */
double statcc_cpi(const struct statcc_machine *machine, const struct statcc_program *program, double miss,
                  double wait_cycles);

/*
 * Fit a program to a measured CPI alone on the machine. What references do not explain is cpi_base; where
 * that would be below least_base, cpi_base is that and overlap makes up for it (a core that does not wait for
 * all of its references). -ERANGE if the measured CPI is not above least_base; the program is left as it was.
 */
int statcc_fit(const struct statcc_machine *machine, double measured_cpi, double least_base,
               struct statcc_program *program, struct error *err);
/*
 * Fit both to CPIs measured alone with two sizes of shared cache, in lines. -ERANGE where these tell
 * nothing: equal miss ratios, or a CPI that does not rise with them; the program is left as it was.
 */
int statcc_fit_two(const struct statcc_machine *machine, const double shared_lines[2],
                   const double measured_cpi[2], struct statcc_program *program, struct error *err);

#endif
