# SPDX-License-Identifier: Apache-2.0
"""Code made at run time: named by the map that JIT compilers write for perf, and kept apart without one."""
import csv
import io
import pathlib
import re
import sqlite3

import pytest

from conftest import FULL, need, run

# Options and rounds.
MODES = {"full": (FULL, 40), "allowance": (["--allowance", "30s"], 40), "burst": (["--overhead", "50"], 4000)}


def hotspots(cachegram, db, *options):
    result = run([cachegram, "hotspots", "--format", "csv", "--size", "1M", *options, db])
    assert result.status == 0, result.err
    return list(csv.DictReader(io.StringIO(result.out.decode())))


def map_of(db):
    with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as con:
        return pathlib.Path(f"/tmp/perf-{con.execute('select pid from process').fetchone()[0]}.map")


@pytest.mark.parametrize("mode", MODES)
def test_named(built, record, cachegram, mode):
    result, db = record(MODES[mode][0], [built / "jit_map", MODES[mode][1]])
    written = map_of(db)
    try:
        assert result.status == 0, result.err
        rows = {row["function"]: row for row in hotspots(cachegram, db)}
        far, near = rows["walk_far /src/app.js:12"], rows["walk_near:<8 KB>"]
        assert far["module"] == near["module"] == str(written)
        assert float(far["miss_share"]) > 0.95 and float(far["miss_ratio"]) > (0.9 if mode != "burst" else 0.4)
        assert float(near["miss_ratio"]) < 0.05 and float(near["refs_share"]) > 0.1
        assert "removed again" not in rows
        annotated = run([cachegram, "annotate", db, "walk_far"]).out
        assert b"walk_far /src/app.js:12  (perf-" in annotated and b"JIT compiler" in annotated and b"compile with -g" not in annotated
        assert b"[jit]" not in run([cachegram, "hotspots", "--size", "1M", db]).out
        # Another machine has no map: the names are in the profile.
        written.unlink()
        assert hotspots(cachegram, db)[0]["function"] == "walk_far /src/app.js:12"
    finally:
        written.unlink(missing_ok=True)


def test_kept_apart_without_names(built, record, cachegram):
    result, db = record(FULL, [built / "jit_map", 40, "no-map"])
    assert result.status == 0
    rows = [row for row in hotspots(cachegram, db, "--by", "insn") if row["module"] == "[jit]" and float(row["refs_share"]) > 0.1]
    assert len(rows) == 2 and len({row["offset"] for row in rows}) == 2
    assert sorted(round(float(row["miss_ratio"])) for row in rows) == [0, 1]
    text = run([cachegram, "hotspots", "--size", "1M", db]).out.decode()
    assert "  [jit]" in text and "[[jit]]" not in text and "Note: [jit] is code made at run time" in text


# Rounds: in full mode a map's times are as exact as the file's, which is some milliseconds.
REPLACED = {"full": (FULL, 400), "burst": (["--overhead", "50"], 8000)}


@pytest.mark.parametrize("how", ["map", "dump", "dump-header"])
@pytest.mark.parametrize("mode", REPLACED)
def test_replaced(mode, how, built, record, cachegram, tmp_path):
    """Two functions of the same instructions, one after the other at the same place."""
    source = tmp_path / "walk.src"
    source.write_text("function walk\n  sum = 0\n  sum += table[at]\n  at++\n")
    result, db = record(REPLACED[mode][0], [built / "jit_replace", REPLACED[mode][1], how, source], cwd=tmp_path)
    try:
        assert result.status == 0, result.err
        rows = {row["function"]: row for row in hotspots(cachegram, db)}
        far, near = rows["walk_far"], rows["walk_near"]
        assert float(far["miss_share"]) > 0.95 and float(far["miss_ratio"]) > (0.95 if mode == "full" else 0.5)
        assert float(near["miss_ratio"]) < 0.05
        least = 0.4 if mode == "full" else 0.15  # bursts are few
        assert float(far["refs_share"]) > least and float(near["refs_share"]) > least
        places = [row for row in hotspots(cachegram, db, "--by", "insn") if float(row["refs_share"]) > 0.1]
        assert {row["function"] for row in places} == {"walk_far", "walk_near"}
        assert places[0]["offset"] == places[1]["offset"]
        with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as con:
            assert con.execute("select count(*) from frame where function = 'walk_far' and line = 3").fetchone()[0] == (how != "map")
        annotated = run([cachegram, "annotate", "--size", "1M", db, "walk_far"]).out.decode()
        if how == "map":
            assert "No line numbers" in annotated
        else:
            assert str(source) in annotated
            share = re.search(r"([\d.]+)% .* 3    sum \+= table\[at\]$", annotated, re.M)
            assert share and float(share[1]) > 95, annotated
    finally:
        map_of(db).unlink(missing_ok=True)


