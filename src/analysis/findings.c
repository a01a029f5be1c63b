/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/findings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base-name.h"
#include "base/fit-text.h"
#include "analysis/forked.h"
#include "analysis/hotspots-lines.h"
#include "analysis/hotspots.h"
#include "analysis/recorded.h"

/* As large as first-level caches, and private second-level ones. */
static const double sizes[FINDINGS_MOST] = {32 << 10, 1 << 20};
/* Least part of the misses, at the lower end of its interval, and least miss ratio that are reported. */
#define LEAST_SHARE 0.25
#define LEAST_RATIO 0.001
/* Part of the function's misses that one line, or one data object, must have to be named. */
#define MOST_OF_IT 0.5
/* Two objects are named if both together have this part of the function's misses, and the second one so many
 * times those of the first. */
#define BOTH_OF_IT 0.9
#define NEARLY_AS_MANY 0.8
/* Likewise of several inlined functions, each. */
#define LEAST_PART 0.25
/* Walks over structures fetch lines that are a few lines apart, if each has so many at most. */
#define FAR_LINES 16
/* Lines of which less than this part is used are worth a better layout. */
#define WELL_USED 0.5
/* Larger caches, each so many times as large as the one before, are tried until less than LEFT of the misses
 * remain. */
#define NEXT_SIZE 2
#define LARGEST_SIZE (256u << 20)
#define LEFT 0.1
/* A cache keeps the misses if this part of them is left, and of all misses, at the lower end of the interval,
 * most. Such sizes are reported if they are so many times as large. */
#define KEPT 0.9
#define FAR_LARGER 4

static int is_of(const struct analysis_hotspot *row, const struct analysis_finding *f)
{
    return !row->rest && row->outer && strcmp(row->outer->function, f->function) == 0 &&
           strcmp(row->image->path, f->module) == 0 && (!row->source || strcmp(row->source, f->source) == 0);
}

static void copy(char *to, size_t size, const char *from)
{
    fit_text(to, size, "", from);
}

