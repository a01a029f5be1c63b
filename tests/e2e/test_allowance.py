# SPDX-License-Identifier: Apache-2.0
"""The allowance: every reference is recorded at first, bursts follow, and the curve is one of both."""
import json
import os
import sqlite3
import subprocess
import sys
import time

import pytest

from conftest import run, run_keys, totals
from record_command import parts

LINES, ROUNDS = 4000, 4  # of tests/targets/sweep.c: a table of 250 KB
SIZES = ["--sizes", "4K,16K,64K,1M,4M", "--format", "json"]


def curve(cachegram, db):
    result = run([cachegram, "mrc", db, *SIZES])
    assert result.status == 0, result.err
    reported = json.loads(result.out)
    return reported, {p["size_bytes"]: p for p in reported["points"]}


def test_a_short_run_is_exact(cachegram, built, record):
    """All of it is recorded before the allowance is spent: the answer is that of full mode."""
    argv = [built / "sweep", LINES, ROUNDS]
    result, db = record(["--allowance", "20s"], argv)
    _, full = record(["--mode", "full"], argv)
    assert b", all of them" in result.summary
    assert run_keys(db)["mode"] == "full" and totals(db)["bursts"] == 0
    assert not {"full_references", "clock", "budget_percent"} & set(run_keys(db))
    assert abs(totals(db)["references"] - totals(full)["references"]) < 2000  # the dynamic linker's, by addresses
    reported, points = curve(cachegram, db)
    assert reported["mode"] == "full"
    assert all(p["ci_low"] == p["miss_ratio"] == p["ci_high"] for p in points.values())
    assert b"exact" in run([cachegram, "report", db]).out


def test_the_recorder_is_all_charged(cachegram, tmp_path):
    """Also for what it does after the program's end: functions and lines are named, which may take half of its time."""
    argv = [cachegram, "record", "-o", tmp_path / "p.db", "--", "/usr/bin/python3", "-c", "pass"]
    with open(os.devnull, "wb") as null:
        _, status, usage = os.wait4(subprocess.Popen(list(map(str, argv)), stderr=null).pid, 0)
    keys = run_keys(tmp_path / "p.db")
    recorder = usage.ru_utime + usage.ru_stime - float(keys["cpu_seconds"])  # the program was waited for
    assert status == 0 and 0.8 * recorder < float(keys["recorder_cpu_seconds"]) <= 1.05 * recorder


def test_no_burst_represents_an_hour(cachegram, built, tmp_path):
    """As one did whose thread was about to go on in full mode, or in counting, when that was over: it outweighed all others."""
    db = tmp_path / "p.db"
    switching = ["/usr/bin/env", "CACHEGRAM_DEBUG=switch-ms=2", cachegram, "record", "-o", db, "--"]
    assert run([*switching, built / "sweep", LINES, 3000]).status == 0
    with sqlite3.connect(db) as con:
        assert 0 < con.execute("select max(gap_ns) from burst").fetchone()[0] < 1e9


# The recorder's nice value less its own, once that is not 0 or half a second has passed; and its own.
NICER = """import os, time
own, parent, until = os.getpriority(os.PRIO_PROCESS, 0), os.getppid(), time.monotonic() + 0.5
while os.getpriority(os.PRIO_PROCESS, parent) == own and time.monotonic() < until: time.sleep(0.01)
print(os.getpriority(os.PRIO_PROCESS, parent) - own, own)
"""


def test_the_recorder_is_not_late(record):
    """Among many threads it would be, if it had no higher priority; full mode, which has no budget, takes none."""
    own = os.getpriority(os.PRIO_PROCESS, 0)
    may = run([sys.executable, "-c", f"import os; os.setpriority(os.PRIO_PROCESS, 0, {own - 10})"]).status == 0
    for options, less in [(["--allowance", "1s"], -10 if may else 0), ([], -10 if may else 0), (["--mode", "full"], 0),
                          (["--gap-us", "5000"], 0)]:
        result, _ = record(options, [sys.executable, "-c", NICER])
        assert result.out.split() == [b"%d" % less, b"%d" % own], options


