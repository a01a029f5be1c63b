/* SPDX-License-Identifier: Apache-2.0 */
#include "report/report.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base-name.h"
#include "base/fit-text.h"
#include "base/sizes.h"
#include "report/shorten.h"

/* What has less than that part of the misses is said to have most of them. */
#define NEARLY_ALL 0.9
/* Difference of ratios that are printed as the same number, or nearly. */
#define CLOSE 0.0005

/* "hot" of "[].hot". */
static const char *field_name(const char *name)
{
    return name + strspn(name, "[].");
}

/* Of two objects that have as many misses each, either may be the first one. */
static int has_same_data(const struct analysis_finding *a, const struct analysis_finding *b)
{
    return (strcmp(a->object, b->object) == 0 && strcmp(a->other, b->other) == 0) ||
           (strcmp(a->object, b->other) == 0 && strcmp(a->other, b->object) == 0);
}

static int same_place(const struct analysis_finding *a, const struct analysis_finding *b)
{
    return strcmp(a->function, b->function) == 0 && strcmp(a->module, b->module) == 0 &&
           strcmp(a->file, b->file) == 0 && a->line == b->line && strcmp(a->inlined, b->inlined) == 0 &&
           strcmp(a->caller, b->caller) == 0 && a->caller_line == b->caller_line && has_same_data(a, b) &&
           strcmp(a->field, b->field) == 0 && a->remedy == b->remedy && a->nparts == b->nparts &&
           memcmp(a->parts, b->parts, sizeof a->parts) == 0;
}

void report_answer_text(FILE *out, const struct analysis_answer *a, const char *whose)
{
    char first[SIZE_TEXT], from[SIZE_TEXT], to[SIZE_TEXT];
    if (isnan(a->hit_low) || isnan(a->hit_high))
        return;
    /* Bounds between which there is nothing to print say as much as an estimate. */
    double hits = isnan(a->hit_ratio) && a->hit_high - a->hit_low < CLOSE ? a->hit_low : a->hit_ratio;
    int digits = hits > 0.99 ? 2 : 1;
    if (isnan(hits))
        fprintf(out, "There are not enough samples to say more than that %.1f to %.1f%%", 100 * a->hit_low,
                100 * a->hit_high);
    else
        fprintf(out, "%.*f%%", digits, 100 * hits);
    if (a->hit_high > a->hit_low && !isnan(a->hit_ratio))
        fprintf(out, " (%.*f to %.*f%%)", digits, 100 * a->hit_low, digits, 100 * a->hit_high);
    fprintf(out, " of the references hit in a cache of %s%s (%s)",
            size_format((uint64_t)a->first_bytes, first), a->separate ? " for each thread" : "", whose);
    if (a->gain > 0) {
        fprintf(out, "; %s instead of %s would gain %.1f", size_format((uint64_t)a->to_bytes, to),
                size_format((uint64_t)a->from_bytes, from), 100 * a->gain);
        if (a->gain_high > a->gain_low)
            fprintf(out, " (%.1f to %.1f)", 100 * a->gain_low, 100 * a->gain_high);
        fputs(" percentage points", out);
    } else if (a->flat)
        fprintf(out, "; a larger cache would gain less than %.1f percentage points", 100 * ANSWER_LEAST_GAIN);
    else if (!isnan(a->most_gain))
        fprintf(out, "; a larger cache would gain at most %.1f percentage points", 100 * a->most_gain);
    fputs(".\n", out);
}

