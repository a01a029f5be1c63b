/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The LRU curve from bursts with watched lines (docs/methods.md, section 6).
 *
 * Problem. A burst of W references gives the exact stack distances of the reuses inside it. Of the D lines
 * that it touched (its survivors), K random ones were watched until touched again.
 *
 * Method. Every reference of a burst is an origin; for a cache of L lines it is one of
 *
 *  - a reuse inside the burst: its distance is exact;
 *  - a survivor at depth p >= L at the burst's end: a sure miss. Depths are 0 .. D - 1, once each, so there
 *    are D - L of those (none if D <= L);
 *  - a survivor at a smaller depth: a miss if its distance x (path.c) is L or more. The share of these comes
 *    from the watched lines with p < L of all bursts, each representing D / K survivors, by Kaplan-Meier:
 *    lines whose observation ended are censored at the depth reached; lines never touched again are
 *    infinitely far.
 *
 * The three, weighted by the bursts' weights, add up to the miss ratio. Noise: the bursts are drawn again,
 * with replacement, and the standard deviation of the result is taken. If all of a few watched lines had the
 * same outcome, every resample has it too; therefore the interval also contains the result at both ends of
 * Wilson's interval for the share that reaches L. Its n counts bursts, not lines, since lines of one burst
 * tend to have the same outcome.
 *
 * Example: one burst, a b a c, W = 4: one reuse of distance 1; survivors c a b at depths 0 1 2. At L = 1: the
 * reuse misses, a and b are sure misses, c misses if its x >= 1. If only c was watched and never reused: 4/4.
 */
#include "model/watched.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "model/watched-internal.h"

/* A watched line of the bursts that are in the sample now. */
struct drawn {
    double position, distance, weight;
    double reused; /* weight; 0 if it is censored */
    uint32_t burst;
    uint8_t censored;
    uint8_t followed; /* not censored at the burst's end */
};

struct work {
    struct watched_seen *seen; /* of watched_list */
    size_t nseen;
    struct drawn *drawn; /* those of them that `times` has, weighted by it; draw_lines */
    size_t ndrawn;
    size_t nbursts;
    double *share;   /* of each burst: weight of one reference */
    double *total;   /* of each burst: weight of all its references */
    double *inside;  /* [point * nbursts + burst]: weight of misses inside the burst */
    double *deep;    /* likewise: of survivors at depths of L and more */
    double *shallow; /* likewise: of survivors at smaller depths */
    const struct curve_burst *bursts;
    struct model_size *sizes; /* of the points, ascending */
    double *lines, *reached;  /* [n]: theirs; scratch */
    int *undecided;           /* [n]: the point has bounds only */
    int *censored;            /* [n]: half of the survivors of unknown outcome count as misses */
    double *times;            /* how often each burst is in the sample; draw_lines after each change */
    double *followed;         /* scratch: of each watch */
    double *decided;          /* scratch, of each burst: weight of its lines with a known outcome */
};

static void work_free(struct work *w)
{
    if (!w)
        return;
    free(w->seen);
    free(w->drawn);
    free(w->share);
    free(w->total);
    free(w->inside);
    free(w->deep);
    free(w->shallow);
    free(w->sizes);
    free(w->lines);
    free(w->reached);
    free(w->undecided);
    free(w->censored);
    free(w->times);
    free(w->followed);
    free(w->decided);
    free(w);
}

static struct work *work_new(const struct curve_burst *bursts, size_t nbursts, size_t n)
{
    struct work *w = calloc(1, sizeof *w);
    size_t watches = 0;

