/* SPDX-License-Identifier: Apache-2.0 */
/*
 * StatCC against simulation, as the paper did it (Eklov's thesis, II.5; docs/methods.md, section 8): from the
 * middle of each trace a window; the seven programs whose miss ratio rises most from 2 MB to 1 MB and the
 * three where it rises least; all 55 pairs of these side by side in the simulator, from empty caches, until
 * one has made all references of its window. The model gets the distances of just the references that each
 * one made.
 *
 * usage: bench_corun [--rounds N] [--references N] [--quads N] [--profiles FOLDER [--only-bursts]] TRACE...
 *
 * Of each trace, NAME.cgt, which is N rounds of the same work, the middle round is the window, or the middle
 * --references of that. With --profiles all pairs run once more, each window over and over, and are modelled
 * from FOLDER/NAME.db, profiles of the same work done over and over (corun_bursts.c).
 *
 * Errors are the paper's eq. 4, (CPI(m) - CPI(m^)) / CPI(m), with the simulated miss ratio m and the
 * modelled m^ and all else equal; `outright` is the whole modelled CPI against the simulated one.
 */
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/random.h"
#include "corun_bursts.h"
#include "corun_errors.h"
#include "corun_window.h"

#define CHOSEN 10u
#define SENSITIVE 7u
#define GROUP 4u
#define GROUPS 1024u
#define DRAWS 32u /* of sampled distributions for each pair, as in the paper */

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* --- programs side by side in the simulator, and what is known of the references that each made --- */

struct group {
    uint32_t n, number[GROUP]; /* which of the windows; one may run next to itself */
    struct corun_result sim[GROUP];
    const struct knowledge *known[GROUP];
};

static void simulate(struct window *const *windows, struct group *g)
{
    struct window_stream at[GROUP];
    struct corun_stream streams[GROUP];
    struct error err;
    for (uint32_t i = 0; i < g->n; i++) {
        at[i] = (struct window_stream){windows[g->number[i]], 0};
        streams[i] = window_stream(&at[i]);
    }
    if (corun_run(&corun_statcc, streams, g->n, NULL, g->sim, &err) != 0)
        window_die("simulation", &err);
    for (uint32_t i = 0; i < g->n; i++)
        fprintf(stderr, "%s%s:%.5f cpi %.3f", i ? "  " : "", windows[g->number[i]]->name,
                g->sim[i].miss_ratio, g->sim[i].cpi);
    fputs("\n", stderr);
}

static int rising(const void *a, const void *b)
{
    size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return (x > y) - (x < y);
}

/* For all groups that a window is in. What it knows lives as long as the program. */
static void know(const struct window *w, uint32_t number, struct group *groups, uint32_t ngroups)
{
    size_t prefix[GROUPS * GROUP], n = 0, distinct = 0;
    for (uint32_t g = 0; g < ngroups; g++)
        for (uint32_t i = 0; i < groups[g].n; i++)
            if (groups[g].number[i] == number)
                prefix[n++] = (size_t)groups[g].sim[i].references;
    qsort(prefix, n, sizeof *prefix, rising);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || prefix[i] != prefix[distinct - 1])
            prefix[distinct++] = prefix[i];
    struct knowledge **known = window_need(calloc(distinct + 1, sizeof(struct knowledge *)));
    for (size_t i = 0; i < distinct; i++)
        known[i] = window_need(calloc(1, sizeof *known[i]));
    window_know(w, prefix, distinct, known);
    for (uint32_t g = 0; g < ngroups; g++)
        for (uint32_t i = 0; i < groups[g].n; i++)
            for (size_t k = 0; k < distinct && groups[g].number[i] == number; k++)
                if (prefix[k] == groups[g].sim[i].references)
                    groups[g].known[i] = known[k];
    free(known);
}

/* --- the model's side --- */