void report_answer_json(FILE *out, const struct analysis_answer *a)
{
    fprintf(out, "  \"answer\": {\"size_bytes\": %.0f", a->first_bytes);
    report_json_member_number(out, ", ", "hit_ratio", a->hit_ratio);
    report_json_member_number(out, ", ", "hit_ratio_low", a->hit_low);
    report_json_member_number(out, ", ", "hit_ratio_high", a->hit_high);
    if (a->gain > 0) {
        fprintf(out, ", \"from_bytes\": %.0f, \"to_bytes\": %.0f", a->from_bytes, a->to_bytes);
        report_json_member_number(out, ", ", "gain", a->gain);
        report_json_member_number(out, ", ", "gain_low", a->gain_low);
        report_json_member_number(out, ", ", "gain_high", a->gain_high);
    }
    report_json_member_number(out, ", ", "most_gain", a->most_gain);
    fprintf(out, ", \"flat\": %s%s}", a->flat ? "true" : "false",
            a->separate ? ", \"threads\": \"separate\"" : "");
}

/* Lines so many bytes apart are in the same set of a cache of 64 sets, and in few of larger ones. */
#define SETS_BYTES 4096

/* A smaller stride may as well be a walk over structures, in the order of memory. */
#define LARGE_STRUCTURE 1024

static const char *of_whom(const struct analysis_finding *f)
{
    return f->separate ? " for each thread" : "";
}

/* After a number that is printed without decimals. */
static const char *is_or_are(double number)
{
    return number < 1.5 ? "is" : "are";
}

/* The cause, and what would help. */
static void put_advice(FILE *out, const struct analysis_finding *f)
{
    char size[SIZE_TEXT], at[SIZE_TEXT];
    if (f->remedy == ANALYSIS_REMEDY_STREAM && isnan(f->cold)) {
        fprintf(
            out,
            " Not even a cache of %s%s would hold the data: reuse the memory, or do all work on a part of it "
            "before the next part.",
            size_format((uint64_t)f->kept_bytes, size), of_whom(f));
        return;
    }
    if (f->remedy == ANALYSIS_REMEDY_STREAM) {
        fprintf(out,
                " %s lines were never touched before%s, so %s: reuse the memory, or do all work on a part of "
                "it before "
                "the next part.",
                f->cold < NEARLY_ALL ? "Most of the" : "The",
                f->forked ? " by their process (its parent's touches before the fork do not count)" : "",
                f->cold < NEARLY_ALL ? "a larger cache helps with the others only" : "no larger cache helps");
        return;
    }
    if (f->remedy == ANALYSIS_REMEDY_UNKNOWN) {
        fputs(" Whether the lines were touched before is not known, as too few were watched: record longer, "
              "with a larger --overhead, or with --mode full.",
              out);
        return;
    }
    if (f->gone_bytes > 0)
        fprintf(out, " Less than a tenth of those at %s would remain in a cache of %s%s.",
                size_format((uint64_t)f->size_bytes, at), size_format((uint64_t)f->gone_bytes, size),
                of_whom(f));
    if (f->remedy == ANALYSIS_REMEDY_ORDER)
        fprintf(out, " Each step goes %" PRIu64 " bytes %s and uses %.0f of the %u bytes of a line: %s%s.",
                (uint64_t)llabs(f->stride), f->stride < 0 ? "back" : "further", f->used_bytes, f->line_bytes,
                f->stride > -LARGE_STRUCTURE && f->stride < LARGE_STRUCTURE
                    ? "if that is the size of a structure, keep the fields that are used together apart from "
                      "the others; otherwise exchange the loops"
                    : "exchange the loops, or the order of the data, so that neighbours are used one after "
                      "the other",
                f->crossed
                    ? "; if other data would then have the large steps, as in a transposition, process "
                      "both in small blocks instead"
                    : "");
    else if (f->remedy == ANALYSIS_REMEDY_PACK)
        fprintf(
            out,
            " Only %.0f of the %u bytes of a line %s used: place together what is used together (hot fields"
            " apart from cold ones, nodes in the order of visits).",
            f->used_bytes, f->line_bytes, is_or_are(f->used_bytes));
    else
        fputs(" Process the data in blocks that fit into the cache, or make it smaller.", out);
    if (f->remedy == ANALYSIS_REMEDY_ORDER && f->stride % SETS_BYTES == 0)
        fprintf(
            out,
            " That is a multiple of %d: the lines share few sets, so caches miss more often than said here;"
            " if the loops must stay, make rows a line longer.",
            SETS_BYTES);
}

