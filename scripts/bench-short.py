#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How good the default of `record` is for short runs: curves against exact ones of full mode, same programs and inputs.

Eight programs (brotli, jq, mawk, binutils, diffutils, flac, tcl, libxml2-utils must be installed), with inputs that make
them take so many seconds natively. For each program and length: the exact curve once (record --mode full), then --runs recordings with each set of options. Told
are, for 32 KB to 8 MB and for 1 to 16 KB in steps of half a power of two, the mean absolute difference of miss ratios in
percentage points over the sizes that are answered; the share of sizes without an answer; how many of all intervals hold
the exact value; the CPU seconds that profiling took, by its own account; and how many times the native CPU time the
recording took, as the kernel counts it, recorder included. "exact" is the recording of full mode.

    scripts/bench-short.py [--programs jq,flac] [--lengths 0.05,0.3,1] [--runs 3] [--options "--allowance 0;"]

--options: sets, separated by semicolons; an empty one is the default.
"""
import argparse
import collections
import csv
import io
import json
import os
import pathlib
import random
import sqlite3
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
CACHEGRAM = os.environ.get("CACHEGRAM", str(ROOT / "build" / "src" / "cli" / "cachegram"))
# Where stack and libraries lie decides which variables share lines.
NOT_RANDOM = ["setarch", "-R"]
LARGE, SMALL = (32 << 10, 8 << 20), (1 << 10, 16 << 10)
TCL = """set n [lindex $argv 0]; array set a {}; set s 0
for {set i 0} {$i < $n} {incr i} { set k [expr {($i * 7919) % 30011}]; append a($k) x$i; if {$i % 7 == 0} { incr s [string length $a($k)] } }
puts "$s [llength [lsort [array names a]]]"
"""


def words(n, seed=7):
    """n bytes of text with words of a skewed frequency, in lines."""
    rng = random.Random(seed)
    known = ["".join(rng.choices("etaoinshrdlucmfwypvbgk", k=rng.randint(2, 9))) for _ in range(8000)]
    out, length = [], 0
    while length < n:
        line = " ".join(known[min(int(rng.paretovariate(0.7)), 7999)] for _ in range(9))
        out.append(line)
        length += len(line) + 1
    return "\n".join(out) + "\n"


def written(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


def changed(text):
    rng = random.Random(8)
    return "".join(line for line in text.splitlines(True) if rng.random() < 0.9)


def sound(n):
    rng, level, out = random.Random(7), 0, bytearray()
    for _ in range(n):
        level = int(0.98 * level + rng.gauss(0, 600))
        out += max(-32768, min(32767, level)).to_bytes(2, "little", signed=True)
    return bytes(out)


def cc1():
    return subprocess.run(["gcc", "-print-prog-name=cc1"], capture_output=True, text=True, check=True).stdout.strip()


# Compressors write to stdout: as root, brotli and flac give a named output, /dev/null too, the mode and times of their input.
# name: units in a second on the machine of docs/accuracy.md, about; what makes an input of so many units and returns argv
PROGRAMS = {
    "brotli": (2600, lambda d, n: ["brotli", "-q", "8", "-c", written(d / "in", words(n << 10))]),
    "jq": (150000, lambda d, n: ["jq", "-c", "map(.a + .b) | add", written(d / "in", json.dumps(
        [{"a": i * 7919 % 1000, "b": i % 17, "s": f"x{i % 999}"} for i in range(n)]))]),
    "mawk": (20000, lambda d, n: ["mawk", "{for (i = 1; i <= NF; i++) c[$i]++} END {for (w in c) s += c[w]; print s}",
                                  written(d / "in", words(n << 10))]),
    "objdump": (2200, lambda d, n: ["objdump", "-d", "--start-address=0x800000", f"--stop-address={0x800000 + (n << 10):#x}", cc1()]),
    "diff": (9000, lambda d, n: ["diff", "--minimal", written(d / "a", words(n << 7)), written(d / "b", changed(words(n << 7)))]),
    "flac": (4000000, lambda d, n: ["flac", "-8", "-s", "-c", "--force-raw-format", "--endian=little", "--sign=signed",
                                    "--channels=1", "--bps=16", "--sample-rate=44100", written(d / "in", sound(n))]),
    "tclsh": (1200000, lambda d, n: ["tclsh", written(d / "x.tcl", TCL), str(n)]),
    "xmllint": (120000, lambda d, n: ["xmllint", "--noout", "--xpath", "count(//b[@k mod 7 = 3])", written(d / "in", "<a>" + "".join(
        f'<b k="{i}"><c>t{i % 313}</c></b>' for i in range(n)) + "</a>")]),
}


def quiet(argv):
    return subprocess.run([str(a) for a in argv], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          check=False).returncode


def cpu_seconds(argv):
    before = os.times()
    quiet(argv)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def make(name, seconds, folder):
    """argv of a run of about so many seconds, and how many they are."""
    a_second, argv = PROGRAMS[name]
    units = max(1, round(seconds * a_second))
    for _ in range(6):
        line = argv(folder, units)
        took = cpu_seconds(line)
        if 0.75 < took / seconds < 1.35:
            break
        # The time of some grows faster than their input.
        units = max(1, round(units * min(8, max(0.125, seconds / max(took, 0.004))) ** 0.7))
    return line, took


def curve(db):
    done = subprocess.run([CACHEGRAM, "mrc", str(db), "--format", "csv", "--sizes", "1K..8M"], capture_output=True, text=True,
                          check=False)
    rows = csv.DictReader(io.StringIO(done.stdout)) if done.returncode == 0 else []
    return {int(r["size_bytes"]): [float(r[k]) if r[k] else None for k in ("miss_ratio", "ci_low", "ci_high")] for r in rows}


class Sum:
    """Of several recordings."""

    def __init__(self):
        self.errors, self.missing, self.inside, self.cost, self.times, self.exact = collections.defaultdict(list), [], [], [], [], 0

    def add(self, truth, got, db, times):
        self.times.append(times)
        for size, (ratio, _, _) in truth.items():
            value, low, high = got.get(size, (None, None, None))
            self.missing.append(value is None)
            self.inside.append(low is not None and low - 1e-9 <= ratio <= high + 1e-9)
            for part in LARGE, SMALL:
                if part[0] <= size <= part[1] and value is not None:
                    self.errors[part].append(100 * abs(value - ratio))
        with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as con:
            keys = dict(con.execute("select key, value from run"))
        self.exact += keys["mode"] == "full"
        within = float(keys["burst_cpu_seconds"])  # all of translated code, where there is nothing to compare with
        if "overhead_percent" in keys:
            overhead = float(keys["overhead_percent"])
            within = float(keys["cpu_seconds"]) * overhead / (100 + overhead)
        added = within + float(keys["recorder_cpu_seconds"])
        self.cost.append(added)

    def row(self):
        means = [f"{statistics.mean(self.errors[p]):.2f}" if self.errors[p] else "-" for p in (LARGE, SMALL)]
        return [*means, f"{100 * statistics.mean(self.missing):.0f}%", f"{100 * statistics.mean(self.inside):.0f}%",
                f"{statistics.mean(self.cost):.2f}", f"{statistics.median(self.times):.2f}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", default=",".join(PROGRAMS))
    parser.add_argument("--lengths", default="0.05,0.3,1")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--options", default="--allowance 0;")
    args = parser.parse_args()
    sets = [s.split() for s in args.options.split(";")]
    print("| program | s | options | error 32K-8M | error 1K-16K | no answer | intervals hold | CPU s added | CPU, times native |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |", flush=True)
    totals = collections.defaultdict(list)
    for seconds in map(float, args.lengths.split(",")):
        for name in args.programs.split(","):
            with tempfile.TemporaryDirectory() as d:
                folder = pathlib.Path(d)
                argv, took = make(name, seconds, folder)
                spent = cpu_seconds([*NOT_RANDOM, CACHEGRAM, "record", "--mode", "full", "-o", folder / "full.db", "--", *argv])
                truth = curve(folder / "full.db")
                exact = Sum()
                exact.add(truth, truth, folder / "full.db", spent / took)
                totals[seconds, ("exact",)].append(exact)
                for options in sets:
                    total = Sum()
                    for run in range(args.runs):
                        spent = cpu_seconds([*NOT_RANDOM, CACHEGRAM, "record", *options, "--seed", 100 + run, "-o", folder / "p.db",
                                             "--", *argv])
                        total.add(truth, curve(folder / "p.db"), folder / "p.db", spent / took)
                    totals[seconds, tuple(options)].append(total)
                    print(f"| {name} | {took:.2f} | {' '.join(options) or 'default'} | {' | '.join(total.row())} |", flush=True)
    for (seconds, options), parts in totals.items():
        whole = Sum()
        for part in parts:
            for key, values in part.errors.items():
                whole.errors[key] += values
            for key in "missing", "inside", "cost", "times":
                getattr(whole, key).extend(getattr(part, key))
        print(f"| all | {seconds:g} | {' '.join(options) or 'default'} | {' | '.join(whole.row())} |", flush=True)


if __name__ == "__main__":
    main()
