/* SPDX-License-Identifier: Apache-2.0 */
/*
 * annotate.c - adds up instructions by line.
 *
 * An instruction has a chain of frames: its own line, the call that this was inlined at, and so on. For a
 * function, it counts at the line of the innermost frame of that function: what was inlined into the function
 * counts at the call, and the function's own code counts wherever it was inlined to; but if no function is
 * asked for, only in the function as it was compiled, so that nothing counts twice. For a source file, it
 * counts at the innermost line in that file.
 */
#include "analysis/annotate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* If no function or file is named: functions with at least that share of the misses, and how many of them. */
#define LEAST_SHARE 0.05
#define MOST_FUNCTIONS 5u

/* "a.c" and "src/a.c" are "/x/src/a.c", too. */
static int is_file(const char *file, const char *asked)
{
    size_t n = strlen(file), m = strlen(asked);
    return m > 0 && m <= n && strcmp(file + n - m, asked) == 0 &&
           (m == n || *asked == '/' || file[n - m - 1] == '/');
}

/* --- which part an instruction is of --- */

/* What is asked for. */
struct target {
    const char *function, *file;       /* one of them, or NULL */
    const struct profile_image *image; /* NULL: any */
    int exact;                         /* the function's whole name, and only where it is not inlined */
};

static const struct profile_frame *find_frame(const struct analysis_hotspots *h, const struct target *target,
                                              const struct analysis_hotspot *row)
{
    const struct profile_frame *frame = row->frame;
    if (row->offset == PROFILE_SITE_REST || (target->image && row->image != target->image) ||
        (target->exact && (!row->outer || strcmp(row->outer->function, target->function) != 0)))
        return NULL;
    for (; frame; frame = analysis_caller(h, frame))
        if (target->exact      ? strcmp(frame->function, target->function) == 0
            : target->function ? analysis_function_matches(target->function, frame->function)
                               : is_file(frame->file, target->file))
            return frame;
    return NULL;
}

static int is_found(const struct analysis_hotspots *h, const struct target *target)
{
    for (size_t i = 0; i < h->n; i++)
        if (find_frame(h, target, &h->rows[i]))
            return 1;
    return 0;
}

static struct annotated *find_part(struct analysis_annotation *a, const struct profile_image *image,
                                   const char *function, const char *file)
{
    for (size_t i = 0; i < a->n; i++) {
        struct annotated *part = &a->parts[i];
        if (part->image == image && strcmp(part->file, file) == 0 &&
            (!function || strcmp(part->function, function) == 0))
            return part;
    }
    struct annotated *grown = reallocarray(a->parts, a->n + 1, sizeof *grown);
    if (!grown)
        return NULL;
    a->parts = grown;
    a->parts[a->n] = (struct annotated){.image = image, .function = function, .file = file};
    return &a->parts[a->n++];
}

static struct annotated_line *find_line(struct annotated *part, uint32_t line)
{
    for (size_t i = 0; i < part->nlines; i++)
        if (part->lines[i].line == line)
            return &part->lines[i];
    if (ARRAY_GROW(part->lines, part->nlines, part->lines_capacity) < 0)
        return NULL;
    part->lines[part->nlines] = (struct annotated_line){.line = line};
    return &part->lines[part->nlines++];
}

static int add_row(struct analysis_annotation *a, const struct target *target,
                   const struct analysis_hotspot *row)
{
    const struct profile_frame *frame = find_frame(&a->insns, target, row);
    if (!frame)
        return 0;
    struct annotated *part = find_part(a, row->image, target->function ? frame->function : NULL, frame->file);
    struct annotated_line *line = part ? find_line(part, frame->line) : NULL;
    if (!line || ARRAY_GROW(part->insns, part->ninsns, part->insns_capacity) < 0)
        return -ENOMEM;
    part->insns[part->ninsns++] = (struct annotated_insn){.offset = row->offset,
                                                          .line = frame->line,
                                                          .references = row->shares.references,
                                                          .misses = row->shares.misses,
                                                          .stall = row->stall,
                                                          .recorded = row->shares.recorded};
    line->references += row->shares.references;
    line->misses += row->shares.misses;
    line->stall += row->stall;
    line->recorded += row->shares.recorded;
    part->references += row->shares.references;
    part->misses += row->shares.misses;
    part->stall += row->stall;
    return 0;
}

