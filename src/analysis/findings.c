/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/findings.h"

#include <stdio.h>
#include <string.h>

#include "analysis/hotspots.h"

/* As large as first-level caches, and private second-level ones. */
static const double sizes[FINDINGS_MOST] = {32 << 10, 1 << 20};
/* A part of the misses that is worth a sentence, at the lower end of its interval; a miss ratio that is. */
#define LEAST_SHARE 0.25
#define LEAST_RATIO 0.001
/* Part of the function's misses that one line, or one data object, must have to be named. */
#define MOST_OF_IT 0.5

static int is_of(const struct analysis_hotspot *row, const struct analysis_finding *f)
{
    return !row->rest && row->outer && strcmp(row->outer->function, f->function) == 0 &&
           strcmp(row->image->path, f->module) == 0;
}

static void copy(char *to, size_t size, const char *from)
{
    snprintf(to, size, "%s", from);
}

static int find_function(const struct analysis_hotspots *h, struct analysis_finding *f)
{
    const struct analysis_hotspot *row = h->n > 0 ? &h->rows[0] : NULL;
    f->miss_ratio = h->total.miss_ratio;
    if (!row || row->rest || !row->outer || !*row->outer->function || !row->shares.enough ||
        row->shares.share_low < LEAST_SHARE || !(h->total.miss_ratio >= LEAST_RATIO) ||
        !(h->total.ratio_low > 0) || strlen(row->outer->function) >= sizeof f->function ||
        strlen(row->image->path) >= sizeof f->module)
        return 0;
    f->share = row->shares.misses_share;
    f->low = row->shares.share_low;
    f->high = row->shares.share_high;
    copy(f->function, sizeof f->function, row->outer->function);
    copy(f->module, sizeof f->module, row->image->path);
    return 1;
}

static void find_line(const struct analysis_hotspots *h, struct analysis_finding *f)
{
    for (size_t i = 0; i < h->n; i++) {
        const struct analysis_hotspot *row = &h->rows[i];
        if (!is_of(row, f))
            continue;
        if (row->frame && *row->frame->file && row->shares.enough &&
            row->shares.misses_share >= MOST_OF_IT * f->share) {
            copy(f->file, sizeof f->file, row->frame->file);
            f->line = row->frame->line;
        }
        return; /* the others have less */
    }
}

static void find_object(const struct analysis_hotspots *h, struct analysis_finding *f)
{
    for (size_t i = 0; i < h->n; i++) {
        const struct analysis_hotspot *row = &h->rows[i];
        if (!is_of(row, f))
            continue;
        /* Others than variables have no name that says more than where they are. */
        if (row->object && row->object->kind == PROFILE_OBJECT_VARIABLE &&
            row->shares.misses_share >= MOST_OF_IT * f->share)
            copy(f->object, sizeof f->object, row->object->name);
        return;
    }
}

/* Nonzero: there is one. What fails is no finding: the rest of the report says what is wrong with the
 * profile. */
static int find(struct profile *p, const char *name, double size_bytes, struct analysis_finding *f)
{
    struct analysis_hotspots_question question = {.size_bytes = size_bytes, .by = ANALYSIS_BY_FUNCTION};
    struct analysis_hotspots h;
    struct error ignored;
    *f = (struct analysis_finding){.size_bytes = size_bytes};
    if (analysis_hotspots(p, name, &question, &h, &ignored) != 0)
        return 0;
    int found = find_function(&h, f);
    analysis_hotspots_clear(&h);
    if (!found)
        return 0;
    question.by = ANALYSIS_BY_LINE;
    if (analysis_hotspots(p, name, &question, &h, &ignored) == 0) {
        find_line(&h, f);
        analysis_hotspots_clear(&h);
    }
    question.by = ANALYSIS_BY_FUNCTION;
    question.objects = 1;
    if (analysis_hotspots(p, name, &question, &h, &ignored) == 0) {
        find_object(&h, f);
        analysis_hotspots_clear(&h);
    }
    return 1;
}

size_t analysis_findings(struct profile *p, const char *name, struct analysis_finding findings[FINDINGS_MOST])
{
    size_t n = 0;
    for (size_t i = 0; i < FINDINGS_MOST; i++)
        n += (size_t)find(p, name, sizes[i], &findings[n]);
    return n;
}
