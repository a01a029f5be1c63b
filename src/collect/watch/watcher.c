/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/launch/process-time.h"
#include "collect/watch/watcher.h"
#include <limits.h>
#include <linux/futex.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "collect/clock/faultcost.h"
#include "collect/watch/sharers.h"
#include "collect/tunables.h"
#include "collect/objects/vma.h"

#define FILTER_BITS 4096u

/* CPU time of the process in native code, and references that it made in translated code, all bursts
 * included. */
struct moment {
    uint64_t ns, refs;
};

/* Each requested line, from its burst until its outcome is stored. */
struct line {
    uint64_t id; /* of the watch */
    uint64_t address;
    uint64_t from_ns;             /* the thread's own CPU time (wire_desc.app_cpu_ns) at its burst */
    uint64_t from_refs;           /* references of the process in translated code at its burst's end */
    uint64_t translated_refs;     /* of these, what wire_desc.translated_refs counts */
    struct moment touched;        /* in a burst; ns 0: not */
    uint64_t pc;                  /* of the instruction that did; 0: not known */
    uint32_t tid;                 /* of the thread that did */
    uint32_t own_tid;             /* of its burst */
    uint64_t own_from_ns, own_ns; /* that thread's CPU time then, and when it touched the line in a burst */
    int in_tail;                  /* not watched after its burst's tail */
    int protection;               /* of its page */
    double tail_refs, tail_lines; /* see profile_watch */
    int slot;                     /* in the agent's table, -1: none yet */
};

#define PAGE_BYTES UINT64_C(4096)

struct watcher {
    struct wire_proc *proc;
    struct watches *watches;
    struct vmas *vmas;
    uint32_t pid;
    unsigned line_bytes, live;
    uint64_t allowance_ns, next_look_ns;
    uint64_t pages; /* of the address space, at the last look */
    struct random_state random;
    struct line lines[2 * WIRE_MAX_WATCHES];
    unsigned n;
    uint64_t freed; /* bit: that slot of the agent's table was freed since the last answer */
    /* the current burst */
    struct wire_desc desc;
    uint64_t filter[FILTER_BITS / 64]; /* bit: some watched line has that hash */
    uint64_t touches;                  /* before its tail */
    const struct burst_tail *tail;
    uint64_t burst_refs;                     /* touches of all bursts before */
    uint64_t position[2 * WIRE_MAX_WATCHES]; /* of lines[i]'s first touch in the burst, from 1; 0: none */
    unsigned old;                            /* lines before the burst's own */
};

struct watcher *watcher_new(struct wire_proc *proc, uint32_t pid, const struct watch_setting *setting)
{
    struct watcher *w = calloc(1, sizeof(*w));
    if (w == NULL)
        return NULL;
    w->proc = proc;
    w->pid = pid;
    w->watches = setting->watches;
    w->line_bytes = setting->line_bytes;
    w->live = COLLECT_WATCH_LIVE;
    w->allowance_ns = COLLECT_WATCH_ALLOWANCE_NS;
    /* With several threads calls cost something before the first question. */
    proc->watching.fault_ns = fault_cost().ns;
    proc->watching.fault_entry_ns = fault_cost().entry_ns;
    proc->watching.allowance_ns = w->allowance_ns;
    random_seed(&w->random, setting->seed ^ pid);
    return w;
}

void watcher_limit(struct watcher *w, unsigned live, uint64_t allowance_ns)
{
    w->live = live < WIRE_MAX_WATCHES ? live : WIRE_MAX_WATCHES;
    w->allowance_ns = allowance_ns;
}

static inline unsigned hash(uint64_t line)
{
    return (unsigned)(line * UINT64_C(0x9e3779b97f4a7c15) >> 32) % FILTER_BITS;
}

/* --- outcomes --- */

/* From when on a line's time counts. */
static struct moment beginning(const struct watcher *w, const struct line *l)
{
    struct moment from = {l->from_ns, l->from_refs};
    if (l->slot < 0)
        return from;
    const struct wire_watch *seen = &w->proc->watching.watch[l->slot];
    uint64_t from_cpu_ns = __atomic_load_n(&seen->from_cpu_ns, __ATOMIC_RELAXED);
    if (from_cpu_ns > from.ns)
        from = (struct moment){from_cpu_ns, from.refs + seen->from_refs - l->translated_refs};
    return from;
}

