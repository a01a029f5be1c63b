# SPDX-License-Identifier: Apache-2.0
"""`cachegram pirate --from --to`: a part of a run is measured, and nothing else; found wherever its functions are.

The program tells by its own clock what its parts cost, so that a test can compare with what was measured.
"""
import os
import pathlib
import re
import signal
import sqlite3
import subprocess
import time

import pytest

from conftest import ROOT, run
from pirate_help import (able, assert_running, cpu_seconds, pirate, rows, started, state_of,  # noqa: F401 (fixtures)
                         wait_until)

pytestmark = pytest.mark.alone

STEPS = 8000  # some 300 milliseconds of CPU time a run, half of them in the part
LONG = 300000  # the same for a program that is to be killed before it ends: some 3 seconds until the part
BOTH = ["--from", "begin_here", "--to", "end_here"]
WITHIN_NS = 20e6  # of a breakpoint's report: on a busy machine the measuring process waits for its CPU


def measured(pirate, tmp_path, options, command, **how):
    """A run alone and one with 4 MB: the second one's measured time, and what its parts cost by its own account."""
    times = tmp_path / "times"
    times.unlink(missing_ok=True)
    env = {**os.environ, "SPAN_TIMES": str(times)}
    result = pirate("--format", "csv", "--results", "r.csv", "--sizes", "4M", *options, "--", *command, env=env, **how)
    assert result.status == 0, result.err
    row = rows((tmp_path / "r.csv").read_text())[0]
    parts = [int(t) for t in times.read_text().splitlines()[-1].split()]
    assert len(times.read_text().splitlines()) == 2  # alone, with 4 MB
    return float(row["ns_per_unit"]), parts, result


def is_about(ns, expected):
    return abs(ns - expected) < WITHIN_NS + 0.1 * expected


@pytest.mark.parametrize("how", [[], ["thread"], ["child"]])
def test_the_part_between(pirate, built, tmp_path, how):
    ns, parts, result = measured(pirate, tmp_path, BOTH, [built / "span", STEPS, *how])
    assert is_about(ns, parts[1]), (ns, parts)
    assert b"never executed" not in result.err


def test_one_end(pirate, built, tmp_path):
    """The first part has the program's start in it, which its own account has not: almost nothing."""
    ns, parts, _ = measured(pirate, tmp_path, BOTH[:2], [built / "span", STEPS])
    assert is_about(ns, parts[1] + parts[2]), (ns, parts)
    ns, parts, _ = measured(pirate, tmp_path, BOTH[2:], [built / "span", STEPS])
    assert is_about(ns, parts[0] + parts[1]), (ns, parts)


def test_called_all_the_time(pirate, built, tmp_path):
    """The breakpoint is gone once it was reached, or each further call would cost microseconds."""
    command = [built / "span", STEPS, "loop"]
    tried = []
    for _ in range(4):  # what a breakpoint costs is there each time; a machine that is slow for a while is not
        plain, _, _ = measured(pirate, tmp_path, [], command)
        ns, _, _ = measured(pirate, tmp_path, ["--from", "begin_here"], command)
        tried.append((plain, ns))
        if ns < 1.3 * plain + WITHIN_NS:
            return
    assert not tried


# --- how a place is named, and where it is found ---

def offset_of(path, function):
    """The file offset of a function: its address, less what its segment is moved by."""
    symbols = subprocess.run(["readelf", "-sW", path], capture_output=True, text=True, check=True).stdout
    address = int(re.search(rf"^ *\d+: ([0-9a-f]+) .* {function}$", symbols, re.M)[1], 16)
    segments = subprocess.run(["readelf", "-lW", path], capture_output=True, text=True, check=True).stdout
    for offset, virtual, size in re.findall(r"LOAD +0x(\w+) 0x(\w+) 0x\w+ 0x(\w+)", segments):
        if int(virtual, 16) <= address < int(virtual, 16) + int(size, 16):
            return address, address - int(virtual, 16) + int(offset, 16)
    return None


