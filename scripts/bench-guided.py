#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What it would bring to place bursts by phases: one dense recording of each program, of which different choices are kept.

For each program of scripts/bench-timeline.py a run in full mode and one with a burst each 3.9 ms of CPU time, so often that
there are no samples of code between them and `record` does not place them by phases itself. Of the latter's
bursts some are kept, each of which then represents the time of its stratum, and `cachegram verify` compares the rest of the
profile with full mode. So all choices have the same program, phases, rates and estimator, and about as many bursts (at 5% there
are some ten in a second). How bursts are chosen:

  nearest     one in each equal stratum of time; no phases: each part of the run has the values of the nearest burst
  time        one in each equal stratum of time
  known       phases known in advance: one in each stratum of a phase's own time, all of one length
  known 2/3   likewise, as many in each phase as its share of the run to the power of 2/3
  spread      likewise, that share times the standard deviation of lines per reference in the phase's bursts
  found       phases as a run could find them: windows of 8 samples of code, one for each burst, leader-follower, the next
              window predicted to be of the last one's phase; one in each stratum of a phase's own time
  doubling    likewise; in each phase, strata begin with a quarter of their final length and double

Told are the means over --runs choices: CDF error and error at a time (methods.md, section 13) and that of the run's curve,
in percentage points; and the share of the run in phases of which no burst was kept. Besides, how often the next window of
32 ms is of the phase of the last one (last value), and how often that is right where a change is predicted if the phase's
last change came after as many windows (run length).

    scripts/bench-guided.py [--programs bzip2,perl] [--scale 0.1] [--bursts 25] [--runs 16] [--choices time,known] [--keep FOLDER]
"""
import argparse
import collections
import importlib
import json
import math
import os
import pathlib
import random
import shutil
import sqlite3
import statistics
import subprocess
import tempfile

timeline = importlib.import_module("bench-timeline")
DENSE = ["--gap-us", "3900", "--allowance", "0"]
PLACES, SAMPLES, THRESHOLD, MOST_PHASES = 64, 8, 0.5, 16


class Recording:
    def __init__(self, name, scale, folder):
        folder.mkdir(parents=True, exist_ok=True)
        self.dense, self.full, self.some = (folder / f"{kind}.db" for kind in ("dense", "full", "some"))
        argv = timeline.command_line(name, scale, folder)
        for db, options in ((self.dense, DENSE), (self.full, ["--mode", "full"])):
            if not db.exists():
                timeline.record(folder / "new.db", options, argv, folder)
                os.rename(folder / "new.db", db)
        with sqlite3.connect(f"file:{self.dense}?mode=ro", uri=True) as con:
            bursts = con.execute("select id, process, tid, start_ns, pc, 1.0 * lines / refs from burst order by id").fetchall()
            self.windows = con.execute("select process, tid, start_ns, end_ns, phase, id from time_window order by id").fetchall()
        self.ids = [b[0] for b in bursts]
        self.starts = [b[3] for b in bursts]
        self.phase = [next((w[4] for w in self.windows if w[:2] == b[1:3] and w[2] <= b[3] <= w[3]), 0) for b in bursts]
        self.lines = [b[5] for b in bursts]
        self.place = [(b[4] >> 8) * 0x9E3779B97F4A7C15 >> 20 & PLACES - 1 for b in bursts]


def one_of_each(indices, n, rng):
    """One at random of each of n equal parts; with the number of bursts that it represents."""
    n = min(len(indices), max(1, round(n)))
    edges = [k * len(indices) // n for k in range(n + 1)]
    return [(indices[rng.randrange(low, high)], high - low) for low, high in zip(edges, edges[1:])]


def by_time(recording, n, rng):
    return one_of_each(range(len(recording.ids)), n, rng)


def by_known_phase(recording, n, rng, power, importance=len):
    groups = collections.defaultdict(list)
    for i, phase in enumerate(recording.phase):
        groups[phase].append(i)
    whole = sum(importance(g) ** power for g in groups.values())
    return [kept for g in groups.values() for kept in one_of_each(g, n * importance(g) ** power / whole, rng)]


def by_spread(recording, n, rng):
    return by_known_phase(recording, n, rng, 2 / 3, lambda g: len(g) * statistics.pstdev(recording.lines[i] for i in g) + 1e-9)


def found_phases(places):
    """The phase that is predicted for each sample, by the samples before it."""
    leaders, current, predicted, window = [], 0, [], []
    for place in places:
        predicted.append(current)
        window.append(place)
        if len(window) < SAMPLES:
            continue
        shares = [window.count(p) / SAMPLES for p in range(PLACES)]
        distances = []
        for leader in leaders:
            mean = [count / sum(leader) for count in leader]
            chance = sum(math.sqrt(q * (1 - q) / SAMPLES * 2 / math.pi) for q in mean)
            distances.append(sum(abs(a - b) for a, b in zip(shares, mean)) - chance)
        if not distances or (min(distances) > THRESHOLD and len(leaders) < MOST_PHASES):
            leaders.append([0] * PLACES)
            distances.append(-math.inf)
        current = distances.index(min(distances))
        for p in window:
            leaders[current][p] += 1
        window = []
    return predicted


def in_own_time(predicted, first, last, rng):
    """Strata in each phase's own time, of `first` samples, then of twice as many each time, up to `last`."""
    phases, kept = {}, []
    for i, phase in enumerate(predicted):
        s = phases.setdefault(phase, {"length": first, "end": first, "at": rng.random() * first, "now": 0})
        s["now"] += 1
        if s["at"] is not None and s["now"] >= s["at"]:
            kept.append((i, s["length"]))
            s["at"] = None
        while s["now"] >= s["end"]:
            s["length"] = min(2 * s["length"], last)
            s["at"] = s["end"] + rng.random() * s["length"]
            s["end"] += s["length"]
    return kept


