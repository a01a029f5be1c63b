#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The figures of docs/pirate.md: the simulated Pirate, knees of micro programs on this machine, what a run costs.

usage: bench-pirate.py [--build FOLDER] [--only simulated,knees,cost]      some five minutes on a quiet machine
Other programs at work show as dropped intervals and wide bands; run it as root under `nice -n -20` if need be.
"""
import argparse
import csv
import json
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
MB = 1 << 20
INPUT_BYTES = 32 * MB
# Command, by its time for the input of the size above: some seconds each.
PROGRAMS = {"bzip2": ["bzip2", "-c"], "gzip": ["gzip", "-9", "-c"], "xz": ["xz", "-T1", "-2", "-c"],
            "zstd": ["zstd", "-q", "-T1", "-14", "-c"]}


def cpu_seconds_of(argv):
    """Of one run of a command, alone; its output goes nowhere."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([str(a) for a in argv], stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def pirate(tool, folder, options, argv):
    """The results of one measurement, as its json has them."""
    results = folder / "results.json"
    status = subprocess.run([tool, "pirate", "--results", results, "--format", "json", "-o", folder / "p.db", *options,
                             "--", *map(str, argv)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                            check=False)
    if status.returncode != 0:
        sys.exit(f"bench-pirate: {status.stderr}")
    return json.loads(results.read_text())


def percent(value, digits=1):
    return "-" if value is None else f"{value * 100:.{digits}f}%"


def simulated(build):
    """Differences between what a Pirate leaves and a smaller cache, where its fetch ratio is below 1%."""
    table = list(csv.DictReader(subprocess.run([build / "tests" / "bench_pirate"], stdout=subprocess.PIPE, text=True,
                                               check=True).stdout.splitlines()))
    print("Simulated: 8 MB, 16 ways, a set of 8 MB; fetch ratio beside the Pirate against that of a smaller cache")
    print("  policy   pattern      valid down to   largest difference   mean")
    for policy in ("lru", "nehalem"):
        for pattern in ("random", "sequential"):
            rows = [r for r in table if (r["policy"], r["pattern"]) == (policy, pattern)]
            good = [r for r in rows if float(r["pirate_fetch_ratio"]) < 0.01]
            errors = [abs(float(r["fetch_beside_pirate"]) - float(r["fetch_in_smaller_cache"])) for r in good]
            print(f"  {policy:8} {pattern:11} {min(float(r['available_mb']) for r in good):6.1f} MB "
                  f"{percent(max(errors), 2):>16} {percent(statistics.mean(errors), 3):>14}")


def shares(told):
    good = sum(r["intervals"] for r in told["pirate"])
    dropped = sum(r["dropped"] for r in told["pirate"])
    return good / (good + dropped) if good + dropped else 0


def knees(tool, folder, micro):
    """Slowdown by available size, for sets of known sizes."""
    for kind, sets in (("random", (2, 4, 6, 8)), ("sequential", (4, 8))):
        for mb in sets:
            told = pirate(tool, folder, ["--progress", "progress", "--interval-ms", "5"],
                          [micro, kind, mb * MB, 1000000000])
            print(f"{kind}, {mb} MB: {told['llc_bytes'] / MB:.1f} MB to share, {percent(shares(told))} of the intervals valid")
            print("  available MB  " + " ".join(f"{r['available_bytes'] / MB:6.1f}" for r in told["pirate"]))
            print("  ns a step     " + " ".join(f"{r['ns_per_unit']:6.2f}" if r["valid"] else "     -"
                                                for r in told["pirate"]))
            print("  +-            " + " ".join(f"{(r['ns_high'] - r['ns_low']) / 2:6.2f}" if r["valid"] else "      "
                                                for r in told["pirate"]), flush=True)


def make_input(path):
    """Shared libraries, one after the other: something to compress."""
    with open(path, "wb") as f:
        for library in sorted(pathlib.Path("/usr/lib").rglob("*.so*")):
            if library.is_file() and not library.is_symlink():
                f.write(library.read_bytes())
            if f.tell() > INPUT_BYTES:
                break
        f.truncate(INPUT_BYTES)


def cost(tool, folder):
    """A full measuring run of sixteen sizes against the program alone, in turns, three times; medians."""
    make_input(folder / "input")
    print("Sixteen sizes in one run: time held to change the size; what a theft of half a megabyte costs (that is bandwidth,")
    print("not space); CPU time of the whole run against the program alone, with what the stolen cache costs in it")
    print("  program  alone  valid    held  0.5M stolen  whole run")
    for name, argv in PROGRAMS.items():
        argv = [*argv, folder / "input"]
        told, alone = [], []
        for _ in range(3):
            alone.append(cpu_seconds_of(argv))
            told.append(pirate(tool, folder, ["--progress", "io"], argv))
        beside = [t["beside_ns"] / t["alone_ns"] - 1 for t in told if t["beside_ns"] and t["alone_ns"]]
        print(f"  {name:7} {statistics.median(alone):5.2f} s {percent(statistics.median(map(shares, told))):>6} "
              f"{statistics.median(t['stopped_percent'] for t in told):6.2f}% "
              f"{percent(statistics.median(beside)) if beside else '-':>12} "
              f"{percent(statistics.median(t['cpu_seconds'] / a - 1 for t, a in zip(told, alone))):>10}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--only", default="simulated,knees,cost")
    args = parser.parse_args()
    tool = args.build / "src" / "cli" / "cachegram"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        micro = folder / "micro"
        subprocess.run(["gcc", "-O2", "-o", micro, ROOT / "tests" / "targets" / "micro.c"], check=True)
        for part in args.only.split(","):
            if part == "simulated":
                simulated(args.build)
            elif part == "knees":
                knees(tool, folder, micro)
            elif part == "cost":
                cost(tool, folder)
            else:
                sys.exit(f"bench-pirate: --only {part}: there are simulated, knees, cost")


if __name__ == "__main__":
    main()
