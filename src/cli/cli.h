/* SPDX-License-Identifier: Apache-2.0 */
/* cli.h - shared by the commands. Only this folder prints to stderr or ends the process. */
#ifndef CACHEGRAM_CLI_H
#define CACHEGRAM_CLI_H

#include <getopt.h>

#include "analysis/hotspots.h"
#include "base/error.h"
#include "cli/commands.h"
#include "report/report.h"

#define CLI_DEFAULT_PROFILE "cachegram.db"
#define CLI_DEFAULT_SIZES "1K..64M"
#define CLI_TIMELINE_SIZES "1K,2K,4K,8K,16K,32K,64K,128K,256K,512K,1M,2M,4M,8M,16M,32M,64M"

/* "cachegram: ...", one line on stderr; returns 1. */
int cli_fail(const struct error *err);
/* "cachegram: COMMAND: ...; see 'cachegram COMMAND --help'", one line on stderr; returns 2. */
int cli_misuse(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Options that all commands with results share. */
struct cli_output {
    enum report_format format;
    enum report_color color;
    int other_format; /* the last --format was the command's own one */
};
/* Values in the val field of their struct option. */
enum { CLI_OPT_FORMAT = 1000, CLI_OPT_COLOR };
#define CLI_OUTPUT_OPTIONS                               \
    {"format", required_argument, NULL, CLI_OPT_FORMAT}, \
    {                                                    \
        "color", optional_argument, NULL, CLI_OPT_COLOR  \
    }
#define CLI_OUTPUT_HELP                                                                               \
    "  --format text|csv|json  output format (default text)\n"                                        \
    "  --color[=auto|always|never]  colour in text; auto (default): on a terminal, unless NO_COLOR\n" \
    "  --help                  this text\n"

/* What a command line may hold. */
struct cli_syntax {
    const char *command; /* for messages */
    const char *usage;   /* printed for --help, whose struct option has the value 'h' */
    const char *letters; /* short options, as for getopt_long; ':' comes first, or second after + or - */
    const struct option *options; /* values above 0 */
    const char *other_format;     /* for --format, besides text, csv and json; or NULL */
};
/*
 * The next option that the command has to handle, its value in optarg. --help, CLI_OUTPUT_OPTIONS (into
 * *output, NULL for a command without them) and errors are handled here. 0: there are no more; *status is
 * then -1, or the exit status if the command is to end now, after --help or an error (message printed).
 */
int cli_next_option(const struct cli_syntax *syntax, int argc, char **argv, struct cli_output *output,
                    int *status);
/* Prints warnings, one per line of `lines`, as a single line on stderr. Names in them may be of a profile
 * from anywhere: a terminal gets no control characters, here and from cli_fail. */
void cli_print_warnings(const char *lines);

/* Opens a profile for reading; warns on stderr of programs that could not be profiled, unless the profile has
 * nothing else. 0, or negative with err filled. */
int cli_open_profile(const char *file, struct profile **p, struct error *err);
/* What two profiles can be compared by: 0, or -EINVAL with err if their lines are of different sizes. */
int cli_check_lines(const char *file, unsigned line_bytes, const char *other, unsigned other_bytes,
                    struct error *err);

/* The one file operand at argv[optind], or the default. NULL if there are several (message printed). */
const char *cli_one_file(const char *command, int argc, char **argv);

/* The one trace at argv[optind]. NULL if there is none, or several (message printed). */
const char *cli_one_trace(const char *command, int argc, char **argv);

/* Points for the sizes of a list such as "1K..64M"; malloc'ed, the caller frees. NULL with err filled. */
struct curve_point *cli_points(const char *sizes, size_t *n, struct error *err);

/*
 * A number of references, 1 to 2^53: 500000, 5e5, 500K (K is 1000 here, since these are not bytes). It ends
 * at the character `end`; *rest, if not NULL, is what follows. 0, or -1 with *value unchanged.
 */
int cli_parse_count(const char *text, char end, uint64_t *value, const char **rest);
/* Decimal digits only, 0 to `most`. 0, or -1 with *value unchanged. */
int cli_parse_whole(const char *text, uint64_t most, uint64_t *value);

/* The number of the word in a list that ends with NULL; -1 after a message that names them all. */
int cli_word_option(const char *command, const char *option, const char *text, const char *const *words);
/* The value of --threads: 0 "together", 1 "separate", -1 after a message. */
int cli_threads_option(const char *command, const char *text);
/* The value of an option, a size such as 32K; option NULL: messages do without its name. 0, or 2 after a
 * message. */
int cli_size_option(const char *command, const char *option, const char *text, uint64_t *bytes);
/* Likewise the number of a thread or phase, which is 1 or more. */
int cli_number_option(const char *command, const char *option, const char *what, const char *text,
                      uint32_t *value);
/* Likewise the value of --seed. */
int cli_seed_option(const char *command, const char *text, uint64_t *seed);
/* Likewise a whole number from least to most. */
int cli_whole_option(const char *command, const char *option, const char *text, uint64_t least, uint64_t most,
                     uint64_t *value);
/* Likewise the size of a line: a power of two from 8 to 4096 bytes. */
int cli_line_option(const char *command, const char *text, unsigned *line_bytes);
/* Likewise a percentage above 0, at most 100; a % after it is allowed. */
int cli_percent_option(const char *command, const char *option, const char *text, double *value);
/* Likewise the value of --percent-limit, which may be 0: all rows. */
int cli_percent_limit_option(const char *command, const char *text, double *value);
/* Likewise a time, at most an hour: a number of seconds, or one with the unit ms, s or m. In nanoseconds. */
int cli_time_option(const char *command, const char *option, const char *text, uint64_t *ns);

/* The value of --by: one kind of code, "object", or both with a comma between. 0, or 2 after a message. */
int cli_by_option(const char *command, const char *value, struct analysis_hotspots_question *question);

/* Creates a folder cachegram-WORD-XXXXXX in $TMPDIR, or /tmp. 0, or negative with err filled. */
int cli_temporary_folder(const char *word, char *folder, size_t size, struct error *err);

/* 1 for an SQLite database, which profiles are. */
int cli_is_database(const char *path);

/* Calls `write` for a temporary file next to `path`, and renames that: `path` is then either complete or as
 * before. */
int cli_replace_file(const char *path, void (*write)(FILE *out, const void *ctx), const void *ctx,
                     struct error *err);
/* Likewise with this text; "-" is standard output. */
int cli_write_text(const char *path, const char *text, struct error *err);

#endif