/* Bytes of a name; what templates have for arguments is left out if it is longer. */
#define NAME_MOST 120

static void put_name(FILE *out, const char *name)
{
    char text[REPORT_NAME_ROOM], cut[512];
    report_fit_name(text, sizeof text, name);
    report_shorten(text, NAME_MOST);
    fit_text(cut, sizeof cut, "", text);
    report_plain(out, cut);
}

/* inlined: the line's function, if it is another one; else "". */
static void put_code(FILE *out, const char *function, const char *mostly, const char *file, uint32_t line,
                     const char *inlined)
{
    put_name(out, function);
    if (*file) {
        fprintf(out, " (%s", mostly);
        report_plain(out, base_name(file));
        fprintf(out, ":%" PRIu32, line);
        if (*inlined) {
            fputs(" in ", out);
            put_name(out, inlined);
            fputs(", which is inlined", out);
        }
        putc(')', out);
    }
}

/* Its data, and the rest of a sentence that ends with the code. */
static void put_place(FILE *out, const struct analysis_place *s, const char *rest)
{
    if (*s->object) {
        fputs(" of ", out);
        put_name(out, s->object);
    }
    for (size_t i = 0; i < s->nfields; i++) {
        fputs(i == 0 ? s->nfields > 1 ? ", fields " : ", field " : i + 1 < s->nfields ? ", " : " and ", out);
        report_plain(out, field_name(s->fields[i]));
    }
    fputs(s->nfields > 0 ? "," : "", out);
    fputs(rest, out);
    if (*s->function) {
        fputs(", mostly in ", out);
        put_code(out, s->function, "", s->file, s->line, s->inlined);
    }
}

static void put_shared(FILE *out, const struct analysis_place *s)
{
    fprintf(out, "At least %.*f%% of the references are to lines", s->share < 0.01 ? 1 : 0, 100 * s->share);
    put_place(out, s, " while another thread writes other bytes of the line (false sharing)");
    fprintf(out,
            ". Each may have to wait for the line, however large the cache is: align or pad what each thread "
            "writes to %u bytes.\n",
            s->line_bytes);
}

static void put_truly_shared(FILE *out, const struct analysis_place *s)
{
    fprintf(out, "About %.0f%% of the references are to lines", 100 * s->share);
    put_place(out, s, " while another thread writes the same bytes (true sharing)");
    fputs(". The line moves from cache to cache, however large these are, which the miss ratios here do not "
          "count: "
          "let threads exchange data less often (several items at once, a copy of what the others last "
          "wrote).\n",
          out);
}

static void put_conflict(FILE *out, const struct analysis_place *s)
{
    fprintf(out, "At least about %.0f%% of the references are to lines", 100 * s->share);
    put_place(out, s, " that a cache of 32K with 8 ways has lost, although it has room (conflicts)");
    fprintf(out, ". More than 8 lines in use are multiples of %u bytes apart%s.\n", 64 * s->line_bytes,
            s->stack ? "" : ": make rows, structures, or the gaps between arrays or blocks, a line longer");
}

/* Not main and its caller in the C library, which have called everything; but of memcpy and the like, main's
 * line is the only one of the program. */
static int caller_is_informative(const struct analysis_finding *f)
{
    if (strcmp(f->caller, "main") == 0)
        return f->common && f->caller_line > 0;
    return *f->caller && strncmp(f->caller, "__libc_start_", 13) != 0;
}

static void put_functions(FILE *out, const struct analysis_spread *s)
{
    fputs(s->n > 1 ? "; first are " : "; first is ", out);
    for (size_t i = 0; i < s->n; i++) {
        fputs(i == 0 ? "" : i + 1 < s->n ? ", " : " and ", out);
        put_name(out, s->functions[i]);
        fprintf(out, " (%.0f%%%s)", 100 * s->shares[i], i == 0 && *s->object ? " of all misses" : "");
    }
}