/* CPU time of the line's own thread in native code until it touched the line. */
static double own_time(const struct line *l, uint64_t ns)
{
    return ns == 0 ? NAN : ns > l->own_from_ns ? (double)(ns - l->own_from_ns) : 0;
}

/* Stores the outcome of lines[i], and removes it. */
static int record_outcome(struct watcher *w, unsigned i, enum profile_outcome outcome, struct moment at,
                          struct error *err)
{
    struct line *l = &w->lines[i];
    struct moment from = beginning(w, l);
    const struct wire_watch *seen =
        l->touched.ns == 0 && l->slot >= 0 ? &w->proc->watching.watch[l->slot] : NULL;
    uint32_t tid = outcome != PROFILE_REUSED ? 0 : seen != NULL ? seen->tid : l->tid;
    const struct profile_watch watch = {
        .id = l->id,
        .outcome = outcome,
        .refs = NAN,
        .cpu_ns = at.ns > from.ns ? (double)(at.ns - from.ns) : 0,
        .translated_refs = at.refs > from.refs ? (double)(at.refs - from.refs) : 0,
        .clock_error = NAN,
        .tail_refs = l->tail_refs,
        .tail_lines = l->tail_lines,
        .pc = outcome != PROFILE_REUSED ? 0
              : seen != NULL            ? seen->pc
                                        : l->pc,
        .tid = tid,
        .own_cpu_ns = tid == l->own_tid ? own_time(l, seen != NULL ? seen->thread_ns : l->own_ns) : NAN,
    };
    int status = watches_outcome(w->watches, &watch, err);
    if (l->slot >= 0) {
        __atomic_store_n(&w->proc->watching.watch[l->slot].state, WIRE_WATCH_FREE, __ATOMIC_RELEASE);
        w->freed |= UINT64_C(1) << l->slot;
    }
    w->n--;
    w->lines[i] = w->lines[w->n];
    w->position[i] = w->position[w->n];
    return status;
}

/* The state of lines[i] as the agent reports it; nonzero: that is its outcome. */
static int ended(const struct watcher *w, unsigned i, enum profile_outcome *outcome, struct moment *at)
{
    const struct line *l = &w->lines[i];
    if (l->slot < 0)
        return 0;
    const struct wire_watch *seen = &w->proc->watching.watch[l->slot];
    switch (__atomic_load_n(&seen->state, __ATOMIC_ACQUIRE)) {
    case WIRE_WATCH_HIT:
        *outcome = PROFILE_REUSED;
        break;
    case WIRE_WATCH_CENSORED:
        *outcome = PROFILE_DROPPED;
        break;
    case WIRE_WATCH_UNMAPPED:
        *outcome = PROFILE_UNMAPPED;
        break;
    case WIRE_WATCH_REFUSED:
        *outcome = PROFILE_REFUSED;
        *at = (struct moment){l->from_ns, l->from_refs};
        return 1;
    default:
        return 0;
    }
    *at = (struct moment){seen->app_cpu_ns, seen->translated_refs + w->burst_refs};
    return 1;
}

/* --- a burst --- */

static uint64_t tail_length(const struct watcher *w)
{
    return w->tail != NULL ? burst_tail_touches(w->tail) : 0;
}

/* After so many touches of the current burst. */
static struct moment within_burst(const struct watcher *w, uint64_t touches)
{
    return (struct moment){w->desc.app_cpu_ns, w->desc.translated_refs + w->burst_refs + touches};
}

/* When the current burst, with its tail, was over. */
static struct moment burst_end(const struct watcher *w)
{
    return within_burst(w, w->touches + tail_length(w));
}

/* When it touched lines[i]. */
static struct moment touch_of(const struct watcher *w, unsigned i)
{
    return within_burst(w, w->position[i] - 1);
}

static void begin_burst(struct watcher *w, const struct wire_desc *desc)
{
    w->desc = *desc;
    w->touches = 0;
    w->old = w->n;
    memset(w->filter, 0, sizeof(w->filter));
    memset(w->position, 0, sizeof(w->position));
    for (unsigned i = 0; i < w->n; i++) {
        unsigned h = hash(w->lines[i].address / w->line_bytes);
        w->filter[h / 64] |= UINT64_C(1) << h % 64;
    }
}

