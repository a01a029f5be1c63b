/* SPDX-License-Identifier: Apache-2.0 */
/* cmd-annotate.c - `cachegram annotate`: source lines and instructions with their misses. */
#include "cli/cli.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/array.h"
#include "base/sizes.h"
#include "cli/levels.h"
#include "cli/sources.h"
#include "report/annotate.h"
#include "symbols/disassemble.h"
#include "symbols/image.h"

#define DEFAULT_SIZE (1u << 20)
/* Without symbols: between two instructions with references, the most bytes of others that are read. */
#define LONGEST_GAP 4096u
/* Instructions shown before and after one with references. */
#define CONTEXT 6u

enum { OPT_SIZE = 1, OPT_ASM, OPT_MACHINE, OPT_COMM, OPT_THREADS, OPT_TID, OPT_PHASE };

static const struct option options[] = {
    {"size", required_argument, NULL, OPT_SIZE},
    {"asm", no_argument, NULL, OPT_ASM},
    {"machine", required_argument, NULL, OPT_MACHINE},
    {"comm", required_argument, NULL, OPT_COMM},
    {"threads", required_argument, NULL, OPT_THREADS},
    {"tid", required_argument, NULL, OPT_TID},
    {"phase", required_argument, NULL, OPT_PHASE},
    CLI_SOURCE_OPTIONS,
    {"help", no_argument, NULL, 'h'},
    CLI_OUTPUT_OPTIONS,
    {NULL, 0, NULL, 0},
};

static const char usage[] =
    "usage: cachegram annotate [OPTIONS] [PROFILE] [FUNCTION|FILE]\n"
    "\n"
    "Prints source code with the misses of each line, from the profile PROFILE (default cachegram.db): the "
    "code\n"
    "of FUNCTION, of the source FILE, or of the functions with most of the misses. What was inlined into a\n"
    "function counts at the line of the call.\n"
    "\n"
    "  --size SIZE             of the cache, such as 32K or 1M (default 1M)\n"
    "  --asm                   instructions, too; needs the program as it was when it was recorded\n"
    "  --machine NAME|FILE     also estimate each line's share of the time that misses cost on that machine, "
    "as\n"
    "                          'cachegram hotspots' does (cachegram machine --list, --output)\n"
    "  --comm NAME             only processes that ran this executable\n"
    "  --threads together|separate\n"
    "                          one cache for all threads of a process (default), or one for each, as\n"
    "                          first-level caches usually are\n"
    "  --tid TID               only this thread\n"
    "  --phase N               only this phase of 'cachegram phases', from its bursts\n" CLI_SOURCE_HELP
        CLI_OUTPUT_HELP "\n"
    "CSV columns: function,file,line,object,refs_share,size_bytes,miss_ratio,miss_share,stall_share,module,\n"
    "offset,misses_per_1000_refs,recorded_refs,text: a row for each line with references and, with --asm, "
    "for\n"
    "each instruction (offset is not empty). stall_share: only with --machine.\n";

struct arguments {
    struct cli_output output;
    struct analysis_annotate_question question;
    const char *profile;
    int with_asm;
    const char *machine; /* NULL: not given */
    struct cli_sources sources;
    time_t started; /* the recording; 0: not known */
};

/* 0, or the status of wrong usage. */
static int take_option(int opt, const char *value, struct arguments *a)
{
    uint64_t number;
    switch (opt) {
    case OPT_SIZE:
        if (cli_size_option("annotate", NULL, value, &number) != 0)
            return 2;
        a->question.size_bytes = (double)number;
        return 0;
    case OPT_ASM:
        a->with_asm = 1;
        return 0;
    case OPT_MACHINE:
        a->machine = value;
        return 0;
    case OPT_COMM:
        a->question.comm = value;
        return 0;
    case OPT_THREADS:
        return (a->question.separate = cli_threads_option("annotate", value)) < 0 ? 2 : 0;
    case OPT_TID:
        return cli_number_option("annotate", "--tid", "thread", value, &a->question.tid);
    case OPT_PHASE:
        return cli_number_option("annotate", "--phase", "phase", value, &a->question.phase);
    default:
        return cli_source_option("annotate", opt, value, &a->sources);
    }
}

/* A database, or any file that is named as our profiles are. */
static int is_profile(const char *path)
{
    size_t n = strlen(path);
    return cli_is_database(path) || (n > 3 && strcmp(path + n - 3, ".db") == 0);
}

static int take_operands(int argc, char **argv, struct arguments *a)
{
    int n = argc - optind;
    if (n > 2)
        return cli_misuse("annotate",
                          "too many operands (%d): a profile and a function or source file are enough", n);
    a->profile = CLI_DEFAULT_PROFILE;
    if (n == 2 || (n == 1 && is_profile(argv[optind])))
        a->profile = argv[optind++];
    if (optind < argc)
        a->question.what = argv[optind];
    return 0;
}

