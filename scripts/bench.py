#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What profiling costs: CPU time of the profiled run, recorder and all, against a native run beside it.

Each round runs native and every other way of running once, in random order, so that a busy machine hits all
alike; a ratio is taken within a round, and the table shows the median of the rounds' ratios and their range.
CPU time (user + system) is that of all processes together, the recorder's included.

    scripts/bench.py [--rounds 5] [--programs bzip2,perl] [--ways burst,full] [--json FILE]
"""
import argparse
import json
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]


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
    return path


def programs(d):
    """name: argv, each about two to four seconds natively; ways that cost more than 10x get the small one."""
    (d / "x.pl").write_text("my (%h, $s); for my $i (1..$ARGV[0]) { my $k = ($i * 7919) % 10007; $h{\"k$k\"} += $i;"
                            " $s .= chr(97 + $k % 26); } print scalar(keys %h), \"\\n\";\n")
    (d / "x.py").write_text("import sys, json\nn = int(sys.argv[1])\nd = {}\n"
                            "for i in range(n):\n    k = str(i * 7919 % 10007)\n    d[k] = d.get(k, 0) + i\n"
                            "print(len(json.dumps(d)))\n")

    def sql(n):
        path = d / f"x{n}.sql"
        path.write_text("create table t(a integer primary key, b text, c real);\n"
                        f"with recursive n(i) as (select 1 union all select i+1 from n where i < {n})"
                        " insert into t select i, 'row ' || (i * 7919 % 10007), i * 0.5 from n;\n"
                        "create index tb on t(b);\nselect b, sum(c) from t group by b order by 2 desc limit 3;\n"
                        "select count(*) from t x join t y on x.b = y.b where x.a < 20000;\n")
        return ["sqlite3", "-batch", "-init", str(path), ":memory:", ""]

    def c(n):
        path = d / f"x{n}.c"
        path.write_text("unsigned long strlen(const char *);\n" + "".join(
            f"int f{i}(int x, char *p) {{ int s = {i}; for (int j = 0; j < x; j++) {{ s = s * 31 + (p[j] ^ {i});"
            f" if (s & {1 << i % 16}) s += strlen(p); switch (s & 3) {{ case 0: s ^= j; break; case 1: s -= {i};"
            " break; default: p[j] = (char)s; } } return s; }\n" for i in range(n)))
        cc1 = subprocess.run(["gcc", "-print-prog-name=cc1"], capture_output=True, text=True).stdout.strip()
        return [cc1, "-quiet", "-O2", str(path), "-o", "/dev/null"]

    big, small = text(d / "big", 12000000), text(d / "small", 400000)
    return {
        "bzip2": (["bzip2", "-c", str(text(d / "huge", 24000000))], ["bzip2", "-c", str(small)]),
        "xz": (["xz", "-T1", "-3", "-c", str(text(d / "xz", 7000000))], ["xz", "-T1", "-3", "-c", str(small)]),
        "sqlite3": (sql(900000), sql(20000)),
        "python3": (["/usr/bin/python3", str(d / "x.py"), "7000000"], ["/usr/bin/python3", str(d / "x.py"), "200000"]),
        "perl": (["perl", str(d / "x.pl"), "6000000"], ["perl", str(d / "x.pl"), "150000"]),
        "cc1": (c(1100), c(30)),
        "gzip": (["gzip", "-c", str(big)], ["gzip", "-c", str(small)]),
    }


def ways(cachegram, d):
    def record(*options):
        return [cachegram, "record", "-o", str(d / "bench.db"), *options, "--"]

    table = {  # name: (prefix, is the small input enough?)
        "burst": (record(), False),
        "idle": (record("--gap-us", "1000000000"), False),
        "full": (record("--mode", "full"), True),
        "full-no-consume": (record("--mode", "full", "--no-consume"), True),
    }
    if shutil.which("valgrind"):
        table["cachegrind"] = (["valgrind", "--tool=cachegrind", "--cache-sim=yes", "--cachegrind-out-file=/dev/null"],
                               True)
        table["lackey-trace"] = (["valgrind", "--tool=lackey", "--trace-mem=yes", "--log-file=/dev/null"], True)
    return table


def cpu_seconds(argv, d):
    """User and system time of argv and all that it waited for."""
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          cwd=d) as p:
        err = p.stderr.read()
        _, status, usage = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
    if p.returncode != 0:
        sys.stderr.write(f"bench.py: status {p.returncode}: {' '.join(argv)}\n{err.decode(errors='replace')[-500:]}\n")
        return None
    return usage.ru_utime + usage.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="pairs of runs for each figure (default 5)")
    parser.add_argument("--programs", default="bzip2,xz,sqlite3,python3,perl,cc1")
    parser.add_argument("--ways", default="burst,idle,full,full-no-consume,cachegrind,lackey-trace")
    parser.add_argument("--json", help="write every ratio to this file")
    args = parser.parse_args()
    rng = random.Random(1)
    everything = {}
    with tempfile.TemporaryDirectory(prefix="cachegram-bench-") as name:
        d = pathlib.Path(name)
        table = ways(find_cachegram(), d)
        chosen = [w for w in args.ways.split(",") if w in table]
        for missing in sorted(set(args.ways.split(",")) - set(chosen)):
            print(f"# {missing}: not here")
        argvs = programs(d)
        print(f"# CPU time against native, recorder included: median (lowest-highest) of {args.rounds} pairs")
        print(f"{'program':10} {'native s':>9} " + " ".join(f"{w:>21}" for w in chosen), flush=True)
        for program in args.programs.split(","):
            large, small = argvs[program]
            ratios, native = {w: [] for w in chosen}, []
            cpu_seconds(large, d), cpu_seconds(small, d)  # warm the page cache
            for _ in range(args.rounds):
                order = ["large", "small", *chosen]
                rng.shuffle(order)
                seen = {}
                for way in order:
                    if way in ("large", "small"):
                        seen[way] = cpu_seconds(large if way == "large" else small, d)
                    else:
                        prefix, is_small = table[way]
                        seen[way] = cpu_seconds(prefix + (small if is_small else large), d)
                native.append(seen["large"] or float("nan"))
                for way in chosen:
                    base = seen["small" if table[way][1] else "large"]
                    if seen[way] and base:
                        ratios[way].append(seen[way] / base)
            cells = [f"{statistics.median(r):.3f} ({min(r):.3f}-{max(r):.3f})" if r else "failed"
                     for r in ratios.values()]
            print(f"{program:10} {statistics.median(native):9.2f} " + " ".join(f"{c:>21}" for c in cells), flush=True)
            everything[program] = {"native_cpu_seconds": native, "ratios": ratios}
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(everything, indent=1) + "\n")


if __name__ == "__main__":
    main()