/* A line that has a watched one's hash. */
static void found(struct watcher *w, uint64_t line, uint64_t position)
{
    for (unsigned k = 0; k < w->old; k++)
        if (w->lines[k].address / w->line_bytes == line && w->position[k] == 0)
            w->position[k] = position;
}

/* The first touch of lines[i] in the tail of the current burst; NULL: there was none. */
static const struct tail_touch *touch_in_tail(const struct watcher *w, unsigned i)
{
    return w->tail != NULL ? burst_tail_find(w->tail, w->lines[i].address / w->line_bytes) : NULL;
}

static void look_for_touched(struct watcher *w, const struct watcher_lines *touched)
{
    for (size_t i = 0; w->old != 0 && i < touched->n; i++) {
        unsigned h = hash(touched->lines[i].line);
        if (w->filter[h / 64] >> h % 64 & 1)
            found(w, touched->lines[i].line, i + 1);
    }
    w->touches = touched->touches;
    w->tail = touched->tail;
    for (unsigned i = 0; i < w->old; i++) {
        const struct tail_touch *touch = touch_in_tail(w, i);
        if (touch == NULL || w->position[i] != 0 || w->lines[i].touched.ns != 0)
            continue;
        w->position[i] = w->touches + touch->before + 1;
        w->lines[i].pc = touch->pc;
        w->lines[i].tid = w->desc.tid;
        w->lines[i].own_ns = w->desc.thread_ns;
    }
}

static void take_request(struct watcher *w, const struct watch_request *request)
{
    const struct tail_touch *touch;
    if (w->n == sizeof(w->lines) / sizeof(w->lines[0]))
        return;
    struct line *l = &w->lines[w->n++];
    *l = (struct line){
        .id = request->id,
        .address = request->address,
        .from_ns = w->desc.app_cpu_ns,
        .from_refs = within_burst(w, w->touches).refs,
        .translated_refs = w->desc.translated_refs,
        .in_tail = request->in_tail,
        .own_tid = w->desc.tid,
        .own_from_ns = w->desc.thread_ns,
        .tail_refs = NAN,
        .tail_lines = NAN,
        .slot = -1,
    };
    if (w->tail == NULL)
        return;
    uint64_t length = tail_length(w);
    if ((touch = touch_in_tail(w, w->n - 1)) != NULL) {
        l->touched = within_burst(w, w->touches + touch->before);
        l->pc = touch->pc;
        l->tid = w->desc.tid;
        l->own_ns = w->desc.thread_ns;
        length = touch->before;
    }
    l->tail_refs = (double)length;
    l->tail_lines = burst_tail_growth(w->tail, request->age, length);
}

void watcher_follow(const struct watcher *w, struct burst_tail *tail)
{
    for (unsigned i = 0; i < w->n; i++)
        burst_tail_follow(tail, w->lines[i].address / w->line_bytes);
}

/* --- what may be watched --- */

/* Rights of a page that is protected because of another watched line; PROT_NONE: there is none. */
static int protection_beside(const struct watcher *w, const struct line *l)
{
    for (unsigned i = 0; i < w->n; i++)
        if (w->lines[i].slot >= 0 && w->lines[i].address / PAGE_BYTES == l->address / PAGE_BYTES)
            return w->lines[i].protection;
    return PROT_NONE;
}

/*
 * Private memory, readable and not code, that belongs to the program: not its stack, whose lines are touched
 * again at once; not the page that the kernel writes to on its own (thread pointer: restartable sequences,
 * robust futexes).
 */
