# SPDX-License-Identifier: Apache-2.0
"""Functions that the agent interposes, and system calls that it makes for the target, do what libc and the kernel do:
the same result, errno and effect, whatever the arguments. tests/targets/call_arguments.c says what is tried.
"""
import difflib
import sqlite3

import pytest

from conftest import run_keys, run_natively, totals

DEBUG_INFO = False

MODES = {
    "default": ["--allowance", "1s"],
    "early": ["--allowance", "100ms"],
    "switch": ["CACHEGRAM_DEBUG=switch-ms=2"],
    "bursts": ["--gap-us", "500"],
    "watch": ["--gap-us", "500", "CACHEGRAM_DEBUG=watch-lines=32"],
    "full": ["--mode", "full"],
    "count": ["--clock", "count-always"],
}


def check(built, record, options, *arguments, wrap=()):
    argv = [built / "call_arguments", *arguments]
    alone = run_natively(*argv)
    assert alone.status == 0 and alone.out.endswith(b"end\n"), alone.out[-300:]
    result, db = record(options, argv, wrap=wrap)
    different = "\n".join(difflib.unified_diff(alone.out.decode().splitlines(), result.out.decode().splitlines(),
                                               "alone", "recorded", n=0, lineterm=""))
    assert (result.status, different) == (0, ""), different[:3000]
    # It could have taken a question for a filter. In a child, and where timers are refused, others are off, too.
    if not arguments and not wrap:
        with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as con:
            off = con.execute("select value from counter where name = 'disabled' and process ="
                              " (select min(process) from counter)").fetchone()
        assert off is None or off[0] == 0, "the agent was off before the end"
    return db


@pytest.mark.parametrize("mode", MODES)
def test_one_thread(built, record, mode):
    db = check(built, record, MODES[mode])
    if mode in ("bursts", "watch", "full"):  # the others may find it too short for a burst
        assert totals(db)["references"] > 0
    if mode == "count":
        assert float(run_keys(db)["clock_references"]) > 0


@pytest.mark.parametrize("mode", MODES)
def test_with_another_thread(built, record, mode):
    """Where pages may be protected, calls are diverted to the agent all the time."""
    check(built, record, MODES[mode], "threads")


@pytest.mark.parametrize("options", [["--gap-us", "500"], ["--mode", "full"], ["--no-follow"]], ids="-".join)
def test_forked(built, record, options):
    """A child; not followed, it has its signals back."""
    check(built, record, options, "fork")


def test_no_signal_can_be_queued(built, record):
    """The agent sends itself signals: the kernel drops what they tell if it may not queue one more for the user."""
    db = check(built, record, ["--mode", "full"], wrap=["prlimit", "--sigpending=0"])
    assert totals(db)["references"] > 0
