/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plot.c - draws a miss-ratio curve with Unicode characters, or ASCII where the locale lacks these.
 *
 * The curve is drawn with braille characters, each a grid of 2 x 4 dots, so that it is smooth in few rows;
 * the interval around it in light shade. In ASCII a cell shows how high its dots are. Where there is no
 * estimate, only the interval is drawn. The horizontal axis is the logarithm of the size; between two sizes
 * the line is straight.
 */
#include "report/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sizes.h"

#define MARGIN 7u        /* "100 % ┤" */
#define MAX_COLUMNS 120u /* a wider drawing is not easier to read */
#define LABEL_COLUMNS 8u /* for a size under the axis */

/* Characters of the drawing. */
struct glyphs {
    const char *mark, *band, *corner, *tick, *dash, *label, *side, *level;
};
static const struct glyphs unicode = {"●", "░", "└", "┬", "─", "┤", "│", "▲"},
                           ascii = {"o", ":", "+", "+", "-", "+", "|", "^"};

static const struct glyphs *glyphs(void)
{
    return report_is_utf8() ? &unicode : &ascii;
}

struct canvas {
    unsigned columns, rows;
    double top; /* miss ratio at the upper edge */
    double first,
        octaves;         /* log2 of the size at the left edge, and the number of octaves to the right edge */
    unsigned char *dots; /* columns x rows braille patterns */
    unsigned char *band; /* columns x rows */
    unsigned char *mark; /* columns x rows */
};

enum field { CENTRE, LOW, HIGH };

static double field_of(const struct curve_point *point, enum field field)
{
    return field == CENTRE ? point->miss_ratio : field == LOW ? point->low : point->high;
}

/* Value at x (log2 of a size) by linear interpolation; NaN where a neighbour is. */
static double value_at(const struct curve_point *points, size_t n, double x, enum field field)
{
    size_t i = 1;
    while (i + 1 < n && log2(points[i].size_bytes) < x)
        i++;
    double x0 = log2(points[i - 1].size_bytes), x1 = log2(points[i].size_bytes);
    double y0 = field_of(&points[i - 1], field), y1 = field_of(&points[i], field);
    double t = x1 > x0 ? (x - x0) / (x1 - x0) : 0;
    /* Exactly at a point its neighbour has no influence, even if it is NaN. */
    return t <= 0 ? y0 : t >= 1 ? y1 : y0 + t * (y1 - y0);
}

/* The next round ratio that is at least value. */
static double nice_top(double value)
{
    static const double tops[] = {1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.04, 0.06,
                                  0.08, 0.1,  0.2,  0.3,  0.4,  0.5,  0.6,  0.7,  0.8,  0.9};
    for (size_t i = 0; i < sizeof tops / sizeof tops[0]; i++)
        if (value <= tops[i])
            return tops[i];
    return 1;
}