enum kind { EXACT, STATSTACK, KINDS };
static const char *const kind_name[KINDS] = {"exact curves", "StatStack (the paper's)"};

struct outcome {
    struct errors_of_model of_kind[KINDS];
    struct errors of_program[CHOSEN][KINDS];
    struct errors factor[3][3]; /* experiment 3: eq. 4 with CPI factors 0.9, 1, 1.1 of the two */
    struct errors sampled[2];   /* experiment 2: rates 1e-2, 1e-3 */
    double solve_s;             /* longest */
    unsigned failed;            /* did not converge */
};

static void model(struct window *const *programs, const struct statcc_curve *const *curves, uint32_t n,
                  const double *factors, struct statcc_result *results, struct outcome *out)
{
    struct statcc_program model[GROUP];
    struct statcc_solution solution;
    struct error err;
    for (uint32_t i = 0; i < n; i++) {
        model[i] = statcc_paper_program(curves[i], programs[i]->references_per_instruction);
        if (factors)
            model[i].cpi_factor = factors[i];
    }
    double before = now_s();
    if (statcc_solve(&statcc_paper, model, n, results, &solution, &err) != 0)
        window_die("model", &err);
    out->solve_s = fmax(out->solve_s, now_s() - before);
    out->failed += !solution.converged;
}

/* A random sample of the references of a histogram, as sparse sampling takes it. */
static void draw(const struct hist *from, uint64_t cold, double rate, struct random_state *random,
                 struct hist *to, uint64_t *dangling)
{
    memset(to, 0, sizeof *to);
    *dangling = 0;
    for (uint32_t b = 0; b <= HIST_BINS; b++) {
        uint64_t count = b < HIST_BINS ? from->count[b] : cold;
        double expected = rate * (double)count, kept = 0;
        if (expected > 50) { /* binomial, by its normal limit */
            double u = (double)(random_next(random) >> 11) * 0x1p-53 + 0x1p-54;
            double v = (double)(random_next(random) >> 11) * 0x1p-53;
            kept = fmax(
                0, rint(expected + sqrt(expected * (1 - rate)) * sqrt(-2 * log(u)) * cos(6.283185307 * v)));
        } else if (expected > 0) { /* Poisson */
            double left = exp(-expected);
            for (double product = 1;; kept++) {
                product *= (double)(random_next(random) >> 11) * 0x1p-53;
                if (product <= left)
                    break;
            }
        }
        if (b < HIST_BINS) {
            to->count[b] = (uint64_t)kept;
            to->total += (uint64_t)kept;
        } else {
            *dangling = (uint64_t)kept;
        }
    }
}

static void sampled(struct window *const *pair, const struct corun_result *sim,
                    const struct knowledge *const *known, struct random_state *random, struct outcome *out)
{
    static struct statcc_curve curve[2];
    static struct hist thin;
    const struct statcc_curve *const curves[2] = {&curve[0], &curve[1]};
    static const double rates[2] = {1e-2, 1e-3};
    struct statcc_result results[2];
    struct error err;
    for (int rate = 0; rate < 2; rate++)
        for (unsigned k = 0; k < DRAWS; k++) {
            for (int i = 0; i < 2; i++) {
                uint64_t dangling;
                draw(&known[i]->reuse, known[i]->cold, rates[rate], random, &thin, &dangling);
                if (statcc_curve_statstack(&thin, dangling, &curve[i], &err) != 0)
                    window_die("sampled distances", &err);
            }
            model(pair, curves, 2, NULL, results, out);
            for (int i = 0; i < 2; i++) {
                errors_add(&out->sampled[rate], window_error(pair[i], &sim[i], results[i].miss_ratio));
            }
        }
}