def test_bursts_follow(cachegram, built, record):
    """A run that goes on has both parts: the first is counted as it is, the rest by its bursts."""
    result, db = record([*parts(1000000, 2000000), "--allowance", "200ms", "--overhead", "20"], [built / "sweep", LINES, 6000])
    keys, sums = run_keys(db), totals(db)
    assert keys["mode"] == "burst" and sums["bursts"] > 0, result.summary
    assert 0 < int(keys["full_references"]) < sums["references"]
    assert int(keys["full_left"]) >= LINES and int(keys["full_cold"]) >= int(keys["full_left"])
    reported, points = curve(cachegram, db)
    assert reported["full_references"] == int(keys["full_references"])
    # Tables of code have both parts, too, and add up to the curve.
    rows = json.loads(run([cachegram, "hotspots", "--size", "64K", "--format", "json", db]).out)
    assert rows["miss_ratio"] == pytest.approx(points[65536]["miss_ratio"], rel=0.02)
    recorded = sum(row["recorded_refs"] for row in rows["rows"])
    assert recorded == pytest.approx(sums["references"], rel=0.02)
    # The table does not fit into the smaller caches, and fits into the larger ones.
    assert points[65536]["miss_ratio"] > 0.9 and points[1 << 20]["miss_ratio"] < 0.1
    report = run([cachegram, "report", db])
    assert b"references: the first " in report.out and b" of the run, then " in report.out
    random = run([cachegram, "mrc", db, "--model", "random", *SIZES])
    assert random.status == 0, random.err
    with sqlite3.connect(db) as con:
        tid = con.execute("select tid from burst").fetchone()[0]
    assert f"without the first {keys['full_references']} references" in run([cachegram, "mrc", db, "--thread", tid]).out.decode()


@pytest.mark.parametrize("name, argv", [("sweep", [LINES, 2000]), ("threads", [])])
def test_all_are_counted_after_that(cachegram, built, record, name, argv):
    """Between full mode and bursts at moments of CPU time: the number of references of a run that ends there is exact."""
    _, full = record(["--mode", "full"], [built / name, *argv])
    all_of_it = totals(full)["references"]
    for _ in range(6):  # a thread may be native for a moment after full mode
        result, db = record([*parts(1000000), "--allowance", "1s"], [built / name, *argv])
        keys = run_keys(db)
        counted, first = int(float(keys.get("counted_references", 0))), int(keys["full_references"])
        if float(keys.get("rest_cpu_seconds", 1)) == 0 and abs(counted + first - all_of_it) < 3e-3 * all_of_it:
            break
    assert float(keys["rest_cpu_seconds"]) == 0, result.summary
    counted, first = int(float(keys["counted_references"])), int(keys["full_references"])
    assert counted + first == pytest.approx(totals(full)["references"], rel=3e-3) and counted > first
    with sqlite3.connect(db) as con:
        agent, cpu = (con.execute("select sum(value) from counter where name = ?", (each,)).fetchone()[0]
                      for each in ("count_agent_ns", "count_cpu_ns"))
        assert 0 < agent < cpu  # it was real time, in which the thread may wait for a processor
        assert float(keys["counted_cpu_seconds"]) == pytest.approx(cpu * 1e-9, rel=1e-4)  # with the agent's work
        placed, timed = con.execute("select sum(start_refs is not null and gap_ns is null),"
                                    " sum(gap_ns is not null) from burst where id > 0").fetchone()
    if name == "threads":  # fifty of 0.6 million references each: how many have a burst is chance
        return
    assert placed == totals(db)["bursts"] > 0 and timed == 0
    windows = json.loads(run([cachegram, "timeline", "--format", "json", db]).out)["windows"]
    assert sum(w["refs"] for w in windows) == pytest.approx(counted + first, rel=0.01)


SETS_LAST = """
static volatile int walked[2048];
static char set[4 << 20];
int main(void)
{
    int sum = 0;
    for (int k = 0; k < 60000000; k++)
        sum += walked[k * 16 & 2047];
    for (int k = 0; k < 10; k++) {
        char *to = set;
        unsigned long n = sizeof set;
        __asm__ volatile("rep stosb" : "+D"(to), "+c"(n) : "a"(k) : "memory");
    }
    return sum;
}
"""


