/* SPDX-License-Identifier: Apache-2.0 */
/*
 * StatCC against simulation, as the paper did it (Eklov's thesis, II.5; METHODS.md 6): from the middle of
 * each trace a window; the seven programs whose miss ratio rises most from 2 MB to 1 MB and the three where
 * it rises least; all 55 pairs of these side by side in the simulator, from empty caches, until one has made
 * all references of its window. The model gets the distances of just the references that each one made.
 *
 * usage: bench_corun [--references N] [--pairs all|none] [--quads N] TRACE...
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
#include "model/statcc.h"
#include "sim/corun.h"
#include "sim/stackdist.h"
#include "trace/trace.h"

#define CHOSEN 10u
#define SENSITIVE 7u
#define TRACES 64u
#define GROUP 8u
#define MB_LINES 16384.0
#define DRAWS 32u /* of sampled distributions for each pair, as in the paper */

/* Lines are kept as 31 bits and a store flag: the low 20 as they are, for the sets; above, 64 MB regions. */
#define REGION_BITS 20u
#define REGIONS 2048u

struct program {
    char name[64];
    uint32_t *touch; /* line << 1 | store */
    size_t n, next;
    double references_per_instruction;
    double rise; /* of the miss ratio, from 2 MB to 1 MB */
    uint64_t region[REGIONS];
    uint32_t regions;
};

/* What the model knows of the first `n` touches of a program. */
struct knowledge {
    struct hist stack, reuse;
    uint64_t cold;
    struct statcc_curve exact, statstack;
};

static void die(const char *what, const struct error *err)
{
    fprintf(stderr, "bench_corun: %s: %s\n", what, err ? err->text : "failed");
    exit(1);
}

static void *need(void *memory)
{
    if (!memory)
        die("memory", NULL);
    return memory;
}

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* --- windows of traces --- */

static uint32_t pack(struct program *p, uint64_t line, int store)
{
    uint64_t region = line >> REGION_BITS;
    uint32_t i = 0;
    while (i < p->regions && p->region[i] != region)
        i++;
    if (i == p->regions) {
        if (i == REGIONS)
            die(p->name, NULL);
        p->region[p->regions++] = region;
    }
    return (i << REGION_BITS | (uint32_t)(line & ((1u << REGION_BITS) - 1))) << 1 | (store != 0);
}

static int take(struct program *p, const struct trace_batch *batch, size_t from, size_t want)
{
    for (size_t i = from; i < batch->n && p->n < want; i++) {
        uint64_t line = batch->address[i] / 64, last = (batch->address[i] + batch->size[i] - 1) / 64;
        for (; line <= last && p->n < want; line++)
            p->touch[p->n++] = pack(p, line, batch->rw[i] == TRACE_STORE);
    }
    return p->n < want;
}

/* 0 if the trace is shorter than the window. References an instruction are those of the whole trace. */
static int load(struct program *p, const char *path, size_t want)
{
    const char *slash = strrchr(path, '/');
    struct trace_batch batch;
    struct error err;
    int status;
    snprintf(p->name, sizeof p->name, "%s", slash ? slash + 1 : path);
    p->name[strcspn(p->name, ".")] = 0;
    struct trace_reader *r = trace_open(path, NULL, &err);
    if (!r)
        die(path, &err);
    uint64_t all = trace_info(r)->references, seen = 0, more = 1;
    if (all == TRACE_UNKNOWN || all < want) {
        trace_close(r);
        return 0;
    }
    uint64_t begin = (all - want) / 2;
    p->touch = need(malloc(want * sizeof *p->touch));
    while ((status = trace_next(r, &batch, &err)) > 0) {
        uint64_t end = seen + batch.n;
        if (end > begin && more)
            more = (uint64_t)take(p, &batch, begin > seen ? (size_t)(begin - seen) : 0, want);
        seen = end;
    }
    if (status < 0)
        die(path, &err);
    uint64_t instructions = trace_info(r)->instructions;
    trace_close(r);
    p->references_per_instruction = instructions ? (double)seen / (double)instructions : 0.35;
    if (!instructions)
        fprintf(stderr, "bench_corun: %s does not tell instructions; taking 0.35 references each\n", path);
    return p->n == want;
}

