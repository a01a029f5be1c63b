#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Who misses, from bursts and exactly: shares of functions and data objects in the misses, for several cache sizes.

usage: scripts/bench-hotspots.py [--cachegram FILE] [--runs N] [--programs A,B] [--sizes 32K,256K,1M] [--by function,object]
                                 [--overhead P] [--times N] [--folder DIR]

Each program is recorded in burst mode (some ten seconds, or N times that) and in full mode (fewer rounds of the same
work), and `cachegram hotspots` is asked about both. Of the rows that make up the top 90% of the exact misses: how many
have an interval, how many of these hold the exact share, and how many pairs of rows with intervals are in the wrong
order although these do not overlap. Of those above 5% of the exact misses: how many estimated shares are within 10%
and 25% of the exact one, and half the interval in percent of the share. Error: half the sum of all absolute differences
of shares (0: the same, 1: disjoint). Profiles that are in DIR already are not recorded again.
"""
import argparse
import csv
import io
import pathlib
import subprocess
import sys
import tempfile

import untuned_programs

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Rounds of scripts/rounds.sh in burst mode and in full mode. None: of untuned_programs, once.
PROGRAMS = {"bzip2": (200, 20), "sqlite": (200, 20), "xz": (100, 8), "python": (300, 12), "perl": (200, 20), "awk": (200, 20),
            "gzip": (130, 12), "perlsort": (130, 12), "lua": None}
# tests/bench/alternating.c: rounds, some two seconds each.
ALTERNATING = {f"alternating{kind}": rounds for kind, rounds in enumerate((50, 6, 25, 16, 40, 50))}


def command(name, rounds, inputs):
    if name in ALTERNATING:
        return [ROOT / "build" / "tests" / "alternating", name[-1], str(rounds)]
    if PROGRAMS[name] is None:
        return untuned_programs.programs()[name](inputs)
    words = subprocess.run([ROOT / "scripts" / "rounds.sh", "command", name, str(rounds)], cwd=inputs, check=True, capture_output=True)
    return words.stdout.decode().split("\0")[:-1]


def record(cachegram, name, folder, inputs, full, number=0, overhead="5", times=1):
    db = folder / (f"{name}.full.db" if full else f"{name}.{overhead}.{times}.{number}.db")
    if not db.exists():
        rounds = ALTERNATING.get(name) or (PROGRAMS[name][full] * (1 if full else times) if PROGRAMS[name] else 1)
        options = ["--mode", "full"] if full else ["--seed", str(number), "--overhead", overhead]
        subprocess.run([cachegram, "record", *options, "-o", db, "--", *command(name, rounds, inputs)], cwd=inputs, check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return db


def hotspots(cachegram, db, size, by):
    out = subprocess.run([cachegram, "hotspots", "--format", "csv", "--by", by, "--size", size, db], check=True, capture_output=True).stdout
    rows = {}
    for row in csv.DictReader(io.StringIO(out.decode())):
        key = tuple(row[name] for name in ("module", "function", "object", "object_kind"))
        share, enough = float(row["miss_share"]), row["enough_samples"] == "1" and key not in rows
        low, high = (float(row["miss_share_low"]), float(row["miss_share_high"])) if enough else (0, 1)
        share += rows[key]["share"] if key in rows else 0  # of the same name
        rows[key] = {"share": share, "low": low, "high": high, "enough": enough}
    return rows


def compare(exact, estimated):
    nothing = {"share": 0.0, "low": 0.0, "high": 1.0, "enough": False}
    top, total = [], 0
    for key in sorted(exact, key=lambda k: -exact[k]["share"]):
        if total >= 0.9:
            break
        top.append(key)
        total += exact[key]["share"]
    of_top = [estimated.get(key, nothing) for key in top]
    large = [key for key in top if exact[key]["share"] >= 0.05]
    errors = [abs(estimated.get(key, nothing)["share"] / exact[key]["share"] - 1) for key in large]
    halves = [(row["high"] - row["low"]) / 2 / exact[key]["share"] for key, row in zip(top, of_top) if row["enough"] and key in large]
    return {
        "top": len(top),
        "known": sum(row["enough"] for row in of_top),
        "held": sum(row["enough"] and row["low"] - 1e-9 <= exact[key]["share"] <= row["high"] + 1e-9 for key, row in zip(top, of_top)),
        "wrong": sum(of_top[i]["high"] < of_top[k]["low"] for i in range(len(top)) for k in range(i + 1, len(top))),
        "large": len(large),
        "near": sum(error <= 0.1 for error in errors),
        "quarter": sum(error <= 0.25 for error in errors),
        "halves": len(halves),
        "half": sum(halves),
        "error": sum(abs(exact.get(key, nothing)["share"] - estimated.get(key, nothing)["share"]) for key in {*exact, *estimated}) / 2,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cachegram", default=ROOT / "build/src/cli/cachegram", type=pathlib.Path)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--programs", default=",".join(PROGRAMS))
    parser.add_argument("--sizes", default="32K,256K,1M")
    parser.add_argument("--by", default="function,object")
    parser.add_argument("--overhead", default="5")
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--folder", type=pathlib.Path)
    options = parser.parse_args()
    programs = options.programs.split(",")
    known = [*PROGRAMS, *ALTERNATING]
    if not set(programs) <= set(known):
        parser.error(f"programs: {','.join(known)}")
    folder = (options.folder or pathlib.Path(tempfile.mkdtemp(prefix="bench-hotspots-"))).resolve()
    inputs = folder / "inputs"
    if not inputs.exists():
        inputs.mkdir(parents=True)
        subprocess.run([ROOT / "scripts" / "rounds.sh", "inputs"], cwd=inputs, check=True)
    print("| program | size | top 90% | with an interval | of these hold | wrong order | above 5% | within 10% | within 25% | half interval | error |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    sums = {}
    for name in programs:
        full = record(options.cachegram, name, folder, inputs, True)
        runs = [record(options.cachegram, name, folder, inputs, False, i + 1, options.overhead, options.times) for i in range(options.runs)]
        for size in options.sizes.split(","):
            exact = hotspots(options.cachegram, full, size, options.by)
            results = [compare(exact, hotspots(options.cachegram, db, size, options.by)) for db in runs]
            mean = {key: sum(r[key] for r in results) / len(results) for key in results[0]}
            for key, value in mean.items():
                sums[key] = sums.get(key, 0) + value
            print_row(name, size, mean)
    print_row("all", "", {**sums, "error": sums["error"] / (len(programs) * len(options.sizes.split(",")))})


def print_row(name, size, m):
    half = f"{100 * m['half'] / m['halves']:.0f}%" if m["halves"] else "-"
    print(f"| {name} | {size} | {m['top']:.3g} | {m['known']:.3g} | {m['held']:.3g} | {m['wrong']:.3g} | {m['large']:.3g} | {m['near']:.3g} | {m['quarter']:.3g} | {half} | {m['error']:.3f} |")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
