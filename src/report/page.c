/* SPDX-License-Identifier: Apache-2.0 */
#include "report/page.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/calls.h"

/* web/page.html (page-template.S). */
extern const char report_page_template[], report_page_template_end[];

/* Calls of a row: those with at least that share of its misses, or twice that, and so on, while there are too
 * many; up to so many on one path. */
#define LEAST_CALL 0.02
#define MOST_CALLS 30u
#define MOST_DEPTH 12u
#define CALL_ROOM 1024

#define DATA_MARKER "@DATA@"

void report_page_machines(FILE *json, const struct report_page_machine *machines, size_t n)
{
    putc('[', json);
    for (size_t i = 0; i < n; i++) {
        const struct report_page_machine *m = &machines[i];
        fprintf(json, "%s{\"recorded\": %s", i ? ", " : "", m->recorded ? "true" : "false");
        report_json_member_string(json, ", ", "name", m->name);
        report_json_member_string(json, ", ", "cpu", m->cpu);
        fputs(", \"levels\": [", json);
        for (size_t k = 0; k < m->nlevels; k++)
            fprintf(json, "%s%" PRIu64, k ? ", " : "", m->level_bytes[k]);
        fputs("]}", json);
    }
    putc(']', json);
}

/* Calls each for every line of text that is not empty, without its end; *first is 0 from the second one on.
 */
static void each_line(char *text, void (*each)(FILE *json, char *line), FILE *json)
{
    const char *separator = "";
    char *line;
    putc('[', json);
    while ((line = strsep(&text, "\n")) != NULL) {
        if (!*line)
            continue;
        fputs(separator, json);
        each(json, line);
        separator = ", ";
    }
    putc(']', json);
}

static void put_line(FILE *json, char *line)
{
    report_json_string(json, line);
}

static void put_fact(FILE *json, char *line)
{
    char *word = line + strspn(line, " "),
         *text = strlen(word) > REPORT_FACT_WORD ? word + REPORT_FACT_WORD : NULL;
    size_t length = strcspn(word, " ");
    if (text) {
        /* A word may be two, such as "at first". */
        length = REPORT_FACT_WORD;
        while (length > 0 && word[length - 1] == ' ')
            length--;
    }
    word[length] = '\0';
    report_json_member_string(json, "{", "key", word);
    report_json_member_string(json, ", ", "text", text ? text : "");
    putc('}', json);
}

/* A memory stream, and its text afterwards. */
struct memory {
    FILE *f;
    char *text;
    size_t size;
};

static int memory_open(struct memory *m)
{
    *m = (struct memory){0};
    m->f = open_memstream(&m->text, &m->size);
    return m->f ? 0 : -ENOMEM;
}

static int memory_lines(struct memory *m, void (*each)(FILE *json, char *line), FILE *json)
{
    int code = fclose(m->f) == 0 ? 0 : -ENOMEM;
    if (code == 0)
        each_line(m->text, each, json);
    free(m->text);
    return code;
}

int report_page_facts(FILE *json, const struct analysis_summary *s, const struct analysis_curve *curve)
{
    struct memory m;
    if (memory_open(&m) < 0)
        return -ENOMEM;
    report_facts(m.f, s, curve);
    return memory_lines(&m, put_fact, json);
}

int report_page_findings(FILE *json, const struct analysis_answer *answer,
                         const struct report_page_machine *machine, const struct analysis_findings *findings)
{
    struct memory m;
    if (memory_open(&m) < 0)
        return -ENOMEM;
    if (answer)
        report_answer_text(m.f, answer,
                           machine->recorded ? "L1 of the machine of the recording"
                                             : "L1 of the machine that made this page");
    report_findings_text(m.f, findings);
    return memory_lines(&m, put_line, json);
}

int report_page_difference(FILE *json, const struct report_curves *curves,
                           const struct report_difference_programs *programs)
{
    struct memory m;
    if (memory_open(&m) < 0)
        return -ENOMEM;
    report_difference_notes(m.f, programs);
    report_difference_words(m.f, curves);
    return memory_lines(&m, put_line, json);
}

int report_page_notes(FILE *json, const struct analysis_curve *curve)
{
    struct memory m;
    if (memory_open(&m) < 0)
        return -ENOMEM;
    report_curve_notes(m.f, curve, "", 1);
    return memory_lines(&m, put_line, json);
}

