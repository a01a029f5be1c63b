/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Distribution of distances of which some are censored (Kaplan & Meier 1958; docs/methods.md, section 6).
 *
 * Problem. A line's first touch in a burst, after k other lines, has a stack distance of k or more. Ignoring
 * such references, or using k as their distance, would bias the distribution towards short distances.
 *
 * Method. For rising v, a reference is "at risk" if its distance is known to be v or more and would have been
 * observed if equal to v. The survivors' share S is multiplied by one minus the share of those at risk that
 * have exactly v. A reference censored at k is at risk for v < k, not for v = k: the k lines before it only
 * exclude distances below k. (In the textbook, events precede censorings at the same value; here they
 * follow.)
 *
 * In a bin of w > 1 values a censored reference is at risk, on average, in (w - 1) / (2 w) of them.
 *
 * Example: distances 0, 1, at least 1, 2. At 0 four are at risk: S(1) = 3/4. At 1 only two are (1 and 2):
 * S(2) = 3/8. At 2 the last: S(3) = 0.
 */
#include <math.h>

#include "model/internal.h"

void model_survival_add(struct model_survival *s, const struct packed_hist *event,
                        const struct packed_hist *censored, double weight)
{
    struct packed_bins b = packed_hist_bins(event);
    while (packed_bins_next(&b)) {
        s->event[b.bin] += weight * (double)b.count;
        s->event_count[b.bin] += b.count;
    }
    b = packed_hist_bins(censored);
    while (packed_bins_next(&b)) {
        s->censored[b.bin] += weight * (double)b.count;
        s->censored_count[b.bin] += b.count;
    }
}

void model_survival_estimate(struct model_survival *s)
{
    /* From the last bin, so that each bin's risk is a sum and not a difference. */
    double risk = 0, count = 0;
    uint32_t known = HIST_BINS;

    for (uint32_t bin = HIST_BINS; bin-- > 0;) {
        double width = (double)(hist_edge(bin + 1) - hist_edge(bin));
        double part = (width - 1) / (2 * width);
        double at_risk = risk + s->event[bin] + part * s->censored[bin];
        double counted = count + (double)s->event_count[bin] + part * (double)s->censored_count[bin];
        s->at_least[bin] = at_risk > 0 ? fmax(0, 1 - s->event[bin] / at_risk) : 1; /* a factor, so far */
        if (counted < MODEL_MIN_AT_RISK)
            known = bin;
        risk += s->event[bin] + s->censored[bin];
        count += (double)(s->event_count[bin] + s->censored_count[bin]);
    }
    double share = 1;
    for (uint32_t bin = 0; bin < HIST_BINS; bin++) {
        double factor = s->at_least[bin];
        s->at_least[bin] = share;
        share *= factor;
    }
    s->at_least[HIST_BINS] = share;
    s->known_bins = known;
}

double model_survival_at(const struct model_survival *s, double value)
{
    if (value <= 0)
        return 1;
    uint32_t bin = hist_bin(value < 0x1p47 ? (uint64_t)value : (uint64_t)1 << 47);
    double edge = (double)hist_edge(bin), width = (double)hist_edge(bin + 1) - edge;
    double part = (value - edge) / width;

    if (part <= 0)
        return bin <= s->known_bins ? s->at_least[bin] : NAN;
    if (bin >= s->known_bins)
        return NAN;
    return s->at_least[bin] + fmin(part, 1) * (s->at_least[bin + 1] - s->at_least[bin]);
}
