/* SPDX-License-Identifier: Apache-2.0 */
/*
 * random.h - random numbers with explicit state, the same on every machine for the same seed.
 *
 * xoshiro256** 1.0, seeded by splitmix64 (Blackman & Vigna 2021, "Scrambled linear pseudorandom
 * number generators"). Inline and free of library calls: usable inside a signal handler. Not for secrets.
 */
#ifndef CACHEGRAM_RANDOM_H
#define CACHEGRAM_RANDOM_H

#include <stdint.h>

struct random_state {
    uint64_t s[4];
};

/* One step of splitmix64; *state is any value. */
static inline uint64_t random_splitmix64(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Any seed is valid, also 0: splitmix64 never yields the all-zero state. */
static inline void random_seed(struct random_state *r, uint64_t seed)
{
    for (int i = 0; i < 4; i++)
        r->s[i] = random_splitmix64(&seed);
}

static inline uint64_t random_rotl(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

/* 64 uniform bits. */
static inline uint64_t random_next(struct random_state *r)
{
    uint64_t *s = r->s;
    uint64_t result = random_rotl(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = random_rotl(s[3], 45);
    return result;
}

/* Uniform in 0 .. bound-1, without bias; bound > 0 (Lemire 2019, algorithm 5). */
static inline uint64_t random_below(struct random_state *r, uint64_t bound)
{
    unsigned __int128 product = (unsigned __int128)random_next(r) * bound;
    if ((uint64_t)product < bound) {
        uint64_t threshold = -bound % bound; /* 2^64 mod bound */
        while ((uint64_t)product < threshold)
            product = (unsigned __int128)random_next(r) * bound;
    }
    return (uint64_t)(product >> 64);
}

/* Uniform in [0, 1), 53 bits. */
static inline double random_unit(struct random_state *r)
{
    return (double)(random_next(r) >> 11) * 0x1p-53;
}

#endif
