# SPDX-License-Identifier: Apache-2.0
"""CPython's own test suite reaches the same verdict on every test under frequent bursts as alone."""
import re

import pytest

from e2e_conftest import need, run, totals

OFTEN = ["--mode", "burst", "--burst-refs", "30000", "--gap-us", "500"]
SUITES = ["test_signal", "test_threading", "test_subprocess", "test_faulthandler", "test_ctypes", "test_mmap",
          "test_socket", "test_asyncio", "test_json", "test_re", "test_zlib", "test_hashlib"]


def verdicts(output):
    """{test: ok | skipped | FAIL | ERROR ...} of unittest's verbose lines; those that print in between are lost."""
    found = {}
    for line in output.decode(errors="replace").splitlines():
        match = re.match(r"(\w+ \([\w.]+\)).*?\.\.\. (ok|skipped|FAIL|ERROR|expected failure)", line)
        if match:
            found[match[1]] = match[2]
    return found


@pytest.mark.parametrize("suite", SUITES)
def test_suite(record, tmp_path, suite):
    python = need("/usr/bin/python3")
    # A virtual machine may have a VSOCK device that no one answers on: that hangs natively.
    argv = [python, "-m", "test", "-v", "-u", "none", "-i", "*VSOCK*", suite]
    native = run(argv, cwd=tmp_path, timeout=900)
    before = verdicts(native.out + native.err)
    assert before, native.err[-500:]
    result, db = record(OFTEN, argv, cwd=tmp_path, timeout=1800)
    after = verdicts(result.out + result.err)
    changed = {t: (v, after.get(t)) for t, v in before.items() if after.get(t) in ("FAIL", "ERROR") and v != after[t]}
    assert not changed
    # A test whose line is missing did not end: the suite was cut short.
    assert len(after) >= 0.99 * len(before)
    assert result.status == native.status
    assert totals(db)["references"] > 0
