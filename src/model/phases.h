/* SPDX-License-Identifier: Apache-2.0 */
/*
 * phases.h - groups windows of a run that execute the same code and use data alike (docs/methods.md, section
 * 13). Pure: arrays in, numbers out.
 */
#ifndef CACHEGRAM_PHASES_H
#define CACHEGRAM_PHASES_H

#include <stddef.h>
#include <stdint.h>

#define PHASES_CODE 64u /* places of code, hashed */
#define PHASES_DATA 12u /* cache sizes: lines of 1 KB, 2 KB, ... 2 MB */

/* How the data part of a window was measured; parts of different kinds are not compared. */
enum phases_data { PHASES_NO_DATA = 0, PHASES_EXACT, PHASES_SAMPLED, PHASES_KINDS };

struct phases_window {
    uint32_t thread;          /* windows of a thread are in order of time; threads may alternate */
    double weight;            /* work in it, in any unit common to all */
    double samples;           /* independent samples of code; INFINITY: all of the code */
    double code[PHASES_CODE]; /* how often each place was executed or sampled */
    enum phases_data kind;
    double bursts;            /* PHASES_SAMPLED: number of bursts that `data` is the mean of */
    double data[PHASES_DATA]; /* miss ratios */
    uint32_t phase;           /* result: from 1, in order of first appearance; 0: no code is known */
};

/* Sets the phase of each window. Returns the number of phases, or -ENOMEM. */
int phases_find(struct phases_window *windows, size_t n);

#endif
