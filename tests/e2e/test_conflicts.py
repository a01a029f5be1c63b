# SPDX-License-Identifier: Apache-2.0
"""Arrays whose lines all belong to one set of a cache: the report names the data, the function and the line; a line more
between the arrays, and there is no such finding.
"""
import csv
import io
import json
import re
import sqlite3

import pytest

from conftest import MODES, TARGETS, build_target, compile_text, run

OPTIONS = {"full": (MODES["full"], 200), "default": ([], 5000), "burst": ([*MODES["burst"], "--allowance", "0"], 20000)}
SOURCE = "hot_conflicts.c"


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return build_target(TARGETS / SOURCE, tmp_path_factory.mktemp("conflicts"))


def record(cachegram, db, mode, program, gap):
    options, rounds = OPTIONS[mode]
    result = run([cachegram, "record", *options, "-o", db, "--", program, gap, rounds])
    assert result.status == 0, result.err
    return json.loads(run([cachegram, "report", "--format", "json", db]).out)["conflicts"]


@pytest.mark.parametrize("mode", OPTIONS)
def test_twelve_arrays(mode, program, cachegram, tmp_path):
    db = tmp_path / "p.db"
    found = record(cachegram, db, mode, program, 0)
    line = next(i for i, text in enumerate((TARGETS / SOURCE).read_text().splitlines(), 1) if text.endswith("// conflicts"))
    assert [(f["function"], f["line"], f["object"]) for f in found] == [("sum_all", line, "memory")]
    assert 0.8 < found[0]["share"] < 0.88  # all references but one of the eight to each line
    text = run([cachegram, "report", db]).out.decode()
    assert re.search(rf"^At least about \d+% of the references are to lines of memory that a cache of 32K with 8 ways has lost.*\(conflicts\), mostly in "
                     rf"sum_all \({SOURCE}:{line}\)\. More than 8 lines in use are multiples of 4096 bytes apart", text, re.M)
    # In the tables: `hotspots` by what one likes, and `causes`.
    for by in ("object", "line", "function,object"):
        rows = list(csv.DictReader(io.StringIO(run([cachegram, "hotspots", "--by", by, "--format", "csv", db]).out.decode())))
        worst = max(rows, key=lambda row: float(row["conflict_share"]))
        assert (worst["function"], worst["line"], worst["object"]) == ("" if by == "object" else "sum_all", str(line) if by == "line" else "",
                                                                       "" if by == "line" else "memory")
        assert float(worst["conflict_share"]) == pytest.approx(found[0]["share"], abs=0.01)
    data = json.loads(run([cachegram, "causes", "--size", "32K", "--format", "json", db]).out)
    assert data["conflicts"][0] == {"victim": "memory", "refs_share": pytest.approx(found[0]["share"], abs=1e-6)}
    text = run([cachegram, "causes", "--size", "32K", db]).out.decode()
    assert re.search(r"In one of 32K with 64 sets of 8 lines.*^ *8\d\.\d+% +memory$", text, re.M | re.S)


@pytest.mark.parametrize("mode", OPTIONS)
def test_no_more_than_the_references(mode, program, cachegram, tmp_path):
    """Conflicts are looked for in pieces of the run: were these only what has conflicts, it is not all of the run."""
    db = tmp_path / "p.db"
    record(cachegram, db, mode, program, 0)
    with sqlite3.connect(db) as connection:
        connection.execute("UPDATE run SET value = value * 0.5 WHERE key = 'conflict_refs'")
    [row] = [row for row in csv.DictReader(io.StringIO(run([cachegram, "hotspots", "--by", "object", "--format", "csv", db]).out.decode()))
             if row["object"] == "memory"]
    assert 0.8 < float(row["refs_share"]) <= 1 and row["conflict_share"] == row["refs_share"]
    [found] = json.loads(run([cachegram, "report", "--format", "json", db]).out)["conflicts"]
    # Of another size; what string instructions do that no burst has is in the shares where it is much of the misses.
    assert found["share"] == pytest.approx(float(row["refs_share"]), abs=1e-4)


@pytest.mark.parametrize("mode", OPTIONS)
def test_a_line_between_them(mode, program, cachegram, tmp_path):
    db = tmp_path / "p.db"
    assert record(cachegram, db, mode, program, 64) == []
    assert "(conflicts)" not in run([cachegram, "report", db]).out.decode()
    assert "'cachegram sim --causes' shows conflicts" in run([cachegram, "causes", db]).out.decode()
    with sqlite3.connect(db) as connection:
        assert connection.execute("SELECT value FROM run WHERE key = 'conflict_refs'").fetchone()[0] > 1000
        connection.execute("DROP TABLE conflict")
        connection.execute("DELETE FROM run WHERE key = 'conflict_refs'")
    assert json.loads(run([cachegram, "report", "--format", "json", db]).out)["conflicts"] == []
    rows = csv.DictReader(io.StringIO(run([cachegram, "hotspots", "--format", "csv", db]).out.decode()))
    assert {row["conflict_share"] for row in rows} == {""}


STACK = """static __attribute__((noipa)) long walk(void)
{
    volatile char rows[20 * 4096];
    long sum = 0;
    for (int i = 0; i < 20 * 4096; i += 4096)
        rows[i] = 1;
    for (int k = 0; k < 20000; k++)
        for (int i = 0; i < 20 * 4096; i += 4096)
            sum += rows[i];
    return sum;
}
int main(void) { return walk() == 0; }
"""


def test_conflicts_on_a_stack(cachegram, tmp_path):
    """Of the stack as a whole (there is no debug information) nobody can make rows longer."""
    compile_text(tmp_path / "a.c", STACK, "-O1")
    assert run([cachegram, "record", *MODES["full"], "-o", tmp_path / "p.db", "--", tmp_path / "a"]).status == 0
    text = run([cachegram, "report", tmp_path / "p.db"]).out.decode()
    assert re.search(r"lines of the stack of main thread that a cache of 32K .*mostly in walk\. More than 8 lines in use are multiples of 4096 "
                     r"bytes apart\.$", text, re.M)
