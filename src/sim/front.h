/* SPDX-License-Identifier: Apache-2.0 */
/*
 * front.h - depths among the lines touched last: the front of stackdist's list (stackdist.c).
 *
 * Every line of the front has a slot with a stamp: the tick of its last touch. Its depth is the number
 * of larger stamps, which vector instructions count; a touch writes one stamp. Nothing is moved and no
 * touch waits for the one before it, but for that stamp.
 *
 * The FRONT_NEAR most recent lines are in the slots below FRONT_NEAR, so that a touch of one of them
 * looks at those stamps only; any other touch swaps its line with the oldest of them.
 *
 * Here for any machine, in loops that the compiler turns into vector code; in front-avx512.h
 * with the near stamps in registers. Stamps are signed, as AVX2 compares no others.
 */
#ifndef CACHEGRAM_SIM_FRONT_H
#define CACHEGRAM_SIM_FRONT_H

#include <stdint.h>

/* Measured: see stackdist.c. Slot numbers have eight bits. */
#define FRONT_NEAR 64u
#define FRONT_LINES 256u
#define FRONT_FAR (FRONT_LINES - FRONT_NEAR)
#define FRONT_MAX_STAMP INT16_MAX

struct front_stamps {
    _Alignas(64) int16_t near[FRONT_NEAR]; /* by slot; 0: not in use */
    _Alignas(64) int16_t far[FRONT_FAR];   /* by slot - FRONT_NEAR */
};

#ifdef __AVX512BW__
#include "sim/front-avx512.h"
#else

#define FRONT_INLINE static inline __attribute__((always_inline))

/* 0 .. FRONT_FAR - 1 */
static const int16_t front_index[FRONT_FAR] __attribute__((aligned(64))) = {
#define EIGHT(n) n, n + 1, n + 2, n + 3, n + 4, n + 5, n + 6, n + 7
#define SIXTY_FOUR(n)                                                                                  \
    EIGHT(n), EIGHT(n + 8), EIGHT(n + 16), EIGHT(n + 24), EIGHT(n + 32), EIGHT(n + 40), EIGHT(n + 48), \
        EIGHT(n + 56)
    SIXTY_FOUR(0), SIXTY_FOUR(64), SIXTY_FOUR(128)
#undef EIGHT
#undef SIXTY_FOUR
};

FRONT_INLINE unsigned front_newer_(const int16_t *stamp, unsigned n, int16_t than)
{
    int16_t count = 0;
    for (unsigned i = 0; i < n; i++)
        count = (int16_t)(count + (stamp[i] > than));
    return (unsigned)count;
}

/* Whole vectors are stored: a vector load cannot be forwarded from the store of a part of it. */
FRONT_INLINE void front_set_(int16_t *stamp, unsigned n, unsigned slot, int16_t tick)
{
    for (unsigned i = 0; i < n; i++)
        stamp[i] = front_index[i] == (int16_t)slot ? tick : stamp[i];
}

FRONT_INLINE unsigned front_oldest_(const int16_t *stamp, unsigned n)
{
    int16_t oldest = INT16_MAX, slot = -1;
    for (unsigned i = 0; i < n; i++)
        oldest = stamp[i] < oldest ? stamp[i] : oldest;
    /* The last of those not in use; any will do. */
    for (unsigned i = 0; i < n; i++) {
        int16_t candidate = stamp[i] == oldest ? front_index[i] : -1;
        slot = candidate > slot ? candidate : slot;
    }
    return (unsigned)slot;
}

/* The near stamps during touches: between near_open and near_close they are stored nowhere else. */
struct near {
    int16_t *stamp, tick;
};

/* tick: the latest stamp. */
FRONT_INLINE struct near near_open(struct front_stamps *stamps, int16_t tick)
{
    return (struct near){stamps->near, tick};
}

/* Stores them; near stays valid until stamps change. */
FRONT_INLINE void near_close(const struct near *near, struct front_stamps *stamps)
{
    (void)near;
    (void)stamps;
}

/* How many near stamps are larger. */
FRONT_INLINE unsigned near_newer(const struct near *near, const int16_t *than)
{
    return front_newer_(near->stamp, FRONT_NEAR, *than);
}

/* Gives the slot the next stamp. */
FRONT_INLINE void near_stamp_next(struct near *near, unsigned slot)
{
    front_set_(near->stamp, FRONT_NEAR, slot, ++near->tick);
}

/* A slot not in use, or else that with the lowest stamp. Not between near_open and near_close. */
FRONT_INLINE unsigned near_oldest(const struct front_stamps *stamps)
{
    return front_oldest_(stamps->near, FRONT_NEAR);
}

/* The same for far slots, FRONT_NEAR .. FRONT_LINES - 1. */
FRONT_INLINE unsigned far_newer(const struct front_stamps *stamps, const int16_t *than)
{
    return front_newer_(stamps->far, FRONT_FAR, *than);
}

FRONT_INLINE void far_set(struct front_stamps *stamps, unsigned slot, int16_t tick)
{
    front_set_(stamps->far, FRONT_FAR, slot - FRONT_NEAR, tick);
}

FRONT_INLINE unsigned far_oldest(const struct front_stamps *stamps)
{
    return FRONT_NEAR + front_oldest_(stamps->far, FRONT_FAR);
}

#endif
#endif
