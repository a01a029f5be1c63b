# SPDX-License-Identifier: Apache-2.0
"""Full mode and counting always: every reference is there, or the profile says how much is missing and why.

And burst mode: a profile without bursts says why.
"""
import json
import os
import re
import resource
import signal
import sqlite3
import subprocess
import time

import pytest

from conftest import BURST, FULL, compile_text, descendants, open_to_others, run, run_keys, run_natively, totals

DEBUG_INFO = False

LOOPS = 1500000
COUNTED = ["--clock", "count-always"]
ALWAYS = pytest.mark.parametrize("options", [FULL, COUNTED], ids=["full", "counted"])


def references(db, options):
    return totals(db)["references"] if options == FULL else int(float(run_keys(db)["clock_references"]))


def assert_complete(db, options, expected, most_percent=0.1):
    """The loops' references are known by construction; start and end of the program come on top."""
    keys = run_keys(db)
    assert expected <= references(db, options) < expected + 600000
    assert float(keys["missed_percent"]) < most_percent and "warning" not in keys
    assert most_percent > 0.1 or "missed" not in keys


def test_many_threads_that_wait(record, built):
    """With far more threads than buffers, those that wait for one leave the processors to the collector."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_nvcsw
    result, db = record(FULL, [built / "many_waiting", "400"])
    waits = resource.getrusage(resource.RUSAGE_CHILDREN).ru_nvcsw - before
    assert (result.status, result.out) == (0, b"all have ended\n")
    assert float(run_keys(db)["missed_percent"]) < 1, run_keys(db)["missed"]
    assert waits < 25000  # 2,800; 83,000 when each of them looked every 5 ms


@pytest.mark.alone  # on a busy machine the last buffers of threads may come too late
@ALWAYS
@pytest.mark.parametrize("what", [[], ["tick", "load"], ["masked", "load"], ["tick", "map"], ["masked", "map", "load", "two"],
                                  ["tick", "two", "often"], ["tick", "trap"]], ids="-".join)
def test_nothing_is_missed(record, built, options, what):
    """Threads that wait, that are loaded and unmapped next to, keep no other from being recorded."""
    argv = [built / "disturbed", str(LOOPS), *what]
    result, db = record(options, argv)
    assert result.status == 0 and result.out == run(argv).out
    assert_complete(db, options, 2 * LOOPS * (2 if "two" in what else 1))


@ALWAYS
def test_main_has_ended(record, built, options):
    """Code that first runs when the first thread has ended, and /proc/self is empty, is translated all the same."""
    argv = [built / "main_gone"]
    result, db = record(options, argv)
    assert (result.status, result.out) == (3, run(argv).out)
    assert_complete(db, options, 8 * 2 * 1000000, most_percent=1)


@ALWAYS
def test_stops_and_continues(cachegram, built, tmp_path, options):
    """Each of them ends what goes on in all threads, which come back at once."""
    db, argv = tmp_path / "profile.db", [built / "disturbed", str(4 * LOOPS), "two"]
    with subprocess.Popen([cachegram, "record", "-o", db, "--allowance", "0", *options, "--", *argv], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, start_new_session=True) as p:
        stops = 0
        while p.poll() is None and stops < 20:
            for pid in descendants(p.pid):
                try:
                    os.kill(pid, signal.SIGSTOP)
                    time.sleep(0.005)
                    os.kill(pid, signal.SIGCONT)
                    stops += 1
                except ProcessLookupError:
                    pass
            time.sleep(0.005)
        out, _ = p.communicate(timeout=120)
    assert p.returncode == 0 and out == run(argv).out and stops > 0
    # A stop may come while threads end, whose last buffers then count as missing.
    assert_complete(db, options, 4 * 4 * LOOPS, most_percent=1)


@pytest.mark.alone  # a program that is executed late keeps threads waiting for a second, no longer
@ALWAYS
def test_spawns_meanwhile(record, built, options):
    """A thread that cannot be in translated code while another one executes a program waits for that."""
    argv = [built / "spawns_meanwhile"]
    result, db = record(options, argv)
    assert result.status == 0 and result.out == run(argv).out
    assert 20_000_000 <= references(db, options) < 20_600_000


def test_long_spawn(record, built, tmp_path):
    """It waits for a second at most, and the profile names the reason for what it has executed natively after that."""
    result, db = record(FULL, [built / "spawns_meanwhile", tmp_path / "fifo"])
    assert result.status == 0 and result.out == b"1 spawned\n"
    assert float(run_keys(db)["missed_percent"]) > 30 and "while another program was being executed" in run_keys(db)["missed"]


@ALWAYS
def test_unknown_thread(record, cachegram, built, options):
    """Half of the references are those of a thread that the agent does not know: reported everywhere, and nothing is called
    exact."""
    result, db = record(options, [built / "disturbed", str(20 * LOOPS), "raw"])
    keys = run_keys(db)
    assert result.status == 0 and 10 < float(keys["missed_percent"]) < 90
    assert b"references are missing" in result.err + result.summary
    assert "not created by pthread_create" in keys["missed"] and "are missing" in keys["warning"]
    with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as con:
        assert con.execute("select sum(cpu_ns) from native where reason = 'unknown'").fetchone()[0] > 1e6
    shown = run([cachegram, "report", db]).out
    assert b"missed      about" in shown and b"the curve is exact" not in shown and b"references in all" not in shown
    if options == FULL:
        assert b"from all" not in run([cachegram, "mrc", db]).out
        reported = json.loads(run([cachegram, "mrc", "--format", "json", db]).out)
        assert 10 < reported["missed_percent"] < 90


KILLED = "the last records of threads whose process was killed by a signal"


@pytest.mark.parametrize("options", [FULL, ["--allowance", "1s"]], ids=["full", "default"])
def test_killed_by_itself(record, options):
    """Nobody hands over the last buffer, and no other thread is blamed."""
    result, db = record(options, ["sh", "-c", "kill -9 $$"])
    assert result.status == 128 + signal.SIGKILL
    assert run_keys(db)["missed"] == KILLED and KILLED.encode() in result.summary
    assert b"natively" not in result.summary


def test_killed_from_outside(cachegram, tmp_path):
    db = tmp_path / "profile.db"
    with subprocess.Popen([cachegram, "record", "-o", db, *FULL, "--", "sh", "-c", "echo; read x"],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
        p.stdout.readline()
        for pid in descendants(p.pid):
            os.kill(pid, signal.SIGKILL)
        p.communicate(timeout=120)
    assert p.returncode == 128 + signal.SIGKILL
    # A long run may have lost too little for the reason to be stored.
    keys = run_keys(db)
    assert float(keys["missed_percent"]) > 0 and keys.get("missed", KILLED) == KILLED


def test_more_code_than_a_profile_distinguishes(record, built):
    """It runs natively: not one instruction after the other, each between two attempts to translate the next one."""
    argv = [built / "too_much_code", "550000"]
    native = run(argv)
    result, db = record(FULL, argv)
    assert (result.status, result.out) == (0, native.out) and native.status == 0
    with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as con:
        counters = dict(con.execute("select name, value from counter"))
    assert counters["blocks"] > 500000 and counters["skipped_code"] < 1000


def test_ordinary_program_misses_nothing(record, cachegram):
    """Processes that execute others, and system calls in number, are none that run natively."""
    result, db = record(FULL, ["sh", "-c", "ls -lR /usr/share/doc/bash > /dev/null; env true; dd if=/dev/zero of=/dev/null bs=512 "
                                           "count=20000 2> /dev/null"])
    assert result.status == 0 and b"missing" not in result.summary
    assert float(run_keys(db)["missed_percent"]) < 0.1
    shown = run([cachegram, "report", db]).out
    assert b"missed" not in shown and b"references: all, the curve is exact;" in shown
    assert b"from all" in run([cachegram, "mrc", db]).out


def test_blocked_trap_is_reported(record, cachegram, built):
    """No burst begins while SIGTRAP is blocked by a call of the program's own."""
    result, db = record([], [built / "disturbed", str(600 * LOOPS), "trap"])
    assert result.status == 0 and totals(db)["bursts"] == 0
    for reported in (result.err + result.summary, run([cachegram, "mrc", db]).err):
        assert b"SIGTRAP was blocked" in reported and b"too short" not in reported


