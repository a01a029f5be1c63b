/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Assignment of programs to shared caches (docs/methods.md, section 10).
 *
 * Up to ASSIGNMENT_EXACT programs a group is a bit mask, and the cost of every group that fits on a cache is
 * computed once. best[m][set], the least goal with the programs of `set` on the first m caches, is the
 * minimum over the subsets of `set` that go to cache m: 3^programs steps per cache.
 *
 * Beyond, an assignment is improved by moving one program, or swapping two, as long as that helps, from
 * several starts: dealt in turn, and random ones. The lower bound is what no assignment can avoid: if there
 * are fewer caches than programs, at least programs - caches of them share (a cache with k programs has k - 1
 * more than one), and each that shares is slowed at least as much as next to its best companion, since one
 * more program only takes cache away. So the bound has all programs alone on their best cache, except the
 * programs - caches that their best companions slow least.
 *
 * Example: two caches of two cores; programs A and B stream; X and Y are each slowed by 1 by a streaming
 * program next to them. {A, B} {X, Y} costs 4, {A, X} {B, Y} costs 1 + 2 + 1 + 2 = 6.
 */
#include "model/cache-assignment.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/random.h"

#define RANDOM_ASSIGNMENTS 100u
#define STARTS 8u

/* Costs computed so far, by set and kind of cache: open addressing. */
struct known {
    uint64_t set;
    uint32_t kind, used;
    double cost;
};

struct groups {
    const struct assignment_problem *problem;
    uint32_t kind[ASSIGNMENT_CACHES]; /* first cache that is equal */
    struct known *known;
    size_t capacity, n;
};

static double join(enum assignment_goal goal, double a, double b)
{
    return goal == ASSIGNMENT_TOTAL ? a + b : fmax(a, b);
}

static struct known *find(const struct groups *g, uint64_t set, uint32_t kind)
{
    uint64_t hash = (set * UINT64_C(0x9e3779b97f4a7c15) + kind) * UINT64_C(0xff51afd7ed558ccd);
    for (size_t i = (size_t)(hash >> 20);; i++) {
        struct known *k = &g->known[i & (g->capacity - 1)];
        if (!k->used || (k->set == set && k->kind == kind))
            return k;
    }
}

static int grow(struct groups *g, struct error *err)
{
    struct groups larger = *g;
    larger.capacity = g->capacity ? 2 * g->capacity : 1024;
    larger.known = calloc(larger.capacity, sizeof *larger.known);
    if (!larger.known)
        return error_set(err, -ENOMEM, "out of memory for the costs of groups of programs");
    for (size_t i = 0; i < g->capacity; i++)
        if (g->known[i].used)
            *find(&larger, g->known[i].set, g->known[i].kind) = g->known[i];
    free(g->known);
    *g = larger;
    return 0;
}

/* The cost of a set of programs on a cache. each, if not NULL, gets their slowdowns (computed again). */
static int cost_of(struct groups *g, uint64_t set, uint32_t cache, double *cost, double *each,
                   struct error *err)
{
    uint32_t members[ASSIGNMENT_PROGRAMS], n = 0;
    double slowdown[ASSIGNMENT_PROGRAMS];
    *cost = 0;
    if (set == 0)
        return 0;
    int code = 2 * (g->n + 1) > g->capacity ? grow(g, err) : 0;
    if (code != 0)
        return code;
    struct known *k = find(g, set, g->kind[cache]);
    if (k->used && !each) {
        *cost = k->cost;
        return 0;
    }
    for (uint32_t i = 0; i < g->problem->programs; i++)
        if (set >> i & 1)
            members[n++] = i;
    code = g->problem->slowdowns(g->problem->context, members, n, &g->problem->caches[cache], slowdown, err);
    for (uint32_t i = 0; i < n && code == 0; i++) {
        *cost = join(g->problem->goal, *cost, slowdown[i]);
        if (each)
            each[members[i]] = slowdown[i];
    }
    if (code == 0 && !k->used) {
        *k = (struct known){set, g->kind[cache], 1, *cost};
        g->n++;
    }
    return code;
}

static uint32_t count(uint64_t set)
{
    return (uint32_t)__builtin_popcountll(set);
}

/* The goal of an assignment, given as a set for each cache. */
static int evaluate(struct groups *g, const uint64_t *sets, double *goal, struct error *err)
{
    int code = 0;
    *goal = 0;
    for (uint32_t m = 0; m < g->problem->ncaches && code == 0; m++) {
        double cost;
        code = cost_of(g, sets[m], m, &cost, NULL, err);
        *goal = join(g->problem->goal, *goal, cost);
    }
    return code;
}

/* --- exact --- */

