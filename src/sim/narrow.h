/* SPDX-License-Identifier: Apache-2.0 */
/*
 * narrow.h - a cache with sets of up to 32 ways under one policy. A template: the policy's file defines four
 * inline functions and POLICY_REPEATS_COST, then includes this file, which defines `narrow_ops`. Each
 * operation exists for 1, 2, 4, 8 and 16 ways, and for any number.
 *
 * Problem. A reference to a cached line should cost a few nanoseconds, even if tags and replacement state do
 * not fit into the first-level cache of the host.
 *
 * Method. Each way has a hash byte of its line, the signature. Eight signatures are compared with that of the
 * requested line by a few operations on a 64-bit word. A byte of x = signatures ^ requested is zero where
 * they agree, and (x - 0x0101..) & ~x & 0x8080.. has the top bit of each zero byte set (sometimes also that
 * of a higher byte, by borrowing, which the comparison of the whole line rules out). So one or two cache
 * lines of the host are read for a set of 16 ways, and no branch depends on the way.
 *
 * Nine in ten references of real programs hit, and many access the same line as the previous one. Such a
 * repetition changes nothing under most policies and is not even looked up, unless it is the line's first
 * store.
 */
#include <stddef.h>

#include "sim/cache-internal.h"

#define INLINE static inline __attribute__((always_inline))
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* To be defined by the policy. way of n, all in one set. */
INLINE void policy_hit(struct cache *c, struct narrow_set *set, struct slot *slots, uint32_t way, uint32_t n);
INLINE void policy_fill(struct cache *c, struct narrow_set *set, struct slot *slots, uint32_t way,
                        uint32_t n);
INLINE uint32_t policy_victim(struct cache *c, struct narrow_set *set, const struct slot *slots, uint32_t n);
INLINE void policy_drop(struct narrow_set *set, uint32_t way);

#define BYTES_ONE UINT64_C(0x0101010101010101)
#define BYTES_TOP UINT64_C(0x8080808080808080)

INLINE uint64_t signature_of(uint64_t line)
{
    return (line * UINT64_C(0x9e3779b97f4a7c15)) >> 56;
}

/* The line's way, or n. */
INLINE uint32_t search(const struct narrow_set *set, const struct slot *slots, uint64_t line, uint32_t n)
{
    uint64_t sought = signature_of(line) * BYTES_ONE;
    for (uint32_t base = 0; base < n; base += 8) {
        uint64_t x = set->signature[base / 8] ^ sought;
        uint64_t zero = (x - BYTES_ONE) & ~x & BYTES_TOP;
        if (n - base < 8) /* bytes beyond the last way */
            zero &= (UINT64_C(1) << (n - base) * 8) - 1;
        while (zero) {
            uint32_t way = base + (uint32_t)__builtin_ctzll(zero) / 8;
            if (slots[way].key >> KEY_SHIFT == line)
                return way;
            zero &= zero - 1;
        }
    }
    return n;
}

INLINE int64_t find_n(const struct cache *c, uint64_t line, uint32_t n)
{
    uint64_t set = cache_set_of(c, line);
    uint32_t way = search(&c->sets[set], &c->slots[set * n], line, n);
    return way < n ? (int64_t)(set * n + way) : -1;
}

INLINE void hit_n(struct cache *c, uint64_t slot, uint32_t n)
{
    uint64_t set = slot / n;
    policy_hit(c, &c->sets[set], &c->slots[set * n], (uint32_t)(slot % n), n);
}

INLINE uint64_t insert_n(struct cache *c, uint64_t key, uint32_t n)
{
    uint64_t line = key >> KEY_SHIFT, index = cache_set_of(c, line), victim = KEY_NONE;
    struct narrow_set *set = &c->sets[index];
    struct slot *slots = &c->slots[index * n];
    uint32_t all = (uint32_t)((UINT64_C(1) << n) - 1), way;
    if (set->valid != all) {
        way = (uint32_t)__builtin_ctz(~set->valid);
        set->valid |= UINT32_C(1) << way;
    } else {
        way = policy_victim(c, set, slots, n);
        victim = slots[way].key;
    }
    slots[way].key = key;
    uint32_t shift = way % 8 * 8;
    uint64_t *word = &set->signature[way / 8];
    *word = (*word & ~(UINT64_C(0xff) << shift)) | signature_of(line) << shift;
    policy_fill(c, set, slots, way, n);
    return victim;
}

