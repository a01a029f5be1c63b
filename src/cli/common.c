/* SPDX-License-Identifier: Apache-2.0 */
/* common.c - messages, and options that several commands share. */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/extent.h"
#include "base/sizes.h"

#define MOST_TIME_NS 3600e9

int cli_fail(const struct error *err)
{
    fputs("cachegram: ", stderr);
    report_plain(stderr, err->text);
    fputc('\n', stderr);
    return 1;
}

int cli_misuse(const char *command, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(stderr, "cachegram: %s: %s; see 'cachegram %s --help'\n", command, text, command);
    return 2;
}

void cli_print_warnings(const char *lines)
{
    fputs("cachegram: warning: ", stderr);
    for (size_t length; *lines; lines += length + (lines[length] == '\n')) {
        length = strcspn(lines, "\n");
        char *line = strndup(lines, length);
        report_plain(stderr, line ? line : "");
        free(line);
        fputs(lines[length] == '\n' ? "; " : "", stderr);
    }
    fputc('\n', stderr);
}

int cli_open_profile(const char *file, struct profile **p, struct error *err)
{
    char text[1000], line[PATH_MAX + sizeof text];
    double seconds;
    int code = profile_open(file, p, err);
    if (code == 0 && profile_get_number(*p, "unprofiled_cpu_seconds", &seconds, NULL) == 0 &&
        analysis_refuse_unprofiled(*p, file, NULL) == 0 && analysis_unprofiled(*p, text, sizeof text)) {
        snprintf(line, sizeof line, "%s: %s", file, text);
        cli_print_warnings(line);
    }
    return code;
}

int cli_check_lines(const char *file, unsigned line_bytes, const char *other, unsigned other_bytes,
                    struct error *err)
{
    if (line_bytes == other_bytes)
        return 0;
    return error_set(err, -EINVAL,
                     "%s has lines of %u bytes and %s of %u: record one of them again, with --line", file,
                     line_bytes, other, other_bytes);
}

/* After getopt_long returned '?' or ':'. */
static int misuse_option(const char *command, int result, char **argv)
{
    /* The option is the last one that getopt_long consumed; short ones are in optopt. */
    const char *option = optind > 0 ? argv[optind - 1] : "";
    if (result == ':')
        return cli_misuse(command, "option '%s' needs a value", option);
    if (optopt && strncmp(option, "--", 2) == 0)
        return cli_misuse(command, "option '%s' takes no value", option);
    if (optopt)
        return cli_misuse(command, "unknown option '-%c'", optopt);
    return cli_misuse(command, "unknown or ambiguous option '%s'", option);
}

/* Handles the option if it is in CLI_OUTPUT_OPTIONS. 1: handled, 0: another option, -1: bad value (message
 * printed). */
static int output_option(const struct cli_syntax *syntax, int opt, const char *value,
                         struct cli_output *output)
{
    static const char *const formats[] = {"text", "csv", "json", NULL};
    static const char *const colors[] = {"auto", "always", "never", NULL};
    int word;
    if (opt != CLI_OPT_FORMAT && opt != CLI_OPT_COLOR)
        return 0;
    if (opt == CLI_OPT_FORMAT) {
        output->other_format = syntax->other_format && strcmp(value, syntax->other_format) == 0;
        if (output->other_format)
            return 1;
    }
    if (opt == CLI_OPT_FORMAT) {
        word = cli_word_option(syntax->command, "--format", value, formats);
        output->format = (enum report_format)word;
    } else {
        word = cli_word_option(syntax->command, "--color", value ? value : "always", colors); /* as in ls */
        output->color = (enum report_color)word;
    }
    return word < 0 ? -1 : 1;
}

int cli_next_option(const struct cli_syntax *syntax, int argc, char **argv, struct cli_output *output,
                    int *status)
{
    int opt, handled = 1;
    *status = -1;
    while (handled > 0) {
        opt = getopt_long(argc, argv, syntax->letters, syntax->options, NULL);
        if (opt == -1)
            return 0;
        if (opt == 'h') {
            fputs(syntax->usage, stdout);
            *status = 0;
            return 0;
        }
        if (opt == '?' || opt == ':') {
            *status = misuse_option(syntax->command, opt, argv);
            return 0;
        }
        handled = output_option(syntax, opt, optarg, output);
    }
    if (handled == 0)
        return opt;
    *status = 2;
    return 0;
}

const char *cli_one_file(const char *command, int argc, char **argv)
{
    if (argc - optind > 1) {
        cli_misuse(command, "one profile at a time, but '%s' follows '%s'", argv[optind + 1], argv[optind]);
        return NULL;
    }
    return optind < argc ? argv[optind] : CLI_DEFAULT_PROFILE;
}

const char *cli_one_trace(const char *command, int argc, char **argv)
{
    if (argc - optind == 1)
        return argv[optind];
    if (argc == optind)
        cli_misuse(command, "no trace given");
    else
        cli_misuse(command, "one trace at a time, but '%s' follows '%s'", argv[optind + 1], argv[optind]);
    return NULL;
}