def test_string_instructions_after_the_last_burst(cachegram, record, tmp_path):
    """Ten times, 4 MB are set when all else is done: 42 million of 102 million references, which are counted in no burst."""
    (tmp_path / "sets.c").write_text(SETS_LAST)
    subprocess.run(["gcc", "-O1", "-g", "-o", "sets", "sets.c"], cwd=tmp_path, check=True)
    for _ in range(5):  # the tail of a burst may contain all of them, which is not told from other references there
        result, db = record([*parts(1000000), "--allowance", "1s"], [tmp_path / "sets"])
        keys = run_keys(db)
        assert float(keys["rest_cpu_seconds"]) == 0, result.summary
        if float(keys["counted_string_references"]) > 0:
            break
    assert int(float(keys["counted_string_references"])) == pytest.approx(40 << 20, rel=1e-3)
    _, points = curve(cachegram, db)
    loads, stores = 60e6, 40 << 20
    walks, sets = loads / (loads + stores), stores / 64 / (loads + stores)
    table = json.loads(run([cachegram, "hotspots", db, "--size", "4K", "--format", "json"]).out)
    assert table["miss_ratio"] == pytest.approx(points[4096]["miss_ratio"], rel=0.01)
    for size, ratio in ((4096, walks + sets), (16384, sets)):  # from 64K on, it is not known whether such lines hit
        assert points[size]["miss_ratio"] == pytest.approx(ratio, rel=0.05) and points[size]["ci_low"] <= ratio <= points[size]["ci_high"]


def test_three_parts(cachegram, built, record):
    """A run that goes on after counting has bursts of both kinds, and the curve is that of full mode."""
    argv = [built / "sweep", LINES, 50000]
    result, db = record([*parts(1000000, 50000000), "--allowance", "300ms", "--overhead", "20"], argv)
    keys = run_keys(db)
    with sqlite3.connect(db) as con:
        by_references, by_time = con.execute("select total(gap_ns is null), total(gap_ns is not null) from burst where id > 0").fetchone()
    assert by_references > 0 and by_time > 0, result.summary
    assert int(keys["counted_references"]) > 0 and float(keys["rest_cpu_seconds"]) > 0
    report = run([cachegram, "report", "--verbose", db]).out
    assert b"counted     the next %d references" % keys["counted_references"] in report
    _, points = curve(cachegram, db)
    assert points[65536]["miss_ratio"] > 0.9 and points[1 << 20]["miss_ratio"] < 0.1


def test_time_of_counting_is_known_when_it_ends(built, record):
    """Threads report it while they count, not at their next burst: else it would be taken from the rest of the run."""
    result, db = record([*parts(1000000, 150000000), "--allowance", "1ms", "--overhead", "0.1"], [built / "equal_threads", 2, 50000000])
    assert result.status == 0 and float(run_keys(db)["rest_cpu_seconds"]) > 0
    with sqlite3.connect(db) as con:
        spent, = con.execute("select sum(value) from counter where name = 'count_cpu_ns'").fetchone()
    assert float(run_keys(db)["counted_cpu_seconds"]) == pytest.approx(spent * 1e-9, rel=0.15)


def record_without_bursts(built, record):
    """A run that goes on after its first part, but not until the first burst."""
    for references in (60000000, 20000000, 6000000, 2000000):  # the slower the machine, the earlier a burst comes
        result, db = record([*parts(500000, 1), "--allowance", "1ms", "--overhead", "0.001"], [built / "micro", "random", "8388608", references])
        if totals(db)["bursts"] == 0:
            break
    assert totals(db)["bursts"] == 0 and int(run_keys(db)["full_references"]) > 0, result.summary
    return db


def test_first_part_without_threads_and_sets(cachegram, built, record):
    """No burst follows: there is nothing of a single thread, or of sets, and the advice is one that helps."""
    db = record_without_bursts(built, record)
    for option in (["mrc", "--thread", "1"], ["mrc", "--ways", "8"], ["hotspots", "--tid", "1"]):
        said = run([cachegram, *option, db])
        assert said.status == 1 and b"--allowance 0" in said.err, said.err + said.out


def test_a_rest_too_short_to_measure(cachegram, built, record):
    """The run went on after its first part, so that part's curve is not exact for it, if little time was measured, or none."""
    db = record_without_bursts(built, record)
    widths = []
    for rest_seconds in (0, 1e-4, 5e-3):
        with sqlite3.connect(db) as con:
            assert con.execute("update run set value = ? where key = 'rest_cpu_seconds'", (str(rest_seconds),)).rowcount == 1
        point = curve(cachegram, db)[1][65536]
        assert point["ci_low"] <= point["miss_ratio"] <= point["ci_high"]
        widths.append(point["ci_high"] - point["ci_low"])
    assert 0.01 < widths[0] == widths[1] < widths[2]


