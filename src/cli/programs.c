/* SPDX-License-Identifier: Apache-2.0 */
/* programs.c - from options and profiles to the models' input. */
#include "cli/programs.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sizes.h"

struct cli_memory cli_memory_defaults(void)
{
    return (struct cli_memory){
        .latency_cycles = {NAN}, .cpi_base = NAN, .references_per_instruction = NAN, .bandwidth_bytes = NAN};
}

static int number(const char *command, const char *option, const char *text, double least, double *value)
{
    char *end;
    double got = strtod(text, &end);
    if (end == text || *end || !(got >= least) || !isfinite(got)) {
        cli_misuse(command, "%s %s: must be a number, %g or more", option, text, least);
        return -1;
    }
    *value = got;
    return 1;
}

static int latencies(const char *command, const char *text, double *cycles)
{
    double got[3];
    const char *at = text;
    for (int i = 0; i < 3; i++) {
        char *end;
        got[i] = strtod(at, &end);
        if (end == at || !(got[i] >= 0) || !isfinite(got[i]) || *end != (i < 2 ? ',' : '\0')) {
            cli_misuse(command, "--latency %s: must be three numbers of cycles, such as 1,10,130", text);
            return -1;
        }
        at = end + 1;
    }
    memcpy(cycles, got, sizeof got);
    return 1;
}

/* Parses CPI, or CPI@SIZE:CPI@SIZE; modifies `text`. 0, or -1 for anything else. */
static int solo_item(char *text, struct cli_solo *solo)
{
    char *second = strchr(text, ':'), *part[2] = {text, second ? second + 1 : NULL};
    *solo = (struct cli_solo){.cpi = {0}};
    if (second)
        *second = '\0';
    for (int i = 0; i < 2 && part[i]; i++) {
        struct error err;
        char *end;
        solo->cpi[i] = strtod(part[i], &end);
        if (end == part[i] || !(solo->cpi[i] > 0) || !isfinite(solo->cpi[i]))
            return -1;
        if (second ? *end != '@' || size_parse(end + 1, &solo->bytes[i], &err) != 0 : *end != '\0')
            return -1;
    }
    return 0;
}

static int solo_cpis(const char *text, const char *command, struct cli_memory *memory)
{
    const char *at = text;
    char item[64];
    for (memory->nsolo = 0;; memory->nsolo++) {
        size_t length = strcspn(at, ",");
        if (length >= sizeof item || memory->nsolo == STATCC_PROGRAMS)
            break;
        memcpy(item, at, length);
        item[length] = '\0';
        if (solo_item(item, &memory->solo[memory->nsolo]) != 0)
            break;
        if (!at[length]) {
            memory->nsolo++;
            return 1;
        }
        at += length + 1;
    }
    cli_misuse(command, "--solo-cpi %s: must be CPIs above 0, such as 0.8,1.5, or 0.8@8M:1.2@2M", text);
    return -1;
}

static int size(const char *command, const char *option, const char *text, uint64_t *bytes)
{
    return cli_size_option(command, option, text, bytes) == 0 ? 1 : -1;
}

/* 1: handled, 0: another option, -1: bad value (message printed). */
static int memory_option(const char *command, int opt, const char *value, struct cli_memory *memory)
{
    static const char *const models[] = {"lru", "statstack", NULL};
    int word;
    switch (opt) {
    case CLI_OPT_MACHINE:
        memory->machine = value;
        return 1;
    case CLI_OPT_LLC:
        return size(command, "--llc", value, &memory->llc_bytes);
    case CLI_OPT_PRIVATE:
        return size(command, "--private", value, &memory->private_bytes);
    case CLI_OPT_LATENCY:
        return latencies(command, value, memory->latency_cycles);
    case CLI_OPT_BASE:
        return number(command, "--cpi-base", value, 0, &memory->cpi_base);
    case CLI_OPT_SOLO:
        return solo_cpis(value, command, memory);
    case CLI_OPT_RECORDED_ON:
        memory->recorded_on = value;
        return 1;
    case CLI_OPT_MIX:
        return number(command, "--mix", value, 1e-6, &memory->references_per_instruction);
    case CLI_OPT_BANDWIDTH:
        return number(command, "--bandwidth", value, 0, &memory->bandwidth_bytes);
    case CLI_OPT_CURVES:
        memory->paper = (word = cli_word_option(command, "--model", value, models)) == 1;
        return word < 0 ? -1 : 1;
    default:
        return 0;
    }
}

