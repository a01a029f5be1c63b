#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The StatStack paper's experiment on programs of this machine: how far sparse samples lead from the exact curve.

Each program is traced in full, a billion references or more. Then in one pass over the trace: the exact fully
associative LRU curve from 32 KB to 8 MB, and StatStack's estimates of it from the papers' sampler with settings S1
(windows of 1e6 references, 14e6 between them, 1500 samples each) and S2 (74e6), 32 times each with other random
numbers (tests/bench/bench_papers.c). Then, where `cachegram sample --bursts` is there, the burst estimator with
bursts of 100,000 references, as many as make the number of references that lie in S1's and S2's windows.

Errors are absolute differences of miss ratios in percentage points. The paper took them from the mean of the 32
estimates, which tells how far the sampling scatters; from the exact curve they hold the model's error, too.

One trace is on disk at a time (up to 2 GB). What was measured is kept in a JSON file after each program: an
interrupted run goes on where it was (make bench-papers). A program costs some 50 s of CPU time, and 100 s for
32 repeats of the bursts.

    scripts/bench-papers.py [--programs bzip2,perl] [--repeats 32] [--results FILE] [--svg FILE] [--no-measure]
"""
import argparse
import csv
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import bench
import papers_plot
import papers_programs

LEAST = 1000000000
BURST_REFS = 100000
SETTINGS = ("s1", "s2")
PUBLISHED = {"s1": 0.2, "s2": 0.4}
KINDS = {  # heading: which estimates, and what their errors are taken from
    "scatter": "StatStack, from its mean",
    "exact": "StatStack, from exact",
    "bursts": "bursts, from exact",
}


def run(argv, **more):
    """Standard output; ends with what the command said if it failed."""
    done = subprocess.run([str(a) for a in argv], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                          check=False, **more)
    if done.returncode != 0:
        raise RuntimeError(f"status {done.returncode}: {argv[0]}: {done.stderr.strip()[-300:]}")
    return done.stdout


# --- measuring ---

def has_bursts(cachegram):
    return subprocess.run([cachegram, "sample", "--bursts", "1", "--help"], capture_output=True,
                          check=False).returncode == 0


def bursts(cachegram, trace, result, repeats, folder):
    """setting: number of bursts, and the estimates; sizes without an answer are null."""
    numbers = {}
    for setting in SETTINGS:
        windows = result[setting]
        share = windows["window"] / (windows["window"] + windows["hibernate"])
        numbers[setting] = max(1, round(result["references"] * share / BURST_REFS))
    run([cachegram, "sample", "--bursts", ",".join(map(str, numbers.values())), "--burst-refs", BURST_REFS,
         "--seeds", repeats, "-o", folder / "b.db", trace])
    sizes = ",".join(map(str, result["sizes"]))
    found = {}
    for setting, number in numbers.items():
        curves = []
        for profile in sorted(folder.glob(f"b-{number}-*.db")):
            text = run([cachegram, "mrc", "--format", "csv", "--sizes", sizes, profile], stdout=subprocess.PIPE)
            rows = csv.DictReader(io.StringIO(text))
            curves.append([float(row["miss_ratio"]) if row["miss_ratio"] else None for row in rows])
            profile.unlink()
        found[setting] = {"bursts": number, "repeats": [{"miss_ratios": curve} for curve in curves]}
    return found


def measure(cachegram, program, with_bursts, args):
    """What is to be known of one program."""
    tool = bench.ROOT / "build" / "tests" / "bench_papers"
    with tempfile.TemporaryDirectory(prefix="cachegram-papers-", dir=args.folder) as name:
        folder = pathlib.Path(name)
        argv = papers_programs.programs(args.scale)[program](folder)
        trace = folder / "t.trace"
        run([cachegram, "record", "--mode", "full", "--reduce", "none", "--trace", trace, "-o", folder / "p.db",
             "--", *argv], stdout=subprocess.DEVNULL, cwd=folder)
        # Seeds of its own: else all programs' windows would be at the same places.
        seed = 1 + 1000 * papers_programs.NAMES.index(program)
        result = json.loads(run([tool, trace, LEAST * args.scale, args.repeats, seed], stdout=subprocess.PIPE))
        result["trace_bytes"] = trace.stat().st_size
        if with_bursts:
            result["bursts"] = bursts(cachegram, trace, result, args.burst_repeats, folder)
        return result


def keep(path, results):
    """All or nothing: an interrupted run must find whole results."""
    part = path.with_suffix(".part")
    part.write_text(json.dumps(results) + "\n")
    part.replace(path)


# --- judging ---

def errors(result, setting, kind):
    """Absolute errors in percentage points, of all repeats and sizes with an answer; None: not measured."""
    source = result.get("bursts", {}).get(setting) if kind == "bursts" else result[setting]
    if source is None:
        return None
    curves = [repeat["miss_ratios"] for repeat in source["repeats"]]
    found = []
    for i, exact in enumerate(result["exact"]):
        values = [curve[i] for curve in curves if curve[i] is not None]
        origin = sum(values) / len(values) if kind == "scatter" and values else exact
        found += [100 * abs(value - origin) for value in values]
    return found


def all_errors(results, setting, kind):
    return [e for result in results.values() for e in errors(result, setting, kind) or []]


def quantile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def below(values, limit):
    return 100 * sum(v < limit for v in values) / len(values)


def model_error(result):
    """Largest and mean difference of the run that never hibernates."""
    found = errors(result, "every_window", "exact")
    return sum(found) / len(found), max(found)


def print_row(name, found, reported):
    print(f"| {name} | {len(found)} | {sum(found) / len(found):.3f} | "
          + " | ".join(f"{quantile(found, q):.3f}" for q in (0.5, 0.9, 0.99)) + f" | {max(found):.2f} | "
          f"{below(found, 0.2):.0f}% | {below(found, 0.4):.0f}% | {reported} |")


def print_tables(results):
    print("| program | references | lines | exact miss ratio, %, at 32K, 512K, 8M | every window: mean, largest error"
          " | " + " | ".join(f"{s.upper()}: {name}" for s in SETTINGS for name in KINDS.values()) + " |")
    print("| --- " * (5 + len(SETTINGS) * len(KINDS)) + "|")
    for program, result in results.items():
        exact = dict(zip(result["sizes"], result["exact"]))
        cells = [errors(result, setting, kind) for setting in SETTINGS for kind in KINDS]
        print(f"| {program} | {result['references'] / 1e9:.2f}e9 | {result['lines']} | "
              + ", ".join(f"{100 * exact[size]:.2f}" for size in (32768, 524288, 8388608)) + " | "
              + ", ".join(f"{e:.2f}" for e in model_error(result)) + " | "
              + " | ".join(f"{quantile(c, 0.9):.3f}" if c else "" for c in cells) + " |")
    print("\n| all programs and sizes | errors | mean | 50% below | 90% below | 99% below | largest | < 0.2 | < 0.4 | "
          "published |\n" + "| --- " * 10 + "|")
    with_bursts = {program: result for program, result in results.items() if "bursts" in result}
    for setting in SETTINGS:
        reported = f"90% < {PUBLISHED[setting]}"
        print_row(f"{setting.upper()}: {KINDS['scatter']}", all_errors(results, setting, "scatter"), reported)
        print_row(f"{setting.upper()}: {KINDS['exact']}", all_errors(results, setting, "exact"), "")
        if with_bursts:
            if len(with_bursts) < len(results):
                same = all_errors(with_bursts, setting, "exact")
                print_row(f"{setting.upper()}: the same, programs with bursts", same, "")
            print_row(f"{setting.upper()}: {KINDS['bursts']}", all_errors(with_bursts, setting, "bursts"), "")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", default=",".join(papers_programs.STUDIED))
    parser.add_argument("--repeats", type=int, default=32)
    parser.add_argument("--burst-repeats", type=int, default=32, help="0: no bursts")
    parser.add_argument("--scale", type=int, default=1, help="times the references, for other --results")
    parser.add_argument("--results", default=str(bench.ROOT / "build" / "bench-papers.json"))
    parser.add_argument("--folder", help="for the trace (default: where temporary files go)")
    parser.add_argument("--svg", help="draw the distributions into this file")
    parser.add_argument("--no-measure", action="store_true", help="tables and plot of what is there")
    args = parser.parse_args()
    path = pathlib.Path(args.results)
    results = json.loads(path.read_text()) if path.exists() else {}
    if not args.no_measure:
        cachegram = bench.find_cachegram()
        with_bursts = args.burst_repeats > 0 and has_bursts(cachegram)
        os.nice(10)
        for program in args.programs.split(","):
            if program in results and ("bursts" in results[program] or not with_bursts):
                continue
            if not papers_programs.here(program):
                print(f"# {program}: not on this machine", file=sys.stderr)
                continue
            print(f"# {program} ...", file=sys.stderr, flush=True)
            try:
                results[program] = measure(cachegram, program, with_bursts, args)
                keep(path, results)
            except RuntimeError as trouble:
                print(f"# {program}: {trouble}", file=sys.stderr)
    results = {p: results[p] for p in args.programs.split(",") if p in results}
    if not results:
        sys.exit("bench-papers.py: nothing was measured")
    print_tables(results)
    if args.svg:
        series = [(setting, kind, f"{setting.upper()}: {name}", all_errors(results, setting, kind))
                  for setting in SETTINGS for kind, name in KINDS.items()]
        pathlib.Path(args.svg).write_text(papers_plot.draw([s for s in series if s[3]], PUBLISHED, len(results)))


if __name__ == "__main__":
    main()
