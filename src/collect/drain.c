/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drain.c - slots, buffers, and the sleep between.
 *
 * The target can write to all shared memory. What decides about memory accesses here (layout, word
 * counts, strings) comes from our own copies or is bounded; a target that scribbles over the rest
 * gets a wrong profile, not a crash.
 */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "collect/counting.h"
#include "collect/drain.h"
#include "collect/trigger.h"
#include "collect/tunables.h"
#include "profile/names.h"

struct slot {
    struct wire_proc *proc; /* NULL: not in use */
    uint32_t pid;
    int pidfd; /* -1: the kernel has none, or we have no more descriptors */
    uint64_t start_ns;
    uint32_t modules; /* stored so far */
    uint64_t expected_seq;
    uint64_t lost;
    struct triggers *triggers; /* NULL: none */
    uint64_t cpu_ns;           /* of the process, when last asked */
    struct reduce_process process;
    struct references *references; /* for the trace */
    struct watcher *watcher;       /* NULL: none */
};

struct drain {
    const struct session *session;
    struct reducer *reducer;
    struct profile *profile;
    struct tee *tee;         /* NULL: no trace */
    struct watches *watches; /* NULL: none */
    unsigned line_bytes;     /* of a watched line */
    unsigned live;           /* see watcher_limit */
    uint64_t allowance_ns;
    uint64_t seed;
    struct watcher *asking;          /* whose burst is being reduced */
    const struct counters *counters; /* of the clock `pmu`; else NULL */
    uint64_t start_ns;
    uint32_t rings;    /* wire_session.doorbell at the last pass */
    uint32_t attached; /* wire_session.attached when the slots were last looked through */
    struct error trouble;
    int in_trouble;
    int news; /* something was handed over since the last commit */
    uint64_t lost;
    uint64_t burst_cpu_ns, ended_cpu_ns, ended_bursts, ended_watch_ns,
        counted; /* of slots that were given back */
    struct slot slots[];
};

static long futex(uint32_t *word, int op, uint32_t value, const struct timespec *timeout)
{
    /* Not FUTEX_PRIVATE: the other side is another process. */
    return syscall(SYS_futex, word, op, value, timeout, NULL, 0);
}

struct drain *drain_new(const struct session *s, struct reducer *r, struct profile *p, uint64_t start_ns,
                        struct error *err)
{
    struct drain *d = calloc(1, sizeof(*d) + s->layout.nslots * sizeof(d->slots[0]));
    if (d == NULL) {
        error_set(err, -ENOMEM, "out of memory for the collector");
        return NULL;
    }
    d->session = s;
    d->reducer = r;
    d->profile = p;
    d->start_ns = start_ns;
    return d;
}

void drain_tee(struct drain *d, struct tee *t)
{
    d->tee = t;
}

void drain_watch(struct drain *d, struct watches *watches, unsigned line_bytes, uint64_t seed)
{
    d->watches = watches;
    d->line_bytes = line_bytes;
    d->seed = seed;
    d->live = COLLECT_WATCH_LIVE;
    d->allowance_ns = COLLECT_WATCH_ALLOWANCE_NS;
}

void drain_request(void *ctx, const struct watch_request *request)
{
    struct drain *d = ctx;
    if (d->asking != NULL)
        watcher_request(d->asking, request);
}

void drain_watch_limit(struct drain *d, unsigned live, uint64_t allowance_ns)
{
    d->live = live;
    d->allowance_ns = allowance_ns;
    for (uint32_t i = 0; i < d->session->layout.nslots; i++)
        if (d->slots[i].watcher != NULL)
            watcher_limit(d->slots[i].watcher, live, allowance_ns);
}

void drain_counters(struct drain *d, const struct counters *counters)
{
    d->counters = counters;
}

static void trouble(struct drain *d, const struct error *err)
{
    if (d->in_trouble)
        return;
    d->in_trouble = 1;
    d->trouble = *err;
    __atomic_store_n(&d->session->map->stop, 1, __ATOMIC_RELEASE);
}

const struct error *drain_trouble(const struct drain *d)
{
    return d->in_trouble ? &d->trouble : NULL;
}

static int storing(const struct drain *d)
{
    return d->profile != NULL && !d->in_trouble;
}

/* --- processes --- */

static void store_modules(struct drain *d, struct slot *slot)
{
    uint32_t n = __atomic_load_n(&slot->proc->nmodules, __ATOMIC_ACQUIRE);
    for (; slot->modules < n && slot->modules < WIRE_MAX_MODULES && storing(d); slot->modules++) {
        struct wire_module m = slot->proc->module[slot->modules];
        struct error err;
        m.path[sizeof(m.path) - 1] = '\0';
        if (profile_add_module(d->profile, slot->process.id, m.start, m.end, m.file_offset, m.path, &err) < 0)
            trouble(d, &err);
    }
}

