#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How far curves from bursts and watched survivors are from exact ones, on traces of real programs.

For each trace: the exact curve (`cachegram stack`), then `cachegram sample --bursts` with several numbers of bursts
and several seeds in one pass, then `cachegram mrc` on those profiles as they are and on copies with something taken
away (fewer watches, no watches, no clock). Errors are absolute differences of miss ratios in percentage points.

    scripts/validate-bursts.py [options] TRACE...         make traces: cachegram record --mode full --trace FILE -- CMD

The tables go to stdout; --json FILE keeps every error for later, --from FILE makes tables of such files again.
"""
import argparse
import csv
import io
import json
import os
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
SMALL, LARGE = "1K..16K", "32K..8M"
VARIANTS = {  # name: (watches kept of ten, extra options of sample, what is done to the profile, numbers of bursts)
    "K = 0": (0, [], "", None),
    "K = 2": (2, [], "", None),
    "K = 4": (4, [], "", None),
    "K = 10": (10, [], "", None),
    "K = 4, pooled growth": (4, [], "UPDATE burst SET start_refs = NULL", None),
    "K = 4, some dropped": (4, ["--drop-rate", "0.3"], "", [100]),
    "K = 4, many dropped": (4, ["--drop-rate", "0.7"], "", [100]),
    "K = 4, clock 20% wrong": (4, ["--clock-error", "0.2"], "", [100]),
}


def call(*argv):
    done = subprocess.run([str(a) for a in argv], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"validate-bursts.py: status {done.returncode}: {' '.join(map(str, argv))}")
    return done.stdout


def curve(text):
    """{size: (miss ratio or None, low or None, high or None)}"""
    number = lambda s: float(s) if s else None
    return {int(r["size_bytes"]): (number(r["miss_ratio"]), number(r["ci_low"]), number(r["ci_high"]))
            for r in csv.DictReader(io.StringIO(text))}


def change(source, target, keep, sql):
    """A copy of the profile with the first `keep` watches of each burst (they are in random order)."""
    shutil.copyfile(source, target)
    with sqlite3.connect(target) as db:
        db.execute("CREATE TEMP TABLE first AS SELECT burst, min(id) AS id FROM watch GROUP BY burst")
        db.execute("CREATE INDEX temp.first_burst ON first(burst)")
        db.execute("DELETE FROM watch WHERE watch.id >= ? + (SELECT id FROM first WHERE first.burst = watch.burst)",
                   (keep,))
        if sql:
            db.execute(sql)
        dropped, all_ = db.execute("SELECT total(outcome = 'dropped'), count(*) FROM watch").fetchone()
    return dropped / all_ if all_ else 0


def measure(cachegram, trace, args, folder):
    """Rows of one trace: [program, variant, bursts, seed, size, exact, estimate, low, high]."""
    program = pathlib.Path(trace).stem
    sizes = ["--format", "csv", "--sizes", f"{SMALL},{LARGE}"]
    exact = curve(call(cachegram, "stack", "--jobs", args.jobs, *sizes, trace))
    rows, shares = [], []
    groups = {}
    for name, (_, options, _, counts) in VARIANTS.items():
        if args.only and not any(part in name for part in args.only.split(",")):
            continue
        groups.setdefault((tuple(options), tuple(counts or args.bursts)), []).append(name)
    for (options, counts), names in groups.items():
        base = folder / "p.db"
        call(cachegram, "sample", "--bursts", ",".join(map(str, counts)), "--burst-refs", args.burst_refs, "--watch", 10,
             "--seeds", args.seeds, *options, "-o", base, trace)
        for bursts in counts:
            for seed in range(1, args.seeds + 1):
                made = folder / (f"p-{bursts}-{seed}.db" if len(counts) * args.seeds > 1 else "p.db")
                for name in names:
                    keep, _, sql, _ = VARIANTS[name]
                    dropped = change(made, folder / "c.db", keep, sql)
                    if options:
                        shares.append((name, dropped))
                    got = curve(call(cachegram, "mrc", *sizes, folder / "c.db"))
                    rows += [[program, name, bursts, seed, size, exact[size][0], *got[size]] for size in exact]
                made.unlink()
        print(f"# {program}: {', '.join(names)}", file=sys.stderr, flush=True)
    return rows, shares


def mean(values):
    return sum(values) / len(values)


def cell(rows):
    """mean | 90% | coverage, of rows with an answer; how many have none."""
    errors = sorted(100 * abs(r[6] - r[5]) for r in rows if r[6] is not None)
    covered = [r[7] <= r[5] <= r[8] for r in rows if r[7] is not None]
    none = 100 * mean([r[6] is None for r in rows])
    if not errors:
        return f"no answer; {100 * mean(covered):.0f}% in bounds"
    text = f"{mean(errors):.3f} \\| {errors[int(0.9 * (len(errors) - 1))]:.3f} \\| {100 * mean(covered):.0f}%"
    return text + (f" ({none:.0f}% no answer)" if none >= 0.5 else "")


def tables(rows, shares):
    bursts = sorted({r[2] for r in rows})
    programs = sorted({r[0] for r in rows})
    print(f"{len(programs)} programs ({', '.join(programs)}), {len({r[3] for r in rows})} seeds. "
          "Each cell: mean error | 90% of errors below, in percentage points | share within the band.\n")
    for title, among in (("32 KB to 8 MB", lambda s: s >= 32768), ("1 to 16 KB", lambda s: s < 32768)):
        print(f"| {title} | " + " | ".join(f"B = {b}" for b in bursts) + " |")
        print("| --- |" + " --- |" * len(bursts))
        for name in VARIANTS:
            cells = [[r for r in rows if r[1] == name and r[2] == b and among(r[4])] for b in bursts]
            if any(cells):
                print(f"| {name} | " + " | ".join(cell(c) if c else "" for c in cells) + " |")
        print()
    print("| K = 4, 32 KB to 8 MB | " + " | ".join(f"B = {b}" for b in bursts) + " |")
    print("| --- |" + " --- |" * len(bursts))
    for program in programs:
        cells = [[r for r in rows if r[0] == program and r[1] == "K = 4" and r[2] == b and r[4] >= 32768]
                 for b in bursts]
        if any(cells):
            print(f"| {program} | " + " | ".join(cell(c) if c else "" for c in cells) + " |")
    for name in VARIANTS:
        dropped = [s for other, s in shares if other == name]
        if any(dropped):
            print(f"\n{name}: {100 * mean(dropped):.0f}% of the watches.")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", nargs="*", metavar="TRACE")
    parser.add_argument("--bursts", default="30,100,300,1000")
    parser.add_argument("--burst-refs", default=100000, type=int)
    parser.add_argument("--seeds", default=10, type=int)
    parser.add_argument("--jobs", default=os.cpu_count(), type=int, help="of the exact curve")
    parser.add_argument("--only", help="variants with one of these words in their names, such as dropped,clock")
    parser.add_argument("--folder", help="for profiles while they are needed (some 200 MB)")
    parser.add_argument("--json", help="append to this file, a trace a line")
    parser.add_argument("--from", dest="source", help="no measuring: tables of what --json wrote")
    args = parser.parse_args()
    args.bursts = [int(b) for b in args.bursts.split(",")]
    cachegram = os.environ.get("CACHEGRAM", str(ROOT / "build" / "src" / "cli" / "cachegram"))
    rows, shares = [], []
    if args.source:
        for line in open(args.source):
            one = json.loads(line)
            rows += one["rows"]
            shares += one["shares"]
    with tempfile.TemporaryDirectory(prefix="cachegram-validate-", dir=args.folder) as name:
        for trace in args.traces:
            more, dropped = measure(cachegram, trace, args, pathlib.Path(name))
            rows += more
            shares += dropped
            if args.json:
                with open(args.json, "a") as out:
                    out.write(json.dumps({"rows": more, "shares": dropped}) + "\n")
    if not rows:
        parser.error("no traces")
    tables(rows, shares)


if __name__ == "__main__":
    main()
