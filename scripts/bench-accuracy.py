#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a budget buys: curves of burst mode against exact ones of full mode, same programs and inputs.

For each program (scripts/papers_programs.py, inputs of ten seconds): the exact curve once, by record --mode full
(some 35 times the native time; kept in --keep for the next call), then burst mode with each budget and way of
watching, --runs times with different seeds. Told are, for 32 KB to 8 MB and 1 to 16 KB in steps of half a power of two,
the mean absolute difference of miss ratios, in percentage points, of the sizes that the estimate answers, for the former also
what nine of ten are below, and the largest;
how many it does not ("not enough samples"); how many of all bands hold the exact value; bursts, watched lines; the CPU
time of bursts, watching and recorder in percent of the program's own, as the profile has it; and the rate of references
in CPU time over the run that the bursts' weights come from, as a share of the true one. With --native also the CPU time of
both processes against a native run right before, in pairs.

With --rounds S other programs: those of scripts/rounds.sh, which do the same work over and over, for S seconds each. The exact
curve is that of the start and as many rounds, from two runs of a few: what the longer one has more is what rounds are.

    scripts/bench-accuracy.py [--programs perl,xz] [--overhead 1,5] [--watch page,none] [--runs 1] [--scale 1]
                              [--rounds SECONDS] [--keep FOLDER] [--native] [--plot FILE.svg]
