#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How good the miss ratio over time is: sampled runs against full mode, same programs and inputs.

For each program (scripts/papers_programs.py, and tests/targets/phases.c as `phases` and, all phases but one short,
`short-phases`): a run in full mode once (kept in --keep for the next call), then --runs recordings with each set of
options. Told are the mean over twelve cache sizes, 1 KB to 2 MB, of the CDF error and of the mean error of the miss ratio
at the same share of the run (cachegram verify), in percentage points; phases, windows, bursts, and the overhead by the
profile's own account.

With --ticks: what samples of code cost. A native run of tests/targets/phases.c, and one that is recorded at a gap of a
second, so that there are ticks but hardly any bursts, follow each other; the median of the ratios of the program's CPU
times. That includes the agent's start and two or three bursts.

    scripts/bench-timeline.py [--programs bzip2,perl] [--scale 0.2] [--runs 1] [--options "--allowance 0;"] [--keep FOLDER]
    scripts/bench-timeline.py --ticks [--pairs 15]

--options: sets, separated by semicolons; an empty one is the default.
"""
import argparse
import json
import os
import pathlib
import sqlite3
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
CACHEGRAM = os.environ.get("CACHEGRAM", str(ROOT / "build" / "src" / "cli" / "cachegram"))
sys.path.insert(0, str(ROOT / "scripts"))
import papers_programs  # noqa: E402

# Of scripts/bench-accuracy.py: ten seconds each.
SCALES = {"bzip2": 26, "gzip": 14, "xz": 3, "cc1": 17, "perl": 42, "python3": 15, "sqlite3": 25, "hmmsearch": 42, "gnugo": 4,
          "povray": 27, "sort": 12, "zstd": 20}
# Where stack and libraries lie decides which variables share lines.
NOT_RANDOM = ["setarch", "-R"]
PHASES_LOADS = 1000  # millions, of each phase, in ten seconds
SHORTER = 25  # phases other than A, in short-phases


def phases(folder):
    program = folder / "phases"
    subprocess.run(["gcc", "-O2", "-o", program, ROOT / "tests" / "targets" / "phases.c"], check=True)
    return program


def command_line(name, scale, folder):
    if name == "phases":
        return [str(phases(folder)), str(max(1, round(scale * PHASES_LOADS / 8)))]
    if name == "short-phases":
        return [str(phases(folder)), str(max(1, round(scale * PHASES_LOADS / 4))), str(SHORTER)]
    return [str(a) for a in papers_programs.programs(max(1, round(scale * SCALES[name])))[name](folder)]


def record(db, options, argv, folder):
    with open(os.devnull, "w", encoding="ascii") as null:
        subprocess.run([*NOT_RANDOM, CACHEGRAM, "record", "-o", db, *options, "--", *argv], cwd=folder, stdin=subprocess.DEVNULL,
                       stdout=null, stderr=null, check=True)


def facts(db):
    with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as con:
        run = dict(con.execute("select key, value from run"))
        windows, found = con.execute("select count(*), count(distinct phase) from time_window").fetchone()
    return run, windows, found


def compare(name, args, folder):
    argv = command_line(name, args.scale, folder)
    full = pathlib.Path(args.keep or folder) / f"timeline-{name}-{args.scale:g}.db"
    if not full.exists():
        record(full, ["--mode", "full"], argv, folder)
    for options in args.options.split(";"):
        results = []
        for seed in range(1, args.runs + 1):
            db = folder / "sampled.db"
            record(db, [*options.split(), "--seed", str(seed)], argv, folder)
            out = subprocess.run([CACHEGRAM, "verify", "--format", "json", db, full], capture_output=True, text=True, check=True)
            results.append({**json.loads(out.stdout), "facts": facts(db)})
        mean = lambda pick: statistics.mean(pick(r) for r in results)  # noqa: E731
        run, windows, found = results[-1]["facts"]
        _, full_windows, full_found = facts(full)
        print(f"{name:10} {options or '(default)':24} {100 * mean(lambda r: r['cdf_error'] or 0):8.2f} "
              f"{100 * mean(lambda r: r['error_at_time'] or 0):8.2f} {found:7}/{full_found:<4} {windows:7}/{full_windows:<5} "
              f"{run['bursts']:7} {results[-1]['parts']:6} {float(run.get('overhead_percent', 0)):8.1f}%", flush=True)
        yield options, mean(lambda r: r["cdf_error"] or 0), mean(lambda r: r["error_at_time"] or 0)


def cpu_seconds(argv):
    with open(os.devnull, "r+b") as null, subprocess.Popen(argv, stdin=null, stdout=null, stderr=null) as p:
        _, status, usage = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime


def ticks(args, folder):
    argv, db = [str(phases(folder)), "100"], folder / "ticks.db"
    ratios, counted = [], 0
    for _ in range(args.pairs):
        native = cpu_seconds(argv)
        record(db, ["--gap-us", "1000000", "--clock", "cputime", "--allowance", "0"], argv, folder)
        with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as con:
            counted, = con.execute("select sum(value) from counter where name = 'ticks'").fetchone()
            ratios.append(float(con.execute("select value from run where key = 'cpu_seconds'").fetchone()[0]) / native)
    ratios.sort()
    print(f"{counted} ticks in {native:.2f} s; CPU time with / without: median {statistics.median(ratios):.4f}, middle half "
          f"{ratios[len(ratios) // 4]:.4f} to {ratios[3 * len(ratios) // 4]:.4f}, {len(ratios)} pairs")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", default="phases,bzip2,cc1,perl,python3,sqlite3,povray,xz")
    parser.add_argument("--scale", type=float, default=0.2, help="of ten seconds")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--options", default="")
    parser.add_argument("--keep", help="folder for the profiles of full mode")
    parser.add_argument("--ticks", action="store_true")
    parser.add_argument("--pairs", type=int, default=15)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cachegram-bench-") as name:
        folder = pathlib.Path(name)
        if args.ticks:
            ticks(args, folder)
            return
        print("# errors in percentage points; phases and windows: sampled/full")
        print(f"{'program':10} {'options':24} {'CDF':>8} {'at time':>8} {'phases':>12} {'windows':>13} {'bursts':>7} {'parts':>6} "
              f"{'overhead':>9}")
        sums = {}
        for program in args.programs.split(","):
            for options, cdf, at_time in compare(program, args, folder):
                sums.setdefault(options, []).append((cdf, at_time))
        for options, values in sums.items():
            print(f"{'mean':10} {options or '(default)':24} {100 * statistics.mean(v[0] for v in values):8.2f} "
                  f"{100 * statistics.mean(v[1] for v in values):8.2f}")


if __name__ == "__main__":
    main()
