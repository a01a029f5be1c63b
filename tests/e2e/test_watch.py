# SPDX-License-Identifier: Apache-2.0
"""Watched lines do a program no harm: pages closed as often and as many as can be, and all is as it is alone.

The targets check their own system calls, faults and memory and count what went wrong (tests/targets/watched.h).
"""
import sqlite3

import pytest

from conftest import run

# Bursts as often as can be, half of the table filled after each; without counting before bursts, which else
# takes most of the time of such short gaps.
HARD = ["--burst-refs", "30000", "--gap-us", "500", "--clock", "cputime", "--watch-lines", "32"]


def counters(db):
    with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as con:
        return dict(con.execute("select name, sum(value) from counter group by name"))


def same(record, argv, **how):
    native = run(argv, **how)
    result, db = record(HARD, argv, **how)
    assert (result.status, result.out, result.err) == (native.status, native.out, native.err), result.summary
    count = counters(db)
    assert count["watch_faults"] > 50, "nothing was watched, so nothing was tested"
    return native, count


def test_system_calls(built, record):
    native, count = same(record, [built / "watched_calls"])
    assert b"wrong 0" in native.out
    assert count["watch_calls"] > 100


@pytest.mark.parametrize("what", ["faults", "altstack", "coroutines", "masks", "blocked", "raw"])
def test_signals(built, record, what):
    native, _ = same(record, [built / "watched_signals", what])
    assert native.status == 139 if what == "blocked" else b"wrong 0 foreign 0" in native.out
