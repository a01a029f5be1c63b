/* SPDX-License-Identifier: Apache-2.0 */
/* front-avx512.h - front.h with 32 stamps per instruction. Included by front.h only. */
#ifndef CACHEGRAM_SIM_FRONT_AVX512_H
#define CACHEGRAM_SIM_FRONT_AVX512_H

#include <immintrin.h>

#define FRONT_INLINE static inline __attribute__((always_inline))
#define STAMPS 32u /* in a vector */

/* In registers. tick: the latest stamp, in every element. */
struct near {
    __m512i low, high, tick;
};

FRONT_INLINE struct near near_open(struct front_stamps *stamps, int16_t tick)
{
    return (struct near){_mm512_load_si512(stamps->near), _mm512_load_si512(stamps->near + STAMPS),
                         _mm512_set1_epi16(tick)};
}

FRONT_INLINE void near_close(const struct near *near, struct front_stamps *stamps)
{
    _mm512_store_si512(stamps->near, near->low);
    _mm512_store_si512(stamps->near + STAMPS, near->high);
}

FRONT_INLINE unsigned near_newer(const struct near *near, const int16_t *than)
{
    __m512i other = _mm512_set1_epi16(*than);
    __mmask64 low = _mm512_cmpgt_epi16_mask(near->low, other);
    __mmask64 high = _mm512_cmpgt_epi16_mask(near->high, other);
    return (unsigned)__builtin_popcountll(_mm512_kunpackd(high, low));
}

/* A stamp from a general register would make each touch wait for the one before it, some cycles. */
FRONT_INLINE void near_stamp_next(struct near *near, unsigned slot)
{
    uint64_t mask = UINT64_C(1) << slot;
    near->tick = _mm512_add_epi16(near->tick, _mm512_set1_epi16(1));
    near->low = _mm512_mask_mov_epi16(near->low, (__mmask32)mask, near->tick);
    near->high = _mm512_mask_mov_epi16(near->high, (__mmask32)(mask >> STAMPS), near->tick);
}

FRONT_INLINE __m512i lowest_(__m512i v)
{
    __m256i half = _mm256_min_epi16(_mm512_castsi512_si256(v), _mm512_extracti64x4_epi64(v, 1));
    __m128i quarter = _mm_min_epi16(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
    return _mm512_broadcastw_epi16(_mm_minpos_epu16(quarter)); /* no stamp is negative */
}

FRONT_INLINE unsigned near_oldest(const struct front_stamps *stamps)
{
    __m512i low = _mm512_load_si512(stamps->near), high = _mm512_load_si512(stamps->near + STAMPS);
    __m512i lowest = lowest_(_mm512_min_epi16(low, high));
    __mmask64 in_low = _mm512_cmpeq_epi16_mask(low, lowest), in_high = _mm512_cmpeq_epi16_mask(high, lowest);
    return (unsigned)__builtin_ctzll(_mm512_kunpackd(in_high, in_low));
}

FRONT_INLINE unsigned far_newer(const struct front_stamps *stamps, const int16_t *than)
{
    __m512i other = _mm512_set1_epi16(*than);
    unsigned count = 0;
    for (unsigned i = 0; i < FRONT_FAR; i += 2 * STAMPS) {
        __mmask64 low = _mm512_cmpgt_epi16_mask(_mm512_load_si512(stamps->far + i), other);
        __mmask64 high = _mm512_cmpgt_epi16_mask(_mm512_load_si512(stamps->far + i + STAMPS), other);
        count += (unsigned)__builtin_popcountll(_mm512_kunpackd(high, low));
    }
    return count;
}

/* The whole vector is stored: a vector load cannot be forwarded from the store of a part of it. */
FRONT_INLINE void far_set(struct front_stamps *stamps, unsigned slot, int16_t tick)
{
    int16_t *at = stamps->far + (slot - FRONT_NEAR) / STAMPS * STAMPS;
    __m512i v = _mm512_load_si512(at);
    _mm512_store_si512(at, _mm512_mask_mov_epi16(v, (__mmask32)1 << slot % STAMPS, _mm512_set1_epi16(tick)));
}

FRONT_INLINE unsigned far_oldest(const struct front_stamps *stamps)
{
    __m512i lowest = _mm512_load_si512(stamps->far);
    for (unsigned i = STAMPS; i < FRONT_FAR; i += STAMPS)
        lowest = _mm512_min_epi16(lowest, _mm512_load_si512(stamps->far + i));
    lowest = lowest_(lowest);
    for (unsigned i = FRONT_FAR - STAMPS;; i -= STAMPS) {
        uint32_t found = _mm512_cmpeq_epi16_mask(_mm512_load_si512(stamps->far + i), lowest);
        if (found != 0 || i == 0)
            return FRONT_NEAR + i + (unsigned)__builtin_ctz(found);
    }
}

#undef STAMPS
#endif