static int may_watch(struct watcher *w, struct line *l)
{
    struct vma vma;
    uint64_t fs = w->desc.fs_base, last = l->address + w->line_bytes;
    if (vmas_find(w->vmas, l->address, &vma) < 0 || last > vma.end)
        return 0;
    if (vma.protection == PROT_NONE) /* protected already: other threads of the program are running */
        vma.protection = protection_beside(w, l);
    l->protection = vma.protection;
    return (vma.protection & (PROT_READ | PROT_EXEC)) == PROT_READ && !vma.shared &&
           (vma.name[0] == '\0' || vma.name[0] == '/' || strcmp(vma.name, "[heap]") == 0 ||
            strncmp(vma.name, "[anon", 5) == 0) &&
           strncmp(vma.name, "/dev/", 5) != 0 &&
           (last <= fs - WIRE_TLS_BYTES || l->address >= fs + WIRE_TLS_BYTES);
}

/* Nonzero if the process has exactly these n threads, all of which the agent knows. */
static int has_threads(uint32_t pid, uint32_t n)
{
    char path[64];
    struct stat st;
    snprintf(path, sizeof(path), "/proc/%u/task", pid);
    return stat(path, &st) == 0 && st.st_nlink == n + UINT64_C(2);
}

/* Nonzero if lines of this process can be watched now. */
static int process_is_fit(struct watcher *w)
{
    struct wire_watching *shared = &w->proc->watching;
    if (__atomic_load_n(&shared->off, __ATOMIC_RELAXED) != 0 || !has_threads(w->pid, shared->threads))
        return 0;
    if (sharers_exist(w->pid, w->desc.tid)) /* no agent would handle the faults of that process */
        return 0;
    if (w->vmas == NULL && (w->vmas = vmas_new(w->pid)) == NULL)
        return 0;
    uint64_t now = monotonic_ns(), pages = vmas_pages(w->vmas);
    if (now >= w->next_look_ns || pages != w->pages) {
        w->pages = pages;
        w->next_look_ns = now + COLLECT_WATCH_LOOK_MS * UINT64_C(1000000);
        if (vmas_asynchronous(w->vmas)) {
            shared->off = WIRE_UNWATCHED_ASYNC;
            return 0;
        }
    }
    vmas_refresh(w->vmas);
    return 1;
}

/* --- answers --- */

/* Censors lines at random, whichever they are, until so many are left. */
static int censor_half(struct watcher *w, unsigned left, struct error *err)
{
    int status = 0;
    while (w->n > left && status == 0)
        status =
            record_outcome(w, (unsigned)random_below(&w->random, w->n), PROFILE_DROPPED, burst_end(w), err);
    return status;
}

static void put_in_table(struct watcher *w, struct line *l)
{
    struct wire_watch *table = w->proc->watching.watch;
    if (l->slot >= 0)
        return; /* it may have been touched by another thread meanwhile */
    for (int i = 0; l->slot < 0 && i < (int)WIRE_MAX_WATCHES; i++)
        if (table[i].state == WIRE_WATCH_FREE && !(w->freed >> i & 1))
            l->slot = i;
    if (l->slot < 0)
        return;
    struct wire_watch *t = &table[l->slot];
    t->line = l->address;
    t->protection = (uint32_t)l->protection;
    t->id = l->id;
    t->from_cpu_ns = t->from_refs = t->pc = 0;
    __atomic_store_n(&t->state, WIRE_WATCH_PENDING, __ATOMIC_RELEASE);
}

/* Whether a line may be watched from now on, or still may. */
static int goes_on(struct watcher *w, struct line *l, int is_new)
{
    int protection = l->protection;
    if (wire_is_own(w->proc, l->address, l->address + w->line_bytes)) /* it would refuse it itself */
        return 0;
    return may_watch(w, l) && (is_new || l->protection == protection);
}

/* The agent waits, and the table belongs to the collector until the question is answered, except lines that
 * the agent's other threads touch meanwhile. Such a thread may be looking at a slot that was freed just
 * now: the slot is not reused before the next answer. */
