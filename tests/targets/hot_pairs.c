/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small blocks of two kinds that share lines: hot_pairs WHAT ROUNDS. Keys and payloads of 24 bytes are
 * allocated in turns, so that a line of 64 bytes holds one of each. WHAT: keys (only these are read, in
 * random order), payloads, or both (each key's payload is that of another pair, so that each misses on its
 * own).
 */
#include <stdlib.h>
#include <string.h>

#define PAIRS 50000

struct payload {
    long value[3];
};

struct key {
    struct key *next;
    struct payload *payload;
    long value;
};

static volatile long sink;

static __attribute__((noinline)) struct key *new_key(void)
{
    struct key *key = malloc(sizeof *key); // key
    if (key == NULL)
        abort();
    key->value = 1;
    return key;
}

static __attribute__((noinline)) struct payload *new_payload(void)
{
    struct payload *payload = malloc(sizeof *payload); // payload
    if (payload == NULL)
        abort();
    payload->value[0] = 1;
    return payload;
}

static void shuffle(void **all)
{
    for (int i = PAIRS - 1; i > 0; i--) {
        int k = rand() % (i + 1);
        void *one = all[i];
        all[i] = all[k];
        all[k] = one;
    }
}

static __attribute__((noinline)) void read_keys(const struct key *key)
{
    for (int i = 0; i < PAIRS; i++, key = key->next)
        sink += key->value;
}

static __attribute__((noinline)) void read_both(const struct key *key)
{
    for (int i = 0; i < PAIRS; i++, key = key->next)
        sink += key->payload->value[0];
}

static __attribute__((noinline)) void read_payloads(void *const *payloads)
{
    for (int i = 0; i < PAIRS; i++)
        sink += ((const struct payload *)payloads[i])->value[0];
}

int main(int argc, char **argv)
{
    void **keys = malloc(PAIRS * sizeof *keys), **payloads = malloc(PAIRS * sizeof *payloads);
    if (argc < 3 || keys == NULL || payloads == NULL)
        return 2;
    for (int i = 0; i < PAIRS; i++) {
        keys[i] = new_key();
        payloads[i] = new_payload();
    }
    shuffle(keys);
    shuffle(payloads);
    for (int i = 0; i < PAIRS; i++) {
        ((struct key *)keys[i])->next = keys[(i + 1) % PAIRS];
        ((struct key *)keys[i])->payload = payloads[i];
    }
    for (int rounds = atoi(argv[2]); rounds > 0; rounds--) {
        if (strcmp(argv[1], "keys") == 0)
            read_keys(keys[0]);
        else if (strcmp(argv[1], "both") == 0)
            read_both(keys[0]);
        else
            read_payloads(payloads);
    }
    return 0;
}
