/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One field misses of structures whose memory was not allocated for them alone: hot_pools WHAT. WHAT: slab
 * (blocks with room for bytes), arena (a global array of bytes), file (mapped), wrapper (a function that
 * allocates for its callers).
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { N = 20000, ROUNDS = 10, ROOM = 65536 - 16 };

struct edge {
    long from, to;
    double weight;
    char note[104];
};

struct record {
    long key;
    int group, price;
    char comment[112];
};

struct slab {
    struct slab *next;
    size_t used;
    char bytes[ROOM];
};

static struct slab *slabs;
static char arena[N * sizeof(struct edge)];
static size_t arena_used;
static struct edge **edges;

static __attribute__((noipa)) void *take_of_slab(size_t size)
{
    if (slabs == NULL || slabs->used + size > ROOM) {
        struct slab *new = malloc(sizeof *new);
        new->next = slabs;
        new->used = 0;
        slabs = new;
    }
    slabs->used += size;
    return slabs->bytes + slabs->used - size;
}

static __attribute__((noipa)) void *take_of_arena(size_t size)
{
    arena_used += size;
    return arena + arena_used - size;
}

static __attribute__((noipa)) void *must_have(size_t size)
{
    void *memory = malloc(size);
    if (memory == NULL)
        abort();
    return memory;
}

static __attribute__((noipa)) double sum_weights(void)
{
    double sum = 0;
    for (int i = 0; i < N; i++)
        sum += edges[i]->weight;
    return sum;
}

static __attribute__((noipa)) long count_group(const struct record *records, int group)
{
    long n = 0;
    for (int i = 0; i < N; i++)
        n += records[i].group == group;
    return n;
}

static const struct record *map(void)
{
    char name[] = "/tmp/hot_pools.XXXXXX";
    int file = mkstemp(name);
    if (file < 0 || ftruncate(file, N * sizeof(struct record)) != 0)
        abort();
    unlink(name);
    return mmap(NULL, N * sizeof(struct record), PROT_READ, MAP_SHARED, file, 0);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    double sum = 0;
    if (strcmp(what, "slab") == 0 || strcmp(what, "arena") == 0) {
        edges = malloc(N * sizeof *edges);
        for (int i = 0; i < N; i++)
            edges[i] = *what == 's' ? take_of_slab(sizeof **edges) : take_of_arena(sizeof **edges);
        for (int i = 0; i < ROUNDS; i++)
            sum += sum_weights();
    } else if (strcmp(what, "file") == 0 || strcmp(what, "wrapper") == 0) {
        const struct record *records = *what == 'f' ? map() : NULL;
        if (records == NULL) {
            struct record *new = must_have(N * sizeof *new);
            for (int i = 0; i < N; i++)
                new[i].group = i;
            records = new;
        }
        for (int i = 0; i < ROUNDS; i++)
            sum += (double)count_group(records, i);
    }
    printf("%g\n", sum);
    return 0;
}
