# SPDX-License-Identifier: Apache-2.0
"""Pages and phases of `cachegram diff`."""
import csv
import io
import json
import sqlite3

import pytest

from browser import browser
from conftest import FULL, TARGETS, build_target, run
from page_help import HOSTILE, many_sites
from test_cli import cachegram as command, full, one_line  # noqa: F401 (fixtures)
from test_page import csv_of, texts


@pytest.fixture(scope="module")
def chromium():
    with browser() as b:
        yield b


@pytest.fixture(scope="module")
def two(cachegram, tmp_path_factory):
    """The phases A B A C A B A D, and a program that misses more."""
    folder = tmp_path_factory.mktemp("two")
    for name, source, arguments in (("before", "phases.c", ["1"]), ("after", "hot_matrix.c", ["2"])):
        program = build_target(TARGETS / source, folder)
        result = run([cachegram, "record", *FULL, "-o", folder / f"{name}.db", "--", program, *arguments])
        assert result.status == 0, result.err
    return folder / "before.db", folder / "after.db"


def rows_of(b, table):
    return b.evaluate(f"[...document.querySelectorAll('#{table} tbody tr')].map(r => [...r.cells].map(c => c.textContent))")


def minus(text):
    return text.replace("\u2212", "-")


def test_page(two, chromium, tmp_path):
    out = tmp_path / "diff.html"
    result = command("diff", "--format", "html", "-o", out, *two)
    assert result.returncode == 0 and result.stdout == result.stderr == ""
    assert out.stat().st_size < 1.5 * (1 << 20) and out.read_text() == command("diff", "--format", "html", *two).stdout
    chromium.open(out)
    assert chromium.evaluate("document.body.dataset.ready") == "yes"
    # The values are those of the command, to the digit.
    changes = csv_of("diff", *two)
    for column in changes[0]:
        assert texts(chromium, f"#values [data-column={column}]") == [row[column] for row in changes]
    # Both curves are drawn, and named.
    assert {"before", "after", "1K", "64M"} <= set(texts(chromium, "#curve svg text"))
    for color in ("#d55e00", "#0072b2"):
        assert chromium.evaluate(f"[...document.querySelectorAll('#curve svg path')].some(p => p.getAttribute('stroke') === '{color}' && p.getBoundingClientRect().width > 300)")
    # By keyboard: the curve, and the size of the functions.
    chromium.evaluate("document.getElementById('curve').focus()")
    chromium.key("Home")
    status = texts(chromium, "#curve-status")[0]
    assert f"before: {100 * float(changes[0]['before']):.3f}%" in status and f"after: {100 * float(changes[0]['after']):.3f}%" in status
    chromium.evaluate("document.getElementById('size').focus()")
    for key, size in (("Home", "32K"), ("ArrowRight", "256K"), ("End", "16M")):
        chromium.key(key)
        assert texts(chromium, "#size-text") == [size]
        expected = csv_of("diff", "--by", "function", "--size", size, *two)
        shown = rows_of(chromium, "functions")
        assert shown[0][5] == "all"
        for cells, row in zip(shown[1:], expected):
            assert cells[:2] == [f"{float(row[k]):.3f}" for k in ("before", "after")] and minus(cells[2]) == f"{float(row['delta']):+.3f}"
            assert cells[5].startswith(row["function"] or "[no names]") and (cells[4] != "not significant") == (row["significant"] == "1")
        assert len(shown) == min(len(expected), 50) + 1
    phases = csv_of("diff", "--by", "phase", *two)
    for side in ("before", "after"):
        for size, column in (("32768", 3), ("1048576", 5)):
            assert [(r[0], r[2], r[column]) for r in rows_of(chromium, f"phases-{side}")] == \
                [(r["phase"], r["windows"], f"{100 * float(r['miss_ratio']):.3f}%") for r in phases if r["profile"] == side and r["size_bytes"] == size]
    assert chromium.complaints() == []


def test_bands(chromium, burst_pair, tmp_path):
    out = tmp_path / "bands.html"
    assert command("diff", "--format", "html", "-o", out, *burst_pair).returncode == 0
    chromium.open(out)
    for color in ("#d55e00", "#0072b2"):
        assert chromium.evaluate(f"[...document.querySelectorAll('#curve svg path')].some(p => p.getAttribute('fill') === '{color}' && "
                                 "p.getAttribute('fill-opacity') === '0.2' && p.getBoundingClientRect().width > 200)"), color
    assert "No functions" in chromium.evaluate("document.body.textContent") and "No phases" in chromium.evaluate("document.body.textContent")
    assert chromium.complaints() == []


