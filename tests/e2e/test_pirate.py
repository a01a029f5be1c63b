# SPDX-License-Identifier: Apache-2.0
"""`cachegram pirate`: what it does to the program, which is nothing, and what it says when it cannot measure.

Whether there are figures depends on the machine's other work, which no test may depend on: --limit 100 accepts any
hold, so that everything else can be tested.
"""
import json
import os
import pathlib
import signal
import sqlite3
import subprocess
import sys
import time

import pytest

from conftest import run, totals
from pirate_help import (able, pirate, started, processes_like, rows, state_of,  # noqa: F401 (fixtures)
                         target_of, wait_until)

pytestmark = pytest.mark.alone

COLUMNS = ["available_bytes", "ns_per_ref", "cpi", "gbps", "fetch_ratio", "miss_ratio", "pirate_fetch_ratio", "valid"]

# --- whole runs ---

def test_whole_runs(pirate, tmp_path):
    result = pirate("--results", "r.csv", "--format", "csv", "--sizes", "2M,4M", "--repeats", "2", "--", "sh", "-c",
                    "echo out; echo err >&2; echo run >> runs; exit 3")
    assert result.status == 3
    assert result.out == b"out\n" and result.err.startswith(b"err\n")  # once, although it ran five times
    assert (tmp_path / "runs").read_text() == "run\n" * 5
    reported = rows((tmp_path / "r.csv").read_text())
    assert list(reported[0])[:8] == COLUMNS
    assert [r["available_bytes"] for r in reported] == ["4194304", "2097152"]
    for row in reported:
        assert row["valid"] == "1" and row["intervals"] == "2" and row["unit"] == "run"
        assert 0 <= float(row["ns_low"]) <= float(row["ns_per_unit"]) <= float(row["ns_high"])
        assert row["cpi"] == row["miss_ratio"] == row["ns_per_ref"] == ""
        assert 0 <= float(row["pirate_fetch_ratio"]) <= 1
    assert float(reported[0]["slowdown"]) == 1
    assert b"machine with counters" in result.err
    with sqlite3.connect(tmp_path / "p.db") as db:
        assert db.execute("select value from run where key = 'mode'").fetchone() == ("pirate",)
        assert db.execute("select count(*), sum(intervals) from pirate").fetchone() == (2, 4)


def test_results_and_output_apart(pirate):
    """Standard output is the results'; the program's goes to standard error."""
    result = pirate("--format", "csv", "--sizes", "2M", "--", "sh", "-c", "echo noise")
    assert len(rows(result.out)) == 1 and b"noise" in result.err
    reported = json.loads(pirate("--format", "json", "--sizes", "2M", "--", "true").out)
    assert reported["unit"] == "run" and reported["pirate"][0]["valid"] is True and reported["pirate"][0]["cpi"] is None


def test_references(pirate, record, built):
    """Counted in a further run: as many as a recording of every reference has."""
    command = [built / "micro", "random", 1 << 20, 3000000]
    row = rows(pirate("--count", "--format", "csv", "--sizes", "2M", "--", *command).out)[0]
    _, db = record(["--mode", "full"], command)
    assert float(row["ns_per_unit"]) / float(row["ns_per_ref"]) == pytest.approx(totals(db)["references"], rel=0.001)


def test_every_run_reads_its_input(pirate, tmp_path):
    (tmp_path / "in").write_text("header\nrest\n")
    with open(tmp_path / "in", "rb") as f:
        f.seek(7)
        with started(pirate, "--sizes", "2M,4M", "--", "sh", "-c", "cat >> all", stdin=f, cwd=tmp_path) as p:
            assert p.wait(60) == 0, p.said.read_text()
    assert (tmp_path / "all").read_text() == "rest\n" * 3
    result = pirate("--sizes", "2M", "--", "sh", "-c", "echo started", stdin=b"x")
    assert result.status == 125 and b"is a pipe" in result.err and b"started" not in result.err


@pytest.mark.parametrize("argv, status", [(["kill", "-TERM", "$$"], 143), (["kill", "-SEGV", "$$"], 139)])
def test_signal_status(pirate, argv, status):
    result = pirate("--sizes", "2M", "--", "sh", "-c", " ".join(argv))
    assert result.status == status