static void store_counters(struct drain *d, const struct slot *slot)
{
    static const struct {
        const char *name;
        size_t offset;
    } counters[] = {
#define COUNTER(name) {#name, offsetof(struct wire_counters, name)}
        COUNTER(triggers),      COUNTER(bursts),      COUNTER(skipped_buffer), COUNTER(skipped_code),
        COUNTER(skipped_busy),  COUNTER(skipped_gs),  COUNTER(stepped),        COUNTER(syscalls),
        COUNTER(blocks),        COUNTER(insns),       COUNTER(flushes),        COUNTER(threads),
        COUNTER(translate_ns),  COUNTER(stalled_ns),  COUNTER(cpu_ns),         COUNTER(burst_cpu_ns),
        COUNTER(watch_faults),  COUNTER(watch_hits),  COUNTER(watch_minis),    COUNTER(watch_calls),
        COUNTER(watch_unasked), COUNTER(watch_rests), COUNTER(watch_line_ns),  COUNTER(watch_unseen_ns),
        COUNTER(watch_cpu_ns),  COUNTER(counts),      COUNTER(count_refs),     COUNTER(count_cpu_ns),
        COUNTER(count_away_ns), COUNTER(disabled),
#undef COUNTER
    };
    struct error err;
    /* Why the process is not watched any more: enum wire_unwatched. */
    int status = storing(d) ? profile_set_counter(d->profile, slot->process.id, "unwatched",
                                                  slot->proc->watching.off, &err)
                            : 0;
    for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]) && status >= 0 && storing(d); i++) {
        uint64_t value;
        memcpy(&value, (const char *)&slot->proc->count + counters[i].offset, sizeof(value));
        status = profile_set_counter(d->profile, slot->process.id, counters[i].name, value, &err);
    }
    for (uint32_t end = 0; end < WIRE_END_COUNT && status >= 0 && storing(d); end++) {
        char name[64];
        snprintf(name, sizeof(name), "ended_%s", profile_end_name(end));
        if (slot->process.ended[end] != 0)
            status = profile_set_counter(d->profile, slot->process.id, name, slot->process.ended[end], &err);
    }
    if (status >= 0 && storing(d) && slot->lost != 0)
        status = profile_set_counter(d->profile, slot->process.id, "lost_buffers", slot->lost, &err);
    if (status >= 0 && storing(d) && slot->process.bad_records != 0)
        status =
            profile_set_counter(d->profile, slot->process.id, "bad_records", slot->process.bad_records, &err);
    if (status < 0)
        trouble(d, &err);
}

static struct decode_source source_of(const struct drain *d, const struct wire_proc *proc)
{
    return (struct decode_source){
        .templates = (const char *)proc + d->session->layout.template_offset,
        .template_bytes = d->session->layout.template_bytes,
        .block_offset = proc->block_offset,
    };
}

static int counts_always(const struct drain *d)
{
    return d->session->map->clock == WIRE_CLOCK_COUNT_ALWAYS;
}

/* CPU time that profiling has cost the target: bursts, and of counting what native code would not have taken.
 */
static uint64_t profiling_ns(const struct wire_counters *count, int always)
{
    if (always) /* the user asked for it, whatever it costs */
        return count->burst_cpu_ns;
    uint64_t counting = count->count_cpu_ns, away = count->count_away_ns;
    double slower = counting > away ? (double)(counting - away) : 0;
    return count->burst_cpu_ns + (counting < away ? counting : away) +
           (uint64_t)(slower -
                      counting_native_ns(counting_added_ns(COLLECT_COUNT_BLOCKS * (double)count->count_refs,
                                                           COLLECT_COUNT_INDIRECT),
                                         slower));
}