/* Functions of these libraries are called from everywhere: the calling function of the program says more. */
static int is_common_library(const struct profile_image *image)
{
    static const char *const names[] = {"libc.so",     "libm.so",  "libstdc++.so", "libc++.so",
                                        "libgcc_s.so", "ld-linux", "libgomp.so",   "libomp.so"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (image && strncmp(base_name(image->path), names[i], strlen(names[i])) == 0)
            return 1;
    return 0;
}

static int find_function(const struct analysis_hotspots *h, struct analysis_finding *f)
{
    const struct analysis_hotspot *row = h->n > 0 ? &h->rows[0] : NULL;
    f->miss_ratio = h->total.miss_ratio;
    if (!row || row->rest || !row->outer || !*row->outer->function || !row->shares.enough ||
        row->shares.share_low < LEAST_SHARE || !(h->total.miss_ratio >= LEAST_RATIO) ||
        !(h->total.ratio_low > 0) || strlen(row->outer->function) >= sizeof f->function ||
        strlen(row->image->path) >= sizeof f->module ||
        (row->source && strlen(row->source) >= sizeof f->source))
        return 0;
    f->share = row->shares.misses_share;
    f->low = row->shares.share_low;
    f->high = row->shares.share_high;
    copy(f->function, sizeof f->function, row->outer->function);
    copy(f->module, sizeof f->module, row->image->path);
    copy(f->source, sizeof f->source, row->source ? row->source : "");
    f->common = is_common_library(row->image);
    return 1;
}

/* The program's frame that the call is in; NULL: it is not known, or in a common library (of a function that
 * qsort calls, what has called qsort is wanted), or one of an installed header, or the function itself, or no
 * function. */
static const struct profile_frame *caller_of(const struct analysis_hotspots *h,
                                             const struct analysis_call *call,
                                             const struct analysis_finding *f)
{
    const struct profile_frame *frame =
        is_common_library(call->image) ? NULL : analysis_own_frame(h, call->frame);
    return frame && *frame->function && strcmp(frame->function, f->function) != 0 &&
                   strcmp(frame->function, "_start") != 0 && (!*frame->file || analysis_is_own(frame))
               ? frame
               : NULL;
}

static int is_same_place(const struct profile_frame *a, const struct profile_frame *b)
{
    return a && b && a->line == b->line && strcmp(a->function, b->function) == 0 &&
           strcmp(a->file, b->file) == 0;
}

/* Goes through the innermost callers of all call paths. Returns the one that a majority vote is for, and in
 * *share what `of` has. */
static const struct profile_frame *vote(const struct analysis_hotspots *h, const struct analysis_finding *f,
                                        const struct profile_frame *of, double *share)
{
    const struct analysis_hotspot *row = &h->rows[0];
    const struct profile_frame *most = NULL;
    double lead = 0;
    *share = 0;
    for (size_t i = row->call; i < row->call + row->ncalls; i++) {
        const struct analysis_call *call = &h->calls[i];
        const struct profile_frame *frame = caller_of(h, call, f);
        if (!frame)
            continue;
        lead += (is_same_place(frame, most) ? 1 : -1) * call->share;
        if (lead < 0) {
            lead = -lead;
            most = frame;
        }
        *share += is_same_place(frame, of) ? call->share : 0;
        while (i + 1 < row->call + row->ncalls && h->calls[i + 1].depth > call->depth)
            i++; /* its callers */
    }
    return most;
}

/* The caller with most of the function's misses. */
static void find_caller(const struct analysis_hotspots *h, struct analysis_finding *f)
{
    double share;
    const struct profile_frame *frame = vote(h, f, NULL, &share);
    vote(h, f, frame, &share);
    if (!frame || share < MOST_OF_IT)
        return;
    copy(f->caller, sizeof f->caller, frame->function);
    copy(f->caller_file, sizeof f->caller_file, frame->file);
    f->caller_line = frame->line;
    f->caller_share = fmin(1, share);
}

/* The function's row with most of its misses, if that is most of them all; NULL: there is none. */
static const struct analysis_hotspot *find_main_row(const struct analysis_hotspots *h,
                                                    const struct analysis_finding *f)
{
    size_t i = 0;
    while (i < h->n && !is_of(&h->rows[i], f))
        i++;
    return i < h->n && h->rows[i].shares.misses_share >= MOST_OF_IT * f->share ? &h->rows[i] : NULL;
}

static int is_same_line(const struct profile_frame *a, const struct profile_frame *b)
{
    return a && b && a->line == b->line && strcmp(a->file, b->file) == 0;
}

static int is_same_function(const struct profile_frame *a, const struct profile_frame *b)
{
    return a && b && strcmp(a->function, b->function) == 0 && strcmp(a->file, b->file) == 0;
}

static void set_inlined(const struct analysis_hotspots *h, const struct profile_frame *inlined,
                        struct analysis_finding *f)
{
    double share = 0;
    if (!analysis_is_own(inlined) || !*inlined->function || strcmp(inlined->function, f->function) == 0)
        return;
    for (size_t i = 0; i < h->n; i++)
        if (is_of(&h->rows[i], f) && is_same_function(analysis_own_frame(h, h->rows[i].frame), inlined))
            share += h->rows[i].shares.misses_share;
    if (share < MOST_OF_IT * f->share)
        return;
    copy(f->inlined, sizeof f->inlined, inlined->function);
    f->inlined_share = fmin(1, share / f->share);
}

struct part {
    const struct profile_frame *frame;
    double share;
    int enough;
};

static int compare_parts(const void *a, const void *b)
{
    const struct part *x = a, *y = b;
    return x->share < y->share ? 1 : x->share > y->share ? -1 : 0;
}

/* Shares of the user's functions in the function, itself included, largest first. Returns their number. */
static size_t list_parts(const struct analysis_hotspots *h, const struct analysis_finding *f,
                         struct part *parts)
{
    size_t n = 0, k;
    for (size_t i = 0; i < h->n; i++) {
        const struct profile_frame *frame = analysis_own_frame(h, h->rows[i].frame);
        if (!is_of(&h->rows[i], f) || !frame)
            continue;
        for (k = 0; k < n && !is_same_function(parts[k].frame, frame); k++)
            ;
        if (k == n)
            parts[n++] = (struct part){.frame = frame};
        parts[k].share += h->rows[i].shares.misses_share;
        parts[k].enough |= h->rows[i].shares.enough;
    }
    if (n > 0)
        qsort(parts, n, sizeof *parts, compare_parts);
    return n;
}

/* The user's function with most of the function's misses, if that is another one, inlined there; if none has
 * most, those with a large part. */
static void find_inlined(const struct analysis_hotspots *h, struct analysis_finding *f)
{
    struct part *parts = calloc(h->n + 1, sizeof *parts);
    size_t n = parts ? list_parts(h, f, parts) : 0;
    if (n > 0 && parts[0].share >= MOST_OF_IT * f->share)
        set_inlined(h, parts[0].frame, f);
    else
        for (size_t i = 0;
             i < n && f->nparts < PARTS_MOST && parts[i].enough && parts[i].share >= LEAST_PART * f->share;
             i++) {
            const struct profile_frame *frame = parts[i].frame;
            if (!analysis_is_own(frame) || !*frame->function || strcmp(frame->function, f->function) == 0)
                continue;
            copy(f->parts[f->nparts], sizeof f->parts[0], frame->function);
            f->part_shares[f->nparts++] = parts[i].share / f->share;
        }
    free(parts);
}

/* The user's line with most of the function's misses, those of library code that is inlined there included.
 * By majority vote: a row's misses count against those of other lines. */
static void find_line(const struct analysis_hotspots *h, struct analysis_finding *f)
{
    const struct profile_frame *line = NULL;
    double lead = 0, share = 0;
    int enough = 0;
    for (size_t i = 0; i < h->n; i++) {
        const struct profile_frame *frame = analysis_own_frame(h, h->rows[i].frame);
        if (!is_of(&h->rows[i], f) || !frame)
            continue;
        lead += (is_same_line(frame, line) ? 1 : -1) * h->rows[i].shares.misses_share;
        if (lead < 0) {
            lead = -lead;
            line = frame;
        }
    }
    for (size_t i = 0; i < h->n && line; i++) {
        if (!is_of(&h->rows[i], f) || !is_same_line(analysis_own_frame(h, h->rows[i].frame), line))
            continue;
        share += h->rows[i].shares.misses_share;
        enough |= h->rows[i].shares.enough;
    }
    if (!line || !*line->file || share < MOST_OF_IT * f->share || !enough)
        return;
    copy(f->file, sizeof f->file, line->file);
    f->line = line->line;
    f->line_share = fmin(1, share / f->share);
    set_inlined(h, line, f);
}

/* The two rows of the function with most of its misses; NULL: there is none. */
static void find_two_rows(const struct analysis_hotspots *h, const struct analysis_finding *f,
                          const struct analysis_hotspot *rows[2])
{
    size_t n = 0;
    rows[0] = rows[1] = NULL;
    for (size_t i = 0; i < h->n && n < 2; i++)
        if (is_of(&h->rows[i], f))
            rows[n++] = &h->rows[i];
}

static void find_object(const struct analysis_hotspots *h, struct analysis_finding *f)
{
    const struct analysis_hotspot *row = find_main_row(h, f), *rows[2];
    find_two_rows(h, f, rows);
    if (rows[1] && rows[0]->object && rows[1]->object &&
        rows[1]->shares.misses_share >= NEARLY_AS_MANY * rows[0]->shares.misses_share &&
        rows[0]->shares.misses_share + rows[1]->shares.misses_share >= BOTH_OF_IT * f->share) {
        row = rows[0];
        analysis_object_text(rows[1]->object, f->other, sizeof f->other);
        f->other_share = fmin(1, rows[1]->shares.misses_share / f->share);
    }
    if (!row)
        return;
    analysis_object_text(row->object, f->object, sizeof f->object);
    f->object_share = fmin(1, row->shares.misses_share / f->share);
}

static void find_field(const struct analysis_hotspots *h, struct analysis_finding *f)
{
    const struct analysis_hotspot *row = find_main_row(h, f);
    if (!row || !row->object || !row->field || !*row->field->name)
        return;
    copy(f->field, sizeof f->field, row->field->name);
    f->field_share = fmin(1, row->shares.misses_share / f->share);
}

static double misses_of(const struct analysis_hotspots *h, const struct analysis_finding *f)
{
    for (size_t i = 0; i < h->n; i++)
        if (is_of(&h->rows[i], f))
            return h->rows[i].shares.misses;
    return 0;
}

/* Larger caches in which the function hardly misses, or as much as before. */
static void find_gone(struct profile *p, const char *name, const char *wrappers, double misses,
                      struct analysis_finding *f)
{
    struct analysis_hotspots_question question = {
        .by = ANALYSIS_BY_FUNCTION, .wrappers = wrappers, .separate = f->separate};
    for (double size = f->size_bytes * NEXT_SIZE; size <= LARGEST_SIZE && f->gone_bytes == 0;
         size *= NEXT_SIZE) {
        struct analysis_hotspots h;
        struct error ignored;
        question.size_bytes = size;
        if (analysis_hotspots(p, name, &question, &h, &ignored) != 0)
            return;
        if (misses_of(&h, f) < LEFT * misses)
            f->gone_bytes = size;
        else if (misses_of(&h, f) > KEPT * misses && h.total.ratio_low > MOST_OF_IT * f->miss_ratio)
            f->kept_bytes = size;
        analysis_hotspots_clear(&h);
    }
}

/* Whether it is an object that is named, if one is. h: by object, too. */
static int is_on_object(const struct profile_object *object, const struct analysis_finding *f)
{
    char text[FINDINGS_NAME];
    if (!*f->object)
        return 1;
    analysis_object_text(object, text, sizeof text);
    return strcmp(text, f->object) == 0 || (*f->other && strcmp(text, f->other) == 0);
}

/* Whether a site is in the function, and in the line if one is known. */
static int has_site(const struct analysis_hotspots *h, const struct profile_site *site,
                    const struct analysis_finding *f)
{
    const struct profile_frame *frame = analysis_own_frame(h, analysis_frame_of(h, site->frame)),
                               *outer = analysis_frame_of(h, site->outer);
    const struct profile_image *image = analysis_image_of(h, site->image);
    if (!outer || !image || strcmp(outer->function, f->function) != 0 || strcmp(image->path, f->module) != 0)
        return 0;
    return !*f->file || (frame && frame->line == f->line && strcmp(frame->file, f->file) == 0);
}

/* The stride of the instruction that fetches most lines. */
static void add_stride(const struct analysis_hotspots *h, uint64_t site, struct analysis_finding *f)
{
    const struct analysis_recorded *r = h->recorded;
    f->stride = 0;
    for (size_t i = 0; i < r->nstrides; i++)
        if (r->strides[i].site == site && r->strides[i].references >= ANALYSIS_LEAST_STEPS)
            f->stride = r->strides[i].bytes;
    /* A kernel of several neighbours that goes down a column: small steps, but each line is far from the one
     * before. */
    for (size_t i = 0; i < r->nfetch_strides && fabs((double)f->stride) < h->line_bytes; i++)
        if (r->fetch_strides[i].site == site && r->fetch_strides[i].references >= ANALYSIS_LEAST_STEPS &&
            fabs((double)r->fetch_strides[i].bytes) >= FAR_LINES * h->line_bytes)
            f->stride = r->fetch_strides[i].bytes;
}

/* Whether other data than that of the site with the stride is walked in the order of memory by the same code,
 * as in a transposition: with the loops exchanged that data would have the large steps. lines: that the site
 * fetches. */
static int is_crossed(const struct analysis_hotspots *h, const struct analysis_finding *f, uint64_t object,
                      double lines)
{
    const struct analysis_recorded *r = h->recorded;
    for (size_t i = 0, at = 0, step = 0; i < r->nuses; i++) {
        const struct profile_line_use *use = &r->uses[i];
        while (at < r->nsites && r->sites[at].id < use->site)
            at++;
        while (step < r->nstrides && r->strides[step].site < use->site)
            step++;
        if (at < r->nsites && r->sites[at].id == use->site && use->object != object &&
            (double)use->lines * h->line_bytes >= lines && has_site(h, &r->sites[at], f) &&
            step < r->nstrides && r->strides[step].site == use->site &&
            r->strides[step].references >= ANALYSIS_LEAST_STEPS && r->strides[step].bytes != 0 &&
            fabs((double)r->strides[step].bytes) < h->line_bytes)
            return 1;
    }
    return 0;
}

/* How the function uses lines (of the object, if one is named): of all that it touched first, and the stride
 * of the instruction that touched most of them. h: by object, too. */
static void add_use(const struct analysis_hotspots *h, struct analysis_finding *f)
{
    const struct analysis_recorded *r = h->recorded;
    double lines = 0, known = 0, whole = 0, bytes = 0, most = 0;
    uint64_t first = 0, object = 0;
    f->used_bytes = NAN;
    for (size_t i = 0, at = 0; i < r->nuses; i++) {
        const struct profile_line_use *use = &r->uses[i];
        while (at < r->nsites && r->sites[at].id < use->site)
            at++;
        if (at == r->nsites || r->sites[at].id != use->site || !has_site(h, &r->sites[at], f) ||
            !is_on_object(analysis_object_of(h, use->object), f))
            continue;
        lines += (double)use->lines;
        known += use->whole > 0 ? (double)use->lines : 0;
        whole += (double)use->whole;
        bytes += (double)use->bytes;
        if ((double)use->lines > most) {
            most = (double)use->lines;
            first = use->site;
            object = use->object;
        }
    }
    if (analysis_is_use_known(lines, known, whole))
        f->used_bytes = bytes / known;
    add_stride(h, first, f);
    f->crossed = is_crossed(h, f, object, most);
}

/* The instruction of the function that fetches most lines of an object. */
static uint64_t site_of_object(const struct analysis_hotspots *h, const struct profile_object *object,
                               const struct analysis_finding *f)
{
    const struct analysis_recorded *r = h->recorded;
    uint64_t most = 0, site = 0;
    for (size_t i = 0, at = 0; i < r->nuses; i++) {
        const struct profile_line_use *use = &r->uses[i];
        while (at < r->nsites && r->sites[at].id < use->site)
            at++;
        if (at < r->nsites && r->sites[at].id == use->site && use->lines > most &&
            analysis_object_of(h, use->object) == object && has_site(h, &r->sites[at], f)) {
            most = use->lines;
            site = use->site;
        }
    }
    return site;
}

/* Likewise of what misses in this cache, which is larger than the one for which the use of lines is known: a
 * function that reads small numbers in random order, and large ones in the order of memory, may miss on these
 * only. h: by line and object. Nothing changes if too little is known. */
static void add_use_of_misses(const struct analysis_hotspots *h, struct analysis_finding *f)
{
    const struct analysis_hotspot *most = NULL;
    double misses = 0, known = 0, used = 0;
    for (size_t i = 0; i < h->n; i++) {
        const struct analysis_hotspot *row = &h->rows[i];
        const struct profile_frame *frame = analysis_own_frame(h, row->frame);
        if (!is_of(row, f) ||
            (*f->file && !(frame && frame->line == f->line && strcmp(frame->file, f->file) == 0)) ||
            !is_on_object(row->object, f))
            continue;
        most = most ? most : row; /* they are in this order */
        misses += row->shares.misses_share;
        if (isnan(row->used_share))
            continue;
        known += row->shares.misses_share;
        used += row->shares.misses_share * row->used_share;
    }
    if (!most || !(known >= misses / 2))
        return;
    f->used_bytes = used / known * h->line_bytes;
    add_stride(h, site_of_object(h, most->object, f), f);
}

static enum analysis_remedy remedy_of(const struct analysis_finding *f)
{
    double line = f->line_bytes;
    int streams = isnan(f->cold) && f->gone_bytes == 0 && f->kept_bytes >= FAR_LARGER * f->size_bytes;
    if (f->cold > MOST_OF_IT)
        return ANALYSIS_REMEDY_STREAM;
    if (isnan(f->used_bytes) || f->used_bytes >= WELL_USED * line)
        return streams                                ? ANALYSIS_REMEDY_STREAM
               : isnan(f->cold) && f->gone_bytes == 0 ? ANALYSIS_REMEDY_UNKNOWN
                                                      : ANALYSIS_REMEDY_BLOCK;
    return fabs((double)f->stride) >= line ? ANALYSIS_REMEDY_ORDER : ANALYSIS_REMEDY_PACK;
}

/* The functions with most of the misses; where an object is named, of those on it. */
static void add_functions(const struct analysis_hotspots *h, struct analysis_spread *s)
{
    char object[FINDINGS_NAME];
    for (size_t i = 0; i < h->n && s->n < SPREAD_MOST; i++) {
        const struct analysis_hotspot *row = &h->rows[i];
        if (*s->object) {
            analysis_object_text(row->object, object, sizeof object);
            if (strcmp(object, s->object) != 0)
                continue;
        }
        if (row->rest || !row->outer || !*row->outer->function || !row->shares.enough)
            return;
        copy(s->functions[s->n], sizeof s->functions[0], row->outer->function);
        s->shares[s->n++] = row->shares.misses_share;
    }
}

/* The data with a large part of the misses, and what has them. */
static void find_spread_object(struct profile *p, const char *name,
                               const struct analysis_hotspots_question *question, struct analysis_spread *s)
{
    struct analysis_hotspots_question by_object = *question;
    struct analysis_hotspots h;
    struct error ignored;
    by_object.by = ANALYSIS_BY_NOTHING;
    by_object.objects = 1;
    by_object.causes = by_object.calls = 0;
    if (analysis_hotspots(p, name, &by_object, &h, &ignored) != 0)
        return;
    const struct analysis_hotspot *row = h.n > 0 ? &h.rows[0] : NULL;
    if (row && row->object && row->shares.enough && row->shares.share_low >= LEAST_SHARE) {
        analysis_object_text(row->object, s->object, sizeof s->object);
        s->object_share = row->shares.misses_share;
        s->used_bytes = row->used_share * h.line_bytes;
    }
    analysis_hotspots_clear(&h);
    by_object.by = ANALYSIS_BY_FUNCTION;
    if (*s->object && analysis_hotspots(p, name, &by_object, &h, &ignored) == 0) {
        add_functions(&h, s);
        analysis_hotspots_clear(&h);
    }
}

/* No function has a large part of the misses: h has them by function. Nonzero: something can be said. */
static int find_spread(struct profile *p, const char *name, const struct analysis_hotspots *h,
                       const struct analysis_hotspots_question *question, unsigned level,
                       struct analysis_spread *s)
{
    *s = (struct analysis_spread){.size_bytes = h->size_bytes,
                                  .level = level,
                                  .separate = question->separate,
                                  .exact = h->full,
                                  .line_bytes = h->line_bytes,
                                  .used_bytes = NAN};
    if (h->n == 0 || !(h->total.ratio_high >= LEAST_RATIO))
        return 0;
    if (!(h->total.miss_ratio >= LEAST_RATIO) || !(h->total.ratio_low > 0)) {
        s->few = 1;
        return 1;
    }
    find_spread_object(p, name, question, s);
    if (!*s->object)
        add_functions(h, s);
    s->few = s->n == 0 && !*s->object;
    return 1;
}

/* Nonzero: there is one. A failure counts as none, since the rest of the report says what is wrong with the
 * profile. Where there is none, *spread is set if *spreads becomes nonzero. */
static int find(struct profile *p, const char *name, const char *wrappers, int separate, unsigned level,
                struct analysis_finding *f, struct analysis_spread *spread, int *spreads)
{
    double size_bytes = sizes[level - 1];
    struct analysis_hotspots_question question = {.size_bytes = size_bytes,
                                                  .by = ANALYSIS_BY_FUNCTION,
                                                  .wrappers = wrappers,
                                                  .separate = separate,
                                                  .causes = 1,
                                                  .calls = 1};
    struct analysis_hotspots h;
    struct error ignored;
    *f = (struct analysis_finding){
        .size_bytes = size_bytes, .level = level, .separate = separate, .cold = NAN};
    if (analysis_hotspots(p, name, &question, &h, &ignored) != 0)
        return 0;
    int found = find_function(&h, f);
    double misses = 0;
    f->line_bytes = h.line_bytes;
    if (found) {
        f->cold = h.cold_samples >= ANALYSIS_COLD_LEAST ? h.rows[0].cold : NAN;
        misses = h.rows[0].shares.misses;
        find_caller(&h, f);
    } else {
        *spreads = find_spread(p, name, &h, &question, level, spread);
    }
    question.causes = question.calls = 0;
    analysis_hotspots_clear(&h);
    if (!found)
        return 0;
    question.by = ANALYSIS_BY_LINE;
    if (analysis_hotspots(p, name, &question, &h, &ignored) == 0) {
        find_line(&h, f);
        if (!*f->file)
            find_inlined(&h, f);
        analysis_hotspots_clear(&h);
    }
    question.objects = 1;
    question.by = ANALYSIS_BY_FUNCTION;
    if (analysis_hotspots(p, name, &question, &h, &ignored) == 0) {
        find_object(&h, f);
        analysis_hotspots_clear(&h);
    }
    question.by = ANALYSIS_BY_LINE;
    f->used_bytes = NAN;
    if (analysis_hotspots(p, name, &question, &h, &ignored) == 0) {
        add_use(&h, f);
        if (level > 1)
            add_use_of_misses(&h, f);
        analysis_hotspots_clear(&h);
    }
    question.by = ANALYSIS_BY_FUNCTION;
    question.fields = 1;
    if (*f->object && !*f->other && analysis_hotspots(p, name, &question, &h, &ignored) == 0) {
        find_field(&h, f);
        analysis_hotspots_clear(&h);
    }
    find_gone(p, name, wrappers, misses, f);
    f->remedy = remedy_of(f);
    f->forked = analysis_has_forked(p);
    return 1;
}

void analysis_findings(struct profile *p, const char *name, const char *wrappers, int separate,
                       struct analysis_findings *findings)
{
    findings->nmisses = findings->nspread = 0;
    for (unsigned level = 1; level <= FINDINGS_MOST; level++) {
        int spreads = 0;
        findings->nmisses +=
            (size_t)find(p, name, wrappers, separate, level, &findings->misses[findings->nmisses],
                         &findings->spread[findings->nspread], &spreads);
        findings->nspread += (size_t)spreads;
    }
    findings->nshared = analysis_shared(p, name, wrappers, findings->shared);
    findings->ntruly = analysis_shared_truly(p, name, wrappers, findings->truly);
    findings->nconflicts = analysis_conflicts(p, name, wrappers, findings->conflicts);
}