void report_page_measured(FILE *json, const struct analysis_pirate *pirate)
{
    size_t n = 0;
    struct curve_point *marks = analysis_pirate_marks(pirate, &n);
    putc('[', json);
    for (size_t i = 0; i < n; i++) {
        fprintf(json, "%s{\"size_bytes\": %.0f", i ? ", " : "", marks[i].size_bytes);
        report_json_member_number(json, ", ", "miss_ratio", marks[i].miss_ratio);
        putc('}', json);
    }
    putc(']', json);
    free(marks);
}

static void put_short(FILE *json, double value, int digits)
{
    if (isnan(value))
        fputs("null", json);
    else
        fprintf(json, "%.*g", digits, value);
}

void report_page_grid(FILE *json, const struct analysis_grid *grid, const double *sizes)
{
    fputs("{\"sizes\": [", json);
    for (size_t k = 0; k < grid->nsizes; k++)
        fprintf(json, "%s%.0f", k ? ", " : "", sizes[k]);
    fputs("], \"columns\": [", json);
    for (size_t i = 0; i < grid->columns; i++) {
        fprintf(json, "%s\n{\"phase\": %" PRIu32 ", \"end_ns\": %.0f, \"miss_ratio\": [", i ? "," : "",
                grid->phase[i], grid->end_ns[i]);
        for (size_t k = 0; k < grid->nsizes; k++) {
            double ratio = grid->miss_ratio[i * grid->nsizes + k];
            fputs(k ? "," : "", json);
            put_short(json, ratio, 6); /* for a colour, and a percentage with three decimals */
        }
        fputs("]}", json);
    }
    fputs("]}", json);
}

/* Closes the stream. The position of its text in the list; SIZE_MAX: memory is short. */
static size_t add_text(struct report_page_list *list, struct memory *m)
{
    if (fclose(m->f) != 0) {
        free(m->text);
        return SIZE_MAX;
    }
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->list[i], m->text) == 0) {
            free(m->text);
            return i;
        }
    char **grown = reallocarray(list->list, list->n + 1, sizeof *grown);
    if (!grown) {
        free(m->text);
        return SIZE_MAX;
    }
    list->list = grown;
    list->list[list->n] = m->text;
    return list->n++;
}

/* The position of a row's name; SIZE_MAX: memory is short. */
static size_t name_of(const struct analysis_hotspots *h, const struct analysis_hotspot *row,
                      struct report_page_names *names)
{
    struct memory m;
    if (memory_open(&m) < 0)
        return SIZE_MAX;
    putc('{', m.f);
    report_hotspot_json_name(m.f, h, row);
    putc('}', m.f);
    return add_text(&names->rows, &m);
}

static size_t call_of(const struct analysis_hotspots *h, const struct analysis_call *call,
                      struct report_page_names *names)
{
    char text[CALL_ROOM];
    struct memory m;
    if (memory_open(&m) < 0)
        return SIZE_MAX;
    report_call_text(h, call, text, sizeof text);
    report_json_string(m.f, text);
    return add_text(&names->calls, &m);
}

/* The row's calls up to main that are shown, in preorder. Returns their number, at most MOST_CALLS + 1. */
static size_t find_calls(const struct analysis_hotspots *h, const struct analysis_hotspot *row, double least,
                         const struct analysis_call *found[MOST_CALLS])
{
    unsigned below = MOST_DEPTH; /* what is deeper is left out */
    size_t n = 0;
    for (size_t i = row->call; i < row->call + row->ncalls && n <= MOST_CALLS; i++) {
        const struct analysis_call *call = &h->calls[i];
        if (call->depth > below)
            continue;
        int is_shown = call->share >= least && call->depth < MOST_DEPTH;
        below = is_shown && !report_call_is_main(h, call) ? MOST_DEPTH : call->depth;
        if (is_shown && n < MOST_CALLS)
            found[n] = call;
        n += (size_t)is_shown;
    }
    return n;
}

/* The position of a row's tree of calls; SIZE_MAX: memory is short. */
static size_t tree_of(const struct analysis_hotspots *h, const struct analysis_hotspot *row,
                      struct report_page_names *names)
{
    const struct analysis_call *found[MOST_CALLS];
    double least = LEAST_CALL;
    struct memory m;
    size_t n;
    while ((n = find_calls(h, row, least, found)) > MOST_CALLS)
        least *= 2;
    if (memory_open(&m) < 0)
        return SIZE_MAX;
    putc('[', m.f);
    for (size_t i = 0; i < n; i++) {
        size_t call = call_of(h, found[i], names);
        if (call == SIZE_MAX) {
            fclose(m.f);
            free(m.text);
            return SIZE_MAX;
        }
        fprintf(m.f, "%s%zu,%u,%.0f", i ? "," : "", call, found[i]->depth, 1000 * found[i]->share);
    }
    putc(']', m.f);
    return add_text(&names->trees, &m);
}