/* --- instructions --- */

struct listing {
    struct report_part *part;
    struct symbols_image *image;
    struct disassembler *code;
    size_t capacity; /* of the part's instructions */
};

static int add_insn(struct listing *l, const struct report_insn *insn)
{
    if (ARRAY_GROW(l->part->insns, l->part->ninsns, l->capacity) < 0)
        return -ENOMEM;
    l->part->insns[l->part->ninsns++] = *insn;
    return 0;
}

/* Whether the code at that offset belongs to the part. *line: its source line; 0: not known, or of another
 * file. */
static int belongs(const struct listing *l, uint64_t offset, uint32_t *line)
{
    const struct annotated *part = l->part->part;
    struct symbols_frame frames[SYMBOLS_MOST_FRAMES];
    unsigned n = symbols_image_frames(l->image, offset, 1, frames);
    *line = 0;
    for (unsigned i = 0; i < n; i++) {
        int named = part->function && frames[i].function && strcmp(frames[i].function, part->function) == 0;
        int in_file = strcmp(frames[i].file ? frames[i].file : "", part->file) == 0;
        if (part->function ? named : in_file) {
            *line = in_file ? frames[i].line : 0;
            return 1;
        }
    }
    return 0;
}

/* Returns where the listing around a counted instruction ends: its function's end. *begin becomes the
 * function's start, if that is lower. */
static uint64_t widen(const struct listing *l, uint64_t counted, uint64_t *begin)
{
    uint64_t low, high;
    if (!symbols_image_function(l->image, counted, &low, &high))
        return counted + 1;
    if (low < *begin)
        *begin = low;
    return high;
}

/* Lists the instructions of the functions that contain counted instructions; without symbols, of the code
 * from one counted instruction to the next. */
static int list_insns(struct listing *l)
{
    const struct annotated *part = l->part->part;
    uint64_t at = part->insns[0].offset, end = widen(l, at, &at);
    size_t next = 0;
    int gap = 0;
    while (next < part->ninsns || at < end) {
        const struct annotated_insn *counts = next < part->ninsns ? &part->insns[next] : NULL;
        uint32_t line = 0;
        if (counts && (at >= end || at > counts->offset)) {
            /* The listing has passed the counted instruction, which is at none of its boundaries; or a
             * function has ended. */
            int beyond = at > counts->offset;
            uint64_t from = counts->offset;
            end = widen(l, counts->offset, &from);
            if (beyond || (counts->offset - at > LONGEST_GAP && from < at))
                from = counts->offset;
            gap |= at != from;
            at = from > at || beyond ? from : at;
            end = end > at ? end : at + 1;
        }
        int is_counted = counts && at == counts->offset;
        int is_part = belongs(l, at, &line) || is_counted;
        struct report_insn insn = {.offset = at, .counts = is_counted ? counts : NULL, .after_gap = gap};
        unsigned length = disassembler_insn(l->code, at, insn.text, sizeof insn.text);
        if (length == 0)
            snprintf(insn.text, sizeof insn.text, "(no instruction)");
        insn.address = disassembler_address(l->code, at);
        insn.line = is_counted ? counts->line : line;
        if (is_part && add_insn(l, &insn) < 0)
            return -ENOMEM;
        gap = !is_part;
        next += (size_t)is_counted;
        at += length ? length : 1;
    }
    return 0;
}

/* Drops instructions that are more than CONTEXT away from any with references. */
static void keep_near(struct report_part *p)
{
    size_t used = 0, since = CONTEXT + 1; /* instructions since the last counted one */
    int gap = 0;
    for (size_t i = 0; i < p->ninsns; i++) {
        int near = since < CONTEXT;
        for (size_t k = i; k < p->ninsns && k <= i + CONTEXT && !near; k++)
            near = p->insns[k].counts != NULL;
        since = p->insns[i].counts ? 0 : since + 1;
        gap |= p->insns[i].after_gap;
        if (!near) {
            gap = 1;
            continue;
        }
        p->insns[used] = p->insns[i];
        p->insns[used++].after_gap = gap;
        gap = 0;
    }
    p->ninsns = used;
}

static int disassemble(struct report_part *p, char *note, size_t size)
{
    const struct profile_image *image = p->part->image;
    struct listing l = {.part = p};
    struct error err;
    int code = 0;
    if (!*image->path || *image->path == '[') {
        snprintf(note, size, "No instructions: this code is in no file");
        p->note = note;
        return 0;
    }
    l.image = symbols_image_open(image->path);
    l.code = disassembler_open(image->path, &err);
    if (!l.code) {
        snprintf(note, size, "No instructions: %s", err.text);
        p->note = note;
    } else if (!l.image || strcmp(symbols_image_build_id(l.image), image->build_id) != 0) {
        snprintf(note, size, "No instructions: '%s' is not the file that was recorded (its build id differs)",
                 image->path);
        p->note = note;
    } else {
        if (!*image->build_id) {
            snprintf(note, size, "'%s' has no build id: it may not be the file that was recorded",
                     image->path);
            p->note = note;
        }
        code = list_insns(&l);
        keep_near(p);
    }
    symbols_image_close(l.image);
    disassembler_close(l.code);
    return code;
}

