/* SPDX-License-Identifier: Apache-2.0 */
/* program.h - what the models of shared caches and of other machines need of a profile. */
#ifndef CACHEGRAM_ANALYSIS_PROGRAM_H
#define CACHEGRAM_ANALYSIS_PROGRAM_H

#include <stdint.h>
#include "base/error.h"
#include "model/statcc.h"

/* Large: allocate it. */
struct analysis_program {
    char name[64];       /* the profile's file name without folder and .db; of cachegram.db, its command's */
    const char *profile; /* file name, the caller's */
    int full;            /* from a profile of full mode; else the curves are estimates */
    int exact;           /* and from every reference */
    unsigned line_bytes;
    double references_per_instruction; /* NaN: not in the profile */
    double ns_per_instruction;     /* of CPU time in native code, by the reference clock; NaN: not known */
    double clock_error;            /* share by which that may be wrong; NaN: not known */
    char clock[16], cpu[128];      /* the clock, and where it was recorded; empty: not known */
    struct statcc_curve curve;     /* the best there is; beyond known_lines the middle of low and high */
    struct statcc_curve low, high; /* what the samples allow; equal to curve where that is exact */
};

/*
 * paper: model reuse distances by StatStack, as the paper does, where the profile has them all (mode full);
 * else the exact curve. 0, -EINVAL or -ENODATA (nothing to model in it), or what opening it returned.
 */
int analysis_program_load(const char *profile, int paper, struct analysis_program *program,
                          struct error *err);

#endif