static int solve_exact(struct groups *g, uint64_t *sets, struct error *err)
{
    const struct assignment_problem *p = g->problem;
    const uint64_t all = (UINT64_C(1) << p->programs) - 1;
    const size_t size = (size_t)all + 1;
    double *best = malloc((p->ncaches + 1) * size * sizeof *best);
    uint32_t *taken = malloc(p->ncaches * size * sizeof *taken);
    int code = best && taken ? 0 : error_set(err, -ENOMEM, "out of memory for %zu assignments", size);
    for (size_t set = 0; set < size && code == 0; set++)
        best[set] = set ? INFINITY : 0;
    for (uint32_t m = 0; m < p->ncaches && code == 0; m++) {
        const double *before = best + m * size;
        double *after = best + (m + 1) * size;
        for (uint64_t set = 0; set <= all && code == 0; set++) {
            after[set] = INFINITY;
            for (uint64_t part = set;; part = (part - 1) & set) {
                double cost, rest = before[set & ~part];
                if (count(part) <= p->caches[m].cores && rest < after[set]) {
                    code = cost_of(g, part, m, &cost, NULL, err);
                    if (code != 0)
                        break;
                    if (join(p->goal, rest, cost) < after[set]) {
                        after[set] = join(p->goal, rest, cost);
                        taken[m * size + set] = (uint32_t)part;
                    }
                }
                if (part == 0)
                    break;
            }
        }
    }
    uint64_t left = all;
    for (uint32_t m = p->ncaches; m-- > 0 && code == 0;) {
        sets[m] = taken[m * size + left];
        left &= ~sets[m];
    }
    free(best);
    free(taken);
    return code;
}

/* --- search --- */

/* Round robin: each program, in the given order, to the next cache with a free core. */
static void assign_round_robin(const struct assignment_problem *p, const uint32_t *order, uint64_t *sets)
{
    uint32_t m = 0;
    memset(sets, 0, ASSIGNMENT_CACHES * sizeof *sets);
    for (uint32_t i = 0; i < p->programs; i++) {
        while (count(sets[m]) == p->caches[m].cores)
            m = (m + 1) % p->ncaches;
        sets[m] |= UINT64_C(1) << order[i];
        m = (m + 1) % p->ncaches;
    }
}

/* Each program to a random free core. */
static void assign_random(const struct assignment_problem *p, struct random_state *random, uint64_t *sets)
{
    memset(sets, 0, ASSIGNMENT_CACHES * sizeof *sets);
    for (uint32_t i = 0; i < p->programs; i++) {
        uint64_t free_cores = 0;
        for (uint32_t m = 0; m < p->ncaches; m++)
            free_cores += p->caches[m].cores - count(sets[m]);
        uint64_t pick = random_below(random, free_cores);
        for (uint32_t m = 0; m < p->ncaches; m++) {
            uint64_t here = p->caches[m].cores - count(sets[m]);
            if (pick < here) {
                sets[m] |= UINT64_C(1) << i;
                break;
            }
            pick -= here;
        }
    }
}

/* Gives caches a and b these sets if that improves the goal. */
static int try_sets(struct groups *g, uint64_t *sets, uint32_t a, uint64_t set_a, uint32_t b, uint64_t set_b,
                    double *goal, int *better, struct error *err)
{
    uint64_t was_a = sets[a], was_b = sets[b];
    double changed;
    sets[a] = set_a;
    sets[b] = set_b;
    int code = evaluate(g, sets, &changed, err);
    if (code == 0 && changed < *goal - 1e-12) {
        *goal = changed;
        *better = 1;
        return 0;
    }
    sets[a] = was_a;
    sets[b] = was_b;
    return code;
}

static int improve(struct groups *g, uint64_t *sets, double *goal, struct error *err)
{
    const struct assignment_problem *p = g->problem;
    int code = evaluate(g, sets, goal, err), better = 1;
    while (better && code == 0) {
        better = 0;
        for (uint32_t a = 0; a < p->ncaches; a++)
            for (uint32_t b = 0; b < p->ncaches; b++)
                for (uint32_t i = 0; i < p->programs && a != b; i++) {
                    uint64_t one = UINT64_C(1) << i;
                    if (sets[a] & one && count(sets[b]) < p->caches[b].cores && code == 0)
                        code = try_sets(g, sets, a, sets[a] & ~one, b, sets[b] | one, goal, &better, err);
                    for (uint32_t k = 0; k < p->programs && a < b && code == 0; k++) {
                        uint64_t two = UINT64_C(1) << k;
                        if (sets[a] & one && sets[b] & two)
                            code = try_sets(g, sets, a, (sets[a] & ~one) | two, b, (sets[b] & ~two) | one,
                                            goal, &better, err);
                    }
                }
    }
    return code;
}

static int solve_search(struct groups *g, struct random_state *random, uint64_t *sets, struct error *err)
{
    uint32_t order[ASSIGNMENT_PROGRAMS];
    double least = INFINITY;
    int code = 0;
    for (uint32_t i = 0; i < g->problem->programs; i++)
        order[i] = i;
    for (uint32_t start = 0; start < STARTS && code == 0; start++) {
        uint64_t tried[ASSIGNMENT_CACHES];
        double goal;
        if (start == 0)
            assign_round_robin(g->problem, order, tried);
        else
            assign_random(g->problem, random, tried);
        code = improve(g, tried, &goal, err);
        if (code == 0 && goal < least) {
            least = goal;
            memcpy(sets, tried, sizeof tried);
        }
    }
    return code;
}

