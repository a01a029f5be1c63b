/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/watch/choose.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define PAGE_BYTES 4096u

/* A page, and in which 64ths of the burst its lines were touched last. */
struct page {
    uint64_t number, when;
    uint64_t draw; /* in which draw; an earlier one's place is free */
};

struct chooser {
    unsigned lines_per_page;
    struct page *pages; /* open addressing; a power of two of them, `room`, is used, of `allocated` */
    size_t capacity, allocated;
    uint64_t draw;        /* number of this one, from 1 */
    double chance_of[65]; /* where lines of the page were last touched in so many 64ths of the burst */
    double *chance;       /* of each survivor, relative */
    size_t chances;
    size_t *order; /* of all survivors, random */
};

struct chooser *chooser_new(unsigned line_bytes)
{
    struct chooser *c = calloc(1, sizeof(*c));
    if (c == NULL)
        return NULL;
    for (unsigned i = 1; i <= 64; i++) /* by the root of the price, which is what is best for the variance */
        c->chance_of[i] = 1 / sqrt(i);
    c->lines_per_page = line_bytes < PAGE_BYTES ? PAGE_BYTES / line_bytes : 1;
    return c;
}

void chooser_free(struct chooser *c)
{
    if (c == NULL)
        return;
    free(c->pages);
    free(c->chance);
    free(c->order);
    free(c);
}

static int make_room(struct chooser *c, size_t n)
{
    c->draw++;
    c->capacity = 1024; /* no more than this burst needs: a few pages of memory, mostly */
    while (c->capacity < 2 * n)
        c->capacity *= 2;
    if (c->capacity > c->allocated) {
        free(c->pages);
        c->pages = calloc(c->capacity, sizeof(*c->pages));
        c->allocated = c->pages != NULL ? c->capacity : 0;
    }
    if (n > c->chances) {
        free(c->chance);
        free(c->order);
        c->chance = malloc(2 * n * sizeof(*c->chance));
        c->order = malloc(2 * n * sizeof(*c->order));
        c->chances = c->chance != NULL && c->order != NULL ? 2 * n : 0;
    }
    if (c->pages == NULL || (n != 0 && c->chances == 0))
        return -ENOMEM;
    return 0;
}

static struct page *find(struct chooser *c, uint64_t line)
{
    uint64_t number = line / c->lines_per_page;
    size_t i = (size_t)(number * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (c->capacity - 1);
    while (c->pages[i].draw == c->draw && c->pages[i].number != number)
        i = (i + 1) & (c->capacity - 1);
    if (c->pages[i].draw != c->draw)
        c->pages[i] = (struct page){.number = number, .draw = c->draw};
    return &c->pages[i];
}

/* Their sum; *most: the largest. c->order is used for other ends. */
static double set_chances(struct chooser *c, const struct stackdist_survivor *s, size_t n, uint64_t touches,
                          double *most)
{
    double sum = 0;
    *most = 0;
    for (size_t i = 0; i < n; i++) {
        struct page *page = find(c, s[i].line);
        page->when |= UINT64_C(1) << (s[i].age < touches ? s[i].age * 64 / touches : 63);
        c->order[i] = (size_t)(page - c->pages);
    }
    for (size_t i = 0; i < n; i++) {
        c->chance[i] = c->chance_of[__builtin_popcountll(c->pages[c->order[i]].when)];
        *most = c->chance[i] > *most ? c->chance[i] : *most;
        sum += c->chance[i];
    }
    return sum;
}

long chooser_draw(struct chooser *c, const struct stackdist_survivor *survivors, size_t n, uint64_t touches,
                  size_t k, struct random_state *random, struct choice *out)
{
    double most;
    if (k > n)
        k = n;
    if (make_room(c, n) < 0)
        return -ENOMEM;
    double sum = set_chances(c, survivors, n, touches, &most);
    for (size_t i = 0; i < n; i++) /* so few that some would be drawn for certain: all alike */
        if (most * (double)k > sum)
            c->chance[i] = sum / (double)n;
    for (size_t i = 0; i < n; i++) { /* a random order, from the inside out */
        size_t j = (size_t)random_below(random, i + 1);
        c->order[i] = c->order[j];
        c->order[j] = i;
    }
    /* At regular steps along that order, each survivor as long as its chance (systematic sampling). */
    double step = sum / (double)k, next = step * random_unit(random), along = 0;
    size_t used = 0;
    for (size_t i = 0; i < n && used < k; i++) {
        along += c->chance[c->order[i]];
        if (along > next || n - i == k - used) { /* the latter by rounding only */
            out[used++] = (struct choice){c->order[i], step / c->chance[c->order[i]]};
            next += step;
        }
    }
    return (long)used;
}