def test_not_started(pirate, tmp_path):
    assert pirate("--", "no-such-command").status == 127
    (tmp_path / "text").write_text("")
    result = pirate("--", "./text")
    assert result.status == 126 and len(result.err.splitlines()) == 1
    assert pirate("--progress", "no_such_variable", "--", "true").status == 125
    assert pirate().status == 2
    assert pirate("-p", "1", "--", "true").status == 2
    assert pirate("-p", "1").status == 2


# --- one run ---

def test_intervals(pirate, built, tmp_path):
    result = pirate("--results", "r.csv", "--format", "csv", "--progress", "progress", "--interval-ms", "5", "--sizes",
                    "2M,4M,8M", "--", built / "micro", "random", 1 << 20, 800000000)
    assert (result.status, result.out) == (0, b"0\n")
    reported = rows((tmp_path / "r.csv").read_text())
    assert [int(r["available_bytes"]) for r in reported] == [8 << 20, 4 << 20, 2 << 20]
    for row in reported:
        assert row["unit"] == "steps" and int(row["intervals"]) + int(row["dropped"]) >= 1
        assert row["valid"] == "0" or 0.3 < float(row["ns_per_unit"]) < 1000
    assert any(row["valid"] == "1" for row in reported)


def test_bytes_as_progress(pirate, tmp_path):
    (tmp_path / "in").write_bytes(os.urandom(1 << 20) * 25)
    command = ["gzip", "-1", "-n", "-c", "in"]
    result = pirate("--results", "r.csv", "--format", "csv", "--progress", "io", "--interval-ms", "5", "--sizes", "4M",
                    "--", *command)
    assert result.status == 0
    assert result.out == subprocess.run(command, cwd=tmp_path, stdout=subprocess.PIPE, check=True).stdout
    row = rows((tmp_path / "r.csv").read_text())[0]
    assert row["unit"] == "bytes" and row["valid"] == "1"


def test_events_as_progress(pirate, built):
    """The kernel's clock of CPU time as progress: a nanosecond each, but for the time between the two readings."""
    result = pirate("--format", "csv", "--progress", "task-clock", "--interval-ms", "10", "--sizes", "2M,4M", "--",
                    built / "micro", "random", 1 << 20, 200000000)
    valid = [r for r in rows(result.out) if r["valid"] == "1"]
    assert valid and all(float(r["ns_per_unit"]) == pytest.approx(1, abs=0.25) for r in valid), result.out
    assert all(r["unit"] == "task-clock" and r["gbps"] == r["miss_ratio"] == "" for r in valid)


def test_references_by_counters(pirate, built):
    """With a software event in the place of loads and stores: a nanosecond for each."""
    env = {**os.environ, "CACHEGRAM_REFERENCE_EVENTS": "task-clock"}
    result = pirate("--format", "csv", "--progress", "references", "--interval-ms", "10", "--sizes", "2M,4M", "--",
                    built / "micro", "random", 1 << 20, 600000000, env=env)
    valid = [r for r in rows(result.out) if r["valid"] == "1"]
    assert valid and all(float(r["ns_per_ref"]) == pytest.approx(1, abs=0.25) for r in valid), result.err
    assert all(r["unit"] == "references" for r in valid)


def test_no_counters(pirate):
    """Either there are hardware counters, or the program is not started."""
    result = pirate("--format", "csv", "--progress", "instructions", "--sizes", "2M", "--", "sh", "-c", "echo started")
    assert result.status == 0 or (result.status == 125 and b"instructions" in result.err and
                                  b"started" not in result.err)


def test_no_interrupted_calls(pirate, built):
    """Sleeping threads are left alone when the program is held: their system calls do not fail."""
    result = pirate("--results", "r.txt", "--progress", "progress", "--interval-ms", "3", "--sizes", "2M,4M,6M,8M", "--",
                    built / "eintr", "2")
    assert (result.status, result.out) == (0, b"interrupted 0\n")


def test_too_short(pirate, built):
    result = pirate("--progress", "progress", "--", built / "micro", "random", 1 << 20, 1000)
    assert result.status == 0 and b"ended before every size" in result.out


# --- attached ---

