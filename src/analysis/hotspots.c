/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/hotspots.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/base-name.h"
#include "analysis/burst-weights.h"
#include "analysis/curve.h"
#include "analysis/hotspots-calls.h"
#include "analysis/hotspots-causes.h"
#include "analysis/hotspots-groups.h"
#include "analysis/hotspots-lines.h"
#include "analysis/recorded.h"
#include "profile/site-counts.h"

#define WHOLE_RUN_ONLY ": where everything was recorded, code is counted for the whole run, not by phase"

/* A site with fewer estimated references, those of four samples, is not scaled by itself. */
#define LEAST_ESTIMATED 256

/* State while counts are read. */
struct reading {
    const struct analysis_hotspots_question *question;
    struct analysis_hotspots *h;
    const struct analysis_recorded *recorded;
    const struct recorded_rows *rows;       /* without those that only watched lines or causes have */
    const struct analysis_weights *weights; /* of bursts; NULL in full mode */
    size_t next;                            /* in weights */
    struct analysis_groups groups;
    struct shares *shares, *spread;          /* spread: NULL in full mode */
    struct far_shares *far_shares;           /* NULL in full mode */
    struct far_share *far;                   /* of each row */
    const struct analysis_groups *functions; /* NULL: rows are no parts of functions */
    uint64_t *processes;                     /* the selected ones */
    size_t nprocesses;
    double lines;                 /* of the cache */
    double decided[OCTAVES_BINS]; /* part of a bin at distances of `lines` and more */
    double scale;                 /* of weights: what all bursts represent, by those with counts */
    int again;                    /* counts are read again, for the spread */
    int exact;                    /* the current row is of a part that was recorded completely */
    double weight;                /* likewise */
    /* With objects, of the current row: all references; those of each site, which are known; and those of
     * each row of the table, which are estimated. */
    double references;
    struct site_references {
        double known, estimated;
    } * of_site; /* by id */
    uint32_t *sites;
    size_t nsites, sites_capacity;
    struct {
        uint32_t site, row;
        double references;
    } * estimates;
    size_t nestimates, estimates_capacity;
    struct causes_reading *causes; /* NULL: not asked for */
};

/* --- selected processes --- */

static void take_process(void *ctx, uint64_t id, uint32_t pid, uint32_t ppid, const char *exe)
{
    struct reading *r = ctx;
    (void)pid, (void)ppid;
    if (strcmp(base_name(exe), r->question->comm) != 0)
        return;
    uint64_t *grown = reallocarray(r->processes, r->nprocesses + 1, sizeof *grown);
    if (!grown)
        return;
    r->processes = grown;
    r->processes[r->nprocesses++] = id;
}

static int is_selected(const struct reading *r, uint64_t process, uint32_t tid)
{
    if (r->question->tid && tid != r->question->tid)
        return 0;
    for (size_t i = 0; i < r->nprocesses; i++)
        if (r->processes[i] == process)
            return 1;
    return !r->question->comm;
}

/* --- counts --- */

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

static enum far_touch touch_of(const struct recorded_count *c, uint32_t *bin)
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
    while (c->what < kinds[i].from)
        i++;
    *bin = (uint32_t)c->what - kinds[i].from;
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
    uint32_t bin;
    enum far_touch what = touch_of(c, &bin);
    if (what >= FAR_TAIL_ENTRY) {
        if (r->far_shares)
            far_shares_add(r->far_shares, row, what, bin, r->weight * n);
        return 0;
    }
    int first = what == FAR_FIRST;
    /* Where every reference was recorded, a first touch is the first of the run, and misses. */
    double certain = r->decided[bin], cold = r->exact ? 1 - (r->h->full ? 0 : r->weights->exact_left) : 0;
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
    uint32_t bin;
    double n = (double)c->count, misses = 0;
    if (row == ANALYSIS_NO_GROUP)
        return;
    if (c->what == SITE_COUNT_MORE || c->what == SITE_COUNT_OBJECT) {
        if ((c->what == SITE_COUNT_OBJECT) == (r->h->objects != 0))
            shares_add(r->spread, row, n, 0, 0);
        return;
    }
    enum far_touch what = touch_of(c, &bin);
    if (what == FAR_REUSE || what == FAR_FIRST) {
        double cold = r->exact && what == FAR_FIRST ? 1 - r->weights->exact_left : 0;
        misses = fmax(r->decided[bin], cold);
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
            r->h->other_bursts += !r->again &&
                                  is_selected(r, w->list[r->next].process, w->list[r->next].tid) &&
                                  (!r->question->phase || w->list[r->next].weight > 0);
        if (r->next == w->n || w->list[r->next].burst != counts->burst)
            return 0;
        weight = w->list[r->next].weight * r->scale;
        tid = w->list[r->next++].tid;
        if (r->question->phase && weight == 0)
            return 0;
    }
    if (!is_selected(r, counts->process, tid))
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

