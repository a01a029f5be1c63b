/* SPDX-License-Identifier: Apache-2.0 */
/* cmd-machine.c - `cachegram machine`: this machine's caches, latencies, bandwidths; other descriptions. */
#include "cli/cli.h"
#include "cli/programs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/progress.h"
#include "machine/machine.h"
#include "report/machine.h"

enum { OPT_LIST = 1, OPT_REPORTED, OPT_LARGEST, OPT_SECONDS };

static const struct option options[] = {
    {"output", required_argument, NULL, 'o'},
    {"list", no_argument, NULL, OPT_LIST},
    {"reported", no_argument, NULL, OPT_REPORTED},
    {"largest", required_argument, NULL, OPT_LARGEST},
    {"seconds", required_argument, NULL, OPT_SECONDS},
    {"help", no_argument, NULL, 'h'},
    CLI_OUTPUT_OPTIONS,
    {NULL, 0, NULL, 0},
};

static const char usage[] =
    "usage: cachegram machine [OPTIONS] [NAME|FILE]\n"
    "\n"
    "Measures this machine: sizes, load latency and bandwidth of each level of cache and of memory, and the\n"
    "clocks. With NAME or FILE, prints that description instead.\n"
    "\n"
    "  -o, --output FILE       save the description as JSON, for --machine of corun, place and predict\n"
    "  --list                  list the built-in machines, with their sources\n"
    "  --reported              print what the system reports; measure nothing\n"
    "  --largest SIZE          the largest buffer for latencies and for memory's bandwidth (default: 4\n"
    "                          times the last cache, at most 256M)\n"
    "  --seconds S             time for each of the measurements (default 0.05)\n" CLI_OUTPUT_HELP "\n"
    "CSV columns: level,size_bytes,measured_bytes,ways,shared_by,latency_cycles,latency_ns,cores,read_gbps,\n"
    "write_gbps,copy_gbps (one line for each number of cores; 0: not known).\n";

struct machine_options {
    struct cli_output output;
    struct machine_probe probe;
    const char *file;
    int list, reported;
};

static int parse_option(int opt, const char *value, struct machine_options *o)
{
    char *end;
    switch (opt) {
    case 'o':
        o->file = value;
        return 0;
    case OPT_LIST:
        o->list = 1;
        return 0;
    case OPT_REPORTED:
        o->reported = 1;
        return 0;
    case OPT_LARGEST:
        return cli_size_option("machine", NULL, value, &o->probe.largest_bytes);
    default:
        o->probe.seconds_a_point = strtod(value, &end);
        if (end != value && !*end && o->probe.seconds_a_point > 0 && o->probe.seconds_a_point <= 60)
            return 0;
        return cli_misuse("machine", "--seconds %s: must be above 0 and at most 60", value);
    }
}

static void list(enum report_format format)
{
    const struct machine *m;
    if (format == REPORT_CSV)
        puts("name,cpu,source");
    for (size_t i = 0; (m = machine_known(i)) != NULL; i++) {
        if (format == REPORT_TEXT) {
            printf("%-16s %s\n%16s %s\n", m->name, m->cpu, "", m->source);
            continue;
        }
        const char *const fields[3] = {m->name, m->cpu, m->source};
        static const char *const names[3] = {"name", "cpu", "source"};
        if (format == REPORT_JSON)
            fputs(i ? ",\n  " : "{\"machines\": [\n  ", stdout);
        for (int k = 0; k < 3; k++) {
            if (format == REPORT_CSV) {
                fputs(k ? "," : "", stdout);
                report_csv_string(stdout, fields[k]);
            } else {
                report_json_member_string(stdout, k ? ", " : "{", names[k], fields[k]);
            }
        }
        fputs(format == REPORT_CSV ? "\n" : "}", stdout);
    }
    if (format == REPORT_JSON)
        puts("\n]}");
}

static void write_machine(FILE *out, const void *machine)
{
    machine_write(out, machine);
}

static int run(const struct machine_options *o, const char *name)
{
    static struct machine machine; /* large */
    char lacks[MACHINE_LACKS];
    struct error err;
    int code;
    if (name) {
        code = machine_find(name, &machine, &err);
    } else {
        code = machine_topology(&machine, &err);
        if (code == 0 && !o->reported) {
            cli_catch_interrupts();
            code = machine_measure(&machine, &o->probe, cli_interrupt_flag(), &err);
            if (code == -EINTR)
                return cli_interrupt_status();
        }
    }
    if (code == 0 && o->file)
        code = cli_replace_file(o->file, write_machine, &machine, &err);
    if (code != 0)
        return cli_fail(&err);
    report_machine(stdout, &machine, o->output.format);
    if (!name && !o->reported && machine_lacks(&machine, lacks))
        fprintf(stderr, "cachegram: warning: this description lacks %s\n", lacks);
    return 0;
}

int cmd_machine(int argc, char **argv)
{
    static const struct cli_syntax syntax = {"machine", usage, ":ho:", options, NULL};
    struct machine_options o = {.output = {.format = REPORT_TEXT}, .probe = {.seconds_a_point = 0.05}};
    int opt, status;
    while ((opt = cli_next_option(&syntax, argc, argv, &o.output, &status)) != 0)
        if (parse_option(opt, optarg, &o) != 0)
            return 2;
    if (status >= 0)
        return status;
    if (argc - optind > 1)
        return cli_misuse("machine", "one machine at a time, but '%s' follows '%s'", argv[optind + 1],
                          argv[optind]);
    if (o.list && (o.file || o.reported || optind < argc))
        return cli_misuse("machine", "--list cannot be combined with %s",
                          o.file       ? "--output"
                          : o.reported ? "--reported"
                                       : "a machine");
    if (o.list) {
        list(o.output.format);
        return 0;
    }
    return run(&o, optind < argc ? argv[optind] : NULL);
}
