# SPDX-License-Identifier: Apache-2.0
"""The reference clock: counts are exact, local rates tell fast code from slow, and the profile says which clock."""
import csv
import functools
import io
import os
import pathlib
import re
import sqlite3
import statistics
import tempfile

import pytest

from conftest import FULL, compile_text, run, run_keys, totals
from record_command import record_command
from test_harmless import CASES, FULL_SCALE

DEBUG_INFO = False

ALWAYS = ["--clock", "count-always", "--burst-refs", "30000", "--gap-us", "5000"]
OFTEN = ["--gap-us", "3000", "--burst-refs", "20000", "--watch", "none"]


def counters(db):
    with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as con:
        return dict(con.execute("select name, sum(value) from counter group by name"))


@pytest.mark.parametrize("name", ["bzip2", "xz-T1", "sqlite3", "python3", "perl"])
def test_counts_are_exact(record, tmp_path, name):
    """Every reference counted, bursts included, is what full mode records: but for a few in ten million.

    Without address randomisation, and with the same hashes, both runs do the same.
    """
    argv = CASES[name](tmp_path, FULL_SCALE)
    env = {**os.environ, "PYTHONHASHSEED": "0", "PERL_HASH_SEED": "0", "PERL_PERTURB_KEYS": "0"}
    how = {"wrap": ["setarch", "-R"], "cwd": tmp_path, "env": env}
    for path in tmp_path.glob("data.sqlite"):
        path.unlink()
    full, full_db = record(FULL, argv, **how)
    for path in tmp_path.glob("data.sqlite"):
        path.unlink()
    counted, db = record(ALWAYS, argv, **how)
    assert counted.out == full.out and counted.status == full.status
    exact, total = totals(full_db)["references"], run_keys(db)["clock_references"]
    assert abs(total / exact - 1) < 1e-4, (total, exact)
    assert totals(db)["bursts"] > 0 and run_keys(db)["clock"] == "count-always"


def slow_share(cachegram, db):
    """Miss ratio of 16 KB, of two_speeds: the share of references that its slow part makes."""
    result = run([cachegram, "mrc", "--sizes", "16K", "--format", "csv", db])
    return float(result.out.decode().splitlines()[1].split(",")[1])


def test_local_rates(built, record, cachegram):
    """Most time goes into code that makes 1.6% of the references: only with the local rates can that be reported."""
    argv = [built / "two_speeds", "15"]
    counted, db = record(["--seed", "1", *OFTEN], argv)
    words = counted.out.decode().split()
    fast, slow = int(words[1]), int(words[3])
    truth = slow / (fast + slow)
    assert run_keys(db)["clock"] == "count" and 0 < run_keys(db)["clock_error"] < 1
    with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as con:
        bursts, rated = con.execute("select count(*), count(refs_per_ns) from burst").fetchone()
    assert rated > 0.9 * bursts > 20
    assert 0.3 * truth < slow_share(cachegram, db) < 3 * truth
    _, unweighted = record(["--clock", "cputime", *OFTEN], argv)
    assert run_keys(unweighted)["clock"] == "cputime" and "clock_error" not in run_keys(unweighted)
    assert counters(unweighted)["counts"] == 0
    assert slow_share(cachegram, unweighted) > 8 * truth
    for profile, said in ((db, False), (unweighted, True)):
        assert (b"counts for too much" in run([cachegram, "report", profile]).out) == said


def test_ticks(built, record):
    """Where gaps are long the event ticks by itself: some ten times a gap, and one is obeyed, at random places of the strata."""
    gap = 20e6
    result, db = record(["--gap-us", str(int(gap / 1000)), "--watch", "none"], [built / "two_speeds", "40"])
    seen = counters(db)
    if run_keys(db)["trigger"] != "perf":
        pytest.skip("no perf events here: timers fire just once")
    assert result.status == 0 and 6 < seen["ticks"] / seen["triggers"] < 12
    with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as con:
        starts = [ns for ns, in con.execute("select cpu_start_ns from burst order by 1")]
        profiled = float(con.execute("select value from run where key = 'burst_cpu_seconds'").fetchone()[0]) * 1e9
    assert len(starts) > 40
    gaps = [b - a for a, b in zip(starts, starts[1:])]
    assert 0.8 * gap < statistics.mean(gaps) - profiled / len(starts) < 1.25 * gap
    assert 0.25 * gap < statistics.stdev(gaps) < 0.7 * gap  # 0.41 of strata, 1 without them; late ticks add to it