/* Beside a part that was recorded completely, the bursts with counts represent those without, too. */
static void find_scale(struct reading *r)
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

/* --- misses that bursts do not decide --- */

static uint32_t function_of(const struct reading *r, uint64_t site)
{
    return r->functions ? analysis_groups_of(r->functions, site) : ANALYSIS_NO_GROUP;
}

/* Of each row the number of its function; NULL with code 0: rows are no parts of functions. */
static uint32_t *functions_of_rows(const struct reading *r, int *code)
{
    const struct analysis_groups *g = &r->groups;
    uint32_t *of_group, *of_row;
    *code = 0;
    if (!r->functions)
        return NULL;
    of_group = calloc(g->n + 1, sizeof *of_group);
    of_row = calloc(r->h->n + 1, sizeof *of_row);
    if (!of_group || !of_row) {
        free(of_group);
        free(of_row);
        *code = -ENOMEM;
        return NULL;
    }
    for (uint64_t site = 0; site <= g->most_site; site++)
        if (g->of_site[site] != ANALYSIS_NO_GROUP)
            of_group[g->of_site[site]] = function_of(r, site);
    if (!r->h->objects) {
        free(of_row);
        return of_group;
    }
    for (size_t i = 0; i < g->capacity; i++)
        if (g->pairs[i].row != 0)
            of_row[g->pairs[i].row - 1] = of_group[g->pairs[i].group];
    free(of_group);
    return of_row;
}

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

static int make_far_shares(struct reading *r, struct error *err)
{
    int code;
    if (r->h->full)
        return 0;
    uint32_t *functions = functions_of_rows(r, &code);
    if (code == 0)
        r->far_shares = far_shares_new(r->h->n, r->lines, mean_weight(r->weights), functions,
                                       r->functions ? r->functions->n : 0);
    free(functions);
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
    return *site && is_selected(r, m->process, m->tid) &&
           (!r->h->objects || (m->object && m->object <= UINT32_MAX));
}

/* Code that misses may not have been seen in any burst. */
static int add_rows_of_missed(struct reading *r, struct error *err)
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

static int find_far_shares(struct reading *r, struct error *err)
{
    double samples;
    int code = 0;
    if (!r->far_shares)
        return 0;
    for (size_t i = 0; i < r->weights->nmissed && code == 0; i++) {
        const struct analysis_missed *m = &r->weights->missed[i];
        uint32_t row = ANALYSIS_NO_GROUP, function = m->site ? function_of(r, m->site) : ANALYSIS_NO_GROUP,
                 site;
        if (has_row(r, m, &site))
            row = analysis_groups_row(r->h, &r->groups, site, (uint32_t)m->object);
        if (is_selected(r, m->process, m->tid))
            code = far_shares_hit(r->far_shares, row != ANALYSIS_NO_GROUP ? row : FAR_SHARES_UNKNOWN,
                                  function != ANALYSIS_NO_GROUP ? function : FAR_SHARES_UNKNOWN,
                                  (size_t)m->burst, m->weight);
    }
    if (code == 0)
        code = far_shares_find(r->far_shares, r->h->far, r->far, &samples);
    if (code < 0)
        return error_set(err, code, "out of memory for the hotspots");
    shares_set_far(r->shares, r->far, samples);
    if (!(r->spread = shares_new(r->h->n, 0, 0, 0)))
        return error_set(err, -ENOMEM, "out of memory for the hotspots");
    r->again = 1;
    r->next = 0;
    for (size_t i = 0; i < r->recorded->ncounts && code == 0; i++)
        code = add_row(r, &r->recorded->counts[i], err);
    shares_set_spread(r->shares, r->spread);
    return code;
}

/* --- all of it --- */

