#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Sums up test results (JUnit XML, as meson and pytest write it) into 'N passed, N failed', after the names of those
that failed.

usage: sum-tests.py PASSED FAILED FILE...     PASSED and FAILED: what was counted elsewhere
Exit status 1 if anything failed or nothing passed.
"""

import sys
import xml.etree.ElementTree as xml


def count(path):
    """Number of passed and names of failed cases of one file; skipped ones are neither."""
    passed, failed = 0, []
    for case in xml.parse(path).iter("testcase"):
        outcomes = {child.tag for child in case}
        if outcomes & {"failure", "error"}:
            failed.append(f"{path}: {case.get('classname', '')} {case.get('name', '')}")
        elif "skipped" not in outcomes:
            passed += 1
    return passed, failed


def main():
    passed, failed = int(sys.argv[1]), int(sys.argv[2])
    for path in sys.argv[3:]:
        try:
            more_passed, more_failed = count(path)
        except (OSError, xml.ParseError) as error:
            print(f"sum-tests.py: {path}: {error}", file=sys.stderr)
            more_passed, more_failed = 0, [f"{path}: cannot be read"]
        passed += more_passed
        failed += len(more_failed)
        for name in more_failed:
            print(f"FAILED  {name}")
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()
