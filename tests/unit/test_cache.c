/* SPDX-License-Identifier: Apache-2.0 */
/* Simulated caches against a brute-force twin, closed forms, and what policies promise. */
#include "twin_cache.h"

#include <errno.h>
#include <math.h>

#include "sim/hierarchy.h"

#define HIGH \
    (UINT64_C(1) << 50) /* lines of the simulator go beyond 32 bits; sets are the twin's in another order */

static struct random_state rng;

static uint64_t below(uint64_t n)
{
    return random_below(&rng, n);
}

static struct sim *make(const struct sim_config *config)
{
    struct sim *sim = NULL;
    struct error err;
    if (sim_new(config, &sim, &err) != 0)
        fail_msg("%s", err.text);
    return sim;
}

/* After a warm-up. */
static void reset_stats(struct sim *sim)
{
    memset(sim->stats, 0, sizeof sim->stats);
}

/* Whether the line is in this level's cache (the core's, if private). */
static int holds(const struct sim *sim, uint32_t level, uint32_t core, uint64_t line)
{
    if (level < sim->private_levels && !sim->private_cache[core])
        return 0;
    const struct cache *c = cache_at(sim, level, core);
    return c->ops->find(c, line) >= 0;
}

/* A hot part, a scan, and anything. */
static uint64_t some_line(uint64_t footprint, uint64_t i)
{
    uint64_t pick = below(10);
    return pick < 4 ? below(8) : pick < 7 ? i / 3 % footprint : below(footprint);
}

static void same_stats(const struct sim *sim, const struct twin *t)
{
    for (uint32_t l = 0; l < t->config.levels; l++)
        for (uint32_t core = 0; core < t->config.cores; core++) {
            struct sim_stats got = sim_stats(sim, l, core), want = t->stats[l][core];
            assert_int_equal(got.accesses, want.accesses);
            assert_int_equal(got.misses, want.misses);
            assert_int_equal(got.stores, want.stores);
            assert_int_equal(got.store_misses, want.store_misses);
            assert_int_equal(got.evictions, want.evictions);
            assert_int_equal(got.writebacks, want.writebacks);
            assert_memory_equal(got.cause, want.cause, sizeof got.cause);
        }
}

static void same_contents(const struct sim *sim, struct twin *t, uint64_t footprint)
{
    for (uint32_t l = 0; l < t->config.levels; l++)
        for (uint32_t core = 0; core < t->config.cores; core++)
            for (uint64_t line = 0; line < footprint; line++)
                assert_int_equal(holds(sim, l, core, HIGH + line),
                                 twin_find(twin_at(t, l, core), line) != NULL);
}

/* The same accesses one by one and in stretches of one core, against the twin. */
static void compare(const struct sim_config *config, uint64_t footprint, uint64_t n)
{
    struct sim *single = make(config), *batched = make(config);
    struct twin *t = twin_new(config);
    struct error err;
    for (uint64_t i = 0; i < n;) {
        uint64_t stretch[32];
        size_t length = 1 + below(32);
        uint32_t core = (uint32_t)below(config->cores);
        for (size_t k = 0; k < length; k++, i++) {
            uint64_t line =
                k && below(4) == 0 ? stretch[k - 1] >> SIM_LINE_SHIFT : HIGH + some_line(footprint, i);
            int store = below(3) == 0;
            stretch[k] = line << SIM_LINE_SHIFT | (store ? SIM_STORE : 0);
            int from = sim_access(single, core, stretch[k], &err);
            assert_int_equal(from, twin_access(t, core, line - HIGH, store));
        }
        assert_int_equal(sim_run(batched, core, stretch, length, &err), 0);
    }
    same_stats(single, t);
    same_stats(batched, t);
    same_contents(single, t, footprint);
    same_contents(batched, t, footprint);
    twin_free(t);
    sim_free(single);
    sim_free(batched);
}

