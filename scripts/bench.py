#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What profiling costs: CPU time of a profiled run against a native run next to it, and next to Valgrind's.

In each round a native run and every way of profiling follow each other in random order, so that a busy machine
hits all alike. A ratio is taken within a round; reported are the median of the rounds and their range. CPU time (user and
system) is that of all processes together, the recorder's included. Costly ways get smaller inputs, with native
runs of their own: `idle`, `burst` and `program` the large one, `none`, `counts` and `full` the medium one, Valgrind's
tools the small one (and lackey one round).

    idle        the agent is loaded and never triggered
    burst       bursts of 100,000 references each 50 ms of CPU time
    program     of the same runs, the profiled program alone, without the recorder
    none        every reference recorded, buffers drained and thrown away
    counts      every reference recorded and counted
    full        every reference recorded, the exact curve by stack distances (record --mode full)
    cachegrind  valgrind --tool=cachegrind --cache-sim=yes
    lackey      valgrind --tool=lackey --trace-mem=yes, the trace thrown away

A second table has nanoseconds for each reference: of the native run, and of recording it, warm: the thread's CPU time
in bursts in which no code was translated, with a recorder that only counts.

    scripts/bench.py [--rounds 5] [--programs bzip2,perl] [--ways burst,full] [--json FILE]
