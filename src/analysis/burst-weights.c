/* SPDX-License-Identifier: Apache-2.0 */
/* burst-weights.c - weights and miss ratios of single bursts. */
#include "analysis/bursts-internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/octaves.h"

struct analysis_sample {
    struct loaded loaded;
    struct analysis_curve curve;
    double *weights;   /* of the whole run's bursts, and of the part that was recorded completely */
    double *distances; /* of watched lines; NULL: none are followed */
};

/* Keeps those of the watched lines that missed. */
static int take_missed(const struct analysis_sample *s, struct analysis_weights *weights, struct error *err)
{
    size_t watches = s->curve.watches, used = 0;
    double *missed = calloc(watches + 1, sizeof *missed);
    weights->missed = calloc(watches + 1, sizeof *weights->missed);
    if (!missed || !weights->missed) {
        free(missed);
        return error_set(err, -ENOMEM, "out of memory computing the weights of bursts");
    }
    int code = curve_watched_far(s->loaded.bursts, s->curve.bursts, s->distances, s->curve.line_bytes,
                                 weights->size_bytes, &weights->far, missed, err);
    for (size_t i = 0; i < watches && code == 0; i++) {
        weights->missed[used] = s->loaded.sites[i];
        weights->missed[used].weight = missed[i];
        used += missed[i] > 0;
    }
    free(missed);
    weights->nmissed = used;
    return code;
}

/* The bursts, and the part that was recorded completely. */
static int load_all(struct profile *p, const char *name, unsigned line_bytes, int separate, struct loaded *l,
                    struct analysis_curve *curve, struct error *err)
{
    *curve = (struct analysis_curve){
        .profile = name, .line_bytes = line_bytes, .separate = separate, .clock_error = NAN};
    int code = loaded_make(l, p, 0, err);
    if (code == 0 && separate && !(l->thread_time = thread_time_load(p, err)))
        code = -ENOMEM;
    if (code == 0)
        code = loaded_bursts(p, 0, l, curve, err);
    return code == 0 ? loaded_full_part(p, 0, l, curve, err) : code;
}

int analysis_sample_load(struct profile *p, const char *name, unsigned line_bytes, int separate,
                         struct analysis_sample **sample, struct error *err)
{
    struct analysis_sample *s = calloc(1, sizeof *s);
    *sample = NULL;
    if (!s)
        return error_set(err, -ENOMEM, "out of memory computing the weights of bursts");
    struct loaded *l = &s->loaded;
    double rest_ns;
    int code = load_all(p, name, line_bytes, separate, l, &s->curve, err);
    if (code == 0 && s->curve.bursts == 0 && l->parts == 0)
        code = loaded_nothing(p, name, err);
    if (code == 0)
        code = loaded_weigh(p, l, 0, &s->curve, &rest_ns, err);
    if (code == 0 && s->curve.bursts > 0)
        code = curve_watched_find_distances(l->bursts, s->curve.bursts, &s->distances, err);
    if (code == 0 && !(s->weights = calloc(s->curve.bursts + 1, sizeof *s->weights)))
        code = error_set(err, -ENOMEM, "out of memory computing the weights of bursts");
    if (code != 0) {
        analysis_sample_free(s);
        return code;
    }
    for (size_t i = 0; i < s->curve.bursts; i++)
        s->weights[i] = l->bursts[i].weight;
    *sample = s;
    return 0;
}

void analysis_sample_free(struct analysis_sample *s)
{
    if (!s)
        return;
    loaded_clear(&s->loaded);
    free(s->weights);
    free(s->distances);
    free(s);
}

/* Leaves weights only to the bursts of the phase. */
static int weigh_phase(struct profile *p, struct analysis_sample *s, struct analysis_weights *weights,
                       struct error *err)
{
    struct analysis_curve curve = s->curve;
    int code = loaded_phase(p, weights->phase, &s->loaded, &curve, &weights->phase_exact, err);
    weights->phase_bursts = code > 0 ? (size_t)code : 0;
    return code < 0 ? code : 0;
}

/* Leaves weights only to the bursts of the selected threads and processes. */
static void weigh_selected(struct analysis_sample *s, const struct analysis_selection *selection)
{
    const struct loaded *l = &s->loaded;
    for (size_t i = 0, burst = 0; i < l->nlist; i++) {
        if (l->list[i].references == 0)
            continue;
        if (!analysis_selection_has(selection, l->list[i].process, l->list[i].tid))
            l->bursts[burst].weight = 0;
        burst++;
    }
}

/* The weights of the whole run. */
static void weigh_all(struct analysis_sample *s)
{
    for (size_t i = 0; i < s->curve.bursts; i++)
        s->loaded.bursts[i].weight = s->weights[i];
}

/* See struct analysis_weights; of the first n bursts. */
static double part_above(const struct loaded *l, size_t n, int firsts, double lines)
{
    uint32_t bin = octaves_bin_of(lines);
    const double at[] = {octaves_start(bin), lines, octaves_start(bin + 1)};
    double sum[3] = {0}, reached[3];
    for (size_t i = 0; i < n; i++) {
        const struct curve_burst *b = &l->bursts[i];
        if (!(b->weight > 0) || b->references == 0)
            continue;
        packed_hist_at_least_each(firsts ? &b->first : &b->stack, at, 3, reached);
        for (size_t k = 0; k < 3; k++)
            sum[k] += b->weight / (double)b->references * reached[k];
    }
    return sum[0] > sum[2] ? (sum[1] - sum[2]) / (sum[0] - sum[2]) : NAN;
}

