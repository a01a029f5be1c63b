/* SPDX-License-Identifier: Apache-2.0 */
/*
 * corun_bursts.c - how much worse StatCC gets when it has profiles of bursts instead of all distances.
 *
 * A profile of bursts is of a run of many seconds, of which no simulator sees more than a moment. So programs
 * do the same work over and over: a round of it, simulated over and over, is the whole run. Both programs of
 * a pair run until each has made a round at least; then shares of rounds that one did not get to make do not
 * blur what is asked for. The model gets, once, the exact distances of rounds without end, and once the
 * profiles.
 *
 * Where the samples do not carry an answer there are only bounds. Errors are reported without those results,
 * and once more with the middle of the bounds for them; and how many results the bounds hold.
 */
#include "corun_bursts.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "corun_errors.h"
#include "analysis/program.h"

enum way { LOOPED, ANSWERED, MIDDLE, WAYS };
static const char *const way_name[WAYS] = {"exact curves", "bursts, where they answer",
                                           "bursts, else the middle of the bounds"};

struct bursts_outcome {
    struct errors_of_model of_way[WAYS];
    struct errors of_program[CORUN_BURSTS][WAYS];
    unsigned results, bounded;
};

static void add(struct bursts_outcome *out, enum way way, uint32_t number, const struct window *w,
                const struct corun_result *sim, const struct statcc_result *got)
{
    errors_add(&out->of_program[number][way], window_errors(&out->of_way[way], w, sim, got));
}

/*
 * Simulations do not depend on profiles: what they gave is kept in a file, a line each, for the next
 * profiles. Of a result only what is used here: references, hits of the first level, miss ratio, CPI.
 */
static int recall(FILE *kept, struct window *const pair[2], struct corun_result sim[2])
{
    char name[2][64];
    size_t n[2];
    rewind(kept);
    while (fscanf(kept, "%63s %zu %63s %zu", name[0], &n[0], name[1], &n[1]) == 4) {
        struct corun_result r[2] = {{0}, {0}};
        for (int i = 0; i < 2; i++)
            if (fscanf(kept, "%" SCNu64 " %" SCNu64 " %lf %lf", &r[i].references, &r[i].hits[0],
                       &r[i].miss_ratio, &r[i].cpi) != 4)
                return 0;
        if (strcmp(name[0], pair[0]->name) != 0 || strcmp(name[1], pair[1]->name) != 0 ||
            n[0] != pair[0]->n || n[1] != pair[1]->n)
            continue;
        memcpy(sim, r, sizeof r);
        return 1;
    }
    return 0;
}

static void keep(FILE *kept, struct window *const pair[2], const struct corun_result sim[2])
{
    fseek(kept, 0, SEEK_END);
    fprintf(kept, "%s %zu %s %zu", pair[0]->name, pair[0]->n, pair[1]->name, pair[1]->n);
    for (int i = 0; i < 2; i++)
        fprintf(kept, " %" PRIu64 " %" PRIu64 " %.17g %.17g", sim[i].references, sim[i].hits[0],
                sim[i].miss_ratio, sim[i].cpi);
    fputs("\n", kept);
    fflush(kept);
}

static void simulate(FILE *kept, struct window *const pair[2], struct corun_result sim[2])
{
    if (recall(kept, pair, sim))
        return;
    struct corun_config config = corun_statcc;
    struct window_stream at[2] = {{pair[0], 0}, {pair[1], 0}};
    struct corun_stream streams[2] = {window_stream(&at[0]), window_stream(&at[1])};
    struct error err;
    config.references = pair[0]->n > pair[1]->n ? pair[0]->n : pair[1]->n;
    config.until_all = 1;
    if (corun_run(&config, streams, 2, NULL, sim, &err) != 0)
        window_die("simulation", &err);
    keep(kept, pair, sim);
}

static void solve(const struct statcc_curve *const curves[2], const double mixes[2],
                  struct statcc_result results[2])
{
    struct statcc_program programs[2];
    struct statcc_solution solution;
    struct error err;
    for (int i = 0; i < 2; i++)
        programs[i] = statcc_paper_program(curves[i], mixes[i]);
    if (statcc_solve(&statcc_paper, programs, 2, results, &solution, &err) != 0)
        window_die("model", &err);
    if (!solution.converged)
        fputs("bench_corun: not converged\n", stderr);
}

