/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/records/filter.h"
#include <math.h>
#include <string.h>
#include "base/random.h"

double filter_choose(uint8_t passes[WIRE_FILTER_CLASSES], double rate, uint64_t seed)
{
    struct random_state random;
    uint32_t wanted = (uint32_t)ceil(rate * WIRE_FILTER_CLASSES);
    memset(passes, 0, WIRE_FILTER_CLASSES);
    random_seed(&random, seed);
    for (uint32_t chosen = 0; chosen < wanted;) {
        uint8_t *class = &passes[random_below(&random, WIRE_FILTER_CLASSES)];
        chosen += *class == 0;
        *class = WIRE_FILTER_PASSES;
    }
    return (double)wanted / WIRE_FILTER_CLASSES;
}

/* One step of CRC-32C for each of four zero bytes, as the crc32 instruction does. */
static uint32_t crc32_of_zeros(uint32_t crc)
{
    for (int bit = 0; bit < 32; bit++)
        crc = crc >> 1 ^ (0x82f63b78u & -(crc & 1));
    return crc;
}

void filter_init(struct filter *f, const uint8_t passes[WIRE_FILTER_CLASSES])
{
    *f = (struct filter){0};
    memcpy(f->passes, passes, sizeof(f->passes));
    for (uint32_t class = 0; class < WIRE_FILTER_CLASSES; class ++)
        f->npassing += passes[class] != 0;
    for (uint32_t byte = 0; byte < 4; byte++)
        for (uint32_t value = 0; value < 256; value++)
            f->class[byte][value] = (uint8_t)crc32_of_zeros(value << 8 * byte);
}
