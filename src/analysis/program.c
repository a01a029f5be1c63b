/* SPDX-License-Identifier: Apache-2.0 */
/* program.c - from a profile to the curves that StatCC takes. */
#include "analysis/program.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base-name.h"
#include "analysis/busy-threads.h"
#include "analysis/curve.h"
#include "analysis/program-phases.h"

/*
 * Sizes at which a sampled curve is computed: 16 per octave, from a line to 1 GB. Linear interpolation
 * between neighbours, which differ by 4% in size, has a smaller error than the samples.
 */
#define PER_OCTAVE 16u
#define OCTAVES 24u
#define POINTS (PER_OCTAVE * OCTAVES + 1u)

/* A profile that its user has named keeps this name; one with the default name is called by its command. */
static void name_program(struct profile *p, struct analysis_program *program)
{
    char command[4096] = "";
    const char *from = base_name(program->profile);
    if (strcmp(from, "cachegram.db") == 0 && profile_get(p, "command", command, sizeof command, NULL) == 0 &&
        command[0]) {
        command[strcspn(command, " ")] = '\0';
        from = *base_name(command) ? base_name(command) : command;
    }
    snprintf(program->name, sizeof program->name, "%s", from);
    size_t length = strlen(program->name);
    if (length > 3 && strcmp(program->name + length - 3, ".db") == 0)
        program->name[length - 3] = '\0';
}

static void load_rates(struct profile *p, struct analysis_program *program)
{
    double touches, references, instructions;
    program->references_per_instruction = program->ns_per_instruction = program->clock_error = NAN;
    /* Curves are of touches of lines; where these are not counted, a reference counts as one. */
    if (profile_get_number(p, "touches", &touches, NULL) != 0)
        touches = 0;
    if (profile_get_number(p, "references", &references, NULL) == 0 && references > touches)
        touches = references;
    if (profile_get_number(p, "instructions", &instructions, NULL) == 0 && instructions > 0 && touches > 0)
        program->references_per_instruction = touches / instructions;
    if (profile_get_number(p, "clock_error", &program->clock_error, NULL) != 0)
        program->clock_error = NAN;
    program->clock[0] = program->cpu[0] = '\0';
    (void)profile_get(p, "clock", program->clock, sizeof program->clock, NULL);
    (void)profile_get(p, "cpu", program->cpu, sizeof program->cpu, NULL);
}

static int load_full(struct profile *p, int paper, struct analysis_program *program, struct error *err)
{
    double cold = 0;
    struct hist *stack = malloc(sizeof *stack), *reuse = malloc(sizeof *reuse);
    int code = stack && reuse ? 0 : error_set(err, -ENOMEM, "out of memory reading '%s'", program->profile);
    if (code == 0 &&
        (profile_get_hist(p, 0, PROFILE_HIST_STACK, stack, NULL) != 0 ||
         profile_get_hist(p, 0, PROFILE_HIST_REUSE, reuse, NULL) != 0 ||
         profile_get_number(p, "cold", &cold, NULL) != 0 || !(cold >= 0 && cold < 0x1p63)) &&
        (code = analysis_refuse_unprofiled(p, program->profile, err)) == 0)
        code =
            error_set(err, -ENODATA, "the profile '%s' holds no distances of the whole run: it was cut short",
                      program->profile);
    if (code == 0)
        code = paper ? statcc_curve_statstack(reuse, (uint64_t)cold, &program->curve, err)
                     : statcc_curve_exact(stack, reuse, (uint64_t)cold, &program->curve, err);
    if (code == 0)
        program->low = program->high = program->curve;
    free(stack);
    free(reuse);
    return code;
}

/* Sizes of which the curves are computed, ascending; below 16 lines the steps would be smaller than a line,
 * and sizes must be whole. Returns their number. */
static size_t fill_sizes(struct curve_point *points, unsigned line_bytes)
{
    size_t n = 0;
    for (uint32_t i = 0; i < POINTS; i++) {
        double size = line_bytes * floor(exp2((double)i / PER_OCTAVE));
        if (n == 0 || size > points[n - 1].size_bytes)
            points[n++].size_bytes = size;
    }
    return n;
}

/*
 * The curve of a profile's bursts, which may end before the sizes do; or, separate, of a cache for each
 * thread. Where there is no estimate, the value lies between low and high. The solver needs some value there:
 * the middle, marked as unknown by known_lines. Returns the estimate's other numbers in *answer.
 */
