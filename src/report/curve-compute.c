/* SPDX-License-Identifier: Apache-2.0 */
/* curve-compute.c - from a profile to its curve: which model gets which histograms. */
#include "report/curve-internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The bootstrap's seed where the profile names none: the same profile gives the same curve. */
#define DEFAULT_SEED 1

static int get_line_bytes(struct profile *p, unsigned *line_bytes, struct error *err)
{
    double value = 64;
    int code = profile_get_number(p, "line_bytes", &value, err);
    if (code != 0 && code != -ENOENT)
        return code;
    if (!(value >= 1 && value <= 1 << 20) || value != (unsigned)value)
        return error_set(err, -EINVAL, "the profile is damaged: its line size is %g bytes", value);
    *line_bytes = (unsigned)value;
    return 0;
}

/* First touches of the whole run. Until the run is over only the histogram of them tells their number. */
static int get_cold(struct profile *p, struct hist *scratch, uint64_t *cold, struct error *err)
{
    double value;
    int code = profile_get_number(p, "cold", &value, err);
    if (code == 0 && !(value >= 0 && value < 0x1p63))
        return error_set(err, -EINVAL, "the profile is damaged: it counts %g first touches", value);
    if (code == 0) {
        *cold = (uint64_t)value;
    } else if (code == -ENOENT && (code = profile_get_hist(p, 0, PROFILE_HIST_FIRST, scratch, err)) == 0) {
        *cold = scratch->total;
    }
    return code;
}

static int compute_full(struct profile *p, enum report_model model, struct report_curve *curve,
                        struct error *err)
{
    static const enum profile_hist kinds[] = {[REPORT_MODEL_LRU] = PROFILE_HIST_STACK,
                                              [REPORT_MODEL_RANDOM] = PROFILE_HIST_REUSE,
                                              [REPORT_MODEL_STATSTACK] = PROFILE_HIST_EXPECTED};
    uint64_t cold = 0;
    struct hist *h = malloc(sizeof *h);
    if (!h)
        return error_set(err, -ENOMEM, "out of memory computing the curve");
    int code = get_cold(p, h, &cold, err), whole = 0;
    if (code == 0)
        code = profile_get_hist(p, 0, kinds[model], h, err);
    if (code == -ENOENT && model == REPORT_MODEL_STATSTACK) {
        code = profile_get_hist(p, 0, PROFILE_HIST_REUSE, h, err); /* nobody asked while recording */
        whole = 1;
    }
    if (code == -ENOENT)
        error_set(err, code,
                  "the profile '%s' holds no distances yet: the program ended, or the recording was "
                  "killed, too early",
                  curve->profile);
    if (code == 0) {
        curve->references = h->total + cold;
        if (curve->references == 0)
            code = error_set(err, -ENODATA, "the profile '%s' holds no references", curve->profile);
        /* In a whole run every line has one last reference: as many dangle as were cold. */
        else if (model == REPORT_MODEL_RANDOM)
            code = curve_statcache(h, cold, curve->line_bytes, curve->points, curve->n, err);
        else if (whole)
            code = curve_statstack(h, cold, curve->line_bytes, curve->points, curve->n, err);
        else /* StatStack was asked window by window while recording: what is left are stack distances, too */
            code = curve_exact(h, cold, curve->line_bytes, curve->points, curve->n, err);
        /* Distances count touches of lines; a reference that spans two lines is one all the same. */
        double references;
        if (code == 0 && profile_get_number(p, "references", &references, NULL) == 0 && references > 0 &&
            references < 0x1p63)
            curve->references = (uint64_t)references;
    }
    free(h);
    return code;
}

/*
 * Add a stored histogram to one that is all zero. Only bins in use are touched: untouched pages of the
 * large zeroed array cost nothing, and most bins of most bursts are empty.
 */
static int add_hist(struct profile *p, uint64_t burst, enum profile_hist kind, struct hist *scratch,
                    struct hist *into, struct error *err)
{
    int code = profile_get_hist(p, burst, kind, scratch, err);
    if (code != 0)
        return code == -ENOENT ? 0 : code;
    for (size_t bin = 0; bin < HIST_BINS; bin++)
        if (scratch->count[bin])
            into->count[bin] = scratch->count[bin];
    into->total = scratch->total;
    return 0;
}

