/* SPDX-License-Identifier: Apache-2.0 */
/*
 * statcc.h - programs that share a cache: how much of it each one gets, and how fast each then runs (StatCC;
 * docs/methods.md, section 8). Pure: curves in, numbers out. statcc.c derives the method.
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
    double miss[HIST_BINS + 1]; /* miss ratio of an LRU cache of so many lines; [0], without lines: 1 */
    double
        refs[HIST_BINS + 1]; /* references that touch so many distinct lines, as expected; INFINITY: never */
    double known_lines;      /* the curve is unknown for larger caches; INFINITY: it is known everywhere */
};

/* As in the paper: both arrays from reuse distances, by StatStack. miss[] equals curve_statstack's result. */
int statcc_curve_statstack(const struct hist *reuse, uint64_t dangling, struct statcc_curve *curve,
                           struct error *err);
/* miss[] from exact stack distances, as curve_exact; refs[] from reuse distances. */
int statcc_curve_exact(const struct hist *stack, const struct hist *reuse, uint64_t cold,
                       struct statcc_curve *curve, struct error *err);
/*
 * From a miss-ratio curve of any origin, sizes ascending. refs[] by integration: a program that holds c lines
 * gets a new one every 1 / miss(c) references. The curve ends at the first NaN: known_lines is the size
 * before it. Miss ratios that rise with the size (noise) are flattened. -EINVAL: no points, sizes not
 * ascending, or ratios outside 0 .. 1.
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
    const struct statcc_curve *curve; /* of a cache that all its threads share */
    const struct statcc_curve
        *private_curve; /* of caches that each thread has for itself: the private levels */
    double threads;     /* that work at the same time, each at this CPI: so many times as many references; at
                           least 1 */
    double references_per_instruction; /* above 0 */
    double cpi_base;                   /* cycles of an instruction but for its references; 0 or more */
    double overlap; /* of references with each other and with instructions: latencies count 1/overlap; at
                       least 1 */
    int pipelined;  /* latencies count less that of the first level, whose hits are part of cpi_base (a
                       pipelined core); 0: all latencies count in full, as in the paper */
    double lines_per_miss;  /* lines moved for a miss, write-backs included: 1 .. 2 */
    double partition_lines; /* a partition of the shared cache of its own; 0: competes for the rest */
    double cpi_factor;      /* deliberate error of the CPI model (experiment 3 of the paper); 1: none */
};
/* As in the paper: base 1.0, no overlap, one thread, the rest neutral. */
struct statcc_program statcc_paper_program(const struct statcc_curve *curve,
                                           double references_per_instruction);

struct statcc_result {
    double miss_ratio;                   /* of the shared cache, by references of the program */
    double private_miss[STATCC_PRIVATE]; /* of private levels, likewise */
    double cpi;                          /* of each thread, without cpi_factor */
    double lines;                        /* the program's share of the shared cache */
    double lines_per_cycle;              /* moved from and to memory, by all threads */
    int unknown;                         /* its share is beyond known_lines */
};

struct statcc_solution {
    int converged;       /* 0: the results must not be used */
    unsigned iterations; /* of the fixed point */
    double residual;     /* relative residual: largest relative change of a CPI in the last iteration */
    double wait_cycles;  /* added to each memory access by the bandwidth limit */
    double utilisation;  /* of the memory's bandwidth, 0..1; 0 without a limit */
};

/*
 * n (1 .. STATCC_PROGRAMS) programs together; results[i] belongs to the i-th. Programs without a partition
 * share shared_lines less all partitions. 0, or -EINVAL (a value out of its bounds; partitions that leave
 * nothing). Failure to converge is reported in solution->converged only.
 */
int statcc_solve(const struct statcc_machine *machine, const struct statcc_program *programs, uint32_t n,
                 struct statcc_result *results, struct statcc_solution *solution, struct error *err);

/*
 * CPI of a program with the given miss ratio of the shared cache; private levels as in a run alone:
 *
 *     base + references_per_instruction * (sum over levels of (share of hits * latency) / overlap + miss *
 * wait)
 *
 * pipelined: latencies less that of the first level.
 */
double statcc_cpi(const struct statcc_machine *machine, const struct statcc_program *program, double miss,
                  double wait_cycles);

/*
 * Fits a program to its CPI measured alone on the machine. cpi_base is what references do not explain. If
 * that is below least_base, cpi_base is least_base and overlap is fitted instead (a core that does not wait
 * for all of its references). -ERANGE if the measured CPI is not above least_base; then nothing is changed.
 */
int statcc_fit(const struct statcc_machine *machine, double measured_cpi, double least_base,
               struct statcc_program *program, struct error *err);
/*
 * Fits both to CPIs measured alone with two sizes of shared cache, in lines. -ERANGE if the miss ratios are
 * equal or the CPI does not rise with them; then nothing is changed.
 */
int statcc_fit_two(const struct statcc_machine *machine, const double shared_lines[2],
                   const double measured_cpi[2], struct statcc_program *program, struct error *err);

#endif