@pytest.fixture
def victim(built):
    with subprocess.Popen([built / "micro", "random", str(1 << 20), "0"], stdout=subprocess.DEVNULL) as p:
        yield p
        p.kill()


def test_attach(pirate, victim, tmp_path):
    before = os.sched_getaffinity(victim.pid)
    seen = []
    with started(pirate, "--format", "csv", "--progress", "progress", "--interval-ms", "5", "--sizes", "2M,4M",
                 "--duration", "1", "-p", victim.pid, stdout=subprocess.PIPE) as p:
        while p.poll() is None:  # its parent never sees it stop
            seen.append(os.waitid(os.P_PID, victim.pid, os.WSTOPPED | os.WCONTINUED | os.WEXITED | os.WNOHANG))
            time.sleep(0.001)
        out, _ = p.communicate()
        assert p.returncode == 0, p.said.read_text()
    assert len(rows(out)) == 2 and set(seen) == {None}
    assert victim.poll() is None and state_of(victim.pid) in "RS"
    wait_until(lambda: os.sched_getaffinity(victim.pid) == before, 2)
    with sqlite3.connect(tmp_path / "p.db") as db:
        assert "micro random" in db.execute("select value from run where key = 'command'").fetchone()[0]


def test_interrupt_while_attached(pirate, victim):
    with started(pirate, "--format", "csv", "--progress", "progress", "--interval-ms", "5", "--sizes", "2M,4M", "-p",
                 victim.pid, stdout=subprocess.PIPE) as p:
        wait_until(lambda: len(os.sched_getaffinity(victim.pid)) < os.cpu_count())
        time.sleep(0.3)
        p.send_signal(signal.SIGINT)
        out, _ = p.communicate(timeout=20)
    assert p.returncode == 0 and len(rows(out)) == 2
    assert victim.poll() is None and state_of(victim.pid) in "RS"


def test_killed_while_attached(pirate, victim):
    """Not even SIGKILL leaves the program confined, held, or leaves a Pirate running."""
    before = os.sched_getaffinity(victim.pid)
    with started(pirate, "--progress", "progress", "--interval-ms", "2", "--sizes", "2M,4M,6M,8M", "-p", victim.pid,
                 stdout=subprocess.DEVNULL) as p:
        wait_until(lambda: os.sched_getaffinity(victim.pid) != before)
        time.sleep(0.2)
        p.kill()
    wait_until(lambda: os.sched_getaffinity(victim.pid) == before)
    wait_until(lambda: not processes_like(f"-p {victim.pid}"))
    assert state_of(victim.pid) in "RS"


def test_no_permission(pirate, able, cachegram, tmp_path):
    if os.geteuid() != 0:
        argv, pid = [cachegram], 1
    else:
        argv, pid = ["setpriv", "--reuid", "65534", "--clear-groups", cachegram], os.getpid()
    result = run([*argv, "pirate", "--limit", "100", "--progress", "io", "--duration", "1", "-o", tmp_path / "x.db", "-p",
                  pid])
    assert result.status == 1 and b"no permission" in result.err and len(result.err.splitlines()) == 1
    result = pirate("--progress", "io", "-p", 999999999)
    assert result.status == 1 and b"there is no process" in result.err


# --- ends ---

def test_signals_are_passed_on(pirate, tmp_path):
    script = "trap 'echo got it; exit 7' USR1; echo ready > ready; while :; do sleep 0.01; done"
    with started(pirate, "--results", "r.txt", "--sizes", "2M", "--", "sh", "-c", script, stdout=subprocess.PIPE,
                 cwd=tmp_path) as p:
        wait_until(lambda: (tmp_path / "ready").exists())
        (tmp_path / "ready").unlink()
        p.send_signal(signal.SIGUSR1)
        wait_until(lambda: (tmp_path / "ready").exists())  # the second run, next to the Pirate
        p.send_signal(signal.SIGUSR1)
        out, _ = p.communicate(timeout=30)
    assert (p.returncode, out) == (7, b"got it\n")


