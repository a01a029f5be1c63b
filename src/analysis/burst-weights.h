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

struct analysis_weights {
    unsigned line_bytes;          /* input */
    struct analysis_weight *list; /* by burst; malloc'ed */
    size_t n;
    struct curve_far far; /* at the given size */
};

/* For a profile of bursts; name: its file, for messages. -ENODATA if it has none. */
int analysis_burst_weights(struct profile *p, const char *name, double size_bytes,
                           struct analysis_weights *weights, struct error *err);

#endif
