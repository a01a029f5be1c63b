# SPDX-License-Identifier: Apache-2.0
"""`record --clock pmu` with software events in the counters' place, which every machine has.

Task-clock and cpu-clock count nanoseconds of a thread's CPU time, so that what the clock should say is known: one
"reference" a nanosecond, and a burst's place is the thread's CPU time, less that of earlier bursts, plus
their references.
"""
import os
import sqlite3

import pytest

from conftest import run

DEBUG_INFO = False

SPIN = ["/usr/bin/python3", "-c", "print(sum(range(40000000)))"]
OPTIONS = ["--clock", "pmu", "--burst-refs", "30000", "--gap-us", "4000"]
MOST_GAP = 3  # a thread's first gap, and what is random about others


def with_events(events):
    return {**os.environ, "CACHEGRAM_REFERENCE_EVENTS": events}


def bursts(db):
    with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as con:
        assert con.execute("select value from run where key = 'clock'").fetchone() == ("pmu",)
        return con.execute("select tid, refs, cpu_start_ns, cpu_end_ns, start_refs, refs_per_ns, weight from burst"
                           " where process = 1 order by id").fetchall()


@pytest.mark.parametrize("events,rate", [("task-clock", 1), ("task-clock,cpu-clock", 2)])
def test_places(record, events, rate):
    native = run(SPIN)
    # Without what is recorded after bursts, whose references the row of a burst does not have.
    result, db = record([*OPTIONS, "--watch", "none"], SPIN, env=with_events(events))
    assert (result.status, result.out, result.err) == (native.status, native.out, native.err)
    rows = bursts(db)
    assert len(rows) > 10
    in_bursts, references, off, before, came = 0, 0, 0, 0, 0
    for i, (_, refs, start, end, start_refs, refs_per_ns, weight) in enumerate(rows):
        off += refs_per_ns != pytest.approx(rate, rel=0.1)
        assert start_refs == pytest.approx(before + refs_per_ns * (start - came), rel=0.01)
        before, came = start_refs + refs, end
        # The first gaps were set before anything was counted, and are of one reference a nanosecond.
        assert weight == pytest.approx(rate * 4e6, rel=0.1) or (weight == 4e6 and i < len(rows) / 2)
        in_bursts += end - start
        references += refs
    assert off <= len(rows) / 10  # on a busy machine, a short stretch can have lost the processor
    in_bursts, references = in_bursts - (rows[-1][3] - rows[-1][2]), references - rows[-1][1]
    assert rows[-1][4] == pytest.approx(rate * (rows[-1][2] - in_bursts) + references, rel=0.1)
    # Placed by the counter: a gap or so apart, on average.
    apart = (rows[-1][2] - rows[0][2] - in_bursts) / (len(rows) - 1)
    assert 4e6 / MOST_GAP < apart < 4e6 * MOST_GAP


@pytest.mark.parametrize("name", ["threads", "exec_chain", "processes", "sig_handlers"])
def test_target_behaves_as_without_counters(built, record, name):
    native = run([built / name])
    result, db = record(["--clock", "pmu", "--burst-refs", "30000", "--gap-us", "500"], [built / name],
                        env=with_events("task-clock,page-faults"))
    assert (result.status, result.out, result.err) == (native.status, native.out, native.err)
    with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as con:
        reported, total = con.execute("select count(refs_per_ns), count(*) from burst").fetchone()
    assert reported > total / 2 > 0


def test_names(cachegram, record):
    result, db = record(["--clock", "pmu"], ["true"], env=with_events("NO_SUCH_EVENT"))
    assert result.status == 125 and b"NO_SUCH_EVENT" in result.summary and not db.exists()
    reported = {events: run([cachegram, "doctor", "--format", "csv"], env=with_events(events)).out
            for events in ("task-clock", "NO_SUCH_EVENT")}
    assert b"record-pmu,yes,task-clock," in reported["task-clock"]
    assert b"record-pmu,no," in reported["NO_SUCH_EVENT"]


def test_auto_counts(record):
    """Counters give no ticks, which phases need: they are for who asks for them."""
    _, db = record(["--gap-us", "4000"], SPIN, env=with_events("task-clock"))
    with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as con:
        assert con.execute("select value from run where key = 'clock'").fetchone() == ("count",)
