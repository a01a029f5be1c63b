/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hotspots-notes.c - what the reader of a table should know besides its rows: which cache they are of, how
 * many references they are made from, what signs in them mean, which misses are in no row, and how many more
 * bursts would make the largest share accurate.
 */
#include "report/hotspots-internal.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/base-name.h"
#include "base/sizes.h"
#include "report/hotspot-names.h"

/* A share is accurate if half its interval is at most that part of it. */
#define ACCURATE 0.1

void report_hotspots_cache(FILE *out, const struct analysis_hotspots *h)
{
    char size[SIZE_TEXT];
    fprintf(out, "LRU cache of %s%s, %u-byte lines", size_format((uint64_t)h->size_bytes, size),
            h->separate           ? " for each thread"
            : h->busy_threads > 1 ? " that the threads share"
                                  : "",
            h->line_bytes);
    if (h->phase)
        fprintf(out, ", phase %" PRIu32, h->phase);
    putc('\n', out);
}

void report_hotspots_source(FILE *out, const struct analysis_hotspots *h)
{
    const char *plural = h->bursts == 1 ? "" : "s";
    if (h->full && h->missed_percent > ANALYSIS_MISSED_PERCENT)
        fprintf(out, "from %.0f touches of lines; about %.*f%% of all are missing; miss ratio %.3f%%\n",
                h->total.references, h->missed_percent < 10, h->missed_percent, 100 * h->total.miss_ratio);
    else if (h->full)
        fprintf(out, "from all %.0f touches of lines%s; miss ratio %.3f%%\n", h->total.references,
                report_extent(h->extent), 100 * h->total.miss_ratio);
    else if (h->exact_references > 0)
        fprintf(out, "from the first %.0f touches of lines, and %.0f in %zu burst%s", h->exact_references,
                (double)h->total.recorded - h->exact_references, h->bursts, plural);
    else
        fprintf(out, "from %zu burst%s, %" PRIu64 " touches of lines", h->bursts, plural, h->total.recorded);
    if (h->full)
        return;
    if (h->no_estimate)
        fprintf(
            out,
            "; miss ratio not known (%.3f%% to %.3f%%)\n"
            "Too few samples tell misses from hits at this size: other rows may have most of the misses.\n",
            100 * h->total.ratio_low, 100 * h->total.ratio_high);
    else
        fprintf(out, "; miss ratio %.3f%% (%.3f%% to %.3f%%)\n", 100 * h->total.miss_ratio,
                100 * h->total.ratio_low, 100 * h->total.ratio_high);
}

void report_hotspots_part(FILE *out, const struct analysis_hotspots *h)
{
    if (h->part_left_out)
        fputs("\nNote: only bursts of this phase are counted. In its part that was recorded completely, code "
              "is not\n"
              "counted by phase.\n",
              out);
}

/* How many times as many bursts would make the largest share accurate: errors fall with the square root of
 * their number. */
static void put_advice(FILE *out, const struct analysis_hotspots *h)
{
    const struct shares_result *s = h->n > 0 ? &h->rows[0].shares : NULL;
    if (h->full || !s)
        return;
    double half = s->enough ? (s->share_high - s->share_low) / 2 / (s->misses_share * ACCURATE) : 0;
    double times = half * half, unit = times >= 10 ? pow(10, floor(log10(times)) - 1) : 1;
    if (!s->enough)
        fputs("\nTo know more, record for longer or with a larger --overhead; --mode full is exact.\n", out);
    else if (times >= 2)
        fprintf(out,
                "\nAbout %.0f times as many bursts would give the largest share to within a tenth: record "
                "for longer\n"
                "or with a larger --overhead; --mode full is exact.\n",
                ceil(times / unit) * unit);
}

/* Least share of the misses in code of JIT compilers that is worth a hint at how it gets names. */
#define UNNAMED_SHARE 0.05
/* Likewise of string instructions that bursts lack. */
#define UNSEEN_STRINGS 0.05

static double unnamed_share(const struct analysis_hotspots *h)
{
    double share = 0;
    for (size_t i = 0; i < h->n; i++)
        if (h->rows[i].image && strcmp(h->rows[i].image->path, "[jit]") == 0)
            share += h->rows[i].shares.misses_share;
    return share;
}

/* Likewise in code without symbols. */
#define UNNAMED_CODE 0.2

