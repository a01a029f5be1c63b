#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""StatStack and StatCache against the exact curve, on real programs: the table of docs/accuracy.md.

Each program runs once in full mode. The same profile holds the exact stack distances and the reuse distances that
the models see, so the difference is the model's own error: nothing is sampled. In percentage points of miss
ratio, model minus exact LRU. (StatCache is a model of random replacement: its difference is the policy's, too.)

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
MODELS = ("statstack", "random")
# Beside the medium inputs of bench.py.
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


def compare(cachegram, argv, db, sizes, cwd):
    """Exact curve, and by model the differences to it in percentage points; None if the program failed."""
    done = subprocess.run([cachegram, "record", "--mode", "full", "-o", str(db), "--", *argv], cwd=cwd,
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    if done.returncode != 0:
        sys.stderr.write(done.stderr.decode(errors="replace")[-300:])
        return None
    exact = curve(cachegram, db, "lru", sizes)
    return exact, {m: [100 * (a - b) for a, b in zip(curve(cachegram, db, m, sizes), exact)] for m in MODELS}


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
            exact, errors = found
            references = float(bench.query(db, "select value from run where key = 'references'")[0][0])
            print(f"| {program} | {references / 1e6:.0f} M | exact, % | "
                  + " | ".join(f"{100 * m:.2f}" for m in exact) + " |")
            for model, label in zip(MODELS, ("StatStack", "StatCache")):
                print(f"| | | {label} | " + " | ".join(f"{e:+.2f}" for e in errors[model]) + " |", flush=True)
                worst[model] = max([worst[model], *map(abs, errors[model])])
    print("\nlargest difference: " + ", ".join(f"{m} {w:.2f}" for m, w in worst.items()))


if __name__ == "__main__":
    main()
