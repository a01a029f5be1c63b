#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Programs side by side on this machine: measured slowdown against predicted, as a table for docs/accuracy-models.md.

Of each pair the first program runs alone and next to the second (which starts over until the first is done), in turn;
its user CPU time counts. "Alone" the other CPU spins, without touching memory, so that no one else uses it. The host
of a virtual machine may move its CPUs to where they share no cache: before and after each of the two, bench_shared
sends a cache line back and forth, and only rounds in which the CPUs shared the last level every time count as such;
those in which they never did are distinguished. Slowdown is the median of the rounds' ratios.

Predictions come from full-mode profiles (of the first rounds of the same work), the description of this machine, and
the CPI alone: the median time alone times the clock over the profile's instructions.

Needs the files that scripts/bench-corun.sh leaves in FOLDER. --realtime (as root) gives all of it real-time priority:
others stand still for the minutes that it takes.

usage: scripts/corun-real.py FOLDER MACHINE.json [--rounds N] [--apart N] [--patience SECONDS] [--realtime]
                             [--llc SIZE,...]
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
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
CACHEGRAM = ROOT / "build" / "src" / "cli" / "cachegram"
SHARED = ROOT / "build" / "tests" / "bench_shared"
# As in scripts/bench-corun.sh, by rounds; ROUNDS[...] of them take about half a second.
COMMANDS = {
    "bzip2": lambda n: ["bzip2", "-c"] + n * ["binary-600K"],
    "bunzip2": lambda n: ["bzip2", "-dc"] + n * ["text.bz2"],
    "zstd": lambda n: ["zstd", "-q", "--single-thread", "-12", "-c"] + n * ["binary-900K"],
    "xz": lambda n: ["xz", "-1", "-T1", "-c"] + n * ["binary-600K"],
    "perl": lambda n: ["perl", "hash.pl", str(n)],
    "perlsort": lambda n: ["perl", "sort.pl", str(n)],
    "awk": lambda n: ["awk", "FNR==1{for(w in c)n+=c[w]*length(w); delete c} {for(i=1;i<=NF;i++)c[$i]++} "
                             "END{print n}"] + n * ["text-1800K"],
    "gzip": lambda n: ["gzip", "-c"] + n * ["binary-1350K"],
}
ROUNDS = 3  # of the profiles
PAIRS = [("bunzip2", "bunzip2"), ("bunzip2", "zstd"), ("zstd", "bunzip2"), ("perlsort", "bunzip2"),
         ("bunzip2", "perlsort"), ("xz", "bunzip2"), ("awk", "bunzip2"), ("perl", "zstd"), ("bzip2", "bunzip2"),
         ("gzip", "bunzip2")]