static int load_bursts(struct profile *p, uint32_t tid, const struct profile_burst *list, size_t n,
                       struct curve_burst *bursts, size_t *used, uint64_t *references, struct error *err)
{
    struct hist *scratch = malloc(sizeof *scratch);
    if (!scratch)
        return error_set(err, -ENOMEM, "out of memory computing the curve");
    int code = 0;
    for (size_t i = 0; code == 0 && i < n; i++) {
        if ((tid && list[i].tid != tid) || list[i].references == 0)
            continue;
        struct curve_burst *b = &bursts[(*used)++];
        struct hist *const into[] = {[PROFILE_HIST_STACK] = &b->stack,
                                     [PROFILE_HIST_REUSE] = &b->reuse,
                                     [PROFILE_HIST_FIRST] = &b->first,
                                     [PROFILE_HIST_AGE] = &b->age};
        b->references = list[i].references;
        b->weight = list[i].weight;
        *references += b->references;
        for (size_t kind = 0; code == 0 && kind < sizeof into / sizeof into[0]; kind++)
            code = add_hist(p, list[i].id, (enum profile_hist)kind, scratch, into[kind], err);
        /* One that straddles two lines touches both: the curve is of touches, of which there are more. */
        uint64_t touches = b->stack.total + b->first.total;
        if (touches > b->references)
            b->references = touches;
    }
    free(scratch);
    return code;
}

static int compute_bursts(struct profile *p, enum report_model model, uint32_t tid,
                          struct report_curve *curve, struct error *err)
{
    struct profile_burst *list = NULL;
    size_t n = 0;
    double seed = DEFAULT_SEED;
    if (model == REPORT_MODEL_STATSTACK)
        return error_set(err, -EINVAL, "the statstack model needs every reference: record with --mode full");
    int code = profile_bursts(p, &list, &n, err);
    if (code != 0)
        return code;
    if (profile_get_number(p, "seed", &seed, NULL) != 0 || !(seed >= 0 && seed < 0x1p63))
        seed = DEFAULT_SEED;
    struct curve_burst *bursts = calloc(n ? n : 1, sizeof *bursts);
    if (!bursts)
        code = error_set(err, -ENOMEM, "out of memory computing the curve");
    else
        code = load_bursts(p, tid, list, n, bursts, &curve->bursts, &curve->references, err);
    if (code == 0 && curve->bursts == 0 && tid && n)
        code = error_set(err, -ENODATA, "the profile '%s' holds no bursts of thread %u", curve->profile, tid);
    else if (code == 0 && curve->bursts == 0)
        code = error_set(err, -ENODATA,
                         "the profile '%s' holds no bursts: the program was too short to be sampled; "
                         "record with --mode full",
                         curve->profile);
    if (code == 0)
        code = model == REPORT_MODEL_LRU ? curve_bursts(bursts, curve->bursts, curve->line_bytes,
                                                        (uint64_t)seed, curve->points, curve->n, err)
                                         : curve_bursts_statcache(bursts, curve->bursts, curve->line_bytes,
                                                                  curve->points, curve->n, err);
    free(bursts);
    free(list);
    return code;
}

int report_curve_compute(struct profile *p, enum report_model model, uint32_t tid, struct report_curve *curve,
                         struct error *err)
{
    static const char *const names[] = {"lru", "random", "statstack"};
    char mode[16] = "";
    int code = profile_get(p, "mode", mode, sizeof mode, err);
    if (code != 0 && code != -ENOENT)
        return code;
    if ((code = get_line_bytes(p, &curve->line_bytes, err)) != 0)
        return code;
    curve->full = strcmp(mode, "full") == 0;
    curve->model = names[model];
    curve->references = 0;
    curve->bursts = 0;
    curve->windows = curve->samples = 0;
    if (curve->full && tid)
        return error_set(err, -EINVAL,
                         "a profile of --mode full does not tell threads apart: record in burst mode");
    if (strcmp(mode, "sparse") == 0) {
        if (tid)
            return error_set(err, -EINVAL, "samples of single references do not tell threads apart");
        return report_curve_sparse(p, model, curve, err);
    }
    return curve->full ? compute_full(p, model, curve, err) : compute_bursts(p, model, tid, curve, err);
}