struct curve_point *cli_points(const char *sizes, size_t *n, struct error *err)
{
    uint64_t *list = NULL;
    size_t count = 0;
    if (size_parse_list(sizes, &list, &count, err) != 0)
        return NULL;
    struct curve_point *points = calloc(count, sizeof *points);
    if (points) {
        for (size_t i = 0; i < count; i++)
            points[i] = (struct curve_point){(double)list[i], NAN, NAN, NAN};
        *n = count;
    } else {
        error_set(err, -ENOMEM, "out of memory");
    }
    free(list);
    return points;
}

int cli_parse_count(const char *text, char end, uint64_t *value, const char **rest)
{
    char *stop;
    double number = strtod(text, &stop);
    if (stop == text || !(number >= 1 && number < 0x1p53) || *text == '+')
        return -1;
    switch (*stop) {
    case 'K':
        number *= 1e3, stop++;
        break;
    case 'M':
        number *= 1e6, stop++;
        break;
    case 'G':
        number *= 1e9, stop++;
        break;
    default:
        break;
    }
    if (*stop != end || number != floor(number) || !(number < 0x1p53))
        return -1;
    *value = (uint64_t)number;
    if (rest)
        *rest = stop + 1;
    return 0;
}

int cli_parse_whole(const char *text, uint64_t most, uint64_t *value)
{
    char *end;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno || number > most)
        return -1;
    *value = number;
    return 0;
}

int cli_word_option(const char *command, const char *option, const char *text, const char *const *words)
{
    char list[80] = "";
    for (int i = 0; words[i]; i++) {
        if (strcmp(text, words[i]) == 0)
            return i;
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s",
                 i == 0         ? ""
                 : words[i + 1] ? ", "
                                : " or ",
                 words[i]);
    }
    cli_misuse(command, "%s %s: must be %s", option, text, list);
    return -1;
}

int cli_size_option(const char *command, const char *option, const char *text, uint64_t *bytes)
{
    struct error err;
    if (size_parse(text, bytes, &err) == 0)
        return 0;
    return cli_misuse(command, "%s%s%s", option ? option : "", option ? ": " : "", err.text);
}

int cli_number_option(const char *command, const char *option, const char *what, const char *text,
                      uint32_t *value)
{
    uint64_t number;
    if (cli_parse_whole(text, UINT32_MAX, &number) != 0 || number == 0)
        return cli_misuse(command, "%s %s: must be the number of a %s", option, text, what);
    *value = (uint32_t)number;
    return 0;
}

int cli_seed_option(const char *command, const char *text, uint64_t *seed)
{
    return cli_parse_whole(text, UINT64_MAX, seed) == 0
               ? 0
               : cli_misuse(command, "--seed %s: must be a whole number", text);
}

int cli_whole_option(const char *command, const char *option, const char *text, uint64_t least, uint64_t most,
                     uint64_t *value)
{
    uint64_t number;
    if (cli_parse_whole(text, most, &number) != 0 || number < least)
        return cli_misuse(command, "%s %s: must be a whole number from %llu to %llu", option, text,
                          (unsigned long long)least, (unsigned long long)most);
    *value = number;
    return 0;
}

int cli_line_option(const char *command, const char *text, unsigned *line_bytes)
{
    uint64_t bytes;
    if (size_parse(text, &bytes, NULL) < 0 || bytes < 8 || bytes > 4096 || (bytes & (bytes - 1)) != 0)
        return cli_misuse(command, "--line %s: must be a power of two from 8 to 4096 bytes", text);
    *line_bytes = (unsigned)bytes;
    return 0;
}

/* Negative if the text is not a percentage. */
static double percentage(const char *text)
{
    char *end;
    double x = strtod(text, &end);
    return end != text && (*end == '\0' || strcmp(end, "%") == 0) && x >= 0 && x <= 100 ? x : -1;
}

int cli_percent_option(const char *command, const char *option, const char *text, double *value)
{
    double x = percentage(text);
    if (x <= 0)
        return cli_misuse(command, "%s %s: must be a percentage above 0, at most 100", option, text);
    *value = x;
    return 0;
}

int cli_percent_limit_option(const char *command, const char *text, double *value)
{
    double x = percentage(text);
    if (x < 0)
        return cli_misuse(command, "--percent-limit %s: must be a percentage from 0 to 100", text);
    *value = x;
    return 0;
}

int cli_time_option(const char *command, const char *option, const char *text, uint64_t *ns)
{
    static const struct {
        const char *unit;
        double ns;
    } units[] = {{"", 1e9}, {"s", 1e9}, {"ms", 1e6}, {"m", 60e9}};
    char *end;
    double x = strtod(text, &end);
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (end != text && strcmp(end, units[i].unit) == 0 && x >= 0 && x * units[i].ns <= MOST_TIME_NS) {
            *ns = (uint64_t)(x * units[i].ns);
            return 0;
        }
    return cli_misuse(command, "%s %s: must be a time up to an hour, like 1s or 300ms, or 0", option, text);
}

