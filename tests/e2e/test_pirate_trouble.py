# SPDX-License-Identifier: Apache-2.0
"""`cachegram pirate` when something comes in between: Ctrl-Z, kill -9, a full disk, another of its kind; and on
machines that are not at hand: four cores, an inclusive cache.
"""
import contextlib
import os
import pathlib
import re
import resource
import signal
import sqlite3
import subprocess
import time

import pytest

from conftest import Result, run, run_keys
from pirate_help import (able, children_of, cpu_seconds, is_not_now, pirate, pirate_argv, rows,  # noqa: F401 (fixtures)
                         started, state_of, target_of, wait_until)

pytestmark = pytest.mark.alone

RIVAL = "another cachegram pirate measured on this machine at the same time (process {})"


@pytest.fixture
def measuring(pirate, built, tmp_path):
    """Starts one run of a program without end, in a process group of its own as a shell would; (command, program)."""
    running = []
    with contextlib.ExitStack() as stack:
        def go(*options, wrap=()):
            p = stack.enter_context(started(
                pirate, "--format", "csv", "--results", "r.csv", "--progress", "progress", "--interval-ms", "5", "--sizes",
                "2M,4M", *options, "--", built / "micro", "random", 1 << 20, 0, wrap=wrap, cwd=tmp_path,
                stdout=subprocess.DEVNULL, process_group=0))
            running.append([p, None])
            pid = running[-1][1] = target_of(p)
            wait_until(lambda: cpu_seconds(pid) > 0.3)  # beyond its start
            return p, pid
        yield go
        for p, pid in running:
            for one in (pid, p.pid):
                try:
                    os.kill(one, signal.SIGKILL)
                except (OSError, TypeError):
                    pass


def dropped(tmp_path):
    return sum(int(r["dropped"]) for r in rows((tmp_path / "r.csv").read_text()))


# --- stopped ---

def stop_and_go(p, pid):
    """Ctrl-Z, fg, as a shell does it to all of a job; often, to meet all that goes on."""
    for _ in range(10):
        os.killpg(p.pid, signal.SIGTSTP)
        wait_until(lambda: state_of(p.pid) == "T" and state_of(pid) in "tT")
        before = cpu_seconds(pid)
        time.sleep(0.1)
        assert cpu_seconds(pid) == before
        os.killpg(p.pid, signal.SIGCONT)
        wait_until(lambda: cpu_seconds(pid) > before + 0.02)  # nothing is left stopped


def test_ctrl_z(measuring, tmp_path):
    """Both stop, both go on, and what was measured meanwhile does not count."""
    p, pid = measuring()
    stop_and_go(p, pid)
    os.kill(pid, signal.SIGTERM)
    assert p.wait(60) == 143
    assert b"was stopped by a signal (Ctrl-Z) meanwhile" in p.said.read_bytes()
    assert dropped(tmp_path) >= 1


def test_ctrl_z_while_traced(measuring, built, tmp_path):
    """And so it is while it is traced, on its way to the place from which it will be measured."""
    p, pid = measuring("--from", "printf", wrap=[built / "no_perf"])
    stop_and_go(p, pid)
    os.kill(pid, signal.SIGSTOP)  # alone: till someone continues it
    wait_until(lambda: state_of(pid) in "tT")
    before = cpu_seconds(pid)
    time.sleep(0.3)
    assert cpu_seconds(pid) == before
    os.kill(pid, signal.SIGCONT)
    wait_until(lambda: cpu_seconds(pid) > before + 0.1)
    os.kill(pid, signal.SIGTERM)
    assert p.wait(60) == 143
    assert b"never executed 'printf'" in p.said.read_bytes()