/* Size of the last level that is used in models. */
static uint64_t last_size(const struct machine *m)
{
    const struct machine_level *last = &m->level[m->levels - 1];
    return last->measured_bytes > 0 && last->measured_bytes < last->size_bytes / 2 ? last->measured_bytes
                                                                                   : last->size_bytes;
}

void cli_machine_words(const struct cli_memory *memory, const struct machine *described, char words[160])
{
    char reported[SIZE_TEXT];
    if (!memory->machine) {
        snprintf(words, 160, "the machine of the StatCC paper");
        return;
    }
    uint64_t size = described->level[described->levels - 1].size_bytes;
    if (memory->llc_bytes || last_size(described) == size)
        snprintf(words, 160, "%s", described->name);
    else
        snprintf(words, 160, "%s, as measured; the system reports %s", described->name,
                 size_format(size, reported));
}

int cli_machine_model(const struct machine *from, unsigned line_bytes, struct statcc_machine *machine,
                      struct error *err)
{
    uint32_t outer = from->levels - 1;
    if (from->levels == 0 || outer > STATCC_PRIVATE)
        return error_set(err, -EINVAL, "machine '%s' has %u levels of cache", from->name, from->levels);
    *machine = (struct statcc_machine){.privates = outer};
    for (uint32_t l = 0; l <= from->levels; l++) {
        const struct machine_level *level = l < from->levels ? &from->level[l] : &from->memory;
        double cycles = level->latency_cycles;
        if (isnan(cycles))
            cycles = level->latency_ns * from->clock_hz * 1e-9;
        if (isnan(cycles)) {
            char lacks[MACHINE_LACKS];
            machine_lacks(from, lacks);
            return error_set(err, -EINVAL, "the description of machine '%s' lacks %s", from->name, lacks);
        }
        machine->latency_cycles[l] = cycles;
        if (l < outer)
            machine->private_lines[l] = (double)level->size_bytes / line_bytes;
        else if (l == outer)
            machine->shared_lines = (double)last_size(from) / line_bytes;
    }
    /* The maximum that many cores read; converting it to bytes per cycle needs a known clock frequency. */
    double most = 0;
    for (size_t i = 0; i < from->memory.nbandwidth; i++)
        most = fmax(most, from->memory.bandwidth[i].read_gbps);
    if (most > 0 && from->clock_hz > 0)
        machine->bandwidth_lines = most * 1e9 / from->clock_hz / line_bytes;
    return 0;
}

int cli_memory_machine(const struct cli_memory *memory, unsigned line_bytes, struct statcc_machine *machine,
                       struct machine *described, struct error *err)
{
    described->levels = 0;
    described->clock_hz = NAN;
    *machine = statcc_paper;
    machine->private_lines[0] = 32768.0 / line_bytes;
    machine->shared_lines = 2097152.0 / line_bytes;
    if (memory->machine) {
        int code = machine_find(memory->machine, described, err);
        if (code == 0)
            code = cli_machine_model(described, line_bytes, machine, err);
        if (code != 0)
            return code;
    }
    if (memory->private_bytes || !isnan(memory->latency_cycles[0])) {
        /* These options assume one private level. */
        if (memory->private_bytes)
            machine->private_lines[0] = (double)memory->private_bytes / line_bytes;
        machine->latency_cycles[1] = machine->latency_cycles[machine->privates];
        machine->latency_cycles[2] = machine->latency_cycles[machine->privates + 1];
        machine->privates = 1;
        if (!isnan(memory->latency_cycles[0]))
            memcpy(machine->latency_cycles, memory->latency_cycles, sizeof memory->latency_cycles);
    }
    if (memory->llc_bytes)
        machine->shared_lines = (double)memory->llc_bytes / line_bytes;
    if (!isnan(memory->bandwidth_bytes))
        machine->bandwidth_lines = memory->bandwidth_bytes / line_bytes;
    return 0;
}

