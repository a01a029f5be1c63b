/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an exact stack distance costs, by footprint, when lines are drawn at random: the worst case, as
 * nothing is near. Every line has been touched before. Prints ns a reference.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/hist.h"
#include "base/random.h"
#include "sim/stackdist.h"

#define REFERENCES 4000000u

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int measure(uint64_t *lines, uint64_t footprint)
{
    static struct hist stack, reuse;
    struct random_state random;
    struct error err;
    uint64_t cold = 0;
    struct stackdist *sd = stackdist_new(&err);
    if (sd == NULL) {
        fprintf(stderr, "%s\n", err.text);
        return -1;
    }
    for (size_t i = 0; i < footprint; i++)
        lines[i] = i;
    int ret = stackdist_touch_many(sd, lines, footprint, &stack, &reuse, NULL, &cold, NULL);
    random_seed(&random, 1);
    for (size_t i = 0; i < REFERENCES; i++)
        lines[i] = random_below(&random, footprint);
    double start = now_ns();
    ret |= stackdist_touch_many(sd, lines, REFERENCES, &stack, &reuse, NULL, &cold, NULL);
    double end = now_ns();
    printf("stack distance, %8llu random lines: %6.1f ns a reference, %.1f bytes a line\n",
           (unsigned long long)footprint, (end - start) / REFERENCES,
           (double)stackdist_memory_bytes(sd) / (double)footprint);
    stackdist_free(sd);
    return ret;
}

int main(void)
{
    static const uint64_t footprints[] = {256, 4096, 100000, 1000000, 4000000};
    uint64_t *lines = malloc(REFERENCES * sizeof *lines);
    int ret = lines != NULL ? 0 : 1;
    for (size_t i = 0; ret == 0 && i < sizeof footprints / sizeof footprints[0]; i++)
        ret = measure(lines, footprints[i]);
    free(lines);
    return ret == 0 ? 0 : 1;
}
