/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pirating-whole.c - one run of the program for each size: the plain way, which needs neither counters nor a
 * clock of the program's progress. The first run has all of the cache and keeps its output; the others do the
 * same work again, silently, beside a Pirate that is there from before their start to after their end.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collect/pirating-internal.h"

/* Every run reads what the first one read. */
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

/* The keyboard's way of ending it all: then no further run is wanted. */
static int was_told_to_end(int status)
{
    return status == 128 + SIGINT || status == 128 + SIGQUIT || status == 128 + SIGTERM ||
           status == 128 + SIGHUP;
}

/* One run from start to end. 0 or a negative code with err filled. */
static int run_once(struct pirating *p, int silent, int *status, double *cpu_seconds, struct error *err)
{
    struct target target;
    cpu_set_t cpus;
    pirating_target_cpus(p, &cpus);
    const struct target_setup setup = {
        .cpus = &cpus, .all = &p->all, .output_fd = p->options->output_fd, .silent = silent};
    int code = target_start(&target, p->options->argv, &setup, err);
    if (code != 0)
        return code;
    if (p->resctrl && (code = resctrl_add(p->resctrl, target.pid, err)) != 0)
        pirating_note(p, "%s", err->text);
    p->result->ran = 1;
    target_wait(&target, UINT64_MAX);
    *status = target.status;
    *cpu_seconds = target.cpu_seconds;
    target_release(&target);
    p->result->runs++;
    return code;
}

/* A cell's run, again and again. 1: told to end. */
static int measure(struct pirating *p, struct cell *cell, off_t start, int expected, struct error *err)
{
    int status;
    double cpu_seconds;
    for (unsigned i = 0; i < p->options->repeats; i++) {
        int shared = pirating_shared(p);
        int code = pirating_take(p, p->threads, cell->stolen_bytes, err);
        struct hold_count before = pirating_count(p);
        if (code == 0)
            code = rewind_input(start, err);
        if (code == 0)
            code = run_once(p, 1, &status, &cpu_seconds, err);
        if (code != 0)
            return code;
        int held = pirating_held(p, cell, &before);
        shared &= pirating_shared(p);
        if (held && shared)
            ratio_add(&cell->rate, cpu_seconds * 1e9, 1);
        else if (held)
            pirating_apart(p, cell);
        if (was_told_to_end(status))
            return 1;
        if (status != expected)
            pirating_note(p, "exit status %d alone, but %d with %llu bytes of cache", expected, status,
                          (unsigned long long)cell->available_bytes);
    }
    return 0;
}

int pirating_whole_runs(struct pirating *p, struct error *err)
{
    const struct pirating_options *o = p->options;
    off_t start;
    int status = 125, code = check_input(&start, err);
    if (code != 0)
        return 125;
    p->result->threads = p->threads; /* no others were found, so the program gets their CPUs */
    if (o->tell)
        o->tell(o->ctx, 0, "alone");
    uint64_t start_ns = target_now_ns();
    code = run_once(p, 0, &status, &p->result->cpu_seconds, err);
    p->result->wall_seconds = (double)(target_now_ns() - start_ns) * 1e-9;
    if (code != 0 && !p->result->ran)
        return pirating_start_status(code);
    p->result->alone_ns = p->result->cpu_seconds * 1e9;
    for (size_t i = 0; i < p->n && code == 0 && !was_told_to_end(status); i++) {
        if (o->tell)
            o->tell(o->ctx, (double)(i + 1) / (double)(p->n + 1), "runs");
        if (!p->cells[i].out_of_reach)
            code = measure(p, &p->cells[i], start, status, err);
    }
    if (code < 0)
        pirating_note(p, "%s", err->text);
    pirating_take(p, 0, 0, NULL);
    return status;
}
