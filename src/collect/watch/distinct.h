/* SPDX-License-Identifier: Apache-2.0 */
/*
 * distinct.h - how many other lines a burst's tail touches until it touches a line of the burst again.
 *
 * That is by how much the line's stack distance grows in the tail. It is counted in a sample of all lines,
 * those whose hash is below a threshold; when the sample becomes too large the threshold is halved (SHARDS of
 * fixed size, docs/methods.md, section 5). So a few thousand lines are counted exactly, and a count of n
 * lines of a larger tail has a standard deviation of sqrt(n / rate).
 */
#ifndef CACHEGRAM_DISTINCT_H
#define CACHEGRAM_DISTINCT_H

#include <stdint.h>

#define DISTINCT_MOST 4096u /* lines in the sample */
#define DISTINCT_SLOTS (2 * DISTINCT_MOST)
#define DISTINCT_RECENT 1024u
#define DISTINCT_LISTED 512u /* by distinct_touched */

/* Internal; here for distinct_touch. */
struct distinct {
    uint64_t threshold;               /* largest hash of the sample */
    uint64_t recent[DISTINCT_RECENT]; /* by low bits: a line that the tail has touched */
    uint16_t slot[DISTINCT_SLOTS];    /* open addressing: index + 1, 0: free */
    unsigned n;
    uint64_t line[DISTINCT_MOST];
    uint32_t age[DISTINCT_MOST];   /* in the burst, or UINT32_MAX */
    uint32_t first[DISTINCT_MOST]; /* first touch in the tail, or UINT32_MAX */
    uint32_t touch[DISTINCT_MOST]; /* its site and part (decoder_touches) */
};

struct distinct *distinct_new(void);     /* NULL when memory is short */
void distinct_free(struct distinct *d);  /* NULL is allowed */
void distinct_reset(struct distinct *d); /* forgets all lines */
/* A line of the burst, and how many touches the burst made after its last one of the line. Before the tail.
 */
void distinct_survivor(struct distinct *d, uint64_t line, uint64_t age);
/* Internal. */
void distinct_first_touch(struct distinct *d, uint64_t line, uint64_t at, uint32_t touch);
/* The tail's touch number `at`, from 0; its site and part, as in decoder_touches. */
static inline void distinct_touch(struct distinct *d, uint64_t line, uint64_t at, uint32_t touch)
{
    uint64_t *recent = &d->recent[line % DISTINCT_RECENT];
    if (*recent == line)
        return;
    *recent = line;
    distinct_first_touch(d, line, at, touch);
}
/*
 * Lines that the tail's first `touches` touches touched and the burst's last `age` did not: by so much grew
 * the depth of a line of the burst of that age.
 */
double distinct_growth(const struct distinct *d, uint64_t age, uint64_t touches);

/* The tail's first touch of a line. */
struct distinct_touched {
    uint64_t line;
    uint64_t entry; /* lines that the tail had touched before */
    /* in_burst: the line's stack distance. Otherwise, lines that the burst and its tail had touched before.
     */
    uint64_t distance;
    uint32_t touch; /* decoder_touches */
    int in_burst;
};
/* Lists them in order, or a sample if they are many: out[DISTINCT_LISTED], the caller's. Returns their
 * number. Each represents *represented of them. */
unsigned distinct_touched(const struct distinct *d, struct distinct_touched *out, uint64_t *represented);

#endif