/* Every policy, narrow and wide, direct mapped to fully associative, set counts that are no powers of two. */
static void single_caches(void **state)
{
    static const struct {
        uint32_t sets, ways; /* 0: fully associative, `sets` lines */
    } shapes[] = {{1, 1},  {16, 1},  {7, 2},  {8, 2},  {4, 3},  {3, 4},  {4, 5},
                  {8, 8},  {2, 11},  {3, 12}, {4, 16}, {3, 20}, {2, 32}, {2, 33},
                  {3, 64}, {2, 128}, {1, 0},  {5, 0},  {32, 0}, {37, 0}, {256, 0}};
    (void)state;
    random_seed(&rng, 1);
    for (int policy = 0; policy < SIM_POLICIES; policy++)
        for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
            for (int causes = 0; causes < 2; causes++) {
                uint32_t ways = shapes[i].ways ? shapes[i].ways : 1, lines = shapes[i].sets * ways;
                uint32_t all = shapes[i].ways ? shapes[i].ways : lines;
                if (policy == SIM_PLRU && all & (all - 1))
                    continue;
                struct sim_config config = {.levels = 1,
                                            .cores = 1,
                                            .line_bytes = 64,
                                            .seed = i,
                                            .causes = causes,
                                            .level[0] = {lines * UINT64_C(64), shapes[i].ways,
                                                         (enum sim_policy)policy, SIM_NON_INCLUSIVE, 0}};
                compare(&config, lines + 1 + below(2 * lines), 6000);
            }
}

/* Random hierarchies: sizes, policies, inclusion, what is shared, cores. Small, so that all of it happens. */
static void hierarchies(void **state)
{
    static const uint32_t ways[] = {1, 2, 3, 4, 8, 16, 40, 0};
    (void)state;
    random_seed(&rng, 2);
    for (int round = 0; round < 400; round++) {
        struct sim_config config = {.levels = 1 + (uint32_t)below(SIM_LEVELS),
                                    .cores = 1 + (uint32_t)below(TWIN_CORES),
                                    .line_bytes = 16u << below(4),
                                    .seed = (uint64_t)round,
                                    .incoherent = below(5) == 0,
                                    .write_around = below(4) == 0,
                                    .causes = below(2) == 0};
        uint64_t lines = 4;
        int shared = 0;
        for (uint32_t l = 0; l < config.levels; l++) {
            struct sim_level *level = &config.level[l];
            lines *= 1 + below(4);
            level->ways = ways[below(sizeof ways / sizeof ways[0])];
            level->size_bytes =
                (level->ways ? (1 + lines / level->ways) * level->ways : lines) * config.line_bytes;
            level->policy = (enum sim_policy)below(SIM_POLICIES);
            uint64_t all = level->ways ? level->ways : lines;
            if (level->policy == SIM_PLRU && all & (all - 1))
                level->policy = SIM_LRU;
            level->inclusion = l ? (enum sim_inclusion)below(3) : SIM_NON_INCLUSIVE;
            shared |= below(4) == 0;
            level->shared = shared;
        }
        compare(&config, 8 + below(3 * lines), 5000);
    }
}

/* Lines of inner levels are in every inclusive level further out; nothing is in two private caches dirty. */
static void inclusion_holds(void **state)
{
    struct sim_config config = {.levels = 3,
                                .cores = 2,
                                .line_bytes = 64,
                                .level = {{8 * 64, 2, SIM_LRU, SIM_NON_INCLUSIVE, 0},
                                          {16 * 64, 4, SIM_RANDOM, SIM_NON_INCLUSIVE, 0},
                                          {32 * 64, 4, SIM_NEHALEM, SIM_INCLUSIVE, 1}}};
    struct sim *sim = make(&config);
    struct error err;
    uint64_t taken = 0;
    (void)state;
    random_seed(&rng, 3);
    for (int i = 0; i < 20000; i++) {
        uint32_t core = (uint32_t)below(2);
        sim_access(sim, core, some_line(60, (uint64_t)i) << SIM_LINE_SHIFT | below(2), &err);
        for (uint64_t line = 0; i % 16 == 0 && line < 60; line++)
            for (uint32_t c = 0; c < 2; c++)
                for (uint32_t l = 0; l < 2; l++)
                    if (holds(sim, l, c, line)) {
                        assert_true(holds(sim, 2, 0, line));
                        taken++;
                    }
    }
    assert_true(taken > 0);
    sim_free(sim);
}

