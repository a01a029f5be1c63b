/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heatmap.c - the miss ratio over time and cache size, drawn in the terminal.
 *
 * Misses matter from a tenth of a percent to all references, so colours follow the logarithm of the miss
 * ratio. Each row is a cache size, the largest on top, each column a part of the run with as many references
 * as any other, or as long as any other. The ribbon above says which phase made most of them, or used most of
 * the CPU time: 1 to 9, then a to z, A to Z, and ? for more.
 */
#include "report/timeline.h"

#include <math.h>
#include <string.h>

#include "base/sizes.h"

#define MARGIN 8u
#define MAX_COLUMNS 120u
#define LEVELS 5u
#define LEGEND_COLUMNS 72u /* of the colours, in words */

/* Lower edges of the shades above the first. */
static const double edges[LEVELS - 1] = {0.001, 0.01, 0.05, 0.2};
static const char *const edge_names[LEVELS] = {"below 0.1%", "0.1%", "1%", "5%", "20%"};
static const char *const unicode[LEVELS] = {" ", "░", "▒", "▓", "█"};
static const char *const ascii[LEVELS] = {" ", ".", "+", "%", "@"};

/* From dark blue through green and yellow to red and white. */
static const unsigned char colors[] = {17,  18,  19,  25,  31,  37,  36,  35,  71,  107,
                                       143, 179, 178, 214, 208, 202, 196, 203, 217, 231};
#define COLORS (sizeof colors / sizeof colors[0])
#define COLOR_LEAST 0.0005 /* miss ratio of the first color; that of the last one is 1 */
/* Of phases, on which black is readable. */
static const unsigned char ribbon[] = {75, 114, 179, 176, 209, 80, 186, 147, 174, 108, 216, 152};

#define IDLE '-' /* in the ribbon */

/* Columns of equal work have work, by what was measured or not. */
static int is_idle(const struct analysis_grid *grid, size_t column)
{
    return grid->axis == ANALYSIS_AXIS_TIME && grid->idle[column];
}

static unsigned level_of(double ratio)
{
    unsigned level = 0;
    while (level < LEVELS - 1 && ratio >= edges[level])
        level++;
    return level;
}

static unsigned color_of(double ratio)
{
    double x = ratio > COLOR_LEAST ? log(ratio / COLOR_LEAST) / log(1 / COLOR_LEAST) : 0;
    return colors[(size_t)fmin(COLORS - 1, x * COLORS)];
}

static char letter_of(uint32_t phase, int idle)
{
    return idle          ? IDLE
           : phase == 0  ? ' '
           : phase <= 9  ? (char)('0' + phase)
           : phase <= 35 ? (char)('a' + phase - 10)
           : phase <= 61 ? (char)('A' + phase - 36)
                         : '?';
}

static void put_ribbon(FILE *out, const struct analysis_grid *grid, const struct report_style *style)
{
    fprintf(out, "%*s", (int)MARGIN, "phase  ");
    for (size_t c = 0; c < grid->columns; c++) {
        uint32_t phase = is_idle(grid, c) ? 0 : grid->phase[c];
        if (style->color && phase != 0)
            fprintf(out, "\033[38;5;16;48;5;%um", ribbon[phase % sizeof ribbon]);
        else if (style->color)
            fputs("\033[0m", out);
        putc(letter_of(phase, is_idle(grid, c)), out);
    }
    fputs(style->color ? "\033[0m\n" : "\n", out);
}

static void put_row(FILE *out, const struct analysis_grid *grid, size_t size, const char *const *shades,
                    const struct report_style *style)
{
    for (size_t c = 0; c < grid->columns; c++) {
        double ratio = grid->miss_ratio[c * grid->nsizes + size];
        if (is_idle(grid, c))
            fputs(style->color ? "\033[0m " : " ", out);
        else if (isnan(ratio))
            fputs(style->color ? "\033[0m?" : "?", out);
        else if (style->color)
            fprintf(out, "\033[48;5;%um ", color_of(ratio));
        else
            fputs(shades[level_of(ratio)], out);
    }
    fputs(style->color ? "\033[0m\n" : "\n", out);
}

