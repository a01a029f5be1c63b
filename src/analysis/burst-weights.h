/* SPDX-License-Identifier: Apache-2.0 */
/* burst-weights.h - weights of single bursts in estimates of the whole run. */
#ifndef CACHEGRAM_ANALYSIS_BURST_WEIGHTS_H
#define CACHEGRAM_ANALYSIS_BURST_WEIGHTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "model/watched.h"
#include "profile/profile.h"

struct analysis_weight {
    uint64_t burst, process; /* ids in the profile */
    uint32_t tid;
    double weight; /* references of the run that one of its references represents */
};

/* A watched line that missed when it was touched again, or was never. */
struct analysis_missed {
    uint64_t burst, process; /* ids; of its last touch before that */
    uint32_t tid;
    uint64_t site;   /* id of the instruction that touched it again; 0: not known, or it was never touched */
    uint64_t object; /* id; 0: not known */
    double weight;
};

struct analysis_weights {
    unsigned line_bytes;          /* input */
    struct analysis_weight *list; /* by burst; malloc'ed */
    size_t n;
    struct analysis_missed *missed; /* by burst; malloc'ed */
    size_t nmissed;
    struct curve_far far; /* at the given size */
};

/* For a profile of bursts; name: its file, for messages. -ENODATA if it has none. */
int analysis_burst_weights(struct profile *p, const char *name, double size_bytes,
                           struct analysis_weights *weights, struct error *err);

#endif
