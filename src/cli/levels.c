/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/levels.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

int cli_find_levels(const char *name, struct cli_levels *levels, struct error *err)
{
    struct machine *machine = malloc(sizeof *machine); /* large */
    if (!machine)
        return error_set(err, -ENOMEM, "out of memory");
    int code = machine_find(name, machine, err);
    levels->n = 0;
    for (uint32_t l = 0; code == 0 && l < machine->levels; l++) {
        const struct machine_level *next =
            l + 1 < machine->levels ? &machine->level[l + 1] : &machine->memory;
        double cycles = next->latency_cycles - machine->level[l].latency_cycles;
        if (isnan(cycles))
            code =
                error_set(err, -EINVAL,
                          "the description '%s' lacks latencies: 'cachegram machine --output FILE' measures "
                          "them on this machine",
                          name);
        else
            levels->list[levels->n++] =
                (struct analysis_level){(double)machine->level[l].size_bytes, fmax(cycles, 0)};
    }
    free(machine);
    return code;
}
