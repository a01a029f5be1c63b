#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What counting costs and how right its rates are: a table for docs/accuracy.md.

usage: scripts/bench-clock.py [--rounds N] 'COMMAND LINE'...

Of each command, CPU times natively and with --clock count-always in turns (median of the ratios); then, with a
stretch of counting every 4 ms, what one costs, and the mean of the rates that bursts were reported (over CPU time,
so that it is comparable) with the true one, references by time. CACHEGRAM names the program to run.
"""
import argparse
import os
import resource
import shlex
import sqlite3
import statistics
import subprocess
import tempfile

CACHEGRAM = os.environ.get("CACHEGRAM", os.path.join(os.path.dirname(__file__), "../build/src/cli/cachegram"))


def cpu_seconds(argv):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def record(argv, options, query):
    with tempfile.TemporaryDirectory() as d:
        cpu_seconds([CACHEGRAM, "record", "-o", d + "/p.db", "--allowance", "0", *options, "--", *argv])
        with sqlite3.connect(d + "/p.db") as con:
            return con.execute(query).fetchall()


def measure(argv, rounds):
    native, slowdown, references = [], [], 0
    for _ in range(rounds):
        native.append(cpu_seconds(argv))
        keys = dict(record(argv, ["--clock", "count-always", "--gap-us", "1000000"], "select key, value from run"))
        references = keys["clock_references"]
        slowdown.append(keys["cpu_seconds"] / native[-1])
    often = ["--clock", "count", "--watch", "none", "--gap-us", "4000"]
    reported = [record(argv, often, "select avg(refs_per_ns) from burst")[0][0] for _ in range(rounds)]
    count = dict(record(argv, often, "select name, sum(value) from counter group by name"))
    return {"true": references / min(native) * 1e-9, "reported": statistics.median(reported),
            "slowdown": statistics.median(slowdown), "stretch": count["count_cpu_ns"] / count["counts"] / 1e3,
            "away": count["count_agent_ns"] / count["counts"] / 1e3}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("commands", nargs="+")
    arguments = parser.parse_args()
    print("| | always counted, CPU time | a stretch, us | of that translating, us | true references/ns | reported / true |")
    print("| --- | --- | --- | --- | --- | --- |")
    for line in arguments.commands:
        argv = shlex.split(line)
        m = measure(argv, arguments.rounds)
        print(f"| {os.path.basename(argv[0])} | {m['slowdown']:.2f} | {m['stretch']:.0f} | {m['away']:.0f} | {m['true']:.2f} |"
              f" {m['reported'] / m['true']:.2f} |", flush=True)


if __name__ == "__main__":
    main()