@pytest.mark.parametrize("slow", [600, 6000])
def test_parts_shorter_than_a_stretch(built, record, cachegram, slow):
    """Slow and fast parts in turn, of some 20 and 200 us each. A rate of the time before a burst is that of both."""
    fast = slow * 100
    argv = [built / "two_speeds", str(25000000 // slow), str(fast // 3), str(slow)]
    reported = []
    for seed in "123":  # what runs at the same time may spoil one of them
        result, db = record(["--seed", seed, *OFTEN], argv)
        with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as con:
            bursts, near = con.execute("select count(*), count(near_per_ns) from burst").fetchone()
        assert result.status == 0 and near > 0.6 * bursts > 30
        reported.append(slow_share(cachegram, db) * (fast + slow) / slow)
        if 0.25 < reported[-1] < 3:
            return
    pytest.fail(f"of the true share: {reported}")


def curve(cachegram, db):
    rows = run([cachegram, "mrc", "--sizes", "1K,16K,64K", "--format", "csv", db]).out.decode().splitlines()[1:]
    return [float(row.split(",")[1]) for row in rows]


@functools.lru_cache(maxsize=None)
def curve_of_strings(cachegram, program):
    with tempfile.TemporaryDirectory() as folder:
        db = pathlib.Path(folder) / "p.db"
        assert run([*record_command(cachegram, db, [*FULL, "CACHEGRAM_DEBUG=debug-info=0"]), "--", program, "40"]).status == 0
        return curve(cachegram, db)


@pytest.mark.parametrize("how", [["--clock", "count-always", "--gap-us", "2000"], OFTEN])
def test_string_instructions(built, record, cachegram, how):
    """Instructions of a million elements: a third of the references, in one of a million instructions. Bursts hardly
    ever meet one; without those elements a cache of 64 KB would miss 39% of references instead of 25%."""
    exact = curve_of_strings(cachegram, built / "strings")
    curves = []
    for seed in "123":  # what runs at the same time may spoil one of them
        result, db = record(["--seed", seed, *how], [built / "strings", "1200"])
        assert result.status == 0 and run_keys(db)["bursts"] > 30
        curves.append(curve(cachegram, db))
    for true, *reported in zip(exact, *curves):
        assert abs(sorted(reported)[1] / true - 1) < 0.15, (exact, curves)
    if how != OFTEN:
        return
    # A single instruction filled the stretch before a burst: thousands of hits for each other reference, and hardly any
    # of these in that time; or nearly filled it, and other references were frequent again right before the burst. This
    # burst outweighed all others, and 33% became 2%.
    for values in ("string_hits = 3000, refs_per_ns = 0.0003, near_per_ns = null",
                   "string_hits = 95, refs_per_ns = 0.02, near_per_ns = 1"):
        with sqlite3.connect(db) as con:
            con.execute(f"update burst set {values} where id = (select min(id) from burst)")
        for before, after in zip(curves[-1], curve(cachegram, db)):
            assert abs(after / before - 1) < 0.15, (values, curves, curve(cachegram, db))


@pytest.mark.parametrize("how", [["--clock", "count-always", "--gap-us", "2000"], OFTEN])
def test_string_instructions_of_no_elements(built, record, cachegram, how):
    """Each counts as a step but makes no reference: fewer than none were wrapped, and outweighed all others."""
    result, db = record(["--seed", "1", *how], [built / "empty_strings", "150000000"])
    assert result.status == 0 and run_keys(db)["bursts"] > 10
    reported = float(run([cachegram, "mrc", "--sizes", "64K", "--format", "csv", db]).out.decode().splitlines()[1].split(",")[1])
    with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as con:
        loads, refs = con.execute("select sum(loads), sum(refs) from burst").fetchone()
    assert 0.9 * loads / refs < reported <= 1


def test_string_instructions_of_other_threads(built, record):
    """Threads that end leave their place, not their string instructions, to those that begin."""
    result, db = record(["--clock", "count-always", "--gap-us", "2000"], [built / "string_threads"])
    assert result.out == b"done\n"
    true = 200 << 20
    with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as con:
        reported, = con.execute("select sum(value) from counter where name = 'count_string_refs'").fetchone()
    assert abs(reported / true - 1) < 0.01


def test_string_instructions_uncounted(built, record, cachegram):
    """Where nothing is counted, elements that hit are those that the bursts have: each burst represents as much time."""
    result, db = record(["--clock", "cputime", *OFTEN], [built / "strings", "2000"])
    assert result.status == 0

    def reported():
        return float(run([cachegram, "mrc", "--sizes", "1K", "--format", "csv", db]).out.decode().splitlines()[1].split(",")[1])

    with sqlite3.connect(db) as con:
        refs, counted = con.execute("select sum(refs), count(string_hits) from burst").fetchone()
        touches, = con.execute("select sum(total) from histogram where kind in ('stack', 'first')").fetchone()
        with_hits = reported()
        con.execute("update burst set string_hits = 0")
    assert counted == 0 and refs > 1.05 * touches
    assert abs(with_hits / reported() - touches / refs) < 0.05 * touches / refs


def test_more_string_hits_in_bursts_than_there_were(cachegram, record, tmp_path):
    """Shares are parts of a whole all the same: there were functions with 102% of the references, and miss ratios up
    to 116%."""
    compile_text(tmp_path / "fills.c", """static char area[1 << 16], table[1 << 20];
int main(void)
{
    unsigned long sum = 0;
    for (unsigned t = 0; t < 1000000; t++) {
        char *to = &area[t * 4096 & 0xffff];
        long n = 4096;
        __asm__ volatile("rep stosb" : "+D"(to), "+c"(n) : "a"(t) : "memory");
        for (unsigned i = 0; i < 64; i++)
            sum += table[(t * 64 + i) * 61 & 0xfffff];
    }
    return sum == 1;
}
""", "-O1", "-g")
    result, db = record(["--gap-us", "2000", "--clock", "count"], [tmp_path / "fills"])
    assert result.status == 0
    with sqlite3.connect(db) as con:
        con.execute("update burst set string_hits = 0")
    rows = csv.DictReader(io.StringIO(run([cachegram, "hotspots", "--size", "32K", "--format", "csv", db]).out.decode()))
    assert sum(float(row["refs_share"]) for row in rows) == pytest.approx(1)
    text = run([cachegram, "hotspots", "--size", "32K", db]).out.decode()
    assert all(float(percent) <= 100 for percent in re.findall(r"([0-9.]+)%", text))


def share_of_stores(result, db):
    """The true share of stores in the loads and stores that the target printed, that among bursts by their weights,
    and the number of bursts."""
    words = result.out.split()
    loads, stores = int(words[1]), int(words[3])
    with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as con:
        rows = con.execute("select 1.0 * stores / refs, coalesce(near_per_ns, refs_per_ns) from burst"
                           " where refs > 1000 and refs_per_ns is not null").fetchall()
    reported = sum(share * rate for share, rate in rows) / sum(rate for _, rate in rows)
    return stores / (loads + stores), reported, len(rows)


@pytest.mark.parametrize("without_perf", [False, True])
def test_system_calls_do_not_bias_bursts(built, record, without_perf):
    """What runs after system calls as long as a stretch is not sampled more often for them, nor less often. The CPU timers
    that do without perf events fall due in calls, too."""
    result, db = record(["--seed", "1", "--watch", "none", "--gap-us", "1500"], [built / "long_calls", "1000"],
                        wrap=[built / "no_perf"] if without_perf else [])
    true, reported, bursts = share_of_stores(result, db)
    # Bursts right after calls once made it 0.09 where 0.44 is true; 0.3 to 0.43 by seed without AVX-512.
    assert bursts > 130 and true / 2 < reported < 1.5 * true


def test_new_pages_do_not_bias_bursts(built, record):
    """Nothing is triggered while the kernel makes pages, but a stretch of counting goes on meanwhile: 6.4% of stores
    were 1.5% when that time was left out of both."""
    result, db = record(["--seed", "1", "--watch", "none", "--gap-us", "1500"], [built / "new_pages", "20000"])
    true, reported, bursts = share_of_stores(result, db)
    assert bursts > 100 and true / 2 < reported < 2 * true


def test_no_call_is_interrupted(built, record):
    """Nearly all of its time is in calls that wait a little after they have computed."""
    result, db = record(["--seed", "1", "--gap-us", "1000"], [built / "polls", "4000"])
    assert result.out == b"interrupted 0\n"
    assert result.status == 0 and run_keys(db)["overhead_percent"] < 20


@pytest.mark.parametrize("without_perf", [False, True])
def test_no_wait_for_requests_is_interrupted(built, record, without_perf):
    """io_uring_enter runs what Linux puts off until the return to user mode, the agent's timer of CPU time included.
    Such timers are used without perf events, and for threads that mostly wait."""
    argv = [built / "ring_waits", "5000"]
    if run(argv).status == 77:
        pytest.skip("no io_uring here")
    result, _ = record(["--gap-us", "500", "--allowance", "0"], argv, wrap=[built / "no_perf"] if without_perf else [])
    assert (result.status, result.out) == (0, b"interrupted 0 0 0, failed 0\n")


def test_as_many_bursts_as_planned(built, record):
    """However long the recorder looks at each: at short gaps it is late with the next trigger."""
    _, db = record(["--seed", "1", "--watch", "none", "--gap-us", "2500"],
                   [built / "micro", "random", str(4 << 20), "250000000"])
    reported = run_keys(db)
    assert reported["bursts"] > 100
    assert reported["bursts"] * 2.5e-3 < 1.15 * (reported["cpu_seconds"] - reported["burst_cpu_seconds"])


def test_places_are_known_when_always_counting(built, record):
    _, db = record(ALWAYS, [built / "two_speeds", "5"])
    with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as con:
        rows = con.execute("select start_refs, refs, weight from burst order by id").fetchall()
    assert len(rows) > 10 and all(weight > 0 for _, _, weight in rows)
    for (start, refs, _), (following, _, _) in zip(rows, rows[1:]):
        assert start + refs <= following
    assert rows[-1][0] + rows[-1][1] <= run_keys(db)["clock_references"]


def test_every_stretch_is_paid_for(built, record):
    """The CPU time of stretches is in the profile, and so in the overhead that is reported, with what comes after them."""
    _, db = record(OFTEN, [built / "two_speeds", "5"])
    sums = counters(db)
    assert sums["counts"] >= totals(db)["bursts"] > 0
    assert sums["count_refs"] > 10000 * sums["counts"]  # three parts of 5000 at least, but for the last stretch
    assert 0 < sums["count_agent_ns"] < sums["count_cpu_ns"]
    seconds = float(run_keys(db)["cpu_seconds"])
    after = 350000 * sums["bursts"] + sums["count_cpu_ns"] / 5
    assert float(run_keys(db)["overhead_percent"]) > 100 * (sums["burst_cpu_ns"] + after) * 1e-9 / seconds


def test_counting_always_is_in_the_overhead(built, record):
    """Two cycles for each block, of 0.1 ns at least (counting.c), in addition to bursts."""
    _, db = record(ALWAYS, [built / "two_speeds", "5"])
    sums = counters(db)
    seconds = float(run_keys(db)["cpu_seconds"])
    bursts = sums["burst_cpu_ns"] + 350000 * sums["bursts"]
    assert float(run_keys(db)["overhead_percent"]) > 100 * (bursts + 0.2 * sums["count_blocks"]) * 1e-9 / seconds


@pytest.mark.parametrize("clock", ["count", "count-always"])
def test_target_without_a_time_stamp_counter(built, record, clock):
    """Marks read it; a program that forbids itself to must not notice."""
    if run([built / "no_tsc"]).out != b"ok\n":
        pytest.skip("the machine lets programs read the time stamp counter that have forbidden it to themselves")
    result, db = record(["--clock", clock, *OFTEN], [built / "no_tsc"])
    assert result.status == 0 and result.out == b"ok\n"
    assert totals(db)["bursts"] > 10


def test_first_burst_of_slow_code_when_always_counting(built, record):
    """A program that makes few references per second gets its bursts in time, not after as many references as others make."""
    result, db = record(["--mode", "count", "--allowance", "0"], [built / "sweep", 400000, 100])
    assert result.status == 0 and totals(db)["bursts"] >= 3
