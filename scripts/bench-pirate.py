#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The figures of docs/pirate.md: the simulated Pirate, knees of micro programs on this machine, what a run costs.

usage: bench-pirate.py [--build FOLDER] [--only simulated,knees,cost] [--rounds N] [--realtime]

Other programs at work show as dropped intervals and wide bands. --realtime (as root) gives the measured programs and
the Pirate real-time priority, so that others stand still for the seconds that each measurement takes.
"""
import argparse
import csv
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
MB = 1 << 20
TRIES = 10
INPUT_BYTES = 24 * MB
# Command, by its time for the input of the size above: some seconds each.
PROGRAMS = {"bzip2": ["bzip2", "-c"], "gzip": ["gzip", "-9", "-c"], "xz": ["xz", "-T1", "-2", "-c"],
            "perl": ["perl", "-ne", "$n{$_}++ for unpack '(A2)*', $_; END { print scalar(keys %n) }"]}


class Priority:
    """Real-time priorities, where asked for: the tool's own thread above its Pirate and its program, which never rest."""

    def __init__(self, wanted):
        self.wanted = wanted

    def run(self, argv, **how):
        """As subprocess.run, standard output thrown away; the exit status and what was on standard error."""
        def lift():
            if self.wanted:
                os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(2))
        with subprocess.Popen([str(a) for a in argv], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                              preexec_fn=lift, **how) as p:
            lowered = {p.pid}
            while self.wanted and p.poll() is None:
                self.lower(p.pid, lowered)
                time.sleep(0.03)
            return p.wait(), p.stderr.read()

    @staticmethod
    def lower(pid, lowered):
        task = pathlib.Path(f"/proc/{pid}/task")
        try:
            found = {int(t.name) for t in task.iterdir()}
            found |= {int(c) for c in (task / str(pid) / "children").read_text().split()}
            for one in found - lowered:
                os.sched_setscheduler(one, os.SCHED_FIFO, os.sched_param(1))
                lowered.add(one)
        except OSError:
            pass  # it has ended


def cpu_seconds_of(argv, priority):
    """Of one run of a command, alone."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    priority.run(argv)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def pirate(tool, folder, options, argv, priority):
    """The results of one measurement, as its json has them."""
    results = folder / "results.json"
    for _ in range(TRIES):
        status, errors = priority.run([tool, "pirate", "--results", results, "--format", "json", "-o", folder / "p.db",
                                       *options, "--", *argv])
        if status == 0:
            return json.loads(results.read_text())
        if "do not share" not in errors:
            break
        time.sleep(5)  # until the host has moved its guests' CPUs
    sys.exit(f"bench-pirate: {errors}")


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


def knees(tool, folder, micro, priority):
    """Slowdown by available size, for sets of known sizes."""
    for kind, steps, sets in (("random", 600000000, (4, 6, 8)), ("chained", 120000000, (6,)),
                              ("sequential", 2500000000, (8,))):
        for mb in sets:
            told = pirate(tool, folder, ["--progress", "progress", "--interval-ms", "10", "--threads", "1"],
                          [micro, kind, mb * MB, steps], priority)
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


def cost(tool, folder, rounds, priority):
    """A full measuring run of sixteen sizes against the program alone, in turns; medians."""
    make_input(folder / "input")
    print("Sixteen sizes in one run: time held to change the size; CPU time of the whole run against the program alone, with")
    print("what the stolen cache costs in it")
    print("  program  alone  valid    held  whole run")
    for name, argv in PROGRAMS.items():
        argv = [*argv, folder / "input"]
        told, alone = [], []
        for _ in range(rounds):
            alone.append(cpu_seconds_of(argv, priority))
            told.append(pirate(tool, folder, ["--progress", "io"], argv, priority))
        print(f"  {name:7} {statistics.median(alone):5.2f} s {percent(statistics.median(map(shares, told))):>6} "
              f"{statistics.median(t['stopped_percent'] for t in told):6.2f}% "
              f"{percent(statistics.median(t['cpu_seconds'] / a - 1 for t, a in zip(told, alone))):>10}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--only", default="simulated,knees,cost")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--realtime", action="store_true")
    args = parser.parse_args()
    priority = Priority(args.realtime)
    tool = args.build / "src" / "cli" / "cachegram"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        micro = folder / "micro"
        subprocess.run(["gcc", "-O2", "-o", micro, ROOT / "tests" / "targets" / "micro.c"], check=True)
        for part in args.only.split(","):
            if part == "simulated":
                simulated(args.build)
            elif part == "knees":
                knees(tool, folder, micro, priority)
            elif part == "cost":
                cost(tool, folder, args.rounds, priority)
            else:
                sys.exit(f"bench-pirate: --only {part}: there are simulated, knees, cost")


if __name__ == "__main__":
    main()