/*
 * Round and round over 640 lines in a cache of 512: LRU and FIFO never hit. With random replacement a line is
 * away after the M * 639 misses of a round with probability M = 1 - (1 - 1/512)^(639 M) (docs/methods.md,
 * section 2).
 */
static void cyclic(void **state)
{
    (void)state;
    for (int policy = SIM_LRU; policy <= SIM_FIFO; policy++)
        for (uint64_t k = 512; k <= 640; k += 128) {
            struct sim_config config = {
                .levels = 1,
                .cores = 1,
                .line_bytes = 64,
                .causes = 1,
                .level[0] = {512 * 64, 0, (enum sim_policy)policy, SIM_NON_INCLUSIVE, 0}};
            struct sim *sim = make(&config);
            struct error err;
            for (uint64_t i = 0; i < 400 * k; i++) {
                uint64_t access = i % k << SIM_LINE_SHIFT;
                assert_int_equal(sim_run(sim, 0, &access, 1, &err), 0);
            }
            struct sim_stats s = sim_stats(sim, 0, 0);
            double ratio = (double)s.misses / (double)s.accesses, m = 1;
            for (int i = 0; i < 1000; i++)
                m = 1 - pow(1 - 1.0 / 512, 639 * m);
            assert_int_equal(s.cause[SIM_COLD], k);
            assert_int_equal(s.cause[SIM_CONFLICT], 0);
            if (k == 512)
                assert_int_equal(s.misses, 512);
            else if (policy != SIM_RANDOM)
                assert_int_equal(s.misses, s.accesses);
            else /* sd of the mean over 400 rounds about 0.001; the cold round adds 0.0015 */
                assert_true(ratio > m - 0.01 && ratio < m + 0.01);
            sim_free(sim);
        }
}

/* Uniform over N lines, all of them cached but the share that does not fit: any policy hits L in N times. */
static void uniform(void **state)
{
    (void)state;
    random_seed(&rng, 4);
    for (int policy = 0; policy < SIM_POLICIES; policy++) {
        struct sim_config config = {.levels = 1,
                                    .cores = 1,
                                    .line_bytes = 64,
                                    .level[0] = {256 * 64, 0, (enum sim_policy)policy, SIM_NON_INCLUSIVE, 0}};
        struct sim *sim = make(&config);
        struct error err;
        for (int i = 0; i < 300000; i++) {
            uint64_t access = below(1024) << SIM_LINE_SHIFT;
            if (i == 20000)
                reset_stats(sim);
            sim_run(sim, 0, &access, 1, &err);
        }
        struct sim_stats s = sim_stats(sim, 0, 0);
        /* Binomial: sd 0.0008; four of them. */
        assert_true((double)s.misses / (double)s.accesses > 0.75 - 0.0033);
        assert_true((double)s.misses / (double)s.accesses < 0.75 + 0.0033);
        sim_free(sim);
    }
}

/*
 * An array of 8 MB is read from end to end, over and over, and the cache has 8192 sets of 1 to 16 ways, half
 * a megabyte each: Eklov's thesis, III.3.2, figure 5 (b) and (c). LRU misses every line below 8 MB. Under the
 * Nehalem policy there is nothing to gain up to 4 MB either, then the fetch ratio drops, rises again while
 * the cache grows to 5.5 MB, and falls to nothing at 8 MB. Misses of each set in 16 passes over its 16 lines,
 * the first four passes left out:
 */
static const uint64_t sweep_misses[17] = {0,   256, 256, 256, 256, 256, 256, 256, 256,
                                          224, 228, 230, 209, 192, 178, 138, 0};

