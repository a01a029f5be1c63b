/* SPDX-License-Identifier: Apache-2.0 */
/*
 * programs-base.c - the part of a program's time that its references do not explain, and how far its misses
 * overlap (docs/methods.md, section 8): from an option, from a measured CPI, or from the time in its profile.
 *
 * A profile has nanoseconds of CPU time per instruction if its reference clock counted (report/report.h). On
 * the machine on which it was recorded, if the clock frequency, sizes and latencies were measured, that is a
 * CPI, and statcc_fit splits it. What remains after the misses is the base; it includes first-level hits, as
 * cores do not wait for those. Where nothing would remain, misses overlap. Both are properties of the program
 * and are used for other machines too.
 *
 * Example: 0.2 ns at 4 GHz are 0.8 cycles; 0.5 references per instruction, of which 1% take 40 cycles more
 * than a first-level hit, explain 0.2 of them: base 0.6.
 */
#include "cli/programs.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The smallest plausible base: four instructions per cycle. */
#define LEAST_BASE 0.25

/* The machine on which profiles were recorded; hz 0: unknown. */
struct home {
    struct statcc_machine machine;
    char name[64], cpu[128];
    double hz;
    int given; /* by --recorded-on: not to be doubted */
};

static int find_home(const struct cli_memory *memory, const struct machine *described, unsigned line_bytes,
                     struct home *home, struct error *err)
{
    const struct machine *from = described;
    struct machine *given = NULL;
    int code = 0;
    *home = (struct home){.given = memory->recorded_on != NULL};
    if (memory->recorded_on) {
        from = given = malloc(sizeof *given);
        code =
            given ? machine_find(memory->recorded_on, given, err) : error_set(err, -ENOMEM, "out of memory");
        if (code == 0 && !(given->clock_hz > 0))
            code = error_set(err, -EINVAL, "the description of machine '%s' lacks its clock", given->name);
    }
    if (code == 0 && from->levels > 0)
        code = cli_machine_model(from, line_bytes, &home->machine, err);
    if (code == 0 && from->levels > 0) {
        snprintf(home->name, sizeof home->name, "%s", from->name);
        snprintf(home->cpu, sizeof home->cpu, "%s", from->cpu);
        home->hz = from->clock_hz > 0 ? from->clock_hz : 0;
    }
    free(given);
    return code;
}

/* Fits to a CPI, or to two of them with two sizes of the shared cache. */
static int fit_curve(const struct statcc_machine *machine, const struct cli_solo *solo, unsigned line_bytes,
                     struct statcc_program *program, struct error *err)
{
    if (solo->bytes[0] == 0)
        return statcc_fit(machine, solo->cpi[0], LEAST_BASE, program, err);
    const double lines[2] = {(double)solo->bytes[0] / line_bytes, (double)solo->bytes[1] / line_bytes};
    return statcc_fit_two(machine, lines, solo->cpi, program, err);
}

/* Fits each of the program's curves. 0; negative if nothing fits: then the speed is unchanged. */
static int fit(const struct statcc_machine *machine, const struct cli_solo *solo,
               const struct cli_programs *programs, uint32_t i, struct cli_speed *speed, struct error *err)
{
    /* The low curve comes first: the message is of the first one that does not fit. */
    static const enum cli_curve order[CLI_CURVES] = {CLI_CURVE_LOW, CLI_CURVE_BEST, CLI_CURVE_HIGH};
    struct cli_speed fitted = *speed;
    fitted.pipelined = 1;
    for (int k = 0; k < CLI_CURVES; k++) {
        enum cli_curve which = order[k];
        struct statcc_program program = cli_program(programs, i, which);
        program.pipelined = 1;
        int code = fit_curve(machine, solo, programs->line_bytes, &program, err);
        if (code != 0)
            return code;
        fitted.cpi_base[which] = program.cpi_base;
        fitted.overlap[which] = program.overlap;
    }
    *speed = fitted;
    return 0;
}

/* Why its profile gives no base; NULL: it gives one. */
static const char *missing(const struct home *home, const struct analysis_program *p)
{
    if (isnan(p->ns_per_instruction))
        return "the profile has no time";
    if (home->machine.shared_lines == 0)
        return "without --machine, the profile's time cannot be converted to cycles";
    if (home->hz == 0)
        return "the machine's description lacks its clock";
    if (!home->given && (!home->cpu[0] || strcmp(home->cpu, p->cpu) != 0))
        return "recorded on another machine: describe it by --recorded-on";
    if (p->curve.known_lines < home->machine.shared_lines)
        return "not enough samples at the size of the shared cache";
    return NULL;
}

