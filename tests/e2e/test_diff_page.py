# SPDX-License-Identifier: Apache-2.0
"""Pages and phases of `cachegram diff`."""
import csv
import io
import json
import math
import re
import sqlite3

import pytest

from browser import browser
from conftest import FULL, TARGETS, build_target, run
from page_help import HOSTILE, many_sites, sampled_phases
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


def check_phases(b, files):
    """The page's tables of phases have the values of the command."""
    rows = csv_of("diff", "--by", "phase", *files)
    of = lambda size, before, after: [r for r in rows if r["size_bytes"] == size and bool(r["phase_before"]) == before and bool(r["phase_after"]) == after]
    share = lambda r, side: f"{100 * float(r['refs_share_' + side]):.2f}%"
    ratio = lambda text, digits=2: f"{100 * float(text):.{digits}f}%" if text else "\u2013"
    for size, column in (("32768", 3), ("1048576", 5)):
        mark = lambda r: "" if r["significant"] == "0" else " \u25b2" if float(r["delta_low"]) > 0 else " \u25bc"
        assert [(r[0], r[1], r[2], r[column]) for r in rows_of(b, "phases-pairs")] == \
            [(f"{r['phase_before']} \u2192 {r['phase_after']}", f"{100 * float(r['alike']):.0f}%", f"{share(r, 'before')} \u2192 {share(r, 'after')}",
              f"{ratio(r['before'])} \u2192 {ratio(r['after'])}{mark(r)}") for r in of(size, True, True)]
        for side in ("before", "after"):
            assert [(r[0], r[1], r[column]) for r in rows_of(b, f"phases-{side}")] == \
                [(r[f"phase_{side}"], share(r, side), ratio(r[side], 3)) for r in of(size, side == "before", side == "after")]


def test_names_of_functions(two):
    """As in `hotspots`, where the functions that are not stored separately are '[rest of FILE]'."""
    listed = {"[rest]" if row["function"].startswith("[rest of ") else row["function"] for db in two for row in csv_of("hotspots", "--limit", "0", db)}
    assert {row["function"] for row in csv_of("diff", "--by", "function", *two)} == listed and "[rest]" in listed


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
    # What stands first are the notes and sentences of the text.
    lines = command("diff", *two).stdout.splitlines()
    said = texts(chromium, ".finding")
    assert lines[4:4 + len(said)] == said and "Significant changes" in " ".join(said)
    assert said[0] == "Note: the programs have different names, phases and hot_matrix."
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
    for key, size, by in (("Home", "32K", "function"), ("ArrowRight", "256K", "function"), ("Home", "32K", "object"), ("End", "16M", "object"), ("End", "16M", "function")):
        chromium.evaluate(f"(e => {{ e.value = '{by}s'; e.dispatchEvent(new Event('change')); }})(document.getElementById('by'))")
        chromium.key(key)
        assert texts(chromium, "#size-text") == [size]
        expected = csv_of("diff", "--by", by, "--size", size, *two)
        shown = rows_of(chromium, f"{by}s")
        assert shown[0][5] == "all" and len(expected) > 3
        for cells, row in zip(shown[1:], expected):
            assert cells[:2] == [f"{float(row[k]):.3f}" for k in ("before", "after")] and minus(cells[2]) == f"{float(row['delta']):+.3f}"
            assert cells[5].startswith(row[by] or "[no names]") and (cells[4] != "not significant") == (row["significant"] == "1")
        assert len(shown) == min(len(expected), 50) + 1
    check_phases(chromium, two)
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
        con.execute("update object set name = ? || id", (name,))
        con.commit()
        con.close()
        files.append(db)
    out = tmp_path / "hostile.html"
    assert command("diff", "--format", "html", "-o", out, *files).returncode == 0
    chromium.open(out)
    assert chromium.complaints() == []
    assert chromium.evaluate("window.hacked") is None and chromium.evaluate("document.scripts.length") == 2
    assert chromium.evaluate("document.images.length") == 0 and chromium.evaluate("document.querySelectorAll('b').length") == 0
    for by in ("functions", "objects"):
        chromium.evaluate(f"(e => {{ e.value = '{by}'; e.dispatchEvent(new Event('change')); }})(document.getElementById('by'))")
        names = "\n".join(texts(chromium, f"#{by} td.name"))
        assert HOSTILE[0] in names and HOSTILE[1] in names
    assert chromium.evaluate("window.hacked") is None and chromium.evaluate("document.images.length") == 0
    head = "\n".join(texts(chromium, "header p"))
    assert "\x1b" not in head and "␛" in head and "⟨U+202E⟩" in head and HOSTILE[1] in head