static uint64_t sweep(enum sim_policy policy, uint32_t ways)
{
    struct sim_config config = {
        .levels = 1,
        .cores = 1,
        .line_bytes = 64,
        .level[0] = {(UINT64_C(512) << 10) * ways, ways, policy, SIM_NON_INCLUSIVE, 0}};
    struct sim *sim = make(&config);
    struct error err;
    uint64_t access[8192];
    for (uint64_t pass = 0; pass < 20; pass++) {
        if (pass == 4)
            reset_stats(sim);
        for (uint64_t line = 0; line < 131072; line += 8192) {
            for (uint64_t i = 0; i < 8192; i++)
                access[i] = (line + i) << SIM_LINE_SHIFT;
            assert_int_equal(sim_run(sim, 0, access, 8192, &err), 0);
        }
    }
    struct sim_stats s = sim_stats(sim, 0, 0);
    assert_int_equal(s.misses % 8192, 0); /* all sets see the same */
    sim_free(sim);
    return s.misses / 8192;
}

static void nehalem_sweep(void **state)
{
    (void)state;
    for (uint32_t ways = 1; ways <= 16; ways++)
        assert_int_equal(sweep(SIM_NEHALEM, ways), sweep_misses[ways]);
    assert_int_equal(sweep(SIM_LRU, 8), 256);
    assert_int_equal(sweep(SIM_LRU, 15), 256);
    assert_int_equal(sweep(SIM_LRU, 16), 0);
}

/* Never all accessed bits set, never all unset; the line just used stays, whatever comes next. */
static void nehalem_invariants(void **state)
{
    static const uint32_t ways[] = {2, 4, 5, 16, 31, 32, 48};
    (void)state;
    random_seed(&rng, 5);
    for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++) {
        struct cache c = {0};
        struct sim_level level = {ways[w] * UINT64_C(64), ways[w], SIM_NEHALEM, SIM_NON_INCLUSIVE, 0};
        uint64_t before = KEY_NONE;
        assert_int_equal(cache_init(&c, &level, 64, 0), 0);
        for (int i = 0; i < 20000; i++) {
            uint64_t line = below(ways[w] + 1 + below(ways[w])), set = 0;
            int64_t slot = c.ops->find(&c, line);
            if (slot >= 0)
                c.ops->hit(&c, (uint64_t)slot);
            else
                c.ops->insert(&c, line << KEY_SHIFT);
            if (c.sets)
                set = (uint64_t)__builtin_popcount(c.sets[0].bits);
            for (uint32_t k = 0; !c.sets && k < ways[w]; k++)
                set += c.wide.state[k];
            assert_in_range(set, 1, ways[w] - 1);
            assert_true(before == KEY_NONE || c.ops->find(&c, before) >= 0);
            before = line;
        }
        cache_clear(&c);
    }
}

/* By hand, 4 ways: at each access the line that is replaced, and the ages after it. LRU differs from g on. */
static void icelake_example(void **state)
{
    static const struct {
        char line, replaced;
    } steps[] = {
        {'a', 0},   {'b', 0},   {'c', 0}, {'d', 0}, /* a3 b3 c3 d1 */
        {'e', 'a'},                                 /* e1 b3 c3 d1 */
        {'b', 0},                                   /* e1 b0 c3 d1 */
        {'f', 'c'},                                 /* e3 b2 f1 d3 */
        {'g', 'e'},                                 /* g1 b2 f1 d3 */
        {'h', 'd'},                                 /* g2 b3 f2 h1 */
        {'a', 'b'},                                 /* g3 a1 f3 h2 */
        {'f', 0},                                   /* g3 a1 f0 h2 */
        {'b', 'g'},                                 /* b1 a2 f1 h3 */
        {'c', 'h'}, {'d', 'a'},                     /* b2 a3 f2 c1, b3 d1 f3 c2 */
    };
    struct sim_config config = {.levels = 1,
                                .cores = 1,
                                .line_bytes = 64,
                                .level[0] = {4 * 64, 4, SIM_ICELAKE, SIM_NON_INCLUSIVE, 0}};
    struct sim *sim = make(&config);
    struct error err;
    (void)state;
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        char replaced = 0;
        int held[128] = {0};
        for (uint64_t line = 'a'; line <= 'h'; line++)
            held[line] = holds(sim, 0, 0, line);
        sim_access(sim, 0, (uint64_t)steps[i].line << SIM_LINE_SHIFT, &err);
        for (char line = 'a'; line <= 'h'; line++)
            if (held[(int)line] && !holds(sim, 0, 0, (uint64_t)line))
                replaced = line;
        assert_int_equal(replaced, steps[i].replaced);
    }
    sim_free(sim);
}