/* Makes the rows. */
static int make_rows(struct profile *p, struct reading *r, struct error *err)
{
    struct analysis_hotspots *h = r->h;
    const struct recorded_rows *functions = NULL;
    int code = analysis_recorded_lend(h->recorded, p, h, err);
    if (code == 0)
        code = analysis_recorded_rows(h->recorded, h, h->by, h->objects, &r->rows, err);
    if (code == 0 && !h->full && h->by != ANALYSIS_BY_NOTHING && h->by != ANALYSIS_BY_MODULE)
        code = analysis_recorded_rows(h->recorded, h, ANALYSIS_BY_FUNCTION, 0, &functions, err);
    if (code != 0)
        return code;
    if (functions)
        r->functions = &functions->groups;
    if (r->rows->groups.n == 0 && (code = analysis_refuse_unprofiled(p, h->profile, err)) != 0)
        return code;
    if (r->rows->groups.n == 0)
        return error_set(err, -ENODATA,
                         "the profile '%s' holds no code: nothing was recorded, or the recording was killed "
                         "before its code was named",
                         h->profile);
    if (analysis_groups_copy(&r->rows->groups, r->rows->rows, r->rows->n, h, &r->groups) < 0 ||
        (r->of_site = calloc(r->groups.most_site + 1, sizeof *r->of_site)) == NULL)
        return error_set(err, -ENOMEM, "out of memory for the hotspots");
    if (h->objects)
        code = add_rows_of_missed(r, err);
    if (code == 0 && h->objects && r->causes)
        code = analysis_causes_add_rows(r->causes, h, &r->groups, err);
    return code;
}

static int compare_rows(const void *a, const void *b)
{
    const struct analysis_hotspot *x = a, *y = b;
    if (x->shares.misses != y->shares.misses)
        return x->shares.misses < y->shares.misses ? 1 : -1;
    if (x->shares.references != y->shares.references)
        return x->shares.references < y->shares.references ? 1 : -1;
    return 0;
}

static int finish_rows(struct reading *r, struct error *err)
{
    size_t used = 0;
    int code = 0;
    for (size_t i = 0; i < r->h->n; i++) {
        struct analysis_hotspot *row = &r->h->rows[i];
        shares_result(r->shares, i, &row->shares);
        row->shares.enough |= r->h->full;
        row->cold = r->causes ? analysis_causes_cold(r->causes, i, row->shares.misses) : NAN;
        row->number = i;
        /* A share of all references; the pieces of the run in which they were looked for can have more. */
        if (!r->question->tid && !r->question->comm && !r->h->phase &&
            row->conflicts > row->shares.references_share)
            row->conflicts = row->shares.references_share;
        row->stall = NAN;
        if (row->shares.references > 0 || row->shares.misses > 0)
            r->h->rows[used++] = *row;
    }
    r->h->n = used;
    shares_total(r->shares, &r->h->total);
    if (used > 0)
        qsort(r->h->rows, used, sizeof *r->h->rows, compare_rows);
    if (r->h->full) { /* no sampling */
        for (size_t i = 0; i <= used; i++) {
            struct shares_result *s = i < used ? &r->h->rows[i].shares : &r->h->total;
            s->share_low = s->share_high = s->misses_share;
            s->ratio_low = s->ratio_high = s->miss_ratio;
        }
    }
    if (r->causes)
        code = analysis_causes_evictions(r->causes, r->h);
    return code == 0 ? 0 : error_set(err, code, "out of memory for the causes of misses");
}

