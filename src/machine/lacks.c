/* SPDX-License-Identifier: Apache-2.0 */
/* lacks.c - what a description lacks for models of time, and what would measure it. */
#include <math.h>

#include "base/sizes.h"
#include "machine/machine.h"

int machine_lacks(const struct machine *m, char text[MACHINE_LACKS])
{
    char name[32], largest[SIZE_TEXT], needed[SIZE_TEXT];
    uint32_t l = 0;
    while (l < m->levels && !isnan(m->level[l].latency_cycles))
        l++;
    if (l == m->levels && !isnan(m->memory.latency_cycles))
        return 0;
    snprintf(name, sizeof name, l < m->levels ? "the L%u cache" : "memory", l + 1);
    if (m->ncurve == 0 || m->levels == 0)
        snprintf(text, MACHINE_LACKS,
                 "the latency of %s; 'cachegram machine --output FILE' measures it on this machine", name);
    else if (isnan(m->clock_hz))
        snprintf(text, MACHINE_LACKS,
                 "the clock: the measured frequency was not plausible; repeat 'cachegram machine --output "
                 "FILE' when the machine is less busy");
    else
        snprintf(text, MACHINE_LACKS,
                 "the latency of %s: the largest buffer, of %s, was too small; 'cachegram machine --largest "
                 "%s --output FILE' measures it",
                 name, size_format(m->curve[m->ncurve - 1].size_bytes, largest),
                 size_format(MACHINE_LARGEST_TIMES * m->level[m->levels - 1].size_bytes, needed));
    return 1;
}
