# SPDX-License-Identifier: Apache-2.0
"""Watched lines do a program no harm: as many pages protected as often as possible, and all is as it is alone.

The targets check their own system calls, faults and memory and count what went wrong (tests/targets/watched.h).
"""
import collections
import csv
import io
import os
import pathlib
import signal
import sqlite3
import statistics
import subprocess
import time

import pytest

from conftest import FULL, run
from record_command import record_command

DEBUG_INFO = False

# Bursts as often as can be, half of the table filled after each; without counting before bursts, which else
# takes most of the time of such short gaps.
HARD = ["--burst-refs", "30000", "--gap-us", "500", "--clock", "cputime", "CACHEGRAM_DEBUG=watch-lines=32"]


def counters(db):
    with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as con:
        return dict(con.execute("select name, sum(value) from counter group by name"))


def need_cheap_faults(db):
    """CPU time per fault of watched lines: 5 us on real machines, 80 to 180 in some virtual ones, where most lines are censored
    before they are touched again."""
    count = counters(db)
    cost_us = count["watch_cpu_ns"] / max(count["watch_faults"], 1) / 1000
    if cost_us > 40:
        pytest.skip(f"a fault takes {cost_us:.0f} us of CPU time on this machine: too few lines are watched until they are touched again")


def same(record, argv, faults=50, **how):
    """As natively. How much is watched depends on the machine: where faults are expensive, up to five runs are needed."""
    native = run(argv, **how)
    count = collections.Counter()
    for _ in range(5):
        result, db = record(HARD, argv, **how)
        err = b"".join(line for line in result.err.splitlines(True) if not line.startswith(b"cachegram: "))
        assert (result.status, result.out, err) == (native.status, native.out, native.err), result.summary
        count.update(counters(db))
        if count["watch_faults"] > faults:
            return native, count
    pytest.fail(f"{count['watch_faults']} faults: hardly anything was watched, so nothing was tested")


def test_system_calls(built, record):
    native, count = same(record, [built / "watched_calls"])
    assert b"wrong 0" in native.out
    assert count["watch_calls"] > 100


@pytest.mark.parametrize("what", ["faults", "altstack", "coroutines", "masks", "blocked", "raw"])
def test_signals(built, record, what):
    native, _ = same(record, [built / "watched_signals", what])
    assert native.status == 139 if what == "blocked" else b"wrong 0 foreign 0" in native.out


def test_foreign_fs_base(built, record):
    """A handler of the agent's read libc's variables through it, with SIGSEGV blocked."""
    native, _ = same(record, [built / "segments"], faults=0)
    assert native.out == b"done, 1200 signals\n"


@pytest.mark.parametrize("what", ["change", "look", "maps", "heap"])
def test_memory(built, record, what):
    native, count = same(record, [built / "watched_memory", what])
    assert b"wrong 0" in native.out
    assert count["watch_calls"] > 0


def test_as_many_mappings_as_possible(built, record):
    """Pages between inaccessible ones, which are one mapping with them while they are protected, and three afterwards."""
    native, _ = same(record, [built / "many_mappings", "pages"])
    assert b"wrong 0" in native.out


@pytest.mark.parametrize("what", ["fork", "programs", "threads", "sharing", "unseen", "dispatch"])
def test_processes(built, record, what):
    # Once it is seen that others use the memory or the dispatch, which is a matter of chance, watching ends.
    native, _ = same(record, [built / "watched_processes", what], faults=0 if what in ("programs", "unseen", "dispatch") else 50)
    assert b"wrong 0" in native.out


def test_short_threads(built, record):
    """A thread that is alone again when its burst ends has its calls diverted when there are more once more."""
    native, count = same(record, [built / "short_threads"])
    assert native.status == 0 and count["watch_calls"] > 100


def test_realtime_priorities(built, record):
    """A lock of the agent's is given up by a thread that never runs while one of a higher priority only yields."""
    native = run([built / "realtime"])
    if native.status == 77:
        pytest.skip("real-time priorities are not permitted")
    assert native.status == 0
    for _ in range(2):
        result, _ = record(HARD, [built / "realtime"], timeout=60)
        assert (result.status, result.out, result.err) == (0, native.out, b""), result.summary


THREADED = ["share", "sleepers", "calls", "come", "processes", "maps", "barrier", "signals", "robust", "cancel", "stop",
            "stacks", "raw", "quit", "main", "exec", "rights"]


@pytest.mark.parametrize("scene", THREADED)
def test_threads(built, record, scene):
    """Output and status of several runs are those of a native one; tests/long has fifty of each."""
    threads_as_native(built, record, scene, 2)