int cli_programs_load(const struct cli_memory *memory, char **files, uint32_t n,
                      struct cli_programs *programs, struct error *err)
{
    *programs = (struct cli_programs){.program = calloc(n, sizeof *programs->program),
                                      .speed = calloc(n, sizeof *programs->speed)};
    int code = programs->program && programs->speed
                   ? 0
                   : error_set(err, -ENOMEM, "out of memory for %u profiles", n);
    for (uint32_t i = 0; i < n && code == 0; i++) {
        struct analysis_program *p = programs->program[i] = calloc(1, sizeof *p);
        programs->n = i + 1;
        if (!p) {
            code = error_set(err, -ENOMEM, "out of memory for %u profiles", n);
            break;
        }
        struct profile *file;
        code = cli_open_profile(files[i], &file, err);
        if (code != 0)
            break;
        code = analysis_program_load(file, files[i], memory->paper, p, err);
        profile_close(file, 0, NULL);
        if (code == 0 && i > 0 && p->line_bytes != programs->line_bytes)
            code = error_set(err, -EINVAL, "'%s' was recorded with lines of %u bytes, '%s' of %u", files[i],
                             p->line_bytes, files[0], programs->line_bytes);
        if (code == 0 && isnan(p->references_per_instruction))
            p->references_per_instruction = memory->references_per_instruction;
        if (code == 0 && isnan(p->references_per_instruction))
            code = error_set(err, -EINVAL,
                             "the profile '%s' lacks the number of references per instruction: specify it, "
                             "such as --mix 0.35",
                             files[i]);
        if (code != 0)
            break;
        programs->line_bytes = p->line_bytes;
        struct statcc_program neutral = statcc_paper_program(&p->curve, p->references_per_instruction);
        for (int which = 0; which < CLI_CURVES; which++) {
            programs->speed[i].cpi_base[which] = neutral.cpi_base;
            programs->speed[i].overlap[which] = neutral.overlap;
        }
    }
    if (code != 0)
        cli_programs_free(programs);
    return code;
}

void cli_programs_free(struct cli_programs *programs)
{
    for (uint32_t i = 0; i < programs->n; i++) {
        if (programs->program[i])
            analysis_program_clear(programs->program[i]);
        free(programs->program[i]);
    }
    free(programs->program);
    free(programs->speed);
    *programs = (struct cli_programs){0};
}

struct statcc_program cli_program(const struct cli_programs *programs, uint32_t i, enum cli_curve which)
{
    const struct analysis_program *p = programs->program[i];
    const struct cli_speed *speed = &programs->speed[i];
    const struct statcc_curve *const curves[CLI_CURVES] = {&p->curve, &p->low, &p->high};
    const struct statcc_curve *const own[CLI_CURVES] = {&p->own, &p->own_low, &p->own_high};
    struct statcc_program made = statcc_paper_program(curves[which], p->references_per_instruction);
    made.private_curve = own[which];
    made.threads = p->threads;
    made.cpi_base = speed->cpi_base[which];
    made.overlap = speed->overlap[which];
    made.pipelined = speed->pipelined;
    return made;
}

struct statcc_phased cli_program_phases(const struct cli_programs *programs, uint32_t i)
{
    const struct analysis_program *p = programs->program[i];
    struct statcc_phased made = {.n = 1, .share = {1}, .program = {cli_program(programs, i, CLI_CURVE_BEST)}};
    for (uint32_t a = 0; a < p->phases; a++) {
        made.program[a] = made.program[0];
        made.program[a].curve = made.program[a].private_curve =
            &p->phase_curve[a]; /* of one thread at a time */
        made.share[a] = p->phase_share[a];
    }
    made.n = p->phases > 0 ? p->phases : 1;
    return made;
}

uint32_t cli_programs_count(const char *command, int argc, uint64_t copies, uint32_t most)
{
    uint64_t n = (uint64_t)(argc - optind);
    if (n == 0)
        cli_misuse(command, "no profile given");
    else if (n * copies > most)
        cli_misuse(command, "at most %u programs", most);
    return n * copies > most ? 0 : (uint32_t)n;
}

int cli_programs_options(const struct cli_syntax *syntax, int argc, char **argv, struct cli_output *output,
                         struct cli_memory *memory, int (*parse)(int opt, const char *value, void *ctx),
                         void *ctx)
{
    int opt, status;
    while ((opt = cli_next_option(syntax, argc, argv, output, &status)) != 0) {
        int taken = memory_option(syntax->command, opt, optarg, memory);
        if (taken < 0 || (taken == 0 && parse(opt, optarg, ctx) != 0))
            return 2;
    }
    if (status >= 0)
        return status;
    uint32_t files = argc > optind ? (uint32_t)(argc - optind) : 1;
    if (memory->nsolo && memory->nsolo != files)
        return cli_misuse(syntax->command, "--solo-cpi: must have one CPI for each of the %u profiles",
                          files);
    return -1;
}