/* A process has taken slot i. */
static void adopt(struct drain *d, uint32_t i)
{
    struct slot *slot = &d->slots[i];
    struct wire_proc *proc = session_map_slot(d->session, i);
    struct error err;
    if (proc == NULL) {
        error_set(&err, -ENOMEM, "cannot map the memory shared with a process: %s", strerror(errno));
        trouble(d, &err);
        return;
    }
    uint32_t pid = __atomic_load_n(&proc->pid, __ATOMIC_ACQUIRE);
    if (pid == 0 || pid > INT_MAX) { /* it has not filled it in yet */
        munmap(proc, d->session->layout.slot_bytes);
        return;
    }
    *slot = (struct slot){.proc = proc, .pid = pid, .start_ns = proc->start_ns, .expected_seq = 1};
    slot->pidfd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
    d->news = 1;
    struct decode_source source = source_of(d, proc);
    if (d->reducer != NULL && reduce_process_init(d->reducer, &slot->process, &source, &err) < 0)
        trouble(d, &err);
    if (d->session->map->perf)
        slot->triggers = triggers_new(slot->process.clock != NULL ? d->counters : NULL, slot->process.clock);
    if (d->watches != NULL && slot->process.decoder != NULL)
        slot->watcher = slot->process.watcher = watcher_new(proc, pid, d->watches, d->line_bytes, d->seed);
    if (slot->watcher != NULL)
        watcher_limit(slot->watcher, d->live, d->allowance_ns);
    if (storing(d)) {
        char exe[sizeof(proc->exe)];
        memcpy(exe, proc->exe, sizeof(exe));
        exe[sizeof(exe) - 1] = '\0';
        uint64_t start_ns = slot->start_ns > d->start_ns ? slot->start_ns - d->start_ns : 0;
        if (profile_add_process(d->profile, pid, proc->ppid, exe, start_ns, &slot->process.id, &err) < 0)
            trouble(d, &err);
    }
}

/* Stores what is known of the process and unmaps its slot. */
static void drop(struct drain *d, struct slot *slot, int gone)
{
    struct error err;
    store_modules(d, slot);
    if (slot->watcher != NULL && watcher_finish(slot->watcher, slot->cpu_ns, gone, &err) < 0)
        trouble(d, &err);
    store_counters(d, slot);
    d->burst_cpu_ns += profiling_ns(&slot->proc->count, counts_always(d));
    d->counted += slot->proc->count.count_refs;
    d->ended_cpu_ns += slot->cpu_ns;
    d->ended_bursts += slot->proc->count.bursts;
    d->ended_watch_ns += slot->proc->count.watch_cpu_ns;
    d->lost += slot->lost;
    triggers_free(slot->triggers); /* which knows the process' clock */
    if (d->reducer != NULL && slot->process.decoder != NULL)
        reduce_process_clear(d->reducer, &slot->process);
    if (slot->pidfd >= 0)
        close(slot->pidfd);
    d->news = 1;
    references_free(slot->references);
    munmap(slot->proc, d->session->layout.slot_bytes);
    *slot = (struct slot){0};
}

void drain_finish(struct drain *d)
{
    for (uint32_t i = 0; i < d->session->layout.nslots; i++)
        if (d->slots[i].proc != NULL)
            drop(d, &d->slots[i], 0);
    drain_commit(d);
}

void drain_free(struct drain *d)
{
    free(d); /* what drain_finish left of slots goes with the process */
}

/* --- buffers --- */

/* The ready buffer with the lowest number; nbuffers if there is none. */
static uint32_t first_ready(const struct drain *d, const struct slot *slot)
{
    uint32_t n = d->session->layout.nbuffers, best = n;
    for (uint32_t i = 0; i < n; i++)
        if (__atomic_load_n(&slot->proc->buf_state[i], __ATOMIC_ACQUIRE) == WIRE_BUF_READY &&
            (best == n || slot->proc->desc[i].seq < slot->proc->desc[best].seq))
            best = i;
    return best;
}

static void take_buffer(struct drain *d, struct slot *slot, uint32_t i)
{
    const struct wire_session *layout = &d->session->layout;
    struct wire_proc *proc = slot->proc;
    struct wire_desc desc = proc->desc[i];
    uint64_t room = layout->buffer_bytes / sizeof(uint64_t);
    const char *words = (const char *)proc + layout->buffer_offset + i * layout->buffer_stride;
    uint64_t n = desc.words < room ? desc.words : room;
    struct error err;

    slot->expected_seq = desc.seq + 1;
    d->news = 1;
    store_modules(d, slot);
    if (d->tee != NULL && !d->in_trouble) {
        struct decode_source source = source_of(d, proc);
        tee_buffer(d->tee, &slot->references, &source, slot->pid, &desc,
                   (const uint64_t *)(const void *)words, n);
    }
    slot->cpu_ns = desc.cpu_end_ns > slot->cpu_ns ? desc.cpu_end_ns : slot->cpu_ns;
    d->asking = slot->watcher;
    if (d->watches != NULL && d->reducer != NULL) /* nobody waits for a choice: none is made */
        reducer_watch(d->reducer, desc.asks != 0 ? d->watches : NULL);
    if (slot->watcher != NULL)
        watcher_begin(slot->watcher, &desc);
    if (d->reducer != NULL && !d->in_trouble && slot->process.decoder != NULL) {
        if (reduce_buffer(d->reducer, &slot->process, &desc, (const uint64_t *)(const void *)words, n, &err) <
            0)
            trouble(d, &err);
    }
    if (slot->watcher != NULL && watcher_end(slot->watcher, &err) < 0)
        trouble(d, &err);
    d->asking = NULL;
    __atomic_store_n(&proc->buf_state[i], WIRE_BUF_FREE, __ATOMIC_RELEASE);
    __atomic_fetch_add(&proc->buf_freed, 1, __ATOMIC_SEQ_CST);
    futex(&proc->buf_freed, FUTEX_WAKE, INT_MAX, NULL);
}