/* What cachegrind's manual and output describe, written down plainly: two levels, LRU, straddling as one. */
struct grind {
    uint64_t line[64][4], used[64][4], now;
    uint32_t sets, ways;
};

static int grind_misses(struct grind *g, uint64_t line)
{
    uint64_t *lines = g->line[line % g->sets], *used = g->used[line % g->sets];
    uint32_t way = 0;
    for (uint32_t w = 0; w < g->ways; w++) {
        if (used[w] && lines[w] == line) {
            used[w] = ++g->now;
            return 0;
        }
        if (used[w] < used[way])
            way = w;
    }
    lines[way] = line;
    used[way] = ++g->now;
    return 1;
}

static void straddling_as_one(void **state)
{
    static struct grind d1, ll;
    struct sim_config config = {.levels = 2,
                                .cores = 1,
                                .line_bytes = 32,
                                .straddle_once = 1,
                                .write_around = 1,
                                .level = {{16 * 2 * 32, 2, SIM_LRU, SIM_NON_INCLUSIVE, 0},
                                          {64 * 4 * 32, 4, SIM_LRU, SIM_NON_INCLUSIVE, 0}}};
    struct sim *sim = make(&config);
    struct error err;
    uint64_t d1_misses = 0, ll_misses = 0, straddling = 0, references = 0;
    (void)state;
    d1.sets = 16, d1.ways = 2, ll.sets = 64, ll.ways = 4;
    random_seed(&rng, 6);
    for (int round = 0; round < 200; round++) {
        enum { N = 100 };
        uint64_t address[N], access[N + SIM_PACK_MAX];
        uint16_t size[N];
        uint8_t store[N];
        size_t taken;
        for (int i = 0; i < N; i++) {
            address[i] = (below(2) ? below(400) : below(20000)) + 1000;
            size[i] = (uint16_t)(1u << below(8));
            store[i] = (uint8_t)below(2);
            uint64_t bytes = size[i] > 32 ? 32 : size[i];
            uint64_t a = address[i] / 32, b = (address[i] + bytes - 1) / 32;
            references++;
            straddling += a != b;
            int missed = grind_misses(&d1, a);
            missed |= b != a && grind_misses(&d1, b);
            if (missed) {
                d1_misses++;
                missed = grind_misses(&ll, a);
                missed |= b != a && grind_misses(&ll, b);
                ll_misses += (uint64_t)missed;
            }
        }
        size_t words = sim_pack(address, size, store, N, 32, 1, access, N + SIM_PACK_MAX, &taken);
        assert_int_equal(taken, N);
        assert_int_equal(words, N);
        assert_int_equal(sim_run(sim, 0, access, words, &err), 0);
    }
    assert_true(straddling > 1000);
    assert_int_equal(sim_stats(sim, 0, 0).accesses, references);
    assert_int_equal(sim_stats(sim, 0, 0).misses, d1_misses);
    assert_int_equal(sim_stats(sim, 1, 0).accesses, d1_misses);
    assert_int_equal(sim_stats(sim, 1, 0).misses, ll_misses);
    sim_free(sim);
}

