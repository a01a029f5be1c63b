# SPDX-License-Identifier: Apache-2.0
"""Cumulative distributions of errors as a small SVG, for bench-papers.py."""
WIDTH, HEIGHT = 720, 400
LEFT, RIGHT, TOP, BOTTOM = 60, 20, 40, 90
LARGEST = 1.0  # percentage points at the right end
COLORS = {"scatter": "#7a7a7a", "exact": "#c0392b", "bursts": "#1f6fb4"}
DASHES = {"s1": "", "s2": ' stroke-dasharray="6 4"'}
STEPS = 120


def across(error):
    return LEFT + (WIDTH - LEFT - RIGHT) * min(error, LARGEST) / LARGEST


def up(share):
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share


def text(x, y, body, anchor="middle"):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{body}</text>'


def axes():
    out = []
    for i in range(6):
        share, error = i / 5, LARGEST * i / 5
        grid = f"M{LEFT} {up(share):.1f}H{WIDTH - RIGHT}M{across(error):.1f} {TOP}V{up(0):.1f}"
        out += [f'<path d="{grid}" stroke="#ddd"/>',
                text(LEFT - 8, up(share) + 4, f"{100 * share:.0f}%", "end"),
                text(across(error), up(0) + 18, f"{error:.1f}")]
    return out


def curve(values):
    ordered = sorted(values)
    points, at = [], 0
    for i in range(STEPS + 1):
        error = LARGEST * i / STEPS
        while at < len(ordered) and ordered[at] <= error:
            at += 1
        points.append(f"{across(error):.1f} {up(at / len(ordered)):.1f}")
    return "M" + "L".join(points)


def draw(series, published, programs):
    """series: (setting, kind, label, errors); published: setting: the error that 90% are below."""
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
           f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
           text(WIDTH / 2, 22, f"share of estimates whose error is below ({programs} programs, 32 KB to 8 MB)")]
    out += axes()
    out.append(text(WIDTH / 2, up(0) + 36, "absolute error, percentage points of miss ratio"))
    for setting, error in published.items():
        out += [f'<circle cx="{across(error):.1f}" cy="{up(0.9):.1f}" r="5" fill="none" stroke="#000"/>',
                text(across(error) + 8, up(0.9) + 16, f"published, {setting.upper()}", "start")]
    for i, (setting, kind, label, values) in enumerate(series):
        stroke = f'stroke="{COLORS[kind]}" stroke-width="2" fill="none"{DASHES[setting]}'
        x, y = LEFT + 220 * (i % 3), HEIGHT - 34 + 18 * (i // 3)
        out += [f'<path d="{curve(values)}" {stroke}/>', f'<path d="M{x} {y - 4}h24" {stroke}/>',
                text(x + 30, y, label, "start")]
    return "\n".join(out) + "\n</svg>\n"
