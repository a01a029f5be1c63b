# SPDX-License-Identifier: Apache-2.0
"""A recorder that meets limits of its own: files that may not grow, nobody to look at the references."""
import re
import resource
import subprocess

import pytest

from conftest import find_cachegram

SPIN = ["/usr/bin/python3", "-c", "print(sum(range(6000000)))"]


def record(args, soft_bytes=None, hard_bytes=None):
    def limit():
        if hard_bytes is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (hard_bytes, hard_bytes))
        elif soft_bytes is not None:
            _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft_bytes, hard))

    return subprocess.run([find_cachegram(), "record", *args], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=60, check=False, preexec_fn=limit)


def test_no_file_may_grow(tmp_path):
    db = tmp_path / "a.db"
    result = record(["-o", db, "--", "true"], hard_bytes=100 << 10)
    assert result.returncode == 125 and not db.exists()
    assert result.stderr.count("\n") == 1 and "limit on the size of files (ulimit -f, 100 KB)" in result.stderr


def test_the_programs_own_limit_stays(tmp_path):
    result = record(["-o", tmp_path / "a.db", "--", "sh", "-c", "ulimit -f; ulimit -S -f unlimited"],
                    soft_bytes=1 << 20)
    assert (result.returncode, result.stdout) == (0, "2048\n")  # of 512 bytes


def test_profile_that_could_not_grow(tmp_path):
    """What was seen till then is there, and nothing claims that the program was too short."""
    db = tmp_path / "a.db"
    result = record(["-o", db, "--gap-us", "2000", "--", *SPIN], soft_bytes=48 << 10)
    assert result.returncode == 0 and result.stdout == f"{sum(range(6000000))}\n"
    assert "recording ended early" in result.stderr
    told = subprocess.run([find_cachegram(), "report", db], capture_output=True, text=True, timeout=60, check=False)
    assert "recording ended early" in told.stdout and "too short" not in told.stdout + told.stderr


def test_traced_without_a_reducer(tmp_path):
    """The line at the end counts what the trace got."""
    trace = tmp_path / "a.trace"
    result = record(["-o", tmp_path / "a.db", "--reduce", "none", "--gap-us", "2000", "--trace", trace, "--", *SPIN])
    told = re.search(r"cachegram: (\d+) references in (\d+) bursts?,.* traced (\d+):", result.stderr)
    assert told and int(told[1]) > 0 and int(told[2]) > 0 and told[1] == told[3]


@pytest.mark.parametrize("limit", ["v", "d"])
def test_memory_is_the_programs(built, tmp_path, limit):
    """Under a limit on addresses or data the agent, which takes 170 MB of them, keeps away, and says so."""
    argv = ["sh", "-c", f"ulimit -{limit} 200000; exec {built / 'grow'}"]
    native = int(subprocess.run(argv, capture_output=True, check=True).stdout)
    result = record(["-o", tmp_path / "a.db", "--", *argv])
    assert native < 200 and abs(int(result.stdout) - native) < 10
    assert "(grow): its limit on memory" in result.stderr