def test_phases(two):
    """Where everything was recorded, the code of phases is not known, and they are not paired."""
    sizes = ["--sizes", "32K,1M"]
    rows = csv_of("diff", "--by", "phase", *sizes, *two)
    assert list(rows[0]) == ["phase_before", "phase_after", "alike", "refs_share_before", "refs_share_after", "size_bytes", "before", "after",
                             "delta", "significant", "delta_low", "delta_high"]
    data = json.loads(command("diff", "--by", "phase", "--format", "json", *sizes, *two).stdout)
    assert data["pairs"] == []
    for side, other, file in (("before", "after", two[0]), ("after", "before", two[1])):
        own = [row for row in rows if row[f"phase_{side}"]]
        expected = {(r["phase"], r["size_bytes"]): r for r in csv_of("phases", file, *sizes)}
        all_refs = sum(float(r["refs"]) for r in expected.values()) / 2
        assert {(r[f"phase_{side}"], r["size_bytes"]) for r in own} == {key for key in expected if key[0]}
        shares = [float(r[f"refs_share_{side}"]) for r in own]
        assert shares == sorted(shares, reverse=True)
        for r in own:
            same = expected[r[f"phase_{side}"], r["size_bytes"]]
            assert float(r[side]) == pytest.approx(float(same["miss_ratio"]), abs=1e-4)
            assert float(r[f"refs_share_{side}"]) == pytest.approx(float(same["refs"]) / all_refs)
            assert r["significant"] == "0" and not any(r[key] for key in ("alike", "delta", "delta_low", "delta_high", other, f"phase_{other}"))
        assert [(str(p["phase"]), [q["miss_ratio"] for q in p["points"]]) for p in data[f"phases_{side}"]] == \
            [(a[f"phase_{side}"], [pytest.approx(float(a[side])), pytest.approx(float(b[side]))]) for a, b in zip(own[::2], own[1::2])]
        assert not any(p["code_known"] for p in data[f"phases_{side}"])
    text = command("diff", "--by", "phase", *sizes, *two).stdout
    assert text.count("\nbefore  ") == len(data["phases_before"]) and text.count("\n after  ") == len(data["phases_after"])
    assert f"Of {len(data['phases_before']) + len(data['phases_after'])}, the code is not known" in text


# Bins of stack distances: 6 KB, 48 KB, and 362 KB.
NEAR, MIDDLE, FAR = 96, 768, 1024 + 2 * 256 + 128