@pytest.fixture
def burst_pair(tmp_path):
    from test_cli import make, put
    files = []
    for name, more in (("a", 0), ("b", 100)):
        db = make(tmp_path / f"{name}.db", "burst", command=name)
        for i in range(1, 21):
            db.execute("INSERT INTO burst(id, process, tid, refs, loads, stores, end_code, end_reason, weight) VALUES(?,1,1,1000,600,400,1,'full',1)", (i,))
            noise = 20 * (i % 3)
            put(db, i, "stack", {0: 700 - more - noise, 40 + i: 200 + more + noise})
            put(db, i, "reuse", {0: 700 - more - noise, 60 + i: 200 + more + noise})
            put(db, i, "first", {k: 1 for k in range(100)})
            put(db, i, "age", {k: 1 for k in range(100)})
        db.commit()
        db.close()
        files.append(tmp_path / f"{name}.db")
    return files


def test_hostile_names_are_shown(chromium, tmp_path):
    files = []
    for i, name in enumerate(HOSTILE[:2]):
        db = tmp_path / f"<b>{i}.db"
        many_sites(db, 12, name)
        con = sqlite3.connect(db)
        con.execute("update run set value = ? where key = 'command'", (HOSTILE[3] + name,))
        con.execute("insert or replace into run values('warning', ?)", (name,))
        con.commit()
        con.close()
        files.append(db)
    out = tmp_path / "hostile.html"
    assert command("diff", "--format", "html", "-o", out, *files).returncode == 0
    chromium.open(out)
    assert chromium.complaints() == []
    assert chromium.evaluate("window.hacked") is None and chromium.evaluate("document.scripts.length") == 2
    assert chromium.evaluate("document.images.length") == 0 and chromium.evaluate("document.querySelectorAll('b').length") == 0
    names = "\n".join(texts(chromium, "#functions td.name"))
    assert HOSTILE[0] in names and HOSTILE[1] in names
    head = "\n".join(texts(chromium, "header p"))
    assert "\x1b" not in head and "␛" in head and "⟨U+202E⟩" in head and HOSTILE[1] in head


def test_phases(two):
    sizes = ["--sizes", "32K,1M"]
    rows = csv_of("diff", "--by", "phase", *sizes, *two)
    assert list(rows[0]) == ["profile", "phase", "windows", "refs_share", "size_bytes", "miss_ratio", "ci_low", "ci_high", "bursts"]
    for side, file in zip(("before", "after"), two):
        own = [row for row in rows if row["profile"] == side]
        expected = {(r["phase"], r["size_bytes"]): r for r in csv_of("phases", file, *sizes)}
        all_refs = sum(float(r["refs"]) for r in expected.values()) / 2
        assert {(r["phase"], r["size_bytes"]) for r in own} == {key for key in expected if key[0]}
        shares = [float(r["refs_share"]) for r in own]
        assert shares == sorted(shares, reverse=True)
        for r in own:
            other = expected[r["phase"], r["size_bytes"]]
            assert float(r["miss_ratio"]) == pytest.approx(float(other["miss_ratio"]), abs=1e-4)
            assert float(r["refs_share"]) == pytest.approx(float(other["refs"]) / all_refs) and r["windows"] == other["windows"]
    data = json.loads(command("diff", "--by", "phase", "--format", "json", *sizes, *two).stdout)
    assert [(str(p["phase"]), [q["miss_ratio"] for q in p["points"]]) for p in data["phases_before"]] == \
        [(a["phase"], [pytest.approx(float(a["miss_ratio"])), pytest.approx(float(b["miss_ratio"]))]) for a, b in zip(rows[::2], rows[1::2]) if a["profile"] == "before"]
    text = command("diff", "--by", "phase", *sizes, *two).stdout
    assert text.count("\nbefore  ") == len(data["phases_before"]) and text.count("\n after  ") == len(data["phases_after"])


def test_wrong_usage(full, two):
    for wrong in (["-o", "x"], ["--format", "html", "--by", "function"], ["--format", "html", "--by", "phase"], ["--by", "x"],
                  ["--by", "phase", "--size", "1M"]):
        one_line(command("diff", *wrong, *two), 2)
    one_line(command("diff", "--by", "phase", full, full), 1)  # no windows
    assert command("diff", "--format", "html", "-o", "/dev/full", *two).returncode == 1
    held = command("diff", "--format", "html", "--fail-if", "mr@1M > 0%", "-o", "/dev/null", *two)
    assert held.returncode == 3 and "holds" in held.stderr