INLINE void remove_n(struct cache *c, uint64_t slot, uint32_t n)
{
    struct narrow_set *set = &c->sets[slot / n];
    uint32_t way = (uint32_t)(slot % n);
    set->valid &= ~(UINT32_C(1) << way);
    c->slots[slot].key = KEY_NONE;
    policy_drop(set, way);
}

INLINE void run_n(struct sim *sim, struct cache *c, uint32_t core, const uint64_t *accesses, size_t count,
                  uint32_t n)
{
    uint64_t last = UINT64_MAX; /* the previous access, unless others intervened */
    for (size_t i = 0; i < count; i++) {
        uint64_t access = accesses[i];
        /* The same line, and not a store after a load. */
        if (!POLICY_REPEATS_COST && (access | (last & SIM_STORE)) == last)
            continue;
        last = access;
        if (UNLIKELY(access & SIM_STRADDLE)) {
            sim_first_straddle(sim, core, access);
            last = UINT64_MAX;
            continue;
        }
        uint64_t line = access >> SIM_LINE_SHIFT, index = cache_set_of(c, line);
        struct narrow_set *set = &c->sets[index];
        struct slot *slots = &c->slots[index * n];
        uint32_t way = search(set, slots, line, n);
        if (UNLIKELY(way == n)) {
            sim_first_miss(sim, core, access);
            continue;
        }
        policy_hit(c, set, slots, way, n);
        uint64_t key = slots[way].key;
        if (UNLIKELY(access & ~(key >> 1) & SIM_STORE))
            sim_first_store(sim, core, line);
        slots[way].key |= access & SIM_STORE; /* KEY_DIRTY */
    }
}

_Static_assert(SIM_STORE == KEY_DIRTY && KEY_OWNED >> 1 == SIM_STORE, "run_n moves flags by shifting");

#define NARROW_OPS(suffix, n)                                                                    \
    static int64_t find_##suffix(const struct cache *c, uint64_t line)                           \
    {                                                                                            \
        return find_n(c, line, n);                                                               \
    }                                                                                            \
    static void hit_##suffix(struct cache *c, uint64_t slot)                                     \
    {                                                                                            \
        hit_n(c, slot, n);                                                                       \
    }                                                                                            \
    static uint64_t insert_##suffix(struct cache *c, uint64_t key)                               \
    {                                                                                            \
        return insert_n(c, key, n);                                                              \
    }                                                                                            \
    static void remove_##suffix(struct cache *c, uint64_t slot)                                  \
    {                                                                                            \
        remove_n(c, slot, n);                                                                    \
    }                                                                                            \
    static void run_##suffix(struct sim *sim, struct cache *c, uint32_t core, const uint64_t *a, \
                             size_t count)                                                       \
    {                                                                                            \
        run_n(sim, c, core, a, count, n);                                                        \
    }                                                                                            \
    static const struct cache_ops ops_##suffix = {find_##suffix, hit_##suffix, insert_##suffix,  \
                                                  remove_##suffix, run_##suffix};

/* clang-format off */
NARROW_OPS(1, 1)
NARROW_OPS(2, 2)
NARROW_OPS(4, 4)
NARROW_OPS(8, 8)
NARROW_OPS(16, 16)
NARROW_OPS(any, c->ways)
/* clang-format on */

static const struct cache_ops *narrow_ops(uint32_t ways)
{
    switch (ways) {
    case 1:
        return &ops_1;
    case 2:
        return &ops_2;
    case 4:
        return &ops_4;
    case 8:
        return &ops_8;
    case 16:
        return &ops_16;
    default:
        return &ops_any;
    }
}
