/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - the table of commands. */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Defined for the whole build (meson.build). */
#ifndef CACHEGRAM_VERSION
#define CACHEGRAM_VERSION "unknown"
#endif

/* The command prints results: check that they were written (a full disk must not count as success). */
#define CHECK_STDOUT 1u

struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    unsigned flags;
    const char *help;
};

static int cmd_help(int argc, char **argv);

static const struct command commands[] = {
    /* Its exit status is the program's; stdout is the program's too. */
    {"record", cmd_record, 0, "run a program and profile it"},
    {"report", cmd_report, CHECK_STDOUT, "summary of a profile: what ran, cost, warnings, the curve"},
    {"html", cmd_html, CHECK_STDOUT, "a profile as one self-contained page for the browser"},
    {"mrc", cmd_mrc, CHECK_STDOUT, "miss ratio as a function of cache size"},
    {"timeline", cmd_timeline, CHECK_STDOUT, "miss ratio over time and cache size, with phases"},
    {"phases", cmd_phases, CHECK_STDOUT, "the phases of a run and their miss ratios"},
    {"hotspots", cmd_hotspots, CHECK_STDOUT, "misses by function, source line, instruction or data object"},
    {"causes", cmd_causes, CHECK_STDOUT, "why misses happen: cold misses, and which data evicted which"},
    {"annotate", cmd_annotate, CHECK_STDOUT, "source code with misses beside the lines"},
    /* Its exit status also says whether a condition holds. */
    {"diff", cmd_diff, CHECK_STDOUT, "what changed between two profiles, before and after"},
    {"stack", cmd_stack, CHECK_STDOUT, "exact LRU curve of a trace by stack distances"},
    {"sim", cmd_sim, CHECK_STDOUT, "exact simulation of a cache hierarchy on a trace"},
    {"sample", cmd_sample, 0, "sparse sampling of a trace (StatCache, StatStack), into a profile"},
    {"verify", cmd_verify, CHECK_STDOUT, "compare the estimate with the exact curve, on your own program"},
    {"doctor", cmd_doctor, CHECK_STDOUT, "check what this machine and kernel offer"},
    {"corun", cmd_corun, CHECK_STDOUT, "predict miss ratios and speeds of programs that share a cache"},
    {"place", cmd_place, CHECK_STDOUT, "assign programs to shared caches with the least co-run slowdown"},
    /* As for record: its exit status is the program's. */
    {"pirate", cmd_pirate, CHECK_STDOUT, "measure a program while part of the last-level cache is occupied"},
    {"machine", cmd_machine, CHECK_STDOUT, "measure this machine's caches, latencies and bandwidths"},
    {"predict", cmd_predict, CHECK_STDOUT, "predict a program's speed on another machine"},
    {"import", cmd_import, CHECK_STDOUT, "convert a trace of another tool"},
    {"export", cmd_export, CHECK_STDOUT, "a trace or a profile's results in the format of another tool"},
    {"help", cmd_help, CHECK_STDOUT, "help on cachegram or a command"},
};

static int check_stdout(int status)
{
    /* fclose, not fflush: some file systems report a full disk only when the file is closed. */
    int failed = ferror(stdout);
    errno = 0;
    if (failed) { /* the error code is lost: write again to get it */
        clearerr(stdout);
        putc('\n', stdout);
    }
    if (fclose(stdout) != 0)
        failed = 1;
    /* The reader may close the pipe early (cachegram mrc | head): not a failure. */
    if (!failed || errno == EPIPE || status != 0)
        return status;
    struct error err;
    error_set(&err, -EIO, "cannot write the results to stdout: %s", errno ? strerror(errno) : "write error");
    return cli_fail(&err);
}

static int print_version(void)
{
    puts("cachegram " CACHEGRAM_VERSION);
    return check_stdout(0);
}

static int run(const struct command *command, int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--version") == 0)
        return print_version();
    int status = command->run(argc, argv);
    return command->flags & CHECK_STDOUT ? check_stdout(status) : status;
}

static const struct command *find(const char *name)
{
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

static int unknown(const char *name)
{
    fprintf(stderr, "cachegram: '%s' is not a command; see 'cachegram help'\n", name);
    return 2;
}

static int help_of(const char *name)
{
    const struct command *command = find(name);
    char help[] = "--help";
    if (!command)
        return unknown(name);
    char *argv[] = {(char *)command->name, help, NULL};
    return command->run(2, argv);
}

static void help_all(void)
{
    fputs("usage: cachegram COMMAND [OPTIONS] [FILE]\n"
          "\n"
          "Measures how a program uses caches of any size.\n"
          "\n",
          stdout);
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        printf("  %-10s %s\n", commands[i].name, commands[i].help);
    fputs("\n"
          "'cachegram COMMAND --help' lists the options of a command, 'cachegram --version' prints the "
          "version.\n"
          "The default profile is " CLI_DEFAULT_PROFILE " in the current folder.\n",
          stdout);
}

/* `cachegram help [COMMAND]`. */
static int cmd_help(int argc, char **argv)
{
    if (argc > 2)
        return cli_misuse("help", "one command at a time");
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0) {
        help_all();
        return 0;
    }
    if (argv[1][0] == '-')
        return cli_misuse("help", "unknown option '%s'", argv[1]);
    return help_of(argv[1]);
}

/* A file that is opened must not become a standard descriptor that is closed: the recorder's messages would
 * go into it, and the command would inherit what libraries open in that case (SQLite). These cannot be read
 * or written in the direction of their use, so that this remains an error; and a command finds them closed.
 */
static void hold_closed(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            open("/dev/null", (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC); /* the lowest one */
}

int main(int argc, char **argv)
{
    hold_closed();
    if (argc < 2) {
        fputs("cachegram: no command given; see 'cachegram help'\n", stderr);
        return 2;
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0)
        return print_version();
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        help_all();
        return check_stdout(0);
    }
    const struct command *command = find(argv[1]);
    return command ? run(command, argc - 1, argv + 1) : unknown(argv[1]);
}