def test_interrupt_ends_the_measurement(pirate, tmp_path):
    with started(pirate, "--results", "r.txt", "--sizes", "1M,2M,4M", "--", "sh", "-c", "echo run >> runs; exec sleep 30",
                 cwd=tmp_path) as p:
        wait_until(lambda: (tmp_path / "runs").exists())
        time.sleep(0.05)
        p.send_signal(signal.SIGTERM)
        assert p.wait(20) == 143
    assert (tmp_path / "runs").read_text() == "run\n"  # no further runs


@pytest.mark.parametrize("run_number", [2, 3])
def test_interrupted_runs_do_not_count(run_number, pirate, tmp_path):
    """A run with less cache, or the run that counts references: only a part of the work was done."""
    script = f"echo run >> runs; [ $(wc -l < runs) -lt {run_number} ] || exec sleep 30"
    with started(pirate, "--results", "r.csv", "--format", "csv", "--count", "--sizes", "2M", "--", "sh", "-c", script, cwd=tmp_path) as p:
        wait_until(lambda: (tmp_path / "runs").exists() and (tmp_path / "runs").read_text().count("run") == run_number)
        time.sleep(0.2)
        p.send_signal(signal.SIGTERM)
        assert p.wait(20) == 0 # as the first run, which was not interrupted
    (row,) = rows((tmp_path / "r.csv").read_bytes())
    assert row["ns_per_ref"] == "" and (row["ns_per_unit"] == "") == (row["valid"] == "0") == (run_number == 2), row
    assert (b"references could not be counted: interrupted" in p.said.read_bytes()) == (run_number == 3)
    assert (tmp_path / "runs").read_text() == "run\n" * run_number


def test_recorder_killed(pirate, built, tmp_path):
    """The program goes on, on all of its CPUs; nothing else stays."""
    before = os.sched_getaffinity(0)
    with started(pirate, "--progress", "progress", "--interval-ms", "2", "--sizes", "2M,4M,6M", "--", built / "micro",
                 "random", 1 << 20, 0, stdout=subprocess.DEVNULL) as p:
        pid = target_of(p)
        time.sleep(0.3)
        p.kill()
        p.wait()
        try:
            wait_until(lambda: os.sched_getaffinity(pid) == before)
            wait_until(lambda: not processes_like(str(tmp_path / "p.db")))
            assert state_of(pid) == "R"
        finally:
            os.kill(pid, signal.SIGKILL)


def test_program_killed(pirate, built, tmp_path):
    with started(pirate, "--progress", "progress", "--interval-ms", "2", "--sizes", "2M,4M,6M", "--", built / "micro",
                 "random", 1 << 20, 0, stdout=subprocess.DEVNULL) as p:
        pid = target_of(p)
        time.sleep(0.3)
        os.kill(pid, signal.SIGKILL)
        assert p.wait(20) == 137
    wait_until(lambda: not processes_like(str(tmp_path / "p.db")))


# --- where it cannot be ---

