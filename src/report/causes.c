/* SPDX-License-Identifier: Apache-2.0 */
#include "report/shorten.h"
#include "report/causes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sizes.h"
#include "report/hotspot-names.h"
#include "report/hotspots.h"

#define NAME_ROOM REPORT_NAME_ROOM
/* Width of the column of what misses: as its names need, but at least and at most. */
#define VICTIM_LEAST 32u
#define VICTIM_MOST 60u
/* Least share of all references that a row's conflicts must have to be printed in text. */
#define LEAST_CONFLICTS 0.001
#define MOST_CONFLICTS 8 /* lines */

static void put_name(const struct analysis_hotspots *h, const struct analysis_hotspot *row,
                     char text[NAME_ROOM])
{
    if (row)
        report_hotspot_name(h, row, text, NAME_ROOM);
    else
        snprintf(text, NAME_ROOM, "(cold)");
}

/* The name of what misses. Returns its columns. */
static size_t victim_name(const struct analysis_hotspots *h, const struct analysis_hotspot *row,
                          char text[NAME_ROOM])
{
    put_name(h, row, text);
    report_make_plain(text);
    return report_columns(text, strlen(text));
}

static size_t victim_columns(const struct analysis_causes *c, size_t n)
{
    char text[NAME_ROOM];
    size_t widest = VICTIM_LEAST;
    for (size_t i = 0; i < n; i++) {
        size_t columns = victim_name(&c->h, c->list[i].victim, text);
        widest = columns > widest ? columns : widest;
    }
    return widest < VICTIM_MOST ? widest : VICTIM_MOST;
}

static int compare_conflicts(const void *a, const void *b)
{
    const struct analysis_hotspot *x = *(const struct analysis_hotspot *const *)a,
                                  *y = *(const struct analysis_hotspot *const *)b;
    return x->conflicts < y->conflicts ? 1 : -(x->conflicts > y->conflicts);
}

/* The rows whose conflicts have at least that share, largest first; *n: their number. The caller frees the
 * list. NULL: none. */
static const struct analysis_hotspot **list_conflicts(const struct analysis_causes *c, double least,
                                                      size_t *n)
{
    const struct analysis_hotspot **list = calloc(c->h.n + 1, sizeof(struct analysis_hotspot *));
    *n = 0;
    for (size_t i = 0; i < c->h.n && list; i++)
        if (c->h.rows[i].conflicts > 0 && c->h.rows[i].conflicts >= least)
            list[(*n)++] = &c->h.rows[i];
    if (*n > 0)
        qsort(list, *n, sizeof(struct analysis_hotspot *), compare_conflicts);
    return list;
}

/* Conflict misses: the cache of the table has none. */
static void put_conflicts_text(FILE *out, const struct analysis_causes *c)
{
    char size[SIZE_TEXT], text[NAME_ROOM];
    size_t n;
    const struct analysis_hotspot **list = list_conflicts(c, LEAST_CONFLICTS, &n);
    if (n == 0) {
        fputs("\nThe cache is fully associative: 'cachegram sim --causes' shows conflicts within sets.\n",
              out);
    } else {
        fprintf(out,
                "\nThe cache is fully associative. In one of %s with 64 sets of 8 lines, lines are also "
                "evicted by"
                "\nothers of their set (conflicts). Conflict misses, as a share of all references:\n\n   "
                "refs   on lines of\n",
                size_format(UINT64_C(512) * c->h.line_bytes, size));
        for (size_t i = 0; i < n && i < MOST_CONFLICTS; i++) {
            fprintf(out, "%6.2f%%   ", 100 * list[i]->conflicts);
            put_name(&c->h, list[i], text);
            report_plain(out, text);
            putc('\n', out);
        }
    }
    free(list);
}

static void put_conflicts_json(FILE *out, const struct analysis_causes *c)
{
    char text[NAME_ROOM];
    size_t n;
    const struct analysis_hotspot **list = list_conflicts(c, 0, &n);
    fputs(",\n  \"conflicts\": [", out);
    for (size_t i = 0; i < n; i++) {
        put_name(&c->h, list[i], text);
        report_json_member_string(out, i ? ",\n    {" : "\n    {", "victim", text);
        report_json_member_number(out, ", ", "refs_share", list[i]->conflicts);
        putc('}', out);
    }
    fputs(n ? "\n  ]" : "]", out);
    free(list);
}