def test_phases_are_paired_by_code(chromium, tmp_path):
    """Also when the program has another name, and the order of its phases is another one."""
    files = tmp_path / "before.db", tmp_path / "after.db"
    sampled_phases(files[0], "/bin/slow", [({"a": 900, "main": 100}, NEAR, 500), ({"b": 1000}, FAR, 300), ({"c": 1000}, NEAR, 500),
                                           ({"c": 1000}, FAR, 900), ({"a": 300, "old": 700}, FAR, 100)])
    sampled_phases(files[1], "/bin/fast", [({"b": 800, "inlined": 200}, FAR, 300), ({"c": 1000}, MIDDLE, 900), ({"a": 300, "new": 700}, FAR, 100),
                                           ({"c": 1000}, NEAR, 500), ({"a": 900, "main": 100}, FAR, 500)])
    sizes = ["--sizes", "32K,256K"]
    rows = csv_of("diff", "--by", "phase", *sizes, *files)
    # c on little data and c on much data, of which there is less after; a misses more; the last phases are other code.
    assert {(r["phase_before"], r["phase_after"]) for r in rows} == {("1", "5"), ("2", "1"), ("3", "4"), ("4", "2"), ("5", ""), ("", "3")}
    found = {(r["phase_before"], r["size_bytes"]): (round(float(r["alike"] or "nan"), 6), r["delta"] and round(float(r["delta"]), 2), r["significant"]) for r in rows}
    assert found["1", "32768"] == (1, 0.5, "1") and found["2", "32768"] == (0.8, 0, "0") and found["3", "32768"] == (1, 0, "0")
    assert found["4", "32768"] == (1, 0, "0") and found["4", "262144"] == (1, -0.9, "1")
    data = json.loads(command("diff", "--by", "phase", "--format", "json", *sizes, *files).stdout)
    paired = [r for r in rows if r["alike"]]
    assert [(str(p["phase_before"]), str(p["phase_after"]), str(q["size_bytes"]), q["delta"], q["significant"]) for p in data["pairs"] for q in p["points"]] == \
        [(r["phase_before"], r["phase_after"], r["size_bytes"], pytest.approx(float(r["delta"])), r["significant"] == "1") for r in paired]
    assert all(p["code_known"] for p in data["phases_before"] + data["phases_after"])
    text = command("diff", "--by", "phase", *sizes, *files).stdout
    pairs, single = text.split("Without counterpart:\n")
    assert [line.split()[1] for line in pairs.splitlines() if line.startswith("change ")] == [f"{100 * float(r['alike']):.0f}%" for r in paired[::2]]
    assert pairs.count("*") - 1 == sum(r["significant"] == "1" for r in paired)
    assert [line.split()[:2] for line in single.splitlines()] == [["before", "5"], ["after", "3"]]
    out = tmp_path / "diff.html"
    assert command("diff", "--format", "html", "-o", out, *files).returncode == 0
    chromium.open(out)
    check_phases(chromium, files)
    assert chromium.complaints() == []
    # What has the same name is taken together: before, main is a second a, in another file of the same name.
    for file in files:
        db = sqlite3.connect(file)
        db.execute("INSERT INTO image VALUES(2, ?, '')", ("/old/slow" if file == files[0] else "/lib/unused.so",))
        db.execute("UPDATE site SET image = ? WHERE id IN (SELECT id FROM frame WHERE function = 'main')", (2 if file == files[0] else 1,))
        db.execute("UPDATE frame SET function = 'a' WHERE function = 'main'")
        db.commit()
        db.close()
    assert {float(r["alike"]) for r in csv_of("diff", "--by", "phase", *sizes, *files) if r["phase_before"] == "1"} == {1}
    # A function of another library is another one.
    for file, libraries in zip(files, (("/lib/one.so", "/lib/two.so"), ("/lib/two.so", "/lib/one.so"))):
        db = sqlite3.connect(file)
        db.executemany("INSERT INTO image VALUES(?, ?, '')", enumerate(libraries, 3))
        db.execute("UPDATE site SET image = 3 WHERE id IN (SELECT id FROM frame WHERE function = 'c')")
        db.commit()
        db.close()
    assert {(r["phase_before"], r["phase_after"]) for r in csv_of("diff", "--by", "phase", *sizes, *files)} == \
        {("1", "5"), ("2", "1"), ("3", ""), ("4", ""), ("5", ""), ("", "2"), ("", "3"), ("", "4")}


def test_wrong_usage(full, two):
    for wrong in (["-o", "x"], ["--format", "html", "--by", "function"], ["--format", "html", "--by", "phase"], ["--format", "html", "--by", "object"], ["--by", "x"],
                  ["--by", "phase", "--size", "1M"]):
        one_line(command("diff", *wrong, *two), 2)
    one_line(command("diff", "--by", "phase", full, full), 1)  # no windows
    assert command("diff", "--format", "html", "-o", "/dev/full", *two).returncode == 1
    held = command("diff", "--format", "html", "--fail-if", "mr@1M > 0%", "-o", "/dev/null", *two)
    assert held.returncode == 3 and "holds" in held.stderr


