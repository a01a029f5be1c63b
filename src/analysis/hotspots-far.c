/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hotspots-far.c - the misses that bursts do not decide, of a table of hotspots: reuses beyond the end of a
 * burst. Which rows make them is found from the touches in bursts and the watched lines (model/far-shares.h).
 */
#include <errno.h>
#include <stdlib.h>

#include "analysis/hotspots-internal.h"

static double mean_weight(const struct analysis_weights *w)
{
    double sum = 0;
    size_t n = 0; /* of a phase, only its own */
    for (size_t i = 0; i < w->n; i++) {
        sum += w->list[i].weight;
        n += w->list[i].weight > 0;
    }
    return n > 0 ? sum / (double)n : 0;
}

int hotspots_far_begin(struct reading *r, struct error *err)
{
    if (r->h->full)
        return 0;
    r->far_shares = far_shares_new(r->h->n, r->lines, mean_weight(r->weights));
    r->far = calloc(r->h->n + 1, sizeof *r->far);
    return r->far_shares && r->far ? 0 : error_set(err, -ENOMEM, "out of memory for the hotspots");
}

/* The site by which rows find what missed; 0: not known. If rows are by object only, any will do: not if by
 * field, which depends on the site. */
static uint32_t site_of_missed(const struct reading *r, const struct analysis_missed *m)
{
    if (m->site && m->site <= r->groups.most_site)
        return (uint32_t)m->site;
    for (uint64_t site = 1; site <= r->groups.most_site && r->h->by == ANALYSIS_BY_NOTHING && !r->h->fields;
         site++)
        if (r->groups.of_site[site] != ANALYSIS_NO_GROUP)
            return (uint32_t)site;
    return 0;
}

/* Whether the row of what missed is known: with objects these must be known, too. */
static int has_row(const struct reading *r, const struct analysis_missed *m, uint32_t *site)
{
    *site = site_of_missed(r, m);
    return *site && analysis_selection_has(&r->selection, m->process, m->tid) &&
           (!r->h->objects || (m->object && m->object <= UINT32_MAX));
}

int hotspots_add_missed(struct reading *r, struct error *err)
{
    int code = 0;
    if (!r->weights)
        return 0;
    for (size_t i = 0; i < r->weights->nmissed && code == 0; i++) {
        const struct analysis_missed *m = &r->weights->missed[i];
        uint32_t site;
        if (m->weight > 0 && has_row(r, m, &site))
            code = analysis_groups_add(r->h, &r->groups, site, (uint32_t)m->object);
    }
    return code < 0 ? error_set(err, code, "out of memory for the hotspots") : 0;
}

/* Whether rows are known to make such misses. Not if no burst is selected: then the rows whose first touches
 * the part with every reference has make them. */
static int has_shares(const struct reading *r)
{
    double sum = 0;
    for (size_t i = 0; i < r->h->n; i++)
        sum += r->far[i].share;
    return sum > 0;
}

int hotspots_far_find(struct reading *r, struct error *err)
{
    double samples;
    int code = 0;
    if (!r->far_shares)
        return 0;
    for (size_t i = 0; i < r->weights->nmissed && code == 0; i++) {
        const struct analysis_missed *m = &r->weights->missed[i];
        uint32_t row = ANALYSIS_NO_GROUP, site;
        if (has_row(r, m, &site))
            row = analysis_groups_row(r->h, &r->groups, site, (uint32_t)m->object);
        if (analysis_selection_has(&r->selection, m->process, m->tid))
            code = far_shares_hit(r->far_shares, row != ANALYSIS_NO_GROUP ? row : FAR_SHARES_UNKNOWN,
                                  (size_t)m->burst, m->weight);
    }
    if (code == 0)
        code = far_shares_find(r->far_shares, r->h->far, r->far, &samples);
    if (code < 0)
        return error_set(err, code, "out of memory for the hotspots");
    if (has_shares(r))
        shares_set_far(r->shares, r->far, samples);
    if (!(r->spread = shares_new(r->h->n, 0, 0, 0)))
        return error_set(err, -ENOMEM, "out of memory for the hotspots");
    r->again = 1;
    r->next = 0;
    code = hotspots_add_counts(r, err);
    shares_set_spread(r->shares, r->spread);
    return code;
}
