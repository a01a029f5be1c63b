# SPDX-License-Identifier: Apache-2.0
"""`cachegram verify`: a command run twice, or a profile against a trace."""
import csv
import io
import json
import math
import os
import re
import signal
import subprocess
import time

import pytest

from conftest import need


@pytest.fixture(scope="module")
def spin(tmp_path_factory):
    """A loop over a table of 1 MB: half of the lines twice, with no start-up to speak of."""
    d = tmp_path_factory.mktemp("spin")
    (d / "spin.c").write_text(
        "#include <stdio.h>\n#include <stdlib.h>\nstatic unsigned t[1 << 18];\n"
        "int main(int c, char **v)\n{\n    unsigned x = 1;\n    for (long i = atol(v[1]); i > 0; i--) {\n"
        "        x = x * 1664525 + 1013904223;\n        t[x >> 14] += x;\n    }\n"
        "    printf(\"noise %u\\n\", t[5]);\n    return c > 2;\n}\n")
    subprocess.run(["gcc", "-O2", "-o", d / "spin", d / "spin.c"], check=True)
    return d / "spin"


def verify(cachegram, *args, stdin=subprocess.DEVNULL, **more):
    return subprocess.run([cachegram, "verify", *map(str, args)], capture_output=True, text=True, stdin=stdin,
                          timeout=300, **more)


def rows(result):
    assert result.returncode == 0, result.stderr
    return list(csv.DictReader(io.StringIO(result.stdout)))


SIZES = ["--sizes", "4K,32K,4M"]


@pytest.fixture(scope="module")
def verified(cachegram, spin, tmp_path_factory):
    """What `verify` of a command said, and both profiles. At an overhead of 5% it may end before the first burst."""
    kept = tmp_path_factory.mktemp("verified") / "kept"
    result = verify(cachegram, *SIZES, "--seed", "3", "--overhead", "50", "--keep", kept, "--", spin, 60000000)
    return result, (kept.with_name("kept.burst.db"), kept.with_name("kept.full.db"))


def test_command(cachegram, verified):
    result, kept = verified
    assert result.returncode == 0 and "noise" not in result.stdout
    reported = rows(verify(cachegram, "--format", "csv", *SIZES, *kept))
    assert [int(r["size_bytes"]) for r in reported] == [4096, 32768, 4194304]
    # Each iteration is a load and a store of one random line of 16384; the load misses but for those in the cache.
    for row, size in zip(reported, (4096, 32768)):
        expected = 0.5 * (1 - size / 2**20)
        assert math.isclose(float(row["exact"]), expected, rel_tol=0.01)
        assert math.isclose(float(row["error"]), float(row["estimate"]) - float(row["exact"]), abs_tol=1e-9)
        assert abs(float(row["error"])) < 0.03  # one of the few bursts may fall into the program's start
        inside = float(row["ci_low"]) - 1e-9 <= float(row["exact"]) <= float(row["ci_high"]) + 1e-9
        assert row["inside"] == str(int(inside))
    mrc = subprocess.run([cachegram, "mrc", "--format", "csv", *SIZES, kept[1]], capture_output=True, text=True, check=True)
    assert [r["miss_ratio"] for r in csv.DictReader(io.StringIO(mrc.stdout))] == [r["exact"] for r in reported]


def test_text_and_json_agree(cachegram, verified):
    """And by default the estimate is that of `record`: the first part of the run is recorded completely."""
    text, kept = verified
    assert text.returncode == 0 and "Mean absolute error" in text.stdout
    assert ", the first " in text.stdout.split("\n")[0]
    assert verify(cachegram, *SIZES, *kept).stdout.split("\n")[-3:] == text.stdout.split("\n")[-3:]
    reported = json.loads(verify(cachegram, "--format", "json", "--sizes", "32K", *kept).stdout)
    assert reported["points"][0]["size_bytes"] == 32768
    assert reported["worst_absolute_error"] >= reported["mean_absolute_error"] >= 0
    assert reported["exact_references"] > 120000000


def test_estimate_is_that_of_record_by_default(cachegram, spin):
    """Bursts where there is no allowance, and all of a run that is shorter; test_text_and_json_agree has one that is longer."""
    without = verify(cachegram, "--allowance", "0", "--overhead", "50", "--sizes", "32K", "--", spin, 20000000).stdout.split("\n")[0]
    assert re.search(r" bursts?, overhead ", without) and "first" not in without
    short = verify(cachegram, "--sizes", "32K", "--", spin, 1000).stdout  # two runs differ, by a little
    assert "all of the run" in short.split("\n")[0]
    assert "nothing to estimate" in short and "outside" not in short and "interval holds" not in short