def test_objects(cachegram, tmp_path):
    """Data is paired by name; a block by where it was allocated, also if that line has moved."""
    files, misses = [], []
    text = (TARGETS / "hot_matrix.c").read_text()
    for folder, source, rounds in (("before", text, 2), ("after", "\n\n\n" + text, 6)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "hot_matrix.c").write_text(source)
        files.append(tmp_path / f"{folder}.db")
        program = build_target(tmp_path / folder / "hot_matrix.c", tmp_path / folder)
        assert run([cachegram, "record", *FULL, "-o", files[-1], "--", program, rounds]).status == 0
        misses.append({row["object"]: float(row["misses_per_1000_refs"]) for row in csv_of("hotspots", "--by", "object", "--size", "32K", files[-1])})
    block, moved = (max(m, key=m.get) for m in misses)
    assert block.startswith("block of ") and block.rsplit(":", 1)[0] == moved.rsplit(":", 1)[0] and int(moved.rsplit(":", 1)[1]) == int(block.rsplit(":", 1)[1]) + 3
    rows = csv_of("diff", "--by", "object", "--size", "32K", *files)
    assert len({row["object"] for row in rows}) == len(rows) and moved not in {row["object"] for row in rows}
    for row in rows:
        after = misses[1].get(moved if row["object"] == block else row["object"], 0)
        assert float(row["before"]) == pytest.approx(misses[0].get(row["object"], 0), abs=1e-6), row
        assert float(row["after"]) == pytest.approx(after, abs=1e-6), row
    assert {row["object"] for row in rows} == ({*misses[0], *misses[1]} - {moved})
    # In text, data that does not miss is left out.
    shown = command("diff", "--by", "object", "--size", "32K", *files).stdout
    assert f"  {block}\n" in shown and "more data objects changed less, or do not miss." in shown and "0.000      0.000" not in shown
    assert "  0.000      0.000  " in command("diff", "--by", "object", "--size", "32K", "--limit", "0", *files).stdout
    table = json.loads(command("diff", "--by", "object", "--size", "32K", "--format", "json", *files).stdout)
    assert [row["object"] for row in table["objects"]] == [row["object"] for row in rows]


# --- the text, and JSON ---

def test_text_has_what_changed(two, tmp_path):
    """Functions, data objects and phases follow the curves: those that changed significantly, the largest changes first."""
    text = command("diff", *two).stdout
    curve = csv_of("diff", *two)
    significant = [r for r in curve if r["significant"] == "1"]
    assert f"Significant changes at {len(significant)} of 33 sizes." in text and "different names, phases and hot_matrix.\n" in text
    sizes = [re.match(r" *(\d+[KM]) +\S+% ", line)[1] for line in text.splitlines() if re.match(r" *\d+[KM] +\S+% ", line)]
    assert sizes == ["1K", "4K", "16K", "64K", "256K", "1M", "4M", "16M", "64M"]
    largest = max((r for r in significant if math.log2(int(r["size_bytes"])) % 1 == 0), key=lambda r: abs(float(r["delta"])))
    size = re.search(r"by function, where they changed significantly: LRU cache of (\S+)\n", text)[1]
    assert int(size[:-1]) * {"K": 1024, "M": 1 << 20}[size[-1]] == int(largest["size_bytes"])
    for by, what in (("function", "function"), ("object", "data object")):
        rows = [r for r in csv_of("diff", "--by", by, "--size", size, *two) if r["significant"] == "1" and abs(float(r["delta"])) >= 0.0005]
        part = text.split(f"by {what}, where they changed significantly")[1].split("\n\n")[0].splitlines()[2:]
        assert len(rows) > 5 and part[-1] == f"and {len(rows) - 5} more: --by {by} --size {size}"
        assert [line.split()[2] for line in part[:-1]] == [f"{float(r['delta']):+.3f}" for r in rows[:5]]
    assert text.endswith("\n") and "hase" in text.splitlines()[-1]
    # The same profile twice: nothing.
    same = command("diff", two[0], two[0]).stdout
    assert same.splitlines()[-3:] == [f"By {what}, no significant change of misses in a cache of 1M (--by {by} --size 1M: all)." for by, what in (("function", "function"), ("object", "data object"))] + \
        ["By phase, no significant change of miss ratios (--by phase: all)."]
    assert "different names" not in same and "changed significantly" not in same
    # --sizes: all of them.
    assert len(command("diff", "--sizes", "1K..2K", *two).stdout.split("low to high\n")[1].split("\n\n")[0].splitlines()) == 3


