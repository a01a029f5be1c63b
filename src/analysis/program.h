/* SPDX-License-Identifier: Apache-2.0 */
/* program.h - data of a profile for the models of shared caches and of other machines. */
#ifndef CACHEGRAM_ANALYSIS_PROGRAM_H
#define CACHEGRAM_ANALYSIS_PROGRAM_H

#include <stdint.h>
#include "base/error.h"
#include "model/statcc-phases.h"
#include "profile/profile.h"

/* Large: allocate it. */
struct analysis_program {
    char name[64]; /* base name of the profile's file without .db; for cachegram.db, the command's name */
    const char *profile; /* file name, the caller's */
    int full;            /* from a profile of full mode; otherwise the curves are estimates */
    int exact;           /* likewise, and from every reference */
    unsigned line_bytes;
    double references_per_instruction; /* NaN: not in the profile */
    double ns_per_instruction;     /* of CPU time in native code, by the reference clock; NaN: not known */
    double clock_error;            /* relative error of that; NaN: unknown */
    char clock[16], cpu[128];      /* the clock, and the machine's CPU; empty: unknown */
    struct statcc_curve curve;     /* the best estimate; beyond known_lines the middle of low and high */
    struct statcc_curve low, high; /* bounds of the confidence interval; equal to curve if that is exact */
    double threads; /* that work at the same time (struct analysis_busy); 1: one after the other */
    struct statcc_curve own, own_low,
        own_high;                      /* as the three, of caches that each of these has for itself */
    uint32_t phases;                   /* 0: none, or too few bursts in them, or several threads */
    struct statcc_curve *phase_curve;  /* [phases]; their mean is `curve` */
    double phase_share[STATCC_PHASES]; /* of the references */
    uint32_t found_phases;             /* of the profile */
    int in_several;                    /* threads that run at the same time: phases are of no use */
};

/*
 * paper: model reuse distances by StatStack, as the paper does, if the profile has all of them (mode full);
 * otherwise the exact curve is used. name: the profile's file, for messages. 0, -EINVAL or -ENODATA (no data
 * for a model).
 */
int analysis_program_load(struct profile *p, const char *name, int paper, struct analysis_program *program,
                          struct error *err);
void analysis_program_clear(struct analysis_program *program);

#endif
