/* SPDX-License-Identifier: Apache-2.0 */
/* machine.c - a machine's description as text and csv. */
#include "report/machine.h"

#include <inttypes.h>
#include <math.h>

#include "base/sizes.h"

/* Larger ratios of sizes are reported: the measured size has a resolution of half an octave. */
#define SIZES_DIFFER 1.5

static void level_name(const struct machine *m, uint32_t l, char name[16])
{
    if (l == m->levels)
        snprintf(name, 16, "memory");
    else
        snprintf(name, 16, "L%u", l + 1);
}

static const struct machine_level *level_of(const struct machine *m, uint32_t l)
{
    return l < m->levels ? &m->level[l] : &m->memory;
}

static void csv(FILE *out, const struct machine *m)
{
    char name[16];
    fputs(
        "level,size_bytes,measured_bytes,ways,shared_by,latency_cycles,latency_ns,cores,read_gbps,write_gbps,"
        "copy_gbps\n",
        out);
    for (uint32_t l = 0; l <= m->levels; l++) {
        const struct machine_level *level = level_of(m, l);
        level_name(m, l, name);
        for (size_t i = 0; i < level->nbandwidth || i == 0; i++) {
            struct machine_bandwidth none = {0, NAN, NAN, NAN};
            const struct machine_bandwidth *b = level->nbandwidth ? &level->bandwidth[i] : &none;
            fprintf(out, "%s,%" PRIu64 ",%" PRIu64 ",%u,%u,", name, level->size_bytes, level->measured_bytes,
                    level->ways, level->shared_by);
            report_csv_number(out, level->latency_cycles);
            report_csv_next_number(out, level->latency_ns);
            fprintf(out, ",%u,", b->cores);
            report_csv_number(out, b->read_gbps);
            report_csv_next_number(out, b->write_gbps);
            report_csv_next_number(out, b->copy_gbps);
            putc('\n', out);
        }
    }
}

static void number(FILE *out, double value, int width, int decimals)
{
    if (isnan(value))
        fprintf(out, "%*s", width, "-");
    else
        fprintf(out, "%*.*f", width, decimals, value);
}

static void bandwidths(FILE *out, const struct machine *m)
{
    char name[16];
    fputs("\nGB/s       cores     read    write     copy\n", out);
    for (uint32_t l = 0; l <= m->levels; l++) {
        const struct machine_level *level = level_of(m, l);
        level_name(m, l, name);
        for (size_t i = 0; i < level->nbandwidth; i++) {
            const struct machine_bandwidth *b = &level->bandwidth[i];
            fprintf(out, "%-8s %7u", i ? "" : name, b->cores);
            number(out, b->read_gbps, 9, 1);
            number(out, b->write_gbps, 9, 1);
            number(out, b->copy_gbps, 9, 1);
            putc('\n', out);
        }
    }
}

/* Reported and measured sizes may differ, above all in guests. */
static void differences(FILE *out, const struct machine *m)
{
    char a[SIZE_TEXT], b[SIZE_TEXT], name[16];
    for (uint32_t l = 0; l < m->levels; l++) {
        double size = (double)m->level[l].size_bytes, measured = (double)m->level[l].measured_bytes;
        level_name(m, l, name);
        if (measured == 0 && m->ncurve > 0) {
            double outer = l + 1 < m->levels ? m->level[l + 1].latency_ns : m->memory.latency_ns;
            if (isnan(outer))
                continue; /* no measurement beyond it */
            fprintf(
                out,
                "\n%s: the system reports %s, but the latency curve has no step there: its size could not be "
                "measured",
                name, size_format(m->level[l].size_bytes, a));
        }
        if (measured == 0 || (measured < size * SIZES_DIFFER && measured > size / SIZES_DIFFER))
            continue;
        fprintf(out, "\n%s: the system reports %s, but by the latency curve its size is %s", name,
                size_format(m->level[l].size_bytes, a), size_format(m->level[l].measured_bytes, b));
    }
    if (m->hypervisor[0])
        fputs("\nA virtual machine: sizes are those that the hypervisor reports, and other guests may share "
              "the "
              "caches.",
              out);
    putc('\n', out);
}

static void text(FILE *out, const struct machine *m)
{
    char size[SIZE_TEXT], measured[SIZE_TEXT], name[16];
    int any = 0;
    report_plain(out, m->name);
    if (m->cpu[0]) {
        fputs(": ", out);
        report_plain(out, m->cpu);
    }
    fprintf(out, ", %u core%s", m->cores, m->cores == 1 ? "" : "s");
    if (m->clock_hz > 0)
        fprintf(out, ", clock %.2f GHz", m->clock_hz * 1e-9);
    if (m->tsc_hz > 0)
        fprintf(out, ", TSC %.2f GHz", m->tsc_hz * 1e-9);
    if (m->hypervisor[0]) {
        fputs(", virtual (", out);
        report_plain(out, m->hypervisor);
        putc(')', out);
    }
    fprintf(out, "\n\n%-8s %8s %8s %6s %6s %9s %9s\n", "", "reported", "measured", "ways", "cores", "cycles",
            "ns");
    for (uint32_t l = 0; l <= m->levels; l++) {
        const struct machine_level *level = level_of(m, l);
        level_name(m, l, name);
        fprintf(out, "%-8s %8s %8s", name, level->size_bytes ? size_format(level->size_bytes, size) : "-",
                level->measured_bytes ? size_format(level->measured_bytes, measured) : "-");
        number(out, level->ways ? (double)level->ways : (double)NAN, 7, 0);
        number(out, level->shared_by ? (double)level->shared_by : (double)NAN, 7, 0);
        number(out, level->latency_cycles, 10, 1);
        number(out, level->latency_ns, 10, 2);
        putc('\n', out);
        any |= level->nbandwidth > 0;
    }
    if (any)
        bandwidths(out, m);
    differences(out, m);
    fputs("Source: ", out);
    report_plain(out, m->source);
    putc('\n', out);
}

void report_machine(FILE *out, const struct machine *machine, enum report_format format)
{
    if (format == REPORT_CSV)
        csv(out, machine);
    else if (format == REPORT_JSON)
        machine_write(out, machine);
    else
        text(out, machine);
}
