/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hotspots.h - who misses in a cache of a given size: functions, source lines, modules, instructions. From a
 * profile of full mode the answer is exact, from bursts an estimate with intervals (model/shares.h).
 */
#ifndef CACHEGRAM_ANALYSIS_HOTSPOTS_H
#define CACHEGRAM_ANALYSIS_HOTSPOTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "model/shares.h"
#include "profile/profile.h"
#include "profile/sites.h"

enum analysis_by { ANALYSIS_BY_FUNCTION, ANALYSIS_BY_LINE, ANALYSIS_BY_MODULE, ANALYSIS_BY_INSN };

struct analysis_hotspots_question {
    double size_bytes;
    enum analysis_by by;
    uint32_t tid;     /* only this thread; 0: all */
    const char *comm; /* only processes whose executable has that name, without folders; NULL: all */
};

/* A function, line, module or instruction. Pointers are into struct analysis_hotspots. */
struct analysis_hotspot {
    const struct profile_image *image;
    const struct profile_frame *frame; /* innermost one; NULL: the code has no names */
    const struct profile_frame *outer; /* the function as it was compiled; NULL likewise */
    uint64_t offset; /* of an instruction, by ANALYSIS_BY_INSN; PROFILE_SITE_REST: of several */
    int rest;        /* all sites of the image that are not kept apart */
    struct shares_result shares;
};

struct analysis_hotspots {
    const char *profile; /* file name; the caller's */
    unsigned line_bytes;
    double size_bytes;
    enum analysis_by by;
    int full;              /* exact */
    double missed_percent; /* see struct analysis_curve */
    size_t bursts;         /* that the numbers are from; 0 in full mode */
    size_t other_bursts;   /* of those asked for, without counts of sites */
    double far;            /* chance to miss where bursts do not decide; NaN: not known, half is assumed */
    struct shares_result total;
    struct analysis_hotspot *rows; /* by share of misses, largest first */
    size_t n;
    /* what they point to */
    struct profile_image *images;
    size_t nimages;
    struct profile_frame *frames;
    size_t nframes;
};

/* 0, or negative with err: -ENODATA if the profile holds no code, or none of what is asked for. */
int analysis_hotspots(struct profile *p, const char *name, const struct analysis_hotspots_question *question,
                      struct analysis_hotspots *h, struct error *err);
void analysis_hotspots_clear(struct analysis_hotspots *h);
/* The frame into which that one is inlined; NULL: none. */
const struct profile_frame *analysis_caller(const struct analysis_hotspots *h,
                                            const struct profile_frame *frame);

#endif
