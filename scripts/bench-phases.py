#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How bursts are weighed where a program goes from fast to slow code and back: reported against true.

tests/targets/two_speeds.c makes a hundred references in fast code for each in slow code, in turns of so many of the slow
ones, which take some 30 ns each; the fast ones take a tenth of the time of a turn or up to as long, as the processor is.
Told is the share of slow references, which alone miss 16 KB, in percent; the median and the range of --rounds runs.

    scripts/bench-phases.py [--rounds 5] [--burst-refs 30000]
"""
import argparse
import csv
import io
import pathlib
import statistics
import subprocess
import tempfile

import bench

SLOW = (150, 500, 1500, 5000, 15000, 50000, 500000)
TOTAL = 60000000  # slow references of a run: some two seconds


def reported(cachegram, program, slow, options, seed, folder):
    db = str(folder / "phases.db")
    argv = [program, str(TOTAL // slow), str(slow * 100 // 3), str(slow)]
    subprocess.run([cachegram, "record", "-o", db, "--gap-us", "5000", "--watch", "none", "--seed", str(seed),
                    "--burst-refs", str(options.burst_refs), "--", *argv], capture_output=True, check=True)
    out = subprocess.run([cachegram, "mrc", db, "--sizes", "16K", "--format", "csv"], capture_output=True, text=True,
                         check=True).stdout
    return 100 * float(next(csv.DictReader(io.StringIO(out)))["miss_ratio"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--burst-refs", type=int, default=30000)
    options = parser.parse_args()
    cachegram = bench.find_cachegram()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        program = str(folder / "two_speeds")
        source = pathlib.Path(__file__).resolve().parent.parent / "tests" / "targets" / "two_speeds.c"
        subprocess.run(["cc", "-O2", "-o", program, str(source)], check=True)
        print("| slow references in a turn | true % | reported %, median | range |\n| --- | --- | --- | --- |")
        for slow in SLOW:
            values = [reported(cachegram, program, slow, options, seed, folder) for seed in range(1, options.rounds + 1)]
            print(f"| {slow} | {100 / 101:.2f} | {statistics.median(values):.2f} | "
                  f"{min(values):.2f} to {max(values):.2f} |", flush=True)


if __name__ == "__main__":
    main()
