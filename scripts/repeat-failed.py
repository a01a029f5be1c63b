#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs again what failed in a run of pytest: the tests of live recordings depend on the machine, and a rare failure
must be seen without hiding everything else.

usage: repeat-failed.py FILE        FILE: the JUnit XML of that run

At most ten failed tests are repeated, three times each and alone. The names of those that passed each time are
written to FILE.unstable, for sum_tests.py: they are listed as UNSTABLE instead of FAILED, and their first failure
is in the log. Each is a fault of the product or of the test that somebody must find.
"""

import pathlib
import subprocess
import sys

from sum_tests import failed_cases

MOST = 10
TIMES = 3


def passes(case):
    test = case.get("classname").replace(".", "/") + ".py::" + case.get("name")
    print(f"== Again, {TIMES} times: {test}", flush=True)
    command = ["/usr/bin/python3", "-m", "pytest", "-q", "-p", "no:cacheprovider", test]
    return all(subprocess.run(command, check=False).returncode == 0 for _ in range(TIMES))


def main():
    path = pathlib.Path(sys.argv[1])
    cases = failed_cases(path)
    if len(cases) > MOST:
        return
    unstable = [case.get("name") for case in cases if passes(case)]
    path.with_suffix(".unstable").write_text("".join(name + "\n" for name in unstable))


if __name__ == "__main__":
    main()