def build(tmp_path, name, *flags):
    subprocess.run(["gcc", "-O2", "-pthread", "-o", tmp_path / name, ROOT / "tests" / "targets" / "span.c", *flags],
                   check=True)
    return tmp_path / name


def test_by_offset_and_address(pirate, tmp_path):
    program = build(tmp_path, "still", "-no-pie")
    begin, end = offset_of(program, "begin_here"), offset_of(program, "end_here")
    for places in ([f"still:{begin[1]:#x}", f"{program}:{end[1]:#x}"], [f"{begin[0]:#x}", f"{end[0]:#x}"],
                   ["still:begin_here", "end_here"]):
        ns, parts, _ = measured(pirate, tmp_path, ["--from", places[0], "--to", places[1]], [program, STEPS])
        assert is_about(ns, parts[1]), (places, ns, parts)


def test_static_and_stripped(pirate, tmp_path):
    static = build(tmp_path, "static", "-static")
    ns, parts, _ = measured(pirate, tmp_path, BOTH, [static, STEPS])
    assert is_about(ns, parts[1]), (ns, parts)
    stripped = build(tmp_path, "stripped", "-rdynamic", "-s")
    ns, parts, _ = measured(pirate, tmp_path, BOTH[:2], [stripped, STEPS])
    assert is_about(ns, parts[1] + parts[2]), (ns, parts)
    result = pirate("--sizes", "4M", *BOTH, "--", stripped, STEPS)  # end_here was in .symtab
    assert result.status == 125 and b"have a function 'end_here'" in result.err and result.out == b""


def test_in_a_library(pirate, built, tmp_path):
    """After its work the program calls printf and exit, both of which its C library has."""
    ns, parts, _ = measured(pirate, tmp_path, ["--from", "begin_here", "--to", "printf"], [built / "span", STEPS])
    assert is_about(ns, parts[1] + parts[2]), (ns, parts)
    ns, parts, _ = measured(pirate, tmp_path, ["--to", "libc.so.6:exit"], [built / "span", STEPS])
    assert is_about(ns, sum(parts)) or ns > sum(parts)


@pytest.mark.parametrize("place, why", [("no_such", "have a function 'no_such'"), ("libm.so.6:sin", "has not loaded"),
                                        ("span:no_such", "has no code"), ("0x10", "no code at 0x10"),
                                        ("progress", "have a function"), ("memcpy", "one of several functions"),
                                        ("span:0x7fffffff", "has no code")])
def test_unresolved_place_prevents_the_start(pirate, built, tmp_path, place, why):
    """One sentence, and the program has not begun."""
    for options in ([], ["--progress", "progress"]):
        result = pirate("--sizes", "4M", *options, "--from", place, "--", built / "span", 1)
        assert result.status == 125 and result.out == b"", result.err
        assert why in result.err.decode() and len(result.err.splitlines()) == 1, result.err
    assert not (tmp_path / "p.db").exists()


def test_misuse(pirate, built):
    for args in (["--from", "0xyz"], ["--to", "file:"], ["--from", ""], ["--count", "--from", "main"]):
        result = pirate(*args, "--", built / "span", 1)
        assert result.status == 2 and result.out == b"", args
    assert pirate("--from", "main", "--", "no-such-command").status == 127


def test_never_reached(pirate, built, tmp_path):
    """No figures, one sentence, no further runs."""
    for options in ([], ["--progress", "progress"]):
        times = tmp_path / "times"
        result = pirate("--format", "csv", "--results", "r.csv", "--sizes", "2M,4M", *options, *BOTH, "--",
                        built / "span", STEPS, "never", env={**os.environ, "SPAN_TIMES": str(times)})
        assert result.status == 0 and result.out == b"%d\n" % (20 * STEPS)
        assert result.err.count(b"never executed 'begin_here', so nothing was measured") == 1
        assert all(r["valid"] == "0" and r["ns_per_unit"] == "" for r in rows((tmp_path / "r.csv").read_text()))
        assert len(times.read_text().splitlines()) == 1
        times.unlink()
    _, _, result = measured(pirate, tmp_path, ["--from", "end_here", "--to", "begin_here"], [built / "span", STEPS])
    assert b"never executed 'begin_here' after 'end_here'" in result.err