static void put_text(FILE *out, const struct analysis_causes *c, size_t n)
{
    static const char *const by_names[] = {"function", "line", "module", "instruction", "object"};
    const struct analysis_hotspots *h = &c->h;
    char size[SIZE_TEXT], text[NAME_ROOM];
    int usual = 0;
    size_t width = victim_columns(c, n);
    fprintf(out, "Causes of misses by %s%s: LRU cache of %s, %u-byte lines\n",
            h->fields && h->by == ANALYSIS_BY_NOTHING ? "field" : by_names[h->by],
            h->objects && h->by != ANALYSIS_BY_NOTHING ? h->fields ? ", field" : ", object" : "",
            size_format((uint64_t)h->size_bytes, size), h->line_bytes);
    fprintf(out, "miss ratio %.3f%%; ", 100 * h->total.miss_ratio);
    if (isnan(c->cold))
        fputs("how many of the misses are cold (of lines not touched before) is not known, as too few\n"
              "watched lines were seen to the end; the table counts these as evictions, too\n\n",
              out);
    else
        fprintf(out, "%.1f%% of the misses are cold: of lines not touched before\n\n", 100 * c->cold);
    fprintf(out, "%7s   %-*s  %s\n", "misses", (int)width, "on lines of", "evicted by");
    for (size_t i = 0; i < n; i++) {
        const struct analysis_cause *cause = &c->list[i];
        int estimated = cause->evictor && cause->reuses == 0;
        fprintf(out, "%6.2f%%%c  ", 100 * cause->share, estimated ? '~' : ' ');
        size_t columns = victim_name(h, cause->victim, text);
        fprintf(out, "%s%*s  ", text, columns < width ? (int)(width - columns) : 0, "");
        put_name(h, cause->evictor, text);
        report_plain(out, text);
        putc('\n', out);
        usual |= estimated;
    }
    if (n < c->n)
        fprintf(out, "and %zu more (--limit, --percent-limit)\n", c->n - n);
    if (usual)
        fputs(
            "\n~: too few reuses were sampled; these misses are divided among all data in proportion to the\n"
            "misses of that data.\n",
            out);
    report_hotspots_unseen_strings(out, h);
    put_conflicts_text(out, c);
}

static void put_csv(FILE *out, const struct analysis_causes *c, size_t n)
{
    char text[NAME_ROOM];
    fputs("victim,evictor,size_bytes,share,sampled_reuses,victim_conflict_share\n", out);
    for (size_t i = 0; i < n; i++) {
        const struct analysis_cause *cause = &c->list[i];
        put_name(&c->h, cause->victim, text);
        report_csv_plain(out, text);
        putc(',', out);
        put_name(&c->h, cause->evictor, text);
        report_csv_plain(out, text);
        fprintf(out, ",%.0f,", c->h.size_bytes);
        report_csv_number(out, cause->share);
        fprintf(out, ",%.0f,", cause->reuses);
        report_csv_number(out, cause->victim->conflicts);
        putc('\n', out);
    }
}

static void put_json(FILE *out, const struct analysis_causes *c, size_t n)
{
    char text[NAME_ROOM];
    report_json_member_string(out, "{\n  ", "profile", c->h.profile);
    fprintf(out, ",\n  \"mode\": \"%s\",\n  \"size_bytes\": %.0f,\n  \"rows_left_out\": %zu",
            c->h.full ? "full" : "burst", c->h.size_bytes, c->n - n);
    report_json_member_number(out, ",\n  ", "miss_ratio", c->h.total.miss_ratio);
    report_json_member_number(out, ",\n  ", "cold_share", c->cold);
    fputs(",\n  \"rows\": [", out);
    for (size_t i = 0; i < n; i++) {
        const struct analysis_cause *cause = &c->list[i];
        put_name(&c->h, cause->victim, text);
        report_json_member_string(out, i ? ",\n    {" : "\n    {", "victim", text);
        put_name(&c->h, cause->evictor, text);
        report_json_member_string(out, ", ", "evictor", text);
        report_json_member_number(out, ", ", "share", cause->share);
        fprintf(out, ", \"sampled_reuses\": %.0f}", cause->reuses);
    }
    fputs(n ? "\n  ]" : "]", out);
    put_conflicts_json(out, c);
    fputs("\n}\n", out);
}

void report_causes(FILE *out, const struct analysis_causes *c, size_t limit, double least_percent,
                   enum report_format format)
{
    size_t n = 0;
    while (n < c->n && (limit == 0 || n < limit) && 100 * c->list[n].share >= least_percent)
        n++;
    if (format == REPORT_CSV)
        put_csv(out, c, n);
    else if (format == REPORT_JSON)
        put_json(out, c, n);
    else
        put_text(out, c, n);
}
