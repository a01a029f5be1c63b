/* SPDX-License-Identifier: Apache-2.0 */
/* phases [ROUNDS [SHORTER]]: the phases A B A C A B A D, each of ROUNDS million loads of eight bytes and
 * little else; all but A so many times shorter. A, B and C are different code; D is the code of C on other
 * data.
 *
 *   A  random loads from 16 KB        B  sequential loads from 4 MB, one for each line
 *   C  a linked list in 8 KB          D  a linked list of 512 KB, in random order
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define LINE 64
#define MILLION 1000000
enum { A_BYTES = 16 << 10, B_BYTES = 4 << 20, C_BYTES = 8 << 10, D_BYTES = 512 << 10 };

struct node {
    struct node *next;
    char rest[LINE - sizeof(struct node *)];
};

static uint64_t a_data[A_BYTES / 8] __attribute__((aligned(LINE)));
static uint64_t b_data[B_BYTES / 8] __attribute__((aligned(LINE)));
static struct node c_data[C_BYTES / LINE] __attribute__((aligned(LINE)));
static struct node d_data[D_BYTES / LINE] __attribute__((aligned(LINE)));

static __attribute__((noipa, aligned(4096))) uint64_t at_random(long loads)
{
    uint64_t x = 1, sum = 0;
    for (long i = 0; i < loads; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        sum += a_data[x >> 33 & (A_BYTES / 8 - 1)];
    }
    return sum;
}

static __attribute__((noipa, aligned(4096))) uint64_t in_order(long loads)
{
    uint64_t sum = 0;
    for (long i = 0; i < loads; i++)
        sum += b_data[(uint64_t)i * (LINE / 8) & (B_BYTES / 8 - 1)];
    return sum;
}

static __attribute__((noipa, aligned(4096))) struct node *along(struct node *at, long loads)
{
    for (long i = 0; i < loads; i++)
        at = at->next;
    return at;
}

/* One cycle through all nodes (Sattolo's algorithm). */
static void link_nodes(struct node *nodes, uint32_t n)
{
    uint32_t *order = malloc(n * sizeof *order);
    for (uint32_t i = 0; i < n; i++)
        order[i] = i;
    for (uint32_t i = n - 1; i > 0; i--) {
        uint32_t k = (uint32_t)rand() % i, old = order[i];
        order[i] = order[k];
        order[k] = old;
    }
    for (uint32_t i = 0; i < n; i++)
        nodes[order[i]].next = &nodes[order[(i + 1) % n]];
    free(order);
}

int main(int argc, char **argv)
{
    long loads = (argc > 1 ? atol(argv[1]) : 4) * MILLION;
    long few = argc > 2 ? loads / atol(argv[2]) : loads;
    uint64_t sum = 0;
    for (uint64_t i = 0; i < B_BYTES / 8; i++)
        a_data[i % (A_BYTES / 8)] = b_data[i] = i;
    link_nodes(c_data, C_BYTES / LINE);
    link_nodes(d_data, D_BYTES / LINE);
    for (const char *phase = "ABACABAD"; *phase; phase++) {
        if (*phase == 'A')
            sum += at_random(loads);
        else if (*phase == 'B')
            sum += in_order(few);
        else
            sum += (uint64_t)(along(*phase == 'C' ? c_data : d_data, few) == NULL);
    }
    printf("%llu\n", (unsigned long long)sum);
    return 0;
}