static void compare(FILE *kept, struct window *const *windows, const uint32_t number[2],
                    struct knowledge *const *loops, struct analysis_program *const *profiles,
                    struct bursts_outcome *out)
{
    struct window *const pair[2] = {windows[number[0]], windows[number[1]]};
    const struct analysis_program *p[2] = {profiles[number[0]], profiles[number[1]]};
    const double mixes[2] = {pair[0]->references_per_instruction, pair[1]->references_per_instruction};
    const double reported[2] = {p[0]->references_per_instruction, p[1]->references_per_instruction};
    struct corun_result sim[2];
    struct statcc_result exact[2], best[2], low[2], high[2];
    simulate(kept, pair, sim);
    solve((const struct statcc_curve *const[2]){&loops[number[0]]->exact, &loops[number[1]]->exact}, mixes,
          exact);
    solve((const struct statcc_curve *const[2]){&p[0]->curve, &p[1]->curve}, reported, best);
    solve((const struct statcc_curve *const[2]){&p[0]->low, &p[1]->low}, reported, low);
    solve((const struct statcc_curve *const[2]){&p[0]->high, &p[1]->high}, reported, high);
    int unknown = best[0].unknown || best[1].unknown;
    for (int i = 0; i < 2; i++) {
        add(out, LOOPED, number[i], pair[i], &sim[i], &exact[i]);
        add(out, MIDDLE, number[i], pair[i], &sim[i], &best[i]);
        if (!unknown)
            add(out, ANSWERED, number[i], pair[i], &sim[i], &best[i]);
        out->results++;
        out->bounded += fmin(low[i].miss_ratio, high[i].miss_ratio) <= sim[i].miss_ratio &&
                        sim[i].miss_ratio <= fmax(low[i].miss_ratio, high[i].miss_ratio);
        fprintf(stderr, "%s%s:%.5f(%.5f,%.5f%s)", i ? "  " : "", pair[i]->name, sim[i].miss_ratio,
                exact[i].miss_ratio, best[i].miss_ratio, unknown ? "?" : "");
    }
    fputs("\n", stderr);
}

/* What scripts/bench-corun.sh measured of the program without us; NaN: it did not. */
static double native_ns(const char *folder, const char *name)
{
    char path[4096];
    double ns = NAN;
    snprintf(path, sizeof path, "%s/%s.ns", folder, name);
    FILE *f = fopen(path, "re");
    if (f && fscanf(f, "%lf", &ns) != 1)
        ns = NAN;
    if (f)
        fclose(f);
    return ns;
}

static struct analysis_program *load(const char *folder, const char *name)
{
    char path[4096];
    struct error err;
    struct analysis_program *p = window_need(malloc(sizeof *p));
    if ((size_t)snprintf(path, sizeof path, "%s/%s.db", folder, name) >= sizeof path)
        window_die("the folder's name is too long", NULL);
    struct profile *file;
    if (profile_open(path, &file, &err) != 0 || analysis_program_load(file, path, 0, p, &err) != 0)
        window_die(path, &err);
    profile_close(file, 0, NULL);
    p->profile = NULL; /* it was `path` */
    return p;
}

static void print(const char *folder, struct window *const *windows, uint32_t n,
                  struct knowledge *const *loops, struct analysis_program *const *profiles,
                  struct bursts_outcome *out)
{
    /* Each figure as it is, and as the profile of bursts tells it. */
    printf(
        "\n| program | ns an instruction | by bursts | references an instruction | by bursts | miss ratio at "
        "1M | by bursts | 2M | by bursts | eq. 4 mean %%, exact curves | bursts |\n"
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
    for (uint32_t i = 0; i < n; i++) {
        const struct analysis_program *p = profiles[i];
        printf("| %s | %.3f | %.3f | %.3f | %.3f | %.5f | %.5f | %.5f | %.5f | %.2f | %.2f |\n",
               windows[i]->name, native_ns(folder, windows[i]->name), p->ns_per_instruction,
               windows[i]->references_per_instruction, p->references_per_instruction,
               statcc_curve_miss(&loops[i]->exact, 16384), statcc_curve_miss(&p->curve, 16384),
               statcc_curve_miss(&loops[i]->exact, 32768), statcc_curve_miss(&p->curve, 32768),
               100 * errors_mean(&out->of_program[i][LOOPED]),
               100 * errors_mean(&out->of_program[i][MIDDLE]));
    }
    errors_print_head("pairs, from bursts");
    for (int way = 0; way < WAYS; way++)
        errors_print_model(way_name[way], &out->of_way[way]);
    printf("\n%zu of %u results are answered; bounds hold %u\n", out->of_way[ANSWERED].equation4.n,
           out->results, out->bounded);
}

void corun_bursts(struct window *const *windows, uint32_t n, const char *folder)
{
    struct bursts_outcome *out = window_need(calloc(1, sizeof *out));
    struct knowledge *loops[CORUN_BURSTS];
    struct analysis_program *profiles[CORUN_BURSTS];
    FILE *kept = window_need(fopen(CORUN_BURSTS_KEPT, "a+e"));
    if (n > CORUN_BURSTS)
        window_die("too many programs", NULL);
    for (uint32_t i = 0; i < n; i++) {
        profiles[i] = load(folder, windows[i]->name);
        loops[i] = window_need(calloc(1, sizeof *loops[i]));
        window_know_loop(windows[i], loops[i]);
    }
    for (uint32_t a = 0; a < n; a++)
        for (uint32_t b = a; b < n; b++)
            compare(kept, windows, (const uint32_t[2]){a, b}, loops, profiles, out);
    fclose(kept);
    print(folder, windows, n, loops, profiles, out);
    for (uint32_t i = 0; i < n; i++) {
        free(profiles[i]);
        free(loops[i]);
    }
    free(out);
}
