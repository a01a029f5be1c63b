# SPDX-License-Identifier: Apache-2.0
"""What the hunt (tests/hunt) found and was fixed: the smallest programs, in all of the hunt's modes."""
import sys

import pytest

from conftest import ROOT, run_natively, target_environment, work_divisor

sys.path.insert(0, str(ROOT / "tests" / "hunt"))
from hunt import MODES as HUNTED  # noqa: E402

DEBUG_INFO = False

MODES = {**HUNTED, "unwatched": ["--gap-us", "500", "--watch", "none"]}

SCENES = ["masked-makers", "full-queue", "makers-on-own-stacks", "sent-faults", "constructor",
          "untouched", "strict-children", "raw-altstacks", "raw-child-masks", "blocked-forks",
          "forking-threads", "edited-entries", "interrupted-maskers", "blocked-efault",
          "grows-down", "handler-contexts", "forks-beside-makers", "interrupted-masks", "user-changes",
          "raw-handlers-interrupted", "changed-jumps", "fetch-faults", "forks-in-vfork", "faults-in-vfork", "forks-beside-loads", "calls-of-coroutines",
          "blocked-coroutines", "execs-beside-new-threads"]


@pytest.mark.in_turns
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("scene", SCENES)
def test_hunted(built, record, scene, mode):
    argv = [built / "hunted", scene]
    divisor = work_divisor(MODES[mode])
    native = run_natively(*argv, divisor=divisor)
    assert (native.status, native.out) == (0, b"wrong 0\n")
    result, _ = record(MODES[mode], argv, env=target_environment(divisor))
    assert (result.status, result.out) == (native.status, native.out), result.summary


@pytest.mark.parametrize("time", range(5))
def test_execs_while_modes_change(built, record, time):
    """A new thread that still has the trap flag while SIGTRAP is ignored for an exec would be killed."""
    result, _ = record(["CACHEGRAM_DEBUG=switch-ms=1", "--allowance", "30ms"], [built / "hunted", SCENES[-1]])
    assert (result.status, result.out) == (0, b"wrong 0\n"), result.summary