/* --- which data --- */

struct of_object {
    struct annotated_line *line;
    const struct profile_object *object;
    double misses;
};

static int compare_of_objects(const void *a, const void *b)
{
    const struct of_object *x = a, *y = b;
    if (x->line != y->line)
        return x->line < y->line ? -1 : 1;
    return x->object < y->object ? -1 : x->object > y->object;
}

static int compare_insn(const void *a, const void *b)
{
    const struct annotated_insn *x = a, *y = b;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* Of which line of a part the row's instruction is; NULL: of none. */
static struct annotated_line *line_of_row(struct annotated *part, const struct profile_image *image,
                                          uint64_t offset)
{
    const struct annotated_insn key = {.offset = offset};
    if (strcmp(part->image->path, image->path) != 0)
        return NULL;
    const struct annotated_insn *insn = bsearch(&key, part->insns, part->ninsns, sizeof key, compare_insn);
    return insn ? find_line(part, insn->line) : NULL;
}

static int find_objects(struct analysis_annotation *a)
{
    struct of_object *sums = NULL;
    size_t n = 0, capacity = 0;
    for (size_t p = 0; p < a->n; p++)
        for (size_t i = 0; i < a->objects.n; i++) {
            const struct analysis_hotspot *row = &a->objects.rows[i];
            struct annotated_line *line = row->image && row->object && row->offset != PROFILE_SITE_REST
                                              ? line_of_row(&a->parts[p], row->image, row->offset)
                                              : NULL;
            if (!line || !(row->shares.misses > 0))
                continue;
            if (ARRAY_GROW(sums, n, capacity) < 0) {
                free(sums);
                return -ENOMEM;
            }
            sums[n++] = (struct of_object){line, row->object, row->shares.misses};
        }
    if (n > 0)
        qsort(sums, n, sizeof *sums, compare_of_objects);
    for (size_t i = 0, end; i < n; i = end) {
        double misses = 0;
        for (end = i; end < n && compare_of_objects(&sums[i], &sums[end]) == 0; end++)
            misses += sums[end].misses;
        struct annotated_line *line = sums[i].line;
        if (misses > line->object_misses) {
            line->object_misses = misses;
            line->object = sums[i].object;
        }
    }
    free(sums);
    return 0;
}

/* --- all of it --- */

static int compare_lines(const void *a, const void *b)
{
    const struct annotated_line *x = a, *y = b;
    return x->line < y->line ? -1 : x->line > y->line;
}

static int compare_parts(const void *a, const void *b)
{
    const struct annotated *x = a, *y = b;
    return x->misses != y->misses ? (x->misses < y->misses ? 1 : -1) : strcmp(x->file, y->file);
}

/* The function of the part, if all of it was compiled as one function and nothing of it was inlined
 * elsewhere. */
static const struct shares_result *find_whole(const struct analysis_annotation *a,
                                              const struct annotated *part)
{
    for (size_t i = 0; i < a->functions.n && part->function; i++) {
        const struct analysis_hotspot *row = &a->functions.rows[i];
        double difference = row->shares.misses - part->misses;
        if (row->outer && strcmp(row->outer->function, part->function) == 0 &&
            strcmp(row->image->path, part->image->path) == 0 && difference < 1e-3 * part->misses &&
            -difference < 1e-3 * part->misses)
            return &row->shares;
    }
    return NULL;
}

static int add_target(struct analysis_annotation *a, const struct target *target)
{
    int code = 0;
    for (size_t i = 0; i < a->insns.n && code == 0; i++)
        code = add_row(a, target, &a->insns.rows[i]);
    return code;
}

/* Whether a row before has a function of the same name and file: then its target had this one, too. */
static int is_added(const struct analysis_hotspots *functions, size_t row)
{
    const struct analysis_hotspot *rows = functions->rows;
    for (size_t i = 0; i < row && rows[row].source; i++)
        if (rows[i].source && rows[i].image == rows[row].image &&
            strcmp(rows[i].outer->function, rows[row].outer->function) == 0)
            return 1;
    return 0;
}

static int add_worst(struct analysis_annotation *a)
{
    unsigned n = 0;
    int code = 0;
    for (size_t i = 0; i < a->functions.n && code == 0 && n < MOST_FUNCTIONS; i++) {
        const struct analysis_hotspot *row = &a->functions.rows[i];
        if (row->shares.misses_share < LEAST_SHARE)
            break;
        if (row->rest || !row->outer || !*row->outer->function || is_added(&a->functions, i))
            continue;
        const struct target target = {.function = row->outer->function,
                                      .exact = 1,
                                      .image = analysis_image_of(&a->insns, row->image->id)};
        code = add_target(a, &target);
        n++;
    }
    return code;
}

static int add_asked(struct analysis_annotation *a, const char *name, const char *what, struct error *err)
{
    struct target target = {.function = what};
    if (!is_found(&a->insns, &target))
        target = (struct target){.file = what};
    if (!is_found(&a->insns, &target))
        return error_set(err, -ENOENT,
                         "the profile '%s' has no references of a function or source file '%s'; 'cachegram "
                         "hotspots' lists functions",
                         name, what);
    return add_target(a, &target);
}

int analysis_annotate(struct profile *p, const char *name, const struct analysis_annotate_question *question,
                      struct analysis_annotation *a, struct error *err)
{
    struct analysis_hotspots_question q = {.size_bytes = question->size_bytes,
                                           .by = ANALYSIS_BY_FUNCTION,
                                           .separate = question->separate,
                                           .tid = question->tid,
                                           .phase = question->phase,
                                           .comm = question->comm};
    struct error ignored;
    *a = (struct analysis_annotation){0};
    int code = analysis_hotspots(p, name, &q, &a->functions, err);
    q.by = ANALYSIS_BY_INSN;
    if (code == 0 && (code = analysis_hotspots(p, name, &q, &a->insns, err)) == 0)
        analysis_hotspots_widen(p, &q, &a->insns);
    a->with_stall = question->levels != NULL;
    if (code == 0 && a->with_stall)
        code = analysis_hotspots_stall(p, &q, question->levels, question->nlevels, &a->insns, err);
    if (code == 0 && question->what)
        code = add_asked(a, name, question->what, err);
    else if (code == 0 && (code = add_worst(a)) == 0 && a->n == 0)
        code = error_set(err, -ENOENT, "the profile '%s' has no function with %.0f%% of the misses: name one",
                         name, 100 * LEAST_SHARE);
    for (size_t i = 0; i < a->n && code == 0; i++) {
        qsort(a->parts[i].insns, a->parts[i].ninsns, sizeof *a->parts[i].insns, compare_insn);
        qsort(a->parts[i].lines, a->parts[i].nlines, sizeof *a->parts[i].lines, compare_lines);
        a->parts[i].whole = find_whole(a, &a->parts[i]);
    }
    q.objects = 1;
    if (code == 0 && analysis_hotspots(p, name, &q, &a->objects, &ignored) == 0) /* it may have none */
        code = find_objects(a);
    if (code == -ENOMEM)
        error_set(err, code, "out of memory for the lines of '%s'", name);
    if (code == 0)
        qsort(a->parts, a->n, sizeof *a->parts, compare_parts);
    else
        analysis_annotation_clear(a);
    return code;
}

void analysis_annotation_clear(struct analysis_annotation *a)
{
    for (size_t i = 0; i < a->n; i++) {
        free(a->parts[i].lines);
        free(a->parts[i].insns);
    }
    free(a->parts);
    a->parts = NULL;
    a->n = 0;
    analysis_hotspots_clear(&a->insns);
    analysis_hotspots_clear(&a->objects);
    analysis_hotspots_clear(&a->functions);
}