def by_found_phase(recording, n, rng, part):
    predicted = found_phases(recording.place)
    low, high = 0.1, len(predicted)
    for _ in range(30):  # the length that gives n bursts
        length = math.sqrt(low * high)
        count = statistics.mean(len(in_own_time(predicted, length * part, length, random.Random(seed))) for seed in range(8))
        low, high = (length, high) if count > n else (low, length)
    return in_own_time(predicted, high * part, high, rng)


CHOICES = {
    "nearest": by_time,
    "time": by_time,
    "known": lambda *args: by_known_phase(*args, 1),
    "known 2/3": lambda *args: by_known_phase(*args, 2 / 3),
    "spread": by_spread,
    "found": lambda *args: by_found_phase(*args, 1),
    "doubling": lambda *args: by_found_phase(*args, 1 / 4),
}


def keep_some(recording, kept, nearest):
    shutil.copy(recording.dense, recording.some)
    con = sqlite3.connect(recording.some)
    con.execute("create temp table kept(id integer primary key, times real)")
    con.executemany("insert into kept values(?, ?)", [(recording.ids[i], times) for i, times in kept])
    for table, column in (("burst", "id"), ("watch", "burst"), ("histogram", "burst")):
        con.execute(f"delete from {table} where {column} not in (select id from kept) and {column} <> 0")
    for column in ("weight", "gap_ns"):
        con.execute(f"update burst set {column} = {column} * (select times from kept where kept.id = burst.id)")
    if nearest:  # a phase for each window that has a burst, since there may not be more phases than windows
        starts = [recording.starts[i] for i, _ in kept]
        window_of = [max((k for k, w in enumerate(recording.windows) if w[2] <= start), default=0) for start in starts]
        for w in recording.windows:
            at = min(range(len(starts)), key=lambda k: abs(starts[k] - (w[2] + w[3]) / 2))
            con.execute("update time_window set phase = ? where id = ?", (1 + window_of[at], w[5]))
    con.commit()
    con.close()


def errors(recording, kept, choice):
    keep_some(recording, kept, choice == "nearest")
    out = subprocess.run([timeline.CACHEGRAM, "verify", "--format", "json", recording.some, recording.full],
                         capture_output=True, text=True, check=True)
    compared = json.loads(out.stdout)
    caught = {recording.phase[i] for i, _ in kept}
    missed = sum(phase not in caught for phase in recording.phase) / len(recording.phase)
    return [100 * (x or 0) for x in (compared["cdf_error"], compared["error_at_time"], compared["mean_absolute_error"], missed)] + [len(kept)]


def predictions(windows):
    """Shares of windows whose phase is predicted rightly: by the last value, and by the length of runs too."""
    right, right_length, n, length, last_length = 0, 0, 0, 1, {}
    for before, after in zip(windows, windows[1:]):
        if before[:2] != after[:2]:
            length = 1
            continue
        n += 1
        right += before[4] == after[4]
        ended = last_length.get(before[4])
        right_length += (ended[1] if ended and ended[0] == length else before[4]) == after[4]
        if before[4] != after[4]:
            last_length[before[4]] = (length, after[4])
        length = length + 1 if before[4] == after[4] else 1
    return right / max(1, n), right_length / max(1, n)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", default="phases,short-phases,bzip2,cc1,perl,python3,sqlite3,povray,xz")
    parser.add_argument("--scale", type=float, default=0.1, help="of ten seconds")
    parser.add_argument("--bursts", type=int, default=25)
    parser.add_argument("--runs", type=int, default=16)
    parser.add_argument("--choices", default=",".join(CHOICES))
    parser.add_argument("--keep", help="folder for recordings")
    args = parser.parse_args()
    sums = collections.defaultdict(list)
    with tempfile.TemporaryDirectory(prefix="cachegram-bench-") as temporary:
        for name in args.programs.split(","):
            recording = Recording(name, args.scale, pathlib.Path(args.keep or temporary) / name)
            value, length = predictions(recording.windows)
            print(f"{name}: {len(recording.ids)} bursts, {len(set(recording.phase))} phases, predicted by "
                  f"last value {100 * value:.0f}%, run length {100 * length:.0f}%\n"
                  f"  {'':10} {'bursts':>7} {'CDF':>7} {'at time':>8} {'curve':>7} {'missed %':>9}", flush=True)
            everything = [(i, 1) for i in range(len(recording.ids))]
            rows = {"all": [errors(recording, everything, "all")]}
            for choice in args.choices.split(","):
                rows[choice] = [errors(recording, CHOICES[choice](recording, args.bursts, random.Random(seed)), choice)
                                for seed in range(args.runs)]
            for choice, values in rows.items():
                cdf, at_time, curve, missed, kept = (statistics.mean(column) for column in zip(*values))
                sums[choice].append((cdf, at_time, curve, missed))
                print(f"  {choice:10} {kept:7.0f} {cdf:7.2f} {at_time:8.2f} {curve:7.3f} {missed:9.1f}", flush=True)
    print("mean of all")
    for choice, values in sums.items():
        cdf, at_time, curve, missed = (statistics.mean(column) for column in zip(*values))
        print(f"  {choice:10} {'':7} {cdf:7.2f} {at_time:8.2f} {curve:7.3f} {missed:9.1f}")


if __name__ == "__main__":
    main()
