# SPDX-License-Identifier: Apache-2.0
"""Hostile little programs (tests/targets) behave under the profiler as they do alone."""
import os
import re
import signal
import sqlite3
from concurrent.futures import ThreadPoolExecutor

import pytest

from conftest import FULL, run, run_keys, run_natively, target_environment, totals, work_divisor

DEBUG_INFO = False

# Bursts often: the targets are short and each must meet some.
MODES = {"burst": ["--mode", "burst", "--burst-refs", "30000", "--gap-us", "500"], "full": FULL,
         "lines": [*FULL, "--lines", "1/16"],
         "counted": ["--clock", "count-always", "--burst-refs", "30000", "--gap-us", "2000"],
         "early": ["--allowance", "100ms"], "switch": ["CACHEGRAM_DEBUG=switch-ms=2"]}

PLAIN = ["sig_handlers", "sig_jump", "sig_faults", "threads", "threads_c11", "processes", "throw", "jump", "close_all", "blocking",
         "jit", "exec_chain", "execs", "flags", "segments", "strange_children", "waits", "interrupts", "disarm",
         "thread_makers", "wrong_masks", "cancelled_objects", "cleared_children", "small_stacks",
         "libc_handlers", "main_gone", "sig_frames"]
DEATHS = {"segv": 139, "abort": 134, "kill": 137, "term": 143, "ill": 132, "fpe": 136, "trap": 133, "hlt": 139,
          "thread-abort": 134, "thread-exit": 33, "main-exits-first": 33, "_exit": 21, "syscall-exit": 22,
          "return": 20}
# Fewest references. The smallest program (jit) makes 3.8 million; a burst of a short run may end at once.
LEAST = {"full": 1000000, "lines": 1000000, "counted": 1000000, "early": 1, "switch": 100, "burst": 1}


def same(built, record, mode, argv):
    """As natively. A run of a few milliseconds may have no burst: up to five more until something was recorded."""
    options = MODES[mode] if isinstance(mode, str) else mode
    divisor = work_divisor(options)
    native = run_natively(*argv, divisor=divisor)
    for _ in range(6):
        result, db = record(options, argv, env=target_environment(divisor))
        assert result.status == native.status, result.summary
        assert result.out == native.out
        assert result.err == native.err
        assert result.summary, "the recorder's line is missing"
        total = totals(db)
        if mode == "counted":
            total["references"] = float(run_keys(db)["clock_references"])
        if total["references"] > 0:
            break
    return native, total


def ends(db):
    """Number of bursts, and of stretches of full mode, by the reason for their end."""
    with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as con:
        return {name.removeprefix("ended_"): n for name, n in con.execute(
            "select name, sum(value) from counter where name like 'ended@_%' escape '@' group by name")}


@pytest.mark.parametrize("what, mode", [("threads", ["--gap-us", "200000", "--clock", "cputime"]), ("threads", "full"),
                                        ("alarms", ["--gap-us", "200000"]), ("alarms", "counted")])
def test_as_many_mappings_as_possible(built, record, what, mode):
    """Then nothing can be protected any more that is not a mapping of its own: a full buffer would not end a burst, and signals
    would wait for the end of counting."""
    options = MODES[mode] if isinstance(mode, str) else mode
    argv = [built / "many_mappings", what]
    env = target_environment(work_divisor(options))
    native = run(argv, env=env)
    assert native.status == 0 and b"wrong 0" in native.out
    for _ in range(1 if mode == "full" else 2):
        result, _ = record(options, argv, env=env)
        assert (result.status, result.out, result.err) == (0, native.out, b""), result.summary


@pytest.mark.in_turns
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", PLAIN)
def test_plain(built, record, name, mode):
    native, total = same(built, record, mode, [built / name])
    assert b"wrong" not in native.out.replace(b"wrong 0", b""), native.out
    assert total["references"] >= LEAST[mode]


@pytest.mark.parametrize("mode", MODES)
def test_own_dispatch(built, record, mode):
    """Functions of libc's that the agent interposes are still libc's for the program's own syscall user dispatch."""
    argv = [built / "own_dispatch"]
    if run(argv).status == 77:
        pytest.skip("this kernel has no syscall user dispatch")
    result, _ = record(MODES[mode], argv)
    assert (result.status, result.out, result.err) == (0, b"dispatched 100, same 200, changed 100, off 0\n", b"")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("arguments", ["40 0 0", "40 3 1", "4 2 2"])
