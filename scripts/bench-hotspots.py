#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Who misses, from bursts and exactly: shares of functions in the misses, for several cache sizes.

usage: scripts/bench-hotspots.py [--cachegram FILE] [--runs N] [--programs A,B] [--sizes 32K,256K,1M] [--overhead P] [--folder DIR]

Each program is recorded in burst mode (some ten seconds at the default budget) and in full mode (fewer rounds of the
same work), and `cachegram hotspots` is asked about both. Of the functions that make up the top 90% of the exact misses:
how many have an interval, how many of the intervals hold the exact share, and how many pairs of functions are in the
wrong order although their intervals do not overlap. Of those above 5% of the exact misses: how many estimated shares are
within 10% of the exact one. Error: half the sum of all absolute differences of shares (0: the same, 1: disjoint).
Profiles that are in DIR already are not recorded again.
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
PROGRAMS = {"bzip2": (200, 20), "sqlite": (200, 20), "xz": (80, 8), "python": (120, 12), "perl": (120, 12), "lua": None}


def command(name, rounds, inputs):
    if PROGRAMS[name] is None:
        return untuned_programs.programs()[name](inputs)
    words = subprocess.run([ROOT / "scripts" / "rounds.sh", "command", name, str(rounds)], cwd=inputs, check=True, capture_output=True)
    return words.stdout.decode().split("\0")[:-1]


def record(cachegram, name, folder, inputs, full, number=0, overhead="5"):
    db = folder / (f"{name}.full.db" if full else f"{name}.{overhead}.{number}.db")
    if not db.exists():
        rounds = PROGRAMS[name][full] if PROGRAMS[name] else 1
        options = ["--mode", "full"] if full else ["--seed", str(number), "--overhead", overhead]
        subprocess.run([cachegram, "record", *options, "-o", db, "--", *command(name, rounds, inputs)], cwd=inputs, check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return db


def hotspots(cachegram, db, size):
    out = subprocess.run([cachegram, "hotspots", "--format", "csv", "--size", size, db], check=True, capture_output=True).stdout
    rows = {}
    for row in csv.DictReader(io.StringIO(out.decode())):
        row["share"] = float(row["miss_share"])
        enough = row["enough_samples"] == "1"
        row["low"], row["high"] = (float(row["miss_share_low"]), float(row["miss_share_high"])) if enough else (0, 1)
        row["enough"] = enough
        rows[row["module"], row["function"]] = row
    return rows


def compare(exact, estimated):
    nothing = {"share": 0.0, "low": 0.0, "high": 0.0, "enough": False}
    top, total = [], 0
    for key in sorted(exact, key=lambda k: -exact[k]["share"]):
        if total >= 0.9:
            break
        top.append(key)
        total += exact[key]["share"]
    of_top = [estimated.get(key, nothing) for key in top]
    large = [key for key in top if exact[key]["share"] >= 0.05]
    wrong = sum(of_top[i]["high"] < of_top[k]["low"] for i in range(len(top)) for k in range(i + 1, len(top)))
    return {
        "top": len(top),
        "known": sum(row["enough"] for row in of_top),
        "held": sum(row["low"] - 1e-9 <= exact[key]["share"] <= row["high"] + 1e-9 for key, row in zip(top, of_top)),
        "wrong": wrong,
        "large": len(large),
        "near": sum(abs(estimated.get(key, nothing)["share"] / exact[key]["share"] - 1) <= 0.1 for key in large),
        "error": sum(abs(exact.get(key, nothing)["share"] - estimated.get(key, nothing)["share"]) for key in {*exact, *estimated}) / 2,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cachegram", default=ROOT / "build/src/cli/cachegram", type=pathlib.Path)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--programs", default=",".join(PROGRAMS))
    parser.add_argument("--sizes", default="32K,256K,1M")
    parser.add_argument("--overhead", default="5")
    parser.add_argument("--folder", type=pathlib.Path)
    options = parser.parse_args()
    programs = options.programs.split(",")
    if not set(programs) <= set(PROGRAMS):
        parser.error(f"programs: {','.join(PROGRAMS)}")
    folder = (options.folder or pathlib.Path(tempfile.mkdtemp(prefix="bench-hotspots-"))).resolve()
    inputs = folder / "inputs"
    if not inputs.exists():
        inputs.mkdir(parents=True)
        subprocess.run([ROOT / "scripts" / "rounds.sh", "inputs"], cwd=inputs, check=True)
    print("| program | size | functions in the top 90% | with an interval | intervals hold | pairs in wrong order | above 5%: within 10% | error |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    sums = {}
    for name in programs:
        full = record(options.cachegram, name, folder, inputs, True)
        runs = [record(options.cachegram, name, folder, inputs, False, i + 1, options.overhead) for i in range(options.runs)]
        for size in options.sizes.split(","):
            exact = hotspots(options.cachegram, full, size)
            results = [compare(exact, hotspots(options.cachegram, db, size)) for db in runs]
            mean = {key: sum(r[key] for r in results) / len(results) for key in results[0]}
            for key, value in mean.items():
                sums[key] = sums.get(key, 0) + value
            print_row(name, size, mean)
    print_row("all", "", {**sums, "error": sums["error"] / (len(programs) * len(options.sizes.split(",")))})


def print_row(name, size, m):
    print(f"| {name} | {size} | {m['top']:g} | {m['known']:g} | {m['held']:g} | {m['wrong']:g} | {m['near']:g} of {m['large']:g} | {m['error']:.3f} |")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