def test_replaced_handlers_are_reported(record, cachegram, built):
    """Nor does one while a call of the program's own has replaced a handler that bursts rely on."""
    result, db = record([], [built / "disturbed", str(600 * LOOPS), "fault"])
    assert result.status == 0 and totals(db)["bursts"] == 0
    for reported in (result.err + result.summary, run([cachegram, "mrc", db]).err):
        assert b"installed its own handlers of SIGSEGV" in reported and b"too short" not in reported


def test_unknown_thread_before_bursts(record, built):
    """By default, threads that the agent does not know are noticed while references are recorded or counted."""
    result, db = record(["--allowance", "10s"], [built / "disturbed", str(300 * LOOPS), "raw", "most"])
    assert result.status == 0 and "threads that were not created by pthread_create" in run_keys(db)["warning"]


def test_unknown_thread_in_bursts(record, built):
    """From outside, where the agent sees only a part of the calls; and not a thread that it knows, even if that
    waits so often that it has given up its perf event."""
    argv = [built / "disturbed", str(300 * LOOPS), "raw", "most"]
    result, db = record([*BURST, "--watch", "none"], argv)
    assert result.status == 0 and "threads that were not created by pthread_create" in run_keys(db)["warning"]
    for how in (["two"], ["two", "naps"]):
        result, db = record([*BURST, "--watch", "none"], [built / "disturbed", str(300 * LOOPS), *how])
        assert result.status == 0 and "not created by" not in run_keys(db).get("warning", "")