static void count_triggers(struct drain *d, struct slot *slot)
{
    struct error err;
    if (triggers_count(slot->triggers) < 0) {
        error_set(&err, -ENOMEM, "out of memory for the clock of a process");
        trouble(d, &err);
    }
}

/* At most as many buffers as a slot has, so that one busy process does not keep the others waiting. */
static uint64_t drain_slot(struct drain *d, struct slot *slot)
{
    uint32_t n = d->session->layout.nbuffers;
    uint64_t taken = 0;
    while (taken < n) {
        uint32_t i = first_ready(d, slot);
        /* A number was skipped: while we looked, a thread may have handed over one buffer behind our
         * back and a later one before our eyes. What came before the one we saw is visible now. */
        if (i < n && slot->proc->desc[i].seq != slot->expected_seq)
            i = first_ready(d, slot);
        if (i >= n)
            break;
        count_triggers(d, slot); /* what came before that burst */
        take_buffer(d, slot, i);
        taken++;
    }
    return taken;
}

uint64_t drain_pass(struct drain *d)
{
    uint64_t taken = 0;
    d->rings = __atomic_load_n(&d->session->map->doorbell, __ATOMIC_SEQ_CST);
    /* A process counts itself when its slot is filled in. Looking costs a system call a slot. */
    uint32_t attached = __atomic_load_n(&d->session->map->attached, __ATOMIC_ACQUIRE);
    int look = attached != d->attached;
    d->attached = attached;
    for (uint32_t i = 0; i < d->session->layout.nslots; i++) {
        struct slot *slot = &d->slots[i];
        if (look && slot->proc == NULL && session_slot_state(d->session, i) != WIRE_PROC_FREE)
            adopt(d, i);
        if (slot->proc != NULL) {
            count_triggers(d, slot); /* before a new gap begins */
            triggers_serve(slot->triggers, slot->proc);
            taken += drain_slot(d, slot);
        }
    }
    return taken;
}

static int any_ready(const struct drain *d)
{
    for (uint32_t i = 0; i < d->session->layout.nslots; i++)
        if (d->slots[i].proc != NULL && (first_ready(d, &d->slots[i]) < d->session->layout.nbuffers ||
                                         triggers_pending(d->slots[i].triggers, d->slots[i].proc)))
            return 1;
    return 0;
}

void drain_wait(struct drain *d, int timeout_ms)
{
    struct wire_session *session = d->session->map;
    struct timespec timeout = {.tv_sec = timeout_ms / 1000, .tv_nsec = timeout_ms % 1000 * 1000000L};

    /* Said before the last look: who hands over after the look sees that we sleep and rings; and a
     * ring since the last pass has changed the word, so that the wait does not begin. */
    __atomic_store_n(&session->collector_sleeps, 1, __ATOMIC_SEQ_CST);
    if (!any_ready(d))
        futex(&session->doorbell, FUTEX_WAIT, d->rings, &timeout);
    __atomic_store_n(&session->collector_sleeps, 0, __ATOMIC_SEQ_CST);
}

void drain_ring(struct wire_session *session)
{
    __atomic_fetch_add(&session->doorbell, 1, __ATOMIC_SEQ_CST);
}

/* --- ends --- */