static void know(const struct program *p, size_t n, struct knowledge *k)
{
    enum { BATCH = 4096 };
    uint64_t lines[BATCH];
    struct error err;
    struct stackdist *sd = need(stackdist_new(0, &err));
    memset(&k->stack, 0, sizeof k->stack);
    memset(&k->reuse, 0, sizeof k->reuse);
    k->cold = 0;
    for (size_t i = 0; i < n;) {
        size_t m = 0;
        while (m < BATCH && i < n)
            lines[m++] = p->touch[i++] >> 1;
        if (stackdist_touch_many(sd, lines, m, &k->stack, &k->reuse, NULL, &k->cold) != 0)
            die("memory", NULL);
    }
    stackdist_free(sd);
    if (statcc_curve_statstack(&k->reuse, k->cold, &k->statstack, &err) != 0 ||
        statcc_curve_exact(&k->stack, &k->reuse, k->cold, &k->exact, &err) != 0)
        die(p->name, &err);
}

/* --- the simulator's side --- */

static int64_t read_touches(void *context, uint64_t *accesses, size_t room, struct error *err)
{
    struct program *p = context;
    (void)err;
    size_t n = p->n - p->next < room ? p->n - p->next : room;
    for (size_t i = 0; i < n; i++) {
        uint64_t touch = p->touch[p->next + i];
        accesses[i] = touch >> 1 << SIM_LINE_SHIFT | (touch & 1 ? SIM_STORE : 0);
    }
    p->next += n;
    return (int64_t)n;
}

static int restart(void *context, struct error *err)
{
    (void)err;
    ((struct program *)context)->next = 0;
    return 0;
}

static void simulate(struct program *const *programs, uint32_t n, struct corun_result *results)
{
    struct program copy[GROUP]; /* a program may run beside itself */
    struct corun_stream streams[GROUP];
    struct error err;
    for (uint32_t i = 0; i < n; i++) {
        copy[i] = *programs[i];
        copy[i].next = 0;
        streams[i] =
            (struct corun_stream){read_touches, restart, &copy[i], programs[i]->references_per_instruction};
    }
    if (corun_run(&corun_statcc, streams, n, NULL, results, &err) != 0)
        die("simulation", &err);
}

/* --- the model's side, and errors --- */

enum kind { EXACT, STATSTACK, KINDS };
static const char *const kind_name[KINDS] = {"exact curves", "StatStack (the paper's)"};

struct errors {
    double value[4096];
    size_t n;
};

static void add_error(struct errors *e, double value)
{
    if (e->n < sizeof e->value / sizeof e->value[0])
        e->value[e->n++] = fabs(value);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile(struct errors *e, double q)
{
    qsort(e->value, e->n, sizeof e->value[0], ascending);
    return e->n ? e->value[(size_t)(q * (double)(e->n - 1) + 0.5)] : NAN;
}

static double mean(const struct errors *e)
{
    double sum = 0;
    for (size_t i = 0; i < e->n; i++)
        sum += e->value[i];
    return sum / (double)e->n;
}

static double below(const struct errors *e, double limit)
{
    size_t n = 0;
    for (size_t i = 0; i < e->n; i++)
        n += e->value[i] < limit;
    return (double)n / (double)e->n;
}

static void print_errors(const char *what, struct errors *e)
{
    printf("| %s | %.2f | %.2f | %.2f | %.2f | %.0f |\n", what, 100 * mean(e), 100 * quantile(e, 0.5),
           100 * quantile(e, 0.9), 100 * quantile(e, 1), 100 * below(e, 0.05));
}

static void print_errors_head(const char *first)
{
    printf("\n| %s | mean %% | median %% | 90%% below %% | worst %% | share below 5%% |\n"
           "| --- | --- | --- | --- | --- | --- |\n",
           first);
}

/* CPI with a miss ratio of the shared cache, all other things as simulated. */
static double cpi_of(const struct program *p, const struct corun_result *r, double miss)
{
    double first = (double)r->hits[0] / (double)r->references;
    return 1 + p->references_per_instruction * (first + 10 * (1 - first - miss) + 130 * miss);
}

struct outcome {
    struct errors equation4[KINDS], outright[KINDS], miss[KINDS];
    struct errors of_program[CHOSEN][KINDS];
    struct errors factor[3][3]; /* experiment 3: eq. 4 with CPI factors 0.9, 1, 1.1 of the two */
    struct errors sampled[2];   /* experiment 2: rates 1e-2, 1e-3 */
    double solve_s;             /* longest */
    unsigned failed;            /* did not converge */
};

static void model(struct program *const *programs, const struct statcc_curve *const *curves, uint32_t n,
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
        die("model", &err);
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

static void sampled(struct program *const *pair, const struct corun_result *sim,
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
                    die("sampled distances", &err);
            }
            model(pair, curves, 2, NULL, results, out);
            for (int i = 0; i < 2; i++) {
                double cpi = cpi_of(pair[i], &sim[i], sim[i].miss_ratio);
                add_error(&out->sampled[rate], 1 - cpi_of(pair[i], &sim[i], results[i].miss_ratio) / cpi);
            }
        }
}