static int answer(struct watcher *w, struct error *err)
{
    struct wire_watching *shared = &w->proc->watching;
    int fit = process_is_fit(w), status = 0;
    for (unsigned i = 0; i < w->n && status == 0;) {
        struct line *l = &w->lines[i];
        int is_new = l->slot < 0;
        if (fit && goes_on(w, l, is_new))
            i++;
        else if (is_new)
            status = record_outcome(w, i, PROFILE_REFUSED, burst_end(w), err);
        else /* unmapped or replaced, unnoticed in the burst */
            status = record_outcome(w, i, fit ? PROFILE_UNMAPPED : PROFILE_DROPPED, burst_end(w), err);
    }
    if (status == 0)
        status = censor_half(w, w->live, err);
    if (shared->threads <= 1)
        w->freed = 0;
    for (unsigned i = w->n; i > 0 && status == 0; i--) {
        put_in_table(w, &w->lines[i - 1]);
        if (w->lines[i - 1].slot < 0)
            status = record_outcome(w, i - 1, PROFILE_REFUSED, burst_end(w), err);
    }
    w->freed = 0;
    shared->allowance_ns = w->allowance_ns;
    return status;
}

static int begin_answer(struct watcher *w)
{
    uint32_t asked = w->desc.question;
    return asked != 0 && __atomic_compare_exchange_n(&w->proc->watching.question, &asked,
                                                     (asked & ~3u) | WIRE_QUESTION_ANSWERING, 0,
                                                     __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* Stores the outcomes of all lines that have one. agent_waits: it is waiting for the answer. */
static int record_ended(struct watcher *w, int agent_waits, struct error *err)
{
    int status = 0;
    for (unsigned i = 0; i < w->n && status == 0;) {
        enum profile_outcome outcome = PROFILE_REUSED;
        struct moment at = w->lines[i].touched;
        if (at.ns == 0 && !ended(w, i, &outcome, &at) && w->position[i] != 0) {
            at = w->lines[i].touched = touch_of(w, i);
            w->lines[i].tid = w->desc.tid;
            w->lines[i].own_ns = w->desc.thread_ns;
        }
        if (at.ns != 0 && (agent_waits || w->lines[i].slot < 0)) /* else its slot cannot be freed now */
            status = record_outcome(w, i, outcome, at, err);
        else
            i++;
    }
    return status;
}

/* Lines that were followed in the tail are not followed any further. */
static int censor_followed(struct watcher *w, struct error *err)
{
    int status = 0;
    for (unsigned i = w->n; i > 0 && status == 0; i--)
        if (w->lines[i - 1].in_tail)
            status = record_outcome(w, i - 1, PROFILE_DROPPED, burst_end(w), err);
    return status;
}

static int end_burst(struct watcher *w, struct error *err)
{
    int agent_waits = begin_answer(w), status = record_ended(w, agent_waits, err);
    if (status == 0)
        status = censor_followed(w, err);
    if (!agent_waits) /* no thread waits: the burst's survivors are not watched */
        for (unsigned i = w->n; i > 0 && status == 0; i--)
            if (w->lines[i - 1].slot < 0)
                status = record_outcome(w, i - 1, PROFILE_REFUSED, burst_end(w), err);
    if (agent_waits && status == 0)
        status = answer(w, err);
    w->burst_refs += w->touches + tail_length(w);
    w->touches = 0;
    w->tail = NULL;
    if (!agent_waits)
        return status;
    __atomic_store_n(&w->proc->watching.question, WIRE_QUESTION_NONE, __ATOMIC_RELEASE);
    syscall(SYS_futex, &w->proc->watching.question, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    return status;
}

int watcher_burst(struct watcher *w, const struct wire_desc *desc, const struct watcher_lines *lines,
                  const struct watch_request *requests, size_t nrequests, struct error *err)
{
    begin_burst(w, desc);
    look_for_touched(w, lines);
    for (size_t i = 0; i < nrequests; i++)
        take_request(w, &requests[i]);
    return end_burst(w, err);
}

int watcher_finish(struct watcher *w, uint64_t cpu_ns, int gone, struct error *err)
{
    int status = 0;
    while (w->n > 0 && status == 0) {
        enum profile_outcome outcome = gone ? PROFILE_ENDED : PROFILE_DROPPED;
        const struct wire_counters *count = &w->proc->count;
        struct moment at = {cpu_ns, count->count_refs + count->watch_refs + w->burst_refs};
        if (w->lines[0].touched.ns != 0) {
            outcome = PROFILE_REUSED;
            at = w->lines[0].touched;
        } else {
            ended(w, 0, &outcome, &at);
        }
        status = record_outcome(w, 0, outcome, at, err);
    }
    vmas_free(w->vmas);
    free(w);
    return status;
}
