# SPDX-License-Identifier: Apache-2.0
"""diff: changes of two profiles, their significance, and conditions that decide the exit status."""
import csv
import io
import json
import math
import re
import sqlite3

import pytest

from test_cli import cachegram, burst, full, make, one_line, put  # noqa: F401 (fixtures)


@pytest.fixture
def better(tmp_path):
    """As full, but the 20 references at distance 100 are at distance 0."""
    path = tmp_path / "better.db"
    db = make(path, "full", references=100, cold=10, loads=70, stores=30)
    for kind in ("stack", "reuse"):
        put(db, 0, kind, {0: 80, 1000: 10})
    db.commit()
    db.close()
    return path


def test_commands_that_are_named(tmp_path):
    """They show what the text is about: with a cache for each thread, if that was asked for."""
    assert cachegram("record", "--mode", "full", "-o", tmp_path / "p.db", "--", "true").returncode == 0
    for options in [], ["--threads", "separate"]:
        text = cachegram("diff", *options, tmp_path / "p.db", tmp_path / "p.db").stdout
        named = re.findall(r"--by (?:function|object) --size 1M(.*): all\)", text)
        assert [more.split() for more in named] == [options] * 2, text


@pytest.fixture
def noisy(tmp_path):
    """Bursts of which two in twenty miss more: what bursts of the same program show by chance."""
    path = tmp_path / "noisy.db"
    db = make(path, "burst")
    for i in range(1, 21):
        db.execute("INSERT INTO burst(id, process, tid, refs, loads, stores, end_code, end_reason, weight) "
                   "VALUES(?,1,?,1000,600,400,1,'full',1)", (i, 100 + i % 2))
        more = 5 * (i % 3 - 1)
        put(db, i, "stack", {0: 700 - more, 40 + i: 200 + more})
        put(db, i, "reuse", {0: 700 - more, 60 + i: 200 + more})
        put(db, i, "first", {k: 1 for k in range(100)})
        put(db, i, "age", {k: 1 for k in range(100)})
    db.commit()
    db.close()
    return path


def rows(*args):
    result = cachegram("diff", "--format", "csv", *args)
    assert result.returncode == 0, result.stderr
    return list(csv.DictReader(io.StringIO(result.stdout)))


def test_exact_change(full, better):
    small, large = rows("--sizes", "4K,1M", full, better)
    assert (float(small["before"]), float(small["after"])) == pytest.approx((0.4, 0.2))
    assert float(small["delta"]) == pytest.approx(-0.2) and small["significant"] == "1"
    assert float(small["delta_low"]) == float(small["delta_high"]) == float(small["delta"])
    assert float(large["delta"]) == 0 and large["significant"] == "0"


def test_values_are_those_of_mrc(burst, noisy):
    changes = rows(burst, noisy)
    for file, key in ((burst, "before"), (noisy, "after")):
        curve = list(csv.DictReader(io.StringIO(cachegram("mrc", file, "--format", "csv").stdout)))
        assert [r["size_bytes"] for r in changes] == [r["size_bytes"] for r in curve]
        assert [r[key] for r in changes] == [r["miss_ratio"] for r in curve]
    assert any(r["delta"] == "" for r in changes) and any(r["delta"] for r in changes)


def test_chance_is_not_significant(burst, noisy):
    change, = rows("--sizes", "1K", burst, noisy)
    low, high = float(change["delta_low"]), float(change["delta_high"])
    assert low < float(change["delta"]) < high and low < 0 < high and change["significant"] == "0"
    curves = [next(csv.DictReader(io.StringIO(cachegram("mrc", f, "--format", "csv", "--sizes", "1K").stdout)))
              for f in (burst, noisy)]
    down = float(curves[0]["ci_high"]) - float(curves[0]["miss_ratio"]), float(curves[1]["miss_ratio"]) - float(curves[1]["ci_low"])
    assert low == pytest.approx(float(change["delta"]) - math.hypot(*down))


def test_json_agrees_with_csv(burst, noisy):
    found = json.loads(cachegram("diff", "--format", "json", burst, noisy).stdout)
    assert (found["before"], found["after"]) == (str(burst), str(noisy))
    for point, row in zip(found["points"], rows(burst, noisy), strict=True):
        assert point["significant"] == (row["significant"] == "1")
        for key in ("before", "after", "delta", "delta_low", "delta_high"):
            assert point[key] is None and row[key] == "" or point[key] == float(row[key])


def test_text_says_which_way(full, better):
    shown = cachegram("diff", "--sizes", "4K,1M", full, better).stdout
    assert "Significant changes at 1 of 2 sizes." in shown and "Largest decrease: -20.000 points at 4K." in shown
    assert "-20.000  -20.000 to -20.000  fewer misses" in shown
    assert "more misses" in cachegram("diff", "--sizes", "4K,1M", better, full).stdout