/* The lower bound described at the top of the file. */
static int find_bound(struct groups *g, double *bound, struct error *err)
{
    const struct assignment_problem *p = g->problem;
    uint32_t sharing = p->programs > p->ncaches ? p->programs - p->ncaches : 0;
    double alone = 0, hurt[ASSIGNMENT_PROGRAMS];
    *bound = 0;
    for (uint32_t i = 0; i < p->programs; i++) {
        double each[ASSIGNMENT_PROGRAMS], cost, single = INFINITY, with_companion = INFINITY;
        for (uint32_t m = 0; m < p->ncaches; m++) {
            int code = cost_of(g, UINT64_C(1) << i, m, &cost, each, err);
            if (code != 0)
                return code;
            single = fmin(single, each[i]);
            for (uint32_t k = 0; k < p->programs && g->kind[m] == m; k++) {
                if (k == i || p->caches[m].cores < 2)
                    continue;
                code = cost_of(g, UINT64_C(1) << i | UINT64_C(1) << k, m, &cost, each, err);
                if (code != 0)
                    return code;
                with_companion = fmin(with_companion, each[i]);
            }
        }
        alone = join(p->goal, alone, single);
        hurt[i] = fmax(0, p->goal == ASSIGNMENT_TOTAL ? with_companion - single : with_companion);
    }
    qsort(hurt, p->programs, sizeof *hurt, array_compare_doubles);
    *bound = alone;
    for (uint32_t i = 0; i < sharing; i++)
        *bound = join(p->goal, *bound, hurt[i]);
    return 0;
}

/* --- simple assignments to compare with; public functions --- */

static int compare_with_simple(struct groups *g, struct random_state *random,
                               struct assignment_result *result, struct error *err)
{
    uint32_t order[ASSIGNMENT_PROGRAMS];
    uint64_t sets[ASSIGNMENT_CACHES];
    double goal, sum = 0;
    for (uint32_t i = 0; i < g->problem->programs; i++)
        order[i] = i;
    assign_round_robin(g->problem, order, sets);
    int code = evaluate(g, sets, &result->spread, err);
    for (uint32_t i = 0; i < RANDOM_ASSIGNMENTS && code == 0; i++) {
        assign_random(g->problem, random, sets);
        code = evaluate(g, sets, &goal, err);
        sum += goal;
    }
    result->random_mean = sum / RANDOM_ASSIGNMENTS;
    return code;
}

static int check(const struct assignment_problem *p, struct error *err)
{
    uint64_t cores = 0;
    if (p->programs < 1 || p->programs > ASSIGNMENT_PROGRAMS)
        return error_set(err, -EINVAL, "there must be 1 to %u programs", ASSIGNMENT_PROGRAMS);
    if (p->ncaches < 1 || p->ncaches > ASSIGNMENT_CACHES)
        return error_set(err, -EINVAL, "there must be 1 to %u shared caches", ASSIGNMENT_CACHES);
    for (uint32_t m = 0; m < p->ncaches; m++) {
        if (p->caches[m].cores < 1 || p->caches[m].size_bytes < 1)
            return error_set(err, -EINVAL, "shared cache %u has no cores or no size", m + 1);
        cores += p->caches[m].cores;
    }
    if (cores < p->programs)
        return error_set(err, -EINVAL, "%u programs, but only %llu core%s", p->programs,
                         (unsigned long long)cores, cores == 1 ? "" : "s");
    return 0;
}

int assignment_solve(const struct assignment_problem *problem, uint64_t seed,
                     struct assignment_result *result, struct error *err)
{
    struct groups g = {.problem = problem};
    struct assignment_result found = {.exact = problem->programs <= ASSIGNMENT_EXACT};
    struct random_state random;
    uint64_t sets[ASSIGNMENT_CACHES] = {0};
    int code = check(problem, err);
    if (code != 0)
        return code;
    random_seed(&random, seed);
    for (uint32_t m = 0; m < problem->ncaches; m++) {
        uint32_t k = 0;
        while (problem->caches[k].size_bytes != problem->caches[m].size_bytes ||
               problem->caches[k].cores != problem->caches[m].cores)
            k++;
        g.kind[m] = k;
    }
    code = found.exact ? solve_exact(&g, sets, err) : solve_search(&g, &random, sets, err);
    for (uint32_t m = 0; m < problem->ncaches && code == 0; m++) {
        double cost;
        code = cost_of(&g, sets[m], m, &cost, found.slowdown, err);
        for (uint32_t i = 0; i < problem->programs; i++)
            if (sets[m] >> i & 1)
                found.cache[i] = m;
    }
    for (uint32_t i = 0; i < problem->programs && code == 0; i++) {
        found.total += found.slowdown[i];
        found.worst = fmax(found.worst, found.slowdown[i]);
    }
    if (code == 0 && found.exact)
        found.bound = problem->goal == ASSIGNMENT_TOTAL ? found.total : found.worst;
    else if (code == 0)
        code = find_bound(&g, &found.bound, err);
    if (code == 0)
        code = compare_with_simple(&g, &random, &found, err);
    if (code == 0)
        *result = found;
    free(g.known);
    return code;
}