    if (!w)
        return NULL;
    for (size_t b = 0; b < nbursts; b++)
        watches += bursts[b].nwatches;
    w->bursts = bursts;
    w->nbursts = nbursts;
    w->seen = calloc(watches + 1, sizeof *w->seen);
    w->drawn = calloc(watches + 1, sizeof *w->drawn);
    w->share = calloc(nbursts + 1, sizeof *w->share);
    w->total = calloc(nbursts + 1, sizeof *w->total);
    w->inside = calloc(nbursts * n + 1, sizeof *w->inside);
    w->deep = calloc(nbursts * n + 1, sizeof *w->deep);
    w->shallow = calloc(nbursts * n + 1, sizeof *w->shallow);
    w->sizes = calloc(n + 1, sizeof *w->sizes);
    w->lines = calloc(n + 1, sizeof *w->lines);
    w->reached = calloc(n + 1, sizeof *w->reached);
    w->undecided = calloc(n + 1, sizeof *w->undecided);
    w->censored = calloc(n + 1, sizeof *w->censored);
    w->times = calloc(nbursts + 1, sizeof *w->times);
    w->followed = calloc(watches + 1, sizeof *w->followed);
    w->decided = calloc(nbursts + 1, sizeof *w->decided);
    if (w->seen && w->drawn && w->share && w->total && w->inside && w->deep && w->shallow && w->sizes &&
        w->lines && w->reached && w->undecided && w->censored && w->times && w->followed && w->decided)
        return w;
    work_free(w);
    return NULL;
}

/* Everything that depends on single bursts only. */
static void add_bursts(struct work *w, const struct curve_burst *bursts, unsigned line_bytes,
                       const struct curve_point *points, size_t n)
{
    model_rising_sizes(points, n, line_bytes, w->sizes, w->lines);
    for (size_t b = 0; b < w->nbursts; b++) {
        const struct curve_burst *burst = &bursts[b];
        double share = watched_share(&bursts[b]), survivors = (double)burst->first.total;
        w->share[b] = share;
        w->total[b] = share * (double)burst->references;
        if (share > 0)
            packed_hist_at_least_each(&burst->stack, w->lines, n, w->reached);
        for (size_t i = 0; i < n && share > 0; i++) {
            double lines = w->lines[i];
            size_t at = w->sizes[i].point * w->nbursts + b;
            w->inside[at] = share * w->reached[i];
            w->deep[at] = share * fmax(0, survivors - lines);
            w->shallow[at] = share * fmin(survivors, lines);
        }
    }
}

struct estimate {
    double far;       /* share of the survivors of smaller depth than `lines` that reach it */
    int all_censored; /* nearly all lines that reached the largest observed distance were censored there */
    size_t followed;  /* watched lines in it, less those censored at the burst's end */
};

/* Half of the references whose outcome was not observed are counted as misses, and the interval contains that
 * all or none are. If they are more than this share of all references, the interval is the answer. */
#define CENSORED_MOST 0.01

/* Kaplan-Meier assumes that lines which were censored would have gone on like those still at risk. Where the
 * latter come from fewer bursts than this, and most of the others were censored, they are of other code,
 * perhaps, and decide nothing. */
#define FEW_BURSTS 5u

/* Prepares what estimate_far goes through many times, once for each size. */
static void draw_lines(struct work *w)
{
    w->ndrawn = 0;
    for (size_t i = 0; i < w->nseen; i++) {
        const struct watched_seen *seen = &w->seen[i];
        double times = w->times[seen->burst], weight = seen->weight * times;
        w->drawn[w->ndrawn] = (struct drawn){
            .position = seen->position,
            .distance = seen->distance,
            .weight = weight,
            .reused = seen->censored ? 0 : weight,
            .burst = seen->burst,
            .censored = seen->censored != 0,
            .followed = !seen->censored || seen->distance > seen->position,
        };
        w->ndrawn += times != 0;
    }
}

/* The first of the drawn lines from which on those of depth below `lines` are of fewer than FEW_BURSTS
 * bursts. */
static size_t few_left(const struct work *w, double lines)
{
    uint32_t found[FEW_BURSTS];
    unsigned n = 0;
    size_t first = w->ndrawn;
    for (; first > 0; first--) {
        const struct drawn *drawn = &w->drawn[first - 1];
        if (drawn->position >= lines)
            continue;
        unsigned k = 0;
        while (k < n && found[k] != drawn->burst)
            k++;
        if (k == FEW_BURSTS - 1)
            break;
        found[k] = drawn->burst;
        n += k == n;
    }
    return first;
}

