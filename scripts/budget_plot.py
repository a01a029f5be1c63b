# SPDX-License-Identifier: Apache-2.0
"""Error against budget as a small SVG, both logarithmic, for bench-accuracy.py."""
import math

from papers_plot import text

WIDTH, HEIGHT = 640, 360
LEFT, RIGHT, TOP, BOTTOM = 60, 20, 40, 60
BUDGETS, ERRORS = (0.4, 25.0), (0.05, 5.0)
COLORS = ("#1f6fb4", "#c0392b")


def between(value, low, high):
    return (math.log(value) - math.log(low)) / (math.log(high) - math.log(low))


def across(budget):
    return LEFT + (WIDTH - LEFT - RIGHT) * between(budget, *BUDGETS)


def up(error):
    error = min(max(error, ERRORS[0]), ERRORS[1])
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * between(error, *ERRORS)


def draw(series):
    """series: {label: [(budget in percent, mean error in points)]}, two at most. The SVG's text."""
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
           f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
           text(WIDTH / 2, 22, "mean error of the miss ratio, percentage points"),
           text(WIDTH / 2, HEIGHT - 14, "budget (--overhead), percent of CPU time")]
    for error in (0.05, 0.1, 0.2, 0.5, 1, 2, 5):
        out += [f'<path d="M{LEFT} {up(error):.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>',
                text(LEFT - 8, up(error) + 4, f"{error:g}", "end")]
    for budget in (0.5, 1, 2, 5, 10, 20):
        out += [f'<path d="M{across(budget):.1f} {TOP}V{HEIGHT - BOTTOM}" stroke="#ddd"/>',
                text(across(budget), HEIGHT - BOTTOM + 18, f"{budget:g}%")]
    for color, (label, points) in zip(COLORS, series.items()):
        points = sorted((b, e) for b, e in points if e)
        line = "L".join(f"{across(b):.1f} {up(e):.1f}" for b, e in points)
        out.append(f'<path d="M{line}" stroke="{color}" stroke-width="2" fill="none"/>')
        out += [f'<circle cx="{across(b):.1f}" cy="{up(e):.1f}" r="3" fill="{color}"/>' for b, e in points]
        out.append(f'<g fill="{color}">{text(across(points[0][0]) + 8, up(points[0][1]) - 8, label, "start")}</g>')
    return "\n".join(out) + "\n</svg>\n"
