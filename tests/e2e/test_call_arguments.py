# SPDX-License-Identifier: Apache-2.0
"""Functions that the agent interposes, and system calls that it makes for the target, do what libc and the kernel do:
the same result, errno and effect, whatever the arguments. tests/targets/call_arguments.c says what is tried.
"""
import difflib

import pytest

from conftest import run, run_keys, totals

MODES = {
    "default": [],
    "bursts": ["--gap-us", "500"],
    "watch": ["--gap-us", "500", "--watch-lines", "32"],
    "full": ["--mode", "full"],
    "count": ["--clock", "count-always"],
}


def check(built, record, mode, *arguments):
    argv = [built / "call_arguments", *arguments]
    alone = run(argv)
    assert alone.status == 0 and alone.out.endswith(b"end\n"), alone.out[-300:]
    result, db = record(MODES[mode], argv)
    different = "\n".join(difflib.unified_diff(alone.out.decode().splitlines(), result.out.decode().splitlines(),
                                               "alone", "recorded", n=0, lineterm=""))
    # The recorder would say so if the agent had turned itself off.
    assert (result.status, different, result.err) == (0, "", alone.err), different[:3000]
    return db


@pytest.mark.parametrize("mode", MODES)
def test_one_thread(built, record, mode):
    db = check(built, record, mode)
    if mode in ("bursts", "watch", "full"):  # the others may find it too short for a burst
        assert totals(db)["references"] > 0
    if mode == "count":
        assert float(run_keys(db)["clock_references"]) > 0


@pytest.mark.parametrize("mode", MODES)
def test_beside_another_thread(built, record, mode):
    """Where pages may be closed, calls are diverted to the agent all the time."""
    check(built, record, mode, "threads")
