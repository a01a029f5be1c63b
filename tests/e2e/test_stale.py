# SPDX-License-Identifier: Apache-2.0
"""Code that changes while it is profiled: what is run is what a native run would execute (tests/targets/stale.c)."""
import re

import pytest

from conftest import TARGETS, build_target, run, totals

DEBUG_INFO = False

MODES = {"default": ["--allowance", "1s"], "gap": ["--gap-us", "500"], "full": ["--mode", "full"],
         "lines": ["--mode", "full", "--lines", "1/16"],
         "count": ["--clock", "count-always"], "switch": ["CACHEGRAM_DEBUG=switch-ms=2"]}
# Between two changes: bursts are few, and one must meet code that was changed since the last.
CALLS = {"default": 200, "gap": 4000, "full": 200, "lines": 200, "count": 200, "switch": 1000}


@pytest.fixture(scope="module")
def stale(tmp_path_factory):
    return build_target(TARGETS / "stale.c", tmp_path_factory.mktemp("stale"))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("who", ["self", "threads", "outside"])
def test_changed_code(record, stale, tmp_path, who, mode):
    argv = [stale, tmp_path, who, CALLS[mode]]
    native = run(argv)
    assert native.status == 0, native.out
    result, db = record(MODES[mode], argv)
    assert (result.status, result.out) == (0, native.out)
    if mode in ("full", "lines"):
        calls, loads = map(int, re.search(rb"(\d+) calls, (\d+) loads each", native.out).groups())
        # Run natively, without a profile of it, the code would be right, too.
        assert totals(db)["loads"] > 0.98 * calls * loads


@pytest.mark.parametrize("mode", MODES)
def test_code_that_cannot_be_fetched(record, tmp_path, mode):
    target = build_target(TARGETS / "stale_faults.c", tmp_path)
    native = run([target])
    assert native.status == 0 and native.out.count(b"then signal 11 at +4096") == 7, native.out
    result, _ = record(MODES[mode], [target])
    assert (result.status, result.out) == (0, native.out)
