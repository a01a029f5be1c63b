# SPDX-License-Identifier: Apache-2.0
"""CPU time that went into programs without the agent is reported, and not taken for a short run; other time is not."""
import os
import re
import sqlite3
import subprocess

import pytest

from conftest import BURST, FULL, need, open_to_others, run, run_keys, run_natively, totals

DEBUG_INFO = False

SPIN = ["random", "8388608", "60000000"]


@pytest.fixture
def spin(built, static_micro):
    """Some tenths of a second of CPU time: linked dynamically, and statically."""
    open_to_others(built)  # for another user
    return {"micro": " ".join([str(built / "micro"), *SPIN]), "static": " ".join([str(static_micro), *SPIN])}


@pytest.mark.parametrize("script", ["{static}; exit 4", "{static} & wait; exit 4", "exec {static}", "env -i {micro}; exit 4",
                                    "exec env -i {micro}",
                                    "setpriv --reuid=65534 --clear-groups {micro}; exit 4"])
def test_unprofiled_programs_are_reported(record, cachegram, spin, script):
    if "setpriv" in script and os.getuid() != 0:
        pytest.skip("only root can be another user")
    # Long, as a burst in the shell can take a tenth of a second of CPU time where page faults are slow.
    long = {name: argv.replace(SPIN[-1], "300000000") for name, argv in spin.items()}
    result, db = record(BURST, ["sh", "-c", script.format(**long)])
    # That it computes as much as it should is seen in its CPU time, below; the short one, run natively, says what it prints.
    native = run_natively("sh", "-c", script.format(**spin))
    assert result.status == native.status and result.out == native.out
    why = (b"statically linked" if "{static}" in script else b"cleared environment" if "env -i" in script else b"runs as another user")
    assert b"of CPU time were not profiled" in result.err + result.summary and why in result.err + result.summary
    keys = run_keys(db)
    assert 0.5 * float(keys["cpu_seconds"]) < float(keys["unprofiled_cpu_seconds"]) <= float(keys["cpu_seconds"])
    assert "not profiled" in keys["warning"]
    for command in ("report", "mrc"):
        reported = run([cachegram, command, db])
        if command == "report" or totals(db)["bursts"] == 0:  # of what was before the program without the agent
            assert why in reported.out + reported.err
        assert b"too short" not in reported.out + reported.err


def test_unprofiled_command_is_reported_once(record, cachegram, spin):
    result, db = record(BURST, spin["static"].split())
    assert b"is statically linked" in result.summary and b"CPU time were" not in result.summary
    assert b"too short" not in run([cachegram, "mrc", db]).err
    assert b"  recorded    no references; 0 processes\n" in run([cachegram, "report", db]).out


LAUNCHER = """
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    int status = 1;
    if (fork() == 0)
        return argc > 1 ? execv(argv[1], argv + 1) : 0;
    wait(&status);
    return WEXITSTATUS(status);
}
"""


@pytest.mark.parametrize("follow", [True, False])
def test_children_of_a_static_command(record, spin, tmp_path, follow):
    """It passes on the environment, as it would if a profiled program had executed it."""
    (tmp_path / "launcher.c").write_text(LAUNCHER)
    subprocess.run(["gcc", "-static", "-o", tmp_path / "launcher", tmp_path / "launcher.c"], check=True)
    argv = spin["micro"].replace(SPIN[-1], "1000000").split()
    result, db = record([*FULL, *([] if follow else ["--no-follow"])], [tmp_path / "launcher", *argv])
    assert result.status == 0 and result.out == run_natively(*argv).out
    assert totals(db)["references"] == 0 if not follow else 5_000_000 < totals(db)["references"] < 20_000_000
    assert b"is statically linked" in result.err + result.summary


READING = ["mrc {}", "hotspots {}", "causes {}", "annotate {} main", "timeline {}", "phases {}", "corun {}", "place {}",
           "predict --machine rome-7742 {}", "diff {} {}", "diff --by function {} {}", "diff --by phase {} {}",
           "export --to pprof -o x.pb {}", "export --to csv -o x {}"]


@pytest.mark.parametrize("options", [[], FULL, BURST, [*FULL, "--lines", "1/16"]])
def test_reading_names_the_program(cachegram, spin, tmp_path, options):
    """Nothing was recorded: every command says of what, and why; none says that a recording was cut short."""
    assert run([cachegram, "record", "-o", tmp_path / "p.db", *options, "--", *spin["static"].split()]).status == 0
    for command in READING:
        if "--lines" in options and not command.startswith("mrc"):
            continue  # refused for the sample of lines
        result = run([cachegram, *command.format("p.db", "p.db").split()], cwd=tmp_path)
        assert result.status == 1 and result.out == b"", command
        assert b"could not be profiled: " in result.err and b"linked-statically (is statically linked)" in result.err, result.err
        assert result.err.count(b"\n") == 1, result.err
    page = tmp_path / "p.html"
    assert run([cachegram, "html", "-o", page, tmp_path / "p.db"]).status == 0
    assert b"is statically linked" in page.read_bytes()
    said = run([cachegram, "report", tmp_path / "p.db"]).out
    assert b"no curve: " in said and b"could not be profiled: " in said.split(b"no curve: ")[1]