def test_rights(pirate, tmp_path):
    """A program that would lose its rights is not started (as root there are none to gain)."""
    if os.geteuid() != 0:
        pytest.skip("needs a program of another user's")
    program = build(tmp_path, "owned")
    os.chown(program, 65534, 65534)
    program.chmod(0o6755)
    result = pirate("--sizes", "4M", *BOTH, "--", program, 1)
    assert result.status == 125 and b"another user's rights" in result.err and result.out == b""


# --- one run ---

def test_intervals(pirate, built, tmp_path):
    """All that was measured lies in the part: so many steps, and no more."""
    result = pirate("--format", "csv", "--results", "r.csv", "--progress", "progress", "--interval-ms", "5", "--sizes",
                    "2M,4M", *BOTH, "--", built / "span", 10 * STEPS)
    assert (result.status, result.out) == (0, b"%d\n" % (200 * STEPS)), result.err
    reported = rows((tmp_path / "r.csv").read_text())
    assert any(r["valid"] == "1" for r in reported)
    with sqlite3.connect(tmp_path / "p.db") as db:
        steps = db.execute("select sum(units) from pirate").fetchone()[0]
    assert 0 < steps <= 100 * STEPS


def test_attached(pirate, built, tmp_path):
    with subprocess.Popen([built / "span", str(STEPS), "forever"], stdout=subprocess.DEVNULL) as p:
        try:
            before = os.sched_getaffinity(p.pid)
            result = pirate("--format", "csv", "--progress", "progress", "--interval-ms", "2", "--sizes", "4M", *BOTH,
                            "-p", p.pid)
            assert result.status == 0 and b"never executed" not in result.err, result.err
            with sqlite3.connect(tmp_path / "p.db") as db:  # the part is done again and again, but measured once
                assert db.execute("select sum(units) from pirate").fetchone()[0] <= 20 * STEPS
            result = pirate("--format", "csv", "--progress", "progress", "--interval-ms", "2", "--sizes", "4M", "--from",
                            "begin_here", "--duration", "3", "-p", p.pid)
            assert result.status == 0 and rows(result.out)[0]["valid"] == "1", result.err
            assert p.poll() is None and state_of(p.pid) in "RS"
            wait_until(lambda: os.sched_getaffinity(p.pid) == before, 2)
            result = pirate("--progress", "progress", "--from", "no_such", "-p", p.pid)
            assert result.status == 1 and b"have a function 'no_such'" in result.err
        finally:
            p.kill()


def test_interrupted_while_waiting(pirate, built):
    """Attached, and the place does not come: SIGINT ends us, not the program."""
    with subprocess.Popen([built / "micro", "random", str(1 << 20), "0"], stdout=subprocess.DEVNULL) as victim:
        try:
            with started(pirate, "--progress", "progress", "--sizes", "4M", "--from", "main", "-p", victim.pid,
                         stdout=subprocess.PIPE) as p:
                wait_until(lambda: len(os.sched_getaffinity(victim.pid)) < os.cpu_count())
                time.sleep(0.2)
                p.send_signal(signal.SIGINT)
                out, _ = p.communicate(timeout=20)
                assert p.returncode == 0 and b"never executed 'main'" in out + p.said.read_bytes()
            assert victim.poll() is None and state_of(victim.pid) in "RS"
        finally:
            victim.kill()