/* Gone, or a zombie without threads: nothing of it will write to its slot again. */
static int process_is_gone(uint32_t pid, int pidfd)
{
    char path[64], text[1024];
    if (pidfd >= 0) { /* a microsecond; the rest takes fifty */
        struct pollfd poll_end = {.fd = pidfd, .events = POLLIN};
        return poll(&poll_end, 1, 0) > 0;
    }
    if (kill((pid_t)pid, 0) != 0 && errno == ESRCH)
        return 1;
    snprintf(path, sizeof(path), "/proc/%u/stat", pid);
    FILE *f = fopen(path, "re");
    if (f == NULL)
        return errno == ENOENT;
    size_t n = fread(text, 1, sizeof(text) - 1, f);
    fclose(f);
    text[n] = '\0';
    const char *after = strrchr(text, ')'); /* behind the name, which may hold anything */
    char state = '?';
    long threads = 0;
    if (after == NULL ||
        sscanf(after + 1, " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %ld", &state,
               &threads) != 2)
        return 0;
    return (state == 'Z' || state == 'X') && threads <= 1;
}

/* The process has executed another program since: that one has a slot of its own. */
static int replaced(const struct drain *d, const struct slot *slot)
{
    for (uint32_t i = 0; i < d->session->layout.nslots; i++) {
        const struct slot *other = &d->slots[i];
        if (other != slot && other->proc != NULL && other->pid == slot->pid &&
            other->start_ns > slot->start_ns)
            return 1;
    }
    return 0;
}

void drain_look(struct drain *d)
{
    for (uint32_t i = 0; i < d->session->layout.nslots; i++) {
        struct slot *slot = &d->slots[i];
        /* Until the process is gone its threads can still write. */
        if (slot->proc == NULL || (!process_is_gone(slot->pid, slot->pidfd) && !replaced(d, slot)))
            continue;
        while (drain_slot(d, slot) != 0)
            ;
        for (uint32_t b = 0; b < d->session->layout.nbuffers; b++)
            slot->lost += __atomic_load_n(&slot->proc->buf_state[b], __ATOMIC_ACQUIRE) == WIRE_BUF_OWNED;
        drop(d, slot, 1);
        session_release_slot(d->session, i);
    }
}

uint32_t drain_live(const struct drain *d)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < d->session->layout.nslots; i++)
        n += d->slots[i].proc != NULL &&
             __atomic_load_n(&d->slots[i].proc->state, __ATOMIC_ACQUIRE) == WIRE_PROC_LIVE;
    return n;
}

uint64_t drain_lost(const struct drain *d)
{
    return d->lost;
}

/* CPU time of a live process; 0 if it cannot be told. */
static uint64_t process_cpu_ns(uint32_t pid)
{
    clockid_t clock;
    struct timespec ts;
    if (clock_getcpuclockid((pid_t)pid, &clock) != 0 || clock_gettime(clock, &ts) != 0)
        return 0;
    return (uint64_t)ts.tv_sec * UINT64_C(1000000000) + (uint64_t)ts.tv_nsec;
}

struct budget_use drain_use(struct drain *d)
{
    struct budget_use use = {.burst_ns = drain_burst_cpu_ns(d), .target_ns = d->ended_cpu_ns};
    for (uint32_t i = 0; i < d->session->layout.nslots; i++) {
        struct slot *slot = &d->slots[i];
        if (slot->proc == NULL)
            continue;
        uint64_t ns = process_cpu_ns(slot->pid);
        slot->cpu_ns = ns > slot->cpu_ns ? ns : slot->cpu_ns;
        use.target_ns += slot->cpu_ns;
        use.bursts += slot->proc->count.bursts;
        use.watch_ns += slot->proc->count.watch_cpu_ns;
    }
    use.bursts += d->ended_bursts;
    use.watch_ns += d->ended_watch_ns;
    return use;
}

uint64_t drain_burst_cpu_ns(const struct drain *d)
{
    uint64_t sum = d->burst_cpu_ns;
    for (uint32_t i = 0; i < d->session->layout.nslots; i++)
        if (d->slots[i].proc != NULL)
            sum += profiling_ns(&d->slots[i].proc->count, counts_always(d));
    return sum;
}

uint64_t drain_counted(const struct drain *d)
{
    uint64_t sum = d->counted;
    for (uint32_t i = 0; i < d->session->layout.nslots; i++)
        if (d->slots[i].proc != NULL)
            sum += d->slots[i].proc->count.count_refs;
    return sum;
}

void drain_commit(struct drain *d)
{
    struct error err;
    if (!d->news)
        return;
    d->news = 0;
    for (uint32_t i = 0; i < d->session->layout.nslots; i++)
        if (d->slots[i].proc != NULL)
            store_counters(d, &d->slots[i]);
    if (storing(d) && d->reducer != NULL && reduce_store(d->reducer, &err) < 0)
        trouble(d, &err);
    if (storing(d) && profile_commit(d->profile, &err) < 0)
        trouble(d, &err);
    if (d->tee != NULL)
        tee_flush(d->tee);
}