def test_reading_names_the_reason_of_the_agent(record, cachegram, built):
    """The agent was loaded and turned itself off."""
    db = record(BURST, [built / "micro", *SPIN], wrap=[built / "no_perf", "--no-timers"])[1]
    for command in ("mrc", "hotspots", "timeline"):
        said = run([cachegram, command, db]).err
        assert b"holds no references: 1 process was not profiled (micro)" in said, said
        assert b"timer_create: Operation not permitted" in said


def test_reading_warns_of_the_rest(cachegram, spin, tmp_path):
    """The shell was recorded, but not the program that took the time."""
    assert run([cachegram, "record", "-o", tmp_path / "p.db", "--", "sh", "-c", spin["static"] + "; exit 3"]).status == 3
    for command in READING:
        if "main" in command:
            continue  # the shell has no symbols
        result = run([cachegram, *command.format("p.db", "p.db").split()], cwd=tmp_path)
        assert result.status == 0, (command, result.err)
        assert b"could not be profiled: " in result.err and b"linked-statically (is statically linked)" in result.err, (command, result.err)
        assert 1 <= result.err.count(b"cachegram: warning: p.db: ") <= (2 if "diff" in command else 1), result.err


def test_what_is_missing_is_not_all(cachegram, spin, tmp_path):
    """A short run is recorded from its first reference to the last; here that is the shell's part only."""
    result = run([cachegram, "record", "--allowance", "60s", "-o", tmp_path / "p.db", "--", "sh", "-c", "exec " + spin["static"]])
    said = result.err + result.summary
    assert b"is statically linked" in said and b" references, " in said, said
    assert b"all of them" not in said


@pytest.mark.parametrize("script", ["exec {micro}", "exec python3 -c '{threads}'"])
def test_neither_perf_events_nor_timers(record, cachegram, built, spin, script):
    """Nothing was profiled, in however many threads: not a part of it."""
    result, db = record(BURST, ["sh", "-c", script.format(**spin, threads=THREADS)], wrap=[built / "no_perf", "--no-timers"])
    assert b"not profiled" in result.summary and b"partly" not in result.summary
    assert b"timer_create: Operation not permitted" in result.summary and b"emulator" not in result.summary
    assert totals(db)["bursts"] == 0 and b"too short" not in run([cachegram, "mrc", db]).err


def test_no_timers(record, cachegram, built):
    """They are the fallback: nothing is missing where perf events can be had."""
    result, db = record(BURST, [built / "micro", *SPIN], wrap=[built / "no_perf", "--timers"])
    with sqlite3.connect(db) as con:
        has_events = con.execute("select value from run where key = 'trigger'").fetchone() == ("perf",)
    assert (b"profiled" not in result.summary) == has_events, result.summary
    assert (b"disabled" not in run([cachegram, "report", db]).out) == has_events
    assert not has_events or totals(db)["bursts"] > 0


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


SCRIPTS = ["{micro}; exit 4", "exec {micro}", "{micro} & {micro} & wait", "timeout -s KILL 0.3 {micro}; exit 4",
           "for i in $(seq 50); do ls > /dev/null; done", "exec python3 -c '{forks}'", "exec python3 -c '{threads}'",
           "dd if=/dev/zero of=/dev/null bs=1M count=3000; exit 4"]


@pytest.mark.parametrize("script, options", [("{micro}; exit 4", FULL), *((script, options) for script in SCRIPTS for options in (
    BURST, ["--overhead", "0.1"], [*BURST, "--no-follow"]))])
def test_no_false_alarm(record, spin, script, options):
    need("python3")
    if options == FULL:
        spin = {"micro": spin["micro"].replace(SPIN[-1], "4000000")}
    result, db = record(options, ["sh", "-c", script.format(**spin, forks=FORKS, threads=THREADS)])
    assert b"not profiled" not in result.summary
    assert "unprofiled_cpu_seconds" not in run_keys(db)


def processes(db):
    with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as con:
        return con.execute("select count(*) from process").fetchone()[0]


def test_many_short_children(record, cachegram):
    """Slots are used again and again, and what the agent's starts took is reported as what it is."""
    result, db = record(["--overhead", "5"], ["sh", "-c", "i=0; while [ $i -lt 200 ]; do i=$((i+1)); x=$(echo $i); done; echo $x"])
    assert result.status == 0 and result.out == b"200\n"
    keys = run_keys(db)
    starts, cpu = float(keys["start_cpu_seconds"]), float(keys["cpu_seconds"])
    assert processes(db) == 201 and 201 * 10e-6 < starts < 0.9 * cpu
    assert float(keys["overhead_percent"]) > 100 * starts / cpu
    assert b"to load the agent into 201 processes" in run([cachegram, "report", db]).out


def test_more_short_processes_than_slots(record):
    """They wait for the slots of those that have ended: none is lost."""
    script = "seq 1600 | xargs -P 8 -n 4 sh -c 'true; ls / | wc -l > /dev/null'; echo done"
    result, db = record(["--gap-us", "500", "--allowance", "0"], ["sh", "-c", script])
    assert result.status == 0 and result.out == b"done\n"
    assert b"not recorded" not in result.summary
    with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as con:
        assert con.execute("select count(*) from process where exe like '%/ls'").fetchone() == (400,)