static void packing(void **state)
{
    static uint64_t out[3 * SIM_PACK_MAX];
    const uint64_t address[] = {0, 63, 64, 60, 100, UINT64_MAX - 1, 128};
    const uint16_t size[] = {1, 2, 64, 8, 200, 8, 0};
    const uint8_t store[] = {0, 1, 0, 0, 1, 0, 0};
    const uint64_t line[] = {0, 0, 1, 1, 0, 1, 1, 2, 3, 4, (UINT64_MAX - 1) / 64, 2};
    const uint64_t is_store[] = {0, 1, 1, 0, 0, 0, 1, 1, 1, 1, 0, 0};
    size_t taken;
    (void)state;
    assert_int_equal(sim_pack(address, size, store, 7, 64, 0, out, 3 * SIM_PACK_MAX, &taken), 12);
    assert_int_equal(taken, 7);
    for (int i = 0; i < 12; i++)
        assert_int_equal(out[i], line[i] << SIM_LINE_SHIFT | is_store[i]);
    /* Room for one longest reference: the first five words leave too little for another. */
    assert_int_equal(sim_pack(address, size, store, 7, 64, 0, out, SIM_PACK_MAX, &taken), 1);
    assert_int_equal(taken, 1);
    /* As one access, cut to a line. */
    assert_int_equal(sim_pack(address, size, store, 7, 64, 1, out, 3 * SIM_PACK_MAX, &taken), 7);
    assert_int_equal(out[1], UINT64_C(0) << SIM_LINE_SHIFT | SIM_STRADDLE | SIM_STORE);
    assert_int_equal(out[4], UINT64_C(1) << SIM_LINE_SHIFT | SIM_STRADDLE | SIM_STORE);
    /* The longest reference, with a byte in its first line, is just as long as there is room for. */
    const uint16_t longest = UINT16_MAX;
    const uint64_t last_byte = 15;
    assert_int_equal(sim_pack(&last_byte, &longest, store, 1, 16, 0, out, SIM_PACK_MAX, &taken),
                     SIM_PACK_MAX);
    assert_int_equal(out[SIM_PACK_MAX - 1] >> SIM_LINE_SHIFT, SIM_PACK_MAX - 1);
}

static void nonsense(void **state)
{
    const struct sim_config good = {
        .levels = 2,
        .cores = 2,
        .line_bytes = 64,
        .level = {{32768, 8, SIM_LRU, SIM_NON_INCLUSIVE, 0}, {65536, 16, SIM_LRU, SIM_EXCLUSIVE, 1}}};
    struct sim_config bad[14];
    struct sim *sim = make(&good);
    (void)state;
    sim_free(sim);
    sim = NULL;
    for (int i = 0; i < 14; i++)
        bad[i] = good;
    bad[0].levels = 0;
    bad[1].levels = SIM_LEVELS + 1;
    bad[2].cores = 0;
    bad[3].cores = SIM_CORES + 1;
    bad[4].line_bytes = 48;
    bad[5].line_bytes = 8;
    bad[6].level[0].size_bytes = 32769;
    bad[7].level[0].size_bytes = 0;
    bad[8].level[0].ways = 7;
    bad[9].level[0].policy = SIM_PLRU, bad[9].level[0].ways = 0, bad[9].level[0].size_bytes = 3 * 64;
    bad[10].level[0].inclusion = SIM_INCLUSIVE;
    bad[11].level[0].shared = 1, bad[11].level[1].shared = 0;
    bad[12].straddle_once = 1;
    bad[13].level[1].size_bytes = UINT64_C(1) << 40;
    for (int i = 0; i < 14; i++) {
        struct error err = {""};
        assert_int_equal(sim_new(&bad[i], &sim, &err), -EINVAL);
        assert_null(sim);
        assert_true(err.text[0] != 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(single_caches),
        cmocka_unit_test(hierarchies),
        cmocka_unit_test(inclusion_holds),
        cmocka_unit_test(cyclic),
        cmocka_unit_test(uniform),
        cmocka_unit_test(nehalem_sweep),
        cmocka_unit_test(nehalem_invariants),
        cmocka_unit_test(icelake_example),
        cmocka_unit_test(straddling_as_one),
        cmocka_unit_test(packing),
        cmocka_unit_test(nonsense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
