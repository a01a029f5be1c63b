/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hotspots-counts.c - adds up what was counted in bursts, by the rows of a table of hotspots. Bursts have
 * their weights; only the processes and the thread that were asked for take part.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "analysis/hotspots-internal.h"
#include "base/array.h"
#include "profile/site-counts.h"

/* A site with fewer estimated references, those of four samples, is not scaled by itself. */
#define LEAST_ESTIMATED 256

/* References of a site. */
static int add_known(struct reading *r, uint32_t site, double references)
{
    if (ARRAY_GROW(r->sites, r->nsites, r->sites_capacity) < 0)
        return -ENOMEM;
    r->sites[r->nsites++] = site;
    r->of_site[site].known += references;
    r->references += references;
    return 0;
}

/* By a sample of a site's touches, references of a row. */
static int add_estimate(struct reading *r, uint32_t site, uint32_t row, double references)
{
    if (ARRAY_GROW(r->estimates, r->nestimates, r->estimates_capacity) < 0)
        return -ENOMEM;
    r->estimates[r->nestimates].site = site;
    r->estimates[r->nestimates].row = row;
    r->estimates[r->nestimates++].references = references;
    r->of_site[site].estimated += references;
    return 0;
}

static int is_well_sampled(const struct site_references *s)
{
    return s->known > 0 && s->estimated >= LEAST_ESTIMATED;
}

/*
 * The references of a site are known: the estimates of its rows are scaled to that sum, and those of sites
 * with few samples together to what is left. (Samples are of touches. A repeated string instruction makes
 * most of its references to the line that it touched last, so that it has few of them.)
 *
 * Example: a burst has 1000 references, 640 of them by site 1, whose samples estimate 8 on object A and 2 on
 * B. The samples of all other sites, few each, estimate 300 on C. Then A gets 512 and B 128, by the factor
 * 640 / 10, and C the other 360, by the factor 360 / 300.
 */
static void settle_estimates(struct reading *r)
{
    double left = r->references, few = 0;
    for (size_t i = 0; i < r->nestimates; i++) {
        const struct site_references *s = &r->of_site[r->estimates[i].site];
        if (is_well_sampled(s))
            left -= r->estimates[i].references * (s->known / s->estimated);
        else
            few += r->estimates[i].references;
    }
    double others = few > 0 ? left / few : 0, all = few > 0 ? 1 : r->references / (r->references - left);
    for (size_t i = 0; i < r->nestimates; i++) {
        const struct site_references *s = &r->of_site[r->estimates[i].site];
        double scale = is_well_sampled(s) ? all * (s->known / s->estimated) : others;
        shares_add(r->shares, r->estimates[i].row, r->estimates[i].references * scale, 0, 0);
    }
    for (size_t i = 0; i < r->nsites; i++)
        r->of_site[r->sites[i]] = (struct site_references){0};
    for (size_t i = 0; i < r->nestimates; i++)
        r->of_site[r->estimates[i].site] = (struct site_references){0};
    r->nsites = r->nestimates = 0;
    r->references = 0;
}

/* The code of a touch in the caches that were asked for, as if it were the same in all; 0: it is of others.
 */
static uint32_t code_of(const struct reading *r, uint32_t what)
{
    if (what < SITE_COUNT_OWN)
        return what < SITE_COUNT_SHARED || !r->h->separate ? site_count_together(what) : 0;
    if (!r->h->separate)
        return 0;
    return what < SITE_COUNT_OWN_FIRST ? what - SITE_COUNT_OWN + SITE_COUNT_STACK : SITE_COUNT_FIRST;
}

static enum far_touch touch_of(uint32_t what, uint32_t *bin)
{
    static const struct {
        uint8_t from;
        enum far_touch touch;
    } kinds[] = {{SITE_COUNT_TAIL_FIRST, FAR_TAIL_FIRST},
                 {SITE_COUNT_TAIL_REUSE, FAR_TAIL_REUSE},
                 {SITE_COUNT_TAIL_ENTRY, FAR_TAIL_ENTRY},
                 {SITE_COUNT_FIRST, FAR_FIRST},
                 {SITE_COUNT_STACK, FAR_REUSE}};
    size_t i = 0;
    while (what < kinds[i].from)
        i++;
    *bin = what - kinds[i].from;
    return kinds[i].touch;
}