def test_json_has_all(two):
    data = json.loads(command("diff", "--format", "json", *two).stdout)
    assert [p["size_bytes"] for p in data["points"]] == [int(r["size_bytes"]) for r in csv_of("diff", *two)]
    for by in ("function", "object"):
        assert data[f"by_{by}"] == json.loads(command("diff", "--by", by, "--size", data[f"by_{by}"]["size_bytes"], "--format", "json", *two).stdout)
    assert data["by_phase"] == json.loads(command("diff", "--by", "phase", "--format", "json", *two).stdout)


def test_without_code(two, full):
    """One of them holds no code: the curves are compared, and the rest says why not."""
    for files in ((two[0], full), (full, two[0])):
        result = command("diff", *files)
        assert result.returncode == 0 and result.stderr == ""
        lines = result.stdout.splitlines()
        why = command("diff", "--by", "function", *files).stderr
        assert f"Not compared by function: {why.removeprefix('cachegram: ').strip()}" in lines
        assert any(line.startswith("Not compared by phase: ") for line in lines)
        data = json.loads(command("diff", "--format", "json", *files).stdout)
        assert data["by_function"] is data["by_object"] is data["by_phase"] is None and f"cachegram: {data['no_function']}\n" == why


def test_phases_that_changed(tmp_path):
    """The phase `a` has misses at 32 KB and above afterwards; `b` has not changed."""
    for name, bin in (("before", NEAR), ("after", FAR)):
        sampled_phases(tmp_path / f"{name}.db", "/bin/x", [({"a": 1000}, bin, 500), ({"b": 1000}, NEAR, 500)], rounds=8, bursts=10)
    files = tmp_path / "before.db", tmp_path / "after.db"
    text = command("diff", *files).stdout
    changed = [r for r in csv_of("diff", "--by", "phase", *files) if r["significant"] == "1" and r["delta"]]
    most = max(changed, key=lambda r: abs(float(r["delta"])))
    assert {r["phase_before"] for r in changed} == {"1"} and most["size_bytes"] == "32768"
    assert text.endswith("""
Phases with significant changes, and the largest of these:
  phase 1 (50.0% of the references) is now 1 (50.0%): +50.000 points at 32K
""")


def test_misses_that_are_gone(record, tmp_path):
    """Bursts that see no misses bound the misses of all functions by those of the whole program."""
    program = build_target(TARGETS / "micro.c", tmp_path)
    profiles = [record(["--gap-us", "2000", "--burst-refs", "30000"], [program, "random", size, "100000000"])[1] for size in (1 << 22, 1 << 14)]
    rows = csv_of("diff", "--by", "function", "--size", "512K", *profiles)
    gone = max(rows, key=lambda r: float(r["before"]))
    assert float(gone["before"]) > 300 and float(gone["after"]) < 1 and gone["significant"] == "1", gone
    # In full mode after is exact; from bursts it is at most what the curve says.
    most = float(csv_of("mrc", "--sizes", "512K", profiles[1])[0]["ci_high"])
    assert -float(gone["before"]) < float(gone["delta_high"]) < 0 and most < 0.05, (gone, most)