/* The last of the first n drawn lines whose depth is below `lines`; n: there is none. */
static size_t last_drawn(const struct work *w, size_t n, double lines)
{
    for (size_t i = n; i > 0; i--)
        if (w->drawn[i - 1].position < lines)
            return i - 1;
    return n;
}

/* Kaplan-Meier over the watched lines of depth below `lines`, at `lines`. */
static struct estimate estimate_far(struct work *w, double lines)
{
    struct estimate result = {.far = 1};
    double risk = 0;

    /* No branches that depend on depths, which are in no order: most of a curve's time is spent here. */
    for (size_t i = 0; i < w->ndrawn; i++) {
        int counts = w->drawn[i].position < lines;
        risk += w->drawn[i].weight * counts;
        result.followed += (size_t)(counts & w->drawn[i].followed);
    }
    double all = risk, least = 1e-9 * risk; /* below it, the weight at risk is a rounding error */
    size_t few = few_left(w, lines), i = 0;
    for (; i < few && w->drawn[i].distance < lines; i++) {
        const struct drawn *drawn = &w->drawn[i];
        int counts = drawn->position < lines;
        double reused = drawn->reused * counts;
        if (risk > reused && risk > least)
            result.far *= 1 - reused / risk;
        else if (counts && !drawn->censored)
            result.far = 0;
        risk -= drawn->weight * counts;
    }
    size_t before = last_drawn(w, i, lines);
    double done = before < i ? w->drawn[before].distance : -1;
    for (; i < w->ndrawn && w->drawn[i].distance < lines; i++) {
        const struct drawn *drawn = &w->drawn[i];
        if (drawn->position >= lines)
            continue;
        int is_next = !drawn->censored && drawn->distance > done;
        if (is_next && 2 * risk < result.far * all)
            break;
        done = drawn->distance;
        if (!drawn->censored)
            result.far *= risk > drawn->weight && risk > least ? 1 - drawn->weight / risk : 0;
        risk -= drawn->weight;
    }
    /* No line is observed any further, and the last one was censored, not reused. */
    size_t last = last_drawn(w, w->ndrawn, lines);
    result.all_censored = last < i && w->drawn[last].censored && result.far > 0;
    if (i >= few && 2 * risk < result.far * all)
        result.all_censored = 1;
    return result;
}

/* Effective number of bursts that decide whether survivors of depth below `lines` reach it. */
static double deciding_bursts(struct work *w, double lines)
{
    memset(w->decided, 0, w->nbursts * sizeof *w->decided);
    for (size_t i = 0; i < w->nseen; i++) {
        const struct watched_seen *seen = &w->seen[i];
        if (seen->position < lines && (!seen->censored || seen->distance >= lines))
            w->decided[seen->burst] += seen->weight;
    }
    return watched_effective(w->decided, w->nbursts);
}

struct point_estimate {
    double miss_ratio;
    double low, high; /* from Wilson's interval, if with_interval */
    double hits;      /* likewise: share of all references that are survivors and hit, at least */
    int undecided;    /* too much depends on unobserved outcomes */
    int censored;     /* something does */
    size_t followed;
};

/* Point number i from the bursts, each counted w->times times. */
static struct point_estimate estimate_point(struct work *w, size_t i, double lines, int with_interval)
{
    double total = 0, inside = 0, deep = 0, shallow = 0;

    for (size_t b = 0; b < w->nbursts; b++) {
        double times = w->times[b];
        total += times * w->total[b];
        inside += times * w->inside[i * w->nbursts + b];
        deep += times * w->deep[i * w->nbursts + b];
        shallow += times * w->shallow[i * w->nbursts + b];
    }
    struct estimate e = estimate_far(w, lines);
    double far = e.far * (e.all_censored ? 0.5 : 1), certain = inside + deep;
    struct point_estimate result = {
        .miss_ratio = fmin(1, (certain + shallow * far) / total),
        .undecided = e.all_censored && shallow * e.far > CENSORED_MOST * total,
        .censored = e.all_censored,
        .followed = e.followed,
    };
    if (with_interval) { /* the share that reaches `lines` is at most that which reached a smaller distance */
        double low, high;
        watched_wilson(e.far, deciding_bursts(w, lines), &low, &high);
        result.hits = shallow * (1 - high) / total;
        result.low = fmin(1, (certain + (e.all_censored ? 0 : shallow * low)) / total);
        result.high = fmin(1, (certain + shallow * high) / total);
    }
    return result;
}

