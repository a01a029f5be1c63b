# SPDX-License-Identifier: Apache-2.0
"""--threads separate: each thread in a cache of its own.

`sweeps` has two threads that go through memory from end to end, again and again: its own of 64 and 256 KB, or
all through the same.
"""
import csv
import io
import json
import re
import sqlite3
import subprocess

import pytest

from conftest import BURST, FULL, TARGETS, run, totals

LINE = 64
KB = 1024
SIZES = "32K,128K,192K,384K,1M,4M,16M,64M"


@pytest.fixture(scope="module")
def sweeps(tmp_path_factory):
    program = tmp_path_factory.mktemp("sweeps") / "sweeps"
    subprocess.run(["gcc", "-O1", "-pthread", "-o", program, TARGETS / "sweeps.c"], check=True)
    return program


def curve(cachegram, db, *options, sizes=SIZES):
    got = run([cachegram, "mrc", "--format", "csv", "--sizes", sizes, *options, db])
    assert got.status == 0, got.err
    rows = csv.DictReader(io.StringIO(got.out.decode()))
    return {int(r["size_bytes"]) // KB: float(r["miss_ratio"] or "nan") for r in rows}


def threads(db):
    with sqlite3.connect(db) as profile:
        return [tid for tid, in profile.execute("SELECT tid FROM thread_histogram WHERE tid != 0 ORDER BY tid")]


def test_exact_by_thread(cachegram, sweeps, tmp_path):
    """Full mode against the trace of the same run, whose distances are measured by other code: each thread, every size."""
    db, trace = tmp_path / "p.db", tmp_path / "t"
    assert run([cachegram, "record", *FULL, "--trace", trace, "-o", db, "--", sweeps, "own", 64, 256, 300]).status == 0
    twin = run([cachegram, "stack", "--threads", "separate", "--format", "csv", "--sizes", SIZES, trace])
    assert twin.status == 0, twin.err
    rows = list(csv.DictReader(io.StringIO(twin.out.decode())))
    assert len(threads(db)) == 3 and sorted({int(r["tid"]) for r in rows}) == threads(db)
    for tid in threads(db):
        got = curve(cachegram, db, "--threads", "separate", "--thread", str(tid))
        for r in rows:
            if int(r["tid"]) == tid:
                assert got[int(r["size_bytes"]) // KB] == pytest.approx(float(r["miss_ratio"]), abs=1e-9)


def test_all_threads(cachegram, sweeps, tmp_path):
    """All of them: the thread with 64 KB hits in a cache of that size whatever the other does, which needs 256 KB."""
    db = tmp_path / "p.db"
    rounds = 400
    assert run([cachegram, "record", *FULL, "-o", db, "--", sweeps, "own", 64, 256, rounds]).status == 0
    own = curve(cachegram, db, "--threads", "separate")
    shared = curve(cachegram, db)
    # Both make as many sweeps: the smaller makes a fifth of their touches.
    touches = rounds * (64 + 256) * KB // LINE
    references = totals(db)["references"]
    misses = {size: ratio * references for size, ratio in own.items()}
    assert misses[32] == pytest.approx(touches, rel=0.02)
    assert misses[128] == pytest.approx(touches * 4 / 5, rel=0.02)
    assert misses[192] == pytest.approx(misses[128], rel=0.01)
    assert misses[384] < 0.02 * touches
    # They take turns in pieces of buffers, so how much of a shared one misses is not certain; some does.
    assert shared[128] > own[128] - 1e-3 and shared[64 * KB] == pytest.approx(own[64 * KB], abs=1e-3)
    shown = run([cachegram, "report", db]).out.decode()
    assert "shared by the threads" in shown and "one for each thread" in shown
    assert '"threads": "separate"' in run([cachegram, "mrc", "--threads", "separate", "--format", "json", db]).out.decode()


TWO_LOOPS = """
#include <pthread.h>
#include <stdlib.h>
static pthread_barrier_t turn;
static volatile char small[64 << 10], large[256 << 10];
static __attribute__((noinline)) void in_small(void)
{
    for (size_t i = 0; i < sizeof small; i += 64) (void)small[i];
}
static __attribute__((noinline)) void in_large(void)
{
    for (size_t i = 0; i < sizeof large; i += 64) (void)large[i];
}
static void *run(void *large)
{
    for (int i = 0; i < 500; i++) {
        large ? in_large() : in_small();
        pthread_barrier_wait(&turn);
    }
    return NULL;
}
int main(void)
{
    pthread_t thread;
    pthread_barrier_init(&turn, NULL, 2);
    pthread_create(&thread, NULL, run, NULL);
    run(&turn);
    pthread_join(thread, NULL);
}
"""


@pytest.fixture(scope="module")
def two_loops(tmp_path_factory):
    folder = tmp_path_factory.mktemp("two_loops")
    (folder / "two_loops.c").write_text(TWO_LOOPS)
    subprocess.run(["gcc", "-O1", "-g", "-pthread", "-o", folder / "two_loops", folder / "two_loops.c"], check=True)
    return folder / "two_loops"


def hotspots(cachegram, db, size, *options, command="hotspots"):
    got = run([cachegram, command, "--format", "json", "--size", size, *options, db])
    assert got.status == 0, got.err
    return json.loads(got.out)


@pytest.mark.parametrize("options", [FULL, ["--allowance", "60s"]])
def test_hotspots(cachegram, two_loops, tmp_path, options):
    """By function and variable, whether all was recorded or the first part of the run: in 128 KB of its own one thread
    hits, and the other misses with all of its references; in 1 MB both hit. The sums are those of the curve."""
    db = tmp_path / "p.db"
    assert run([cachegram, "record", *options, "-o", db, "--", two_loops]).status == 0
    for size in ("32K", "128K", "1M"):
        for threads in ("together", "separate"):
            table = hotspots(cachegram, db, size, "--threads", threads)
            assert table.get("threads", "together") == threads
            exact = curve(cachegram, db, "--threads", threads, sizes=size)
            misses = sum(row["miss_ratio"] * row["refs_share"] for row in table["rows"])
            assert misses == pytest.approx(*exact.values(), rel=0.02, abs=2e-3)

    def ratios(size, *options):
        return {row["function"]: row["miss_ratio"]
                for row in hotspots(cachegram, db, size, "--threads", "separate", *options)["rows"]}
    of = ratios("128K")
    assert of["in_small"] < 0.01 and of["in_large"] > 0.98
    of = ratios("32K")
    assert of["in_small"] > 0.98 and of["in_large"] > 0.98
    of = ratios("1M")
    assert of["in_small"] < 0.01 and of["in_large"] < 0.01
    for function, ratio in (("in_small", 0), ("in_large", 1)):
        assert curve(cachegram, db, "--threads", "separate", "--function", function, sizes="128K")[128] == \
            pytest.approx(ratio, abs=0.02)
    data = {row["object"]: row["miss_ratio"] for row in
            hotspots(cachegram, db, "128K", "--threads", "separate", "--by", "object")["rows"]}
    assert data["small"] < 0.02 and data["large"] > 0.9  # references by object are estimates
    shown = run([cachegram, "annotate", "--threads", "separate", "--size", "128K", db, "in_large"]).out.decode()
    assert "LRU cache of 128K for each thread" in shown
    shown = run([cachegram, "report", db]).out.decode()
    assert " of the misses in a cache of 32K for each thread (a common L1) are in in_large" in shown
    assert re.search(r" Less than a tenth of those at 32K would remain in a cache of \d+[KM] for each thread\.", shown)
    found = json.loads(run([cachegram, "report", "--format", "json", db]).out)["findings"][0]
    assert (found["threads"], found["function"]) == ("separate", "in_large")
    assert "LRU cache of 128K that the threads share" in run([cachegram, "hotspots", "--size", "128K", db]).out.decode()


def test_hotspots_estimated(cachegram, sweeps, tmp_path):
    """Beyond the reach of bursts: the table's miss ratio is that of the curve for caches of single threads."""
    db = tmp_path / "p.db"
    assert run([cachegram, "record", *BURST, "-o", db, "--", sweeps, "own", 20 * KB, 20 * KB, 4000]).status == 0
    for size in ("12M", "32M"):
        for threads in ("together", "separate"):
            table = hotspots(cachegram, db, size, "--threads", threads)
            assert table["rows"][0]["function"] in ("run", "sweep") and table["bursts"] > 20
            low, high = bounds(cachegram, db, size, "--threads", threads)
            assert low - 0.03 <= table["rows"][0]["miss_ratio"] <= high + 0.03
    # As in test_estimated: each hits in 32 MB of its own.
    assert table["rows"][0]["miss_ratio"] < 0.4


def bounds(cachegram, db, size, *options):
    got = run([cachegram, "mrc", "--format", "csv", "--sizes", size, *options, db])
    assert got.status == 0, got.err
    return tuple(float(x) for x in got.out.decode().splitlines()[1].split(",")[2:])


def test_estimated(cachegram, sweeps, tmp_path):
    """Two threads of 20 MB each, beyond the reach of bursts: each hits in 32 MB of its own, and not in 12."""
    db = tmp_path / "p.db"
    assert run([cachegram, "record", *BURST, "-o", db, "--", sweeps, "own", 20 * KB, 20 * KB, 4000]).status == 0
    low, high = bounds(cachegram, db, "12M", "--threads", "separate")
    assert low > 0.7 and high > 0.9
    low, high = bounds(cachegram, db, "32M", "--threads", "separate")
    # A tenth and more is touched unnoticed, while a page is not protected: those lines seem to be at twice the distance.
    assert low < 0.25 and high < 0.45
    # While the thread that touches its line again waits for the other at the barrier, only its own time counts.
    with sqlite3.connect(db) as profile:
        times = profile.execute("SELECT w.own_cpu_ns, w.cpu_ns FROM watch w JOIN burst b ON b.id = w.burst "
                                "WHERE w.outcome = 'reused' AND w.cpu_ns > 0 AND w.tid = b.tid").fetchall()
    assert len(times) > 100 and sum(0 < own < 1.1 * both for own, both in times) > 0.9 * len(times)


def test_touched_by_others(cachegram, sweeps, tmp_path):
    """All lines are touched in turn by both threads: watched lines tell when the other touched them, so in a cache
    of its own a thread's next touch is less well known."""
    db = tmp_path / "p.db"
    same = []
    for _ in range(3):  # with no processor left for the second thread, hardly any outcome is known
        assert run([cachegram, "record", *BURST, "-o", db, "--", sweeps, "turns", 20 * KB, 20 * KB, 1200]).status == 0
        with sqlite3.connect(db) as profile:
            same = profile.execute("SELECT w.tid = b.tid FROM watch w JOIN burst b ON b.id = w.burst "
                                   "WHERE w.outcome = 'reused' AND w.cpu_ns > 0").fetchall()
        if len(same) >= 20:
            break
    # Not seen: the other's touches while the first is still in the tail of its burst, a third of its sweep.
    assert len(same) >= 20 and 0.2 * len(same) < len(same) - sum(s for s, in same)
    assert bounds(cachegram, db, "32M", "--threads", "separate")[1] > bounds(cachegram, db, "32M")[1] + 0.05


def test_one_thread(cachegram, tmp_path):
    """There is no difference, in any mode; by thread there is none to be found in full mode."""
    program = ["perl", "-e", "my %h; $h{$_ * 7 % 10007} += $_ for 1 .. 100000"]
    for options in (FULL, [], BURST):
        db = tmp_path / "p.db"
        assert run([cachegram, "record", *options, "-o", db, "--", *program]).status == 0
        assert curve(cachegram, db, "--threads", "separate") == pytest.approx(curve(cachegram, db), nan_ok=True)
        assert threads(db) == []


def test_processes(cachegram, sweeps, tmp_path):
    """A process with threads and one without: the latter counts in both."""
    db = tmp_path / "p.db"
    both = f"{sweeps} own 64 256 100; {sweeps} one 256 256 100"
    assert run([cachegram, "record", *FULL, "-o", db, "--", "sh", "-c", both]).status == 0
    own = curve(cachegram, db, "--threads", "separate")  # 64 KB hit there
    misses = own[192] * totals(db)["references"]
    assert misses == pytest.approx(2 * 100 * 256 * KB // LINE, rel=0.05)
    assert own[64 * KB] * totals(db)["references"] < 0.05 * misses


def test_verify(cachegram, sweeps):
    """It compares what is exact: with a shared cache of 512 KB the order of the threads' buffers would decide."""
    got = run([cachegram, "verify", "--format", "json", "--sizes", "512K,1M", "--", sweeps, "own", 384, 384, 400])
    assert got.status == 0, got.err
    report = json.loads(got.out)
    assert report["threads"] == "separate"
    assert all(point["exact"] < 0.02 for point in report["points"])
    alone = run([cachegram, "verify", "--format", "json", "--sizes", "1M", "--", sweeps, "one", 384, 384, 100])
    assert json.loads(alone.out)["threads"] == "together"


@pytest.mark.parametrize("options, why", [
    (["--model", "random"], "cannot be combined with --model"),
    (["--phase", "99"], "has no phase 99"),
    (["--thread", "1"], "has no references by thread 1"),
])
def test_refused(options, why, cachegram, sweeps, tmp_path):
    db = tmp_path / "p.db"
    assert run([cachegram, "record", *FULL, "-o", db, "--", sweeps, "own", 64, 64, 10]).status == 0
    got = run([cachegram, "mrc", "--threads", "separate", *options, db])
    assert got.status in (1, 2) and why.encode() in got.err and got.err.count(b"\n") == 1


def test_hotspots_refused(cachegram, sweeps, tmp_path):
    db = tmp_path / "p.db"
    assert run([cachegram, "record", *FULL, "-o", db, "--", sweeps, "own", 64, 64, 10]).status == 0
    got = run([cachegram, "hotspots", "--threads", "separate", "--call-graph", db])
    assert got.status == 2 and b"cannot be combined with --threads separate" in got.err
    with sqlite3.connect(db) as profile:  # as of a recording that was killed
        profile.execute("DELETE FROM thread_histogram")
    got = run([cachegram, "hotspots", "--threads", "separate", db])
    assert got.status == 1 and b"does not distinguish threads" in got.err and got.err.count(b"\n") == 1


MANY = """
#include <pthread.h>
#include <stdlib.h>
enum { THREADS = 12, WORDS = 24 * 1024 / 8 };
static volatile long data[THREADS][WORDS];
static pthread_barrier_t together;
static void *run(void *mine)
{
    volatile long *words = mine;
    pthread_barrier_wait(&together);
    for (int i = 0; i < ROUNDS; i++)
        for (int k = 0; k < WORDS; k += 8) (void)words[k];
    pthread_barrier_wait(&together);
    return NULL;
}
int main(int argc, char **argv)
{
    pthread_t thread[THREADS];
    pthread_barrier_init(&together, NULL, THREADS);
    for (long i = argc > 1 ? atol(argv[1]) : 0; i > 0; i--) (void)data[0][i % WORDS];
    for (int i = 0; i < THREADS; i++) pthread_create(&thread[i], NULL, run, (void *)data[i]);
    for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
}
"""


def values(db):
    with sqlite3.connect(db) as profile:
        return dict(profile.execute("SELECT key, value FROM run"))


def test_many_threads(cachegram, tmp_path):
    """Twelve threads, each with a twelfth of the work: report distinguishes their caches, and predict and corun give each of
    them private levels of its own and let them make twelve times as many references."""
    (tmp_path / "many.c").write_text(MANY)
    subprocess.run(["gcc", "-O1", "-pthread", "-DROUNDS=1500", "-o", tmp_path / "many", tmp_path / "many.c"], check=True)
    db = tmp_path / "p.db"
    assert run([cachegram, "record", *FULL, "-o", db, "--", tmp_path / "many"]).status == 0
    shown = run([cachegram, "report", db]).out.decode()
    assert "12 threads work at the same time" in shown and "one for each thread" in shown
    own, shared = curve(cachegram, db, "--threads", "separate"), curve(cachegram, db)
    assert own[32] < 0.02 < 0.9 < curve(cachegram, db, "--threads", "separate", sizes="16K")[16]

    def rows(*arguments):
        got = run([cachegram, *arguments, "--llc", "192K", "--private", "32K", "--format", "csv"])
        assert got.status == 0, got.err
        return list(csv.DictReader(io.StringIO(got.out.decode())))

    private, last, _ = rows("predict", db)
    assert float(last["miss_ratio"]) == pytest.approx(shared[192], rel=1e-4)
    assert float(private["miss_ratio"]) == pytest.approx(max(own[32], shared[192]), rel=1e-4)
    [alone] = rows("corun", db)
    assert float(private["threads"]) == float(alone["threads"]) == pytest.approx(12, rel=0.01)
    mix = float(values(db)["touches"]) / float(values(db)["instructions"])
    traffic = 12 * shared[192] * mix * LINE / float(alone["solo_cpi"])
    assert float(alone["bytes_per_cycle"]) == pytest.approx(traffic, rel=0.01)
    assert "cache of" in shown.splitlines()[0] and "for each thread" in shown.splitlines()[0]
    page = json.loads(run([cachegram, "export", "--to", "json", db]).out)
    size = page["sizes"][0] // KB
    [point] = [p for p in page["lru_own"]["points"] if p["size_bytes"] == 32 * KB]
    assert point["miss_ratio"] == pytest.approx(own[32]) and page["lru_own"]["threads"] == "separate"
    table = page["hotspots"][0]["tables"][0]
    assert table["threads"] == "separate" and page["timeline"]["phases"]["threads"] == "separate"
    assert table["miss_ratio"] == pytest.approx(curve(cachegram, db, "--threads", "separate", sizes=f"{size}K")[size], rel=0.02)
    said = run([cachegram, "predict", db, "--llc", "192K"]).out.decode()
    assert "12 threads work at the same time, each with private caches of its own; CPI is that of each" in said


@pytest.mark.parametrize("options", [FULL, ["--allowance", "60s"], [*BURST, "--gap-us", "2000"]], ids=["full", "first", "bursts"])
def test_over_time(options, cachegram, sweeps, tmp_path):
    """Windows and phases of threads with caches of their own: by windows, by phases (timeline and mrc --phase), and by the
    curve, as many references miss."""
    db = tmp_path / "p.db"
    exact = options == FULL or "60s" in options
    rounds = 1500 if exact else 30000
    assert run([cachegram, "record", *options, "-o", db, "--", sweeps, "own", 64, 256, rounds]).status == 0
    whole = curve(cachegram, db, "--threads", "separate")

    def rows(command):
        got = run([cachegram, command, "--threads", "separate", "--format", "csv", "--sizes", "32K,192K,1M", db])
        assert got.status == 0, got.err
        return list(csv.DictReader(io.StringIO(got.out.decode())))

    for command in ("timeline", "phases"):
        table = rows(command)
        if not exact:
            table = [r for r in table if r["miss_ratio"]]  # in a window or phase without a burst nothing is known
        refs = sum(float(r["refs"]) for r in table) / 3
        for size in (32, 192, 1024):
            misses = sum(float(r["refs"]) * float(r["miss_ratio"] or "nan") for r in table if int(r["size_bytes"]) == size * KB)
            assert misses / refs == pytest.approx(whole[size], abs=1e-3 if exact else 0.1), (command, size)
    if exact:
        phases = {r["phase"]: float(r["refs"]) for r in rows("phases")}
        by_phase = {p: curve(cachegram, db, "--threads", "separate", "--phase", p) for p in phases}
        for size in (32, 192, 1024):
            misses = sum(phases[p] * by_phase[p][size] for p in phases)
            assert misses / sum(phases.values()) == pytest.approx(whole[size], abs=1e-3)
    head = run([cachegram, "timeline", "--threads", "separate", "--sizes", "192K", db]).out.decode()
    assert "a cache for each thread" in head.splitlines()[0]
    assert '"threads": "separate"' in run([cachegram, "phases", "--threads", "separate", "--format", "json", db]).out.decode()
    assert "Miss ratio by cache size, one cache for each thread, and time" in run([cachegram, "report", db]).out.decode()


def test_threads_after_full_mode(cachegram, tmp_path):
    """Threads that begin after the part that was recorded completely: that part is the same in caches of their own."""
    (tmp_path / "many.c").write_text(MANY)
    subprocess.run(["gcc", "-O1", "-pthread", "-DROUNDS=50000", "-o", tmp_path / "many", tmp_path / "many.c"], check=True)
    db = tmp_path / "p.db"
    options = ["--allowance", "0.2s", "--overhead", "30"]
    assert run([cachegram, "record", *options, "-o", db, "--", tmp_path / "many", 100000000]).status == 0
    assert threads(db) == [] and float(values(db)["full_references"]) > 0
    own = curve(cachegram, db, "--threads", "separate", sizes="4K,32K")
    assert own[4] > 0.3 and own[32] < 0.02  # main's references are in order, 8 of a line
    assert hotspots(cachegram, db, "4K", "--threads", "separate")["rows"][0]["function"] == "run"


def test_diff(cachegram, sweeps, tmp_path):
    """The curves, functions and phases of both profiles in caches of their threads' own: one thread sweeps through 64 KB, then
    through a quarter of that."""
    for name, small in ("before", 64), ("after", 16):
        result = run([cachegram, "record", *FULL, "-o", tmp_path / name, "--", sweeps, "own", small, 256, 400])
        assert result.status == 0
    files = [tmp_path / "before", tmp_path / "after"]

    def shown(*options):
        got = run([cachegram, "diff", "--threads", "separate", *options, *files])
        assert got.status == 0, got.err
        return got.out.decode()

    whole = [curve(cachegram, db, "--threads", "separate") for db in files]
    rows = list(csv.DictReader(io.StringIO(shown("--format", "csv", "--sizes", SIZES))))
    for row in rows:
        size = int(row["size_bytes"]) // KB
        assert [float(row["before"]), float(row["after"])] == pytest.approx([w[size] for w in whole], abs=1e-9)
    table = json.loads(shown("--by", "function", "--size", "32K", "--format", "json"))
    assert table["threads"] == "separate" and table["functions"][0]["function"] == "run"
    for side, db in zip(("before", "after"), files):
        assert table["total"][side] == pytest.approx(1000 * curve(cachegram, db, "--threads", "separate", sizes="32K")[32], rel=1e-3)
    assert json.loads(shown("--by", "phase", "--format", "json"))["threads"] == "separate"
    assert "Miss ratio by cache size, one for each thread, before and after" in shown()


def test_processes_at_the_same_time(cachegram, sweeps, tmp_path):
    """Each is counted as in caches of its own, and report and mrc say so; not of processes one after the other."""
    for between, together in ("&", True), (";", False):
        script = f"{sweeps} one 64 64 3000 {between} {sweeps} one 64 64 3000; wait"
        assert run([cachegram, "record", *FULL, "-o", tmp_path / "p.db", "--", "sh", "-c", script]).status == 0
        for command in ("report", "mrc"):
            said = run([cachegram, command, tmp_path / "p.db"]).out.decode()
            assert ("2 processes work at the same time, each counted as in a cache of its own" in said) == together


def test_every_touch_is_counted_once(built, record):
    """Threads hand buffers over at the same time, and one may be interrupted in between, so that its buffer comes late."""
    for _ in range(4):
        _, db = record(FULL, [built / "equal_threads", 16, 400000])
        with sqlite3.connect(db) as con:
            totals = dict(con.execute("select kind, total from histogram"))
            keys = dict(con.execute("select key, value from run"))
        assert totals["reuse"] == totals["stack"] == int(keys["touches"]) - int(keys["cold"])
