/* SPDX-License-Identifier: Apache-2.0 */
/* findings.h - what a programmer should look at first: the one place with a large part of the misses, if
 * there is. */
#ifndef CACHEGRAM_ANALYSIS_FINDINGS_H
#define CACHEGRAM_ANALYSIS_FINDINGS_H

#include <stddef.h>
#include <stdint.h>

#include "profile/objects.h"
#include "profile/profile.h"

#define FINDINGS_MOST 2u

struct analysis_finding {
    double size_bytes;
    double share, low, high; /* of all misses, with 95% interval */
    double miss_ratio;       /* of the program */
    char function[512], module[512];
    char file[512]; /* "": not known, or the function's misses are in many lines */
    uint32_t line;
    char object[512]; /* name of the data that most of these misses are of; "": not known, or several */
};

/* At some common sizes, smallest first: only where the share is significant. Their number. */
size_t analysis_findings(struct profile *p, const char *name,
                         struct analysis_finding findings[FINDINGS_MOST]);

#endif
