/* SPDX-License-Identifier: Apache-2.0 */
/* programs.h - options and profiles that corun, place and predict share: the memory system, and programs. */
#ifndef CACHEGRAM_CLI_PROGRAMS_H
#define CACHEGRAM_CLI_PROGRAMS_H

#include "base/error.h"
#include "cli/cli.h"
#include "machine/machine.h"
#include "model/statcc.h"
#include "report/base.h"
#include "analysis/program.h"

/* The memory system; without options, that of the paper (statcc_paper). */
struct cli_memory {
    const char *machine;               /* --machine: name of a built-in description, or a file */
    uint64_t llc_bytes, private_bytes; /* --llc, --private; 0: not given */
    double latency_cycles[3];          /* --latency L1,LLC,MEM; [0] NaN: not given */
    double cpi_base;                   /* --cpi-base; NaN: not given */
    struct cli_solo {                  /* --solo-cpi, one for each profile: */
        double cpi[2];                 /* measured alone, with sizes of the shared cache; */
        uint64_t bytes[2];             /* 0: with the machine's, only the first CPI */
    } solo[STATCC_PROGRAMS];
    uint32_t nsolo;                    /* 0: not given */
    const char *recorded_on;           /* --recorded-on: as --machine */
    double references_per_instruction; /* --mix; NaN: not given */
    double bandwidth_bytes;            /* --bandwidth, bytes a cycle; 0: no limit, NaN: not given */
    int paper;                         /* --model statstack */
};
/* Values in the val field of their struct option. */
enum {
    CLI_OPT_MACHINE = 1100,
    CLI_OPT_LLC,
    CLI_OPT_PRIVATE,
    CLI_OPT_LATENCY,
    CLI_OPT_BASE,
    CLI_OPT_SOLO,
    CLI_OPT_RECORDED_ON,
    CLI_OPT_MIX,
    CLI_OPT_BANDWIDTH,
    CLI_OPT_CURVES
};
#define CLI_MEMORY_OPTIONS                                                                                  \
    {"machine", required_argument, NULL, CLI_OPT_MACHINE}, {"llc", required_argument, NULL, CLI_OPT_LLC},   \
        {"private", required_argument, NULL, CLI_OPT_PRIVATE},                                              \
        {"latency", required_argument, NULL, CLI_OPT_LATENCY},                                              \
        {"cpi-base", required_argument, NULL, CLI_OPT_BASE}, {"mix", required_argument, NULL, CLI_OPT_MIX}, \
        {"bandwidth", required_argument, NULL, CLI_OPT_BANDWIDTH},                                          \
        {"solo-cpi", required_argument, NULL, CLI_OPT_SOLO},                                                \
        {"recorded-on", required_argument, NULL, CLI_OPT_RECORDED_ON},                                      \
    {                                                                                                       \
        "model", required_argument, NULL, CLI_OPT_CURVES                                                    \
    }
#define CLI_MEMORY_HELP                                                                                      \
    "  --machine NAME|FILE     its caches, latencies and bandwidth (cachegram machine --list, --output)\n"   \
    "  --llc SIZE              the shared cache (default 2M)\n"                                              \
    "  --private SIZE          the private cache of each core (default 32K)\n"                               \
    "  --latency L1,LLC,MEM    cycles of a hit in each, and of memory (default 1,10,130)\n"                  \
    "  --cpi-base N            cycles of an instruction without its references (default: from the time in\n" \
    "                          the profile, if that was recorded on the machine, else 1)\n"                  \
    "  --recorded-on NAME|FILE the machine on which the profiles were recorded, if not --machine\n"          \
    "  --solo-cpi LIST         measured CPI of each program alone on the machine: its base, or the "         \
    "overlap\n"                                                                                              \
    "                          of its misses, is fitted to that; or both of them, to CPIs with two sizes "   \
    "of\n"                                                                                                   \
    "                          the shared cache: CPI@SIZE:CPI@SIZE\n"                                        \
    "  --mix N                 references per instruction, for profiles that do not have it\n"               \
    "  --bandwidth N           limit of the memory bandwidth, bytes per cycle (default: none, or the "       \
    "machine's)\n"                                                                                           \
    "  --model lru|statstack   exact curves if available (default), or the model of the StatCC paper\n"
struct cli_memory cli_memory_defaults(void);
/*
 * Reads the options of a command: those of results, those of the memory system, --help, and its own, which
 * `parse` handles (0, or 2 after a message). -1: continue with the operands at optind; otherwise the exit
 * status.
 */
int cli_programs_options(const struct cli_syntax *syntax, int argc, char **argv, struct cli_output *output,
                         struct cli_memory *memory, int (*parse)(int opt, const char *value, void *ctx),
                         void *ctx);

/*
 * The machine for the model: that of --machine, if given; other options override it. *described is set to the
 * description (levels 0 without --machine). 0 or negative.
 */
int cli_memory_machine(const struct cli_memory *memory, unsigned line_bytes, struct statcc_machine *machine,
                       struct machine *described, struct error *err);

/*
 * A description for the model: the last level is shared, the others are private. If the measured latencies
 * show a last level smaller than half of the reported size, the measured size is used. -EINVAL if a number is
 * missing.
 */
int cli_machine_model(const struct machine *from, unsigned line_bytes, struct statcc_machine *machine,
                      struct error *err);

/* Curves of a program: the best estimate, and the bounds of its interval. */
enum cli_curve { CLI_CURVE_BEST, CLI_CURVE_LOW, CLI_CURVE_HIGH, CLI_CURVES };

/* Origin of a program's base and overlap. */
enum cli_base { CLI_BASE_DEFAULT, CLI_BASE_OPTION, CLI_BASE_SOLO, CLI_BASE_PROFILE };
struct cli_speed {
    enum cli_base from;
    double cpi_base[CLI_CURVES], overlap[CLI_CURVES]; /* by curve */
    int pipelined;
    char why[128]; /* a clause for the report */
};

/*
 * The machine in words: its name, and the size of the last level that is used if it is not the reported one.
 */
void cli_machine_words(const struct cli_memory *memory, const struct machine *described, char words[160]);

/* Profiles; each is read once. */
struct cli_programs {
    struct analysis_program **program;
    struct cli_speed *speed;
    uint32_t n;
    unsigned line_bytes;
};
/* All must have one line size. 0, or negative with err filled and nothing to free. Speeds are set to the
 * default. */
int cli_programs_load(const struct cli_memory *memory, char **files, uint32_t n,
                      struct cli_programs *programs, struct error *err);
/* All of the above. *described is set to --machine's description (levels 0 without); nothing to free on
 * failure. */
int cli_programs_prepare(const struct cli_memory *memory, char **files, uint32_t n,
                         struct cli_programs *programs, struct statcc_machine *machine,
                         struct machine *described, struct error *err);
void cli_programs_free(struct cli_programs *programs);
/* Program i for the model, with one of its curves. */
struct statcc_program cli_program(const struct cli_programs *programs, uint32_t i, enum cli_curve which);
/* The number of profiles at argv[optind], of each of which `copies` run, at most `most` in all. 0 after a
 * message. */
uint32_t cli_programs_count(const char *command, int argc, uint64_t copies, uint32_t most);
/* Program i with the best curve of each of its phases; without phases, of the whole run. */
struct statcc_phased cli_program_phases(const struct cli_programs *programs, uint32_t i);
/* The description of its CPI model; strings belong to `programs`. */
struct report_base cli_base(const struct cli_programs *programs, uint32_t i);

#endif
