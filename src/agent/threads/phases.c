/* SPDX-License-Identifier: Apache-2.0 */
/*
 * phases.c - strata of bursts in the time of each phase of a thread's code.
 *
 * Problem. With one burst in each stratum of a thread's time, phases have the bursts that are due to them
 * only on average: a program that alternates between two phases faster than bursts come has too many bursts
 * in one of them by chance.
 *
 * Method. Ticks are samples of code. Eight in a row are a window, and windows are clustered as they come
 * (leader-follower, as ScarPhase does; Sembrant, Eklov & Hagersten 2011): a window is of the nearest phase,
 * by the Manhattan distance of shares of places less what chance explains, or a new one. The phase of the
 * last window is predicted for the next one, until a sample is in a place that is rare in it and usual in
 * another phase. Each predicted phase has a time of its own, which stands still while others are predicted,
 * and each stratum of that time gets one burst. So strata divide the thread's time whatever the predictions
 * are worth: each burst represents a gap, and no weight depends on phases.
 *
 * Example: A and B alternate every 30 ms, and the gap is 40 ms. A has a burst at a random point of its first
 * 40 ms, which are the times 0-30 and 60-70, one of the next 40 ms (70-90 and 120-140), and so on.
 */
#include "agent/threads/phases.h"
#include <string.h>
#include "agent/sys/session.h"
#include "agent/thread.h"
#include "base/random.h"

static uint32_t square_root(uint32_t x)
{
    uint32_t root = 0;
    for (uint32_t bit = 1u << 15; bit; bit >>= 1)
        if ((root + bit) * (root + bit) <= x)
            root += bit;
    return root;
}

/*
 * The distance of a window of n samples from a phase of N that chance explains: its mean, and two standard
 * deviations (model/phases.c). For shares q of places these are sqrt(2 / pi) times the sum of sqrt(q (1 -
 * q)), and sqrt(1 - 2 / pi) times the root of the sum of q (1 - q), both times sqrt(1 / n + 1 / N).
 */
static uint32_t chance_of(const struct phase *p)
{
    uint32_t sum = 0, variance = 0;
    for (unsigned i = 0; i < PHASE_PLACES; i++) {
        uint32_t one = p->count[i] * (p->samples - p->count[i]);
        sum += square_root(one);
        variance += one;
    }
    uint32_t of_one =
        (817 * sum + 1235 * square_root(variance)) / p->samples; /* 0.798 and 1.206 in 1024ths */
    return of_one * square_root((1u << 20) / PHASE_SAMPLES + (1u << 20) / p->samples) / 1024;
}

/* Of a window and a phase, squared; without what chance explains, which may be more. */
static int32_t distance(const uint8_t *window, const struct phase *p)
{
    int32_t sum = 0;
    for (unsigned i = 0; i < PHASE_PLACES; i++) {
        int32_t a = window[i] * (int32_t)(1024 / PHASE_SAMPLES),
                b = (int32_t)(p->count[i] * 1024u / p->samples);
        sum += a > b ? a - b : b - a;
    }
    return sum * sum - (int32_t)(p->chance * p->chance);
}

static void add_window(struct phase *p, const uint8_t *window)
{
    int halve = p->samples >= PHASE_HALVE;
    p->samples = 0;
    for (unsigned i = 0; i < PHASE_PLACES; i++) {
        p->count[i] = (uint16_t)((p->count[i] >> halve) + window[i]);
        p->samples += p->count[i];
    }
    p->chance = chance_of(p);
}

/* The phase of a complete window: the present one, if chance explains all of the distance. */
static uint32_t classify(struct phase_state *s)
{
    uint32_t nearest = s->current;
    int32_t least = s->found ? distance(s->window, &s->phase[s->current]) : INT32_MAX;
    for (uint32_t k = 0; k < s->found && least > 0; k++) {
        int32_t d = distance(s->window, &s->phase[k]);
        if (d < least) {
            least = d;
            nearest = k;
        }
    }
    if (least >= PHASE_FAR * PHASE_FAR && s->found < PHASE_MOST)
        nearest = s->found++;
    add_window(&s->phase[nearest], s->window);
    return nearest;
}

static void plan_in(struct thread *t, uint64_t begin, uint64_t gap, uint64_t skipped)
{
    t->timing.stratum_ns = begin + skipped;
    t->timing.planned_ns = t->timing.stratum_ns + random_splitmix64(&t->timing.random) % gap;
}

void phases_plan_next(struct thread *t, uint64_t from, uint64_t gap)
{
    uint64_t skipped = t->timing.translated_ns + t->phases.phase[t->phases.current].outside_ns;
    uint64_t own = from > skipped ? from - skipped : 0;
    plan_in(t, (own / gap + 1) * gap, gap, skipped);
}

static void leave_phase(struct thread *t, struct phase *p, uint64_t now)
{
    p->left_ns = now;
    p->gap_ns = t->timing.gap_ns;
    p->planned_ns = t->timing.planned_ns;
    p->stratum_ns = t->timing.stratum_ns;
    p->takes_any_tick = t->timing.takes_any_tick;
}

static void return_to_phase(struct thread *t, struct phase *p, uint64_t now)
{
    uint64_t away = now - p->left_ns;
    p->outside_ns += away;
    t->timing.gap_ns = p->gap_ns;
    t->timing.planned_ns = p->planned_ns + away;
    t->timing.stratum_ns = p->stratum_ns + away;
    t->timing.takes_any_tick = p->takes_any_tick;
}

/* As in the collector (reduce/windows.c), pieces of 256 bytes. */
static unsigned place_of(uint64_t pc)
{
    uint64_t x = (pc >> 8) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return (unsigned)((x ^ x >> 31) % PHASE_PLACES);
}

/* The phase that the place of the last sample belongs to: the present one, if it is usual there. */
static uint32_t phase_at(const struct phase_state *s, unsigned place)
{
    uint32_t most = 0, best = s->current;
    for (uint32_t k = 0; k < s->found; k++) {
        const struct phase *p = &s->phase[k];
        uint32_t share = p->count[place] * 1024u / p->samples;
        if (share >= PHASE_USUAL && k == s->current)
            return k;
        if (share >= PHASE_USUAL && share > most) {
            most = share;
            best = k;
        }
    }
    return best;
}

static void change_phase(struct thread *t, uint32_t from, uint32_t to, int is_new, uint64_t now)
{
    struct phase_state *s = &t->phases;
    s->current = to;
    if (to == from)
        return;
    leave_phase(t, &s->phase[from], now);
    if (!is_new) {
        return_to_phase(t, &s->phase[to], now);
    } else {
        s->phase[to].outside_ns = now - t->timing.translated_ns;
        t->timing.takes_any_tick = 0;
        plan_in(t, 0, t->timing.gap_ns, now);
    }
}

void phases_follow(struct thread *t, uint64_t pc, uint64_t now)
{
    struct phase_state *s = &t->phases;
    unsigned place = place_of(pc);
    uint32_t found = s->found, to;
    s->window[place]++;
    if (++s->in_window < PHASE_SAMPLES) {
        to = phase_at(s, place);
    } else {
        to = classify(s);
        s->in_window = 0;
        memset(s->window, 0, sizeof s->window);
    }
    change_phase(t, s->current, to, to >= found && found > 0, now);
}