int cli_temporary_folder(const char *word, char *folder, size_t size, struct error *err)
{
    const char *tmp = getenv("TMPDIR");
    int n = snprintf(folder, size, "%s/cachegram-%s-XXXXXX", tmp && *tmp ? tmp : "/tmp", word);
    if (n < 0 || (size_t)n >= size)
        return error_set(err, -ENAMETOOLONG, "the name of the folder $TMPDIR is too long");
    if (!mkdtemp(folder))
        return error_set(err, -errno, "cannot create a temporary folder %s: %s", folder, strerror(errno));
    return 0;
}

int cli_is_database(const char *path)
{
    static const char magic[] = "SQLite format 3";
    char head[sizeof magic];
    FILE *f = strcmp(path, "-") == 0 ? NULL : fopen(path, "re");
    size_t n = f ? fread(head, 1, sizeof head, f) : 0;
    if (f)
        fclose(f);
    return n == sizeof head && memcmp(head, magic, sizeof head) == 0;
}

/* For a device or pipe, which cannot be replaced; and for a file where there was none. */
static int write_directly(const char *path, void (*write)(FILE *out, const void *ctx), const void *ctx)
{
    errno = 0;
    FILE *f = fopen(path, "we");
    if (!f)
        return -1;
    write(f, ctx);
    int failed = ferror(f) != 0;
    return fclose(f) != 0 || failed ? -1 : 0;
}

/* A new file that nobody else can read while it is written. */
static int create_private(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    return fd < 0 ? -1 : close(fd);
}

int cli_replace_file(const char *path, void (*write)(FILE *out, const void *ctx), const void *ctx,
                     struct error *err)
{
    char target[PATH_MAX], unfinished[PATH_MAX + 32];
    struct stat st;
    int failed;
    if (!realpath(path, target)) /* there is none yet; if there are too many links, opening it fails */
        snprintf(target, sizeof target, "%s", path);
    if (strlen(path) >= sizeof target)
        return error_set(err, -ENAMETOOLONG, "the name '%s' is too long", path);
    int exists = stat(target, &st) == 0;
    if (exists && !S_ISREG(st.st_mode)) {
        failed = write_directly(target, write, ctx);
    } else {
        /* A name of its own: another process may be writing the same file. */
        snprintf(unfinished, sizeof unfinished, "%s.%d.part", target, (int)getpid());
        /* Whoever may not read what is replaced may not read what replaces it. */
        failed = (exists && create_private(unfinished) != 0) || write_directly(unfinished, write, ctx) != 0 ||
                 (exists && chmod(unfinished, st.st_mode & 0777) != 0) || rename(unfinished, target) != 0;
        int code = errno;
        if (failed)
            unlink(unfinished);
        errno = code;
    }
    if (!failed)
        return 0;
    int code = errno ? -errno : -EIO;
    return error_set(err, code, "cannot write '%s': %s", path, strerror(-code));
}

static void write_text(FILE *out, const void *text)
{
    fputs(text, out);
}

int cli_write_text(const char *path, const char *text, struct error *err)
{
    if (strcmp(path, "-") != 0)
        return cli_replace_file(path, write_text, text, err);
    fputs(text, stdout);
    return 0;
}

/* Index of the kind of code with that name; -1: there is none. */
static int find_by(const char *word)
{
    static const char *const by[] = {"function", "line", "module", "insn"};
    for (int i = 0; i < (int)(sizeof by / sizeof by[0]); i++)
        if (strcmp(by[i], word) == 0)
            return i;
    return -1;
}

int cli_threads_option(const char *command, const char *text)
{
    static const char *const words[] = {"together", "separate", NULL};
    return cli_word_option(command, "--threads", text, words);
}

int cli_by_option(const char *command, const char *value, struct analysis_hotspots_question *question)
{
    char word[16];
    question->objects = question->fields = 0;
    int object = 0;
    question->by = ANALYSIS_BY_NOTHING;
    for (const char *text = value;; text++) {
        size_t length = strcspn(text, ",");
        snprintf(word, sizeof word, "%.*s", length < sizeof word ? (int)length : 0, text);
        int found = find_by(word);
        if (strcmp(word, "object") == 0 && !object)
            question->objects = object = 1;
        else if (strcmp(word, "field") == 0 && !question->fields)
            question->objects = question->fields = 1;
        else if (found >= 0 && question->by == ANALYSIS_BY_NOTHING)
            question->by = (enum analysis_by)found;
        else
            return cli_misuse(command,
                              "--by %s: must be function, line, module, insn, object or field, or one of the "
                              "first four with object or field, such as function,object",
                              value);
        text += length;
        if (*text == '\0')
            return 0;
    }
}
