/* SPDX-License-Identifier: Apache-2.0 */
/* Looks up random keys in a hash table that is larger than most caches: each look-up misses, in one line. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { SLOTS = 1 << 20 }; /* 16 MB */

struct slot {
    uint64_t key, value;
};

static struct slot table[SLOTS];

static uint64_t next_key(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

__attribute__((noinline)) static uint64_t look_up(uint64_t key)
{
    const struct slot *slot = &table[key % SLOTS];
    if (slot->key == key) /* misses */
        return slot->value;
    return 0;
}

int main(int argc, char **argv)
{
    long times = argc > 1 ? atol(argv[1]) : 1;
    uint64_t state = 88172645463325252u, sum = 0, counts[16] = {0};
    for (long i = 0; i < SLOTS; i++)
        table[i] = (struct slot){(uint64_t)i, (uint64_t)i};
    for (long i = 0; i < times * 100000; i++) {
        uint64_t key = next_key(&state);
        sum += look_up(key);
        counts[key % 16]++;
    }
    printf("%llu %llu\n", (unsigned long long)sum, (unsigned long long)counts[3]);
    return 0;
}