def test_protection_keys(built, record, arguments, mode):
    """Data that is accessible at times, code that cannot be written or read, and the rights of handlers."""
    argv = [built / "pkeys", *arguments.split()]
    if run(argv).status == 77:
        pytest.skip("this processor has no memory protection keys")
    result, _ = record(MODES[mode], argv)
    assert (result.status, result.out, result.err) == (0, run(argv).out, b"")


def test_what_is_done_before_a_fault_is_recorded(built, cachegram, record, tmp_path):
    """Strings, gathers and scatters that fault half-way: the elements before, in order and each of them once."""
    trace, listing = tmp_path / "t.trace", tmp_path / "t.csv"
    result, _ = record([*FULL, "--trace", trace], [built / "half"])
    assert result.status == 0, result.err
    reported = [tuple(line.split()) for line in result.out.decode().splitlines()]
    assert run([cachegram, "export", "--to", "csv", "-o", listing, trace]).status == 0
    wanted = set(reported)
    seen = []
    for line in listing.read_text().splitlines()[1:]:
        address, size, _ = line.split(",", 2)
        reference = f"{int(address, 16):x}", size
        if reference in wanted:
            seen.append(reference)
    assert seen == reported


@pytest.mark.parametrize("mode", MODES)
def test_children_that_are_not_followed(built, record, mode):
    """Their handlers have the stack that they would have."""
    native, _ = same(built, record, [*MODES[mode], "--no-follow"], [built / "strange_children"])
    assert b"exit 98" not in native.out


@pytest.mark.parametrize("mode", MODES)
def test_thread_of_a_child_that_is_not_followed(built, record, mode):
    """It has no slot of its own, and must not take its parent's."""
    result, db = record(MODES[mode], [built / "strange_children", "thread"], env=target_environment(work_divisor(MODES[mode])))
    reported = dict(line.rsplit(" ", 1) for line in result.out.decode().splitlines())
    assert result.status == 0 and reported["thread: exit"] == "0", result.out
    with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as con:
        assert con.execute("select count(*) from burst where tid = ?", (int(reported["thread"]),)).fetchone() == (0,)
        assert con.execute("select count(*) from process").fetchone() == (1,)
        assert dict(con.execute("select name, value from counter"))["threads"] == 1


def test_inactive_agent_leaves_fault_handlers_alone(built, record):
    """Without an agent at work, in a program that it leaves alone, handlers of faults are the kernel's to run."""
    agent = re.search(rb"LD_PRELOAD=(\S+)", record(FULL, ["/usr/bin/env"])[0].out).group(1).decode()
    argv = [built / "strange_children"]
    assert run(["env", f"LD_PRELOAD={agent}", *argv]).out == run(argv).out


@pytest.mark.in_turns
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["real", "virtual", "prof"])
def test_storm(built, record, kind, mode):
    native, total = same(built, record, mode, [built / "sig_storm", kind])
    assert b"wrong 0 " in native.out and b"few" in native.out
    assert total["references"] >= LEAST[mode]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["section", "hidden"])
def test_restartable_sequences(built, record, kind, mode):
    argv = [built / "rseq", kind]
    native, _ = same(built, record, mode, argv)
    assert b"missing 0" in native.out or b"no rseq" in native.out
    if mode == "full" and b"missing 0" in native.out:  # each of the six threads begins in translated code
        _, db = record(FULL, argv)
        assert ends(db).get("rseq", 0) >= 6


