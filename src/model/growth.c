/* SPDX-License-Identifier: Apache-2.0 */
/*
 * growth.c - a survival function and its running sum.
 *
 * With F(j) the share of references whose reuse distance is j or more, r references touch
 *
 *     ES(r) = F(1) + ... + F(r)
 *
 * distinct lines (derived in statstack.c). F comes from Kaplan-Meier, with the rule of survival.c for
 * censored distances; within a bin F is linear.
 *
 * Example: distances 1, 1, 3, endless. F(1) = 1, F(2) = F(3) = 1/2, F(4) = 1/4: ES(1) = 1, ES(3) = 2,
 * ES(7) = 3.
 */
#include "model/growth.h"

#include <math.h>

#define FIRST_STEP HIST_EXACT /* histogram bins from here on are steps of an octave */

/* The first histogram bin of a bin. */
static uint32_t first_hist_bin(uint32_t bin)
{
    if (bin < GROWTH_EXACT)
        return bin;
    uint32_t above = bin - GROWTH_EXACT, octave = above / GROWTH_STEPS, step = above % GROWTH_STEPS;
    if (octave < 4) /* 64 .. 1023: a histogram bin a value */
        return (GROWTH_EXACT << octave) + step * ((GROWTH_EXACT << octave) / GROWTH_STEPS);
    return FIRST_STEP + (above - 4 * GROWTH_STEPS) * (HIST_SUB / GROWTH_STEPS);
}

static uint32_t bin_of_hist_bin(uint32_t hist_bin)
{
    if (hist_bin < GROWTH_EXACT)
        return hist_bin;
    if (hist_bin >= FIRST_STEP)
        return GROWTH_EXACT + 4 * GROWTH_STEPS + (hist_bin - FIRST_STEP) / (HIST_SUB / GROWTH_STEPS);
    uint32_t octave = 25u - (uint32_t)__builtin_clz(hist_bin); /* 0: 64 .. 127 */
    uint32_t start = GROWTH_EXACT << octave;
    return GROWTH_EXACT + octave * GROWTH_STEPS + (hist_bin - start) / (start / GROWTH_STEPS);
}

double growth_edge(uint32_t bin)
{
    return (double)hist_edge(first_hist_bin(bin));
}

uint32_t growth_bin(double value)
{
    return bin_of_hist_bin(hist_bin(value < 0x1p48 ? (uint64_t)value : (UINT64_C(1) << 48) - 1));
}

void growth_add_hist(struct growth_counts *counts, enum growth_kind kind, const struct packed_hist *h)
{
    double *into = kind == GROWTH_EVENT ? counts->event : counts->censored;
    struct packed_bins bins = packed_hist_bins(h);
    uint32_t bin = 0;
    uint64_t sum = 0;

    while (packed_bins_next(&bins)) {
        uint32_t next = bin_of_hist_bin(bins.bin);
        if (next != bin) {
            into[bin] += (double)sum;
            sum = 0;
            bin = next;
        }
        sum += bins.count;
    }
    into[bin] += (double)sum;
}

void growth_add_counts(struct growth_counts *into, const struct growth_counts *from, double factor)
{
    for (uint32_t bin = 0; bin < GROWTH_BINS; bin++) {
        into->event[bin] += factor * from->event[bin];
        into->censored[bin] += factor * from->censored[bin];
    }
    into->endless += factor * from->endless;
}

static double sum_within(const struct growth *g, uint32_t bin, double width, double k)
{
    return k * g->share[bin] - (g->share[bin] - g->share[bin + 1]) * k * (k + 1) / (2 * width);
}

static void sum_from(struct growth *g, uint32_t from)
{
    for (uint32_t bin = from; bin < GROWTH_BINS; bin++) {
        double width = growth_edge(bin + 1) - growth_edge(bin);
        g->lines[bin + 1] = g->lines[bin] + sum_within(g, bin, width, width);
    }
}

uint32_t growth_estimate(const struct growth_counts *counts, double least, struct growth *g)
{
    double at_risk[GROWTH_BINS]; /* weight of the distances known to reach the bin */
    double risk = counts->endless, share = 1;
    uint32_t known = GROWTH_BINS;

    for (uint32_t bin = GROWTH_BINS; bin-- > 0;) {
        double width = growth_edge(bin + 1) - growth_edge(bin);
        at_risk[bin] = risk + counts->event[bin] + (width - 1) / (2 * width) * counts->censored[bin];
        if (!(at_risk[bin] > least))
            known = bin;
        risk += counts->event[bin] + counts->censored[bin];
    }
    for (uint32_t bin = 0; bin < GROWTH_BINS; bin++) {
        g->share[bin] = share;
        if (at_risk[bin] > 0)
            share *= fmax(0, 1 - counts->event[bin] / at_risk[bin]);
    }
    g->share[GROWTH_BINS] = share;
    g->lines[0] = 0;
    sum_from(g, 0);
    return known;
}

void growth_splice(struct growth *g, const struct growth *tail, uint32_t from)
{
    double factor = tail->share[from] > 0 ? g->share[from] / tail->share[from] : 0;

    for (uint32_t bin = from + 1; bin <= GROWTH_BINS; bin++)
        g->share[bin] = factor * tail->share[bin];
    sum_from(g, from);
}

double growth_lines(const struct growth *g, double references)
{
    uint32_t bin = growth_bin(references);
    double edge = growth_edge(bin), width = growth_edge(bin + 1) - edge;

    return g->lines[bin] + sum_within(g, bin, width, fmin(references - edge, width));
}
