/* SPDX-License-Identifier: Apache-2.0 */
/*
 * windows.c - windows of each thread.
 *
 * A window ends at the first event (buffer, tick, burst) after its length is reached, so that no event has to
 * be divided. Windows of one kind have a common length in all threads. When there are COLLECT_WINDOWS of a
 * kind, the length doubles, and neighbours of a thread are joined as long as they stay within it: a run has
 * between half of that number and all of it, whatever its length.
 *
 * Distances are kept in bins of an eighth of an octave; those below 16 lines exactly. The bins' lower edges
 * are edges of base/hist.h, and include all powers and half powers of two, at which miss ratios remain exact.
 */
#include "collect/reduce/windows.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/array.h"
#include "base/pages.h"
#include "collect/tunables.h"
#include "model/phases.h"
#include "profile/windows.h"

#define EXACT_BELOW 16u
#define OCTAVE_BINS 8u
#define COARSE_BINS (EXACT_BELOW + OCTAVE_BINS * (HIST_LAST_OCTAVE + 1 - 4))

struct window {
    struct profile_time_window row; /* cpu_ns includes profiled_ns */
    uint64_t profiled_ns;
    uint32_t thread;
    double code[PHASES_CODE];
    double data[PHASES_DATA]; /* of its bursts, summed */
    uint64_t data_bursts;
    uint64_t *stack; /* COARSE_BINS; exact windows only */
    uint64_t *own;   /* likewise, in a cache of the thread's own; NULL: the same */
};

struct thread {
    uint64_t process;
    uint32_t tid;
    uint32_t open;          /* its unfinished window, + 1; 0: none */
    uint64_t cpu_ns, at_ns; /* its CPU time at its last event, and the moment of that */
    int inherited;          /* these are from before its program began */
};

struct windows {
    unsigned line_bytes;
    uint64_t start_ns;
    struct window *list; /* each thread's in order of time */
    size_t n, capacity, of_kind[2];
    uint64_t begun, stored; /* windows begun so far, and when they were stored last */
    size_t phases;          /* found then */
    uint64_t length[2];     /* sampled: ns; exact: references */
    size_t limit[2];
    struct thread *threads;
    size_t nthreads, threads_capacity;
    uint16_t coarse[HIST_BINS]; /* of each bin */
    uint16_t fine[COARSE_BINS]; /* first bin of each */
};

/* --- places of code --- */

struct windows_code {
    const struct wire_module *modules;
    const uint32_t *nmodules;
    uint32_t n;
    struct {
        uint64_t start, end, key;
    } known[WIRE_MAX_MODULES];
    uint8_t of_block[WIRE_MAX_BLOCKS]; /* place of each block, + 1; 0: not known yet */
};

/*
 * Bytes of code that are one place, as a power of two. Samples are anywhere in a block, counts of blocks are
 * of its beginning: places must be much larger than blocks, or else the same code looks different.
 */
#define PLACE_SHIFT 8

struct windows_code *windows_code_new(const struct wire_module *modules, const uint32_t *nmodules,
                                      struct error *err)
{
    struct windows_code *c = pages_sparse_new(sizeof(*c));
    if (c == NULL) {
        error_set(err, -ENOMEM, "out of memory for the code of a process");
        return NULL;
    }
    c->modules = modules;
    c->nmodules = nmodules;
    return c;
}

void windows_code_free(struct windows_code *c)
{
    pages_sparse_free(c, sizeof(*c));
}

