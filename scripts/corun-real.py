#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Programs side by side on this machine: measured slowdown against predicted, as a table for docs/accuracy.md.

Each pair is pinned to two CPUs. The first runs alone and beside the second (which starts over until the first
is done), in turn; its user CPU time counts, median of the paired ratios. The prediction comes from full-mode
profiles, the description of this machine, and the CPI alone, which is the median time alone times the clock
over the profile's instructions. Needs the files that scripts/bench-corun.sh leaves in FOLDER.

usage: scripts/corun-real.py FOLDER MACHINE.json [--repeats N]
"""
import argparse
import csv
import io
import json
import os
import pathlib
import signal
import sqlite3
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
CACHEGRAM = ROOT / "build" / "src" / "cli" / "cachegram"
COMMANDS = {
    "bzip2": ["bzip2", "-c", "binary-half"],
    "bunzip2": ["bzip2", "-dc", "text.bz2"],
    "zstd": ["zstd", "-q", "--single-thread", "-12", "-c", "binary"],
    "xz": ["xz", "-1", "-T1", "-c", "binary-half"],
    "sort": ["sort", "--parallel=1", "text"],
    "perl": ["perl", "hash.pl"],
    "python": ["/usr/bin/python3", "counts.py"],
    "gzip": ["gzip", "-c", "binary"],
}
PAIRS = [("zstd", "bunzip2"), ("bunzip2", "zstd"), ("zstd", "zstd"), ("sort", "zstd"), ("perl", "bunzip2"),
         ("bzip2", "zstd"), ("xz", "bunzip2"), ("gzip", "zstd")]


def start(name, cpu, folder):
    return subprocess.Popen(["taskset", "-c", str(cpu)] + COMMANDS[name], cwd=folder, stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, env={**os.environ, "LC_ALL": "C"})


def user_seconds(name, cpu, folder):
    """User CPU time of one run."""
    child = start(name, cpu, folder)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = status
    if status != 0:
        sys.exit(f"corun-real.py: {name} failed")
    return usage.ru_utime


def beside(name, other, cpus, folder):
    """User CPU time of `name` while `other` runs again and again on the other CPU."""
    pid = os.fork()
    if pid == 0:
        os.setpgid(0, 0)
        while True:
            start(other, cpus[1], folder).wait()
    try:
        os.setpgid(pid, pid)
    except OSError:
        pass  # the child did it first
    try:
        return user_seconds(name, cpus[0], folder)
    finally:
        os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def instructions(folder, name):
    with sqlite3.connect(folder / f"{name}.db") as db:
        return db.execute("SELECT value FROM run WHERE key = 'instructions'").fetchone()[0]


def predict(folder, machine, pair, cpis):
    out = subprocess.run([CACHEGRAM, "corun", "--machine", machine, "--format", "csv", "--solo-cpi",
                          ",".join(f"{c:.4f}" for c in cpis)] + [folder / f"{p}.db" for p in pair],
                         stdout=subprocess.PIPE, text=True)
    return float(next(csv.DictReader(io.StringIO(out.stdout)))["slowdown"]) if out.returncode == 0 else None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("machine")
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    cpus = sorted(os.sched_getaffinity(0))[:2]
    if len(cpus) < 2:
        sys.exit("corun-real.py: needs two CPUs")
    clock = json.loads(pathlib.Path(args.machine).read_text())["clock_hz"]
    print("| program | beside | CPI alone | measured slowdown | least..most | predicted |\n"
          "| --- | --- | --- | --- | --- | --- |", flush=True)
    for name, other in PAIRS:
        alone, ratios = [], []
        for _ in range(args.repeats):
            alone.append(user_seconds(name, cpus[0], args.folder))
            ratios.append(beside(name, other, cpus, args.folder) / alone[-1])
        other_alone = user_seconds(other, cpus[1], args.folder)
        cpis = [statistics.median(alone) * clock / instructions(args.folder, name),
                other_alone * clock / instructions(args.folder, other)]
        predicted = predict(args.folder, args.machine, (name, other), cpis)
        print(f"| {name} | {other} | {cpis[0]:.2f} | {statistics.median(ratios):.3f} | "
              f"{min(ratios):.3f}..{max(ratios):.3f} | "
              f"{'no fit' if predicted is None else f'{predicted:.3f}'} |", flush=True)


if __name__ == "__main__":
    main()