/* Knowledge of the references that program i made; the whole windows' is at hand. */
static const struct knowledge *knowledge_of(const struct program *p, uint64_t references,
                                            const struct knowledge *whole, struct knowledge *room)
{
    if (references == p->n)
        return whole;
    know(p, (size_t)references, room);
    return room;
}

static void compare(struct program *const *programs, const uint32_t *number, uint32_t n,
                    struct knowledge *whole, struct knowledge *room, int experiments,
                    struct random_state *random, struct outcome *out)
{
    const struct statcc_curve *curves[KINDS][GROUP];
    const struct knowledge *known[GROUP];
    struct program *group[GROUP];
    struct corun_result sim[GROUP];
    struct statcc_result got[KINDS][GROUP];
    for (uint32_t i = 0; i < n; i++)
        group[i] = programs[number[i]];
    simulate(group, n, sim);
    for (uint32_t i = 0; i < n; i++) {
        known[i] = knowledge_of(group[i], sim[i].references, &whole[number[i]], &room[i]);
        curves[EXACT][i] = &known[i]->exact;
        curves[STATSTACK][i] = &known[i]->statstack;
    }
    for (int kind = 0; kind < KINDS; kind++) {
        model(group, curves[kind], n, NULL, got[kind], out);
        for (uint32_t i = 0; i < n; i++) {
            double cpi = cpi_of(group[i], &sim[i], sim[i].miss_ratio);
            double error = 1 - cpi_of(group[i], &sim[i], got[kind][i].miss_ratio) / cpi;
            add_error(&out->equation4[kind], error);
            add_error(&out->of_program[number[i]][kind], error);
            add_error(&out->outright[kind], 1 - got[kind][i].cpi / sim[i].cpi);
            add_error(&out->miss[kind], got[kind][i].miss_ratio - sim[i].miss_ratio);
        }
    }
    for (uint32_t i = 0; i < n; i++)
        fprintf(stderr, "%s%s:%.5f(%.5f,%.5f) cpi %.3f(%.3f,%.3f)", i ? "  " : "", group[i]->name,
                sim[i].miss_ratio, got[EXACT][i].miss_ratio, got[STATSTACK][i].miss_ratio, sim[i].cpi,
                got[EXACT][i].cpi, got[STATSTACK][i].cpi);
    fputs("\n", stderr);
    if (!experiments)
        return;
    for (int a = 0; a < 3; a++)
        for (int b = 0; b < 3; b++) {
            double factors[2] = {0.9 + 0.1 * a, 0.9 + 0.1 * b};
            struct statcc_result wrong[2];
            model(group, curves[STATSTACK], 2, factors, wrong, out);
            for (int i = 0; i < 2; i++) {
                double cpi = cpi_of(group[i], &sim[i], sim[i].miss_ratio);
                add_error(&out->factor[a][b], 1 - cpi_of(group[i], &sim[i], wrong[i].miss_ratio) / cpi);
            }
        }
    sampled(group, sim, known, random, out);
}

/* --- choosing, running, telling --- */

static int by_rise(const void *a, const void *b)
{
    const struct program *x = *(struct program *const *)a, *y = *(struct program *const *)b;
    return (x->rise < y->rise) - (x->rise > y->rise);
}

/* Seven of the highest rise and three of the lowest come first. */
static uint32_t choose(struct program **programs, uint32_t n)
{
    qsort(programs, n, sizeof *programs, by_rise);
    for (uint32_t i = CHOSEN - SENSITIVE; i > 0 && n > CHOSEN; i--) {
        struct program *last = programs[n - i];
        programs[n - i] = programs[CHOSEN - i];
        programs[CHOSEN - i] = last;
    }
    return n < CHOSEN ? n : CHOSEN;
}

static void print_outcome(const char *title, struct outcome *out)
{
    char what[128];
    print_errors_head(title);
    for (int kind = 0; kind < KINDS; kind++) {
        snprintf(what, sizeof what, "%s, eq. 4", kind_name[kind]);
        print_errors(what, &out->equation4[kind]);
        snprintf(what, sizeof what, "%s, CPI outright", kind_name[kind]);
        print_errors(what, &out->outright[kind]);
        snprintf(what, sizeof what, "%s, miss ratio (points)", kind_name[kind]);
        print_errors(what, &out->miss[kind]);
    }
    printf("\nLongest solution %.1f ms; not converged: %u\n", 1e3 * out->solve_s, out->failed);
}

