/* SPDX-License-Identifier: Apache-2.0 */
/* hash.h - hashes of texts. */
#ifndef CACHEGRAM_HASH_H
#define CACHEGRAM_HASH_H

#include <stdint.h>

/* The hash of what was hashed before and then the text (FNV-1a). */
static inline uint64_t hash_text(uint64_t hash, const char *text)
{
    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return hash;
}

#endif