def test_program_stopped_alone(measuring, tmp_path):
    """No one is to be kept from the cache then: the Pirate rests."""
    p, pid = measuring()
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: state_of(pid) == "T")

    def thieves():
        """Nanoseconds that each of the Pirate's threads has run."""
        return {t: (tasks / t / "schedstat").read_text().split()[0] for t in os.listdir(tasks) if t != str(p.pid)}

    def rests():
        before = thieves()
        time.sleep(0.5)
        return before and thieves() == before
    tasks = pathlib.Path(f"/proc/{p.pid}/task")
    wait_until(rests)  # from the interval's end on
    assert state_of(pid) == "T"
    seen = cpu_seconds(pid)
    os.kill(pid, signal.SIGCONT)
    wait_until(lambda: cpu_seconds(pid) > seen + 0.1)
    os.kill(pid, signal.SIGTERM)
    assert p.wait(60) == 143
    assert b"was stopped by a signal" in p.said.read_bytes()


def test_whole_run_stopped(pirate, tmp_path):
    """A run in which the program was stopped is dropped; the others count."""
    script = "n=$(wc -l < runs); echo >> runs; [ $n = 1 ] || exit 0; kill -STOP $$"
    (tmp_path / "runs").write_text("")
    with started(pirate, "--format", "csv", "--results", "r.csv", "--sizes", "2M,4M", "--", "sh", "-c", script,
                 cwd=tmp_path) as p:
        stopped = []

        def look():
            stopped[:] = [c for c in children_of(p.pid) if state_of(c, gone="") == "T"]
            return stopped
        wait_until(look)
        os.kill(stopped[0], signal.SIGCONT)
        p.wait(60)
        err = p.said.read_bytes()
    reported = rows((tmp_path / "r.csv").read_text())
    assert [(r["intervals"], r["dropped"]) for r in reported] == [("0", "1"), ("1", "0")], err
    assert b"1 measurements were dropped, since the program" in err


# --- killed ---

def test_pirate_killed(measuring):
    """A Pirate is a thread of the command: to kill it is to kill that; the program goes on."""
    before = os.sched_getaffinity(0)
    p, pid = measuring()
    thief = max(int(t) for t in os.listdir(f"/proc/{p.pid}/task"))
    assert thief != p.pid
    os.kill(thief, signal.SIGKILL)
    assert p.wait(60) == -signal.SIGKILL
    wait_until(lambda: os.sched_getaffinity(pid) == before)
    wait_until(lambda: state_of(pid) == "R")


# --- no room ---