static void print_experiments(struct outcome *out)
{
    static const char *const rate_name[2] = {"1e-2", "1e-3"};
    print_errors_head("sampled at rate (StatStack)");
    for (int rate = 0; rate < 2; rate++)
        print_errors(rate_name[rate], &out->sampled[rate]);
    printf("\nMean eq. 4 error, %%, with CPIs wrong by a factor (rows: first program; StatStack)\n\n"
           "| | 0.9 | 1.0 | 1.1 |\n| --- | --- | --- | --- |\n");
    for (int a = 0; a < 3; a++)
        printf("| %.1f | %.2f | %.2f | %.2f |\n", 0.9 + 0.1 * a, 100 * mean(&out->factor[a][0]),
               100 * mean(&out->factor[a][1]), 100 * mean(&out->factor[a][2]));
}

static void print_programs(struct program *const *programs, uint32_t n, const struct knowledge *whole,
                           struct outcome *out)
{
    printf(
        "| program | references an instruction | miss ratio at 32K | 1M | 2M | eq. 4 mean %%, exact curves | "
        "StatStack |\n| --- | --- | --- | --- | --- | --- | --- |\n");
    for (uint32_t i = 0; i < n; i++)
        printf("| %s | %.3f | %.5f | %.5f | %.5f | %.2f | %.2f |\n", programs[i]->name,
               programs[i]->references_per_instruction, statcc_curve_miss(&whole[i].exact, 512),
               statcc_curve_miss(&whole[i].exact, MB_LINES), statcc_curve_miss(&whole[i].exact, 2 * MB_LINES),
               100 * mean(&out->of_program[i][EXACT]), 100 * mean(&out->of_program[i][STATSTACK]));
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"references", required_argument, NULL, 'r'},
                                            {"pairs", required_argument, NULL, 'p'},
                                            {"quads", required_argument, NULL, 'q'},
                                            {NULL, 0, NULL, 0}};
    struct program *programs[TRACES];
    struct random_state random;
    size_t references = 20000000;
    uint32_t n = 0, quads = 20;
    int opt, pairs = 1;
    while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (opt == 'r')
            references = strtoul(optarg, NULL, 10);
        else if (opt == 'p')
            pairs = strcmp(optarg, "all") == 0;
        else if (opt == 'q')
            quads = (uint32_t)strtoul(optarg, NULL, 10);
        else
            return 2;
    }
    struct knowledge *whole = need(calloc(TRACES, sizeof *whole)), *room = need(calloc(GROUP, sizeof *room));
    struct outcome *two = need(calloc(1, sizeof *two)), *four = need(calloc(1, sizeof *four));
    for (int i = optind; i < argc && n < TRACES; i++) {
        struct program *p = need(calloc(1, sizeof *p));
        if (!load(p, argv[i], references)) {
            fprintf(stderr, "bench_corun: %s is shorter than %zu references\n", argv[i], references);
            free(p);
            continue;
        }
        know(p, p->n, whole);
        p->rise = statcc_curve_miss(&whole->exact, MB_LINES) - statcc_curve_miss(&whole->exact, 2 * MB_LINES);
        fprintf(stderr, "%-12s rise %.5f at 2M %.5f cold %.5f\n", p->name, p->rise,
                statcc_curve_miss(&whole->exact, 2 * MB_LINES), (double)whole->cold / (double)p->n);
        programs[n++] = p;
    }
    uint32_t taken = choose(programs, n);
    if (taken < 2)
        die("too few traces that are long enough", NULL);
    for (uint32_t i = taken; i < n; i++) {
        free(programs[i]->touch);
        programs[i]->touch = NULL;
    }
    for (uint32_t i = 0; i < taken; i++)
        know(programs[i], programs[i]->n, &whole[i]);
    random_seed(&random, 1);
    for (uint32_t a = 0; a < taken && pairs; a++)
        for (uint32_t b = a; b < taken; b++) {
            const uint32_t pair[2] = {a, b};
            compare(programs, pair, 2, whole, room, 1, &random, two);
        }
    if (pairs) {
        print_programs(programs, taken, whole, two);
        print_outcome("pairs", two);
        print_experiments(two);
    }
    for (uint32_t i = 0; i < quads; i++) {
        uint32_t quad[4];
        for (int k = 0; k < 4; k++)
            quad[k] = (uint32_t)random_below(&random, taken);
        compare(programs, quad, 4, whole, room, 0, &random, four);
    }
    if (quads)
        print_outcome("random quads", four);
    return 0;
}