/* --- all of it --- */

/* Memory of one part that the report only points to. */
struct part_memory {
    struct source source;
    char note[1200];
};

/* Whether a source is newer than the program it was compiled to, or than the recording: the program may have
 * been built again since. */
static int is_changed(const struct source *source, const struct profile_image *image, time_t started)
{
    struct stat built;
    const struct timespec *changed = &source->changed;
    if (started && changed->tv_sec > started)
        return 1;
    return stat(image->path, &built) == 0 &&
           (changed->tv_sec != built.st_mtim.tv_sec ? changed->tv_sec > built.st_mtim.tv_sec
                                                    : changed->tv_nsec > built.st_mtim.tv_nsec);
}

/* Once for each source. */
static void warn_of_changes(const struct report_part *parts, size_t n)
{
    char text[2 * PATH_MAX + 200];
    for (size_t i = 0; i < n; i++) {
        size_t before = 0;
        while (
            parts[i].source_changed && before < i &&
            !(parts[before].source_changed && strcmp(parts[before].source->path, parts[i].source->path) == 0))
            before++;
        if (parts[i].source_changed && before == i) {
            snprintf(text, sizeof text,
                     "'%s' was changed after '%s' was built: numbers may stand beside the wrong lines",
                     parts[i].source->path, parts[i].part->image->path);
            cli_print_warnings(text);
        }
    }
}

static int prepare(const struct arguments *args, const struct analysis_annotation *a,
                   struct report_part *parts, struct part_memory *own, struct error *err)
{
    struct source_search search = cli_source_search(&args->sources);
    int code = 0;
    for (size_t i = 0; i < a->n && code == 0; i++) {
        parts[i].part = &a->parts[i];
        if (*a->parts[i].file && source_load(a->parts[i].file, &search, &own[i].source) == 0)
            parts[i].source = &own[i].source;
        parts[i].source_changed =
            parts[i].source && is_changed(parts[i].source, parts[i].part->image, args->started);
        if (args->with_asm)
            code = disassemble(&parts[i], own[i].note, sizeof own[i].note);
    }
    return code < 0 ? error_set(err, code, "out of memory for the instructions of a function") : 0;
}

static int print(const struct arguments *args, const struct analysis_annotation *a, struct error *err)
{
    struct report_part *parts = calloc(a->n + 1, sizeof *parts);
    struct part_memory *own = calloc(a->n + 1, sizeof *own);
    int code = parts && own ? prepare(args, a, parts, own, err) : error_set(err, -ENOMEM, "out of memory");
    if (code == 0) {
        warn_of_changes(parts, a->n);
        report_annotation(stdout, a, parts, a->n, args->output.format);
    }
    for (size_t i = 0; i < a->n && parts && own; i++) {
        free(parts[i].insns);
        source_clear(&own[i].source);
    }
    free(parts);
    free(own);
    return code;
}

int cmd_annotate(int argc, char **argv)
{
    static const struct cli_syntax syntax = {"annotate", usage, ":h", options, NULL};
    struct arguments a = {.output = {.format = REPORT_TEXT}, .question = {.size_bytes = DEFAULT_SIZE}};
    struct analysis_annotation annotation;
    struct profile *p;
    struct error err;
    int opt, status;
    while ((opt = cli_next_option(&syntax, argc, argv, &a.output, &status)) != 0)
        if (take_option(opt, optarg, &a) != 0)
            return 2;
    if (status >= 0)
        return status;
    if (take_operands(argc, argv, &a) != 0)
        return 2;
    struct cli_levels levels;
    int code = a.machine ? cli_find_levels(a.machine, &levels, &err) : 0;
    if (code == 0 && a.machine) {
        a.question.levels = levels.list;
        a.question.nlevels = levels.n;
    }
    if (code == 0)
        code = cli_open_profile(a.profile, &p, &err);
    if (code == 0) {
        a.started = cli_started(p);
        code = analysis_annotate(p, a.profile, &a.question, &annotation, &err);
        /* Closed before printing: a pager that waits must not block a recording. */
        profile_close(p, 0, NULL);
    }
    if (code == 0) {
        code = print(&a, &annotation, &err);
        analysis_annotation_clear(&annotation);
    }
    return code == 0 ? 0 : cli_fail(&err);
}