def test_kernel_threads_of_the_process_are_not_missed(record, built):
    """Those of io_uring work in the kernel only. They once were most of the time of "unknown threads"."""
    argv = [built / "ring_waits", "6000", "async"]
    if run(argv).status == 77:
        pytest.skip("no io_uring here")
    result, db = record([*BURST, "--watch", "none"], argv)
    assert result.status == 0 and "not created by" not in run_keys(db).get("warning", "")


@pytest.mark.parametrize("options", [BURST, FULL], ids=["burst", "full"])
def test_program_that_cannot_be_profiled_is_named(record, cachegram, static_micro, options):
    """By a shell, in its place, and also where little time goes into it."""
    static = static_micro
    for script in (f"{static} random 4096 2000000; exit 3", f"exec {static} random 4096 1000"):
        result, db = record(options, ["sh", "-c", script])
        assert result.status == (3 if "exit" in script else 0)
        reported = result.err + result.summary
        assert f"{static} (is statically linked)".encode() in reported and b"set-uid" not in reported
        said = run([cachegram, "report", db]).out
        assert f"{static} (is statically linked)".encode() in said and b"the curve is exact" not in said
        if options == FULL:
            assert b"references: not of all programs;" in said or b"references: some are missing;" in said


def test_rights_and_environment_are_named(record, cachegram, built, tmp_path):
    if os.getuid() != 0:
        pytest.skip("only root can be another user")
    own = tmp_path / "with-rights"
    open_to_others(tmp_path)
    open_to_others(built)
    own.write_bytes((built / "disturbed").read_bytes())
    own.chmod(0o4755)
    other = "setpriv --reuid=65534 --clear-groups"
    for argv, why in (([*other.split(), own, str(400 * LOOPS)], "runs with another user's rights (set-uid or set-gid)"),
                      (["env", "-i", own, str(400 * LOOPS)], "was started with a cleared environment"),
                      ([*other.split(), built / "disturbed", str(400 * LOOPS)], "runs as another user")):
        result, db = record([], argv)
        reported = (result.err + result.summary).decode()
        assert result.status == 0 and f"{argv[-2]} ({why}" in reported and reported.count(" (") <= 2, reported


@pytest.mark.parametrize("change, why", [("-i", "a cleared environment"), ("LD_PRELOAD=libm.so.6", "another LD_PRELOAD"),
                                         ("-u LD_PRELOAD", "another LD_PRELOAD"), ("LD_PRELOAD=$LD_PRELOAD.1", "another LD_PRELOAD"),
                                         ("LD_PRELOAD=libm.so.6:$LD_PRELOAD", None), ("LD_PRELOAD=$LD_PRELOAD:libm.so.6", None),
                                         ("LD_PRELOAD='libm.so.6 '$LD_PRELOAD' libm.so.6'", None)])