def test_children_too_short_for_a_burst(record, cachegram):
    """Which part of the CPU time the bursts represent is in the profile; tests/unit/test_curve_notes.c has the note on it."""
    fork = "i=0; while [ $i -lt 300 ]; do i=$((i+1)); (:); done"
    result, db = record(["--gap-us", "2000"], ["sh", "-c", f"i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; {fork}"])
    keys = run_keys(db)
    assert result.status == 0 and processes(db) > 64 and totals(db)["bursts"] > 0
    assert 0 < float(keys["sampled_cpu_seconds"]) and 0 < float(keys["user_cpu_seconds"]) <= float(keys["cpu_seconds"])
    # With a gap of an hour no burst begins, whatever else the machine does.
    result, db = record(["--gap-us", "3600000000"], ["sh", "-c", "i=0; while [ $i -lt 20 ]; do i=$((i+1)); (:); done"])
    assert totals(db)["bursts"] == 0
    for said in (result.summary, run([cachegram, "mrc", db]).err):
        assert b"its 21 processes were each too short to be sampled" in said


def test_more_children_than_slots(record, cachegram, tmp_path):
    """Those beyond are reported; those that come when there is room again are recorded, in all slots."""
    script = """mkfifo gate; exec 3<> gate
        at_once() {
            : > started
            for i in $(seq $1); do (echo >> started; read x < gate) & done
            while [ $(wc -l < started) -lt $1 ]; do sleep 0.1; done
            for i in $(seq $1); do echo; done >&3; wait
        }
        at_once 300; i=0
        while [ $i -lt 20 ]; do i=$((i+1)); sleep 0.1; cat /dev/null; done
        at_once 150; echo done"""
    result, db = record([], ["sh", "-c", script], cwd=tmp_path)
    assert result.status == 0 and result.out == b"done\n"
    reported = re.search(rb"(\d+) processes were not recorded, as more than 256 ran", result.summary)
    assert reported and int(reported[1]) >= 301 - 256
    with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as con:
        late, = con.execute("select count(*) from process where exe like '%/cat'").fetchone()
    assert 0 < late <= 20 and processes(db) > 256 + 120


def test_children_of_unrecorded_ones_are_counted(record):
    """What is in the profile and what the warning counts are all processes together."""
    script = """
import os
gate, ready = os.pipe(), os.pipe()
for _ in range(300):
    if os.fork() == 0:
        os.close(gate[1])
        if os.fork() == 0:
            os._exit(0)
        os.wait()
        os.write(ready[1], b"x")
        os.read(gate[0], 1)
        os._exit(0)
for _ in range(300):
    os.read(ready[0], 1)
os.close(gate[1])
for _ in range(300):
    os.wait()
print("done")
"""
    result, db = record([], ["/usr/bin/python3", "-c", script])
    assert result.status == 0 and result.out == b"done\n"
    reported = re.search(rb"(\d+) processes were not recorded", result.summary)
    assert reported and int(reported[1]) + processes(db) == 1 + 300 + 300, result.summary


CHILD = r"""
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    volatile int cells[4096] = {argc};
    int makes = strncmp(argv[1], "clone", 5) == 0 ? 0 : strncmp(argv[1], "_Fork", 5) == 0 ? 1 : 2, status;
    if (strcmp(argv[1], "system") == 0)
        return system("true");
    pid_t child = makes == 0 ? syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : makes == 1 ? _Fork() : fork();
    if (child == 0 && strstr(argv[1], "+exec"))
        execl("/bin/true", "true", NULL);
    for (int i = 0; child == 0 && i < 3000000; i++)
        cells[i & 4095]++;
    if (child == 0)
        _exit(0);
    return waitpid(child, &status, 0) != child || status != 0;
}
"""


@pytest.mark.parametrize("options", [["--allowance", "60s"], FULL, ["--mode", "count", "--allowance", "60s"]], ids=["default", "full", "count"])
@pytest.mark.parametrize("how, processes_with_agent, unknown", [
    ("clone", 1, 1), ("_Fork", 1, 1), ("clone+exec", 2, 0), ("_Fork+exec", 2, 0), ("fork", 2, 0), ("fork+exec", 3, 0), ("system", 2, 0)])
def test_copies_of_a_process(how, processes_with_agent, unknown, options, cachegram, record, tmp_path):
    """A child by clone or _Fork is not followed, unless it executes a program; however short it runs, the curve is not exact."""
    (tmp_path / "child.c").write_text(CHILD)
    subprocess.run(["gcc", "-O1", "-o", "child", "child.c"], cwd=tmp_path, check=True)
    result, db = record(options, [tmp_path / "child", how])
    assert result.status == 0, result.err
    assert (b"not profiled: 1 child process made by clone, _Fork or a system call" in result.summary) == bool(unknown), result.summary
    assert processes(db) == processes_with_agent
    assert (b"all, the curve is exact" in run([cachegram, "report", db]).out) == (not unknown)
