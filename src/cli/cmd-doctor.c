/* SPDX-License-Identifier: Apache-2.0 */
/* cmd-doctor.c - `cachegram doctor`: what this machine offers, and what `record` uses. */
#include "cli/cli.h"
#include "cli/ladder.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "collect/launch/launch.h"
#include "collect/clock/trigger.h"
#include "machine/counters.h"
#include "machine/offers.h"
#include "machine/vectors.h"

static const struct option options[] = {
    {"help", no_argument, NULL, 'h'},
    CLI_OUTPUT_OPTIONS,
    {NULL, 0, NULL, 0},
};

static const char usage[] =
    "usage: cachegram doctor [OPTIONS] [PROGRAM]\n"
    "\n"
    "Checks what this machine and kernel offer, what `record` would use, and how to enable the rest; with\n"
    "PROGRAM, also whether it can be profiled and whether symbols and line numbers are available.\n"
    "\n" CLI_OUTPUT_HELP "\n"
    "CSV columns: name,state,found,advice. State is yes, no or unknown.\n";

static const char *const states[] = {[OFFER_NO] = "no", [OFFER_YES] = "yes", [OFFER_UNKNOWN] = "unknown"};

/* The three additional rows for a program. */
struct program {
    const char *name;
    char path[PATH_MAX];
    const char *obstacle; /* NULL: it can be profiled */
    struct program_names names;
};

static size_t add_program(const struct program *p, struct offer *rows)
{
    rows[0] = (struct offer){.name = "program",
                             .what = "it can be profiled",
                             .state = p->obstacle ? OFFER_NO : OFFER_YES,
                             .advice = p->obstacle ? "record runs it unprofiled" : NULL};
    snprintf(rows[0].found, sizeof rows[0].found, "%.120s%s%s", p->path, p->obstacle ? " " : "",
             p->obstacle ? p->obstacle : "");
    int debug = p->names.has_debug || p->names.separate[0];
    rows[1] = (struct offer){.name = "program-lines",
                             .what = "its debug information",
                             .state = debug ? OFFER_YES : OFFER_NO,
                             .advice = debug ? NULL
                                             : "build it with -g, or install its -dbgsym package (Debian's "
                                               "debian-debug archive)"};
    snprintf(rows[1].found, sizeof rows[1].found, "%.150s",
             p->names.has_debug     ? "in the file"
             : p->names.separate[0] ? p->names.separate
             : p->names.has_symbols ? "none; symbols are available"
             : p->names.is_elf      ? "none, and only exported symbols"
                                    : "not an ELF file");
    return 2;
}

/* How record watches lines, given what the machine offers. */
static struct offer watching(const struct offer *offers, size_t n)
{
    struct offer row = {.name = "record-watch", .what = "record watches lines by", .state = OFFER_NO};
    for (size_t i = 0; i < n; i++)
        if (strcmp(offers[i].name, "syscall-dispatch") == 0)
            row.state = offers[i].state;
    snprintf(row.found, sizeof row.found, "%s", row.state == OFFER_YES ? "page protection" : "nothing");
    if (row.state != OFFER_YES)
        row.advice =
            "needs syscall user dispatch: Linux 5.11; without it, only bounds are reported for large caches";
    return row;
}

static size_t add_uses(struct offer *rows)
{
    int perf = triggers_available();
    rows[0] =
        (struct offer){.name = "record-trigger", .what = "record triggers bursts by", .state = OFFER_YES};
    snprintf(rows[0].found, sizeof rows[0].found, "%s",
             perf ? "perf events (to the microsecond, only in user code)"
                  : "CPU timers (on the kernel's tick)");
    struct counters counters;
    struct error why;
    int found = counters_find(&counters, &why) == 0;
    rows[1] =
        (struct offer){.name = "record-pmu",
                       .what = "record counts references by counters",
                       .state = perf && found ? OFFER_YES : OFFER_NO,
                       .advice = perf && found && vectors_for_counting()
                                     ? "with --clock pmu; by default they are counted in translated code"
                                 : perf && found          ? NULL
                                 : vectors_for_counting() ? "not needed: --clock count does without"
                                                          : "bursts are weighted by CPU time"};
    if (found)
        snprintf(rows[1].found, sizeof rows[1].found, "%.50s%s%.50s%s", counters.event[0].name,
                 counters.n > 1 ? ", " : "", counters.n > 1 ? counters.event[1].name : "",
                 perf ? "" : ", but perf events cannot interrupt");
    else
        snprintf(rows[1].found, sizeof rows[1].found, "%.150s", why.text);
    return 2;
}

static void print_text(const struct offer *rows, size_t n, const struct report_style *style)
{
    for (size_t i = 0; i < n; i++) {
        const char *on = !style->color                ? ""
                         : rows[i].state == OFFER_YES ? "\033[32m"
                         : rows[i].state == OFFER_NO  ? "\033[31m"
                                                      : "";
        printf("%s%-8s%s%-42s ", on, states[rows[i].state], *on ? "\033[0m" : "", rows[i].what);
        report_plain(stdout, rows[i].found);
        putchar('\n');
        if (rows[i].advice)
            printf("        -> %s\n", rows[i].advice);
    }
}

static void print_csv(const struct offer *rows, size_t n)
{
    fputs("name,state,found,advice\n", stdout);
    for (size_t i = 0; i < n; i++) {
        printf("%s,%s,", rows[i].name, states[rows[i].state]);
        report_csv_string(stdout, rows[i].found);
        putchar(',');
        report_csv_string(stdout, rows[i].advice ? rows[i].advice : "");
        putchar('\n');
    }
}

static void print_json(const struct offer *rows, size_t n)
{
    fputs("{\n", stdout);
    for (size_t i = 0; i < n; i++) {
        printf("  \"%s\": {\"state\": \"%s\"", rows[i].name, states[rows[i].state]);
        report_json_member_string(stdout, ", ", "found", rows[i].found);
        report_json_member_string(stdout, ", ", "advice", rows[i].advice);
        printf("}%s\n", i + 1 < n ? "," : "");
    }
    fputs("}\n", stdout);
}

int cmd_doctor(int argc, char **argv)
{
    static const struct cli_syntax syntax = {"doctor", usage, ":h", options, NULL};
    struct cli_output output = {.format = REPORT_TEXT};
    struct offer rows[OFFERS_MAX + 6];
    struct program program = {0};
    struct error err;
    int status;
    cli_next_option(&syntax, argc, argv, &output, &status); /* all of them */
    if (status >= 0)
        return status;
    if (argc - optind > 1)
        return cli_misuse("doctor", "one program at a time, but '%s' follows '%s'", argv[optind + 1],
                          argv[optind]);
    size_t n = offers_find(rows, OFFERS_MAX);
    struct offer watch = watching(rows, n);
    n += add_uses(rows + n);
    rows[n++] = watch;
    if (argc > optind) {
        program.name = argv[optind];
        if (launch_find(program.name, program.path, sizeof program.path, &err) < 0)
            return cli_fail(&err);
        program.obstacle = launch_obstacle(program.path);
        program_names_find(program.path, &program.names);
        n += add_program(&program, rows + n);
    }
    struct report_style style = report_style_of(stdout, output.color);
    if (output.format == REPORT_CSV)
        print_csv(rows, n);
    else if (output.format == REPORT_JSON)
        print_json(rows, n);
    else {
        print_text(rows, n, &style);
        fputs("\n" CLI_LADDER, stdout);
    }
    return 0;
}