/* What follows the cache in a sentence. NULL: out of memory. */
static char *spread_text(const struct analysis_spread *s)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    if (*s->object) {
        fputs(" are on ", out);
        put_name(out, s->object);
        fputs(s->n > 1 ? ", in several functions" : "", out);
    }
    if (s->n > 0)
        put_functions(out, s);
    putc('.', out);
    if (*s->object && s->used_bytes < s->line_bytes / 2.)
        fprintf(out, " Only %.0f of the %u bytes of a line %s used: place together what is used together.",
                s->used_bytes, s->line_bytes, is_or_are(s->used_bytes));
    putc('\n', out);
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

static void put_spread_cache(FILE *out, const struct analysis_spread *s, int first)
{
    char size[SIZE_TEXT];
    if (*s->object)
        fprintf(out, "%s%.0f%%", first ? "" : " and ", 100 * s->object_share);
    else if (first)
        fprintf(out, "No function %s a quarter", s->exact ? "has" : "is certain to have");
    fprintf(out, "%s%s%s (a common L%u)",
            first        ? " of the misses in a cache of "
            : *s->object ? " at "
                         : " or ",
            size_format((uint64_t)s->size_bytes, size), first && s->separate ? " for each thread" : "",
            s->level);
}

/* Where nothing else is known, that this is so. */
static void put_spreads(FILE *out, const struct analysis_findings *findings)
{
    size_t few = 0;
    char *before = NULL;
    for (size_t i = 0; i < findings->nspread; i++) {
        const struct analysis_spread *s = &findings->spread[i];
        char *text = s->few ? NULL : spread_text(s);
        few += s->few != 0;
        int same = before && text && strcmp(before, text) == 0;
        if (before && !same)
            fputs(before, out);
        if (text)
            put_spread_cache(out, s, !same);
        free(before);
        before = text;
    }
    if (before)
        fputs(before, out);
    free(before);
    if (few > 0 && few == findings->nspread && findings->nmisses == 0)
        fputs(
            "Too few misses were seen to say for certain which code has most of them: record longer, with a "
            "larger --overhead, or with --mode full.\n",
            out);
}

static void put_parts(FILE *out, const struct analysis_finding *f)
{
    for (size_t i = 0; i < f->nparts; i++) {
        fputs(i == 0 ? " (above all in " : i + 1 < f->nparts ? ", " : " and ", out);
        put_name(out, f->parts[i]);
    }
    fputs(f->nparts > 1 ? ", which are inlined)" : f->nparts > 0 ? ", which is inlined)" : "", out);
}

void report_findings_text(FILE *out, const struct analysis_findings *findings)
{
    char size[SIZE_TEXT];
    const struct analysis_finding *list = findings->misses;
    for (size_t i = 0, end, n = findings->nmisses; i < n; i = end) {
        const struct analysis_finding *f = &list[i];
        double of_line = 1, of_inlined = 1, of_object = 1, of_field = 1;
        for (end = i; end < n && same_place(f, &list[end]); end++) {
            of_line = fmin(of_line, list[end].line_share);
            of_inlined = fmin(of_inlined, list[end].inlined_share);
            of_object = fmin(of_object, list[end].object_share + list[end].other_share);
            of_field = fmin(of_field, list[end].field_share / list[end].object_share);
            fprintf(out, "%s%.0f%%%s%s%s (a common L%u)", end > i ? " and " : "", 100 * list[end].share,
                    end > i ? " at " : " of the misses in a cache of ",
                    size_format((uint64_t)list[end].size_bytes, size), end > i ? "" : of_whom(f),
                    list[end].level);
        }
        fputs(" are in ", out);
        put_code(out, f->function, of_line < NEARLY_ALL ? "mostly " : "", f->file, f->line, f->inlined);
        if (*f->inlined && !*f->file) {
            fputs(of_inlined < NEARLY_ALL ? " (mostly in " : " (in ", out);
            put_name(out, f->inlined);
            fputs(", which is inlined)", out);
        }
        put_parts(out, f);
        if (caller_is_informative(f)) {
            fputs(f->caller_share > NEARLY_ALL ? ", called by " : ", mostly called by ", out);
            put_code(out, f->caller, "", f->caller_file, f->caller_line, "");
        }
        if (*f->object) {
            fputs(of_object < NEARLY_ALL ? ", mostly on " : ", on ", out);
            put_name(out, f->object);
            if (*f->other) {
                fputs(" and ", out);
                put_name(out, f->other);
            }
            if (*f->field)
                fputs(of_field < NEARLY_ALL ? ", mostly field " : ", field ", out);
            report_plain(out, field_name(f->field));
        }
        putc('.', out);
        put_advice(out, &list[end - 1]);
        putc('\n', out);
    }
    put_spreads(out, findings);
    for (size_t i = 0; i < findings->nshared; i++)
        put_shared(out, &findings->shared[i]);
    for (size_t i = 0; i < findings->ntruly; i++)
        put_truly_shared(out, &findings->truly[i]);
    for (size_t i = 0; i < findings->nconflicts; i++)
        put_conflict(out, &findings->conflicts[i]);
}