def threads_as_native(built, record, scene, runs):
    argv = [built / "watched_threads", scene]
    native = run(argv)
    assert native.out == b"quits\n" if scene == "quit" else b"wrong 0" in native.out, native.out
    faults = done = 0
    while done < runs or (not faults and done < runs + 6):
        done += 1
        result, db = record(HARD, argv, timeout=120)
        assert (result.status, result.out, result.err) == (native.status, native.out, native.err), result.summary
        faults += counters(db)["watch_faults"]
    assert faults, "nothing was watched, so nothing was tested"


def test_raw_clone_ends_watching(built, record):
    """From the first raw clone on the process is not watched any more, and its profile says why."""
    _, db = record(HARD, [built / "watched_threads", "raw"])
    assert counters(db)["unwatched"] == 6


READS = [("loads", 15, ""), ("loads", 15, "beside"), ("threads", 6, "beside"), ("write", 1, "beside"), ("vm", 1, "beside"),
         ("mem", 1, "beside")]
READ_MODES = {"default": ["--allowance", "1s"], "often": ["--gap-us", "500"], "hard": HARD, "full": FULL,
              "counting": ["--clock", "count-always"]}


@pytest.mark.parametrize("mode", READ_MODES)
def test_all_memory_is_read(built, record, mode):
    """A program may read whatever is mapped, all of the agent's memory included."""
    faults, watches = 0, mode not in ("full", "default", "counting")
    for i, (how, rounds, beside) in enumerate(READS * (3 if watches else 1)):
        if i % len(READS) == 0 and faults:  # else a second and third time: nothing was watched
            break
        if mode == "full":
            rounds = (rounds + 9) // 10
        result, db = record(READ_MODES[mode], [built / "read_all", how, rounds, *filter(None, [beside])])
        err = b"".join(line for line in result.err.splitlines(True) if not line.startswith(b"cachegram: "))
        assert (result.status, result.out, err) == (3, b"done\n", b""), (how, result.err, result.summary)
        faults += counters(db).get("watch_faults", 0)
    assert faults or not watches, "nothing was watched, so nothing was tested"


def test_memory_taken_from_the_agent(built, record):
    """Who makes memory unusable that he did not map is ended by it; he does not hang, with a lock in the agent's hands."""
    for _ in range(3):
        result, _ = record(HARD, [built / "read_all", "close", 1, "beside"], timeout=60)
        assert result.status in (3, 128 + signal.SIGSEGV), result.summary