/* Intervals that contain the low..high given on entry. Points whose miss_ratio is NaN are not changed. */
static int find_bands(struct work *w, unsigned line_bytes, uint64_t seed, struct curve_point *points,
                      size_t n)
{
    double *sum = calloc(3 * n + 1, sizeof *sum), few = watched_few(w->bursts, w->nbursts);
    struct random_state random;

    if (!sum)
        return -ENOMEM;
    random_seed(&random, seed);
    for (unsigned r = 0; r < watched_resamples(w->nbursts); r++) {
        watched_draw(&random, w->bursts, w->share, w->nbursts, w->times);
        draw_lines(w);
        for (size_t i = 0; i < n; i++) {
            if (isnan(points[i].miss_ratio))
                continue;
            double value = estimate_point(w, i, model_lines(&points[i], line_bytes), 0).miss_ratio;
            if (isnan(value))
                continue;
            /* Differences from the estimate, to avoid cancellation in the variance. */
            double difference = value - points[i].miss_ratio;
            sum[3 * i]++;
            sum[3 * i + 1] += difference;
            sum[3 * i + 2] += difference * difference;
        }
    }
    for (size_t i = 0; i < n; i++) {
        if (isnan(points[i].miss_ratio))
            continue;
        double count = fmax(1, sum[3 * i]), mean = sum[3 * i + 1] / count;
        struct curve_point allowed = points[i];
        double ratio = points[i].miss_ratio, sd = few * sqrt(fmax(0, sum[3 * i + 2] / count - mean * mean));
        watched_band(&points[i], sd);
        if (w->censored[i] && ratio > 0) { /* that all or none of them miss varies like the estimate */
            allowed.low = fmax(0, allowed.low * (1 - 2 * sd / ratio));
            allowed.high = fmin(1, allowed.high * (1 + 2 * sd / ratio));
        }
        points[i].low = fmin(points[i].low, allowed.low);
        points[i].high = fmax(points[i].high, allowed.high);
    }
    free(sum);
    return 0;
}

static int estimate_all(struct work *w, unsigned line_bytes, uint64_t seed, struct curve_point *points,
                        size_t n)
{
    for (size_t b = 0; b < w->nbursts; b++)
        w->times[b] = 1;
    draw_lines(w);
    for (size_t i = 0; i < n; i++) {
        struct point_estimate e = estimate_point(w, i, model_lines(&points[i], line_bytes), 1);
        /* Too few watched lines: the bounds of curve_bursts are kept. Its upper one has all survivors miss;
         * those that are known to hit are taken off. */
        if (e.followed < WATCHED_MIN) {
            points[i].high = fmax(points[i].low, points[i].high - e.hits);
            if (points[i].miss_ratio > points[i].high) /* not if there is none */
                points[i].miss_ratio = points[i].high;
            continue;
        }
        points[i] = (struct curve_point){points[i].size_bytes, e.miss_ratio, e.low, e.high};
        w->undecided[i] = e.undecided;
        w->censored[i] = e.censored;
    }
    int code = find_bands(w, line_bytes, seed, points, n);
    for (size_t i = 0; i < n; i++)
        if (w->undecided[i])
            points[i].miss_ratio = NAN;
    return code;
}

int curve_watched(const struct curve_burst *bursts, size_t nbursts, unsigned line_bytes, uint64_t seed,
                  struct curve_point *points, size_t n, struct error *err)
{
    int code = model_check_points(points, n, line_bytes, err);
    int followed = 0;

    if (code == 0)
        code = watched_check(bursts, nbursts, &followed, err);
    if (code < 0)
        return code;
    code = curve_bursts(bursts, nbursts, line_bytes, seed, points, n, err);
    if (code < 0 || !followed)
        return code;