"""
import argparse
import contextlib
import json
import os
import pathlib
import random
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
PROGRAMS = ("bzip2", "xz", "sqlite3", "python3", "perl", "cc1")
# size: rounds as a share of --rounds, ways
SIZES = {
    "large": (1.0, ("idle", "burst")),
    "medium": (0.6, ("none", "counts", "full")),
    "small": (0.6, ("cachegrind",)),
    "tiny": (0.0, ("lackey",)),
}
WAYS = ("idle", "burst", "program", "none", "counts", "full", "cachegrind", "lackey")


def find_cachegram():
    named = os.environ.get("CACHEGRAM")
    path = pathlib.Path(named) if named else ROOT / "build" / "src" / "cli" / "cachegram"
    if not path.exists():
        sys.exit(f"bench.py: {path} does not exist: build first, or name the command in CACHEGRAM")
    return str(path.resolve())


def text(path, size):
    rng = random.Random(7)
    words = ["".join(rng.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(rng.randint(2, 9))) for _ in range(3000)]
    out = "".join(" ".join(rng.choices(words, k=12)) + "\n" for _ in range(size // 60))
    path.write_text(out[:size])
    return str(path)


def sql(path, n):
    path.write_text("create table t(a integer primary key, b text, c real);\n"
                    f"with recursive n(i) as (select 1 union all select i+1 from n where i < {n})"
                    " insert into t select i, 'row ' || (i * 7919 % 10007), i * 0.5 from n;\n"
                    "create index tb on t(b);\nselect b, sum(c) from t group by b order by 2 desc limit 3;\n"
                    "select count(*) from t x join t y on x.b = y.b where x.a < 20000;\n")
    return str(path)


def c_source(path, n):
    """No headers, since a bare cc1 may not find them."""
    path.write_text("unsigned long strlen(const char *);\n" + "".join(
        f"int f{i}(int x, char *p) {{ int s = {i}; for (int j = 0; j < x; j++) {{ s = s * 31 + (p[j] ^ {i});"
        f" if (s & {1 << i % 16}) s += strlen(p); switch (s & 3) {{ case 0: s ^= j; break; case 1: s -= {i};"
        " break; default: p[j] = (char)s; } } return s; }\n" for i in range(n)))
    return str(path)


def programs(d):
    """name: size: argv. Natively one to two seconds, a quarter, some hundredths, some thousandths of one."""
    (d / "x.pl").write_text("my (%h, $s); for my $i (1..$ARGV[0]) { my $k = ($i * 7919) % 10007; $h{\"k$k\"} += $i;"
                            " $s .= chr(97 + $k % 26); } print scalar(keys %h), \"\\n\";\n")
    (d / "x.py").write_text("import sys, json\nn = int(sys.argv[1])\nd = {}\n"
                            "for i in range(n):\n    k = str(i * 7919 % 10007)\n    d[k] = d.get(k, 0) + i\n"
                            "print(len(json.dumps(d)))\n")
    cc1 = subprocess.run(["gcc", "-print-prog-name=cc1"], capture_output=True, text=True, check=False).stdout.strip()

    def four(make, *scales):
        return dict(zip(SIZES, (make(n) for n in scales)))

    return {
        "bzip2": four(lambda n: ["bzip2", "-c", text(d / f"bzip2-{n}", n)], 24000000, 4000000, 400000, 100000),
        "xz": four(lambda n: ["xz", "-T1", "-3", "-c", text(d / f"xz-{n}", n)], 2500000, 900000, 200000, 60000),
        "sqlite3": four(lambda n: ["sqlite3", "-batch", "-init", sql(d / f"x{n}.sql", n), ":memory:", ""],
                        900000, 120000, 20000, 3000),
        "python3": four(lambda n: ["/usr/bin/python3", str(d / "x.py"), str(n)], 7000000, 1000000, 100000, 1000),
        "perl": four(lambda n: ["perl", str(d / "x.pl"), str(n)], 7000000, 1200000, 100000, 20000),
        "cc1": four(lambda n: [cc1, "-quiet", "-O2", c_source(d / f"x{n}.c", n), "-o", "/dev/null"], 250, 30, 5, 1),
        "gzip": four(lambda n: ["gzip", "-c", text(d / f"gzip-{n}", n)], 12000000, 2000000, 300000, 80000),
    }


def prefixes(cachegram, db):
    def record(*options):
        return [cachegram, "record", "-o", db, "--allowance", "0", *options, "--"]

    table = {
        "native": [],
        "idle": record("--gap-us", "3600000000"),
        "burst": record("--burst-refs", "100000", "--gap-us", "50000"),
        "none": record("--mode", "full", "--reduce", "none"),
        "counts": record("--mode", "full", "--reduce", "counts"),
        "full": record("--mode", "full"),
        "warm": record("--burst-refs", "100000", "--gap-us", "10000", "--reduce", "counts"),
    }
    if shutil.which("valgrind"):
        table["cachegrind"] = ["valgrind", "--tool=cachegrind", "--cache-sim=yes", "--cachegrind-out-file=/dev/null"]
        table["lackey"] = ["valgrind", "--tool=lackey", "--trace-mem=yes", "--log-file=/dev/null"]
    return table


def cpu_seconds(argv, d):
    """User and system time of argv and all that it waited for; None if it failed."""
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          cwd=d) as p:
        err = p.stderr.read()
        _, status, usage = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
    if p.returncode != 0:
        sys.stderr.write(f"bench.py: status {p.returncode}: {' '.join(argv)}\n{err.decode(errors='replace')[-500:]}\n")
        return None
    return usage.ru_utime + usage.ru_stime


def query(db, sql_text):
    with contextlib.closing(sqlite3.connect(f"file:{db}?mode=ro", uri=True)) as con:
        return con.execute(sql_text).fetchall()


def measure(argvs, chosen, prefix, rounds, d, rng):
    """way: its ratios; and the native seconds by size."""
    ratios, native = {way: [] for way in chosen}, {}
    for size, (share, ways) in SIZES.items():
        ways = [way for way in ways if way in chosen or (way == "burst" and "program" in chosen)]
        if not ways:
            continue
        native[size] = []
        cpu_seconds(argvs[size], d)  # warms the page cache
        for _ in range(max(1, round(rounds * share))):
            order, seen, alone = ["native", *ways], {}, None
            rng.shuffle(order)
            for way in order:
                seen[way] = cpu_seconds(prefix[way] + argvs[size], d)
                if way == "burst" and seen[way]:
                    alone = float(query(d / "bench.db", "select value from run where key = 'cpu_seconds'")[0][0])
            if not seen["native"]:
                continue
            native[size].append(seen["native"])
            for way, seconds in [*seen.items(), ("program", alone)]:
                if way in ratios and seconds:
                    ratios[way].append(seconds / seen["native"])
    return ratios, native


def nanoseconds(argvs, prefix, rounds, d):
    """Nanoseconds a reference, natively and recording; how many bursts that is from."""
    db = d / "bench.db"
    if not cpu_seconds(prefix["counts"] + argvs["medium"], d):
        return None
    references = float(query(db, "select value from run where key = 'references'")[0][0])
    native = [cpu_seconds(argvs["medium"], d) for _ in range(rounds)]
    if not cpu_seconds(prefix["warm"] + argvs["large"], d) or None in native or not references:
        return None
    warm = [ns / refs for ns, refs in query(db, "select cpu_end_ns - cpu_start_ns, refs from burst"
                                            " where new_blocks = 0 and end_code = 1 and cpu_end_ns > cpu_start_ns")]
    return {"native": statistics.median(native) / references * 1e9, "bursts": len(warm),
            "recording": statistics.median(warm) if warm else None}


def ratio(value):
    return f"{value:.{3 if value < 2 else 2 if value < 10 else 1 if value < 100 else 0}f}"


def span(values):
    return f"{ratio(statistics.median(values))} ({ratio(min(values))}-{ratio(max(values))})" if values else "failed"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="pairs of runs for each figure (default 5)")
    parser.add_argument("--programs", default=",".join(PROGRAMS), help="of these and gzip")
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--json", help="write every ratio to this file")
    args = parser.parse_args()
    rng, results = random.Random(1), {}
    with tempfile.TemporaryDirectory(prefix="cachegram-bench-") as name:
        d = pathlib.Path(name)
        prefix, argvs = prefixes(find_cachegram(), str(d / "bench.db")), programs(d)
        chosen = [w for w in args.ways.split(",") if w in prefix or w == "program"]
        for missing in sorted(set(args.ways.split(",")) - set(chosen)):
            print(f"# {missing}: not here")
        print(f"# CPU time against native: median (lowest-highest) of {args.rounds} pairs, fewer for costly ways")
        print(f"{'program':10} {'native s':>8} " + " ".join(f"{w:>19}" for w in chosen), flush=True)
        for program in args.programs.split(","):
            ratios, native = measure(argvs[program], chosen, prefix, args.rounds, d, rng)
            first = next(iter(native.values()), [])
            print(f"{program:10} {statistics.median(first) if first else 0:8.2f} "
                  + " ".join(f"{span(ratios[w]):>19}" for w in chosen), flush=True)
            results[program] = {"native_cpu_seconds": native, "ratios": ratios}
        for label, pick in (("median", statistics.median), ("worst", max)):
            medians = [[statistics.median(r["ratios"][w]) for r in results.values() if r["ratios"][w]] for w in chosen]
            print(f"{label:10} {'':8} " + " ".join(f"{ratio(pick(m)) if m else '':>19}" for m in medians))

        print("\n# nanoseconds a reference: native (medium input), recording warm in bursts (large input)")
        for program in args.programs.split(","):
            ns = results[program]["nanoseconds"] = nanoseconds(argvs[program], prefix, args.rounds, d)
            reported = f"{ns['native']:8.2f} {ns['recording']:8.2f}  ({ns['bursts']} bursts)" \
                if ns and ns["recording"] else "failed"
            print(f"{program:10} {reported}", flush=True)
        warm = [r["nanoseconds"]["recording"] for r in results.values() if r["nanoseconds"] and
                r["nanoseconds"]["recording"]]
        if warm:
            print(f"{'median':10} {'':8} {statistics.median(warm):8.2f}")
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