static uint64_t mixed(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* The same code has the same key in all processes, wherever it is mapped. */
static void learn_modules(struct windows_code *c)
{
    uint32_t n = c->nmodules != NULL ? __atomic_load_n(c->nmodules, __ATOMIC_ACQUIRE) : 0;
    for (; c->n < n && c->n < WIRE_MAX_MODULES; c->n++) {
        const struct wire_module *m = &c->modules[c->n];
        uint64_t key = 0;
        for (size_t i = 0; i < sizeof(m->path) && m->path[i] != '\0'; i++)
            key = key * UINT64_C(0x100000001b3) + (uint8_t)m->path[i];
        c->known[c->n].start = m->start;
        c->known[c->n].end = m->end;
        c->known[c->n].key = mixed(key) + m->file_offset - m->start;
    }
}

static uint32_t place_of(struct windows_code *c, uint64_t pc)
{
    learn_modules(c);
    for (uint32_t i = c->n; i-- > 0;) /* the last one: it may have replaced others */
        if (pc >= c->known[i].start && pc < c->known[i].end) {
            /* The key's low bits must not move the borders of places. */
            uint64_t key = c->known[i].key + c->known[i].start, base = pc - c->known[i].start;
            return (uint32_t)(mixed(key + (base >> PLACE_SHIFT)) % PHASES_CODE);
        }
    return (uint32_t)(mixed(pc >> PLACE_SHIFT) % PHASES_CODE);
}

static uint32_t place_of_block(struct windows_code *c, const struct decoder *decoder, uint32_t block)
{
    uint64_t pc;
    uint32_t module;
    if (c->of_block[block] == 0 && decoder_site_code(decoder, DECODE_SITE(block, 0), &pc, &module) == 0)
        c->of_block[block] = (uint8_t)(place_of(c, pc) + 1);
    return c->of_block[block] != 0 ? c->of_block[block] - 1u : 0;
}

/* Adds executions of blocks, in all `total` of them; total 0: as many as there were. */
static int add_blocks(double code[PHASES_CODE], struct windows_code *c, const struct decoder *decoder,
                      const struct decode_sites *executed, double total)
{
    double counts[PHASES_CODE] = {0}, sum = 0;
    for (size_t i = 0; executed != NULL && i < executed->nexecuted; i++) {
        uint32_t block = executed->executed[i];
        counts[place_of_block(c, decoder, block)] += executed->executions[block];
        sum += executed->executions[block];
    }
    for (unsigned i = 0; i < PHASES_CODE && sum > 0; i++)
        code[i] += total > 0 ? counts[i] / sum * total : counts[i];
    return sum > 0;
}

/* --- windows --- */

static void make_bins(struct windows *w)
{
    uint32_t n = 0;
    for (; n < EXACT_BELOW; n++)
        w->fine[n] = (uint16_t)n;
    for (unsigned octave = 4; octave <= HIST_LAST_OCTAVE; octave++)
        for (unsigned step = 0; step < OCTAVE_BINS; step++)
            w->fine[n++] = (uint16_t)hist_bin(hist_octave[step * (HIST_SUB / OCTAVE_BINS)] >>
                                              (HIST_LAST_OCTAVE - octave));
    for (uint32_t bin = 0, at = 0; bin < HIST_BINS; bin++) {
        while (at + 1 < COARSE_BINS && w->fine[at + 1] <= bin)
            at++;
        w->coarse[bin] = (uint16_t)at;
    }
}

struct windows *windows_new(unsigned line_bytes, uint64_t start_ns, struct error *err)
{
    struct windows *w = calloc(1, sizeof(*w));
    if (w == NULL) {
        error_set(err, -ENOMEM, "out of memory for the windows of the run");
        return NULL;
    }
    w->line_bytes = line_bytes;
    w->start_ns = start_ns;
    w->length[0] = COLLECT_WINDOW_NS;
    w->length[1] = COLLECT_WINDOW_REFS;
    w->limit[0] = w->limit[1] = COLLECT_WINDOWS;
    make_bins(w);
    return w;
}

void windows_free(struct windows *w)
{
    if (w == NULL)
        return;
    for (size_t i = 0; i < w->n; i++) {
        free(w->list[i].stack);
        free(w->list[i].own);
    }
    free(w->list);
    free(w->threads);
    free(w);
}

/* NULL: memory is short, or there are too many threads (then *status is 0). */
static struct thread *thread_of(struct windows *w, uint64_t process, uint32_t tid, int *status)
{
    *status = 0;
    for (size_t i = w->nthreads; i-- > 0;)
        if (w->threads[i].tid == tid && w->threads[i].process == process)
            return &w->threads[i];
    if (w->nthreads == COLLECT_WINDOW_THREADS)
        return NULL;
    if (ARRAY_GROW(w->threads, w->nthreads, w->threads_capacity) < 0) {
        *status = -ENOMEM;
        return NULL;
    }
    w->threads[w->nthreads] = (struct thread){.process = process, .tid = tid};
    return &w->threads[w->nthreads++];
}

static uint64_t size_of(const struct window *x)
{
    if (x->row.exact)
        return x->row.references;
    return x->row.cpu_ns > x->profiled_ns ? x->row.cpu_ns - x->profiled_ns : 0;
}

static void add_coarse(uint64_t *sum, const uint64_t *stack)
{
    for (uint32_t bin = 0; bin < COARSE_BINS; bin++)
        sum[bin] += stack[bin];
}

/* Adds `from`, which is later. */
static void join(struct window *into, struct window *from)
{
    if (into->own != NULL) {
        add_coarse(into->own, from->own != NULL ? from->own : from->stack);
        free(from->own);
    } else if (from->own != NULL) {
        into->own = from->own;
        add_coarse(into->own, into->stack);
    }
    into->row.end_ns = from->row.end_ns;
    into->row.cpu_ns += from->row.cpu_ns;
    into->row.references += from->row.references;
    into->row.cold += from->row.cold;
    into->row.own_cold += from->row.own_cold;
    into->row.ticks += from->row.ticks;
    into->row.bursts += from->row.bursts;
    into->profiled_ns += from->profiled_ns;
    into->data_bursts += from->data_bursts;
    for (unsigned i = 0; i < PHASES_CODE; i++)
        into->code[i] += from->code[i];
    for (unsigned i = 0; i < PHASES_DATA; i++)
        into->data[i] += from->data[i];
    if (from->stack != NULL)
        add_coarse(into->stack, from->stack);
    free(from->stack);
}

/* Joins neighbours of a kind. 0, or -ENOMEM. */
static int join_neighbours(struct windows *w, int exact)
{
    /* By thread: its last window in the new list, + 1, if that is of this kind. */
    uint32_t *last = calloc(w->nthreads + 1, sizeof(*last));
    size_t n = 0;
    if (last == NULL)
        return -ENOMEM;
    w->length[exact] *= 2;
    for (size_t i = 0; i < w->n; i++) {
        struct window x = w->list[i];
        struct thread *t = &w->threads[x.thread];
        struct window *to = last[x.thread] != 0 ? &w->list[last[x.thread] - 1] : NULL;
        int is_open = t->open == i + 1;
        if (x.row.exact == exact && to != NULL && size_of(to) + size_of(&x) <= w->length[exact] * 5 / 4) {
            join(to, &x);
            w->of_kind[exact]--;
        } else {
            w->list[n] = x;
            last[x.thread] = x.row.exact == exact ? (uint32_t)n + 1 : 0;
            n++;
        }
        if (is_open)
            t->open = last[x.thread] != 0 ? last[x.thread] : (uint32_t)n;
    }
    w->n = n;
    free(last);
    if (2 * w->of_kind[exact] > w->limit[exact]) /* of threads with few windows each */
        w->limit[exact] = 2 * w->of_kind[exact];
    return 0;
}

/* The thread's open window of that kind, perhaps a new one from its last event on. NULL: memory is short. */
static struct window *open_window(struct windows *w, struct thread *t, int exact)
{
    if (t->open != 0 && w->list[t->open - 1].row.exact == exact)
        return &w->list[t->open - 1];
    if (w->of_kind[exact] >= w->limit[exact] && join_neighbours(w, exact) < 0)
        return NULL;
    if (ARRAY_GROW(w->list, w->n, w->capacity) < 0)
        return NULL;
    uint64_t *stack = exact ? calloc(COARSE_BINS, sizeof(*stack)) : NULL;
    if (exact && stack == NULL)
        return NULL;
    w->list[w->n] = (struct window){.row = {.process = t->process,
                                            .tid = t->tid,
                                            .exact = exact,
                                            .start_ns = t->at_ns,
                                            .end_ns = t->at_ns},
                                    .thread = (uint32_t)(t - w->threads),
                                    .stack = stack};
    w->of_kind[exact]++;
    w->begun++;
    t->open = (uint32_t)++w->n;
    return &w->list[t->open - 1];
}

static void close_if_full(struct windows *w, struct thread *t, const struct window *x)
{
    if (size_of(x) >= w->length[x->row.exact])
        t->open = 0;
}

static uint64_t since(const struct windows *w, uint64_t ns)
{
    return ns > w->start_ns ? ns - w->start_ns : 0;
}

int windows_process(struct windows *w, uint64_t process, uint32_t tid, uint64_t start_ns, uint64_t cpu_ns)
{
    int status;
    if (cpu_ns < COLLECT_WINDOW_NS / 8) /* not worth one of a limited number of threads */
        return 0;
    struct thread *t = thread_of(w, process, tid, &status);
    if (t == NULL)
        return status;
    t->cpu_ns = cpu_ns;
    t->at_ns = since(w, start_ns);
    t->inherited = 1;
    return 0;
}

static void add_distances(const struct windows *w, uint64_t *sum, const struct windows_distances *d)
{
    for (uint32_t bin = 0; bin < d->bins; bin++)
        sum[w->coarse[bin]] += d->stack->count[bin];
}

int windows_buffer(struct windows *w, uint64_t process, struct windows_code *code,
                   const struct wire_desc *desc, uint64_t references, const struct windows_distances *shared,
                   const struct windows_distances *own, const struct decoder *decoder,
                   const struct decode_sites *executed)
{
    int status;
    struct thread *t = thread_of(w, process, desc->tid, &status);
    if (t == NULL || references == 0)
        return status;
    t->at_ns = since(w, desc->start_ns);
    struct window *x = open_window(w, t, 1);
    if (x == NULL)
        return -ENOMEM;
    x->row.end_ns = t->at_ns = since(w, desc->end_ns);
    x->row.cpu_ns += desc->cpu_end_ns > desc->cpu_start_ns ? desc->cpu_end_ns - desc->cpu_start_ns : 0;
    x->row.references += references;
    x->row.cold += shared->cold;
    x->row.own_cold += own != NULL ? own->cold : shared->cold;
    t->cpu_ns = desc->cpu_end_ns;
    t->inherited = 0;
    if (own != NULL && x->own == NULL) {
        if ((x->own = malloc(COARSE_BINS * sizeof(*x->own))) == NULL)
            return -ENOMEM;
        memcpy(x->own, x->stack, COARSE_BINS * sizeof(*x->own));
    }
    add_distances(w, x->stack, shared);
    if (x->own != NULL)
        add_distances(w, x->own, own != NULL ? own : shared);
    add_blocks(x->code, code, decoder, executed, 0);
    close_if_full(w, t, x);
    return 0;
}

/* A sampled window that contains this moment, given in order or a little later than others. */
static struct window *window_at(struct windows *w, struct thread *t, uint64_t at_ns, uint64_t cpu_ns)
{
    if (t->inherited && cpu_ns < t->cpu_ns) /* it is not known exactly */
        t->cpu_ns = cpu_ns;
    t->inherited = 0;
    if (at_ns < t->at_ns && cpu_ns < t->cpu_ns)
        for (size_t i = w->n; i-- > 0;)
            if (&w->threads[w->list[i].thread] == t && !w->list[i].row.exact &&
                w->list[i].row.start_ns <= at_ns)
                return &w->list[i];
    if (cpu_ns < t->cpu_ns) { /* a new thread that got the old one's id */
        t->cpu_ns = 0;
        t->open = 0;
    }
    if (t->cpu_ns == 0)
        t->at_ns = at_ns > cpu_ns ? at_ns - cpu_ns : 0;
    struct window *x = open_window(w, t, 0);
    if (x == NULL)
        return NULL;
    x->row.cpu_ns += cpu_ns - t->cpu_ns;
    x->row.end_ns = t->at_ns = at_ns;
    t->cpu_ns = cpu_ns;
    return x;
}

int windows_tick(struct windows *w, uint64_t process, struct windows_code *code, const struct wire_tick *tick)
{
    int status;
    struct thread *t = thread_of(w, process, tick->tid, &status);
    if (t == NULL)
        return status;
    struct window *x = window_at(w, t, since(w, tick->at_ns), tick->cpu_ns);
    if (x == NULL)
        return -ENOMEM;
    x->code[place_of(code, tick->pc)]++;
    x->row.ticks++;
    close_if_full(w, t, x);
    return 0;
}

static double lines_of(const struct windows *w, unsigned size)
{
    return (double)(1024u << size) / w->line_bytes;
}

int windows_burst(struct windows *w, uint64_t process, struct windows_code *code,
                  const struct wire_desc *desc, const struct hist *stack, uint64_t first_touches,
                  const struct decoder *decoder, const struct decode_sites *executed)
{
    int status;
    struct thread *t = thread_of(w, process, desc->tid, &status);
    if (t == NULL)
        return status;
    struct window *x = window_at(w, t, since(w, desc->start_ns), desc->cpu_start_ns);
    if (x == NULL)
        return -ENOMEM;
    /* The part of counting that is not the program's own progress; time of the burst is added by what
     * follows. */
    x->profiled_ns += (desc->warm_ns + desc->count_ns) * BUDGET_COUNTING_PERCENT / 100;
    if (desc->cpu_end_ns > desc->cpu_start_ns)
        x->profiled_ns += desc->cpu_end_ns - desc->cpu_start_ns;
    x->row.bursts++;
    if (!add_blocks(x->code, code, decoder, executed, 1))
        x->code[place_of(code, desc->pc)]++;
    double touches = (double)(stack->total + first_touches);
    for (unsigned i = 0; i < PHASES_DATA && touches > 0; i++)
        x->data[i] += (hist_at_least(stack, lines_of(w, i)) + (double)first_touches) / touches;
    x->data_bursts += touches > 0;
    close_if_full(w, t, x);
    return 0;
}

/* --- storing --- */

static void describe_exact(const struct windows *w, const struct window *x, struct phases_window *out)
{
    double total = (double)x->row.cold;
    for (uint32_t bin = 0; bin < COARSE_BINS; bin++)
        total += (double)x->stack[bin];
    out->weight = (double)x->row.references;
    out->samples = INFINITY;
    out->kind = total > 0 ? PHASES_EXACT : PHASES_NO_DATA;
    for (unsigned i = 0; i < PHASES_DATA && total > 0; i++) {
        double misses = (double)x->row.cold, lines = lines_of(w, i);
        for (uint32_t bin = COARSE_BINS; bin-- > 0 && (double)hist_edge(w->fine[bin]) >= lines;)
            misses += (double)x->stack[bin];
        out->data[i] = misses / total;
    }
}

static void describe_sampled(const struct window *x, struct phases_window *out)
{
    /* So that both kinds weigh about the same: a reference takes about half a nanosecond. */
    out->weight = 2 * (double)size_of(x) + 1;
    out->samples = (double)(x->row.ticks + x->row.bursts);
    out->bursts = (double)x->data_bursts;
    out->kind = x->data_bursts > 0 ? PHASES_SAMPLED : PHASES_NO_DATA;
    for (unsigned i = 0; i < PHASES_DATA && x->data_bursts > 0; i++)
        out->data[i] = x->data[i] / (double)x->data_bursts;
}

static struct hist *refine(const struct windows *w, const uint64_t *coarse, struct hist *h)
{
    if (coarse == NULL)
        return NULL;
    h->total = 0;
    for (uint32_t bin = 0; bin < COARSE_BINS; bin++) {
        h->count[w->fine[bin]] = coarse[bin];
        h->total += coarse[bin];
    }
    return h;
}

/* scratch[2]: all 0, except at the lower edges of bins. */
static int put_window(const struct windows *w, const struct window *x, uint64_t id, uint32_t phase,
                      struct hist *scratch, struct profile *p, struct error *err)
{
    struct profile_time_window row = x->row;
    row.id = id;
    row.phase = phase;
    row.cpu_ns = x->row.exact ? x->row.cpu_ns : size_of(x);
    return profile_add_time_window(p, &row, refine(w, x->stack, &scratch[0]), refine(w, x->own, &scratch[1]),
                                   err);
}

/* Whether phases can be found without delay: sampled windows take eight times as long as exact ones. */
static int is_quick(const struct windows *w)
{
    return (8 * w->of_kind[0] + w->of_kind[1]) * w->phases <= COLLECT_CLUSTER_MOST;
}

int windows_store(struct windows *w, int last, struct profile *p, struct error *err)
{
    uint64_t now = w->begun;
    if (!last && (now < w->stored + w->stored / 10 + 1 || !is_quick(w)))
        return 0;
    w->stored = now;
    struct phases_window *found = calloc(w->n + 1, sizeof(*found));
    struct hist *scratch = calloc(2, sizeof(*scratch));
    int status = found != NULL && scratch != NULL ? 0 : -ENOMEM;
    for (size_t i = 0; i < w->n && status == 0; i++) {
        const struct window *x = &w->list[i];
        found[i].thread = x->thread;
        memcpy(found[i].code, x->code, sizeof(x->code));
        if (x->row.exact)
            describe_exact(w, x, &found[i]);
        else
            describe_sampled(x, &found[i]);
    }
    if (status == 0)
        status = phases_find(found, w->n);
    if (status < 0)
        error_set(err, status, "out of memory for the windows of the run");
    else
        w->phases = (size_t)status;
    if (status >= 0)
        status = profile_clear_time_windows(p, err);
    for (size_t i = 0; i < w->n && status == 0; i++)
        status = put_window(w, &w->list[i], i + 1, found[i].phase, scratch, p, err);
    if (status == 0)
        status = profile_put_phases(p, err);
    free(found);
    free(scratch);
    return status;
}