def test_program_of_a_moment_without_the_agent(record, cachegram, change, why):
    """It has ended before the recorder looks for programs without the agent, and the curve is not of all programs."""
    result, db = record(FULL, ["sh", "-c", f"env {change} /bin/true"])
    said = result.summary.decode()
    assert result.status == 0 and ("not profiled: /bin/true (was started with" in said) == (why is not None), said
    assert why is None or f"(was started with {why}" in said
    # The latter if the kernel took long to start it.
    shown = run([cachegram, "report", db]).out
    assert (b"references: not of all programs;" in shown or b"references: some are missing;" in shown) == (why is not None)


SPAWNS = """
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
extern char **environ;
int main(int argc, char **argv)
{
    static char *none[] = {0};
    int status, error = posix_spawnp(0, argv[2], 0, 0, argv + 2, strcmp(argv[1], "none") ? environ : none);
    return error ? error : wait(&status) < 0 || argc < 3 ? 1 : WEXITSTATUS(status);
}
"""


def test_spawned_program_of_a_moment_without_the_agent(record, static_micro, tmp_path):
    """Likewise by posix_spawn, which is what make and Java use."""
    program = compile_text(tmp_path / "spawns.c", SPAWNS)
    for environment, argv, why in (("none", ["true"], "true (was started with a cleared environment"),
                                   ("own", [static_micro], f"{static_micro} (is statically linked"), ("own", ["true"], None)):
        result, _ = record(FULL, [program, environment, *argv])
        said = result.summary.decode()
        assert result.status == run_natively(program, environment, *argv).status
        assert (f"not profiled: {why}" in said) if why else "not profiled" not in said, said


SLEEPS_TRACED = """
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
    volatile long sum = 0;
    for (int i = 0; i < 40; i++) {
        if (fork() == 0) {
            ptrace(PTRACE_TRACEME, 0, NULL, NULL);
            usleep(50000);
            _exit(0);
        }
        wait(NULL);
    }
    for (long i = 0; i < 20000000; i++)
        sum += i;
    printf("%ld\\n", sum);
}
"""


@ALWAYS
def test_sleep_without_the_agent_is_not_missed(record, tmp_path, options):
    """A process in which the agent is off is not assumed to have run all the time until the recorder looks."""
    program = compile_text(tmp_path / "sleeps_traced.c", SLEEPS_TRACED)
    result, db = record(options, [program])
    keys = run_keys(db)
    assert result.status == 0 and result.out == run([program]).out
    off = re.search(r"(\S+) s of CPU time after the agent had turned itself off", keys.get("missed", ""))
    assert off is None or float(off[1]) < 1  # they slept for 2 s, and all of these were taken for CPU time


def test_overwritten_environment_is_none_that_was_cleared(record, built):
    result, _ = record(BURST, [built / "overwritten"])
    reported = result.err + result.summary
    assert result.status == 0 and b"CPU time were not profiled" in reported and b"was started with a cleared" not in reported


def test_empty_recording_gives_the_reason(record, cachegram):
    """Not as 0 references in 0 bursts, of which the overhead was some percent."""
    result, db = record(["--gap-us", "3600000000"], ["true"])
    assert totals(db)["bursts"] == 0
    assert b"nothing was recorded (too short to be sampled" in result.summary and b"%" not in result.summary


def test_a_small_loss_is_no_exact_curve(record, cachegram):
    """Between 0.1 and 1% the report says how much is missing; it does not say that nothing is."""
    _, db = record(FULL, ["true"])
    assert b"references: all, the curve is exact;" in run([cachegram, "report", db]).out
    with sqlite3.connect(db) as con:
        con.execute("update run set value = '0.5' where key = 'missed_percent'")
        con.execute("insert into run (key, value) values ('missed', 'a reason')")
    shown = run([cachegram, "report", db]).out
    assert b"references: nearly all;" in shown and b"missed      about 0.50% of the references: a reason" in shown
    assert b"exact" not in shown
    assert b"full: nearly every reference\n" in run([cachegram, "report", "--verbose", db]).out
