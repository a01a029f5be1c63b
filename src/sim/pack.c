/* SPDX-License-Identifier: Apache-2.0 */
/* pack.c - from references to line accesses. */
#include <assert.h>

#include "sim/cache.h"

size_t sim_pack(const uint64_t *address, const uint16_t *size, const uint8_t *store, size_t n,
                uint32_t line_bytes, int once, uint64_t *accesses, size_t capacity, size_t *taken)
{
    unsigned shift = (unsigned)__builtin_ctz(line_bytes);
    uint64_t longest = once ? line_bytes : UINT16_MAX;
    size_t used = 0, i = 0;
    assert(capacity >= SIM_PACK_MAX);
    for (; i < n && capacity - used >= SIM_PACK_MAX; i++) {
        uint64_t bytes = size[i] > longest ? longest : size[i];
        uint64_t line = address[i] >> shift, flag = store[i] ? SIM_STORE : 0;
        if ((address[i] & (line_bytes - 1)) + bytes <= line_bytes) {
            accesses[used++] = line << SIM_LINE_SHIFT | flag;
            continue;
        }
        uint64_t end = address[i] + bytes - 1;
        /* A reference beyond the end of the address space is cut there. */
        uint64_t last = (end < address[i] ? UINT64_MAX : end) >> shift;
        if (once && line != last)
            flag |= SIM_STRADDLE;
        accesses[used++] = line << SIM_LINE_SHIFT | flag;
        while (!once && line != last)
            accesses[used++] = ++line << SIM_LINE_SHIFT | flag;
    }
    *taken = i;
    return used;
}