@pytest.mark.parametrize("condition, status", [
    ("mr@4K > +0.5%", 0), ("mr@4K < -0.5%", 3), ("mr@4K<-0.19", 3), ("mr@4K < -20.1%", 0), ("mr@4K > 19%", 3), ("mr@4K > 21%", 0),
    ("mr@1M >= 10%", 3), ("mr@1M > 10%", 0), ("mr@6464 < 50%", 3), ("mr@1M >= +0%", 0)])
def test_condition_decides_the_status(full, better, condition, status):
    """The last one: no change is never significant."""
    result = cachegram("diff", "--sizes", "1K", "--fail-if", condition, full, better)
    assert result.returncode == status and result.stdout
    assert (f"'{condition}' holds" in result.stderr) == (status == 3)
    # Only a change has a sign.
    assert ("the change is -20.000 points" in result.stderr) == (status == 3 and "-" in condition)
    assert ("the miss ratio is +" in result.stderr) is False and ("the miss ratio is " in result.stderr) == (status == 3 and "-" not in condition)


def test_condition_without_samples(burst):
    result = cachegram("diff", "--fail-if", "mr@64M > 5%", burst, burst)
    assert result.returncode == 1 and "cannot be decided" in result.stderr and result.stdout
    worse = cachegram("diff", "--fail-if", "mr@64M > 5%", "--fail-if", "mr@1K > 5%", burst, burst)
    assert worse.returncode == 3


@pytest.mark.parametrize("condition", ["", "mr", "mr@", "mr@1M", "mr@1M >", "mr@1M > x", "mr@1M > +", "mr@1M => 3", "mr@0 > 1",
                                       "mr@1M > 5% x", "mr@1M > nan", "ipc@1M > 1"])
def test_wrong_condition(full, condition):
    assert "must be a condition" in one_line(cachegram("diff", "--fail-if", condition, full, full), 2)


@pytest.mark.parametrize("condition", ["mr@1M > 5", "mr@1M > +2", "mr@1M < -1.5", "mr@1M > 101%"])
def test_condition_beyond_ratios(full, condition):
    """It would never hold: the percent sign was forgotten."""
    assert "must be a condition on a ratio of at most 1, or a percentage" in one_line(cachegram("diff", "--fail-if", condition, full, full), 2)


def test_wrong_usage(full, tmp_path):
    assert "two profiles" in one_line(cachegram("diff", full), 2)
    assert "surplus: x" in one_line(cachegram("diff", full, full, "x"), 2)
    assert "--size instead" in one_line(cachegram("diff", "--by", "function", "--sizes", "1K", full, full), 2)
    assert "needs --by function" in one_line(cachegram("diff", "--size", "1K", full, full), 2)
    assert "there is no profile" in one_line(cachegram("diff", full, tmp_path / "no.db"), 1)


@pytest.mark.parametrize("mode, references, note", [
    ("full", 1500, "Note: 1000 references before, 1500 after (+50%): misses did not change by the same factor as miss ratios."),
    ("full", 1010, None), ("burst", 1500, None)])
def test_numbers_of_references(full, better, mode, references, note):
    """Of two complete profiles: one with many more references may have more misses and a lower ratio."""
    for file, value in ((full, 1000), (better, references)):
        with sqlite3.connect(file) as db:
            db.executemany("INSERT OR REPLACE INTO run VALUES(?, ?)", (("references", value), ("mode", mode)))
    notes = [line for line in cachegram("diff", full, better).stdout.splitlines() if "references before" in line]
    assert notes == ([note] if note else [])


@pytest.mark.parametrize("key, first, second, note", [
    ("cpu", "Xeon A", "EPYC B", "Note: they ran on different machines, with Xeon A and EPYC B: libraries may have chosen other code."),
    ("command", "/bin/one -x y", "two x", "Note: the programs have different names, one and two."), ("cpu", "Xeon A", "", None), ("command", "/a/one x", "/b/one y", None)])
def test_notes(full, better, key, first, second, note):
    for file, value in ((full, first), (better, second)):
        with sqlite3.connect(file) as db:
            db.execute("INSERT OR REPLACE INTO run VALUES(?, ?)", (key, value))
    notes = [line for line in cachegram("diff", full, better).stdout.splitlines() if line.startswith("Note")]
    assert notes == ([note] if note else [])


def test_line_sizes_must_agree(full, tmp_path):
    other = tmp_path / "other.db"
    db = make(other, "full", references=100, cold=10, line_bytes=128)
    put(db, 0, "stack", {0: 90})
    put(db, 0, "reuse", {0: 90})
    db.commit()
    db.close()
    for command in (["diff"], ["diff", "--by", "function"], ["diff", "--by", "object"], ["diff", "--by", "phase"], ["verify"]):
        assert "lines of 64 bytes" in one_line(cachegram(*command, full, other), 1)


def test_verify_warns_of_other_commands(full, better):
    assert cachegram("verify", full, better).stderr == ""
    with sqlite3.connect(better) as db:
        db.execute("UPDATE run SET value = './other' WHERE key = 'command'")
    warning = cachegram("verify", full, better).stderr
    assert warning.startswith("cachegram: warning: ") and "are of different commands" in warning and warning.count("\n") == 1
