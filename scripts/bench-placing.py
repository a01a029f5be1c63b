#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What placing bursts by time costs: errors that are the reference clock's.

For each program (scripts/papers_programs.py, inputs of ten seconds) the exact curve, as scripts/bench-accuracy.py makes and
keeps it, and bursts without a budget, each --gap-us of CPU time: placed by time and weighted by the rates that `--clock
count` measures; and placed by references (`--clock count-always`), without weights. Printed is the mean difference
to the exact curve over 1-4 KB, 4-16 KB and 16-64 KB, in percentage points of miss ratio, and with the first clock the
rate of references in CPU time as a share of the true one. Chance is in both.

    scripts/bench-placing.py [--programs perl,xz] [--gap-us 12000] [--runs 1] [--keep FOLDER]
"""
import argparse
import importlib
import pathlib
import statistics
import sys

import bench
import papers_programs

accuracy = importlib.import_module("bench-accuracy")
PARTS = [(1 << 10, 4 << 10), (4 << 10, 16 << 10), (16 << 10, 64 << 10)]


def differences(estimate, exact):
    """Mean signed difference of each part; None where nothing is answered."""
    reported = {s: 100 * (estimate[s][0] - exact[s][0]) for s in exact if s in estimate and estimate[s][0] is not None}
    parts = [[d for s, d in reported.items() if low <= s <= high] for low, high in PARTS]
    return [statistics.mean(part) if part else None for part in parts]


def one_run(cachegram, argv, folder, clock, options, seed, exact, references):
    db = str(folder / "clock.db")
    accuracy.cpu_seconds([cachegram, "record", "-o", db, "--clock", clock, "--gap-us", str(options.gap_us), "--watch", "none",
                          "--seed", str(seed), "--", *argv], folder)
    run = dict(accuracy.query(db, "SELECT key, value FROM run"))
    own = float(run["cpu_seconds"]) - float(run["burst_cpu_seconds"])
    rate = accuracy.rate_of_bursts(db, references, own) if clock == "count" else None
    return [*differences(accuracy.curve(accuracy.mrc(cachegram, db)), exact), rate, int(run["bursts"])]


def mean(values):
    values = [v for v in values if v is not None]
    return statistics.mean(values) if values else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", default=",".join(papers_programs.NAMES))
    parser.add_argument("--gap-us", type=int, default=12000)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--keep", default="/tmp/cachegram-accuracy")
    options = parser.parse_args()
    cachegram = bench.find_cachegram()
    print("| | bursts | rate | by time: 1-4K | 4-16K | 16-64K | bursts | by references: 1-4K | 4-16K | 16-64K |\n"
          "| --- |" + " --- |" * 9)
    every = {"count": [], "count-always": []}
    for name in options.programs.split(","):
        if not papers_programs.here(name):
            print(f"bench-placing.py: {name} is not installed, left out", file=sys.stderr)
            continue
        folder = pathlib.Path(options.keep) / name
        folder.mkdir(parents=True, exist_ok=True)
        argv = accuracy.command_line(name, 1, folder)
        exact, references = accuracy.exact_curve(cachegram, argv, folder, folder)
        cells = []
        for clock, seen in every.items():
            runs = [one_run(cachegram, argv, folder, clock, options, seed, exact, references)
                    for seed in range(1, options.runs + 1)]
            *parts, rate, bursts = [mean(column) for column in zip(*runs)]
            seen += [abs(p) for p in parts if p is not None]
            cells += [f"{bursts:.0f}", *([accuracy.cell(rate)] if clock == "count" else []),
                      *("-" if p is None else f"{p:+.2f}" for p in parts)]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
    print(f"\nMean size of a difference: {statistics.mean(every['count']):.3f} by time, "
          f"{statistics.mean(every['count-always']):.3f} by references.")


if __name__ == "__main__":
    main()