static void put_place_json(FILE *out, const struct analysis_place *s)
{
    report_json_member_number(out, "{", "share", s->share);
    fprintf(out, ", \"line_bytes\": %u", s->line_bytes);
    if (*s->object)
        report_json_member_string(out, ", ", "object", s->object);
    if (*s->function) {
        report_json_member_string(out, ", ", "function", s->function);
        report_json_member_string(out, ", ", "module", s->module);
    }
    if (*s->file) {
        report_json_member_string(out, ", ", "file", s->file);
        fprintf(out, ", \"line\": %" PRIu32, s->line);
    }
    if (*s->inlined)
        report_json_member_string(out, ", ", "inlined", s->inlined);
    for (size_t i = 0; i < s->nfields; i++) {
        fputs(i == 0 ? ", \"fields\": [" : ", ", out);
        report_json_string(out, field_name(s->fields[i]));
    }
    fputs(s->nfields > 0 ? "]}" : "}", out);
}

void report_places_json(FILE *out, const char *key, const struct analysis_place *places, size_t n)
{
    fprintf(out, "  \"%s\": [", key);
    for (size_t i = 0; i < n; i++) {
        fputs(i ? ",\n    " : "\n    ", out);
        put_place_json(out, &places[i]);
    }
    fputs(n ? "\n  ]" : "]", out);
}

static void put_spreads_json(FILE *out, const struct analysis_findings *findings)
{
    fputs("  \"spread\": [", out);
    for (size_t i = 0; i < findings->nspread; i++) {
        const struct analysis_spread *s = &findings->spread[i];
        fprintf(out, "%s\n    {\"size_bytes\": %.0f", i ? "," : "", s->size_bytes);
        if (s->separate)
            report_json_member_string(out, ", ", "threads", "separate");
        fprintf(out, ", \"few_samples\": %s", s->few ? "true" : "false");
        if (*s->object) {
            report_json_member_string(out, ", ", "object", s->object);
            report_json_member_number(out, ", ", "object_share", s->object_share);
            report_json_member_number(out, ", ", "used_bytes_per_line", s->used_bytes);
        }
        fputs(", \"functions\": [", out);
        for (size_t k = 0; k < s->n; k++) {
            report_json_member_string(out, k ? ", {" : "{", "function", s->functions[k]);
            report_json_member_number(out, ", ", "miss_share", s->shares[k]);
            putc('}', out);
        }
        fputs("]}", out);
    }
    fputs(findings->nspread ? "\n  ],\n" : "],\n", out);
}