static int load_points(struct profile *p, const struct analysis_program *program, int separate,
                       struct analysis_curve *answer, struct statcc_curve *best, struct statcc_curve *low,
                       struct statcc_curve *high, struct error *err)
{
    struct statcc_curve *const bounds[2] = {low, high};
    struct curve_point *points = calloc(POINTS, sizeof *points);
    double known = INFINITY;
    if (!points)
        return error_set(err, -ENOMEM, "out of memory reading '%s'", program->profile);
    size_t n = fill_sizes(points, program->line_bytes);
    const struct analysis_question question = {.model = ANALYSIS_MODEL_LRU, .separate = separate};
    *answer = (struct analysis_curve){.profile = program->profile, .points = points, .n = n};
    int code = analysis_curve_compute(p, &question, answer, err);
    for (size_t i = 0; code == 0 && i < n; i++) {
        struct curve_point *q = &points[i];
        if (isnan(q->low) || isnan(q->high)) {
            q->low = isnan(q->miss_ratio) ? 0 : q->miss_ratio;
            q->high = isnan(q->miss_ratio) ? (i ? points[i - 1].high : 1) : q->miss_ratio;
        }
        if (isnan(q->miss_ratio)) {
            if (isinf(known))
                known = i ? points[i - 1].size_bytes / program->line_bytes : 0;
            q->miss_ratio = (q->low + q->high) / 2;
        }
    }
    if (code == 0)
        code = statcc_curve_points(points, n, program->line_bytes, best, err);
    for (int which = 0; which < 2 && code == 0; which++) {
        for (size_t i = 0; i < n; i++)
            points[i].miss_ratio = which ? points[i].high : points[i].low;
        code = statcc_curve_points(points, n, program->line_bytes, bounds[which], err);
    }
    if (code == 0)
        best->known_lines = known;
    answer->points = NULL;
    free(points);
    return code;
}

static int load_sampled(struct profile *p, struct analysis_program *program, struct error *err)
{
    struct analysis_curve answer;
    int code = load_points(p, program, 0, &answer, &program->curve, &program->low, &program->high, err);
    if (code == 0 && !isnan(answer.references_per_instruction)) /* better than the totals: weighted */
        program->references_per_instruction = answer.references_per_instruction;
    program->ns_per_instruction = code == 0 ? answer.ns_per_instruction : NAN;
    return code;
}

/* Where threads work at the same time, each has private caches of its own. StatStack's model has no such
 * curve. */
static int load_threads(struct profile *p, int paper, struct analysis_program *program, struct error *err)
{
    struct analysis_curve ignored;
    program->threads = analysis_busy_threads(p).parallel;
    program->own = program->curve;
    program->own_low = program->low;
    program->own_high = program->high;
    return program->threads > 1 && !paper ? load_points(p, program, 1, &ignored, &program->own,
                                                        &program->own_low, &program->own_high, err)
                                          : 0;
}

static int load_phases(struct profile *p, struct analysis_program *program, struct error *err)
{
    struct curve_point *points = calloc(POINTS, sizeof *points);
    if (!points)
        return error_set(err, -ENOMEM, "out of memory reading '%s'", program->profile);
    int code = analysis_program_phases(p, points, fill_sizes(points, program->line_bytes), program, err);
    free(points);
    return code;
}

int analysis_program_load(struct profile *p, const char *name, int paper, struct analysis_program *program,
                          struct error *err)
{
    char mode[16] = "";
    program->phase_curve = NULL;
    program->profile = name;
    program->phases = 0;
    name_program(p, program);
    load_rates(p, program);
    int code = profile_line_bytes(p, &program->line_bytes, err);
    (void)profile_get(p, "mode", mode, sizeof mode, NULL);
    program->full = strcmp(mode, "full") == 0;
    program->exact = program->full && analysis_extent(p) == EXTENT_ALL;
    if (code == 0)
        code = analysis_refuse_lines(p, name, err);
    if (code == 0)
        code = program->full ? load_full(p, paper, program, err) : load_sampled(p, program, err);
    if (code == 0)
        code = load_threads(p, paper, program, err);
    if (code == 0 && !paper)
        code = load_phases(p, program, err);
    if (code != 0)
        analysis_program_clear(program);
    return code;
}

void analysis_program_clear(struct analysis_program *program)
{
    free(program->phase_curve);
    program->phase_curve = NULL;
    program->phases = 0;
}