    struct work *w = work_new(bursts, nbursts, n);
    code = -ENOMEM;
    if (w) {
        add_bursts(w, bursts, line_bytes, points, n);
        code = watched_distances(bursts, nbursts, w->followed, err);
    }
    if (w && code == 0) {
        w->nseen = watched_list(bursts, nbursts, w->followed, w->seen);
        code = estimate_all(w, line_bytes, seed, points, n);
    }
    work_free(w);
    return code < 0 ? error_set(err, code, "out of memory for the curve of %zu watched bursts", nbursts) : 0;
}

/* What each watched line contributes to Kaplan-Meier's estimate of the share that reaches `lines`: the step
 * that it makes there. */
static void find_missed(const struct work *w, double lines, double *missed)
{
    double risk = 0, left = 1;
    for (size_t i = 0; i < w->nseen; i++)
        risk += w->seen[i].position < lines ? w->seen[i].weight : 0;
    double least = 1e-9 * risk;
    for (size_t i = 0; i < w->nseen; i++) {
        const struct watched_seen *seen = &w->seen[i];
        if (seen->position >= lines)
            continue;
        if (!seen->censored) {
            double step = risk > least ? left * fmin(1, seen->weight / risk) : left;
            missed[seen->number] = seen->distance >= lines ? step : 0;
            left -= step;
        }
        risk -= seen->weight;
    }
}

int curve_watched_find_distances(const struct curve_burst *bursts, size_t nbursts, double **distances,
                                 struct error *err)
{
    int followed = 0, code = watched_check(bursts, nbursts, &followed, err);
    size_t watches = 0;

    *distances = NULL;
    if (code < 0 || !followed)
        return code;
    for (size_t b = 0; b < nbursts; b++)
        watches += bursts[b].nwatches;
    if (!(*distances = calloc(watches + 1, sizeof **distances)))
        return error_set(err, -ENOMEM, "out of memory for the curve of %zu watched bursts", nbursts);
    code = watched_distances(bursts, nbursts, *distances, err);
    if (code < 0) {
        free(*distances);
        *distances = NULL;
    }
    return code;
}

int curve_watched_far(const struct curve_burst *bursts, size_t nbursts, const double *distances,
                      unsigned line_bytes, double size_bytes, struct curve_far *far, double *missed,
                      struct error *err)
{
    const struct curve_point point = {.size_bytes = size_bytes};
    int code = model_check_points(&point, 1, line_bytes, err);

    *far = (struct curve_far){NAN, 0, 1};
    if (code < 0 || !distances)
        return code;
    struct work *w = work_new(bursts, nbursts, 1);
    if (!w)
        return error_set(err, -ENOMEM, "out of memory for the curve of %zu watched bursts", nbursts);
    add_bursts(w, bursts, line_bytes, &point, 1);
    double lines = model_lines(&point, line_bytes);
    w->nseen = watched_list(bursts, nbursts, distances, w->seen);
    for (size_t b = 0; b < nbursts; b++)
        w->times[b] = 1;
    draw_lines(w);
    struct estimate e = estimate_far(w, lines);
    if (e.followed >= WATCHED_MIN) {
        watched_wilson(e.far, deciding_bursts(w, lines), &far->low, &far->high);
        far->share = e.far * (e.all_censored ? 0.5 : 1);
    }
    if (missed)
        find_missed(w, lines, missed);
    work_free(w);
    return 0;
}

/* The share of survivors of smaller depth that misses, of the bursts of a group (UINT32_MAX: of all). NaN:
 * too much depends on unobserved outcomes; -1: there are too few watched lines. */
static double far_of_group(struct work *w, const uint32_t *group, uint32_t which, size_t i, double lines)
{
    for (size_t b = 0; b < w->nbursts; b++)
        w->times[b] = which == UINT32_MAX || group[b] == which;
    draw_lines(w);
    struct estimate e = estimate_far(w, lines);
    struct point_estimate point = estimate_point(w, i, lines, 0);
    if (e.followed < WATCHED_MIN)
        return -1;
    return point.undecided ? NAN : e.far * (e.all_censored ? 0.5 : 1);
}