def test_nothing_is_lost_where_modes_change(built, record):
    """Full mode and bursts in turn: what was recorded in full mode is whole each time."""
    result, db = record(["CACHEGRAM_DEBUG=switch-ms=2"], [built / "sweep", LINES, 20000])
    keys = run_keys(db)
    assert result.status == 0 and totals(db)["bursts"] > 0
    assert int(keys["bad_records"]) == 0 and int(keys["lost_buffers"]) == 0


@pytest.mark.parametrize("name", ["threads", "processes", "exec_chain"])
def test_threads_and_children(built, record, name):
    native = run([built / name])
    for allowance in "60ms", "150ms", "1s":
        result, db = record(["--allowance", allowance], [built / name])
        assert (result.status, result.out) == (native.status, native.out)
        assert int(run_keys(db)["bad_records"]) == 0


@pytest.mark.parametrize("options,why", [
    (["--allowance", "-1"], b"--allowance -1: must be a time"),
    (["--allowance", "1h"], b"--allowance 1h: must be a time"),
    (["--allowance", "s"], b"--allowance s: must be a time"),
    (["--allowance", "2s", "--gap-us", "500"], b"--allowance cannot be combined with --gap-us"),
    (["--allowance", "2s", "--mode", "full"], b"--allowance cannot be combined with --mode full"),
    (["--allowance", "2s", "--trace", "t"], b"--allowance cannot be combined with --trace"),
])
def test_wrong_usage(cachegram, tmp_path, options, why):
    result = run([cachegram, "record", *options, "true"], cwd=tmp_path)
    assert result.status == 2 and why in result.err
    assert not list(tmp_path.iterdir())


def test_without_an_allowance(built, record):
    """--allowance 0: bursts from the start, as with options that leave no room for one."""
    for options in ["--allowance", "0"], ["--allowance", "0ms", "--gap-us", "500"]:
        _, db = record(options, [built / "sweep", LINES, 6000])
        assert run_keys(db)["mode"] == "burst" and int(run_keys(db)["full_references"]) == 0
        assert totals(db)["bursts"] > 0


@pytest.mark.parametrize("options", [["--allowance", "20s"], ["--mode", "full"]], ids=" ".join)
def test_children_that_outlive_the_command_are_released(cachegram, built, record, tmp_path, options):
    """Though they would fill buffers as fast as these are drained. They run on, natively, and what was recorded stays. One of
    them waits until the recorder has ended."""
    children, rounds = 3, 10000
    os.mkfifo(tmp_path / "fifo")
    script = f"for i in {'i ' * children}; do {built}/sweep {LINES} {rounds} >> sums & done; cat fifo & sleep 0.3"
    result, db = record(options, ["bash", "-c", script], cwd=tmp_path)
    keys, all_of_them = run_keys(db), children * LINES * rounds
    assert result.status == 0 and f"{children + 1} processes still ran when the command ended".encode() in result.summary
    assert keys["complete"] == "yes" and "still ran" in keys["warning"]
    assert b"references are missing" not in result.summary and b"all of them" not in result.summary
    assert 0 < totals(db)["references"] < all_of_them / 2
    assert b"still ran when the command ended" in run([cachegram, "report", db]).out
    (tmp_path / "fifo").write_bytes(b"")
    deadline = time.monotonic() + 100
    while len((tmp_path / "sums").read_text().split()) < children:
        assert time.monotonic() < deadline, "the children did not go on"
        time.sleep(0.05)


def test_single_stepped_instructions(built, record):
    """Each takes as long as a thousand others, and is in no buffer: the allowance ends nevertheless, and then they run natively."""
    n = 2000000
    result, db = record(["--allowance", "1s"], [built / "stepped_stores", n])
    assert (result.status, result.out) == (0, b"255\n"), result.err
    with sqlite3.connect(db) as profile:
        (stepped,), = profile.execute("SELECT value FROM counter WHERE name = 'stepped'")
    assert 64 < stepped < n / 2
