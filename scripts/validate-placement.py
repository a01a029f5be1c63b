#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What weights by the local rate are worth where bursts are placed by time, on traces of real programs.

A trace has no time, so each of 1000 bursts of it is given one: a nanosecond a reference and 30 more for a miss in
32 KB. Of them 100 are taken at equal steps of that time, from a random start, so that slow parts have more of them.
Their curves, by `cachegram mrc`, are compared with the exact one: unweighted, weighted by the rate of references around
each burst, and by rates that are 20% wrong at random. Errors as in validate-bursts.py.

    scripts/validate-placement.py [--seeds 5] TRACE...
"""
import argparse
import os
import pathlib
import random
import shutil
import sqlite3
import statistics
import tempfile

import importlib.util

ROOT = pathlib.Path(__file__).resolve().parents[1]
spec = importlib.util.spec_from_file_location("validate_bursts", ROOT / "scripts" / "validate-bursts.py")
bursts_ = importlib.util.module_from_spec(spec)
spec.loader.exec_module(bursts_)

ALL, TAKEN, MISS_NS, LINES = 1000, 100, 30, 32768 // 64
WAYS = ("unweighted", "local rates", "local rates, 20% wrong")


def at_least(blob, least):
    """Values of a histogram (docs/format.md) from `least` (below 1024) on."""
    total = bin_ = value = shift = 0
    skip = None
    for byte in blob:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            if skip is None:
                skip = value
            else:
                bin_ += skip
                total += value if bin_ >= least else 0
                bin_ += 1
                skip = None
            value = shift = 0
    return total


def place(source, target, way, rng):
    """A copy of the profile with TAKEN of its bursts, those at equal steps of time."""
    shutil.copyfile(source, target)
    with sqlite3.connect(target) as db:
        rows = db.execute("SELECT b.id, b.refs, b.lines, h.bins FROM burst b JOIN histogram h ON h.burst = b.id"
                          " WHERE h.kind = 'stack' ORDER BY b.id").fetchall()
        ns = [1 + MISS_NS * min(1, (at_least(blob, LINES) + lines / 2) / refs) for _, refs, lines, blob in rows]
        step = sum(ns) / TAKEN
        wanted, now, taken = step * rng.random(), 0, {}
        for (burst, *_), cost in zip(rows, ns):
            if now <= wanted < now + cost:
                taken[burst] = (1e5 * wanted, 1 / cost * rng.uniform(0.8, 1.2) if way == 2 else 1 / cost)
            now += cost
            while wanted < now: # a very slow part may have been hit twice: it counts once
                wanted += step
        db.execute("CREATE TEMP TABLE taken(id INTEGER PRIMARY KEY, at, rate)")
        db.executemany("INSERT INTO taken VALUES(?, ?, ?)", [(k, int(a), r) for k, (a, r) in taken.items()])
        for table, column in (("burst", "id"), ("watch", "burst"), ("histogram", "burst")):
            db.execute(f"DELETE FROM {table} WHERE {column} NOT IN (SELECT id FROM taken)")
        db.execute("UPDATE burst SET start_refs = NULL, weight = refs,"
                   " cpu_start_ns = (SELECT at FROM taken WHERE taken.id = burst.id),"
                   " refs_per_ns = (SELECT rate FROM taken WHERE taken.id = burst.id)")
        if way == 0:
            db.execute("UPDATE burst SET refs_per_ns = NULL")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", nargs="+", metavar="TRACE")
    parser.add_argument("--seeds", default=5, type=int)
    parser.add_argument("--folder", help="for profiles while they are needed (some 100 MB)")
    args = parser.parse_args()
    cachegram = os.environ.get("CACHEGRAM", str(ROOT / "build" / "src" / "cli" / "cachegram"))
    sizes = ["--format", "csv", "--sizes", bursts_.LARGE]
    errors = {way: {} for way in WAYS}
    with tempfile.TemporaryDirectory(prefix="cachegram-validate-", dir=args.folder) as name:
        folder = pathlib.Path(name)
        for trace in args.traces:
            exact = bursts_.curve(bursts_.call(cachegram, "stack", *sizes, trace))
            bursts_.call(cachegram, "sample", "--bursts", ALL, "--seeds", args.seeds, "-o", folder / "p.db", trace)
            for seed in range(1, args.seeds + 1):
                made = folder / (f"p-{ALL}-{seed}.db" if args.seeds > 1 else "p.db")
                for number, way in enumerate(WAYS):
                    place(made, folder / "c.db", number, random.Random(seed))
                    got = bursts_.curve(bursts_.call(cachegram, "mrc", *sizes, folder / "c.db"))
                    errors[way].setdefault(pathlib.Path(trace).stem, []).extend(
                        100 * (got[s][0] - exact[s][0]) for s in exact if got[s][0] is not None)
    print("| 32 KB to 8 MB, B = 100 | " + " | ".join(WAYS) + " |\n| --- | --- | --- | --- |")
    for program in errors[WAYS[0]]:
        cells = [errors[way][program] for way in WAYS]
        print(f"| {program} | " + " | ".join(
            f"{statistics.mean(map(abs, c)):.3f} (mean {statistics.mean(c):+.3f})" for c in cells) + " |")
    pooled = [[e for c in errors[way].values() for e in c] for way in WAYS]
    print("| all | " + " | ".join(f"{statistics.mean(map(abs, c)):.3f} (mean {statistics.mean(c):+.3f})"
                                  for c in pooled) + " |")


if __name__ == "__main__":
    main()
