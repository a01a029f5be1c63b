/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pirating-whole.c - one run of the program for each size: the simple method, which needs neither counters
 * nor a measure of the program's progress. The first run has all of the cache, and its output is kept. The
 * others repeat the same work without output, next to a Pirate that is active from before their start to
 * after their end.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pirate/pirating-internal.h"
#include "collect/launch/process-time.h"

/* Every run must read the same input as the first one. */
static int rewind_input(off_t start, struct error *err)
{
    if (start < 0 || lseek(STDIN_FILENO, start, SEEK_SET) >= 0)
        return 0;
    return error_set(err, -errno, "cannot read standard input once more: %s", strerror(errno));
}

static int check_input(off_t *start, struct error *err)
{
    struct stat st;
    *start = lseek(STDIN_FILENO, 0, SEEK_CUR);
    if (*start >= 0 || fstat(STDIN_FILENO, &st) != 0 || !(S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode)))
        return 0;
    return error_set(
        err, -ESPIPE,
        "the program runs once for each size, and standard input is a pipe, which can be read only once: "
        "take it from a file (< FILE, < /dev/null)");
}

/* Interrupted from the keyboard: no further run is wanted. */
static int was_interrupted(int status)
{
    return status == 128 + SIGINT || status == 128 + SIGQUIT || status == 128 + SIGTERM ||
           status == 128 + SIGHUP;
}

/* Result of one run. */
struct run {
    int status;
    double cpu_seconds;              /* of the measured part */
    struct hold_count before, after; /* at both ends of that part */
    int disturbed, begun;
};

/* Measures from the first place to the second, or to the end: the program's own CPU time; without a span,
 * also its children's. */
static int measure_span(struct pirating *p, struct target *t, struct span *span, struct run *r,
                        struct error *err)
{
    uint64_t start_ns = 0, end_ns = 0;
    int code = span_wait_begin(span, t, err);
    if (code != 0)
        return code < 0 ? code : 0;
    unsigned stops = t->stops;
    r->begun = 1;
    if (!span_is_all(span)) {
        r->before = pirating_count(p);
        target_cpu_ns(t, &start_ns);
    }
    while (target_wait_event(t, UINT64_MAX) == 0 && !span_is_over(span))
        if (t->stops != stops) /* no longer valid, and the program may be stopped for hours */
            pirating_take(p, 0, 0, NULL);
    span_is_over(span); /* it may have ended right after that place */
    r->after = pirating_count(p);
    r->disturbed = t->stops != stops;
    target_cpu_ns(t, &end_ns);
    r->cpu_seconds = span_is_all(span) ? t->cpu_seconds : (double)(end_ns - start_ns) * 1e-9;
    return 0;
}

/* One run from start to end. 0 or a negative code with err filled. */
static int run_once(struct pirating *p, int silent, struct run *r, struct error *err)
{
    struct target target;
    struct span span = pirating_span(p);
    char missed[256];
    cpu_set_t cpus;
    *r = (struct run){.before = pirating_count(p)};
    pirating_target_cpus(p, &cpus);
    const struct target_setup setup = {.cpus = &cpus,
                                       .all = &p->all,
                                       .output_fd = p->options->output_fd,
                                       .silent = silent,
                                       .hold = !span_is_all(&span)};
    int code = target_start(&target, p->options->argv, &setup, err);
    if (code != 0) {
        r->status = pirating_start_status(code);
        return code;
    }
    if ((code = span_arm(&span, &target, err)) != 0) {
        r->status = 125;
        target_release(&target);
        return code;
    }
    if (p->resctrl && (code = resctrl_add(p->resctrl, target.pid, err)) != 0)
        pirating_note(p, "%s", err->text);
    p->result->ran = 1;
    int failed = measure_span(p, &target, &span, r, err);
    target_wait(&target, UINT64_MAX);
    r->status = target.status;
    span_missed(&span, missed, sizeof missed);
    if (missed[0] && !silent)
        pirating_note(p, "%s", missed);
    span_clear(&span);
    target_release(&target);
    if (span_is_all(&span))
        r->after = pirating_count(p);
    return failed ? failed : code;
}

/* Repeats a cell's run. 1: asked to end. */
static int measure(struct pirating *p, struct cell *cell, off_t start, int expected, struct error *err)
{
    struct run r;
    for (unsigned i = 0; i < p->options->repeats; i++) {
        int shared = pirating_shared(p);
        int code = pirating_take(p, p->threads, cell->stolen_bytes, err);
        if (code == 0)
            code = rewind_input(start, err);
        if (code == 0)
            code = run_once(p, 1, &r, err);
        if (code != 0)
            return code;
        if (was_interrupted(r.status)) /* its time is that of a part of the work */
            return 1;
        int held = !r.disturbed && r.begun && pirating_held(p, cell, &r.before, &r.after);
        shared &= pirating_shared(p);
        if (r.disturbed)
            pirating_count_disturbed(p, cell);
        else if (held && shared)
            ratio_add(&cell->rate, r.cpu_seconds * 1e9, 1);
        else if (held)
            pirating_count_unshared(p, cell);
        if (r.status != expected)
            pirating_note(p, "exit status %d alone, but %d with %llu bytes of cache", expected, r.status,
                          (unsigned long long)cell->available_bytes);
    }
    return 0;
}

int pirating_whole_runs(struct pirating *p, struct error *err)
{
    const struct pirating_options *o = p->options;
    struct run first;
    off_t start;
    int code = check_input(&start, err);
    if (code != 0)
        return 125;
    p->result->threads = p->threads; /* a found number of threads; the program gets the other CPUs */
    if (o->on_progress)
        o->on_progress(o->ctx, 0, "alone");
    uint64_t start_ns = monotonic_ns();
    code = run_once(p, 0, &first, err);
    if (code != 0 && !p->result->ran)
        return first.status;
    p->result->wall_seconds = (double)(monotonic_ns() - start_ns) * 1e-9;
    p->result->cpu_seconds = first.cpu_seconds;
    if (!was_interrupted(first.status))
        p->result->alone_ns = first.cpu_seconds * 1e9;
    for (size_t i = 0; i < p->n && code == 0 && first.begun && !was_interrupted(first.status); i++) {
        if (o->on_progress)
            o->on_progress(o->ctx, (double)(i + 1) / (double)(p->n + 1), "runs");
        if (!p->cells[i].out_of_reach)
            code = measure(p, &p->cells[i], start, first.status, err);
    }
    if (code < 0)
        pirating_note(p, "%s", err->text);
    pirating_take(p, 0, 0, NULL);
    return first.status;
}
