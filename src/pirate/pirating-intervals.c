/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pirating-intervals.c - all sizes in one run (Eklov's thesis, III.3.3): cycles over the sizes, from the
 * largest to the smallest, one interval each.
 *
 *     size   16M | 14M | 12M | ...  | 2M | 16M | 14M ...
 *     who      T |PT   |PT   |      |PT  |  w T|PT          P: the Pirate alone brings in what it gained,
 *                                                             the program held; T: the interval; w: the
 * program warms up what it gained, not measured
 *
 * So only the wrap from the smallest size to the largest needs the program to warm up, and the Pirate brings
 * in a step at a time. What counts of an interval is CPU time by units of progress, if the Pirate held its
 * set in it.
 */
#include <errno.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "pirate/pirating-internal.h"
#include "collect/launch/process-time.h"

/* The paper's test for another Pirate thread: taking so much must not slow the program (III.4.4). */
#define TEST_BYTES (UINT64_C(1) << 19)
#define TEST_SLOWER 1.01 /* and the difference is significant */

/*
 * The program's warm-up at the wrap. Filling 8 MB by one miss after the other takes 20 ms; with random reads
 * some of its lines come much later (measured with chained reads of 6 MB: 10 ms were far too short).
 */
#define WARM_NS UINT64_C(100000000)
/* How often to check a program that a signal stopped. */
#define STOPPED_NS UINT64_C(20000000)
#define SMALL_GAIN 8 /* a smaller part of the cache warms up within an interval */

#define ENDED_EARLY "%s ended before every size had been measured once: give it more work, or fewer sizes"

struct state {
    struct pirating *p;
    struct target target;
    struct span span;
    struct meter *meter;
    uint64_t stolen_bytes; /* in the last interval */
    uint64_t stopped_ns, start_ns, end_ns;
    int cannot_stop;
    int shared; /* the cache, as measured after the last interval */
};

struct reading {
    uint64_t cpu_ns;
    double units, events[PERF_KINDS];
    struct hold_count hold;
};

static int read_all(const struct state *s, struct reading *r)
{
    int code = meter_read(s->meter, s->target.pid, &r->units);
    if (code == 0)
        code = target_cpu_ns(&s->target, &r->cpu_ns);
    meter_read_events(s->meter, r->events);
    r->hold = pirating_count(s->p);
    return code;
}

/* 1: the program or the span to measure has ended, or the time is up. */
static int wait_ns(struct state *s, uint64_t ns)
{
    uint64_t until = monotonic_ns() + ns;
    int code = 0;
    if (until > s->end_ns)
        until = s->end_ns;
    while (code == 0 && monotonic_ns() < until)
        code = target_wait_event(&s->target, until) != 0 || span_is_over(&s->span);
    return code || monotonic_ns() >= s->end_ns;
}

/* While a signal has stopped the program, there is nothing to measure, and the Pirate is idle. */
static int wait_until_running(struct state *s)
{
    int code = 0;
    while (code == 0 && target_is_stopped(&s->target)) {
        if (s->stolen_bytes > 0)
            pirating_take(s->p, 0, 0, NULL);
        s->stolen_bytes = 0;
        code = wait_ns(s, STOPPED_NS);
    }
    return code;
}

/*
 * Takes so much cache away, after the Pirate was idle; then lets either the Pirate or the program, whichever
 * gained cache, warm up. 1: ended. Negative: failed.
 */
static int change_size(struct state *s, unsigned threads, uint64_t stolen_bytes, struct error *err)
{
    uint64_t gained = s->stolen_bytes > stolen_bytes ? s->stolen_bytes - stolen_bytes : 0;
    uint64_t before = monotonic_ns(), small = s->p->result->llc_bytes / SMALL_GAIN;
    int stops = stolen_bytes > 0 && !s->cannot_stop, code = 0;
    if (stops) {
        code = target_stop(&s->target);
        if (code == 1)
            return 1;
        s->cannot_stop = code < 0;
    }
    code = pirating_take(s->p, threads, stolen_bytes, err);
    s->stolen_bytes = stolen_bytes;
    target_continue(&s->target);
    if (stops)
        s->stopped_ns += monotonic_ns() - before;
    if (code == 0 && gained > 0)
        code = wait_ns(s, gained > small ? WARM_NS : s->p->options->interval_ns);
    return code;
}

/* One interval at the cell's size. 1: ended; negative: failed. */
static int measure(struct state *s, unsigned threads, struct cell *cell, struct error *err)
{
    struct reading before, after;
    int shared = s->shared, code = wait_until_running(s);
    unsigned stops = s->target.stops;
    if (code == 0)
        code = change_size(s, threads, cell->stolen_bytes, err);
    if (code != 0)
        return code;
    if (read_all(s, &before) != 0 || wait_ns(s, s->p->options->interval_ns) || read_all(s, &after) != 0)
        return 1; /* an incomplete interval is discarded */
    int disturbed = s->target.stops != stops || target_is_stopped(&s->target);
    int held = !disturbed && pirating_held(s->p, cell, &before.hold, &after.hold);
    s->shared = pirating_shared(s->p);
    if (disturbed)
        pirating_count_disturbed(s->p, cell);
    else if (held && !(shared && s->shared))
        pirating_count_unshared(s->p, cell);
    else if (held && after.cpu_ns > before.cpu_ns && after.units >= before.units) {
        ratio_add(&cell->rate, (double)(after.cpu_ns - before.cpu_ns), after.units - before.units);
        for (int i = 0; i < PERF_KINDS; i++)
            cell->events[i] += after.events[i] - before.events[i];
    }
    return 0;
}

/* Is b slower than a, significantly and by more than TEST_SLOWER? */
static int is_slower(const struct ratio *a, const struct ratio *b)
{
    double value[2], low[2], high[2];
    ratio_estimate(a, &value[0], &low[0], &high[0]);
    ratio_estimate(b, &value[1], &low[1], &high[1]);
    return value[1] > TEST_SLOWER * value[0] && low[1] > value[0];
}

unsigned pirating_threads(const struct ratio *rates, unsigned most)
{
    unsigned threads = 1;
    while (threads < most && rates[threads + 1].n == PIRATING_ROUNDS &&
           !is_slower(&rates[1], &rates[threads + 1]))
        threads++;
    return threads;
}

/*
 * Finds the number of Pirate threads: as long as another one, with half a megabyte in all, does not slow the
 * program. Measurements alone and next to one thread alternate, for the result; 1: the program has ended.
 */
static int find_threads(struct state *s, struct error *err)
{
    struct pirating *p = s->p;
    struct cell cells[LLC_PIRATES + 1] = {0};
    struct ratio rates[LLC_PIRATES + 1];
    double low, high;
    unsigned most = p->result->threads;
    int code = 0;
    for (unsigned i = 1; i <= most; i++)
        cells[i].stolen_bytes = TEST_BYTES;
    for (unsigned round = 0; round < PIRATING_ROUNDS && code == 0; round++)
        for (unsigned i = 0; i <= most && code == 0; i++)
            code = measure(s, i, &cells[i], err);
    for (unsigned i = 0; i <= most; i++)
        rates[i] = cells[i].rate;
    p->threads = code == 0 ? pirating_threads(rates, most) : 1;
    ratio_estimate(&cells[0].rate, &p->result->alone_ns, &low, &high);
    ratio_estimate(&cells[1].rate, &p->result->interference_ns, &low, &high);
    if (is_slower(&cells[0].rate, &cells[1].rate))
        pirating_note(p,
                      "a Pirate of only half a megabyte slows the program by %.1f%%: this effect of its "
                      "bandwidth is contained in all results",
                      100 * (p->result->interference_ns / p->result->alone_ns - 1));
    return code;
}

static int measure_all(struct state *s, struct error *err)
{
    struct pirating *p = s->p;
    int code = 0;
    if (p->pirate && p->options->threads == 0)
        code = find_threads(s, err);
    p->result->threads = p->threads;
    while (code == 0) {
        size_t tried = 0;
        if (p->options->on_progress)
            p->options->on_progress(p->options->ctx, NAN, "cycles");
        for (size_t i = 0; i < p->n && code == 0; i++)
            if (!p->cells[i].out_of_reach) {
                code = measure(s, p->threads, &p->cells[i], err);
                tried++;
            }
        p->result->cycles += code == 0;
        if (tried == 0)
            code = 1;
    }
    return code;
}

/*
 * Starts the program, or attaches to it, and sets breakpoints. 0, or a negative code; then nothing is left to
 * clean up, and *status is the exit status.
 */
static int begin(struct state *s, int *status, struct error *err)
{
    const struct pirating_options *o = s->p->options;
    cpu_set_t cpus;
    pirating_target_cpus(s->p, &cpus);
    const struct target_setup setup = {
        .cpus = &cpus, .all = &s->p->all, .output_fd = o->output_fd, .hold = !span_is_all(&s->span)};
    int code = o->argv ? target_start(&s->target, o->argv, &setup, err)
                       : target_attach(&s->target, o->pid, &cpus, err);
    *status = o->argv ? pirating_start_status(code) : 1;
    if (code != 0)
        return code;
    code = span_arm(&s->span, &s->target, err);
    if (code != 0) {
        *status = o->argv ? 125 : 1;
        target_release(&s->target);
    }
    return code;
}

/* Measures from the first place to the second, or as long as allowed. Adds notes of what could not be
 * measured. */
static void measure_span(struct state *s)
{
    struct pirating *p = s->p;
    const struct pirating_options *o = p->options;
    struct error trouble = {""};
    int code = meter_attach(s->meter, s->target.pid, &trouble);
    if (code == 0 && p->resctrl)
        code = resctrl_add(p->resctrl, s->target.pid, &trouble);
    if (code < 0 && target_wait(&s->target, 0) == 1) { /* the reason for the failure */
        pirating_note(p, ENDED_EARLY, "the program");
        return;
    }
    if (code == 0 && (code = span_wait_begin(&s->span, &s->target, &trouble)) == 0) {
        uint64_t before_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        s->start_ns = monotonic_ns();
        if (o->duration_s > 0)
            s->end_ns = s->start_ns + (uint64_t)(o->duration_s * 1e9);
        code = measure_all(s, &trouble);
        double took_ns = (double)(monotonic_ns() - s->start_ns);
        p->result->stopped_share = (double)s->stopped_ns / took_ns;
        p->result->cachegram_share = (double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - before_ns) / took_ns;
        if (p->result->cycles == 0 && code >= 0)
            pirating_note(p, ENDED_EARLY,
                          s->span.over ? "the part of the program to be measured" : "the program");
    }
    if (code < 0 && code != -EINTR) /* -EINTR: we were asked to end */
        pirating_note(p, "%s", trouble.text);
}

int pirating_intervals(struct pirating *p, struct meter *meter, struct error *err)
{
    const struct pirating_options *o = p->options;
    struct state s = {.p = p, .span = pirating_span(p), .meter = meter, .end_ns = UINT64_MAX, .shared = 1};
    char missed[256];
    int status;
    if (begin(&s, &status, err) != 0)
        return status;
    p->result->ran = 1;
    uint64_t start_ns = monotonic_ns();
    measure_span(&s);
    if (s.cannot_stop)
        pirating_note(p, "the program could not be stopped (another user's rights, or a debugger): it ran "
                         "while the Pirate fetched its data");
    pirating_take(p, 0, 0, NULL);
    target_end_hold(&s.target); /* still held if it could not be measured */
    if (o->argv) {
        target_wait(&s.target, UINT64_MAX); /* it continues, alone */
        p->result->cpu_seconds = s.target.cpu_seconds;
        p->result->wall_seconds = (double)(monotonic_ns() - start_ns) * 1e-9;
    }
    span_is_over(&s.span);
    span_missed(&s.span, missed, sizeof missed);
    if (missed[0] && (s.target.ended || !s.span.begun))
        pirating_note(p, "%s", missed);
    span_clear(&s.span);
    target_release(&s.target);
    meter_detach(meter);
    return s.target.status;
}