static int compute(struct profile *p, struct reading *r, struct error *err)
{
    struct analysis_hotspots *h = r->h;
    const struct analysis_weights *w = NULL;
    int code = analysis_recorded_get(p, h->profile, r->question->wrappers, &h->recorded, err);
    r->recorded = h->recorded;
    if (code == 0 && !h->full) {
        code = analysis_recorded_weights(h->recorded, p, h, &w, err);
        if (code != 0)
            return code;
        r->weights = w;
        h->far = w->far.share;
        if (h->phase && w->phase_bursts == 0)
            return error_set(err, -ENODATA, "the profile '%s' holds no bursts of phase %u%s", h->profile,
                             h->phase, w->exact ? WHOLE_RUN_ONLY : "");
        h->part_left_out = h->phase && w->exact;
        find_scale(r);
    }
    if (code == 0 && r->question->comm)
        code = profile_processes(p, take_process, r, err);
    if (code == 0)
        code = make_rows(p, r, err);
    if (code != 0)
        return code;
    r->shares = h->full ? shares_new(h->n, 0, 0, 0)
                        : shares_new(h->n, isnan(h->far) ? 0.5 : h->far, w->far.low, w->far.high);
    if (!r->shares)
        return error_set(err, -ENOMEM, "out of memory for the hotspots");
    for (uint32_t bin = 0; bin < OCTAVES_BINS; bin++)
        r->decided[bin] = far_shares_part_above(bin, r->lines);
    code = make_far_shares(r, err);
    if (code == 0 && r->causes)
        code = analysis_causes_begin(r->causes, h, &r->groups, w ? w->missed : NULL, w ? w->nmissed : 0, err);
    for (size_t i = 0; i < r->recorded->ncounts && code == 0; i++)
        code = add_row(r, &r->recorded->counts[i], err);
    if (code == 0)
        code = find_far_shares(r, err);
    if (code == 0)
        code = analysis_lines_read(p, h, &r->groups, err);
    if (code == 0)
        code = finish_rows(r, err);
    if (code == 0 && r->question->calls)
        code = analysis_calls_find(p, h, r->question->call_rows, &r->groups, r->lines, err);
    double first;
    if (code == 0 && h->n == 0 && r->question->tid &&
        profile_get_number(p, "full_references", &first, NULL) == 0 && first > 0)
        code = analysis_refuse_thread(h->profile, " before the first burst", err);
    if (code == 0 && h->n == 0)
        code = error_set(err, -ENODATA, "the profile '%s' holds no references of that process or thread",
                         h->profile);
    return code;
}

int analysis_hotspots(struct profile *p, const char *name, const struct analysis_hotspots_question *question,
                      struct analysis_hotspots *h, struct error *err)
{
    struct reading r = {.question = question, .h = h, .scale = 1};
    char mode[16] = "";
    *h = (struct analysis_hotspots){.profile = name,
                                    .size_bytes = question->size_bytes,
                                    .by = question->by,
                                    .objects = question->objects,
                                    .fields = question->objects && question->fields,
                                    .phase = question->phase,
                                    .with_calls = question->calls,
                                    .far = NAN};
    int code = profile_get(p, "mode", mode, sizeof mode, err);
    if (code != 0 && code != -ENOENT)
        return code;
    if ((code = analysis_refuse_lines(p, name, err)) != 0)
        return code;
    if (strcmp(mode, "sparse") == 0)
        return error_set(err, -EINVAL, "the profile '%s' was sampled from a trace: it holds no code", name);
    h->full = strcmp(mode, "full") == 0;
    h->extent = analysis_extent(p);
    h->missed_percent = analysis_missed_percent(p);
    if ((code = profile_line_bytes(p, &h->line_bytes, err)) != 0)
        return code;
    r.lines = floor(h->size_bytes / h->line_bytes);
    if (r.lines < (double)OCTAVES_LEAST)
        return error_set(err, -ERANGE,
                         "the cache is too small: misses are attributed to code for caches of at least %llu "
                         "lines (%llu bytes)",
                         (unsigned long long)OCTAVES_LEAST,
                         (unsigned long long)OCTAVES_LEAST * h->line_bytes);
    if (h->full && question->tid)
        return analysis_refuse_thread(name, "", err);
    if (h->full && h->phase)
        return error_set(err, -ENODATA, "the profile '%s' holds no bursts" WHOLE_RUN_ONLY, name);
    if (question->causes && h->phase)
        return error_set(err, -EINVAL, "causes are counted for the whole run, not by phase");
    if (question->causes && !(r.causes = analysis_causes_read(p, r.lines, err)))
        return -ENOMEM;
    code = compute(p, &r, err);
    analysis_causes_free(r.causes);
    far_shares_free(r.far_shares);
    free(r.far);
    free(r.groups.pairs);
    free(r.estimates);
    free(r.of_site);
    free(r.sites);
    free(r.processes);
    shares_free(r.shares);
    shares_free(r.spread);
    if (code != 0)
        analysis_hotspots_clear(h);
    return code;
}

void analysis_hotspots_clear(struct analysis_hotspots *h)
{
    analysis_recorded_release(h->recorded);
    free(h->rows);
    free(h->evictions);
    free(h->calls);
    h->recorded = NULL;
    h->rows = NULL;
    h->calls = NULL;
    h->evictions = NULL;
    h->images = NULL;
    h->frames = NULL;
    h->data = NULL;
    h->same = NULL;
    h->parts = NULL;
    h->n = h->nevictions = h->ncalls = h->nimages = h->nframes = h->ndata = h->nparts = 0;
}
