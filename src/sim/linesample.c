/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/linesample.h"

#include <math.h>
#include <string.h>

#include "base/random.h"

/* Lines processed together; those in the sample stay in a first-level cache. */
#define CHUNK 1024u

uint64_t linesample_threshold(double rate)
{
    return (uint64_t)ldexp(rate, 64);
}

static inline uint64_t hash(uint64_t line)
{
    return random_splitmix64(&line);
}

int linesample_touch(struct linesample *sample, struct stackdist *stack, uint64_t threshold, uint64_t mark,
                     const uint64_t *lines, size_t n)
{
    uint64_t chosen[CHUNK + 1], distances[CHUNK + STACKDIST_FAR_EXTRA];
    uint32_t at[CHUNK + STACKDIST_FAR_EXTRA];
    struct stackdist_far far = {.least = 1, .at = at, .stack = distances};

    for (size_t done = 0; done < n; done += CHUNK) {
        size_t end = n - done < CHUNK ? n : done + CHUNK, count = 0;
        if (threshold == LINESAMPLE_ALL)
            memcpy(chosen, lines + done, (count = end - done) * sizeof(*chosen));
        else
            for (size_t i = done; i < end; i++) {
                chosen[count] = lines[i];
                count += hash(lines[i] ^ mark) < threshold;
            }
        if (count == 0)
            continue;
        int status =
            stackdist_touch_many(stack, chosen, count, &sample->stack, NULL, NULL, &sample->cold, &far);
        if (status < 0)
            return status;
        sample->sampled += count;
        for (size_t i = 0; i < far.n; i++) {
            /* Low bits: the high bits selected the line. */
            struct linesample_group *group =
                &sample->groups[hash(chosen[far.at[i]] ^ mark) % LINESAMPLE_GROUPS];
            if (far.stack[i] == STACKDIST_COLD)
                group->cold++;
            else
                hist_add(&group->stack, far.stack[i], 1);
        }
    }
    return 0;
}