static void fit_profile(const struct home *home, const struct cli_programs *programs, uint32_t i,
                        struct cli_speed *speed)
{
    const struct analysis_program *p = programs->program[i];
    const char *why = missing(home, p);
    struct error err;
    char error[32] = "with unknown error";
    const struct cli_solo measured = {.cpi = {p->ns_per_instruction * home->hz * 1e-9}};
    if (!why && fit(&home->machine, &measured, programs, i, speed, &err) != 0)
        why = "the measured time is shorter than its references take";
    if (why) {
        snprintf(speed->why, sizeof speed->why, "default: %s", why);
        return;
    }
    speed->from = CLI_BASE_PROFILE;
    if (!isnan(p->clock_error))
        snprintf(error, sizeof error, "%s%.0f%%", report_is_utf8() ? "±" : "+-", 100 * p->clock_error);
    snprintf(speed->why, sizeof speed->why, "from the profile: %.3f ns per instruction, clock %s, %s",
             p->ns_per_instruction, p->clock[0] ? p->clock : "unknown", error);
}

/*
 * Fits speeds: from --solo-cpi on `machine`, or --cpi-base, or the profile's time on
 * --recorded-on or on `described`, if that has the CPU on which it was recorded. 0, or negative with err
 * filled.
 */
static int fit_programs(const struct cli_memory *memory, const struct statcc_machine *machine,
                        const struct machine *described, struct cli_programs *programs, struct error *err)
{
    struct home home;
    int code = find_home(memory, described, programs->line_bytes, &home, err);
    for (uint32_t i = 0; i < programs->n && code == 0; i++) {
        struct cli_speed *speed = &programs->speed[i];
        const struct cli_solo *solo = &memory->solo[i];
        speed->pipelined = described->levels > 0 && !described->in_order;
        if (memory->nsolo) {
            code = fit(machine, solo, programs, i, speed, err);
            speed->from = CLI_BASE_SOLO;
            if (solo->bytes[0] == 0)
                snprintf(speed->why, sizeof speed->why, "from --solo-cpi %g", solo->cpi[0]);
            else
                snprintf(speed->why, sizeof speed->why, "from --solo-cpi %g and %g, for two cache sizes",
                         solo->cpi[0], solo->cpi[1]);
        } else if (!isnan(memory->cpi_base)) {
            for (int which = 0; which < CLI_CURVES; which++)
                speed->cpi_base[which] = memory->cpi_base;
            speed->from = CLI_BASE_OPTION;
            snprintf(speed->why, sizeof speed->why, "from --cpi-base");
        } else {
            fit_profile(&home, programs, i, speed);
        }
    }
    return code;
}

/* No more threads work at the same time than cores share the last level. */
static void limit_threads(const struct machine *described, struct cli_programs *programs)
{
    unsigned cores = described->levels > 0 ? described->level[described->levels - 1].shared_by : 0;
    for (uint32_t i = 0; i < programs->n && cores > 0; i++)
        programs->program[i]->threads = fmin(programs->program[i]->threads, cores);
}

int cli_programs_prepare(const struct cli_memory *memory, char **files, uint32_t n,
                         struct cli_programs *programs, struct statcc_machine *machine,
                         struct machine *described, struct error *err)
{
    int code = cli_programs_load(memory, files, n, programs, err);
    if (code != 0)
        return code;
    code = cli_memory_machine(memory, programs->line_bytes, machine, described, err);
    if (code == 0)
        limit_threads(described, programs);
    if (code == 0)
        code = fit_programs(memory, machine, described, programs, err);
    if (code != 0)
        cli_programs_free(programs);
    return code;
}

struct report_base cli_base(const struct cli_programs *programs, uint32_t i)
{
    static const char *const names[] = {[CLI_BASE_DEFAULT] = "default",
                                        [CLI_BASE_OPTION] = "option",
                                        [CLI_BASE_SOLO] = "solo",
                                        [CLI_BASE_PROFILE] = "profile"};
    const struct cli_speed *speed = &programs->speed[i];
    return (struct report_base){.program = programs->program[i]->name,
                                .cpi_base = speed->cpi_base[CLI_CURVE_BEST],
                                .overlap = speed->overlap[CLI_CURVE_BEST],
                                .from = names[speed->from],
                                .why = speed->why,
                                .threads = programs->program[i]->threads};
}
