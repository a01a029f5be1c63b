#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The figures of docs/pirate.md: the simulated Pirate, knees of micro programs on this machine, what a run costs,
whole runs against one run.

usage: bench-pirate.py [--build FOLDER] [--only simulated,knees,overhead,ways] [--rounds N] [--realtime]

Other programs at work show as dropped intervals and wide bands. --realtime (as root) gives the measured programs and
the Pirate real-time priority, so that others stand still for the seconds that each measurement takes.
"""
import argparse
import contextlib
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
APART = "bench-pirate: the CPUs do not share their last-level cache: the host has put them on different ones; try later"
INPUT_BYTES = 24 * MB
PYTHON = ("import sys\nn = {}\nfor line in open(sys.argv[1], 'rb'):\n for i in range(0, len(line), 4):\n"
          "  w = line[i:i + 4]\n  n[w] = n.get(w, 0) + 1\nprint(len(n))")
SQL = ("create table t(a, b, c); insert into t with recursive n(i) as (select 1 union all select i + 1 from n where "
       "i < 1500000) select i, i * 7919 % 1500007, hex(i * 104729) from n; create index x on t(b); create index y on t(c); "
       "select count(*), sum(length(u.c)) from t join t u on t.a = u.b where t.c < u.c;")
# A last level to reckon with that the Pirate can hold most of; sizes that leave all of it but a quarter of a megabyte.
LLC = "8M"
LITTLE = ",".join(f"{8 * 1024 - 16 * (i + 1)}K" for i in range(16))


def programs(folder):
    """Some seconds each."""
    data = folder / "input"
    return {"bzip2": ["bzip2", "-c", data], "xz": ["xz", "-T1", "-1", "-c", data],
            "perl": ["perl", "-ne", "$n{$_}++ for unpack '(A2)*', $_; END { print scalar(keys %n) }", data, data],
            "python3": ["/usr/bin/python3", "-c", PYTHON, data], "sqlite3": ["sqlite3", ":memory:", SQL]}


class Priority:
    """Real-time priorities, where asked for: the tool's own thread above its Pirate and its program, which never rest."""

    def __init__(self, wanted):
        self.wanted = wanted

    def run(self, argv, on_cpu=None, **how):
        """As subprocess.run, standard output thrown away; the exit status and what was on standard error."""
        def lift():
            if on_cpu is not None:
                os.sched_setaffinity(0, {on_cpu})
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


def pirate(tool, folder, options, argv, priority, tries=TRIES):
    """The results of one measurement, as its json has them. None: the CPUs do not share their cache, time and again."""
    results = folder / "results.json"
    for i in range(tries):
        if i > 0:
            time.sleep(5)  # until the host has moved its guests' CPUs
        status, errors = priority.run([tool, "pirate", "--results", results, "--format", "json", "-o", folder / "p.db",
                                       *options, "--", *argv])
        if status == 0:
            return json.loads(results.read_text())
        if "do not share" not in errors:
            sys.exit(f"bench-pirate: {errors}")
    return None


def pirate_at_work(tool, folder, options, argv, priority):
    """One measurement of which only the effort counts: no size is given up, as the Pirate need not hold it.

    Nor need the CPUs share their cache, but then that is not tried before each interval either, which takes some tens
    of microseconds.
    """
    return (pirate(tool, folder, ["--limit", "99.9", *options], argv, priority, tries=1) or
            pirate(tool, folder, ["--limit", "100", *options], argv, priority))


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


def shares(reported):
    good = sum(r["intervals"] for r in reported["pirate"])
    dropped = sum(r["dropped"] for r in reported["pirate"])
    return good / (good + dropped) if good + dropped else 0


def knees(tool, folder, micro, priority):
    """Slowdown by available size, for sets of known sizes."""
    for kind, steps, sets in (("random", 600000000, (4, 6, 8)), ("chained", 120000000, (6,)),
                              ("sequential", 2500000000, (8,))):
        for mb in sets:
            reported = pirate(tool, folder, ["--progress", "progress", "--interval-ms", "10", "--threads", "1"],
                          [micro, kind, mb * MB, steps], priority)
            if not reported:
                sys.exit(APART)
            print(f"{kind}, {mb} MB: {reported['llc_bytes'] / MB:.1f} MB to share, {percent(shares(reported))} of the intervals valid")
            print("  available MB  " + " ".join(f"{r['available_bytes'] / MB:6.1f}" for r in reported["pirate"]))
            print("  ns a step     " + " ".join(f"{r['ns_per_unit']:6.2f}" if r["valid"] else "     -"
                                                for r in reported["pirate"]))
            print("  +-            " + " ".join(f"{(r['ns_high'] - r['ns_low']) / 2:6.2f}" if r["valid"] else "      "
                                                for r in reported["pirate"]), flush=True)