@pytest.mark.parametrize("mode", MODES)
def test_address_behind_a_file(built, record, mode):
    """What code names is looked at when it is translated, for it may be a sequence's descriptor."""
    same(built, record, mode, [built / "past_end", 20000000 // work_divisor(MODES[mode])])


@pytest.mark.parametrize("mode", MODES)
def test_the_kernels_code(built, record, mode):
    same(built, record, mode, [built / "kernel_code", 10000000 // work_divisor(MODES[mode])])


@pytest.mark.parametrize("mode", ["burst", "full"])
@pytest.mark.parametrize("sig", [signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGSYS])
def test_fault_signals_that_are_sent(built, record, sig, mode):
    native, _ = same(built, record, mode, [built / "sent_faults", str(int(sig))])
    assert native.out == b"-1 1\n"


@pytest.mark.in_turns
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("how", ["prctl", "syscall", "strict"])
def test_seccomp(built, record, how, mode):
    native, total = same(built, record, mode, [built / "seccomp", how])
    assert b"failed 0" in native.out
    assert total["references"] >= LEAST[mode]


@pytest.mark.parametrize("mode", MODES)
def test_blocked_faults_kill(built, record, mode):
    native, _ = same(built, record, mode, [built / "watched_signals", "blocked"])
    assert native.status == 139


@pytest.mark.in_turns
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("how", ["signals", "traps", "calls"])
def test_after_seccomp(built, record, how, mode):
    """Nothing of the agent's is left where calls are forbidden: neither handlers nor calls of its own."""
    native, total = same(built, record, mode, [built / "seccomp_after", how])
    assert native.status == {"signals": 5, "traps": 5, "calls": 4}[how], native.out
    assert total["references"] >= LEAST[mode]


@pytest.mark.parametrize("mode", [*MODES, "default"])
@pytest.mark.parametrize("how", ["traced", "below", "unknown"])
def test_filter_without_the_agent(built, record, how, mode):
    """A filter is installed where the agent has ended before, for another reason: it makes no call afterwards."""
    result, _ = record(MODES.get(mode, []), [built / "late_filter", how])
    assert (result.status, result.out, result.err) == (0, b"status 0x300\n", b"")


@pytest.mark.parametrize("mode", [*MODES, "default", "count"])
def test_code_of_32_bits(built, record, mode):
    """In a program of 64 bits. It is not translated, as its bytes mean something else then, and the rest is."""
    options = {**MODES, "default": [], "count": ["--mode", "count", "--allowance", "0"]}[mode]
    native, _ = same(built, record, options, [built / "mixed_mode", "10", "1000000"])
    if native.status == 77:
        pytest.skip("the kernel has no segment for code of 32 bits, or no executable memory below 4 GB")
    assert native.out == b"10000000\n"


@pytest.mark.parametrize("how", ["execv", "execve", "execlp", "exec-syscall", "spawn"])
def test_exec_after_seccomp(built, record, how):
    """The filter is inherited, and the agent would not live with it: what is executed goes unprofiled."""
    native, total = same(built, record, "burst", [built / "seccomp_after", how])
    assert native.status == (4 if how == "spawn" else 3), native.out
    assert b"executed: " in native.out
    assert total["references"] >= LEAST["burst"]


@pytest.mark.in_turns
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("which", [[], [11, 31], [5]], ids=["all", "faults", "trap"])
@pytest.mark.parametrize("how", ["alone", "followed", "child", "vfork", "thread"])
def test_ignored_signals_are_inherited(built, record, how, which, mode):
    native, total = same(built, record, mode, [built / "ignored", how, *which])
    assert native.status == 3 and (b"SigIgn" in native.out or how == "followed")
    assert total["references"] >= LEAST[mode]


def test_exec_while_another_thread_counts(built, record):
    """A thread that counts every reference leaves for it, though its next burst is seconds away."""
    native, _ = same(built, record, ["--clock", "count-always", "--gap-us", "20000000"], [built / "ignored", "thread"])
    assert b"SigIgn" in native.out


@pytest.mark.parametrize("argv", [["seccomp_after", "calls"], ["ignored", "thread"]], ids=["seccomp", "exec"])
def test_on_a_busy_machine(built, cachegram, tmp_path, argv):
    """Threads lose the processor anywhere, also between an event of ours and its signal, when its handler goes."""
    argv = [built / argv[0], *argv[1:]]
    native = run(argv)

    def recorded(i):
        result = run([cachegram, "record", "-o", tmp_path / f"p{i}.db", *MODES["counted"], "--", *argv]).split_summary()
        return result.status, result.out

    with ThreadPoolExecutor(2 * len(os.sched_getaffinity(0))) as pool:
        assert set(pool.map(recorded, range(24))) == {(native.status, native.out)}


def test_exec_while_calls_are_diverted(built, record):
    """A diverted call whose SIGSYS is ignored, or discarded, would not be made; and the exec must not hang."""
    for _ in range(12):  # without the waiting, nearly half of the runs fail
        result, _ = record(MODES["burst"], [built / "exec_meanwhile"])
        assert (result.status, result.out) == (3, b"0 failed\n")


@pytest.mark.parametrize("who", [[], ["child"]], ids=["itself", "child"])
@pytest.mark.parametrize("how", ["files", "chroot"])
def test_without_proc(built, record, tmp_path, how, who):
    """Which code there is, is known from the start."""
    empty = tmp_path / "empty"
    empty.mkdir()
    if how == "chroot" and os.getuid() != 0:
        pytest.skip("chroot needs root")
    argv = [built / "no_proc", empty if how == "chroot" else how, *who]
    native = run(argv)
    result, db = record(["--gap-us", "20000"], argv)
    assert (result.status, result.out) == (3, native.out)
    assert totals(db)["bursts"] > 1


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kills", ["process", "thread"])
def test_no_call_that_the_kernel_does_not_know(built, record, kills, mode):
    result, db = record(MODES[mode], [built / "destructors"], wrap=[built / "known_calls", kills],
                        env=target_environment(work_divisor(MODES[mode])))
    assert (result.status, result.out) == (3, b"".join(b"destructor %d\n" % i for i in range(1, 5)) + b"end\n")
    assert totals(db)["references"] > 0 or mode == "counted"


@pytest.mark.parametrize("mode", MODES)
def test_dlopen_loop(built, record, mode):
    same(built, record, mode, [built / "dl_loop", built / "lib_one.so", built / "lib_two.so"])
    same(built, record, mode, [built / "dl_loop", built / "lib_one.so", built / "lib_two.so", "threads"])


@pytest.mark.parametrize("mode, watch", [("burst", "none"), ("burst", "auto"), ("full", "none"), ("counted", "none")])
def test_cancelled_in_a_call(built, record, mode, watch):
    """Their bursts are over, or there would be none any more after the library's end."""
    options = [*MODES[mode], "--watch", watch] if mode == "burst" else MODES[mode]
    argv = [built / "cancelled", built / "lib_one.so"]
    env = target_environment(work_divisor(options))
    native = run(argv, env=env)
    result, db = record(options, argv, env=env)
    assert (result.status, result.out) == (0, native.out) and b"cleaned 20 destroyed 20" in native.out
    with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as con:
        counters = dict(con.execute("select name, sum(value) from counter group by name"))
    assert counters["skipped_busy"] <= counters["bursts"] / 4, counters


def test_forks_while_the_agent_reads(built, record):
    """What the agent has open for a moment is not for a child made by another thread then."""
    program, library = built / "forks_meanwhile", built / "lib_one.so"
    assert run([program, "1", library]).out.endswith(b" 0\n")
    result, db = record(["--burst-refs", "30000", "--gap-us", "1000"], [program, "5", library])
    assert result.status == 0 and result.out.endswith(b" 0\n"), result.out
    assert totals(db)["bursts"] > 0


@pytest.mark.in_turns
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("how", DEATHS)
def test_death(built, record, how, mode):
    native, _ = same(built, record, mode, [built / "die", how])
    assert native.status == DEATHS[how]


@pytest.mark.skipif(os.getuid() != 0, reason="chroot needs root")
@pytest.mark.parametrize("mode", MODES)
def test_chroot_and_drop(built, record, mode, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    native, _ = same(built, record, mode, [built / "drop", empty])
    assert b"uid 65534" in native.out


@pytest.mark.parametrize("mode", MODES)
def test_not_found_and_not_executable(record, mode, tmp_path):
    plain = tmp_path / "plain"
    plain.write_text("not a program\n")
    result, _ = record(MODES[mode], ["/nonexistent/program"])
    assert result.status == 127
    result, _ = record(MODES[mode], [plain])
    assert result.status == 126


def test_mapping_larger_than_the_program(built, record):
    """Memory that is mapped anywhere changes no code: none of 64 functions is translated again."""
    def blocks(mappings):
        result, db = record(FULL, [built / "low", mappings])
        assert result.status == 0
        with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as con:
            return con.execute("select sum(value) from counter where name = 'blocks'").fetchone()[0]
    assert blocks(3) < blocks(0) + 100