static void compare(struct window *const *windows, const struct group *g, struct outcome *out)
{
    const struct statcc_curve *curves[GROUP];
    struct window *w[GROUP];
    struct statcc_result got[GROUP];
    for (uint32_t i = 0; i < g->n; i++)
        w[i] = windows[g->number[i]];
    for (int kind = 0; kind < KINDS; kind++) {
        for (uint32_t i = 0; i < g->n; i++)
            curves[i] = kind == EXACT ? &g->known[i]->exact : &g->known[i]->statstack;
        model(w, curves, g->n, NULL, got, out);
        for (uint32_t i = 0; i < g->n; i++) {
            double error = window_errors(&out->of_kind[kind], w[i], &g->sim[i], &got[i]);
            errors_add(&out->of_program[g->number[i]][kind], error);
        }
    }
}

/* The paper's experiments 2 and 3, on a pair. */
static void experiment(struct window *const *windows, const struct group *g, struct random_state *random,
                       struct outcome *out)
{
    const struct statcc_curve *curves[2] = {&g->known[0]->statstack, &g->known[1]->statstack};
    struct window *w[2] = {windows[g->number[0]], windows[g->number[1]]};
    struct statcc_result wrong[2];
    for (int a = 0; a < 3; a++)
        for (int b = 0; b < 3; b++) {
            double factors[2] = {0.9 + 0.1 * a, 0.9 + 0.1 * b};
            model(w, curves, 2, factors, wrong, out);
            for (int i = 0; i < 2; i++)
                errors_add(&out->factor[a][b], window_error(w[i], &g->sim[i], wrong[i].miss_ratio));
        }
    sampled(w, g->sim, g->known, random, out);
}

/* --- choosing, running, telling --- */

static int by_rise(const void *a, const void *b)
{
    const struct window *x = *(struct window *const *)a, *y = *(struct window *const *)b;
    return (x->rise < y->rise) - (x->rise > y->rise);
}

/*
 * Those of the highest rise and those of the lowest, in this order, one more at a time: that between the two
 * is none of either, whatever comes later. Returns how many there are now.
 */
static uint32_t keep_chosen(struct window **windows, uint32_t n)
{
    qsort(windows, n, sizeof *windows, by_rise);
    if (n <= CHOSEN)
        return n;
    free(windows[SENSITIVE]->touch);
    free(windows[SENSITIVE]);
    memmove(&windows[SENSITIVE], &windows[SENSITIVE + 1], (n - SENSITIVE - 1) * sizeof(struct window *));
    return n - 1;
}

static void print_outcome(const char *title, struct outcome *out)
{
    errors_print_head(title);
    for (int kind = 0; kind < KINDS; kind++)
        errors_print_model(kind_name[kind], &out->of_kind[kind]);
    printf("\nLongest solution %.1f ms; not converged: %u\n", 1e3 * out->solve_s, out->failed);
}

static void print_experiments(struct outcome *out)
{
    static const char *const rate_name[2] = {"1e-2", "1e-3"};
    errors_print_head("sampled at rate (StatStack)");
    for (int rate = 0; rate < 2; rate++)
        errors_print(rate_name[rate], &out->sampled[rate]);
    printf("\nMean eq. 4 error, %%, with CPIs wrong by a factor (rows: first program; StatStack)\n\n"
           "| | 0.9 | 1.0 | 1.1 |\n| --- | --- | --- | --- |\n");
    for (int a = 0; a < 3; a++)
        printf("| %.1f | %.2f | %.2f | %.2f |\n", 0.9 + 0.1 * a, 100 * errors_mean(&out->factor[a][0]),
               100 * errors_mean(&out->factor[a][1]), 100 * errors_mean(&out->factor[a][2]));
}

