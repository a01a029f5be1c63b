/* SPDX-License-Identifier: Apache-2.0 */
/* known.c - machines with published numbers and their sources; and lookup by name or file. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "machine/machine.h"

#define KB(n) ((uint64_t)(n) << 10)
#define MB(n) ((uint64_t)(n) << 20)
#define CACHE(bytes, nways, cores, cycles)                                                        \
    {                                                                                             \
        .size_bytes = (bytes), .ways = (nways), .shared_by = (cores), .latency_cycles = (cycles), \
        .latency_ns = NAN                                                                         \
    }

static const struct machine known[] = {
    {.name = "statcc-paper",
     .cpu = "two in-order cores, simulated",
     .source = "D. Eklov, PhD thesis (Uppsala 2012), Paper II, Table 1",
     .cores = 2,
     .line_bytes = 64,
     .in_order = 1,
     .clock_hz = NAN,
     .tsc_hz = NAN,
     .levels = 2,
     .level = {CACHE(KB(32), 8, 1, 1), CACHE(MB(2), 16, 2, 10)},
     .memory = CACHE(0, 0, 0, 130)},
    {.name = "westmere-x5650",
     .cpu = "Intel Xeon X5650, 2.67 GHz, turbo off",
     .source = "I. Pavlov, 7-cpu.com/cpu/Westmere.html: RAM 40 cycles + 67 ns, 1 GB pages",
     .cores = 6,
     .line_bytes = 64,
     .clock_hz = 2.666e9,
     .tsc_hz = NAN,
     .levels = 3,
     .level = {CACHE(KB(32), 8, 1, 4), CACHE(KB(256), 8, 1, 10), CACHE(MB(12), 16, 6, 42)},
     .memory = CACHE(0, 0, 0, 40 + 67 * 2.666)},
    {.name = "rome-7742",
     .cpu = "AMD EPYC 7742, one complex of four cores, 3.4 GHz",
     .source = "AnandTech 14694 (2019), Memory Subsystem: Latency: full random over 128 MB, NPS1",
     .cores = 4,
     .line_bytes = 64,
     .clock_hz = 3.4e9,
     .tsc_hz = NAN,
     .levels = 3,
     .level = {CACHE(KB(32), 0, 1, 4), CACHE(KB(512), 0, 1, 13), CACHE(MB(16), 0, 4, 34)},
     .memory = CACHE(0, 0, 0, 122 * 3.4)},
};

const struct machine *machine_known(size_t i)
{
    return i < sizeof known / sizeof known[0] ? &known[i] : NULL;
}

int machine_find(const char *name_or_file, struct machine *machine, struct error *err)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(known[i].name, name_or_file) == 0) {
            *machine = known[i];
            return 0;
        }
    return machine_read(name_or_file, machine, err);
}