static int add_count(struct reading *r, const struct recorded_count *c, uint32_t row)
{
    double n = (double)c->count;
    if (row == ANALYSIS_NO_GROUP)
        return 0;
    if (c->what == SITE_COUNT_MORE) {
        if (r->h->objects)
            return add_known(r, c->site, n);
        shares_add(r->shares, row, n, 0, 0);
        return 0;
    }
    if (c->what == SITE_COUNT_OBJECT)
        return r->h->objects ? add_estimate(r, c->site, row, n) : 0;
    uint32_t bin, code = code_of(r, c->what);
    if (code == 0)
        return 0;
    enum far_touch what = touch_of(code, &bin);
    if (what >= FAR_TAIL_ENTRY) {
        if (r->far_shares)
            far_shares_add(r->far_shares, row, what, bin, r->weight * n);
        return 0;
    }
    int first = what == FAR_FIRST;
    /* Where every reference was recorded, a first touch is the first of the run, and misses. */
    double certain = first ? r->decided_first[bin] : r->decided[bin],
           cold = r->exact ? 1 - (r->h->full ? 0 : r->weights->exact_left) : 0;
    if (first)
        certain = fmax(certain, cold);
    shares_add(r->shares, row, 0, certain * n, first ? (1 - certain) * n : 0);
    if (r->causes)
        analysis_causes_touches(r->causes, row, c->object, r->weight * n,
                                !first ? r->weight * certain * n : n * cold, first);
    if (r->far_shares && !r->exact)
        far_shares_add(r->far_shares, row, what, bin, r->weight * n);
    return 0;
}

/* For the spread: once more, with what touches contribute to misses that bursts do not decide. */
static void add_contribution(struct reading *r, const struct recorded_count *c, uint32_t row)
{
    uint32_t bin, code = code_of(r, c->what);
    double n = (double)c->count, misses = 0;
    if (row == ANALYSIS_NO_GROUP)
        return;
    if (c->what == SITE_COUNT_MORE || c->what == SITE_COUNT_OBJECT) {
        if ((c->what == SITE_COUNT_OBJECT) == (r->h->objects != 0))
            shares_add(r->spread, row, n, 0, 0);
        return;
    }
    if (code == 0)
        return;
    enum far_touch what = touch_of(code, &bin);
    if (what == FAR_REUSE || what == FAR_FIRST) {
        double cold = r->exact && what == FAR_FIRST ? 1 - r->weights->exact_left : 0;
        misses = what == FAR_FIRST ? fmax(r->decided_first[bin], cold) : r->decided[bin];
    }
    if (!r->exact)
        misses += far_shares_value(r->far_shares, row, what, bin);
    shares_add(r->spread, row, 0, misses * n, 0);
}

static int add_counts(struct reading *r, const struct recorded_counts *counts, struct error *err)
{
    for (size_t i = counts->first; i < counts->first + counts->n; i++)
        if (r->again)
            add_contribution(r, &r->recorded->list[i], r->rows->of_count[i]);
        else if (add_count(r, &r->recorded->list[i], r->rows->of_count[i]) < 0)
            return error_set(err, -ENOMEM, "out of memory for the hotspots");
    return 0;
}

/* Adds the counts of a burst and process, if they are selected. */
static int add_row(struct reading *r, const struct recorded_counts *counts, struct error *err)
{
    const struct analysis_weights *w = r->weights;
    double weight = 1;
    uint32_t tid = 0;
    r->exact = r->h->full || (counts->burst == 0 && w->exact && !r->question->tid && !r->question->phase);
    if (!r->exact) {
        for (; r->next < w->n && w->list[r->next].burst < counts->burst; r->next++)
            r->h->other_bursts +=
                !r->again &&
                analysis_selection_has(&r->selection, w->list[r->next].process, w->list[r->next].tid) &&
                (!r->question->phase || w->list[r->next].weight > 0);
        if (r->next == w->n || w->list[r->next].burst != counts->burst)
            return 0;
        weight = w->list[r->next].weight * r->scale;
        tid = w->list[r->next++].tid;
        if (r->question->phase && weight == 0)
            return 0;
    }
    if (!analysis_selection_has(&r->selection, counts->process, tid))
        return 0;
    r->weight = weight;
    int code = add_counts(r, counts, err);
    if (code < 0)
        return code;
    if (r->again) {
        if (r->exact)
            shares_exact(r->spread);
        else
            shares_burst(r->spread, weight);
        return 0;
    }
    settle_estimates(r);
    if (r->exact)
        r->h->exact_references += shares_exact(r->shares);
    else
        shares_burst(r->shares, weight);
    r->h->bursts += !r->exact;
    return 0;
}

void hotspots_find_scale(struct reading *r)
{
    const struct analysis_weights *w = r->weights;
    double all = 0, counted = 0;
    if (!w->exact)
        return;
    for (size_t i = 0; i < w->n; i++)
        all += w->list[i].weight;
    for (size_t i = 0, next = 0; i < r->recorded->ncounts; i++) {
        uint64_t burst = r->recorded->counts[i].burst;
        while (next < w->n && w->list[next].burst < burst)
            next++;
        if (next < w->n && w->list[next].burst == burst)
            counted += w->list[next++].weight;
    }
    r->scale = all > 0 && counted > 0 ? all / counted : 1;
}

int hotspots_add_counts(struct reading *r, struct error *err)
{
    int code = 0;
    for (size_t i = 0; i < r->recorded->ncounts && code == 0; i++)
        code = add_row(r, &r->recorded->counts[i], err);
    return code;
}

void hotspots_clear_counts(struct reading *r)
{
    free(r->estimates);
    free(r->of_site);
    free(r->sites);
    analysis_selection_clear(&r->selection);
}