/* Whether something is drawn as not known. */
static int has_unknown(const struct analysis_grid *grid)
{
    for (size_t i = 0; i < grid->columns * grid->nsizes; i++)
        if (isnan(grid->miss_ratio[i]) && !is_idle(grid, i / grid->nsizes))
            return 1;
    return 0;
}

static int has_idle(const struct analysis_grid *grid)
{
    for (size_t c = 0; c < grid->columns; c++)
        if (is_idle(grid, c))
            return 1;
    return 0;
}

static void put_legend(FILE *out, const struct analysis_grid *grid, const char *const *shades,
                       const struct report_style *style)
{
    if (has_unknown(grid))
        fprintf(out, "%*s?: not enough samples\n", (int)MARGIN, "");
    if (has_idle(grid))
        fprintf(out, "%*s%c: idle, or not seen\n", (int)MARGIN, "", IDLE);
    fprintf(out, "%*s", (int)MARGIN, "");
    if (style->color) {
        fputs(style->width < LEGEND_COLUMNS ? "0.05% " : "0.05% or less ", out);
        for (size_t i = 0; i < COLORS; i++)
            fprintf(out, "\033[48;5;%um ", colors[i]);
        fputs(style->width < LEGEND_COLUMNS ? "\033[0m 100%\n" : "\033[0m 100% of the references miss\n",
              out);
        return;
    }
    unsigned column = MARGIN + (unsigned)fprintf(out, "misses: '%s' %s", shades[0], edge_names[0]);
    for (unsigned level = 1; level < LEVELS; level++) {
        unsigned length = (unsigned)strlen(", x from ") + (unsigned)strlen(edge_names[level]);
        column += length;
        if (column + 1 > style->width) { /* a narrow terminal */
            column = MARGIN + length;
            fprintf(out, ",\n%*s%s from %s", (int)MARGIN, "", shades[level], edge_names[level]);
        } else {
            fprintf(out, ", %s from %s", shades[level], edge_names[level]);
        }
    }
    putc('\n', out);
}

static void put_axis(FILE *out, const struct analysis_grid *grid, int dashes_in_utf8)
{
    char end[80], count[REPORT_COUNT];
    size_t exact = 0; /* columns; the work of others is estimated */
    while (exact < grid->columns && grid->exact[exact] == 1)
        exact++;
    fprintf(out, "%*s", (int)MARGIN, "");
    for (size_t c = 0; c < grid->columns; c++)
        fputs(c % 10 == 0 ? (dashes_in_utf8 ? "┴" : "+") : (dashes_in_utf8 ? "─" : "-"), out);
    const char *about = exact < grid->columns ? "about " : "", *refs = report_count(grid->refs, count);
    double seconds = grid->columns > 0 ? grid->end_ns[grid->columns - 1] * 1e-9 : 0;
    if (grid->axis == ANALYSIS_AXIS_TIME)
        snprintf(end, sizeof end, "%.2f s, %s%s references", seconds, about, refs);
    else
        snprintf(end, sizeof end, "%s%s references, %.2f s", about, refs, seconds);
    fprintf(out, "\n%*s%-4s%*s\n", (int)MARGIN, "", "0",
            grid->columns > strlen(end) + 4 ? (int)grid->columns - 4 : 0, end);
}

size_t report_heatmap_columns(const struct report_style *style)
{
    size_t columns = style->width > MARGIN + 1 ? style->width - MARGIN - 1 : 1;
    return columns < MAX_COLUMNS ? columns : MAX_COLUMNS;
}

void report_heatmap(FILE *out, const struct analysis_timeline *t, const struct analysis_grid *grid,
                    const struct report_style *style)
{
    int utf8 = report_is_utf8();
    const char *const *shades = utf8 ? unicode : ascii;
    put_ribbon(out, grid, style);
    for (size_t k = t->nsizes; k-- > 0;) {
        char text[SIZE_TEXT];
        fprintf(out, "%*s  ", (int)MARGIN - 2, size_format((uint64_t)t->sizes[k], text));
        put_row(out, grid, k, shades, style);
    }
    put_axis(out, grid, utf8);
    put_legend(out, grid, shades, style);
}