void report_findings_json(FILE *out, const struct analysis_findings *findings)
{
    size_t n = findings->nmisses;
    fputs("  \"findings\": [", out);
    for (size_t i = 0; i < n; i++) {
        const struct analysis_finding *f = &findings->misses[i];
        fprintf(out, "%s\n    {\"size_bytes\": %.0f", i ? "," : "", f->size_bytes);
        if (f->separate)
            report_json_member_string(out, ", ", "threads", "separate");
        report_json_member_number(out, ", ", "miss_share", f->share);
        report_json_member_number(out, ", ", "miss_share_low", f->low);
        report_json_member_number(out, ", ", "miss_share_high", f->high);
        report_json_member_number(out, ", ", "miss_ratio", f->miss_ratio);
        report_json_member_string(out, ", ", "function", f->function);
        report_json_member_string(out, ", ", "module", f->module);
        if (*f->file) {
            report_json_member_string(out, ", ", "file", f->file);
            fprintf(out, ", \"line\": %" PRIu32, f->line);
            report_json_member_number(out, ", ", "line_share", f->line_share);
        }
        if (*f->inlined) {
            report_json_member_string(out, ", ", "inlined", f->inlined);
            report_json_member_number(out, ", ", "inlined_share", f->inlined_share);
        }
        for (size_t k = 0; k < f->nparts; k++) {
            report_json_member_string(out, k ? ", {" : ", \"inlined_parts\": [{", "function", f->parts[k]);
            report_json_member_number(out, ", ", "share", f->part_shares[k]);
            fputs(k + 1 < f->nparts ? "}" : "}]", out);
        }
        if (*f->caller) {
            report_json_member_string(out, ", ", "caller", f->caller);
            if (*f->caller_file) {
                report_json_member_string(out, ", ", "caller_file", f->caller_file);
                fprintf(out, ", \"caller_line\": %" PRIu32, f->caller_line);
            }
            report_json_member_number(out, ", ", "caller_share", f->caller_share);
        }
        static const char *const remedies[] = {"block", "stream", "order", "pack", NULL};
        report_json_member_number(out, ", ", "cold_share", f->cold);
        report_json_member_number(out, ", ", "used_bytes_per_line", f->used_bytes);
        fprintf(out, ", \"stride_bytes\": %" PRId64, f->stride);
        report_json_member_number(out, ", ", "gone_at_bytes", f->gone_bytes > 0 ? f->gone_bytes : NAN);
        report_json_member_string(out, ", ", "remedy", remedies[f->remedy]);
        if (*f->object) {
            report_json_member_string(out, ", ", "object", f->object);
            report_json_member_number(out, ", ", "object_share", f->object_share);
        }
        if (*f->other) {
            report_json_member_string(out, ", ", "other_object", f->other);
            report_json_member_number(out, ", ", "other_object_share", f->other_share);
        }
        if (*f->field) {
            report_json_member_string(out, ", ", "field", field_name(f->field));
            report_json_member_number(out, ", ", "field_share", f->field_share);
        }
        putc('}', out);
    }
    fputs(n ? "\n  ],\n" : "],\n", out);
    put_spreads_json(out, findings);
    report_places_json(out, "false_sharing", findings->shared, findings->nshared);
    fputs(",\n", out);
    report_places_json(out, "true_sharing", findings->truly, findings->ntruly);
    fputs(",\n", out);
    report_places_json(out, "conflicts", findings->conflicts, findings->nconflicts);
}

void report_places_csv(FILE *out, const struct analysis_place *places, size_t n)
{
    fputs("refs_share,object,function,module,file,line,line_bytes\n", out);
    for (size_t i = 0; i < n; i++) {
        const struct analysis_place *s = &places[i];
        const char *const names[] = {s->object, s->function, s->module, s->file};
        report_csv_number(out, s->share);
        for (size_t k = 0; k < 4; k++)
            report_csv_next_plain(out, names[k]);
        putc(',', out);
        if (*s->file)
            fprintf(out, "%" PRIu32, s->line);
        fprintf(out, ",%u\n", s->line_bytes);
    }
}