int report_page_rows(FILE *json, const struct analysis_hotspots *h, size_t left_out,
                     struct report_page_names *names)
{
    fprintf(json, "{\"mode\": \"%s\"%s", h->full ? "full" : "burst",
            h->separate ? ", \"threads\": \"separate\"" : "");
    report_json_member_number(json, ", ", "miss_ratio", h->total.miss_ratio);
    fprintf(json, ", \"rows_left_out\": %zu, \"rows\": [", left_out);
    for (size_t i = 0; i < h->n; i++) {
        const struct shares_result *s = &h->rows[i].shares;
        const double values[] = {s->misses_share, s->enough ? s->share_low : NAN,
                                 s->enough ? s->share_high : NAN, s->miss_ratio, s->references_share};
        size_t name = name_of(h, &h->rows[i], names);
        if (name == SIZE_MAX)
            return -ENOMEM;
        fprintf(json, "%s[%zu", i ? "," : "", name);
        for (size_t k = 0; k < sizeof values / sizeof values[0]; k++) {
            putc(',', json);
            put_short(json, values[k], 9); /* its percentage is rounded as that of the whole number */
        }
        if (h->rows[i].ncalls > 0 && s->misses_share >= REPORT_CALLS_LEAST_ROW) {
            size_t tree = tree_of(h, &h->rows[i], names);
            if (tree == SIZE_MAX)
                return -ENOMEM;
            fprintf(json, ",%zu", tree);
        }
        putc(']', json);
    }
    fputs("]}", json);
    return 0;
}

static void put_list(FILE *json, struct report_page_list *list)
{
    putc('[', json);
    for (size_t i = 0; i < list->n; i++) {
        fprintf(json, "%s%s", i ? ",\n" : "", list->list[i]);
        free(list->list[i]);
    }
    putc(']', json);
    free(list->list);
    *list = (struct report_page_list){0};
}

void report_page_names(FILE *json, struct report_page_names *names)
{
    fputs("{\"rows\": ", json);
    put_list(json, &names->rows);
    fputs(",\n\"calls\": ", json);
    put_list(json, &names->calls);
    fputs(",\n\"trees\": ", json);
    put_list(json, &names->trees);
    fprintf(json, ",\n\"least_row\": %g, \"least_call\": %g, \"most_calls\": %u, \"most_depth\": %u}",
            REPORT_CALLS_LEAST_ROW, LEAST_CALL, MOST_CALLS, MOST_DEPTH);
}

void report_page_source(FILE *json, const char *name, const struct source *source, uint32_t first,
                        uint32_t last, int changed)
{
    report_json_member_string(json, "{", "file", name);
    fprintf(json, ", \"first\": %" PRIu32 ", \"changed\": %s, \"lines\": [", first,
            changed ? "true" : "false");
    for (uint32_t line = first; line <= last && line <= source->nlines; line++) {
        fputs(line > first ? ", " : "", json);
        report_json_string(json, source->lines[line - 1]);
    }
    fputs("]}", json);
}

static void put_escaped(FILE *out, const char *json)
{
    while (*json) {
        size_t plain = strcspn(json, "<>&\xe2");
        fwrite(json, 1, plain, out);
        json += plain;
        if (!*json)
            break;
        if (*json != '\xe2') {
            fprintf(out, "\\u%04x", (unsigned)*json++);
        } else if (json[1] == '\x80' && (json[2] == '\xa8' || json[2] == '\xa9')) {
            fputs(json[2] == '\xa8' ? "\\u2028" : "\\u2029", out);
            json += 3;
        } else {
            putc(*json++, out);
        }
    }
}

void report_page(FILE *out, const char *json)
{
    size_t size = (size_t)(report_page_template_end - report_page_template);
    const char *marker = memmem(report_page_template, size, DATA_MARKER, strlen(DATA_MARKER));
    assert(marker); /* web/build.mjs checks that there is one */
    size_t before = (size_t)(marker - report_page_template), after = before + strlen(DATA_MARKER);
    fwrite(report_page_template, 1, before, out);
    put_escaped(out, json);
    fwrite(report_page_template + after, 1, size - after, out);
}
