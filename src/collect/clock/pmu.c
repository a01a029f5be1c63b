/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/clock/pmu.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "wire/wire.h"

/* One page of records, of 64 bytes per overflow, after the page that describes them. */
#define RING_BYTES WIRE_PAGE

/* What read() of a group returns, and the end of an overflow's record. */
struct group {
    uint64_t n, running_ns, count[COUNTERS_MAX];
};

int pmu_open(struct pmu *p, const struct counters *counters, uint32_t tid, uint64_t period)
{
    *p = (struct pmu){.counters = counters, .fd = {-1, -1, -1}};
    for (unsigned i = 0; i < counters->n; i++) {
        const struct counter *c = &counters->event[i];
        struct perf_event_attr attr = {
            .type = c->type,
            .size = sizeof(attr),
            .config = c->config,
            .config1 = c->config1,
            .config2 = c->config2,
            .read_format = PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_RUNNING,
            .exclude_kernel = 1,
            .exclude_hv = 1,
            .use_clockid = 1, /* the same for all events of a group */
            .clockid = CLOCK_MONOTONIC,
        };
        if (i == 0) {
            attr.sample_period = period;
            attr.sample_type = PERF_SAMPLE_TIME | PERF_SAMPLE_READ;
            attr.disabled = 1;
            attr.sigtrap = 1;
            attr.remove_on_exec = 1;
            attr.sig_data = WIRE_MAGIC;
        }
        p->fd[i] = (int)syscall(SYS_perf_event_open, &attr, (pid_t)tid, -1, p->fd[0], PERF_FLAG_FD_CLOEXEC);
        if (p->fd[i] < 0) {
            int code = -errno;
            pmu_close(p);
            return code;
        }
    }
    void *ring = mmap(NULL, WIRE_PAGE + RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, p->fd[0], 0);
    if (ring != MAP_FAILED) /* a user may lock only so much memory: without the ring there is a trigger, but
                               no clock */
        p->ring = ring;
    return 0;
}

void pmu_close(struct pmu *p)
{
    if (p->ring != NULL)
        munmap(p->ring, WIRE_PAGE + RING_BYTES);
    p->ring = NULL;
    for (unsigned i = 0; i < COUNTERS_MAX; i++) {
        if (p->fd[i] >= 0)
            close(p->fd[i]);
        p->fd[i] = -1;
    }
    p->counting = 0;
}

static struct pmu_reading reading_of(const struct pmu *p, uint64_t at_ns, const struct group *g)
{
    struct pmu_reading r = {.at_ns = at_ns, .cpu_ns = g->running_ns};
    for (unsigned i = 0; i < p->counters->n; i++)
        r.count[i] = g->count[i];
    return r;
}

static size_t group_bytes(const struct pmu *p)
{
    return (2 + p->counters->n) * sizeof(uint64_t);
}

void pmu_begin(struct pmu *p)
{
    struct timespec now;
    struct group g;
    if (p->counting || p->ring == NULL)
        return;
    /* The time first: a stretch that seems to begin inside a burst is rejected (refclock.c). */
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (read(p->fd[0], &g, group_bytes(p)) != (ssize_t)group_bytes(p))
        return;
    p->from = reading_of(p, (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec, &g);
    p->counting = 1;
}

/* Copies n bytes of the ring from `at` on; they may wrap around its end. */
static void take(const struct pmu *p, uint64_t at, void *to, size_t n)
{
    const char *bytes = (const char *)p->ring + WIRE_PAGE;
    for (size_t i = 0; i < n; i++)
        ((char *)to)[i] = bytes[(at + i) % RING_BYTES];
}

/* Whether a reading is later than the other, by time and by counts: an overflow may fall between the other
 * one's time and its counts. */
static int is_later(const struct pmu *p, const struct pmu_reading *a, const struct pmu_reading *than)
{
    int later = a->at_ns > than->at_ns && a->cpu_ns >= than->cpu_ns;
    for (unsigned i = 0; i < p->counters->n; i++)
        later = later && a->count[i] >= than->count[i];
    return later;
}

int pmu_ended(struct pmu *p, struct refclock_stretch *s, double *first)
{
    struct perf_event_mmap_page *page = p->ring;
    int ended = 0;
    if (page == NULL)
        return 0;
    uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE), tail = page->data_tail;
    while (tail < head) {
        struct perf_event_header header;
        struct {
            uint64_t time_ns;
            struct group group;
        } record;
        take(p, tail, &header, sizeof(header));
        size_t body = sizeof(record.time_ns) + group_bytes(p);
        if (header.type == PERF_RECORD_SAMPLE && header.size >= sizeof(header) + body && p->counting) {
            take(p, tail + sizeof(header), &record, body);
            struct pmu_reading to = reading_of(p, record.time_ns, &record.group);
            /* Earlier ones belong to previous triggers, or to the burst itself. */
            if (is_later(p, &to, &p->from)) {
                *s = (struct refclock_stretch){.start_ns = p->from.at_ns,
                                               .end_ns = to.at_ns,
                                               .cpu_ns = (double)(to.cpu_ns - p->from.cpu_ns)};
                for (unsigned i = 0; i < p->counters->n; i++)
                    s->references += p->counters->event[i].weight * (double)(to.count[i] - p->from.count[i]);
                *first = (double)(to.count[0] - p->from.count[0]);
                p->counting = 0;
                ended = 1;
            }
        }
        tail += header.size;
    }
    __atomic_store_n(&page->data_tail, tail, __ATOMIC_RELEASE);
    return ended;
}
