#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How good the miss ratio over time is: sampled runs against full mode, same programs and inputs.

For each program (scripts/papers_programs.py and phase_programs.py, and tests/targets/phases.c as `phases` and, all phases but one short,
`short-phases`): a run in full mode once (kept in --keep for the next call), then --runs recordings with each set of
options. Printed are, in percentage points, the means over twelve cache sizes, 1 KB to 2 MB, of the CDF error and of the
mean error of the miss ratio at the same share of the run (cachegram verify), and the mean absolute errors of the run's
curve over 32 KB to 8 MB and 1 to 16 KB; how many of its intervals hold the exact value; phases, windows, bursts, the
overhead by the profile's own account, and the CPU time of recorded runs, recorder included, in multiples of a native
run's (median of the runs, each after a native one).

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
import phase_programs  # noqa: E402

# Of scripts/bench-accuracy.py: ten seconds each.
SCALES = {"bzip2": 26, "gzip": 14, "xz": 3, "cc1": 17, "perl": 42, "python3": 15, "sqlite3": 25, "hmmsearch": 42, "gnugo": 4,
          "povray": 27, "sort": 12, "zstd": 20, "cc1plus": 10, "xsltproc": 40, "path_search": 4, "network_flow": 120}
# Where stack and libraries lie decides which variables share lines.
NOT_RANDOM = ["setarch", "-R"]
LARGE, SMALL = (32 << 10, 8 << 20), (1 << 10, 16 << 10)
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
    made_by = phase_programs if name in phase_programs.NAMES else papers_programs
    return [str(a) for a in made_by.programs(max(1, round(scale * SCALES[name])))[name](folder)]


def record(db, options, argv, folder):
    with open(os.devnull, "w", encoding="ascii") as null:
        subprocess.run([*NOT_RANDOM, CACHEGRAM, "record", "-o", db, *options, "--", *argv], cwd=folder, stdin=subprocess.DEVNULL,
                       stdout=null, stderr=null, check=True)


def facts(db):
    with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as con:
        run = dict(con.execute("select key, value from run"))
        windows, found = con.execute("select count(*), count(distinct phase) from time_window").fetchone()
    return run, windows, found


def curve_error(result, low, high):
    errors = [abs(p["estimate"] - p["exact"]) for p in result["points"] if low <= p["size_bytes"] <= high and p["estimate"] is not None]
    return statistics.mean(errors) if errors else 0


def compare(name, args, folder):
    argv = command_line(name, args.scale, folder)
    full = pathlib.Path(args.keep or folder) / f"timeline-{name}-{args.scale:g}.db"
    if not full.exists():
        record(full, ["--mode", "full"], argv, folder)
    for options in args.options.split(";"):
        results = []
        for seed in range(1, args.runs + 1):
            db = folder / "sampled.db"
            native = cpu_seconds(argv, folder)
            before = os.times()
            record(db, [*options.split(), "--seed", str(seed)], argv, folder)
            after = os.times()
            times = after.children_user + after.children_system - before.children_user - before.children_system
            out = subprocess.run([CACHEGRAM, "verify", "--format", "json", db, full], capture_output=True, text=True, check=True)
            results.append({**json.loads(out.stdout), "facts": facts(db), "times": times / native})
        mean = lambda pick: statistics.mean(pick(r) for r in results)  # noqa: E731
        run, windows, found = results[-1]["facts"]
        _, full_windows, full_found = facts(full)
        print(f"{name:12} {options or '(default)':14} {100 * mean(lambda r: r['cdf_error'] or 0):8.2f} "
              f"{100 * mean(lambda r: r['error_at_time'] or 0):8.2f} {100 * mean(lambda r: curve_error(r, *LARGE)):7.3f} "
              f"{100 * mean(lambda r: curve_error(r, *SMALL)):7.3f} {100 * mean(lambda r: r['inside'] / len(r['points'])):4.0f}% "
              f"{found:7}/{full_found:<4} {windows:7}/{full_windows:<5} {run['bursts']:7} {results[-1]['parts']:6} "
              f"{float(run.get('overhead_percent', 0)):8.1f}% {statistics.median(r['times'] for r in results):6.2f}", flush=True)
        yield options, (mean(lambda r: r["cdf_error"] or 0), mean(lambda r: r["error_at_time"] or 0),
                        mean(lambda r: curve_error(r, *LARGE)), mean(lambda r: curve_error(r, *SMALL)))


def cpu_seconds(argv, folder=None):
    with open(os.devnull, "r+b") as null, subprocess.Popen(argv, cwd=folder, stdin=null, stdout=null, stderr=null) as p:
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
        print(f"{'program':12} {'options':14} {'CDF':>8} {'at time':>8} {'32K-8M':>7} {'1K-16K':>7} {'hold':>5} {'phases':>12} "
              f"{'windows':>13} {'bursts':>7} {'parts':>6} {'overhead':>9} {'times':>6}")
        sums = {}
        for program in args.programs.split(","):
            for options, errors in compare(program, args, folder):
                sums.setdefault(options, []).append(errors)
        for options, values in sums.items():
            cdf, at_time, large, small = (100 * statistics.mean(column) for column in zip(*values))
            print(f"{'mean':12} {options or '(default)':14} {cdf:8.2f} {at_time:8.2f} {large:7.3f} {small:7.3f}")


if __name__ == "__main__":
    main()
