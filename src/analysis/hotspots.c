/* SPDX-License-Identifier: Apache-2.0 */
/* hotspots.c - a table of hotspots: its rows, what is added up for them (hotspots-counts.c, hotspots-far.c,
 * hotspots-lines.c, hotspots-causes.c), and their order. */
#include "analysis/hotspots.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/busy-threads.h"
#include "analysis/curve.h"
#include "analysis/hotspots-calls.h"
#include "analysis/hotspots-internal.h"
#include "analysis/hotspots-lines.h"
#include "analysis/thread-hist.h"

#define WHOLE_RUN_ONLY ": where everything was recorded, code is counted for the whole run, not by phase"

/* Relative standard error of the rates by which bursts are weighted, chosen so that intervals of shares hold
 * the exact value in 93% of cases instead of 86% (docs/accuracy-code.md). */
#define RATE_ERROR 0.3

/* Makes the rows. */
static int make_rows(struct profile *p, struct reading *r, struct error *err)
{
    struct analysis_hotspots *h = r->h;
    int code = analysis_recorded_lend(h->recorded, p, h, err);
    if (code == 0)
        code = analysis_recorded_rows(h->recorded, h, h->by, h->objects, &r->rows, err);
    if (code != 0)
        return code;
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
        code = hotspots_add_missed(r, err);
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

/* Share of the misses below which they are not worth a note. */
#define FEW_STRINGS 0.05

/* Or share of the touches in their hits. */
#define FEW_HITS 0.01

/* The rows have all misses but those of string instructions that no burst has: their shares are of all. */
static void leave_strings_out(struct reading *r, size_t nrows)
{
    const struct unseen_strings *strings = &r->weights->strings;
    struct shares_result *total = &r->h->total;
    double seen = 1 - strings->share - strings->unlisted, others = seen * total->miss_ratio,
           theirs = strings->share * unseen_strings_miss(strings, r->lines), all = theirs + others;
    if (!(others > 0) || !(seen > 0) ||
        (!(theirs >= FEW_STRINGS * all) && !(fabs(strings->unlisted) >= FEW_HITS)))
        return;
    r->h->unseen_strings = theirs / all;
    total->misses *= all / others;
    total->references /= seen;
    total->miss_ratio = all;
    total->ratio_low *= seen;
    total->ratio_high = fmin(1, seen * total->ratio_high + strings->share);
    for (size_t i = 0; i < nrows; i++) {
        struct shares_result *s = &r->h->rows[i].shares;
        /* Where bursts have more hits of strings than there were, the rows are still parts of a whole. */
        s->references_share *= fmin(seen, 1);
        if (analysis_selection_is_all(&r->selection) && !r->h->phase)
            r->h->rows[i].conflicts *= fmin(seen, 1); /* a share of all references, too */
        s->misses_share *= others / all;
        s->share_low *= others / (others + strings->share);
    }
}

static int finish_rows(struct reading *r, struct error *err)
{
    size_t used = 0;
    int code = 0;
    for (size_t i = 0; i < r->h->n; i++) {
        struct analysis_hotspot *row = &r->h->rows[i];
        shares_result(r->shares, i, &row->shares);
        row->shares.enough |= r->h->full;
        row->cold = r->causes ? analysis_causes_cold(r->causes, i, row->shares.misses, &row->cold_known,
                                                     &row->cold_guessed)
                              : NAN;
        row->number = i;
        /* A share of all references; the pieces of the run in which they were looked for can have more. */
        if (analysis_selection_is_all(&r->selection) && !r->h->phase &&
            row->conflicts > row->shares.references_share)
            row->conflicts = row->shares.references_share;
        row->stall = NAN;
        if (row->shares.references > 0 || row->shares.misses > 0)
            r->h->rows[used++] = *row;
    }
    r->h->n = used;
    shares_total(r->shares, &r->h->total);
    if (r->weights)
        leave_strings_out(r, used);
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

/* In full mode: of the distances in the bin of the cache's size, the part that is at this size or more. */
static int find_exact_part(struct profile *p, struct reading *r, uint32_t bin, struct error *err)
{
    const double at[] = {octaves_start(bin), r->lines, octaves_start(bin + 1)};
    double reached[3];
    struct thread_hist *d = calloc(1, sizeof *d);
    int code = d ? profile_get_hist(p, 0, PROFILE_HIST_STACK, &d->stack, err)
                 : error_set(err, -ENOMEM, "out of memory for the hotspots");
    if (code == 0 && r->h->separate) {
        d->cold = d->left = UINT64_MAX / 2; /* not wanted here, but they must be enough */
        code = thread_hist_separate(p, r->h->profile, 0, d, err);
    }
    for (size_t i = 0; i < 3 && code == 0; i++)
        reached[i] = hist_at_least(&d->stack, at[i]);
    if (code == 0 && reached[0] > reached[2])
        r->decided[bin] = (reached[1] - reached[2]) / (reached[0] - reached[2]);
    free(d);
    return code == -ENOENT ? 0 : code; /* the recording was killed */
}

/* Code is counted by half octaves of distances. Which part of those in the bin of the cache's size miss is
 * known of the whole program: each row is taken to have that part. */
static int find_decided(struct profile *p, struct reading *r, struct error *err)
{
    uint32_t at = octaves_bin_of(r->lines);
    for (uint32_t bin = 0; bin < OCTAVES_BINS; bin++)
        r->decided[bin] = r->decided_first[bin] = far_shares_part_above(bin, r->lines);
    if (r->h->full)
        return find_exact_part(p, r, at, err);
    if (!isnan(r->weights->reuses_above))
        r->decided[at] = r->weights->reuses_above;
    if (!isnan(r->weights->firsts_above))
        r->decided_first[at] = r->weights->firsts_above;
    return 0;
}

static int compute(struct profile *p, struct reading *r, struct error *err)
{
    struct analysis_hotspots *h = r->h;
    const struct analysis_weights *w = NULL;
    int code = analysis_recorded_get(p, h->profile, r->question->wrappers, &h->recorded, err);
    r->recorded = h->recorded;
    if (code == 0)
        code = analysis_selection_find(p, &r->selection, err);
    if (code == 0 && !h->full) {
        code = analysis_recorded_weights(h->recorded, p, h, &r->selection, &w, err);
        if (code != 0)
            return code;
        r->weights = w;
        h->far = w->far.share;
        if (h->phase && w->phase_bursts == 0)
            return error_set(err, -ENODATA, "the profile '%s' holds no bursts of phase %u%s", h->profile,
                             h->phase, w->phase_exact ? WHOLE_RUN_ONLY : "");
        h->part_left_out = w->phase_exact > 0;
        hotspots_find_scale(r);
    }
    if (code == 0)
        code = make_rows(p, r, err);
    if (code != 0)
        return code;
    r->shares = h->full ? shares_new(h->n, 0, 0, 0)
                        : shares_new(h->n, isnan(h->far) ? 0.5 : h->far, w->far.low, w->far.high);
    if (!r->shares)
        return error_set(err, -ENOMEM, "out of memory for the hotspots");
    shares_set_rate_error(r->shares, RATE_ERROR);
    code = find_decided(p, r, err);
    if (code == 0)
        code = hotspots_far_begin(r, err);
    if (code == 0 && r->causes)
        code = analysis_causes_begin(r->causes, h, &r->groups, w ? w->missed : NULL, w ? w->nmissed : 0, err);
    if (code == 0)
        code = hotspots_add_counts(r, err);
    if (code == 0)
        code = hotspots_far_find(r, err);
    if (code == 0)
        code = analysis_lines_read(p, h, &r->groups, err);
    if (code == 0)
        code = finish_rows(r, err);
    if (code == 0 && r->question->calls)
        code = analysis_calls_find(p, h, r->question->call_rows, &r->groups, r->lines, err);
    double first;
    if (code == 0 && h->n == 0 && r->question->tid && w && w->n == 0 &&
        profile_get_number(p, "full_references", &first, NULL) == 0 && first > 0)
        code = analysis_refuse_thread(h->profile, " before the first burst", err);
    if (code == 0 && h->n == 0)
        code = analysis_selection_refuse(p, h->profile, &r->selection, err);
    return code;
}

int analysis_hotspots(struct profile *p, const char *name, const struct analysis_hotspots_question *question,
                      struct analysis_hotspots *h, struct error *err)
{
    struct reading r = {.question = question,
                        .h = h,
                        .scale = 1,
                        .selection = {.tid = question->tid, .comm = question->comm}};
    char mode[16] = "";
    *h = (struct analysis_hotspots){.profile = name,
                                    .size_bytes = question->size_bytes,
                                    .by = question->by,
                                    .objects = question->objects,
                                    .fields = question->objects && question->fields,
                                    .separate = question->separate,
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
    h->busy_threads = analysis_busy_threads(p).threads;
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
    if (h->separate && h->full && (code = thread_hist_check(p, name, err)) != 0)
        return code;
    if (question->causes && h->phase)
        return error_set(err, -EINVAL, "causes are counted for the whole run, not by phase");
    if (question->causes && !(r.causes = analysis_causes_read(p, r.lines, err)))
        return -ENOMEM;
    code = compute(p, &r, err);
    analysis_causes_free(r.causes);
    far_shares_free(r.far_shares);
    free(r.far);
    free(r.groups.pairs);
    hotspots_clear_counts(&r);
    shares_free(r.shares);
    shares_free(r.spread);
    if (code != 0)
        analysis_hotspots_clear(h);
    return code;
}

void analysis_widen_ratio(struct shares_result *total, const struct curve_point *curve)
{
    total->ratio_low = fmin(total->ratio_low, curve->low);
    total->ratio_high = fmin(1, fmax(total->ratio_high, curve->high));
}

struct curve_point analysis_hotspots_point(struct profile *p, const struct analysis_hotspots *h)
{
    const struct analysis_question question = {.model = ANALYSIS_MODEL_LRU, .separate = h->separate};
    struct curve_point of_size = {.size_bytes = h->size_bytes}, none = {h->size_bytes, NAN, 0, 1};
    struct analysis_curve curve = {.profile = h->profile};
    struct error ignored;
    if (!(curve.points = analysis_curve_with_grid(&of_size, 1, &curve.n)))
        return none;
    if (analysis_curve_compute(p, &question, &curve, &ignored) == 0)
        none = *analysis_curve_find(curve.points, curve.n, h->size_bytes);
    free(curve.points);
    return none;
}

void analysis_hotspots_widen(struct profile *p, const struct analysis_hotspots_question *question,
                             struct analysis_hotspots *h)
{
    if (h->full || question->tid || question->comm || question->phase)
        return;
    struct curve_point curve = analysis_hotspots_point(p, h);
    analysis_widen_ratio(&h->total, &curve);
    h->no_estimate = isnan(curve.miss_ratio);
}

void analysis_hotspots_clear(struct analysis_hotspots *h)
{
    analysis_recorded_release(h->recorded);
    free(h->rows);
    free(h->evictions);
    free(h->calls);
    *h = (struct analysis_hotspots){0};
}
