/* SPDX-License-Identifier: Apache-2.0 */
/* What an exact stack distance costs, by footprint: the collector's inner loop. Prints ns a reference. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/hist.h"
#include "base/random.h"
#include "sim/stackdist.h"

#define REFERENCES 2000000u

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int main(void)
{
    static struct hist stack, reuse;
    uint64_t *lines = malloc(REFERENCES * sizeof *lines);
    if (lines == NULL)
        return 1;
    for (unsigned shift = 8; shift <= 20; shift += 4) {
        struct random_state random;
        random_seed(&random, 1);
        for (size_t i = 0; i < REFERENCES; i++)
            lines[i] = random_below(&random, UINT64_C(1) << shift);

        struct error err;
        struct stackdist *sd = stackdist_new(0, &err);
        if (sd == NULL) {
            fprintf(stderr, "%s\n", err.text);
            free(lines);
            return 1;
        }
        uint64_t cold = 0;
        double start = now_ns();
        int ret = stackdist_touch_many(sd, lines, REFERENCES, &stack, &reuse, NULL, &cold);
        double end = now_ns();
        stackdist_free(sd);
        if (ret != 0) {
            free(lines);
            return 1;
        }
        printf("stack distance, %8u random lines: %6.1f ns a reference\n", 1u << shift,
               (end - start) / REFERENCES);
    }
    free(lines);
    return 0;
}