class Runner:
    """Runs programs on the two CPUs, at the priority asked for."""

    def __init__(self, folder, realtime):
        self.folder, self.realtime = folder, realtime
        self.probe = subprocess.Popen([SHARED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                      preexec_fn=lambda: self.lift(2))
        self.cpus = [int(c) for c in self.probe.stdout.readline().split()]
        if len(self.cpus) != 2:
            sys.exit("corun-real.py: no two CPUs that share a cache, or too much noise to tell")
        self.transfers = []

    def lift(self, priority):
        if self.realtime:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))

    def shared(self):
        """Whether the CPUs share the last level at this moment; keeps the nanoseconds."""
        self.probe.stdin.write("\n")
        self.probe.stdin.flush()
        answer, ns = self.probe.stdout.readline().split()
        self.transfers.append(float(ns))
        return answer == "1"

    def start(self, argv, cpu):
        def prepare():
            os.sched_setaffinity(0, {cpu})
            self.lift(1)
        return subprocess.Popen(argv, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                env={**os.environ, "LC_ALL": "C"}, preexec_fn=prepare)

    def user_seconds(self, argv, cpu):
        """User CPU time of one run."""
        child = self.start(argv, cpu)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = status
        if status != 0:
            sys.exit(f"corun-real.py: {argv[0]} failed")
        return usage.ru_utime

    def beside(self, argv, other):
        """User CPU time while `other` runs again and again on the other CPU; without one it spins."""
        pid = os.fork()
        if pid == 0:
            os.setpgid(0, 0)
            os.sched_setaffinity(0, {self.cpus[1]})
            self.lift(1)
            while True:
                if other:
                    self.start(other, self.cpus[1]).wait()
        try:
            os.setpgid(pid, pid)
        except OSError:
            pass  # the child did it first
        try:
            return self.user_seconds(argv, self.cpus[0])
        finally:
            os.killpg(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def instructions(folder, name):
    with sqlite3.connect(folder / f"{name}.db") as db:
        return db.execute("SELECT value FROM run WHERE key = 'instructions'").fetchone()[0]


def predict(folder, machine, pair, cpis, llc):
    out = subprocess.run([CACHEGRAM, "corun", "--machine", machine, "--format", "csv", "--solo-cpi",
                          ",".join(f"{c:.4f}" for c in cpis)] + (["--llc", llc] if llc else []) +
                         [folder / f"{p}.db" for p in pair], stdout=subprocess.PIPE, text=True)
    if out.returncode != 0:
        return "no fit"
    return f"{float(next(csv.DictReader(io.StringIO(out.stdout)))['slowdown']):.3f}"


def rounds(run, argv, other, args):
    """Ratios of rounds in which the CPUs shared the cache, of those in which they did not, and times alone."""
    together, apart, alone = [], [], []
    give_up = time.monotonic() + args.patience
    while len(together) < args.rounds:
        if not run.shared() and len(apart) >= args.apart:
            if time.monotonic() > give_up:
                break
            time.sleep(0.5)
            continue
        shared = [run.shared()]
        by_itself = run.beside(argv, None)
        shared.append(run.shared())
        ratio = run.beside(argv, other) / by_itself
        shared.append(run.shared())
        if all(shared):
            together.append(ratio)
            alone.append(by_itself)
        elif not any(shared):
            apart.append(ratio)
            alone.append(by_itself)
    return together, apart, alone


def median(values):
    return f"{statistics.median(values):.3f}" if values else "-"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("machine")
    parser.add_argument("--rounds", type=int, default=9, help="in which the CPUs share the cache")
    parser.add_argument("--apart", type=int, default=3, help="in which they do not")
    parser.add_argument("--patience", type=float, default=60, help="seconds to wait for sharing, for each pair")
    parser.add_argument("--realtime", action="store_true")
    parser.add_argument("--llc", default="", help="predict with these sizes of the last level, too")
    args = parser.parse_args()
    run = Runner(args.folder, args.realtime)
    clock = json.loads(pathlib.Path(args.machine).read_text())["clock_hz"]
    sizes = [None] + [s for s in args.llc.split(",") if s]
    repeats = {}  # rounds of work that take half a second
    alone_cpi = {}
    for name in sorted({n for pair in PAIRS for n in pair}):
        seconds = statistics.median(run.beside(COMMANDS[name](ROUNDS), None) for _ in range(3))
        repeats[name] = max(1, round(ROUNDS * 0.5 / seconds))
        alone_cpi[name] = seconds * clock / instructions(args.folder, name)
    print("| program | beside | CPI alone | rounds | measured slowdown | quartiles | apart: rounds | slowdown | " +
          " | ".join("predicted" + (f", {s}" if s else "") for s in sizes) +
          " |\n| --- | --- | --- | --- | --- | --- | --- | --- |" + " --- |" * len(sizes), flush=True)
    for pair in PAIRS:
        argv, other = COMMANDS[pair[0]](repeats[pair[0]]), COMMANDS[pair[1]](20 * repeats[pair[1]])
        together, apart, alone = rounds(run, argv, other, args)
        cpi = statistics.median(alone) * clock / (instructions(args.folder, pair[0]) * repeats[pair[0]] / ROUNDS)
        cells = [predict(args.folder, args.machine, pair, (cpi, alone_cpi[pair[1]]), s) for s in sizes]
        quarter = statistics.quantiles(together, n=4) if len(together) > 1 else [float("nan")] * 3
        print(f"| {pair[0]} | {pair[1]} | {cpi:.2f} | {len(together)} | {median(together)} | "
              f"{quarter[0]:.3f}..{quarter[2]:.3f} | {len(apart)} | {median(apart)} | {' | '.join(cells)} |",
              flush=True)
    known = sorted(run.transfers)
    print(f"\nA line took {known[0]:.0f} to {known[-1]:.0f} ns between the CPUs, {statistics.median(known):.0f} in the "
          f"median of {len(known)} probes.")


if __name__ == "__main__":
    main()
