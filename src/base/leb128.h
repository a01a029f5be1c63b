/* SPDX-License-Identifier: Apache-2.0 */
/* leb128.h - numbers of variable length (LEB128, as in DWARF), and signed numbers mapped to them (zigzag). */
#ifndef CACHEGRAM_LEB128_H
#define CACHEGRAM_LEB128_H

#include <stddef.h>
#include <stdint.h>

#define LEB128_MOST 10 /* bytes of a 64-bit value */

static inline size_t leb128_put(uint8_t *to, uint64_t value)
{
    size_t n = 0;
    for (; value >= 0x80; value >>= 7)
        to[n++] = (uint8_t)(value | 0x80);
    to[n++] = (uint8_t)value;
    return n;
}

/* 0 and *at is advanced; -1 if the value is truncated or too large. */
static inline int leb128_take(const uint8_t **at, const uint8_t *end, uint64_t *value)
{
    uint64_t v = 0;
    for (unsigned shift = 0; *at < end && shift < 64; shift += 7) {
        uint8_t byte = *(*at)++;
        if (shift == 63 && (byte & 0x7f) > 1)
            return -1;
        v |= (uint64_t)(byte & 0x7f) << shift;
        if ((byte & 0x80) == 0) {
            *value = v;
            return 0;
        }
    }
    return -1;
}

static inline uint64_t zigzag(int64_t value)
{
    return ((uint64_t)value << 1) ^ (uint64_t)(value >> 63);
}

static inline int64_t unzigzag(uint64_t value)
{
    return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

#endif
