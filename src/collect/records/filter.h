/* SPDX-License-Identifier: Apache-2.0 */
/* filter.h - the collector's part of the filter of lines (wire.h): which lines pass. */
#ifndef CACHEGRAM_FILTER_H
#define CACHEGRAM_FILTER_H

#include <stddef.h>
#include <stdint.h>
#include "wire/wire.h"

struct filter {
    uint8_t passes[WIRE_FILTER_CLASSES]; /* nonzero: the class passes */
    uint32_t npassing;
    uint8_t class[4][256]; /* a line's class is the xor of these, by its bytes */
};

/* Lets lines of a share of the classes pass, the smallest that is not less than rate, 0 < rate <= 1. Which
 * classes these are is a matter of the seed. Returns the share. */
double filter_choose(uint8_t passes[WIRE_FILTER_CLASSES], double rate, uint64_t seed);
void filter_init(struct filter *f, const uint8_t passes[WIRE_FILTER_CLASSES]);

static inline int filter_passes(const struct filter *f, uint64_t line)
{
    uint8_t class = f->class[0][line & 0xff] ^ f->class[1][line >> 8 & 0xff] ^
                    f->class[2][line >> 16 & 0xff] ^ f->class[3][line >> 24 & 0xff];
    return f->passes[class] != 0;
}

#endif
