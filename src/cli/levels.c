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
    char lacks[MACHINE_LACKS];
    levels->n = 0;
    if (code == 0 && machine_lacks(machine, lacks))
        code = error_set(err, -EINVAL, "the description '%s' lacks %s", name, lacks);
    for (uint32_t l = 0; code == 0 && l < machine->levels; l++) {
        const struct machine_level *next =
            l + 1 < machine->levels ? &machine->level[l + 1] : &machine->memory;
        double cycles = next->latency_cycles - machine->level[l].latency_cycles;
        levels->list[levels->n++] =
            (struct analysis_level){(double)machine->level[l].size_bytes, fmax(cycles, 0)};
    }
    free(machine);
    return code;
}