def start(cachegram, db, options, argv):
    """A recording that goes on for a while, once its first bursts are stored."""
    p = subprocess.Popen([*record_command(cachegram, db, options), "--", *argv], start_new_session=True,
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    target = None
    end = time.monotonic() + 60
    while time.monotonic() < end:
        time.sleep(0.01)
        children = pathlib.Path(f"/proc/{p.pid}/task/{p.pid}/children").read_text().split()
        if children and db.exists() and (target := int(children[0])):
            break
    assert target, "nothing was started"
    time.sleep(0.7)
    return p, target


def ends(pid):
    """Within a minute. It may have no parent any more that waits for it, or one that is stopped."""
    for _ in range(1200):
        try:
            if pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("how, options", [("waited for", HARD), ("a zombie", HARD), ("stopped", HARD),
                                          ("a zombie", FULL)])
def test_recorder_is_killed(built, cachegram, tmp_path, how, options):
    """The target goes on to its own end, with pages still protected and questions unanswered."""
    argv = [built / "watched_calls"]
    native = run(argv)
    p, target = start(cachegram, tmp_path / "p.db", options, argv)
    try:
        os.kill(p.pid, signal.SIGSTOP if how == "stopped" else signal.SIGKILL)
        if how == "waited for":
            p.wait()
        assert ends(target), "the target waits for its recorder"
        if how == "stopped":
            os.kill(p.pid, signal.SIGCONT)
        assert p.stdout.read() == native.out
    finally:
        for pid in (p.pid, target):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        p.stdout.close()
        p.wait()


def test_target_is_killed(built, cachegram, tmp_path):
    """Its lines count as never touched again, or as censored; none stays pending."""
    db = tmp_path / "p.db"
    p, target = start(cachegram, db, HARD, [built / "watched_calls"])
    os.kill(target, signal.SIGKILL)
    p.stdout.close()
    assert p.wait(60) == 137
    reported = outcomes(db)
    assert reported and "open" not in reported, reported


def outcomes(db):
    with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as con:
        return dict(con.execute("select outcome, count(*) from watch group by outcome"))


def curve(cachegram, db):
    text = run([cachegram, "mrc", "--format", "csv", "--sizes", "2M,16M,64M", db]).out.decode()
    return [float(row["miss_ratio"]) for row in csv.DictReader(io.StringIO(text))]


def test_reuse_time_of_a_sweep(built, cachegram, record):
    """100,000 lines, 6.1 MB, swept again and again: each touch of one comes 100,000 references after the last.

    The time until then is reported in the thread's own CPU time; with the burst's own rate that must be the number of
    references that were left of those at the burst's end. Bounds far outside of what was seen: means of 1.03 to 1.06.
    """
    lines = 100000
    result, db = record(["--burst-refs", "20000", "--gap-us", "10000", "--watch", "page"], [built / "sweep", lines, 400])
    assert result.status == 0
    with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as con:
        ratios = [r for r, in con.execute("select w.cpu_ns * b.refs_per_ns / (? - w.age) from watch w join burst b"
                                          " on b.id = w.burst where w.outcome = 'reused' and b.refs_per_ns > 0", (lines,))]
    reported = outcomes(db)
    assert reported["reused"] > 50 and reported["reused"] > 0.8 * sum(reported.values()), reported
    assert 0.5 < statistics.median(ratios) < 2, statistics.median(ratios)
    small, large, _ = curve(cachegram, db)
    assert small > 0.9 and large < 0.1


def test_reuse_time_right_after_a_burst(built, record):
    """3,000 lines after bursts of 1,500: 15 to 45 microseconds, reported 40 too early to 40 too late, the program's cold caches included.

    The bounds tell whether a burst's own time, some hundred microseconds, is taken for the program's.
    """
    lines = 3000
    result, db = record(["--burst-refs", "2000", "--gap-us", "5000", "--watch", "page"], [built / "sweep", lines, 12000])
    assert result.status == 0
    with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as con:
        late = [us for us, in con.execute("select (w.cpu_ns - (? - w.age) / b.refs_per_ns) / 1e3 from watch w join burst b"
                                          " on b.id = w.burst where w.outcome = 'reused' and b.refs_per_ns > 0", (lines,))]
    assert len(late) > 30, outcomes(db)
    assert -80 < statistics.median(late) < 80, statistics.median(late)


def test_tails_of_bursts(built, record):
    """Lines that are touched each so many references, one instruction for all. Within the tail their time is exact, and none
    needs a fault; further away, those that were only followed are censored at the tail's end."""
    for lines in 4000, 64000:
        result, db = record(["--burst-refs", "2000", "--gap-us", "3000"], [built / "cycle", lines, 500000000 // lines])
        assert result.status == 0
        with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as con:
            rows = con.execute("select outcome, age, inside_refs, cpu_ns, pc, site from watch").fetchall()
            weights = con.execute("select b.lines, sum(w.weight), count(*) from watch w join burst b on b.id = w.burst"
                                  " where b.lines > 1000 group by b.id").fetchall()
        near = [age + inside for outcome, age, inside, cpu, *_ in rows if outcome == "reused" and cpu == 0]
        ends = [inside for outcome, _, inside, cpu, *_ in rows if outcome == "dropped" and cpu == 0]
        assert len(weights) > 20 and all(many >= 16 for _, _, many in weights)
        assert 0.9 < sum(each for _, each, _ in weights) / sum(burst for burst, _, _ in weights) < 1.1
        if lines == 4000:
            assert len(near) > 10 * len(weights)
            assert sum(abs(each - lines) < 3 for each in near) > 0.95 * len(near), collections.Counter(near).most_common(5)
            assert all(site is not None for outcome, *_, pc, site in rows if outcome == "reused" and pc)
        else:
            assert len(near) < 0.05 * len(rows) and len(ends) > 10 * len(weights)
            assert 5000 < statistics.median(ends) < 16000


def test_long_tails(built, record, cachegram):
    """Where every reference is counted no page is protected, but one burst of four has a longer tail: reuses beyond the
    others' tails are found there, at their exact time."""
    lines = 500000
    result, db = record(["--mode", "count", "--overhead", "20"], [built / "cycle", lines, 2000])
    assert result.status == 0
    with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as con:
        rows = con.execute("select outcome, age + inside_refs, burst from watch where cpu_ns = 0").fetchall()
    reused = [refs for outcome, refs, _ in rows if outcome == "reused"]
    assert sum(abs(refs - lines) < 3 for refs in reused) > 0.9 * len(reused) > 0, collections.Counter(reused).most_common(5)
    bursts = len({burst for *_, burst in rows})
    assert 0.15 < len({burst for outcome, _, burst in rows if outcome == "reused"}) / bursts < 0.3 and bursts > 20
    curve = run([cachegram, "mrc", "--format", "csv", "--sizes", "1M,16M", db]).out.decode().splitlines()[1:]
    # If the reuses are in fewer than five bursts, only the bounds are known.
    for _, ratio, _, high in (row.split(",") for row in curve):
        assert float(ratio or high) > 0.95, curve


def test_busy_pages(built, record):
    """Lines that are touched every 40,960 references, on pages that are every 640. Half of these and more are made in the
    short bursts after faults, and have no time: such lines were reported as touched again at once. What is between a short
    burst and the next fault is less than a fault is known to, so that half is reported."""
    rows = []
    for _ in range(8):  # where faults are expensive, most lines are censored
        result, db = record(["--burst-refs", "10000", "--gap-us", "10000"], [built / "busy_pages", 40000])
        apart = int(result.out.split()[0])
        assert result.status == 0
        with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as con:
            rows += con.execute("select w.cpu_ns * b.refs_per_ns, w.inside_refs, ? - w.age from watch w join burst b on b.id = w.burst"
                                " where w.outcome = 'reused' and b.refs_per_ns > 0", (apart,)).fetchall()
        if len(rows) > 30:
            break
    need_cheap_faults(db)
    assert len(rows) > 30, outcomes(db)
    assert 0.3 < statistics.median((native + inside) / true for native, inside, true in rows) < 2
    assert statistics.median(inside / true for _, inside, true in rows) > 0.1


def test_more_threads_than_processors(built, record, cachegram):
    """Each has 256 KB of its own and hits in it, natively, for milliseconds at a time. What others do while profiling holds
    a thread up is nothing to its lines: else they seem to be far behind what all have."""
    threads = 4 * os.cpu_count()
    result, db = record(["--overhead", "20"], [built / "own_tables", threads, 3200 // threads])
    assert result.status == 0 and outcomes(db)["reused"] > 20, outcomes(db)
    shared = run([cachegram, "mrc", "--format", "csv", "--sizes", f"{threads * 256}K", db])
    reported = float(next(csv.DictReader(io.StringIO(shared.out.decode())))["miss_ratio"])
    need_cheap_faults(db)
    assert reported < 0.05  # it was 0.1


def test_stacks_of_threads_are_refused(built, record):
    """The kernel may write there. Nothing is learned of such lines: not even that they were not touched for a while."""
    result, db = record(["--burst-refs", "1000", "--gap-us", "5000", "--watch", "page"], [built / "thread_stack", 30000])
    assert result.status == 0
    reported = outcomes(db)
    assert reported["refused"] > 50 and reported["refused"] > 0.9 * sum(reported.values()), reported


def test_reuse_by_another_thread(built, cachegram, record):
    """Two threads sweep 100,000 lines in turns: what one touches, the other touches next, 100,000 references later.

    Were the other's touches not seen, the next would be a thread's own, after 200,000. Medians seen: 0.98 to 0.99.
    """
    lines = 100000
    argv = [built / "sweep_turns", lines, 400]
    result, db = record(["--burst-refs", "20000", "--gap-us", "10000", "--watch", "page"], argv)
    assert result.status == 0
    with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as con:
        ratios = [r for r, in con.execute("select w.cpu_ns * b.refs_per_ns / (? - w.age) from watch w join burst b"
                                          " on b.id = w.burst where w.outcome = 'reused' and b.refs_per_ns > 0", (lines,))]
    with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as con:
        assert con.execute("select count(distinct tid) from burst").fetchone() == (2,)
    reported = outcomes(db)
    assert reported["reused"] > 50, reported
    assert 0.6 < statistics.median(ratios) < 1.5, statistics.median(ratios)
    full, exact_db = record(FULL, [built / "sweep_turns", lines, 20])
    assert full.status == 0
    try:
        estimates = curve(cachegram, db)
    except ValueError:  # too few lines were followed that far: no answer is none that is wrong
        return
    for estimate, exact in zip(estimates, curve(cachegram, exact_db)):
        assert abs(estimate - exact) < 0.1


def test_sleeping_thread_stays_tracked(built, record):
    """Where calls cost too much, diverting them pauses, but not for a thread that nearly always sleeps: it would not be
    known to be quiescent, and no page could be protected until it has run for a while."""
    rounds = 1200
    result, db = record([], [built / "sleeping_main", rounds])
    assert result.status == 0 and result.out == b"done\n"
    count = counters(db)
    assert count["watch_calls"] + count["syscalls"] > 1.8 * rounds, count  # two a round; the latter in bursts


def test_what_is_never_touched_again(built, cachegram, record):
    dangling = 0
    for _ in range(5):  # where faults are expensive, few lines are watched in each
        result, db = record(["--burst-refs", "20000", "--gap-us", "10000"], [built / "sweep", "stream", 10000000])
        reported = outcomes(db)
        assert result.status == 0 and reported.get("reused", 0) == 0, reported
        dangling += reported.get("dangling", 0)
        if dangling > 4:
            break
    assert dangling > 4
    assert min(curve(cachegram, db)) > 0.9


@pytest.mark.parametrize("how", [[], ["directly"]])
def test_memory_of_another_process(built, record, how):
    """MPI libraries copy large messages out of the sender's memory, whose pages may be protected."""
    native, _ = same(record, [built / "other_memory", *how])
    assert native.out == b"failed 0, bad 0, odd 0\nstatus 0\n"