def test_single_core(cachegram, tmp_path):
    cpu = min(os.sched_getaffinity(0))
    result = run(["taskset", "-c", str(cpu), cachegram, "pirate", "--", "touch", "started"], cwd=tmp_path)
    assert result.status == 125 and result.out == b""
    assert b"no Pirate can run here" in result.err and len(result.err.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_private_caches(cachegram, tmp_path):
    """A machine whose cores share no cache, as hwloc describes it."""
    env = {**os.environ, "HWLOC_SYNTHETIC": "Package:1 L2:2 Core:1 PU:1", "HWLOC_THISSYSTEM": "1"}
    result = run([cachegram, "pirate", "--", "touch", "started"], cwd=tmp_path, env=env)
    assert result.status == 125 and b"no Pirate can run here" in result.err and list(tmp_path.iterdir()) == []


def test_cache_of_unknown_size(cachegram, tmp_path):
    """Virtual machines may report a last level without its size: it is as if there were none."""
    sets = '{0}cpuset="{1}" {0}nodeset="1"'
    number = iter(range(1, 20))

    def thing(kind, cpus, inside="", more=""):
        both = " ".join(sets.format(of, cpus) for of in ("", "complete_"))
        return f'<object type="{kind}" {both} gp_index="{next(number)}" {more}>{inside}</object>'

    def cache(level, kilobytes, cpus, inside):
        return thing(f"L{level}Cache", cpus, inside, f'cache_size="{kilobytes << 10}" depth="{level}" cache_linesize="64" '
                                                     f'cache_associativity="8" cache_type="{0 if level > 1 else 1}"')
    cores = "".join(cache(1, 32, 1 << i, thing("Core", 1 << i, thing("PU", 1 << i, more=f'os_index="{i}"'), f'os_index="{i}"'))
                    for i in range(2))
    memory = thing("NUMANode", 3, more='os_index="0" local_memory="1073741824"')
    machine = thing("Machine", 3, memory + cache(3, 0, 3, cores), 'os_index="0" allowed_cpuset="3" allowed_nodeset="1"')
    # hwloc's own parser, which is used where libhwloc-plugins is not installed, wants the first two on lines of their own.
    (tmp_path / "machine.xml").write_text('<?xml version="1.0"?>\n<!DOCTYPE topology SYSTEM "hwloc2.dtd">\n'
                                          f'<topology version="2.0">{machine}</topology>')
    env = {**os.environ, "HWLOC_XMLFILE": str(tmp_path / "machine.xml"), "HWLOC_THISSYSTEM": "1"}
    result = run([cachegram, "machine", "--reported", "--format", "csv"], env=env)
    assert [line.split(",")[:2] for line in result.out.decode().splitlines()[1:]] == [["L1", "32768"], ["memory", "1073741824"]]
    result = run([cachegram, "pirate", "--", "true"], env=env)
    assert result.status == 125 and b"no Pirate can run here" in result.err


def test_options_that_would_have_no_effect(cachegram, tmp_path):
    for args in (["--duration", "1"], ["--interval-ms", "5"], ["--by", "resctrl", "--threads", "1"],
                 ["--by", "resctrl", "--limit", "2"]):
        result = run([cachegram, "pirate", *args, "--", "touch", "started"], cwd=tmp_path)
        assert result.status == 2 and f"cachegram: pirate: {args[-2]} ".encode() in result.err, result.err
    assert not (tmp_path / "started").exists()


def test_no_resctrl(cachegram, tmp_path):
    if os.path.exists("/sys/fs/resctrl/info/L3"):
        pytest.skip("this machine has resctrl")
    result = run([cachegram, "pirate", "--by", "resctrl", "--", "touch", "started"], cwd=tmp_path)
    assert result.status == 125 and list(tmp_path.iterdir()) == []
    assert b"cannot be partitioned" in result.err or b"no Pirate can run" in result.err


# --- in a profile ---

def test_results_are_shown_with_the_model(pirate, cachegram, built, tmp_path):
    command = [built / "micro", "random", 2 << 20, 100000000]
    assert run([cachegram, "record", "-o", tmp_path / "p.db", "--", *command]).status == 0
    for _ in range(2):  # the second measurement takes the first one's place
        assert pirate("--sizes", "2M,4M", "--", *command).status == 0
    assert not (tmp_path / "p.db.old").exists()
    with sqlite3.connect(tmp_path / "p.db") as db:
        assert db.execute("select count(*) from pirate").fetchone() == (2,)
        assert db.execute("select count(*) from burst").fetchone()[0] > 0
        assert db.execute("select value from run where key = 'mode'").fetchone() == ("burst",)
        # As hardware counters would fill it in.
        db.execute("update pirate set miss_ratio = 0.25")
    text = run([cachegram, "report", tmp_path / "p.db"]).out.decode()
    assert "Miss ratio by cache size" in text and "Measured with part of the last-level cache" in text
    assert "modelled" in text and text.count("●") == 3  # two sizes, and the legend
    reported = json.loads(run([cachegram, "report", "--format", "json", tmp_path / "p.db"]).out)
    assert [r["available_bytes"] for r in reported["pirate"]] == [4 << 20, 2 << 20]
    assert pirate("--sizes", "2M", "--", "true").status == 0  # another command: the old profile is kept
    assert (tmp_path / "p.db.old").exists()
    text = run([cachegram, "report", "-v", tmp_path / "p.db"]).out.decode()
    assert "measured next to a Pirate" in text and "no curve" not in text


if __name__ == "__main__":
    sys.exit(pytest.main([__file__]))
