/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/hotspots-lines.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "analysis/recorded.h"

/* Sums of a row. */
struct sums {
    double lines, known, whole, bytes; /* known: lines whose use is known */
    uint64_t most_lines, most_site;    /* of a site's entry, and that site */
    double conflicts;
};

static struct sums *sums_of(struct sums *sums, const struct analysis_hotspots *h,
                            const struct analysis_groups *groups, uint64_t site, uint64_t object)
{
    if (site > UINT32_MAX || object > UINT32_MAX)
        return NULL;
    uint32_t row = analysis_groups_row(h, groups, (uint32_t)site, (uint32_t)object);
    return row != ANALYSIS_NO_GROUP ? &sums[row] : NULL;
}

static int compare(const void *key, const void *element)
{
    uint64_t site = *(const uint64_t *)key, other = ((const struct profile_stride *)element)->site;
    return site < other ? -1 : site > other;
}

int analysis_is_use_known(double lines, double known, double whole)
{
    return whole >= ANALYSIS_LEAST_WHOLE && known > 0 && known >= lines / 2;
}

int analysis_lines_read(struct profile *p, struct analysis_hotspots *h, const struct analysis_groups *groups,
                        struct error *err)
{
    struct sums *sums = calloc(h->n + 1, sizeof *sums);
    const struct analysis_recorded *r = h->recorded;
    double looked_at;
    int code = sums ? 0 : error_set(err, -ENOMEM, "out of memory for the hotspots");
    if (profile_get_number(p, "conflict_refs", &looked_at, NULL) != 0 || !(looked_at > 0))
        looked_at = NAN;
    for (size_t i = 0; i < r->nuses && code == 0; i++) {
        struct sums *s = sums_of(sums, h, groups, r->uses[i].site, r->uses[i].object);
        if (!s)
            continue;
        s->lines += (double)r->uses[i].lines;
        s->known += r->uses[i].whole > 0 ? (double)r->uses[i].lines : 0;
        s->whole += (double)r->uses[i].whole;
        s->bytes += (double)r->uses[i].bytes;
        if (r->uses[i].lines > s->most_lines) {
            s->most_lines = r->uses[i].lines;
            s->most_site = r->uses[i].site;
        }
    }
    for (size_t i = 0; i < r->nconflicts && code == 0; i++) {
        struct sums *s = sums_of(sums, h, groups, r->conflicts[i].site, r->conflicts[i].object);
        if (s)
            s->conflicts += (double)r->conflicts[i].references;
    }
    for (size_t i = 0; i < h->n && code == 0; i++) {
        const struct profile_stride *stride = NULL;
        if (sums[i].most_lines > 0 && r->nstrides > 0)
            stride = bsearch(&sums[i].most_site, r->strides, r->nstrides, sizeof *r->strides, compare);
        h->rows[i].used_share = analysis_is_use_known(sums[i].lines, sums[i].known, sums[i].whole)
                                    ? sums[i].bytes / (sums[i].known * h->line_bytes)
                                    : NAN;
        h->rows[i].stride = stride && stride->references >= ANALYSIS_LEAST_STEPS ? stride->bytes : 0;
        h->rows[i].conflicts = sums[i].conflicts / looked_at;
    }
    free(sums);
    return code;
}
