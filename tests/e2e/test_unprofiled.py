# SPDX-License-Identifier: Apache-2.0
"""CPU time that went into programs without the agent is told, and not taken for a short run; other time is not."""
import os
import sqlite3
import subprocess

import pytest

from conftest import BURST, FULL, TARGETS, need, run, run_keys, totals

SPIN = ["random", "8388608", "120000000"]


@pytest.fixture(scope="module")
def spin(built):
    """Some half a second of CPU time: linked dynamically, and statically."""
    static = built / "micro-static"
    subprocess.run(["gcc", "-std=gnu11", "-O2", "-static", "-o", static, TARGETS / "micro.c"], check=True)
    for folder in [built, *built.parents[:2]]:  # for another user
        if folder.stat().st_uid == os.getuid() and folder.stat().st_mode & 0o005 != 0o005:
            folder.chmod(0o755)
    return {"micro": " ".join([str(built / "micro"), *SPIN]), "static": " ".join([str(static), *SPIN])}


@pytest.mark.parametrize("script", ["{static}; exit 4", "{static} & wait; exit 4", "exec {static}", "env -i {micro}; exit 4",
                                    "exec env -i {micro}",
                                    "setpriv --reuid=65534 --clear-groups {micro}; exit 4"])
def test_told(record, cachegram, spin, script):
    if "setpriv" in script and os.getuid() != 0:
        pytest.skip("only root can be another user")
    native = run(["sh", "-c", script.format(**spin)])
    result, db = record(BURST, ["sh", "-c", script.format(**spin)])
    assert result.status == native.status and result.out == native.out
    why = (b"statically linked" if "{static}" in script else b"cleared environment" if "env -i" in script else b"runs as another user")
    assert b"of CPU time were not profiled" in result.err + result.summary and why in result.err + result.summary
    keys = run_keys(db)
    assert .5 * float(keys["cpu_seconds"]) < float(keys["unprofiled_cpu_seconds"]) <= float(keys["cpu_seconds"])
    assert "not profiled" in keys["warning"]
    for command in ("report", "mrc"):
        told = run([cachegram, command, db])
        if command == "report" or totals(db)["bursts"] == 0:  # of what was before the program without the agent
            assert why in told.out + told.err
        assert b"too short" not in told.out + told.err


def test_told_once_of_the_command_itself(record, cachegram, spin):
    result, db = record(BURST, spin["static"].split())
    assert b"is statically linked" in result.summary and b"CPU time were" not in result.summary
    assert b"too short" not in run([cachegram, "mrc", db]).err


@pytest.mark.parametrize("script", ["exec {micro}", "exec python3 -c '{threads}'"])
def test_neither_perf_events_nor_timers(record, cachegram, built, spin, script):
    """Nothing was profiled, in however many threads: not a part of it."""
    result, db = record(BURST, ["sh", "-c", script.format(**spin, threads=THREADS)], wrap=[built / "no_perf", "--no-timers"])
    assert b"not profiled" in result.summary and b"partly" not in result.summary
    assert b"timer_create: Operation not permitted" in result.summary and b"emulator" not in result.summary
    assert totals(db)["bursts"] == 0 and b"too short" not in run([cachegram, "mrc", db]).err


FORKS = """import os
for i in range(3):
    if os.fork() == 0:
        sum(range(4000000))
        os._exit(0)
for i in range(3):
    os.wait()
"""
THREADS = """import threading, zlib
data = bytes(range(256)) * 100000
many = [threading.Thread(target=zlib.compress, args=(data,)) for i in range(4)]
[t.start() for t in many]
[t.join() for t in many]
"""


@pytest.mark.parametrize("options", [BURST, FULL, ["--overhead", "0.1"], [*BURST, "--no-follow"]])
@pytest.mark.parametrize("script", ["{micro}; exit 4", "exec {micro}", "{micro} & {micro} & wait",
                                    "timeout -s KILL .3 {micro}; exit 4", "for i in $(seq 200); do ls > /dev/null; done",
                                    "exec python3 -c '{forks}'", "exec python3 -c '{threads}'",
                                    "dd if=/dev/zero of=/dev/null bs=1M count=10000; exit 4"])
def test_no_false_alarm(record, spin, script, options):
    need("python3")
    if options == FULL and script != "{micro}; exit 4":
        pytest.skip("slow")
    result, db = record(options, ["sh", "-c", script.format(**spin, forks=FORKS, threads=THREADS)])
    assert b"not profiled" not in result.summary
    assert "unprofiled_cpu_seconds" not in run_keys(db)


def processes(db):
    with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as con:
        return con.execute("select count(*) from process").fetchone()[0]


def test_many_short_children(record, cachegram):
    """Slots are used again and again, and what the agent's starts took is told as what it is."""
    result, db = record(["--overhead", "5"], ["sh", "-c", "i=0; while [ $i -lt 200 ]; do i=$((i+1)); x=$(echo $i); done; echo $x"])
    assert result.status == 0 and result.out == b"200\n"
    keys = run_keys(db)
    starts, cpu = float(keys["start_cpu_seconds"]), float(keys["cpu_seconds"])
    assert processes(db) == 201 and 201 * 10e-6 < starts < .9 * cpu
    assert float(keys["overhead_percent"]) > 100 * starts / cpu
    assert b"were the agent's start in 201 processes" in run([cachegram, "report", db]).out


def test_children_that_no_burst_meets(record, cachegram):
    """Of processes too short for a burst a curve of the others tells nothing, and says so."""
    spin = "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done"
    fork = "i=0; while [ $i -lt 1500 ]; do i=$((i+1)); (:); done"
    few = spin.replace("400000", "200000")
    for script, told in ((f"{few}; {'; '.join([fork] * 6)}", True), (f"{spin}; {spin}", False)):
        result, db = record(["--overhead", "20"], ["sh", "-c", script])
        keys, shown = run_keys(db), run([cachegram, "report", db]).out
        assert result.status == 0
        assert 0 < float(keys["sampled_cpu_seconds"]) and float(keys["user_cpu_seconds"]) <= float(keys["cpu_seconds"])
        assert (b"s of CPU time: the rest was spent in processes" in shown) == told
        assert (b"s of CPU time: the rest was spent in processes" in run([cachegram, "mrc", db]).out) == told
    result, db = record([], ["sh", "-c", "i=0; while [ $i -lt 20 ]; do i=$((i+1)); (:); done"])
    assert b"its 21 processes were each too short" in run([cachegram, "mrc", db]).err or totals(db)["bursts"]


def test_more_children_than_slots(record, cachegram):
    """Those beyond are told; those that come when there is room again are recorded."""
    script = "for i in $(seq 100); do sleep 2 & done; sleep 1; wait; for i in $(seq 20); do (:); done; echo done"
    result, db = record([], ["sh", "-c", script])
    assert result.status == 0 and result.out == b"done\n"
    assert b"were not recorded, as more than 64 ran at the same time" in result.summary
    assert 64 + 20 <= processes(db) < 100 + 100 + 20
