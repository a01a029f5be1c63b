#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Sums up test results (JUnit XML, as meson and pytest write it) into 'N passed, N failed', after the names of those
that failed and of those that failed only once (repeat-failed.py).

usage: sum_tests.py PASSED FAILED FILE...     PASSED and FAILED: what was counted elsewhere
Exit status 1 if anything failed or nothing passed.
"""

import pathlib
import sys
import xml.etree.ElementTree as xml


def outcomes(case):
    return {child.tag for child in case}


def failed_cases(path):
    return [case for case in xml.parse(path).iter("testcase") if outcomes(case) & {"failure", "error"}]


def count(path):
    """Number of passed cases of one file, names of those that failed, and of those that passed when repeated."""
    not_passed = {"failure", "error", "skipped"}
    passed = sum(1 for case in xml.parse(path).iter("testcase") if not outcomes(case) & not_passed)
    repeated = pathlib.Path(path).with_suffix(".unstable")
    names = repeated.read_text().splitlines() if repeated.exists() else []
    failed, unstable = [], []
    for case in failed_cases(path):
        name = f"{path}: {case.get('classname', '')} {case.get('name', '')}"
        (unstable if case.get("name") in names else failed).append(name)
    return passed + len(unstable), failed, unstable


def main():
    passed, failed = int(sys.argv[1]), int(sys.argv[2])
    for path in sys.argv[3:]:
        try:
            more_passed, more_failed, unstable = count(path)
        except (OSError, xml.ParseError) as error:
            print(f"sum_tests.py: {path}: {error}", file=sys.stderr)
            more_passed, more_failed, unstable = 0, [f"{path}: cannot be read"], []
        passed += more_passed
        failed += len(more_failed)
        for name in more_failed:
            print(f"FAILED  {name}")
        for name in unstable:
            print(f"UNSTABLE  {name}")
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()
