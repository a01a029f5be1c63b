# SPDX-License-Identifier: Apache-2.0
"""record --reduce: less is made of the same references."""
import sqlite3

import pytest

from conftest import MODES, need, run, totals
from test_harmless import text


@pytest.mark.parametrize("mode", MODES)
def test_reduce(cachegram, record, tmp_path, mode):
    argv = [need("gzip"), "-c", text(tmp_path / "in", 300000 if mode == "full" else 3000000)]  # many gaps long
    seen = {}
    for way in ("none", "counts", "distances"):
        # Without address randomisation start-up touches the same in all runs.
        result, db = record([*MODES[mode], "--reduce", way], argv, wrap=["setarch", "-R"])
        assert result.status == 0, result.err
        seen[way] = totals(db)
        curve = run([cachegram, "mrc", "--sizes", "32K", db])
        assert (curve.status == 0) == (way == "distances"), curve.err
        assert (b"this profile has no curve" in result.summary) == (way != "distances")
    assert seen["none"]["references"] == 0
    if mode == "full":
        assert seen["counts"] == seen["distances"]
        assert seen["counts"]["references"] > 1000000
    else:  # bursts are at random places
        assert seen["counts"]["bursts"] > 0 and seen["counts"]["loads"] > seen["counts"]["stores"] > 0


def test_string_instructions_take_no_hours(record, built):
    """A burst of one instruction that makes a hundred million references is looked at in part: of each word of a record, and
    of a string instruction, so many lines at most."""
    argv = [built / "rep_store"]
    result, db = record(["--gap-us", "20000"], argv)
    assert result.status == 0 and result.out == run(argv).out, result.err
    with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as con:
        bursts = con.execute("SELECT lines, words FROM burst").fetchall()
    assert bursts and all(lines <= 8 * words + 65536 + 2 * 8192 for lines, words in bursts)