static void print_programs(struct window *const *windows, uint32_t n, struct outcome *out)
{
    printf("| program | touches, millions | references an instruction | miss ratio at 32K | 1M | 2M | eq. 4 "
           "mean %%, "
           "exact curves | StatStack |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n");
    for (uint32_t i = 0; i < n; i++) {
        struct knowledge *whole = window_need(calloc(1, sizeof *whole));
        window_know(windows[i], &windows[i]->n, 1, &whole);
        printf("| %s | %.0f | %.3f | %.5f | %.5f | %.5f | %.2f | %.2f |\n", windows[i]->name,
               1e-6 * (double)windows[i]->n, windows[i]->references_per_instruction,
               statcc_curve_miss(&whole->exact, 512), statcc_curve_miss(&whole->exact, 16384),
               statcc_curve_miss(&whole->exact, 32768), 100 * errors_mean(&out->of_program[i][EXACT]),
               100 * errors_mean(&out->of_program[i][STATSTACK]));
        free(whole);
    }
}

struct arguments {
    unsigned rounds;
    size_t references;
    uint32_t quads;
    const char *profiles;
    int only_bursts;
};

/* Pairs first, then quads: how many groups. */
static uint32_t make_groups(const struct arguments *a, uint32_t n, struct random_state *random,
                            struct group *groups, uint32_t *pairs)
{
    uint32_t made = 0;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = i; k < n; k++)
            groups[made++] = (struct group){.n = 2, .number = {i, k}};
    *pairs = made;
    for (uint32_t i = 0; i < a->quads && made < GROUPS; i++) {
        struct group *g = &groups[made++];
        *g = (struct group){.n = 4};
        for (uint32_t k = 0; k < 4; k++)
            g->number[k] = (uint32_t)random_below(random, n);
    }
    return made;
}

static void run(const struct arguments *a, struct window *const *windows, uint32_t n)
{
    struct outcome *two = window_need(calloc(1, sizeof *two)), *four = window_need(calloc(1, sizeof *four));
    struct group *groups = window_need(calloc(GROUPS, sizeof *groups));
    struct random_state random;
    uint32_t pairs;
    random_seed(&random, 1);
    uint32_t ngroups = make_groups(a, n, &random, groups, &pairs);
    for (uint32_t g = 0; g < ngroups; g++)
        simulate(windows, &groups[g]);
    for (uint32_t i = 0; i < n; i++)
        know(windows[i], i, groups, ngroups);
    for (uint32_t g = 0; g < ngroups; g++)
        compare(windows, &groups[g], g < pairs ? two : four);
    for (uint32_t g = 0; g < pairs; g++)
        experiment(windows, &groups[g], &random, two);
    print_programs(windows, n, two);
    print_outcome("pairs", two);
    print_experiments(two);
    if (a->quads)
        print_outcome("random quads", four);
    fflush(stdout);
    free(groups);
    free(two);
    free(four);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"references", required_argument, NULL, 'r'}, {"rounds", required_argument, NULL, 'n'},
        {"quads", required_argument, NULL, 'q'},      {"profiles", required_argument, NULL, 'p'},
        {"only-bursts", no_argument, NULL, 'o'},      {NULL, 0, NULL, 0}};
    struct arguments a = {.rounds = 1, .quads = 20};
    struct window *windows[CHOSEN + 1];
    uint32_t n = 0;
    int opt;
    while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (opt == 'r')
            a.references = strtoul(optarg, NULL, 10);
        else if (opt == 'n')
            a.rounds = (unsigned)strtoul(optarg, NULL, 10);
        else if (opt == 'q')
            a.quads = (uint32_t)strtoul(optarg, NULL, 10);
        else if (opt == 'p')
            a.profiles = optarg;
        else if (opt == 'o')
            a.only_bursts = 1;
        else
            return 2;
    }
    for (int i = optind; i < argc && a.rounds > 0; i++) {
        windows[n] = window_need(malloc(sizeof *windows[n]));
        window_load(windows[n], argv[i], a.rounds, a.references);
        n = keep_chosen(windows, n + 1);
    }
    if (n < 2)
        window_die("too few traces", NULL);
    if (!a.only_bursts)
        run(&a, windows, n);
    if (a.profiles)
        corun_bursts(windows, n, a.profiles);
    return 0;
}
