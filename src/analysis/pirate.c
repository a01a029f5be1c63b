/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/pirate.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int analysis_pirate_load(struct profile *p, struct analysis_pirate *r, struct error *err)
{
    const struct {
        const char *key;
        double *value;
    } numbers[] = {
        {"pirate_llc_bytes", &r->llc_bytes},
        {"pirate_private_bytes", &r->private_bytes},
        {"pirate_threads", &r->threads},
        {"pirate_limit", &r->limit},
        {"pirate_stopped_percent", &r->stopped_percent},
        {"pirate_own_percent", &r->cachegram_percent},
        {"pirate_cpu_seconds", &r->cpu_seconds},
        {"pirate_wall_seconds", &r->wall_seconds},
        {"pirate_alone_ns_per_unit", &r->alone_ns},
        {"pirate_beside_ns_per_unit", &r->with_pirate_ns},
    };
    const struct {
        const char *key;
        char *value;
        size_t size;
    } words[] = {{"pirate_unit", r->unit, sizeof r->unit}, {"pirate_notes", r->notes, sizeof r->notes}};
    memset(r, 0, sizeof *r);
    int code = profile_pirates(p, &r->rows, &r->n, err);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0] && code == 0; i++) {
        *numbers[i].value = NAN;
        code = profile_get_number(p, numbers[i].key, numbers[i].value, err);
        code = code == -ENOENT ? 0 : code;
    }
    for (size_t i = 0; i < sizeof words / sizeof words[0] && code == 0; i++) {
        code = profile_get(p, words[i].key, words[i].value, words[i].size, err);
        code = code == -ENOENT ? 0 : code;
    }
    if (code != 0)
        analysis_pirate_clear(r);
    return code;
}

void analysis_pirate_clear(struct analysis_pirate *r)
{
    free(r->rows);
    r->rows = NULL;
    r->n = 0;
}

const struct profile_pirate *analysis_pirate_base(const struct analysis_pirate *r, size_t i)
{
    const struct profile_pirate *base = NULL;
    for (size_t k = 0; k < r->n; k++)
        if (r->rows[k].valid && strcmp(r->rows[k].by, r->rows[i].by) == 0 &&
            (!base || r->rows[k].available_bytes > base->available_bytes))
            base = &r->rows[k];
    return base;
}

double analysis_pirate_slowdown(const struct analysis_pirate *r, size_t i)
{
    const struct profile_pirate *base = analysis_pirate_base(r, i);
    return base && r->rows[i].valid ? r->rows[i].ns_per_unit / base->ns_per_unit : NAN;
}

/* Size of all caches that the program has, private ones included: the size in the models. */
static double whole_size(const struct analysis_pirate *r, size_t i)
{
    return (double)r->rows[i].available_bytes + (isnan(r->private_bytes) ? 0 : r->private_bytes);
}

struct curve_point *analysis_pirate_marks(const struct analysis_pirate *r, size_t *n)
{
    struct curve_point *marks = r->n ? malloc(r->n * sizeof *marks) : NULL;
    *n = 0;
    for (size_t i = 0; marks && i < r->n; i++)
        if (r->rows[i].valid && !isnan(r->rows[i].miss_ratio))
            marks[(*n)++] = (struct curve_point){whole_size(r, i), r->rows[i].miss_ratio, NAN, NAN};
    return marks;
}

double analysis_pirate_modelled(const struct analysis_pirate *r, size_t i, const struct analysis_curve *curve)
{
    double size = whole_size(r, i);
    for (size_t k = 1; curve && k < curve->n; k++) {
        const struct curve_point *a = &curve->points[k - 1], *b = &curve->points[k];
        if (size < a->size_bytes || size > b->size_bytes)
            continue;
        double t = log2(size / a->size_bytes) / log2(b->size_bytes / a->size_bytes);
        return a->miss_ratio + t * (b->miss_ratio - a->miss_ratio);
    }
    return NAN;
}
