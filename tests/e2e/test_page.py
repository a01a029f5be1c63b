# SPDX-License-Identifier: Apache-2.0
"""The page of `cachegram html`, in a browser: what it shows, that it can be used, and that names cannot do harm."""
import csv
import io
import json
import os
import pathlib
import re
import shutil
import sqlite3
import subprocess

import pytest

from browser import browser
from pirate_help import wait_until
from page_help import HOSTILE, many_calls, many_sites, many_windows, open_and_use
from conftest import BURST, FULL, ROOT, build_target, TARGETS, run
from test_cli import cachegram as command, full, burst, make, one_line, put  # noqa: F401 (fixtures)

SIZES = "32K,256K,1M,4M"
@pytest.fixture(scope="module")
def chromium():
    with browser() as b:
        yield b


@pytest.fixture(scope="module")
def profile(cachegram, tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    program = build_target(TARGETS / "hot_matrix.c", folder)
    result = run([cachegram, "record", *BURST, "--allowance", "0", "-o", folder / "matrix.db", "--", program, "120"])
    assert result.status == 0, result.err
    return folder / "matrix.db"


def page(db, *options):
    out = db.with_suffix(".html")
    result = command("html", db, "-o", out, *options)
    assert result.returncode == 0 and result.stdout == result.stderr == "", result.stderr
    return out


@pytest.fixture(scope="module")
def with_source(profile):
    return page(profile, "--sizes", SIZES, "--source").rename(profile.with_name("source.html"))


@pytest.fixture
def opened(chromium, with_source):
    chromium.open(with_source)
    chromium.media(prefers_color_scheme="light")
    yield chromium
    assert chromium.complaints() == []
    chromium.media()


def texts(b, selector):
    return b.evaluate(f"[...document.querySelectorAll({json.dumps(selector)})].map(e => e.textContent)")


def csv_of(*args):
    result = command(*args, "--format", "csv")
    assert result.returncode == 0, result.stderr
    return list(csv.DictReader(io.StringIO(result.stdout)))


def test_values_are_those_of_mrc(opened, profile):
    curve = csv_of("mrc", profile)
    for column in ("size_bytes", "miss_ratio", "ci_low", "ci_high"):
        assert texts(opened, f"#values [data-column={column}]") == [row[column] for row in curve]
    random = csv_of("mrc", profile, "--model", "random")
    assert texts(opened, "#values [data-column=random]") == [row["miss_ratio"] for row in random]


def test_values_near_integers(chromium, tmp_path):
    """A ratio of 1 in 10^11 is 0 with ten digits, on the page and in csv."""
    db = make(tmp_path / "p.db", "full", references=10 ** 11, cold=0, loads=10 ** 11, stores=0)
    for kind in ("stack", "reuse"):
        put(db, 0, kind, {0: 10 ** 11 - 1, 100: 1})
    db.commit()
    db.close()
    chromium.open(page(tmp_path / "p.db"))
    curve = csv_of("mrc", tmp_path / "p.db")
    assert texts(chromium, "#values [data-column=miss_ratio]") == [row["miss_ratio"] for row in curve] == ["0"] * len(curve)


def test_every_chart_draws(opened, profile):
    # The line of LRU goes through as many points as there are, and the band is there.
    assert opened.evaluate("document.querySelectorAll('#curve svg path[stroke=\"#0072b2\"][fill=\"none\"]').length") >= 1
    assert opened.evaluate("[...document.querySelectorAll('#curve svg path')].some(p => p.getAttribute('fill') === '#0072b2' && "
                           "p.getAttribute('fill-opacity') === '0.2' && p.getBoundingClientRect().width > 300)")
    labels = texts(opened, "#curve svg text")
    assert {"1K", "1M", "64M", "LRU", "random replacement"} <= set(labels)
    caches = sqlite3.connect(profile).execute("select value from run where key = 'caches'").fetchone()[0].split(",")
    assert [label.split()[0] for label in labels if label.startswith("L") and label != "LRU"] == [f"L{i + 1}" for i, size in enumerate(caches) if int(size) <= 64 << 20]
    assert any(label.startswith("by_columns") for label in texts(opened, "#treemap svg text"))
    assert opened.evaluate("Math.max(...[...document.querySelectorAll('#treemap svg path')].map(p => p.getBoundingClientRect().width))") > 300
    # The source's line with the misses has them beside it.
    hot = texts(opened, "#source tr.hot")
    assert any("/* misses */" in line and "%" in line for line in hot)


def shown_rows(b):
    rows = b.evaluate("[...document.querySelectorAll('#hotspots-table tbody tr')].map(r => [...r.cells].map(c => c.textContent))")
    return [(r[0], r[2], r[3], r[4]) for r in rows]


def expected_rows(profile, size, by, *more):
    def percent(text, digits):
        return "–" if text == "" else f"{100 * float(text):.{digits}f}%"
    rows = csv_of("hotspots", profile, "--size", size, "--by", by, "--limit", "50", *more)
    def refs(r):  # 0 with misses: the sample of the references missed all of this row's
        return "–" if r["refs_share"] == "0" and float(r["miss_share"]) > 0 else percent(r["refs_share"], 2)
    return sorted((percent(r["miss_share"], 2), percent(r["miss_ratio"], 3), refs(r),
                   " · ".join(r[k] for k in by.split(","))) for r in rows)


def test_slider_by_keyboard(opened, profile):
    assert texts(opened, "#size-text") == ["1M"]
    opened.evaluate("document.getElementById('size').focus()")
    before = texts(opened, "#source p")[0]
    for key, size in (("Home", "32K"), ("ArrowRight", "256K"), ("ArrowRight", "1M"), ("End", "4M")):
        opened.key(key)
        assert texts(opened, "#size-text") == [size]
        assert sorted(shown_rows(opened)) == expected_rows(profile, size, "function,object")
        assert size in texts(opened, "#hotspots-total")[0] and size in texts(opened, "#source p")[0]
    assert texts(opened, "#source p")[0] != before
    opened.evaluate("document.getElementById('by').value = 'function'; document.getElementById('by').dispatchEvent(new Event('change'))")
    assert sorted(shown_rows(opened)) == expected_rows(profile, "4M", "function")


def test_numbers_round_as_in_the_terminal(chromium, tmp_path):
    """Each of 160 functions has as many references: 0.625%, as near to 0.62 as to 0.63."""
    db = tmp_path / "p.db"
    many_sites(db, 160)
    chromium.open(page(db, "--sizes", "64M"))
    chromium.evaluate("document.getElementById('by').value = 'function'; document.getElementById('by').dispatchEvent(new Event('change'))")
    rows = shown_rows(chromium)
    assert sorted(rows) == expected_rows(db, "64M", "function") and {row[2] for row in rows} == {"0.62%"}
    assert "0.62%" in command("hotspots", db, "--size", "64M").stdout


def test_words_about_colours_and_caches(opened, profile):
    """What stands beside the colours is the highest value; which caches are not on the axis is said."""
    grid = opened.evaluate("JSON.parse(document.getElementById('data').textContent).timeline.grid")
    most = max(v for column in grid["columns"] for v in column["miss_ratio"] if v is not None)
    assert texts(opened, "#time .legend") == ["miss ratio" + "".join(f"{100 * most * part:.1f}%" for part in (0, 1 / 16, 1 / 4, 9 / 16, 1))]
    assert len(texts(opened, "#hotspots .legend")) == 1
    caches = sorted({int(size) for size in sqlite3.connect(profile).execute("select value from run where key = 'caches'").fetchone()[0].split(",")})
    said = texts(opened, "#curve-section figcaption")[0]
    assert "the caches of the machine of the recording" in said
    assert " of the references hit in a cache of " in texts(opened, ".finding")[0] and "(L1 of the machine of the recording)" in texts(opened, ".finding")[0]
    assert [f"L{i + 1} " in said for i in range(len(caches))] == [size > 64 << 20 for size in caches]


def test_causes(opened, profile):
    """The matrix has the numbers of `causes`, for the slider's size."""
    for key, size in (("Home", "32K"), ("End", "4M")):
        opened.evaluate("document.getElementById('size').focus()")
        opened.key(key)
        shares = {(row["victim"], row["evictor"]): float(row["share"]) for row in csv_of("causes", profile, "--size", size)}
        cells = opened.evaluate("[...document.querySelectorAll('#causes-table td.heat')].map(c => [c.dataset.victim, c.dataset.evictor, c.textContent])")
        assert cells
        for victim, evictor, text in cells:
            if evictor != "(others)":
                assert text == f"{100 * shares[victim, evictor]:.2f}%"
        largest = max(shares, key=shares.get)
        assert largest in [(victim, evictor) for victim, evictor, _ in cells]


def test_cold_misses_that_are_not_known(chromium, with_source, tmp_path):
    """From bursts of a short run: too few watched lines were seen to the end."""
    html = re.sub(r'"cold_share": [0-9.e-]+', '"cold_share": null', with_source.read_text())
    (tmp_path / "page.html").write_text(html)
    chromium.open(tmp_path / "page.html")
    notes = [t for t in texts(chromium, "#causes p") if t.startswith("In a cache of ")]
    assert len(notes) == 1 and "how many of the misses are cold is not known" in notes[0] and "\u2013" not in notes[0], notes


@pytest.fixture(scope="module")
def phased(cachegram, tmp_path_factory):
    """Phases A B A C A B A D, recorded in full."""
    folder = tmp_path_factory.mktemp("phased")
    program = build_target(TARGETS / "phases.c", folder)
    assert run([cachegram, "record", *FULL, "-o", folder / "phases.db", "--", program, "1"]).status == 0
    return folder / "phases.db"


RIBBON = 11  # within the ribbon, above the numbers in it


def colors_of(b, y):
    """The different colours of a row of the canvas, from left to right."""
    return b.evaluate(f"""(() => {{
        const canvas = document.querySelector('#heatmap canvas'), ratio = canvas.width / canvas.clientWidth, found = [];
        const copy = document.createElement('canvas');
        [copy.width, copy.height] = [canvas.width, canvas.height];
        const context = copy.getContext('2d', {{ willReadFrequently: true }});
        context.drawImage(canvas, 0, 0);
        const pixels = context.getImageData(70 * ratio, {y} * ratio, canvas.width - 100 * ratio, 1).data;
        for (let i = 0; i < pixels.length; i += 4) {{
            const color = [...pixels.slice(i, i + 3)].join();
            if (found.at(-1) !== color) found.push(color);
        }}
        return found;
    }})()""")


def veiled(b):
    """The columns of the heat map whose middle is under a veil, by their numbers; and those of other phases than the one chosen."""
    return b.evaluate("""(() => {
        const box = document.getElementById('heatmap').getBoundingClientRect();
        const columns = JSON.parse(document.getElementById('data').textContent).timeline.grid.columns;
        const veils = [...document.querySelectorAll('#heatmap .veil')].map(v => v.getBoundingClientRect());
        const chosen = Number(document.querySelector('#phases button[aria-pressed=true]')?.dataset.phase);
        const middle = i => box.x + 66 + (box.width - 86) * (i + 0.5) / columns.length;
        const all = columns.map((column, i) => i);
        return [all.filter(i => veils.some(v => v.left <= middle(i) && middle(i) < v.right)), all.filter(i => !(columns[i].phase === chosen))];
    })()""")


def test_other_phases_fade(phased, chromium):
    """Under veils: to choose a phase does not draw the cells of the map again."""
    chromium.open(page(phased, "--sizes", "32K,1M"))
    assert veiled(chromium)[0] == []
    chromium.evaluate("""window.filled = 0; for (const name of ['fill', 'fillRect']) {
        const old = CanvasRenderingContext2D.prototype[name];
        CanvasRenderingContext2D.prototype[name] = function (...args) { window.filled++; return old.apply(this, args); };
    }""")
    for phase in phase_numbers(phased)[:2]:
        click(chromium, f"#phases button[data-phase='{phase}']")
        under, others = veiled(chromium)
        assert under == others and 0 < len(under) < 300
    assert chromium.evaluate("window.filled") < 300
    # Half of the run in the whole width: the veils go with it.
    chromium.evaluate("document.getElementById('heatmap').scrollIntoView()")
    box = chromium.evaluate("(r => [r.x, r.y, r.width, r.height])(document.getElementById('heatmap').getBoundingClientRect())")
    right, bar = box[0] + box[2] - 20, box[1] + box[3] - 21
    chromium.mouse(right, bar, "mouseMoved", "mousePressed")
    chromium.drag(right, bar, box[0] + box[2] / 2, bar)
    assert chromium.evaluate("window.filled") > 300
    zoomed = veiled(chromium)[0]
    assert zoomed and zoomed != under
    click(chromium, f"#phases button[data-phase='{phase}']")
    assert veiled(chromium)[0] == [] and chromium.complaints() == []


def test_over_time(phased, chromium):
    chromium.open(page(phased, "--sizes", "32K,1M"))
    chromium.media(prefers_color_scheme="light")
    phases = csv_of("phases", phased, "--sizes", "32K,1M")
    for row in phases:
        selector = f"#phases td[data-phase='{row['phase'] or 0}'][data-size='{row['size_bytes']}']"
        assert texts(chromium, selector) == [f"{100 * float(row['miss_ratio']):.3f}%"]
    assert texts(chromium, "#phases td[data-time]") == []  # full mode
    # The phase with most references has the first colour, whatever its number; numbers are in the ribbon below RIBBON.
    assert len(colors_of(chromium, 19)) > len(colors_of(chromium, RIBBON))
    assert chromium.evaluate("[...document.querySelectorAll('#phases button')].map(b => b.style.borderLeftColor)")[0] == "rgb(0, 114, 178)"
    # The ribbon has all phases that last, and the map more than one colour.
    chromium.evaluate("document.getElementById('heatmap').scrollIntoView()")
    ribbon = colors_of(chromium, RIBBON)
    assert 4 <= len(set(ribbon)) <= 20 and len(set(colors_of(chromium, 250))) >= 4
    # The tooltip shows the values under the pointer.
    x, y = chromium.evaluate("(r => [r.x, r.y])(document.getElementById('heatmap').getBoundingClientRect())")
    chromium.mouse(x + 300, y + 150, "mouseMoved")
    assert any("Cache of" in text for text in texts(chromium, "#heatmap .tip"))
    # A phase that is chosen has a curve of its own, by a click in the ribbon or a button.
    chromium.mouse(x + 300, y + 19, "mouseMoved", "mousePressed", "mouseReleased")
    pressed = texts(chromium, "#phases button[aria-pressed=true]")
    assert len(pressed) == 1 and f"LRU, {pressed[0]}" in texts(chromium, "#curve svg text")
    assert len(set(colors_of(chromium, RIBBON))) >= 4
    chromium.evaluate("document.querySelector('#phases button[aria-pressed=true]').focus()")
    chromium.key("Enter")
    chromium.evaluate("document.querySelector('#phases button[aria-pressed=true]')?.click()")
    assert not any(text.startswith("LRU, phase") for text in texts(chromium, "#curve svg text"))
    # A drag of the bar's right end to the middle shows the first half.
    box = chromium.evaluate("(r => [r.x, r.y, r.width, r.height])(document.getElementById('heatmap').getBoundingClientRect())")
    right, bar = box[0] + box[2] - 20, box[1] + box[3] - 21
    chromium.mouse(right, bar, "mouseMoved", "mousePressed")
    chromium.drag(right, bar, box[0] + box[2] / 2, bar)
    assert len(colors_of(chromium, RIBBON)) < len(ribbon)
    assert chromium.complaints() == []


def test_heatmap_by_keyboard(phased, chromium):
    """The arrow keys read each value, Enter chooses the phase, plus and minus zoom."""
    chromium.open(page(phased, "--sizes", "32K,1M"))
    grid = chromium.evaluate("JSON.parse(document.getElementById('data').textContent).timeline.grid")
    chromium.evaluate("document.getElementById('heatmap').focus()")
    i, k, last = 0, 0, len(grid["columns"]) - 1
    for key, di, dk in (("Home", -last, 0), ("ArrowUp", 0, 1), ("ArrowUp", 0, 1), ("ArrowRight", 1, 0), ("End", last, 0), ("ArrowRight", 1, 0), ("ArrowDown", 0, -1), ("ArrowLeft", -1, 0)):
        chromium.key(key)
        i, k = min(max(i + di, 0), last), k + dk
        column = grid["columns"][i]
        words = texts(chromium, "#heatmap-status")[0].split("; ")
        value = "–" if column["miss_ratio"][k] is None else f"{100 * column['miss_ratio'][k]:.3f}%"
        assert words[0].startswith("Cache of ") and words[0].endswith(f": {value}") and words[1] == f"phase {column['phase'] or 'not known'}", (key, words)
        if column["miss_ratio"][k] is not None:
            assert texts(chromium, "#heatmap .tip strong") == [words[0]]
    assert (i, k) == (last - 1, 1)
    chromium.key("Enter")
    assert texts(chromium, "#phases button[aria-pressed=true]") == [words[1]]
    chromium.key("Enter")
    assert texts(chromium, "#phases button[aria-pressed=true]") == []
    whole = colors_of(chromium, RIBBON)
    for _ in range(4):
        chromium.key("+")
    assert len(colors_of(chromium, RIBBON)) < len(whole)
    for _ in range(5):
        chromium.key("-")
    assert colors_of(chromium, RIBBON) == whole and chromium.complaints() == []


@pytest.fixture(scope="module")
def phased_bursts(cachegram, tmp_path_factory):
    """The same, sampled."""
    folder = tmp_path_factory.mktemp("bursts")
    program = build_target(TARGETS / "phases.c", folder)
    result = run([cachegram, "record", *BURST, "--gap-us", "6000", "--allowance", "0", "-o", folder / "phases.db", "--", program, "80"])
    assert result.status == 0, result.err
    return folder / "phases.db"


@pytest.fixture(scope="module")
def less_data(cachegram, tmp_path_factory):
    """Likewise, with an eighth of the data in D."""
    folder = tmp_path_factory.mktemp("less")
    text = (TARGETS / "phases.c").read_text()
    (folder / "phases.c").write_text(text.replace("512 << 10", "64 << 10"))
    assert (folder / "phases.c").read_text() != text
    result = run([cachegram, "record", *BURST, "--gap-us", "6000", "--allowance", "0", "-o", folder / "phases.db", "--", build_target(folder / "phases.c", folder), "80"])
    assert result.status == 0, result.err
    return folder / "phases.db"


def phase_numbers(profile):
    """Phases, the one with most references first."""
    rows = csv_of("phases", profile, "--sizes", "1M")
    return [row["phase"] for row in sorted(rows, key=lambda row: -float(row["refs"])) if row["phase"]]


def test_cpu_time_of_phases(phased_bursts, chromium):
    chromium.open(page(phased_bursts, "--sizes", "1M"))
    times = {row["phase"] or "0": int(row["cpu_ns"]) for row in csv_of("phases", phased_bursts, "--sizes", "1M")}
    for phase, cpu_ns in times.items():
        assert texts(chromium, f"#phases td[data-time='{phase}']") == [f"{100 * cpu_ns / sum(times.values()):.2f}%"]
    assert "CPU time" in texts(chromium, "#phases th") and chromium.complaints() == []


def test_hotspots_of_a_phase(phased_bursts, full):
    a, b = phase_numbers(phased_bursts)[:2]
    of_run, of_a, of_b = ({row["function"]: float(row["refs_share"]) for row in csv_of("hotspots", phased_bursts, *phase)}
                          for phase in ([], ["--phase", a], ["--phase", b]))
    # Four of eight parts are A's, two B's; a burst at a boundary has some of the next one.
    assert of_a["at_random"] > 0.7 and of_b["in_order"] > 0.7
    assert 0.3 < of_run["at_random"] < 0.7 and of_run["in_order"] > 0.1
    assert f"phase {a}\n" in command("hotspots", phased_bursts, "--phase", a).stdout.splitlines(True)[0]
    data = json.loads(command("hotspots", phased_bursts, "--phase", a, "--format", "json").stdout)
    assert data["phase"] == int(a) and data["phase_in_part"] is False
    assert data["bursts"] < json.loads(command("hotspots", phased_bursts, "--format", "json").stdout)["bursts"]
    one_line(command("hotspots", phased_bursts, "--phase", "99"), 1)
    one_line(command("hotspots", full, "--phase", "1"), 1)
    for wrong in ("0", "x", "-1"):
        one_line(command("hotspots", phased_bursts, "--phase", wrong), 2)


def click(b, selector):
    b.evaluate(f"document.querySelector({json.dumps(selector)}).click()")
    b.settle()


def test_phase_filters_everything(phased_bursts, phased, chromium):
    chromium.open(page(phased_bursts, "--sizes", "32K,1M"))
    choose = lambda by: chromium.evaluate(f"document.getElementById('by').value = '{by}'; document.getElementById('by').dispatchEvent(new Event('change'))")
    whole = sorted(shown_rows(chromium))
    assert whole == expected_rows(phased_bursts, "1M", "function,object")
    for phase in phase_numbers(phased_bursts)[:2]:
        click(chromium, f"#phases button[data-phase='{phase}']")
        for by in ("function", "function,object"):
            choose(by)
            assert sorted(shown_rows(chromium)) == expected_rows(phased_bursts, "1M", by, "--phase", phase, "--limit", "20")
        assert texts(chromium, "#hotspots-phase") == [f"Phase {phase}."] and f"of phase {phase} in" in texts(chromium, "#hotspots-total")[0]
        assert "whole run" in texts(chromium, "#causes-phase")[0]
        assert f"LRU, phase {phase}" in texts(chromium, "#curve svg text")
    # The second one is B, which alone misses in 1 MB, and the areas are those of its misses. A burst at a boundary may
    # have seen other code, too.
    assert sorted(shown_rows(chromium)) != whole
    largest = csv_of("hotspots", phased_bursts, "--by", "function,object", "--size", "1M", "--phase", phase, "--limit", "1")[0]
    tiles = texts(chromium, "#treemap svg text")
    assert largest["function"] == "in_order" and "in_order" in tiles and f"{100 * float(largest['miss_share']):.1f}%" in tiles
    click(chromium, f"#phases button[data-phase='{phase}']")
    assert sorted(shown_rows(chromium)) == whole and texts(chromium, "#hotspots-phase") == [""] == texts(chromium, "#causes-phase")
    assert chromium.complaints() == []
    # Where every reference was recorded, the page says that it has no hotspots by phase.
    chromium.open(page(phased, "--sizes", "32K,1M"))
    whole = shown_rows(chromium)
    click(chromium, "#phases button")
    assert "of the whole run" in texts(chromium, "#hotspots-phase")[0] and shown_rows(chromium) == whole
    assert chromium.complaints() == []


def test_lines_are_named(opened, profile):
    """By line, rows have their file and line, and what they are inlined into."""
    opened.evaluate("document.getElementById('by').value = 'line'; document.getElementById('by').dispatchEvent(new Event('change'))")
    names = [row[3] for row in shown_rows(opened)]
    for row in csv_of("hotspots", profile, "--by", "line", "--limit", "5"):
        if row["file"]:
            assert any(name.startswith(f"{row['function']} {row['file'].split('/')[-1]}:{row['line']}") for name in names), row


def test_curve_by_keyboard(opened, profile):
    curve = csv_of("mrc", profile)
    opened.evaluate("document.getElementById('curve').focus()")
    for key, at in (("Home", 0), ("ArrowRight", 1), ("ArrowRight", 2), ("End", len(curve) - 1), ("ArrowRight", len(curve) - 1)):
        opened.key(key)
        status = texts(opened, "#curve-status")[0]
        value = curve[at]["miss_ratio"]
        assert f"LRU: {100 * float(value):.3f}%" in status if value else "LRU: not enough samples" in status
        # The drawing shows its tip after the next frame.
        wait_until(lambda size=status.split(";")[0]: size in texts(opened, "#curve .tip strong"), 8)
    opened.key("Escape")


@pytest.mark.parametrize("misses", [1, 9, 99])
def test_tips_of_the_ends_by_keyboard(chromium, tmp_path, misses):
    """The labels of the axis are as wide as its values: whatever place that gives the first and the last point, both have tips."""
    db = make(tmp_path / "p.db", "full", references=100, cold=0, loads=100, stores=0)
    for kind in ("stack", "reuse"):
        put(db, 0, kind, {0: 100 - misses, 100: misses})
    db.commit()
    db.close()
    chromium.open(page(tmp_path / "p.db"))
    chromium.evaluate("document.getElementById('curve').focus()")
    for key, size in (("Home", "Cache of 1K"), ("End", "Cache of 64M")):
        chromium.key(key)
        wait_until(lambda size=size: texts(chromium, "#curve .tip strong") == [size], 8)


def test_sort_filter_and_click(opened):
    rows = shown_rows(opened)
    opened.evaluate("document.querySelector('th[data-key=name] button').focus()")
    opened.key("Enter")
    opened.evaluate("document.querySelector('th[data-key=name] button').click()")
    names = [row[3] for row in shown_rows(opened)]
    assert sorted(names) == sorted(row[3] for row in rows)
    assert opened.evaluate("document.querySelector('th[aria-sort]').dataset.key") == "name"
    # A click on the largest area leaves its rows in the table.
    x, y = opened.evaluate("(e => { e.scrollIntoView(); const r = e.getBoundingClientRect(); return [r.x + r.width / 3, r.y + r.height / 2]; })"
                           "(document.getElementById('treemap'))")
    opened.mouse(x, y, "mouseMoved", "mousePressed", "mouseReleased")
    wanted = opened.evaluate("document.getElementById('filter').value")
    assert wanted and shown_rows(opened) and all(wanted in row[3] for row in shown_rows(opened))


def test_logarithmic_axis(opened):
    opened.evaluate("document.getElementById('log').click()")
    opened.settle()
    assert {"0.1%", "0.01%"} <= set(texts(opened, "#curve svg text"))


def luminance(b, expression):
    color = b.evaluate(expression)
    r, g, b = (int(part) for part in color[color.index("(") + 1:-1].split(",")[:3])
    return 0.299 * r + 0.587 * g + 0.114 * b


def test_dark_and_print(opened):
    ground, text = "getComputedStyle(document.body).backgroundColor", "getComputedStyle(document.querySelector('#curve svg text')).fill"
    for media, dark in ((dict(prefers_color_scheme="light"), False), (dict(prefers_color_scheme="dark"), True),
                        (dict(media="print", prefers_color_scheme="dark"), False)):
        opened.media(**media)
        if "media" in media:
            opened.evaluate("window.dispatchEvent(new Event('beforeprint'))")
        assert (luminance(opened, ground) < 60) == dark
        assert (luminance(opened, text) > 180) == dark
    assert len(opened.pdf()) > 20000
    # On paper there is nothing to click, and no row without misses; on the screen there is.
    visible = "[...document.querySelectorAll({})].filter(e => e.getClientRects().length).length"
    controls, rows = visible.format("'input, select, #calls-note'"), visible.format("'#hotspots-table tbody tr'")
    assert opened.evaluate(controls) == 0
    misses = [row[0] for row in shown_rows(opened)]
    assert opened.evaluate(rows) == len([m for m in misses if m != "0.00%"])  # of this run, there may be none with that
    first = "document.querySelector('#hotspots-table tbody tr').classList"
    opened.evaluate(f"{first}.add('nothing')")
    assert opened.evaluate(rows) == len([m for m in misses if m != "0.00%"]) - 1
    opened.evaluate(f"{first}.remove('nothing')")
    opened.media(prefers_color_scheme="light")
    assert opened.evaluate(controls) >= 4 and opened.evaluate(rows) == len(misses)


def test_narrow_window(opened):
    """Names stand beside their numbers, and nothing but tables and code has to be moved sideways."""
    opened.call("Emulation.setDeviceMetricsOverride", width=420, height=900, deviceScaleFactor=1, mobile=False)
    opened.settle()
    assert opened.evaluate("document.documentElement.scrollWidth") <= 420
    assert opened.evaluate("Math.max(...[...document.querySelectorAll('#hotspots-table td.name')].map(td => td.getBoundingClientRect().right))") <= 420
    opened.call("Emulation.clearDeviceMetricsOverride")


def test_is_one_small_file(profile, with_source, chromium):
    out = page(profile)
    assert out.stat().st_size < 1.5 * (1 << 20)
    chromium.open(out)
    assert chromium.evaluate("document.body.dataset.ready") == "yes"
    assert chromium.complaints() == []  # no address but its own was asked for
    assert "by_columns" in out.read_text() and "/* misses */" not in out.read_text()
    assert "/* misses */" in with_source.read_text()


def hostile(tmp_path):
    db = tmp_path / "hostile.db"
    many_sites(db, 2 * len(HOSTILE))
    many_calls(db, 3)
    con = sqlite3.connect(db)
    con.execute("update run set value = ? where key = 'command'", (HOSTILE[1],))
    con.execute("insert or replace into run values('warning', ?)", (HOSTILE[0],))
    frames = [row[0] for row in con.execute("select id from frame order by id")]
    for i, frame in enumerate(frames):
        con.execute("update frame set function = ?, file = ? where id = ?", (f"{HOSTILE[i % len(HOSTILE)]}{i}", HOSTILE[0] + str(i), frame))
    for i, (obj,) in enumerate(con.execute("select id from object order by id").fetchall()):
        con.execute("update object set kind = 'variable', name = ? where id = ?", (HOSTILE[(i + 1) % len(HOSTILE)] + str(i), obj))
    con.execute("update image set path = cast(? as text)", (b"/\xff\xfe<b>bold</b>",))
    con.commit()
    con.close()
    return db


def test_hostile_names(chromium, tmp_path):
    db = hostile(tmp_path)
    chromium.open(page(db, "--sizes", "32K,1M", "--source"))
    assert chromium.complaints() == []
    assert chromium.evaluate("window.hacked") is None
    assert chromium.evaluate("document.scripts.length") == 2 and chromium.evaluate("document.images.length") == 0
    assert chromium.evaluate("document.querySelectorAll('b').length") == 0
    assert texts(chromium, "h1")[0] == f"cachegram: {HOSTILE[1]}"
    assert HOSTILE[0] in texts(chromium, ".warning")[0]
    chromium.evaluate("document.getElementById('by').value = 'line'; document.getElementById('by').dispatchEvent(new Event('change'))")
    names = "\n".join(texts(chromium, "#hotspots-table td.name"))
    assert names.count("window.hacked=1") >= 4 and "{a|b}" in names and "<!--<script>" in names
    for raw, visible in (("\t", "␉"), ("\x1b", "␛"), ("\u202e", "⟨U+202E⟩"), ("\u2028", "⟨U+2028⟩")):
        assert raw not in names
        assert visible in names
    for by in ("line", "function"):
        chromium.evaluate(f"document.getElementById('by').value = '{by}'; document.getElementById('by').dispatchEvent(new Event('change'))")
        chromium.evaluate("document.querySelectorAll('#hotspots-table button[aria-expanded=false]').forEach(e => e.click())")
        calls = "\n".join(texts(chromium, "#hotspots-table .calls li"))
        assert all(name in calls for name in (HOSTILE[0], HOSTILE[1], HOSTILE[2], "␉", "␛", "⟨U+202E⟩")) and "\x1b" not in calls
    assert chromium.evaluate("window.hacked") is None and chromium.evaluate("document.images.length") == 0
    # What is over an area is an element, too.
    x, y = chromium.evaluate("(e => { e.scrollIntoView(); const r = e.getBoundingClientRect(); return [r.x + r.width / 3, r.y + r.height / 2]; })"
                             "(document.getElementById('treemap'))")
    chromium.mouse(x, y, "mouseMoved")
    assert texts(chromium, "#treemap .tip")
    assert chromium.evaluate("window.hacked") is None and chromium.evaluate("document.images.length") == 0
    assert chromium.complaints() == []


@pytest.fixture(scope="module")
def called(cachegram, tmp_path_factory):
    """Functions that are reached by several paths; recorded in full."""
    folder = tmp_path_factory.mktemp("called")
    program = build_target(TARGETS / "call_graph.c", folder)
    assert run([cachegram, "record", *FULL, "-o", folder / "calls.db", "--", program, "300"]).status == 0
    return folder / "calls.db"


def pruned(calls, depth=0):
    """The calls of `hotspots --call-graph` that the page shows: from 2% of the row, up to 12 deep and to main."""
    return [[f"{100 * call['share']:.1f}%", call["function"], pruned(call["callers"], depth + 1) if call["function"] != "main" else []]
            for call in calls if call["share"] >= 0.02 and depth < 12]


def opened_calls(b, button):
    """The tree below the row of a button."""
    return b.evaluate("""(() => {
        const tree = list => [...list?.children ?? []].map(item => [item.querySelector('.number').textContent,
            item.childNodes[1].textContent.trim(), tree(item.querySelector(':scope > ul'))]);
        return tree(%s.closest('tr').nextElementSibling?.querySelector('ul.calls'));
    })()""" % button)


def names_only(tree):
    return [[share, text.split(" ")[0], names_only(below)] for share, text, below in tree]


def test_calls_of_a_row(called, chromium, tmp_path):
    """A row opens, by a key or a click, and shows the calls of `hotspots --call-graph`."""
    chromium.open(page(called, "--sizes", "32K,1M"))
    choose = lambda by: chromium.evaluate(f"document.getElementById('by').value = '{by}'; document.getElementById('by').dispatchEvent(new Event('change'))")
    button = lambda i: f"document.querySelectorAll('#hotspots-table button[aria-expanded]')[{i}]"
    for by in ("function", "line", "function,object"):
        choose(by)
        result = command("hotspots", called, "--call-graph", "--by", by, "--format", "json", "--limit", "50")
        rows = [row for row in json.loads(result.stdout)["rows"] if row.get("calls") and row["miss_share"] >= 0.01]
        shown = [text.split(" ")[0] for text in texts(chromium, "#hotspots-table button[aria-expanded]")]
        assert len(rows) == len(shown) >= 5
        for i, function in enumerate(shown):
            row = next(row for row in rows if row["function"] == function)
            assert row["miss_share"] > 0.99 * rows[0]["miss_share"]  # rows with as many misses may change places
            rows.remove(row)
            tree = pruned(row["calls"])
            assert opened_calls(chromium, button(i)) == []
            chromium.evaluate(f"{button(i)}.focus()")
            chromium.key("Enter") if i % 2 else chromium.key(" ")
            assert chromium.evaluate(f"{button(i)}.getAttribute('aria-expanded')") == "true"
            found = opened_calls(chromium, button(i))
            assert names_only(found) == tree, function
            if function == "touch_paths":
                assert [float(row[0][:-1]) for row in found] == pytest.approx([75, 25], abs=5) and found[0][1].startswith("often call_graph.c:")
                assert found[0][2][0][1].startswith("main call_graph.c:") and found[0][2][0][2] == []
    assert "less than 2%" in texts(chromium, "#calls-note")[0] and "on any data" in texts(chromium, "#calls-note")[0]
    # What is open stays open for another size, and is closed by a click.
    chromium.evaluate("document.getElementById('size').focus()")
    chromium.key("Home")
    x, y = chromium.evaluate(f"(r => [r.x + 20, r.y + r.height / 2])(({button(0)}.scrollIntoView(), {button(0)}).getBoundingClientRect())")
    assert opened_calls(chromium, button(0))
    chromium.mouse(x, y, "mouseMoved", "mousePressed", "mouseReleased")
    assert opened_calls(chromium, button(0)) == [] and chromium.evaluate(f"{button(0)}.getAttribute('aria-expanded')") == "false"
    choose("object")
    assert texts(chromium, "#calls-note") == [""] and chromium.evaluate("document.querySelector('button[aria-expanded]')") is None
    assert chromium.complaints() == []
    # A profile without call paths has nothing to open.
    with sqlite3.connect(shutil.copy(called, tmp_path / "none.db")) as con:
        con.executescript("DELETE FROM call_path; DELETE FROM site_path")
    chromium.open(page(tmp_path / "none.db"))
    assert shown_rows(chromium) and texts(chromium, "#calls-note") == [""]
    assert chromium.evaluate("document.querySelector('button[aria-expanded]')") is None


def test_calls_of_a_phase(phased_bursts, chromium):
    """Rows of a phase have the calls of the run."""
    chromium.open(page(phased_bursts, "--sizes", "32K,1M"))
    chromium.evaluate("document.getElementById('by').value = 'function'; document.getElementById('by').dispatchEvent(new Event('change'))")
    button = "[...document.querySelectorAll('#hotspots-table button[aria-expanded]')].find(e => e.textContent.startsWith('in_order'))"
    chromium.evaluate(f"{button}.click()")
    of_run = opened_calls(chromium, button)
    assert of_run
    click(chromium, f"#phases button[data-phase='{phase_numbers(phased_bursts)[1]}']")
    assert opened_calls(chromium, button) == of_run and "in the whole run" in texts(chromium, "#calls-note")[0]


def test_large_profile(chromium, tmp_path, record_property):
    """10,000 windows; 5,000 instructions, each in a function of its own. What is drawn has a bound, whatever the profile
    holds, and the page says what it leaves out. The time that this takes is in docs/page.md, and decides nothing here."""
    db, small = tmp_path / "many.db", tmp_path / "few.db"
    many_sites(db, 5000, hot=50)
    many_windows(db, 10000)
    many_sites(small, 60, hot=50)
    many_windows(small, 600)
    many_calls(db)
    many_calls(small)
    drawn = []
    for file in (small, db):
        out = page(file)
        assert out.stat().st_size < 1.5 * (1 << 20)
        chromium.open(out)
        assert chromium.evaluate("document.body.dataset.ready") == "yes"
        assert len(shown_rows(chromium)) == 50
        drawn.append(chromium.evaluate("document.getElementsByTagName('*').length"))
        assert chromium.evaluate("document.querySelectorAll('#treemap svg path').length") <= 6 * 50
        if file == small:
            # Of 25 paths of 19 calls, 12 calls of the only one with 4% or more: there would be too many with 2%.
            click(chromium, "#hotspots-table button[aria-expanded]")
            assert [text.split("%")[0] for text in texts(chromium, "#hotspots-table .calls .number")] == ["28.0"] * 12
            click(chromium, "#hotspots-table button[aria-expanded]")
        grid = chromium.evaluate("JSON.parse(document.getElementById('data').textContent).timeline.grid.columns.length")
        assert grid == 300 and len(set(colors_of(chromium, RIBBON))) >= 4
    # 83 times as many functions, 17 times as many windows: the same page.
    assert abs(drawn[1] - drawn[0]) <= 0.1 * drawn[0], drawn
    assert "4950 more" in "".join(texts(chromium, "#hotspots p"))
    for step, ms in open_and_use(chromium, out).items():
        record_property(f"milliseconds: {step}", round(ms))
    assert chromium.complaints() == []


def test_profile_is_read_once(cachegram, phased_bursts, tmp_path):
    """The page has some hundred tables; what they are made from is read once, not for each of them."""
    process = subprocess.Popen([cachegram, "html", "-o", tmp_path / "page.html", phased_bursts])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    counts = dict(line.split(": ") for line in pathlib.Path(f"/proc/{process.pid}/io").read_text().splitlines())
    assert process.wait() == 0
    # The curves, the findings and the phases read parts of it again, and programs read their libraries.
    assert int(counts["rchar"]) < 8 * phased_bursts.stat().st_size + 2 ** 21


def place_profile(path, name):
    """With false sharing, conflicts, and what the Pirate measured."""
    many_sites(path, 20, name)
    con = sqlite3.connect(path)
    con.executescript("""
    CREATE TABLE sharing(site, object, apart, same, PRIMARY KEY(site, object)) WITHOUT ROWID;
    CREATE TABLE conflict(site, object, refs, PRIMARY KEY(site, object)) WITHOUT ROWID;
    CREATE TABLE pirate(id INTEGER PRIMARY KEY, by TEXT, available_bytes, stolen_bytes, valid, intervals, dropped, cpu_ns, units, ns_per_unit, ns_low, ns_high,
      ns_per_ref, cpi, gbps, fetch_ratio, miss_ratio, pirate_fetch_ratio, lost_share);
    INSERT INTO run VALUES('sharing_refs', 1000), ('conflict_refs', 1000), ('pirate_unit', 'run');
    INSERT INTO sharing VALUES(3, 5, 40, 10), (4, 6, 0, 30);
    INSERT INTO conflict VALUES(4, 6, 30);
    INSERT INTO pirate VALUES(1, 'pirate', 8388608, 0, 1, 5, 0, 1e9, 1, 1e9, 9e8, 11e8, 1.25, 0.75, NULL, 0.03, 0.02, 0.001, 0),
      (2, 'pirate', 1048576, 7340032, 0, 5, 0, 1e9, 1, 1e9, 9e8, 11e8, 2.5, 1.5, NULL, 0.06, 0.05, 0.2, 0);""")
    con.commit()
    con.close()


def test_sharing_conflicts_and_pirate(chromium, tmp_path, full):
    db = tmp_path / "places.db"
    place_profile(db, HOSTILE[0])
    chromium.open(page(db, "--sizes", SIZES))
    rows = lambda table: chromium.evaluate(f"[...document.querySelectorAll('#{table} tbody tr')].map(r => [...r.cells].map(c => c.textContent))")
    assert rows("sharing") == [["4.00%", "variable_5", f"{HOSTILE[0]}3 /src/many.c:3"]]
    assert rows("together") == [["3.00%", "variable_6", f"{HOSTILE[0]}4 /src/many.c:4"]]
    assert rows("conflicts") == [["3.00%", "variable_6", f"{HOSTILE[0]}4 /src/many.c:4"]]
    heads = texts(chromium, "#pirate thead th")
    assert "CPI" in heads and "GB/s" not in heads  # nothing is known of it
    measured = [dict(zip(heads, row)) for row in rows("pirate")]
    assert [(row["cache left"], row["ns per reference"], row["CPI"], row["miss ratio"], row["valid"]) for row in measured] == \
        [("8M", "1.250", "0.750", "2.000%", "yes"), ("1M", "2.500", "1.500", "5.000%", "no")]
    assert "measured, with less cache" in texts(chromium, "#curve svg text")
    assert chromium.evaluate("window.hacked") is None and chromium.evaluate("document.images.length") == 0
    assert chromium.complaints() == []
    chromium.open(page(full))
    assert chromium.evaluate("document.getElementById('found')") is None


@pytest.mark.parametrize("name", ["page", "diff"])
def test_screenshots(name, phased_bursts, less_data, chromium, tmp_path):
    """The pictures of docs/page.md show what they should; `make screenshots` renews them."""
    for source, copy, run_of in ((phased_bursts, "before.db", "./phases 150"), (less_data, "after.db", "./phases 150")):
        shutil.copy(source, tmp_path / copy)
        with sqlite3.connect(tmp_path / copy) as con:  # as it is on everybody's machine
            con.execute("update run set value = ? where key = 'command'", (run_of,))
    arguments = ["html", "before.db", "--sizes", "32K,256K,1M,4M"] if name == "page" else ["diff", "--format", "html", "before.db", "after.db"]
    out = tmp_path / f"{name}.html"
    assert command(*arguments, "-o", out, cwd=tmp_path).returncode == 0
    chromium.call("Emulation.setDeviceMetricsOverride", width=1000, height=1800, deviceScaleFactor=0.7, mobile=False)
    chromium.call("Emulation.setScrollbarsHidden", hidden=True)
    try:
        chromium.open(out)
        chromium.media(prefers_color_scheme="light")
        if name == "page":
            click(chromium, f"#phases button[data-phase='{phase_numbers(phased_bursts)[1]}']")
        # Of fixed size, whatever is below it; with both curves and some text.
        picture = chromium.picture()
        assert chromium.complaints() == []
    finally:
        chromium.call("Emulation.clearDeviceMetricsOverride")
        chromium.call("Emulation.setScrollbarsHidden", hidden=False)
    assert picture[:8] == b"\x89PNG\r\n\x1a\n" and int.from_bytes(picture[16:20], "big") == 700 and int.from_bytes(picture[20:24], "big") == 1260
    assert 20000 < len(picture) < 200000
    committed = ROOT / "docs" / f"{name}.png"
    if os.environ.get("CACHEGRAM_SCREENSHOTS"):
        committed.write_bytes(picture)
    assert committed.read_bytes()[:24] == picture[:24] and f"({name}.png)" in (ROOT / "docs" / "page.md").read_text()


def test_what_is_missing_is_left_out(full, burst, tmp_path, chromium):
    for db in (full, burst):
        chromium.open(page(db))
        assert chromium.evaluate("document.querySelector('#curve svg') !== null")
        assert chromium.evaluate("document.getElementById('size')") is None
        assert chromium.evaluate("document.getElementById('source')") is None
        assert chromium.complaints() == []
    empty = tmp_path / "empty.db"
    make(empty, "burst", command="nothing").close()
    db = sqlite3.connect(empty)
    db.commit()
    chromium.open(page(empty))
    assert "No curve" in chromium.evaluate("document.body.textContent")
    assert chromium.complaints() == []


def test_output(full, tmp_path):
    target = tmp_path / "page.html"
    target.write_text("old")
    bad = tmp_path / "bad.db"
    bad.write_bytes(full.read_bytes()[:5000])
    assert command("html", bad, "-o", target).returncode == 1 and target.read_text() == "old"
    assert command("html", full, "-o", tmp_path / "no" / "page.html").returncode == 1
    link = tmp_path / "link.html"
    link.symlink_to(target)
    assert command("html", full, "-o", link).returncode == 0
    assert link.is_symlink() and target.read_text().startswith("<!DOCTYPE html>")
    assert command("html", full, "-o", "-").stdout == target.read_text()
    assert command("html", full, "-o", "/dev/full").returncode == 1
    assert not list(tmp_path.glob("*.part"))
    assert command("html", full, cwd=tmp_path).returncode == 0 and (tmp_path / "cachegram.html").exists()
    for wrong in (["--sizes", "1K..64M"], ["--sizes", "x"], ["--prefix-map", "x"], ["--format", "csv"], [full, full]):
        one_line(command("html", *wrong), 2)


def test_many_write_one_page(cachegram, full, tmp_path):
    at_once = [subprocess.Popen([cachegram, "html", full, "-o", tmp_path / "page.html"]) for _ in range(12)]
    assert [p.wait() for p in at_once] == [0] * 12
    assert (tmp_path / "page.html").read_text() == command("html", full, "-o", "-").stdout
    assert sorted(os.listdir(tmp_path)) == ["full.db", "page.html"]


def test_bundle_is_a_fresh_build(tmp_path):
    """web/page.html, which is committed, is what its sources and the lock file make."""
    assert shutil.which("npm"), "npm is not installed (scripts/install-deps.sh test)"
    lock = (ROOT / "web" / "package-lock.json").read_text()
    assert '"resolved"' not in lock and "://" not in lock.replace("https://opencollective.com", "").replace("https://github.com", "")
    shutil.copytree(ROOT / "web", tmp_path / "web", ignore=shutil.ignore_patterns("node_modules"))
    for argv in (["npm", "ci", "--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund"], ["node", "build.mjs", "fresh.html"]):
        done = subprocess.run(argv, cwd=tmp_path / "web", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
        assert done.returncode == 0, done.stdout
    assert (tmp_path / "web" / "fresh.html").read_bytes() == (ROOT / "web" / "page.html").read_bytes()