static void draw_curve(struct canvas *c, const struct curve_point *points, size_t n)
{
    static const unsigned char dot[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    long lowest = (long)c->rows * 4 - 1, before = -1;
    for (unsigned x = 0; x < c->columns * 2; x++) {
        double at = c->first + c->octaves * x / (c->columns * 2 - 1);
        double value = value_at(points, n, at, CENTRE);
        if (isnan(value)) {
            before = -1;
            continue;
        }
        long y = lround((1 - value / c->top) * (double)lowest);
        y = y < 0 ? 0 : y > lowest ? lowest : y;
        /* Fill a steep step, so that the line has no gaps. */
        long from = y;
        if (before >= 0 && before < y)
            from = before + 1;
        else if (before >= 0 && before > y)
            from = before - 1;
        for (long row = from < y ? from : y; row <= (from < y ? y : from); row++)
            c->dots[(size_t)(row / 4) * c->columns + x / 2] |= dot[row % 4][x % 2];
        before = y;
    }
}

static void draw_band(struct canvas *c, const struct curve_point *points, size_t n)
{
    for (unsigned x = 0; x < c->columns; x++) {
        double at = c->first + c->octaves * x / (c->columns - 1);
        double low = value_at(points, n, at, LOW), high = value_at(points, n, at, HIGH);
        if (!(high > low))
            continue;
        for (unsigned row = 0; row < c->rows; row++) {
            double upper = c->top * (1 - (double)row / c->rows), lower = c->top * (1 - (row + 1.0) / c->rows);
            double overlap = fmin(high, upper) - fmax(low, lower);
            /* A quarter of a cell is one dot: less would not be visible in the curve either. */
            c->band[(size_t)row * c->columns + x] = overlap >= (upper - lower) / 4;
        }
    }
}

static void draw_marks(struct canvas *c, const struct curve_point *marks, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double x = (log2(marks[i].size_bytes) - c->first) / c->octaves, y = 1 - marks[i].miss_ratio / c->top;
        if (!(x >= 0 && x <= 1 && y >= 0 && y <= 1))
            continue;
        size_t row = (size_t)fmin(y * c->rows, c->rows - 1);
        c->mark[row * c->columns + (size_t)lround(x * (c->columns - 1))] = 1;
    }
}

static void put_dots(FILE *out, unsigned char dots)
{
    static const unsigned char rows[4] = {0x09, 0x12, 0x24, 0xc0};
    if (!report_is_utf8()) {
        unsigned first = 0, last = 3;
        while (first < 3 && !(dots & rows[first]))
            first++;
        while (last > 0 && !(dots & rows[last]))
            last--;
        putc(last > first + 1 ? '|' : first == 0 ? '\'' : last == 3 ? '_' : '-', out);
        return;
    }
    /* U+2800 + dots */
    putc(0xe2, out);
    putc(0xa0 | dots >> 6, out);
    putc(0x80 | (dots & 0x3f), out);
}

static void put_row(FILE *out, const struct canvas *c, unsigned row, int color)
{
    static const char *const colors[] = {"\033[0m", "\033[0;1;36m", "\033[0;2m", "\033[0;1;33m"};
    const unsigned char *dots = c->dots + (size_t)row * c->columns,
                        *band = c->band + (size_t)row * c->columns,
                        *mark = c->mark + (size_t)row * c->columns;
    unsigned end = c->columns;
    while (end > 0 && !dots[end - 1] && !band[end - 1] && !mark[end - 1])
        end--;
    int now = 0, want;
    for (unsigned x = 0; x < end; x++) {
        want = mark[x] ? 3 : dots[x] ? 1 : band[x] ? 2 : 0;
        if (color && want != now)
            fputs(colors[want], out);
        now = want;
        if (want == 1)
            put_dots(out, dots[x]);
        else
            fputs(want == 3 ? glyphs()->mark : want == 2 ? glyphs()->band : " ", out);
    }
    if (color && now)
        fputs("\033[0m", out);
    putc('\n', out);
}

/* The axis: a tick and a size at every power of two for which there is space. */
static void put_axis(FILE *out, const struct canvas *c)
{
    char labels[MAX_COLUMNS + SIZE_TEXT + 1];
    unsigned char tick[MAX_COLUMNS] = {0};
    memset(labels, ' ', sizeof labels);
    double columns_an_octave = (c->columns - 1) / c->octaves;
    int step = 1;
    while (step * columns_an_octave < LABEL_COLUMNS && step < 64)
        step *= 2;
    size_t used = 0;
    for (int octave = (int)ceil(c->first - 1e-9); octave <= c->first + c->octaves + 1e-9; octave++) {
        if (octave % step != 0 || octave < 0)
            continue;
        size_t x = (size_t)lround((octave - c->first) * columns_an_octave);
        char text[SIZE_TEXT];
        size_t length = strlen(size_format(UINT64_C(1) << octave, text));
        tick[x] = 1;
        /* Centred below its tick, but inside the drawing. */
        size_t start = x < length / 2 ? 0 : x - length / 2;
        if (start + length > c->columns)
            start = c->columns - length;
        if (used && start <= used)
            continue;
        memcpy(labels + start, text, length);
        used = start + length;
    }
    fprintf(out, "      %s", glyphs()->corner);
    for (unsigned x = 0; x < c->columns; x++)
        fputs(tick[x] ? glyphs()->tick : glyphs()->dash, out);
    labels[used] = 0;
    fprintf(out, "\n%*s%s\n", (int)MARGIN, "", labels);
}