def test_temporary_files_are_removed(cachegram, spin, tmp_path):
    result = verify(cachegram, "--sizes", "32K", "--", spin, 1000000, env={**os.environ, "TMPDIR": str(tmp_path)})
    assert result.returncode == 0, result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("script", ["exec {} random 8388608 2000000000", "trap 'exit 0' INT TERM; {} random 8388608 30000000 & wait; wait"])
def test_interrupt(cachegram, built, tmp_path, number, script):
    """From the keyboard it goes to the process group: verify stops, too, whatever the program makes of it."""
    script = f"touch {tmp_path}/begun; " + script.format(built / "micro")
    folder = tmp_path / "t"
    folder.mkdir()
    with subprocess.Popen([cachegram, "verify", "--", "sh", "-c", script], stderr=subprocess.PIPE, text=True, start_new_session=True,
                          env={**os.environ, "TMPDIR": str(folder)}) as p:
        while not (tmp_path / "begun").exists():
            time.sleep(0.05)
        time.sleep(0.5)
        if number == signal.SIGINT:
            os.killpg(p.pid, number)
        else:
            p.send_signal(number)
        said = p.communicate(timeout=100)[1]
    assert p.returncode == 128 + number, said
    assert "interrupted" in said and list(folder.iterdir()) == []


def test_program_that_is_interrupted_by_itself(cachegram):
    result = verify(cachegram, "--sizes", "32K", "--", "sh", "-c", "trap : INT; kill -INT 0; :", start_new_session=True)
    assert result.returncode == 0, result.stderr


def test_nothing_recorded(cachegram, static_micro):
    result = verify(cachegram, "--allowance", "0", "--", "true")
    assert result.returncode == 1 and "too short to be sampled" in result.stderr and "/" not in result.stderr, result.stderr
    result = verify(cachegram, "--", static_micro, "random", "100000", "1000")
    assert result.returncode == 1 and "statically linked" in result.stderr and "burst.db" not in result.stderr
    assert "nothing was recorded in the first run" in result.stderr


def test_input_is_read_twice(cachegram, tmp_path):
    (tmp_path / "in").write_bytes(bytes(range(256)) * 40000)
    with open(tmp_path / "in") as f:
        result = verify(cachegram, "--format", "csv", "--sizes", "32K", "--overhead", "50", "--keep", tmp_path / "k", "--",
                        need("gzip"), "-9", stdin=f)
    assert len(rows(result)) == 1
    with subprocess.Popen(["echo", "x"], stdout=subprocess.PIPE) as p:
        refused = verify(cachegram, "--", "cat", stdin=p.stdout)
    assert refused.returncode == 2 and "pipe" in refused.stderr and refused.stderr.count("\n") == 1


def test_profile_and_trace(cachegram, record, spin, tmp_path):
    trace = tmp_path / "t.trace"
    result, db = record(["--mode", "full", "--trace", trace], [spin, 300000])
    assert result.status == 0
    # An exact profile has no error against its own trace.
    reported = rows(verify(cachegram, "--format", "csv", db, trace))
    assert len(reported) == 33
    assert all(float(r["error"]) == 0 and r["inside"] == "1" for r in reported)


@pytest.mark.parametrize("args, status", [([], 2), (["a"], 2), (["--"], 2), (["a", "b", "c"], 2), (["a", "b"], 1),
                                          (["--overhead", "0", "--", "true"], 2),
                                          (["--allowance", "-1", "--", "true"], 2), (["--", "/nonexistent"], 1)])
def test_misuse(cachegram, args, status):
    result = verify(cachegram, *args)
    assert result.returncode == status
    assert result.stderr.count("\n") == 1 and result.stdout == ""


def test_trace_of_bursts_gives_no_exact_curve(cachegram, record, spin, tmp_path):
    trace = tmp_path / "t.trace"
    result, db = record(["--mode", "burst", "--gap-us", "2000", "--trace", trace], [spin, 30000000])
    assert result.status == 0
    refused = verify(cachegram, db, trace)
    assert refused.returncode == 1 and "bursts" in refused.stderr