"""
import argparse
import contextlib
import csv
import io
import os
import pathlib
import sqlite3
import statistics
import subprocess
import sys

import bench
import budget_plot
import papers_programs
import untuned_programs

# Ten to thirteen seconds each, natively, on the machine of docs/accuracy.md.
SCALES = {"bzip2": 26, "gzip": 14, "xz": 3, "cc1": 17, "perl": 42, "python3": 15, "sqlite3": 25, "hmmsearch": 42, "gnugo": 4,
          "povray": 27, "sort": 12, "zstd": 20}
# tests/bench/bench_kinds.c, three to seven seconds each there: --programs cold,stream,heap,churn,threads
UNTUNED = {name: 1 for name in untuned_programs.NAMES}  # --programs lua,ruby,php
KINDS = {"cold": 200, "stream": 60, "heap": 300, "churn": 300, "threads": 100}
SIZES = "1K..64M"
# Where stack and libraries lie decides which variables share lines: at 1 KB that is up to a point and a half from run to run.
NOT_RANDOM = ["setarch", "-R"]
ROUNDS = bench.ROOT / "scripts" / "rounds.sh"
FEW_ROUNDS, MORE_ROUNDS = 2, 8  # of which the exact curve of many is made
LARGE, SMALL = (32 << 10, 8 << 20), (1 << 10, 16 << 10)


def command_line(name, factor, folder):
    scale = max(1, round(factor * {**SCALES, **UNTUNED, **KINDS}[name]))
    if name in KINDS:
        return [str(bench.ROOT / "build" / "tests" / "bench_kinds"), name, str(scale)]
    make = {**papers_programs.programs(scale), **untuned_programs.programs(scale)}[name]
    return [str(a) for a in make(folder)]


def cpu_seconds(argv, folder):
    with subprocess.Popen(argv, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as p:
        _, status, usage = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
    if p.returncode != 0:
        sys.exit(f"bench-accuracy.py: status {p.returncode}: {' '.join(argv)}")
    return usage.ru_utime + usage.ru_stime


def curve(text):
    number = lambda s: float(s) if s else None
    return {int(r["size_bytes"]): tuple(number(r.get(k)) for k in ("miss_ratio", "ci_low", "ci_high"))
            for r in csv.DictReader(io.StringIO(text))}


def mrc(cachegram, db):
    return subprocess.run([cachegram, "mrc", db, "--sizes", SIZES, "--format", "csv"], capture_output=True, text=True,
                          check=True).stdout


def rounds_names():
    return subprocess.run([ROUNDS, "programs"], capture_output=True, text=True, check=True).stdout.split()


def rounds_command(name, n, where):
    return subprocess.run([ROUNDS, "command", name, str(n)], cwd=where, capture_output=True, text=True,
                          check=True).stdout.split("\0")[:-1]


def make_case(name, options, cachegram):
    """What is recorded, in which folder it runs, which other is its own, its exact curve, and how many references it makes.
    None: not installed."""
    if options.rounds:
        where = pathlib.Path(options.keep) / "rounds"
        folder = where / name
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run([ROUNDS, "inputs"], cwd=where, check=True)
        few, more = rounds_command(name, FEW_ROUNDS, where), rounds_command(name, MORE_ROUNDS, where)
        n = round(options.rounds * MORE_ROUNDS / cpu_seconds(more, where)) + 1
        return (rounds_command(name, n, where), where, folder,
                *of_many_rounds(exact_curve(cachegram, few, where, folder, "-few"),
                                exact_curve(cachegram, more, where, folder), n))
    if name not in KINDS and not papers_programs.here(name, {**papers_programs.TOOLS, **untuned_programs.TOOLS}):
        print(f"bench-accuracy.py: {name} is not installed, left out", file=sys.stderr)
        return None
    folder = pathlib.Path(options.keep) / name
    folder.mkdir(parents=True, exist_ok=True)
    argv = command_line(name, options.scale, folder)
    return argv, folder, folder, *exact_curve(cachegram, argv, folder, folder)


def exact_curve(cachegram, argv, where, folder, which=""):
    """The curve, and the number of references."""
    kept, db = folder / f"exact{which}.csv", folder / f"full{which}.db"
    if not kept.exists() or not db.exists():
        cpu_seconds([*NOT_RANDOM, cachegram, "record", "-o", str(db), "--mode", "full", "--", *argv], where)
        kept.write_text(mrc(cachegram, str(db)))
    return curve(kept.read_text()), float(query(db, "SELECT value FROM run WHERE key = 'references'")[0][0])


def of_many_rounds(few, more, n):
    """Curve and references of n rounds: of the few, and what each further one adds."""
    times = (n - FEW_ROUNDS) / (MORE_ROUNDS - FEW_ROUNDS)
    references = few[1] + times * (more[1] - few[1])
    misses = {s: max(0, few[0][s][0] * few[1] * (1 - times) + more[0][s][0] * more[1] * times) for s in more[0]}
    return {s: (m / references, None, None) for s, m in misses.items()}, references


def query(db, text):
    with contextlib.closing(sqlite3.connect(f"file:{db}?mode=ro", uri=True)) as con:
        return con.execute(text).fetchall()


def rate_of_bursts(db, references, own):
    """Rate of references of the run according to the bursts, which are placed by CPU time, divided by the true rate."""
    rows = query(db, "SELECT gap_ns * 1.0, coalesce(near_per_ns, refs_per_ns) * (1 + coalesce(string_hits, 0))"
                     " FROM burst WHERE coalesce(near_per_ns, refs_per_ns) IS NOT NULL")
    return sum(w * rate for w, rate in rows) / sum(w for w, _ in rows) / (references / own / 1e9) if rows else None


def one_run(cachegram, case, options, native):
    argv, where, folder, exact, references = case
    db = str(folder / "burst.db")
    before = cpu_seconds([*NOT_RANDOM, *argv], where) if native else None
    spent = cpu_seconds([*NOT_RANDOM, cachegram, "record", "-o", db, "--allowance", "0", *options, "--", *argv], where)
    run = dict(query(db, "SELECT key, value FROM run"))
    seconds = {k: float(run.get(f"{k}_cpu_seconds", 0)) for k in ("burst", "watch", "recorder")}
    own = float(run["cpu_seconds"]) - seconds["burst"] - seconds["watch"]
    estimate = curve(mrc(cachegram, db)) if int(float(run["bursts"])) else {}
    errors = {s: 100 * abs(estimate[s][0] - exact[s][0]) for s in exact
              if s in estimate and estimate[s][0] is not None}
    large = [e for s, e in errors.items() if LARGE[0] <= s <= LARGE[1]]
    small = [e for s, e in errors.items() if SMALL[0] <= s <= SMALL[1]]
    return {"large": statistics.mean(large) if large else None, "most": max(large, default=None), "points": large,
            "small": statistics.mean(small) if small else None, "silent": len(exact) - len(errors), "sizes": len(exact),
            "held": sum(estimate[s][1] <= exact[s][0] <= estimate[s][2] for s in exact if s in estimate),
            "bursts": int(float(run["bursts"])), "watches": query(db, "SELECT count(*) FROM watch")[0][0],
            **{k: 100 * v / own for k, v in seconds.items()}, "rate": rate_of_bursts(db, references, own),
            "added": 100 * (spent / before - 1) if native else None}


def cell(value, digits=2):
    return "-" if value is None else f"{value:.{digits}f}"


def mean(runs, key):
    values = [r[key] for r in runs if r[key] is not None]
    return statistics.mean(values) if values else None


def percentile(runs):
    """What nine of ten errors over 32 KB to 8 MB are below; None: there are none."""
    errors = sorted(e for r in runs for e in r["points"])
    return errors[int(0.9 * (len(errors) - 1))] if errors else None


def row(name, runs, native):
    cells = [name, cell(mean(runs, "bursts"), 0), cell(mean(runs, "watches"), 0), cell(mean(runs, "burst")),
             cell(mean(runs, "watch")), cell(mean(runs, "recorder")), cell(mean(runs, "rate"))]
    if native:
        cells.append(cell(statistics.median(r["added"] for r in runs), 1))
    held = 100 * sum(r["held"] for r in runs) / sum(r["sizes"] for r in runs)
    cells += [cell(mean(runs, "large"), 3), cell(percentile(runs), 2), cell(max((r["most"] for r in runs if r["most"] is not None), default=None)),
              cell(mean(runs, "small"), 3), cell(mean(runs, "silent"), 0), f"{held:.0f}%"]
    print("| " + " | ".join(cells) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs")
    parser.add_argument("--rounds", type=float, metavar="SECONDS", help="programs that repeat themselves, for so long")
    parser.add_argument("--overhead", default="5")
    parser.add_argument("--watch", default="page")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--scale", type=float, default=1, help="times the input")
    parser.add_argument("--keep", default="/tmp/cachegram-accuracy")
    parser.add_argument("--native", action="store_true")
    parser.add_argument("--plot", type=pathlib.Path, help="mean error against budget, of the last way of watching")
    options = parser.parse_args()
    cachegram = bench.find_cachegram()
    names = options.programs.split(",") if options.programs else rounds_names() if options.rounds else papers_programs.NAMES
    cases = {name: case for name in names if (case := make_case(name, options, cachegram))}
    series = {"32 KB to 8 MB": [], "1 KB to 16 KB": []}
    for overhead in options.overhead.split(","):
        for watch in options.watch.split(","):
            print(f"\n--overhead {overhead} --watch {watch}\n\n| | bursts | watched | bursts % | watching % | recorder % | rate |"
                  + (" added % |" if options.native else "")
                  + " error 32K-8M | 90% below | largest | error 1K-16K | no answer | bands hold |")
            print("| --- |" + " --- |" * (13 if options.native else 12))
            every = []
            for name, case in cases.items():
                runs = [one_run(cachegram, case, ["--overhead", overhead, "--watch", watch, "--seed", str(seed)], options.native)
                        for seed in range(1, options.runs + 1)]
                every += runs
                row(name, runs, options.native)
            row("all", every, options.native)
        for key, points in zip(("large", "small"), series.values()):
            points.append((float(overhead), mean(every, key)))
    if options.plot:
        options.plot.write_text(budget_plot.draw(series))


if __name__ == "__main__":
    main()