def tracer_of(pid):
    return re.search(r"^TracerPid:\s*(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text(), re.M)[1]


def test_not_traced(pirate, built, tmp_path):
    """Neither while it waits for the place nor while it is measured is anybody its tracer."""
    with started(pirate, "--progress", "progress", "--sizes", "4M", "--interval-ms", "50", "--from", "end_here", "--",
                 built / "span", LONG, "forever", stdout=subprocess.DEVNULL) as p:
        try:
            children = pathlib.Path(f"/proc/{p.pid}/task/{p.pid}/children")
            found = []

            def look():
                found[:] = [int(c) for c in children.read_text().split()
                            if "span" in pathlib.Path(f"/proc/{c}/comm").read_text()]
                return found
            wait_until(look)
            seen = [tracer_of(found[0]) for _ in range(200) if time.sleep(0.005) is None]
            assert seen.count("0") > 150  # else it is held for a moment, to change the size
        finally:
            if found:
                os.kill(found[0], signal.SIGKILL)
            p.wait(20)


# --- breakpoints forbidden ---

def test_without_breakpoints(pirate, built, tmp_path):
    """The start alone is found by ptrace, in the first thread."""
    ns, parts, _ = measured(pirate, tmp_path, BOTH[:2], [built / "span", STEPS], wrap=[built / "no_perf"])
    assert is_about(ns, parts[1] + parts[2]), (ns, parts)
    result = pirate("--sizes", "4M", *BOTH, "--", built / "span", 1, wrap=[built / "no_perf"])
    assert result.status == 125 and b"perf_event_paranoid" in result.err and result.out == b""
    assert len(result.err.splitlines()) == 1
    result = pirate("--sizes", "4M", *BOTH[:2], "--", built / "span", STEPS, "never", wrap=[built / "no_perf"])
    assert result.status == 0 and b"only its first thread was watched" in result.out + result.err


def test_traced_start_is_unseen(pirate, built, tmp_path):
    """Signals and stops reach a program that is traced till it comes to the place."""
    script = "trap 'echo got it; exit 7' USR1; kill -STOP $$; kill -USR1 $$; while :; do :; done"
    with started(pirate, "--sizes", "4M", "--from", "exit", "--results", "r.txt", "--", "sh", "-c", script,
                 wrap=[built / "no_perf"], stdout=subprocess.PIPE, cwd=tmp_path) as p:
        end = time.monotonic() + 30
        while p.poll() is None and time.monotonic() < end:  # each run stops itself once
            for path in pathlib.Path(f"/proc/{p.pid}/task/{p.pid}/children").read_text().split():
                try:
                    if state_of(path) in "tT" and "sh" in pathlib.Path(f"/proc/{path}/comm").read_text():
                        os.kill(int(path), signal.SIGCONT)
                except (FileNotFoundError, ProcessLookupError):
                    pass  # it has ended meanwhile
            time.sleep(0.02)
        p.kill()
        out, _ = p.communicate()
        assert (p.returncode, out) == (7, b"got it\n"), p.said.read_text()


def test_killed_while_tracing(pirate, built, tmp_path):
    """The breakpoint does not outlive us: the program, which comes to the place later, goes on.

    A second later: what comes to it in the moment before the breakpoint is taken away is lost (docs/pirate.md).
    """
    with started(pirate, "--sizes", "4M", "--from", "end_here", "--", built / "span", LONG, "forever",
                 wrap=[built / "no_perf"], stdout=subprocess.DEVNULL) as p:
        children = pathlib.Path(f"/proc/{p.pid}/task/{p.pid}/children")

        def span():
            assert_running(p)
            return [int(c) for c in children.read_text().split()
                    if pathlib.Path(f"/proc/{c}/comm").read_text() == "span\n"]
        wait_until(lambda: span() and tracer_of(span()[0]) == str(p.pid))
        pid = span()[0]
        wait_until(lambda: cpu_seconds(pid) > 0.1)  # at its start our death would end it, as is meant
        p.kill()
        p.wait()
        try:
            wait_until(lambda: tracer_of(pid) == "0")
            wait_until(lambda: state_of(pid) == "Z" or cpu_seconds(pid) > 4, 60)  # it has been there several times
            assert state_of(pid) == "R"
        finally:
            os.kill(pid, signal.SIGKILL)
