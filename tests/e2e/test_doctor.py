# SPDX-License-Identifier: Apache-2.0
"""`cachegram doctor` tells the truth about this machine, as far as it can be reported otherwise."""
import csv
import io
import json
import os
import pathlib
import platform
import subprocess

import pytest

from conftest import run


def doctor(cachegram, *args):
    result = run([cachegram, "doctor", "--format", "csv", *args])
    assert result.status == 0, result.err
    return {r["name"]: r for r in csv.DictReader(io.StringIO(result.out.decode()))}


def test_machine(cachegram):
    reported = doctor(cachegram)
    assert {r["state"] for r in reported.values()} <= {"yes", "no", "unknown"}
    flags = next(line for line in open("/proc/cpuinfo") if line.startswith("flags")).split()
    wanted = {"avx512vl", "avx512bw", "avx512dq"} <= set(flags)
    assert reported["avx512"]["state"] == ("yes" if wanted else "no")
    paranoid = pathlib.Path("/proc/sys/kernel/perf_event_paranoid")
    if paranoid.exists():
        assert paranoid.read_text().strip() in reported["perf-events"]["found"]
    major, minor = map(int, platform.release().split(".")[:2])
    if (major, minor) < (5, 18):
        assert reported["perf-trigger"]["state"] == "no"
    # What is there needs no advice; what is not there has some.
    for row in reported.values():
        assert (row["advice"] != "") == (row["state"] != "yes"), row
        assert "No such file" not in row["found"], row


def test_program(cachegram, tmp_path):
    (tmp_path / "x.c").write_text("int main(void) { return 0; }\n")
    for name, flags, lines in (("with", ["-g"], "yes"), ("without", ["-s"], "no")):
        subprocess.run(["gcc", *flags, "-o", tmp_path / name, tmp_path / "x.c"], check=True)
        reported = doctor(cachegram, tmp_path / name)
        assert reported["program"]["state"] == "yes" and reported["program-lines"]["state"] == lines, name
    subprocess.run(["gcc", "-static", "-o", tmp_path / "static", tmp_path / "x.c"], check=True)
    reported = doctor(cachegram, tmp_path / "static")
    assert reported["program"]["state"] == "no" and "static" in reported["program"]["found"]


def test_what_record_uses(cachegram, record, tmp_path):
    import sqlite3
    reported = doctor(cachegram)
    _, db = record([], ["true"])
    with sqlite3.connect(db) as con:
        used = con.execute("select value from run where key = 'trigger'").fetchone()[0]
    assert used == ("perf" if reported["record-trigger"]["found"].startswith("perf") else "timer")


def test_formats_and_misuse(cachegram, tmp_path):
    reported = json.loads(run([cachegram, "doctor", "--format", "json"]).out)
    assert reported["counters"]["state"] in ("yes", "no")
    text = run([cachegram, "doctor"])
    assert text.status == 0 and b"perf events" in text.out and b"\033" not in text.out
    for args, status in (([tmp_path / "nothing"], 1), (["a", "b"], 2), (["--nonsense"], 2)):
        result = run([cachegram, "doctor", *args])
        assert result.status == status and result.err.count(b"\n") == 1 and result.out == b""
    broken = tmp_path / "broken"
    for content in (b"", b"\x7fELF", b"\x7fELF\x02\x01\x01" + os.urandom(3000)):
        broken.write_bytes(content)
        broken.chmod(0o755)
        assert run([cachegram, "doctor", broken]).status == 0


def test_breakpoints_that_never_fire(cachegram, tmp_path):
    """Some hypervisors let debug registers be set, and ignore them: a place of the program is then never reached."""
    found = doctor(cachegram)["breakpoints"]
    if "never fire" not in found["found"]:
        pytest.skip("they fire here, or cannot be set")
    assert found["state"] == "no"
    result = run([cachegram, "pirate", "--from", "main", "--", "touch", "started"], cwd=tmp_path)
    assert result.status == 125 and b"never fire here" in result.err and len(result.err.splitlines()) == 1, result.err
    assert not (tmp_path / "started").exists()
