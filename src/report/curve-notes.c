/* SPDX-License-Identifier: Apache-2.0 */
/* curve-notes.c - notes below a curve from bursts: its limitations. */
#include "report/report.h"

#include <math.h>

#include "base/sizes.h"

/*
 * Percentage of the run that all bursts may have missed above which a note is printed: up to twelve bursts.
 */
#define TOO_FEW_BURSTS 25.0
/* Shares from which on a note is printed. */
#define MANY_CENSORED 0.5
#define MANY_UNWATCHED 0.1
/* Part of the CPU time, and standard errors of the time that bursts represent, below which part of the
 * program was systematically not sampled; and CPU time of a process, without that part, that is usually
 * sampled. */
#define LITTLE_SAMPLED 0.7
#define SAMPLED_ERRORS 2.
#define SHORT_PROCESS_SECONDS 0.02
#define MANY_STRINGS 1e-3
#define LARGE_CLOCK_ERROR 0.2 /* up to this, curves are as good as with an exact clock (docs/accuracy.md) */

static double part(size_t some, size_t all)
{
    return all > 0 ? (double)some / (double)all : 0;
}

/* Bursts are placed at random: together they represent all CPU time, up to the randomness of a few gaps. In
 * short processes there are fewer. */
static int many_short_processes(const struct analysis_curve *curve)
{
    if (isnan(curve->user_seconds) || curve->bursts == 0)
        return 0;
    double missing = curve->user_seconds - curve->sampled_seconds;
    return curve->sampled_seconds < LITTLE_SAMPLED * curve->user_seconds &&
           missing > SAMPLED_ERRORS * curve->sampled_error &&
           missing < SHORT_PROCESS_SECONDS * (double)curve->processes;
}

void report_curve_notes(FILE *out, const struct analysis_curve *curve, const char *lead, int verbose)
{
    double unseen = 100 * curve->unseen;
    if (curve->busy_threads > 1)
        fprintf(out,
                "%s%zu threads work at the same time, recorded in pieces of tens of thousands of references: "
                "a cache that they share may miss more at sizes that do not hold what all of them use%s\n",
                lead, curve->busy_threads, verbose ? "; of one for each: mrc --threads separate" : "");
    if (curve->busy_processes > 1)
        fprintf(
            out,
            "%s%zu processes work at the same time, each counted as in a cache of its own: corun predicts a "
            "shared one, from a profile of each\n",
            lead, curve->busy_processes);
    if (curve->bursts == 0 && curve->full_references)
        fprintf(out,
                "%sno burst was recorded after the first references: the curve lacks the rest of the run\n",
                lead);
    if (curve->bursts == 0)
        return;
    if (unseen >= TOO_FEW_BURSTS)
        fprintf(out, "%s%zu burst%s few: long parts of the run may have been missed\n", lead, curve->bursts,
                curve->bursts == 1 ? " is" : "s are");
    else
        fprintf(out, "%sbursts may have missed parts of the run shorter than about %.*f%% of its time\n",
                lead, unseen < 1 ? 1 : 0, unseen);
    if (curve->unseen_strings >= MANY_STRINGS) {
        char size[SIZE_TEXT];
        size_format((uint64_t)fmin(curve->unseen_string_bytes, 0x1p62), size);
        fprintf(out,
                "%sbursts have too few of the long string instructions of memset and memcpy: %.1f%% of the "
                "touches were "
                "counted instead, and are taken to miss in caches of less than %s\n",
                lead, 100 * curve->unseen_strings, size);
    }
    if (many_short_processes(curve))
        fprintf(
            out,
            "%sthe bursts represent %.2f of %.2f s of CPU time: the rest was spent in processes of about a "
            "millisecond, which are rarely sampled\n",
            lead, curve->sampled_seconds, curve->user_seconds);
    if (curve->watches == 0) {
        fprintf(out, "%sno lines were watched: only bounds are reported for large caches\n", lead);
        return;
    }
    if (!verbose)
        return;
    if (part(curve->unwatched, curve->watches) >= MANY_UNWATCHED)
        fprintf(out,
                "%s%.0f%% of the lines chosen could not be watched; they are assumed to be reused like the "
                "others\n",
                lead, 100 * part(curve->unwatched, curve->watches));
    if (part(curve->censored, curve->watches) >= MANY_CENSORED)
        fprintf(out,
                "%s%.0f%% of the watched lines were censored (not observed until their next touch): "
                "estimates for large caches are less precise\n",
                lead, 100 * part(curve->censored, curve->watches));
    if (curve->clock_error > LARGE_CLOCK_ERROR)
        fprintf(out, "%sthe reference clock may be wrong by %.0f%%, and so may long reuse distances\n", lead,
                100 * curve->clock_error);
}