def test_replaced_without_times(built, record, cachegram, tmp_path):
    """The last name counts."""
    result, db = record(FULL, [built / "jit_replace", 40, "dump-no-times"], cwd=tmp_path)
    assert result.status == 0, result.err
    rows = {row["function"]: row for row in hotspots(cachegram, db)}
    assert float(rows["walk_near"]["refs_share"]) > 0.9 and "walk_far" not in rows


@pytest.mark.parametrize("way", ["--perf-basic-prof", "--perf-prof"])
def test_node(way, record, cachegram, tmp_path):
    """A real JIT compiler: the function of the script is named with its file, by a map or by a jitdump."""
    script = tmp_path / "app.js"
    script.write_text("""
function shuffled(table, steps) {
  let at = 0, sum = 0;
  for (let i = 0; i < steps; i++) { at = (at * 1103515245 + 12345) & (table.length - 1); sum += table[at]; }
  return sum;
}
const table = new Int32Array(1 << 22);
let sum = 0;
for (let k = 0; k < 60; k++) sum += shuffled(table, 1000000);
console.log(sum);
""")
    result, db = record(["--overhead", "50"], [need("node"), way, script], cwd=tmp_path)
    assert (result.status, result.out) == (0, b"0\n"), result.err
    try:
        first = hotspots(cachegram, db)[0]
        assert re.search(r"shuffled .*app\.js:2", first["function"]), first
        assert re.fullmatch(r"/tmp/perf-\d+\.map" if way == "--perf-basic-prof" else rf"{tmp_path}/jit-\d+\.dump", first["module"])
        if way == "--perf-prof":
            annotated = run([cachegram, "annotate", "--size", "1M", db, "shuffled"]).out.decode()
            assert str(script) in annotated
            share = re.search(r"([\d.]+)% .* 4    for \(let i = 0", annotated)
            assert share and float(share[1]) > 50, annotated
    finally:
        map_of(db).unlink(missing_ok=True)


def test_node_replaced(record, cachegram, tmp_path):
    """A real JIT compiler that frees code and uses the memory again: of 40 functions every other one misses."""
    script = tmp_path / "churn.js"
    script.write_text("""
const table = new Int32Array(1 << 22);
let sum = 0;
for (let r = 0; r < 40; r++) {
  const mask = r % 2 === 0 ? (1 << 22) - 1 : 1023;
  const f = new Function('t', 'n', `function walk${r}(t, n) { let at = ${r}, s = 0;
    for (let i = 0; i < n; i++) { at = (at * 1103515245 + 12345) & ${mask}; s += t[at]; } return s; }
    let x = 0; for (let k = 0; k < 40; k++) x += walk${r}(t, n); return x;`);
  sum += f(table, 200000);
  if (r % 4 === 3) gc();
}
console.log(sum);
""")
    result, db = record(["--overhead", "100"], [need("node"), "--perf-prof", "--expose-gc", script], cwd=tmp_path)
    assert (result.status, result.out) == (0, b"0\n"), result.err
    misses = {}
    for row in hotspots(cachegram, db):
        if walk := re.search(r"walk(\d+) ", row["function"]):
            misses[int(walk[1])] = misses.get(int(walk[1]), 0) + float(row["miss_share"])
    assert sum(share for number, share in misses.items() if number % 2 == 1) < 0.01
    assert sum(share > 0.001 for number, share in misses.items() if number % 2 == 0) >= 12, misses
