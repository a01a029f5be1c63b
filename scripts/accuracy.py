#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""StatStack and StatCache against the exact curve, on real programs: the table of docs/accuracy-models.md.

Each program runs once in full mode. The same profile holds the exact stack distances and the reuse distances that
the models see, so the difference is the model's own error: nothing is sampled. In percentage points of miss
ratio, model minus exact: StatStack's to the exact LRU curve; StatCache is a model of random replacement, and its
to a simulation of that (`cachegram sim`) on a trace of the same run.

    scripts/accuracy.py [--programs bzip2,perl] [--sizes 32K,64K] [--keep FOLDER]
"""
import argparse
import csv
import io
import os
import pathlib
import subprocess
import sys
import tempfile

import bench

SIZES = "32K,64K,128K,256K,512K,1M,2M,4M,8M"
MODELS = ("statstack", "random")  # as `mrc --model` calls them
LABELS = {"statstack": ("LRU", "StatStack"), "random": ("random", "StatCache")}
# Next to the medium inputs of bench.py.
PROGRAMS = ("bzip2", "xz", "gzip", "sqlite3", "python3", "perl", "cc1", "sort", "awk", "openssl", "tar")


def programs(d):
    argvs = {name: sizes["medium"] for name, sizes in bench.programs(d).items()}
    big = bench.text(d / "text", 3000000)
    argvs["sort"] = ["sort", "--parallel=1", big]
    argvs["awk"] = ["awk", "{ for (i = 1; i <= NF; i++) n[$i]++ } END { for (w in n) print w, n[w] }", big]
    argvs["openssl"] = ["openssl", "dgst", "-sha256", big]
    argvs["tar"] = ["tar", "-cf", "-", "/usr/include/linux"]
    return argvs


def curve(cachegram, db, model, sizes):
    """Miss ratios at the sizes."""
    out = subprocess.run([cachegram, "mrc", "--format", "csv", "--sizes", sizes, "--model", model, str(db)],
                         capture_output=True, text=True, check=True).stdout
    return [float(row["miss_ratio"]) for row in csv.DictReader(io.StringIO(out))]


def simulate_random(cachegram, trace, sizes):
    """Miss ratios of fully associative caches with random replacement."""
    caches = ",".join(f"L1:{size}:full:random" for size in sizes.split(","))
    out = subprocess.run([cachegram, "sim", "--format", "csv", "--cache", caches, str(trace)],
                         capture_output=True, text=True, check=True).stdout
    return [float(row["miss_ratio"]) for row in csv.DictReader(io.StringIO(out))]


def compare(cachegram, argv, db, sizes, cwd):
    """By model the exact curve and the differences to it in percentage points; None if the program failed."""
    trace = pathlib.Path(cwd) / "trace"
    done = subprocess.run([cachegram, "record", "--mode", "full", "-o", str(db), "--trace", str(trace), "--", *argv],
                          cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          check=False)
    if done.returncode != 0:
        sys.stderr.write(done.stderr.decode(errors="replace")[-300:])
        return None
    exact = {"statstack": curve(cachegram, db, "lru", sizes), "random": simulate_random(cachegram, trace, sizes)}
    trace.unlink()
    return {m: (exact[m], [100 * (a - b) for a, b in zip(curve(cachegram, db, m, sizes), exact[m])]) for m in MODELS}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", default=",".join(PROGRAMS))
    parser.add_argument("--sizes", default=SIZES)
    parser.add_argument("--keep", help="folder for the profiles")
    args = parser.parse_args()
    cachegram = bench.find_cachegram()
    worst = {m: 0.0 for m in MODELS}
    with tempfile.TemporaryDirectory(prefix="cachegram-accuracy-") as name:
        d = pathlib.Path(name)
        argvs = programs(d)
        keep = pathlib.Path(args.keep) if args.keep else d
        os.makedirs(keep, exist_ok=True)
        print(f"| program | references | | {' | '.join(args.sizes.split(','))} |")
        print(f"| --- | --- | --- |{' --- |' * len(args.sizes.split(','))}")
        for program in args.programs.split(","):
            db = keep / f"{program}.db"
            found = compare(cachegram, argvs[program], db, args.sizes, d)
            if found is None:
                print(f"| {program} | failed |", flush=True)
                continue
            references = float(bench.query(db, "select value from run where key = 'references'")[0][0])
            head = f"| {program} | {references / 1e6:.0f} M |"
            for model, (policy, name) in LABELS.items():
                exact, errors = found[model]
                print(f"{head} {policy}, % | " + " | ".join(f"{100 * m:.2f}" for m in exact) + " |")
                head = "| | |"
                print(f"{head} {name} | " + " | ".join(f"{e:+.2f}" for e in errors) + " |", flush=True)
                worst[model] = max([worst[model], *map(abs, errors)])
    print("\nlargest difference: " + ", ".join(f"{LABELS[m][1]} {w:.2f}" for m, w in worst.items()))


if __name__ == "__main__":
    main()