/* That share of all bursts, from a miss ratio of theirs that was found without watched lines; NaN: there is
 * none. */
static double far_without_watches(const struct work *w, const struct curve_point *points, size_t i)
{
    double total = 0, certain = 0, shallow = 0;
    for (size_t b = 0; b < w->nbursts; b++) {
        total += w->total[b];
        certain += w->inside[i * w->nbursts + b] + w->deep[i * w->nbursts + b];
        shallow += w->shallow[i * w->nbursts + b];
    }
    if (isnan(points[i].miss_ratio))
        return NAN;
    return shallow > 0 ? fmin(1, fmax(0, (points[i].miss_ratio * total - certain) / shallow)) : 0;
}

int curve_unwatched_far(const struct curve_burst *bursts, size_t nbursts, unsigned line_bytes,
                        double size_bytes, struct curve_far *far, struct error *err)
{
    struct curve_point point = {.size_bytes = size_bytes};
    int code = curve_bursts(bursts, nbursts, line_bytes, 1, &point, 1, err);
    if (code < 0)
        return code;
    struct work *w = work_new(bursts, nbursts, 1);
    if (!w)
        return error_set(err, -ENOMEM, "out of memory for the curve of %zu bursts", nbursts);
    add_bursts(w, bursts, line_bytes, &point, 1);
    *far = (struct curve_far){far_without_watches(w, &point, 0), 0, 1};
    work_free(w);
    return 0;
}

/* Point i of all bursts; fallback: the share for groups with too few watched lines. */
static void estimate_each(struct work *w, const uint32_t *group, size_t i, size_t n, double lines,
                          double fallback, double *miss_ratio)
{
    uint32_t found = 0; /* groups are numbered from 0 on, in most cases: each is looked up once */
    for (size_t b = 0; b < w->nbursts; b++)
        found = group[b] > found ? group[b] : found;
    for (uint32_t which = 0; which <= found; which++) {
        double far = -1;
        for (size_t b = 0; b < w->nbursts; b++) {
            size_t at = i * w->nbursts + b;
            if (group[b] != which)
                continue;
            if (far < 0 && (far = far_of_group(w, group, which, i, lines)) < 0)
                far = fallback;
            double of_far = w->shallow[at] > 0 ? w->shallow[at] * far : 0;
            miss_ratio[b * n + i] = w->total[b] > 0 && !isnan(of_far)
                                        ? fmin(1, (w->inside[at] + w->deep[at] + of_far) / w->total[b])
                                        : NAN;
        }
    }
}

int curve_watched_each(const struct curve_burst *bursts, const uint32_t *group, size_t nbursts,
                       unsigned line_bytes, uint64_t seed, const struct curve_point *points, size_t n,
                       double *miss_ratio, struct error *err)
{
    int code = model_check_points(points, n, line_bytes, err), followed = 0;
    if (code == 0)
        code = watched_check(bursts, nbursts, &followed, err);
    if (code < 0)
        return code;
    struct work *w = work_new(bursts, nbursts, n);
    struct curve_point *all = calloc(n + 1, sizeof *all);
    code = w && all ? 0 : -ENOMEM;
    if (code == 0) {
        memcpy(all, points, n * sizeof *all);
        add_bursts(w, bursts, line_bytes, points, n);
        code = curve_bursts(bursts, nbursts, line_bytes, seed, all, n, err);
    }
    if (code == 0 && followed)
        code = watched_distances(bursts, nbursts, w->followed, err);
    if (code == 0 && followed)
        w->nseen = watched_list(bursts, nbursts, w->followed, w->seen);
    for (size_t i = 0; i < n && code == 0; i++) {
        double lines = model_lines(&points[i], line_bytes),
               fallback = far_of_group(w, group, UINT32_MAX, i, lines);
        if (fallback < 0)
            fallback = far_without_watches(w, all, i);
        estimate_each(w, group, i, n, lines, fallback, miss_ratio);
    }
    work_free(w);
    free(all);
    return code < 0 ? error_set(err, code, "out of memory for the curves of %zu bursts", nbursts) : 0;
}