def make_input(path):
    """Shared libraries, one after the other: something to compress."""
    with open(path, "wb") as f:
        for library in sorted(pathlib.Path("/usr/lib").rglob("*.so*")):
            if library.is_file() and not library.is_symlink():
                f.write(library.read_bytes())
            if f.tell() > INPUT_BYTES:
                break
        f.truncate(INPUT_BYTES)


@contextlib.contextmanager
def neighbour(micro, priority):
    """At real-time priority, the Pirate keeps others off its CPU; without it, this does, with 4 KB of the cache."""
    if not priority.wanted:
        yield
        return

    def settle():
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    with subprocess.Popen([micro, "sequential", "4096", "0"], stdout=subprocess.DEVNULL, preexec_fn=settle) as p:
        yield
        p.kill()


def alone(argv, micro, priority):
    """CPU and wall seconds of one run on the CPU that a measured program gets."""
    with neighbour(micro, priority):
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        priority.run(argv, on_cpu=min(os.sched_getaffinity(0)))
        wall, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


def overhead(tool, folder, micro, rounds, priority):
    """What measuring costs beyond the cache that it takes away.

    The program loses the time in which it is held, and, where the Pirate has the only other core, that in which the
    measuring process runs: each profile tells both. Whether there is more to it (caches that these leave cold, the
    bandwidth of the Pirate) is tried in pairs: CPU time of a run whose sixteen sizes all leave nearly everything, and
    of the program alone; other work and the host's other guests are in that, too.
    """
    make_input(folder / "input")
    print("Sixteen sizes in one run, beyond what the stolen cache itself costs: medians [least, most]")
    print("  program     alone  sizes     held  cachegram  overhead                   CPU time, next to nothing stolen")
    for name, argv in programs(folder).items():
        full, little, seconds = [], [], []
        for _ in range(rounds):
            cpu, wall = alone(argv, micro, priority)
            seconds.append(wall)
            reported = pirate_at_work(tool, folder, ["--progress", "io", "--llc", LLC, "--sizes", LITTLE], argv, priority)
            little.append(reported["cpu_seconds"] / cpu - 1)
            reported = pirate_at_work(tool, folder, ["--progress", "io", "--llc", LLC], argv, priority)
            measured = sum(r["intervals"] + r["dropped"] > 0 for r in reported["pirate"])
            full.append((measured, reported["stopped_percent"] / 100, reported["own_percent"] / 100,
                         (reported["stopped_percent"] + reported["own_percent"]) / 100))
        sizes, held, own, total = map(statistics.median, zip(*full))
        print(f"  {name:8} {statistics.median(seconds):6.2f} s {sizes:6.0f} {percent(held, 2):>8} {percent(own, 2):>10} "
              f"{percent(total, 2):>9}  {ends(row[3] for row in full):>16} {percent(statistics.median(little)):>7}  "
              f"{ends(little)}", flush=True)


def ends(values):
    values = list(values)
    return f"[{percent(min(values))}, {percent(max(values))}]"


def ways(tool, folder, micro, priority):
    """One program measured by whole runs and in one run: slower than with all of it, by size."""
    make_input(folder / "input")
    for title, progress, short, long in (
            ("micro random, 4 MB", "progress", [micro, "random", 4 * MB, 200000000], [micro, "random", 4 * MB, 2000000000]),
            ("bzip2", "io", *2 * [["bzip2", "-c", folder / "input"]])):
        options = ["--llc", LLC, "--sizes", "1M,2M,3M,4M,5M,6M,7M,8M"]
        reported = {"whole runs": pirate(tool, folder, [*options, "--repeats", "3"], short, priority),
                "one run": pirate(tool, folder, [*options, "--progress", progress], long, priority)}
        if None in reported.values():
            sys.exit(APART)
        print(f"{title}: slower than with {LLC} of the last level")
        print("  available MB  " + " ".join(f"{r['available_bytes'] / MB:7.1f}" for r in reported["one run"]["pirate"]))
        for way, result in reported.items():
            print(f"  {way:12}  " + " ".join(f"{percent(r['slowdown'] and r['slowdown'] - 1):>7}" for r in result["pirate"]))
            print("  +-            " + " ".join(
                f"{percent((r['ns_high'] - r['ns_low']) / 2 / r['ns_per_unit']) if r['valid'] and r['ns_high'] else '':>7}"
                for r in result["pirate"]) + f"   {percent(shares(result))} valid", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--only", default="simulated,knees,overhead,ways")
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
            elif part == "overhead":
                overhead(tool, folder, micro, args.rounds, priority)
            elif part == "ways":
                ways(tool, folder, micro, priority)
            else:
                sys.exit(f"bench-pirate: --only {part}: there are simulated, knees, overhead, ways")


if __name__ == "__main__":
    main()