static void put_unnamed_code(FILE *out, const struct analysis_hotspots *h)
{
    const struct analysis_hotspot *first = NULL;
    double share = 0;
    for (size_t i = 0; i < h->n; i++)
        if (h->rows[i].image && !h->rows[i].rest && report_hotspot_is_place(&h->rows[i])) {
            first = first ? first : &h->rows[i];
            share += h->rows[i].shares.misses_share;
        }
    if (share < UNNAMED_CODE)
        return;
    fputs("\nNote: places such as ", out);
    report_plain(out, first->outer->function);
    fputs(" are functions of files without symbols: compile with -g and do not\n"
          "strip, or install the package's debug symbols.\n",
          out);
}

/* Least share of the misses in memory without names that is worth a hint at an allocator's operator new. */
#define UNNAMED_BLOCKS 0.2

static double unnamed_blocks_share(const struct analysis_hotspots *h)
{
    double share = 0;
    for (size_t i = 0; i < h->n; i++) {
        const struct profile_object *o = h->rows[i].object;
        if (o && (o->kind == PROFILE_OBJECT_HEAP || (o->kind == PROFILE_OBJECT_ANONYMOUS && !*o->name)))
            share += h->rows[i].shares.misses_share;
    }
    return share;
}

/* The agent sees calls of malloc. The operator new of libstdc++ and libc++ calls it; that of these does not.
 */
static const char *allocator_with_new(const struct analysis_hotspots *h)
{
    static const char *const names[] = {"libjemalloc", "libtcmalloc", "libmimalloc"};
    for (size_t i = 0; i < h->nimages; i++) {
        const char *base = base_name(h->images[i].path);
        for (size_t j = 0; j < sizeof names / sizeof names[0]; j++)
            if (strncmp(base, names[j], strlen(names[j])) == 0)
                return base;
    }
    return NULL;
}

static void put_unnamed_blocks(FILE *out, const struct analysis_hotspots *h)
{
    if (h->own_malloc)
        fputs("\nNote: a program has its own malloc, whose blocks are not known. Those of a malloc in a "
              "shared library are.\n",
              out);
    const char *allocator = unnamed_blocks_share(h) >= UNNAMED_BLOCKS ? allocator_with_new(h) : NULL;
    if (allocator)
        fprintf(out,
                "\nNote: the operator new of %s does not call malloc: its blocks are not known,\n"
                "and are in [heap] or [anonymous memory]. To name them, put the C++ library's operator new "
                "before it,\n"
                "which calls malloc: LD_PRELOAD=libstdc++.so.6 cachegram record ...\n"
                "(If %s is preloaded, name it after that.)\n",
                allocator, allocator);
}

void report_hotspots_unseen_strings(FILE *out, const struct analysis_hotspots *h)
{
    if (h->unseen_strings >= UNSEEN_STRINGS)
        fprintf(out,
                "\nNote: bursts have too few of the long string instructions of memset and memcpy. About "
                "%.0f%% of the misses\n"
                "are estimated to be theirs, and are in no row.\n",
                100 * h->unseen_strings);
}

void report_hotspots_notes(FILE *out, const struct analysis_hotspots *h)
{
    int few = 0, guessed = 0, calls = 0;
    for (size_t i = 0; i < h->n; i++) {
        calls |= h->rows[i].ncalls > 0;
        few |= !h->rows[i].shares.enough;
        guessed |= h->rows[i].frame && h->rows[i].frame->guessed;
    }
    if (calls)
        fputs(
            "\n<: called by. The percentage is of the row's misses, from a sample. Calls below 5%, and rows "
            "below 1%\nof all misses, are left out.\n",
            out);
    if (few)
        fputs("\nFew samples: not enough misses were seen for an interval.\n", out);
    put_advice(out, h);
    if (guessed)
        fputs("\n~: the compiler gave the instruction no line; the line of the nearest previous one is "
              "printed.\n",
              out);
    if (!h->full && isnan(h->far))
        fputs(
            "\nNote: too few watched lines: where the bursts do not show whether a reference hits, half are\n"
            "assumed to miss.\n",
            out);
    report_hotspots_unseen_strings(out, h);
    report_hotspots_part(out, h);
    if (unnamed_share(h) >= UNNAMED_SHARE)
        fputs("\nNote: [jit] is code made at run time, whose compiler has left no names: see 'node "
              "--perf-basic-prof',\n"
              "'java -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit' and the like.\n",
              out);
    put_unnamed_code(out, h);
    put_unnamed_blocks(out, h);
    if (h->other_bursts)
        fprintf(out, "\nNote: %zu more bursts have no counts of their code, to keep the profile small.\n",
                h->other_bursts);
}