/* Below the axis, where the caches of a machine are. */
static void put_levels(FILE *out, const struct canvas *c, const double *levels, size_t n)
{
    char line[MAX_COLUMNS + 1];
    size_t used = 0, written = 0;
    for (size_t i = 0; i < n; i++) {
        double x = (log2(levels[i]) - c->first) / c->octaves;
        char text[16];
        size_t length = (size_t)snprintf(text, sizeof text, "^L%zu", i + 1);
        if (!(x >= 0 && x <= 1))
            continue;
        size_t at = (size_t)lround(x * (c->columns - 1));
        if (at < used || at + length > c->columns)
            continue;
        memset(line + used, ' ', at - used);
        memcpy(line + at, text, length);
        used = at + length;
        written++;
    }
    line[used] = '\0';
    fprintf(out, written ? "%*s" : "", (int)MARGIN, "");
    for (const char *s = line; *s; s++)
        if (*s == '^')
            fputs(glyphs()->level, out);
        else
            putc(*s, out);
    fputs(written ? "\n" : "", out);
}

void report_plot(FILE *out, const struct curve_point *points, size_t n, unsigned rows,
                 const struct report_style *style)
{
    const struct report_plot_marks none = {0};
    report_plot_over(out, points, n, &none, rows, style);
}

void report_plot_over(FILE *out, const struct curve_point *points, size_t n,
                      const struct report_plot_marks *over, unsigned rows, const struct report_style *style)
{
    const struct curve_point *marks = over->points;
    size_t nmarks = over->npoints;
    double highest = 0;
    for (size_t i = 0; i < nmarks; i++)
        highest = fmax(highest, marks[i].miss_ratio);
    for (size_t i = 0; i < n; i++) {
        highest = fmax(highest, points[i].miss_ratio);
        highest = fmax(highest, points[i].high);
    }
    if (n < 2 || rows < 2)
        return;
    struct canvas c = {.rows = rows, .top = nice_top(highest)};
    c.columns = style->width - MARGIN - 1;
    if (c.columns > MAX_COLUMNS)
        c.columns = MAX_COLUMNS;
    c.first = log2(points[0].size_bytes);
    c.octaves = log2(points[n - 1].size_bytes) - c.first;
    c.dots = calloc(c.columns, rows);
    c.band = calloc(c.columns, rows);
    c.mark = calloc(c.columns, rows);
    if (c.dots && c.band && c.mark && c.octaves > 0) {
        draw_band(&c, points, n);
        draw_curve(&c, points, n);
        draw_marks(&c, marks, nmarks);
        for (unsigned row = 0; row < rows; row++) {
            /* Labels at the top, the middle and the lower edge. */
            if (row == 0 || row == rows / 2 || row == rows - 1) {
                double value = row == 0          ? c.top
                               : row == rows - 1 ? 0
                                                 : c.top * (1 - (double)row / (rows - 1));
                fprintf(out, "%4.*f%% %s", value > 0 && value < 0.02 ? (value < 0.002 ? 3 : 1) : 0,
                        value * 100, glyphs()->label);
            } else {
                fprintf(out, "      %s", glyphs()->side);
            }
            put_row(out, &c, row, style->color);
        }
        put_axis(out, &c);
        put_levels(out, &c, over->levels, over->nlevels);
    }
    free(c.dots);
    free(c.band);
    free(c.mark);
}
