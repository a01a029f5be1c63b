/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Misses in blocks of the heap: hot_blocks WHAT ROUNDS. WHAT is how they are allocated: list (100,000 small
 * nodes, through a wrapper, followed in random order), or the name of a function that allocates one array,
 * read by lines. Another block, which always hits, is read in between.
 */
#define _GNU_SOURCE
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define BYTES (1u << 20)
#define NODES 100000

struct node {
    struct node *next;
    long value[3];
};

static volatile long sink;

static __attribute__((noinline)) void *xmalloc(size_t bytes)
{
    void *block = malloc(bytes);
    if (block == NULL)
        abort();
    return block;
}

static __attribute__((noinline)) struct node *new_node(long value)
{
    struct node *n = xmalloc(sizeof *n); // list
    n->value[0] = value;
    return n;
}

static struct node *make_list(void)
{
    struct node **all = malloc(NODES * sizeof *all); // order
    for (int i = 0; i < NODES; i++)
        all[i] = new_node(i);
    for (int i = NODES - 1; i > 0; i--) {
        int k = rand() % (i + 1);
        struct node *node = all[i];
        all[i] = all[k];
        all[k] = node;
    }
    for (int i = 0; i < NODES; i++)
        all[i]->next = all[(i + 1) % NODES];
    struct node *first = all[0];
    free(all);
    return first;
}

static __attribute__((noinline)) struct node *follow(struct node *n)
{
    long sum = 0;
    for (int i = 0; i < NODES; i++, n = n->next)
        sum += n->value[0];
    sink += sum;
    return n;
}

static __attribute__((noinline)) void read_lines(const volatile unsigned char *bytes, size_t n)
{
    long sum = 0;
    for (size_t i = 0; i < n; i += 64)
        sum += bytes[i];
    sink += sum;
}

static __attribute__((noinline)) unsigned char *make_array(const char *what)
{
    void *array = NULL;
    if (strcmp(what, "malloc") == 0) {
        array = malloc(BYTES); // malloc
    } else if (strcmp(what, "calloc") == 0) {
        array = calloc(BYTES / 8, 8); // calloc
    } else if (strcmp(what, "realloc") == 0) {
        for (size_t bytes = 64; bytes <= BYTES; bytes *= 2)
            array = realloc(array, bytes); // realloc
    } else if (strcmp(what, "aligned_alloc") == 0) {
        array = aligned_alloc(4096, BYTES); // aligned_alloc
    } else if (strcmp(what, "memalign") == 0) {
        array = memalign(256, BYTES); // memalign
    } else if (strcmp(what, "posix_memalign") == 0) {
        if (posix_memalign(&array, 64, BYTES) != 0) // posix_memalign
            return NULL;
    } else if (strcmp(what, "valloc") == 0) {
        array = valloc(BYTES); // valloc
    } else if (strcmp(what, "strdup") == 0) {
        char *text = malloc(BYTES);
        memset(text, 'x', BYTES - 1);
        text[BYTES - 1] = '\0';
        array = strdup(text); // strdup
        free(text);
    } else if (strcmp(what, "mmap") == 0) {
        array = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); // mmap
    }
    if (array != NULL && array != MAP_FAILED)
        *(volatile char *)array = 'x'; /* else some of these calls would be jumps, and come from main */
    return array;
}

int main(int argc, char **argv)
{
    const char *what = argc > 2 ? argv[1] : "";
    int rounds = argc > 2 ? atoi(argv[2]) : 0, is_list = strcmp(what, "list") == 0;
    unsigned char *hits = calloc(4096, 1), *array = is_list ? NULL : make_array(what); // hits
    struct node *list = is_list ? make_list() : NULL;
    if (hits == NULL || (list == NULL && array == NULL))
        return 1;
    for (int i = 0; i < rounds; i++) {
        if (is_list)
            list = follow(list);
        else
            read_lines(array, BYTES);
        for (int k = 0; k < 20; k++)
            read_lines(hits, 4096);
    }
    return 0;
}
