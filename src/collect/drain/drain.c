/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drain.c - slots, buffers, and sleeping in between.
 *
 * The target can write to all shared memory. Whatever determines memory accesses here (layout, word counts,
 * strings) is taken from our own copies or is bounded; a target that overwrites the rest gets a wrong
 * profile, but causes no crash.
 */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "collect/drain/drain-internal.h"
#include "collect/tunables.h"

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
    d->mode = s->layout.mode;
    return d;
}

void drain_tee(struct drain *d, struct tee *t)
{
    d->tee = t;
}

int drain_watch(struct drain *d, const struct watch_setting *setting)
{
    d->watch = *setting;
    int has_tails = d->session->layout.full_bytes < d->session->layout.buffer_bytes;
    if (has_tails && (d->tail = burst_tail_new()) == NULL)
        return -ENOMEM;
    d->live = COLLECT_WATCH_LIVE;
    d->allowance_ns = COLLECT_WATCH_ALLOWANCE_NS;
    return 0;
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

const struct error *drain_trouble(const struct drain *d)
{
    return d->in_trouble ? &d->trouble : NULL;
}

void drain_finish(struct drain *d)
{
    for (uint32_t i = 0; i < d->session->layout.nslots; i++)
        if (d->slots[i].proc != NULL)
            drain_drop(d, &d->slots[i], 0);
    if (d->reducer != NULL)
        reduce_finishing(d->reducer);
    d->news = 1;
    drain_commit(d);
}

void drain_free(struct drain *d)
{
    if (d != NULL)
        burst_tail_free(d->tail);
    free(d); /* what drain_finish left of slots is freed with the process */
}

/* --- buffers --- */

static int is_ready(const struct slot *slot, uint32_t i)
{
    return __atomic_load_n(&slot->proc->buf_state[i], __ATOMIC_ACQUIRE) == WIRE_BUF_READY;
}

/* The ready buffer with the lowest number; nbuffers if there is none. */
static uint32_t first_ready(const struct drain *d, const struct slot *slot)
{
    uint32_t n = d->session->layout.nbuffers, best = n;
    for (uint32_t i = 0; i < n; i++)
        if (is_ready(slot, i) && (best == n || slot->proc->desc[i].seq < slot->proc->desc[best].seq))
            best = i;
    return best;
}

/* The ready buffer with that number; nbuffers if there is none. */
static uint32_t ready_with(const struct drain *d, const struct slot *slot, uint64_t seq)
{
    uint32_t n = d->session->layout.nbuffers, i = 0;
    while (i < n && !(is_ready(slot, i) && slot->proc->desc[i].seq == seq))
        i++;
    return i;
}

/* A buffer's records: a burst, and the tail after it. */
struct records {
    const uint64_t *words;
    uint64_t n;     /* of the burst */
    uint64_t ntail; /* after these */
};

/* A burst has this length; what the buffer holds beyond that is the tail. */
static struct records split(const struct drain *d, const struct wire_desc *desc, const uint64_t *words,
                            uint64_t n)
{
    uint64_t most = d->session->layout.full_bytes / sizeof(uint64_t), burst = n;
    if (!desc->full && d->tail != NULL)
        burst = decode_whole_records(words, n, most);
    return (struct records){words, burst, n - burst};
}

/* Fewer for each burst of a long run, to bound the profile's size: the number of bursts is what counts then.
 */
static size_t lines_to_follow(const struct drain *d)
{
    uint64_t bursts = reduce_totals(d->reducer)->bursts;
    return bursts < COLLECT_TAIL_BURSTS       ? COLLECT_TAIL_LINES
           : bursts < 4 * COLLECT_TAIL_BURSTS ? COLLECT_TAIL_LINES / 2
                                              : COLLECT_TAIL_LINES / 4;
}

static int look_through_tail(struct drain *d, struct slot *slot, const struct wire_desc *desc,
                             const struct records *records, const struct burst_summary *summary,
                             const struct watch_request *requests, size_t n, struct error *err)
{
    burst_tail_begin(d->tail, summary->survivors, summary->lines);
    watcher_follow(slot->watcher, d->tail);
    for (size_t i = 0; i < n; i++)
        burst_tail_follow(d->tail, requests[i].address / d->watch.line_bytes);
    uint64_t most = COLLECT_BURST_WORD_TOUCHES * records->ntail + COLLECT_BURST_MORE_TOUCHES;
    if (burst_tail_decode(d->tail, slot->process.decoder, desc, records->words + records->n, records->ntail,
                          most) < 0)
        return error_set(err, -ENOMEM, "out of memory for the references after a burst");
    refclock_more(slot->process.clock, desc->tid, burst_tail_steps(d->tail));
    d->counted += burst_tail_references(d->tail);
    if (desc->count_gap != 0)
        d->all_counted += burst_tail_references(d->tail);
    return 0;
}

/* Attributes the tail's first touches of lines. */
static int take_tail(struct drain *d, struct slot *slot, struct error *err)
{
    unsigned n;
    uint64_t represented;
    const struct distinct_touched *list = burst_tail_touched(d->tail, &n, &represented);
    int status = 0;
    for (unsigned i = 0; i < n && status == 0; i++) {
        const struct sites_tail_touch touch = {.site = decode_touch_site(list[i].touch),
                                               .part = decode_touch_part(list[i].touch),
                                               .entry = list[i].entry,
                                               .distance = list[i].distance,
                                               .represented = represented,
                                               .in_burst = list[i].in_burst};
        status = reduce_tail_touch(d->reducer, &slot->process, list[i].line, &touch, err);
    }
    return status;
}

/*
 * Stores a burst and chooses the survivors to be watched, if the agent waits for a choice, and those to be
 * followed in its tail. In any case the process' watcher sees its lines.
 */
static int take_burst(struct drain *d, struct slot *slot, const struct wire_desc *desc,
                      const struct records *records, struct reduced *reduced, struct error *err)
{
    const struct burst_summary *summary = &reduced->summary;
    const struct watch_request *requests = NULL;
    long nrequests = 0;
    int status = 0, has_tail = records->ntail > 0 && slot->watcher != NULL;
    struct reduce_survivors survivors = {.process = &slot->process, .summary = summary};
    if (reduced->is_burst && storing(d)) {
        status = burst_store(summary, d->profile, &reduced->row, err);
        if (status == 0 && (desc->question != 0 || has_tail) && slot->watcher != NULL) {
            const struct watch_burst burst = {.burst = reduced->row.id,
                                              .survivors = summary->survivors,
                                              .n = summary->lines,
                                              .unwatched = desc->question == 0,
                                              .followed = has_tail ? lines_to_follow(d) : 0,
                                              .object_of = reduce_object_of,
                                              .ctx = &survivors};
            nrequests = watches_choose(d->watch.watches, &burst, &requests, err);
        }
    }
    size_t n = nrequests > 0 ? (size_t)nrequests : 0;
    if (status < 0 || nrequests < 0)
        drain_set_trouble(d, err);
    if (n > 0) {
        slot->process.last_watch = requests[n - 1].id;
        if (slot->process.first_watch == 0)
            slot->process.first_watch = requests[0].id;
    }
    has_tail = has_tail && reduced->is_burst && !d->in_trouble && !desc->full;
    if (has_tail && (status = look_through_tail(d, slot, desc, records, summary, requests, n, err)) < 0)
        return status;
    if (has_tail && reduced->has_sites && (status = take_tail(d, slot, err)) < 0)
        return status;
    if (reduced->is_burst && storing(d) &&
        (status = reduce_store_sites(d->reducer, &slot->process, reduced, d->profile, err)) < 0)
        return status;
    if (slot->watcher == NULL || desc->full) /* after full mode no thread waits for an answer */
        return 0;
    const struct watcher_lines lines = {.lines = summary->survivors,
                                        .n = summary->lines,
                                        .touches = summary->touches,
                                        .tail = has_tail ? d->tail : NULL};
    return watcher_burst(slot->watcher, desc, &lines, requests, n, err);
}

/* The words of a buffer, which its process has filled. */
static const uint64_t *words_of(const struct drain *d, const struct wire_proc *proc, uint32_t i,
                                const struct wire_desc *desc, uint64_t *n)
{
    const struct wire_session *layout = &d->session->layout;
    uint64_t capacity = wire_buffer_bytes(layout, i) / sizeof(uint64_t);
    const char *buffer = (const char *)proc + layout->buffer_offset + i * layout->buffer_stride;
    uint64_t first = desc->first_word < capacity ? desc->first_word : capacity;
    *n = desc->words < capacity - first ? desc->words : capacity - first;
    return (const uint64_t *)(const void *)buffer + first;
}

/* Full mode: lets the other processor begin with buffers whose turn comes after this one's, at most so many
 * in all. */
static void look_ahead(struct drain *d, struct slot *slot, uint64_t most)
{
    uint64_t n, waiting;
    struct error err;
    int status = 1;
    while (status > 0 && (waiting = reduce_ahead_waiting(d->reducer)) < most) {
        uint32_t i = ready_with(d, slot, slot->expected_seq + waiting);
        if (i == d->session->layout.nbuffers)
            return;
        struct wire_desc desc = slot->proc->desc[i];
        const uint64_t *words = words_of(d, slot->proc, i, &desc, &n);
        if ((status = reduce_ahead(d->reducer, &slot->process, &desc, words, n, &err)) < 0)
            drain_set_trouble(d, &err);
    }
}

static void take_buffer(struct drain *d, struct slot *slot, uint32_t i)
{
    struct wire_proc *proc = slot->proc;
    struct wire_desc desc = proc->desc[i];
    uint64_t n;
    const uint64_t *words = words_of(d, proc, i, &desc, &n);
    struct reduced reduced = {0};
    struct error err;

    if (desc.seq >= slot->expected_seq)
        slot->expected_seq = desc.seq + 1;
    d->news = 1;
    drain_store_modules(d, slot);
    if (d->tee != NULL && !d->in_trouble) {
        struct decode_source source = source_of(d, proc);
        tee_buffer(d->tee, &slot->references, &source, slot->pid, &desc, words, n);
    }
    slot->cpu_ns = desc.cpu_end_ns > slot->cpu_ns ? desc.cpu_end_ns : slot->cpu_ns;
    const struct records records = split(d, &desc, words, n);
    struct wire_desc burst = desc;
    if (records.ntail > 0) { /* why the tail ended does not matter */
        burst.end = WIRE_END_FULL;
        burst.last_insns = UINT32_MAX;
    }
    if (d->reducer != NULL && !d->in_trouble && slot->process.decoder != NULL &&
        reduce_buffer(d->reducer, &slot->process, &burst, &proc->stack[i], words, records.n, &reduced, &err) <
            0) {
        reduced = (struct reduced){0};
        drain_set_trouble(d, &err);
    }
    if (take_burst(d, slot, &desc, &records, &reduced, &err) < 0)
        drain_set_trouble(d, &err);
    __atomic_store_n(&proc->buf_state[i], WIRE_BUF_FREE, __ATOMIC_RELEASE);
    __atomic_fetch_add(&proc->buf_freed, 1, __ATOMIC_SEQ_CST);
    futex(&proc->buf_freed, FUTEX_WAKE, 1, NULL); /* hundreds of threads may wait, but one can have it */
}

static void count_triggers(struct drain *d, struct slot *slot)
{
    struct error err;
    if (triggers_count(slot->triggers) < 0) {
        error_set(&err, -ENOMEM, "out of memory for the clock of a process");
        drain_set_trouble(d, &err);
    }
}

/* An element that a thread has reserved and not written yet is waited for: that takes it less than a
 * microsecond. */
static void take_ticks(struct drain *d, struct slot *slot)
{
    struct wire_ticks *ticks = &slot->proc->ticks;
    struct error err;
    for (uint32_t n = 0; n < WIRE_TICKS; n++) {
        struct wire_tick *at = &ticks->ring[slot->ticks % WIRE_TICKS];
        if (__atomic_load_n(&at->number, __ATOMIC_ACQUIRE) != slot->ticks + 1)
            break;
        struct wire_tick tick = *at;
        __atomic_store_n(&ticks->tail, ++slot->ticks, __ATOMIC_RELEASE);
        d->news = 1;
        if (!d->in_trouble && reduce_tick(d->reducer, &slot->process, &tick, &err) < 0)
            drain_set_trouble(d, &err);
    }
}

/* Whether the run is in full mode now and will continue in bursts. */
static int begins_full(const struct drain *d)
{
    return d->session->layout.begins_full && d->mode == WIRE_MODE_FULL;
}

/*
 * The buffer whose turn it is; nbuffers if none is ready. Buffers are taken in the order of their numbers,
 * with one exception: a thread that is preempted between drawing a number and handing over does not keep the
 * others waiting, and its buffer is taken late. But buffers that are being decoded ahead are taken first,
 * since their distances are counted already.
 */
static uint32_t next_in_turn(const struct drain *d, const struct slot *slot)
{
    uint32_t n = d->session->layout.nbuffers, i = first_ready(d, slot);
    /* A number is missing: during the scan, a thread may have handed over one buffer at a position already
     * scanned, and a later one at a position still to come. Both are visible now. */
    if (i < n && slot->proc->desc[i].seq != slot->expected_seq)
        i = first_ready(d, slot);
    if (i < n && slot->proc->desc[i].seq != slot->expected_seq && d->reducer != NULL &&
        reduce_ahead_waiting(d->reducer) > 0) {
        uint32_t expected = ready_with(d, slot, slot->expected_seq);
        i = expected < n ? expected : i;
    }
    return i;
}

uint64_t drain_slot(struct drain *d, struct slot *slot)
{
    uint32_t n = d->session->layout.nbuffers;
    if (d->reducer != NULL && slot->process.decoder != NULL)
        take_ticks(d, slot);
    uint64_t taken = 0, most = begins_full(d) ? COLLECT_FULL_FIRST_TAKEN : n;
    while (taken < most) {
        uint32_t i = next_in_turn(d, slot);
        if (i >= n)
            break;
        count_triggers(d, slot); /* counted before that burst */
        if (d->reducer != NULL && !d->in_trouble && slot->process.decoder != NULL &&
            slot->proc->desc[i].seq == slot->expected_seq)
            look_ahead(d, slot, most - taken);
        take_buffer(d, slot, i);
        taken++;
    }
    return taken;
}

/* Takes up those processes, unknown so far, that fork has made of the one in slot i, which is about to be
 * forgotten, so that they have its data objects. Sets the bits of their slots. */
static void adopt_children(struct drain *d, uint32_t i, uint64_t children[WIRE_MAX_SLOTS / 64])
{
    if (d->slots[i].process.objects == NULL)
        return;
    for (uint32_t child = 0; child < d->session->layout.nslots; child++) {
        if (d->slots[child].proc != NULL ||
            __atomic_load_n(&d->session->map->copied_slot[child], __ATOMIC_RELAXED) != i + 1 ||
            session_slot_state(d->session, child) == WIRE_PROC_FREE)
            continue;
        drain_adopt(d, child);
        if (d->slots[child].proc != NULL)
            children[child / 64] |= UINT64_C(1) << child % 64;
    }
}

void drain_release_ended(struct drain *d, uint32_t i)
{
    struct slot *slot = &d->slots[i];
    /* Until the process has ended its threads can still write. */
    if (slot->proc == NULL || (!drain_has_ended(slot) && !drain_is_replaced(d, slot)))
        return;
    while (drain_slot(d, slot) != 0)
        ;
    for (uint32_t b = 0; b < d->session->layout.nbuffers; b++)
        slot->lost += __atomic_load_n(&slot->proc->buf_state[b], __ATOMIC_ACQUIRE) == WIRE_BUF_OWNED;
    uint64_t children[WIRE_MAX_SLOTS / 64] = {0};
    adopt_children(d, i, children);
    drain_drop(d, slot, 1);
    session_release_slot(d->session, i);
    for (uint32_t child = 0; child < d->session->layout.nslots; child++)
        if (children[child / 64] >> child % 64 & 1)
            drain_release_ended(d, child); /* others may wait for the slot */
}

uint64_t drain_pass(struct drain *d)
{
    uint64_t taken = 0;
    d->rings = __atomic_load_n(&d->session->map->doorbell, __ATOMIC_SEQ_CST);
    /* A process increments `attached` when it has filled in its slot. Reading a slot's state is a system
     * call. */
    uint32_t attached = __atomic_load_n(&d->session->map->attached, __ATOMIC_ACQUIRE);
    if (d->reducer != NULL)
        reducer_gap(d->reducer, __atomic_load_n(&d->session->map->gap_ns, __ATOMIC_RELAXED));
    int look = attached != d->attached;
    d->attached = attached;
    for (uint32_t i = 0; i < d->session->layout.nslots; i++) {
        struct slot *slot = &d->slots[i];
        if (look && slot->proc == NULL && session_slot_state(d->session, i) != WIRE_PROC_FREE) {
            drain_adopt(d, i);
            drain_release_ended(d, i); /* others may wait for the slot */
        }
        if (slot->proc != NULL) {
            count_triggers(d, slot); /* before a new gap begins */
            triggers_serve(slot->triggers, slot->proc,
                           __atomic_load_n(&d->session->map->gap_ns, __ATOMIC_RELAXED));
            taken += drain_slot(d, slot);
            if (slot->process.objects != NULL)
                objects_make_room(slot->process.objects);
        }
    }
    return taken;
}

void drain_set_mode(struct drain *d, enum wire_mode mode)
{
    if (d->mode == WIRE_MODE_FULL && d->reducer != NULL)
        reduce_full_over(d->reducer);
    d->mode = mode;
    __atomic_store_n(&d->session->map->mode, mode, __ATOMIC_RELEASE);
}

uint64_t drain_ready(const struct drain *d)
{
    uint64_t ready = 0;
    for (uint32_t i = 0; i < d->session->layout.nslots; i++)
        for (uint32_t k = 0; d->slots[i].proc != NULL && k < d->session->layout.nbuffers; k++)
            ready += __atomic_load_n(&d->slots[i].proc->buf_state[k], __ATOMIC_RELAXED) == WIRE_BUF_READY;
    return ready;
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

    /* Set before the last scan: an agent that hands over later sees that the collector sleeps, and rings; a
     * ring since the last pass has changed the word, so that the wait does not begin. */
    __atomic_store_n(&session->collector_sleeps, 1, __ATOMIC_SEQ_CST);
    if (!any_ready(d))
        futex(&session->doorbell, FUTEX_WAIT, d->rings, &timeout);
    __atomic_store_n(&session->collector_sleeps, 0, __ATOMIC_SEQ_CST);
}

void drain_commit(struct drain *d)
{
    struct error err;
    if (!d->news)
        return;
    d->news = 0;
    for (uint32_t i = 0; i < d->session->layout.nslots; i++)
        if (d->slots[i].proc != NULL)
            drain_store_counters(d, &d->slots[i]);
    if (storing(d) && d->reducer != NULL && reduce_store(d->reducer, d->profile, &err) < 0)
        drain_set_trouble(d, &err);
    if (storing(d) && profile_commit(d->profile, &err) < 0)
        drain_set_trouble(d, &err);
    if (d->tee != NULL)
        tee_flush(d->tee);
}