def with_room(kilobytes, pirate, tmp_path, size):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (kilobytes << 10, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
    p = subprocess.run([*pirate_argv(pirate), "--format", "csv", "--sizes", size, "--", "true"], cwd=tmp_path,
                       capture_output=True, timeout=60, preexec_fn=limit, check=False)
    if is_not_now(p.returncode, p.stderr):
        pytest.skip(p.stderr.decode().strip())
    return Result(p.returncode, p.stdout, p.stderr)


@pytest.mark.parametrize("kilobytes", [0, 20])
def test_full_disk(pirate, tmp_path, kilobytes):
    """What was measured is reported all the same, and no half profile stays."""
    result = with_room(kilobytes, pirate, tmp_path, "2M")
    assert result.status == 1 and b"cannot write the profile" in result.err
    assert rows(result.out)[0]["valid"] == "1"
    assert not (tmp_path / "p.db").exists()


def test_full_disk_keeps_the_old(pirate, tmp_path):
    """A profile that could not be added to is as it was."""
    assert pirate("--sizes", "2M", "--", "true").status == 0
    before = run_keys(tmp_path / "p.db")

    result = with_room(0, pirate, tmp_path, "4M")
    assert result.status == 1 and rows(result.out)[0]["available_bytes"] == str(4 << 20)
    assert run_keys(tmp_path / "p.db") == before
    with sqlite3.connect(tmp_path / "p.db") as db:
        assert db.execute("select available_bytes from pirate").fetchall() == [(2 << 20,)]


def test_no_folder(pirate, tmp_path):
    """Known before minutes of measuring."""
    result = pirate("-o", tmp_path / "none" / "p.db", "--", "echo", "started")
    assert result.status == 125 and b"cannot write a profile into" in result.err and b"started" not in result.err
    assert len(result.err.splitlines()) == 1


# --- two at once ---

def test_two_at_once(measuring, pirate, tmp_path):
    """Each tells of the other, whoever came first."""
    p, pid = measuring()
    second = pirate("-o", tmp_path / "q.db", "--format", "csv", "--sizes", "2M", "--", "true")
    assert second.status == 0 and RIVAL.format(p.pid) in second.err.decode()
    os.kill(pid, signal.SIGTERM)
    assert p.wait(60) == 143
    # "more than one other" if the fixture had to start the second one again, since its neighbours were too loud.
    assert re.search("(another|more than one other) cachegram pirate measured on this machine", p.said.read_text())
    alone = pirate("--format", "csv", "--sizes", "2M", "--", "true")
    assert f"(process {p.pid})" not in alone.err.decode()


# --- other machines ---

@pytest.fixture
def four_cores(built, tmp_path):
    """The environment of a machine of four cores that share an inclusive cache of 8 MB, each with 256 KB of its own."""
    def one(i):
        sets = f'cpuset="{1 << i:#x}" complete_cpuset="{1 << i:#x}" nodeset="0x1" complete_nodeset="0x1"'
        return (f'<object type="L2Cache" {sets} cache_size="262144" depth="2" cache_linesize="64" '
                f'cache_associativity="8" cache_type="0"><object type="Core" os_index="{i}" {sets}>'
                f'<object type="PU" os_index="{i}" {sets}/></object></object>')
    sets = 'cpuset="0xf" complete_cpuset="0xf" nodeset="0x1" complete_nodeset="0x1"'
    (tmp_path / "four.xml").write_text(
        f'<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE topology SYSTEM "hwloc2.dtd">\n<topology version="2.0">'
        f'<object type="Machine" os_index="0" {sets} allowed_cpuset="0xf" allowed_nodeset="0x1">'
        f'<object type="Package" os_index="0" {sets}><object type="NUMANode" os_index="0" {sets} '
        f'local_memory="1073741824"/><object type="L3Cache" {sets} cache_size="8388608" depth="3" '
        f'cache_linesize="64" cache_associativity="16" cache_type="0"><info name="Inclusive" value="1"/>'
        f'{"".join(one(i) for i in range(4))}</object></object></object></topology>')
    return {**os.environ, "HWLOC_XMLFILE": str(tmp_path / "four.xml"), "HWLOC_THISSYSTEM": "1",
            "LD_PRELOAD": str(built / "lib_four_cpus.so")}


def test_three_pirates(cachegram, able, built, four_cores, tmp_path):
    """As many threads as asked for, next to the command's own; --threads auto takes one or two of the three cores."""
    def go(*options):
        command = [cachegram, "pirate", "--limit", "100", "-o", tmp_path / "p.db", "--progress", "progress",
                   "--interval-ms", "2", "--sizes", "2M,4M", "--duration", "1", *options, "--", built / "micro",
                   "random", 1 << 20, 100000000]
        result = run(command, cwd=tmp_path, env=four_cores)
        assert result.status == 0 and result.err.startswith(b"0\n"), result.err
        return run_keys(tmp_path / "p.db")
    reported = go("--threads", "3")
    assert (reported["pirate_threads"], reported["pirate_llc_bytes"], reported["pirate_private_bytes"]) == (3, 8388608, 0)
    assert "the last level is inclusive" in reported["pirate_notes"] and "(256 KB)" in reported["pirate_notes"]
    assert go()["pirate_threads"] in (1, 2)
    result = run([cachegram, "pirate", "--threads", "4", "--", "echo", "started"], cwd=tmp_path, env=four_cores)
    assert result.status == 125 and b"but there are 3" in result.err and b"started" not in result.err