int analysis_burst_weights(struct profile *p, struct analysis_sample *s,
                           const struct analysis_selection *selection, struct analysis_weights *weights,
                           struct error *err)
{
    struct loaded *l = &s->loaded;
    int code = 0;
    weights->list = NULL;
    weights->missed = NULL;
    weights->n = weights->nmissed = 0;
    weights->phase_exact = 0;
    weights->exact = l->parts > 0;
    weights->exact_left = l->left_share;
    weights->far = (struct curve_far){NAN, 0, 1};
    weigh_all(s);
    if (weights->phase && s->curve.bursts > 0)
        code = weigh_phase(p, s, weights, err);
    weigh_selected(s, selection);
    int of_part = weights->phase || weights->of_a_part;
    weights->strings = loaded_unseen_strings(l, 0, of_part, &s->curve);
    if (weights->phase) { /* as the curve of a phase, which has no such touches either */
        weights->strings.unlisted /= 1 - weights->strings.share;
        weights->strings.share = 0;
    }
    double lines = floor(weights->size_bytes / s->curve.line_bytes);
    size_t parts = weights->phase || selection->tid ? 0 : l->parts;
    weights->reuses_above = part_above(l, s->curve.bursts + parts, 0, lines);
    weights->firsts_above = part_above(l, s->curve.bursts, 1, lines);
    if (code == 0 && s->curve.bursts > 0)
        code = take_missed(s, weights, err);
    if (code == 0 && !(weights->list = calloc(s->curve.bursts + 1, sizeof *weights->list)))
        code = error_set(err, -ENOMEM, "out of memory computing the weights of bursts");
    for (size_t i = 0; code == 0 && i < l->nlist; i++) {
        if (l->list[i].references == 0)
            continue;
        const struct curve_burst *b = &l->bursts[weights->n];
        weights->list[weights->n++] =
            (struct analysis_weight){.burst = l->list[i].id,
                                     .process = l->list[i].process,
                                     .tid = l->list[i].tid,
                                     .weight = b->references > 0 ? b->weight / (double)b->references : 0};
    }
    if (code == 0 && weights->of_a_part && s->curve.bursts > 0 && isnan(weights->far.share))
        code = curve_unwatched_far(l->bursts, s->curve.bursts, s->curve.line_bytes, weights->size_bytes,
                                   &weights->far, err);
    if (code == 0 && (weights->phase || weights->of_a_part) && s->curve.bursts > 0 &&
        isnan(weights->far.share)) {
        weigh_all(s);
        code = curve_watched_far(l->bursts, s->curve.bursts, s->distances, s->curve.line_bytes,
                                 weights->size_bytes, &weights->far, NULL, err);
    }
    return code;
}

void analysis_weights_free(struct analysis_weights *weights)
{
    if (!weights)
        return;
    free(weights->list);
    free(weights->missed);
    free(weights);
}

int analysis_each_burst(
    struct profile *p, const char *name, unsigned line_bytes, int separate, const struct curve_point *points,
    size_t n, void (*place)(void *ctx, const struct profile_burst *burst, struct analysis_burst *placed),
    void *ctx, struct analysis_burst **bursts, size_t *nbursts, double **miss_ratio, struct error *err)
{
    struct loaded l = {0};
    struct analysis_curve curve;
    uint32_t *groups = NULL;
    double rest_ns;
    *bursts = NULL;
    *miss_ratio = NULL;
    *nbursts = 0;
    int code = load_all(p, name, line_bytes, separate, &l, &curve, err);
    if (code == 0)
        code = loaded_weigh(p, &l, 0, &curve, &rest_ns, err);
    if (code == 0) {
        groups = calloc(curve.bursts + 1, sizeof *groups);
        *bursts = calloc(curve.bursts + 1, sizeof **bursts);
        *miss_ratio = calloc(curve.bursts * n + 1, sizeof **miss_ratio);
        if (!groups || !*bursts || !*miss_ratio)
            code = error_set(err, -ENOMEM, "out of memory computing the miss ratios of bursts");
    }
    for (size_t i = 0; i < l.nlist && code == 0; i++) {
        if (l.list[i].references == 0)
            continue;
        const struct curve_time *time = &l.times[*nbursts];
        struct analysis_burst *b = &(*bursts)[*nbursts];
        double each = time->references_each > 0 ? time->references_each : 1;
        *b = (struct analysis_burst){
            .weight = l.bursts[*nbursts].weight,
            .refs_per_ns = time->refs_per_ns * each,
            .start_ns = l.list[i].start_ns,
            .start_refs = l.list[i].start_refs,
            .refs_each = each,
        };
        place(ctx, &l.list[i], b);
        groups[(*nbursts)++] = b->group;
    }
    if (code == 0 && *nbursts > 0)
        code = curve_watched_each(l.bursts, groups, *nbursts, line_bytes, DEFAULT_SEED, points, n,
                                  *miss_ratio, err);
    if (code != 0) {
        free(*bursts);
        free(*miss_ratio);
        *bursts = NULL;
        *miss_ratio = NULL;
    }
    free(groups);
    loaded_clear(&l);
    return code;
}
