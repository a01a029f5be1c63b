#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What counting costs: time of programs whose references are all counted (--clock count-always), and the native time
estimated from it, against the true one.

usage: bench-count.py [PROGRAM...]

For each program, the median of three runs by their ratio: user time natively (mean of a run before and one after), in
counting code, their ratio, blocks per nanosecond, turns (returns and indirect branches) per block, and estimate /
true native time with the constants of src/collect/tunables.h. At the end the spread of the last one, as a standard
deviation of its logarithm.

Environment: CACHEGRAM (the command; default build/src/cli/cachegram).
"""
import json
import math
import os
import pathlib
import re
import resource
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
CACHEGRAM = os.environ.get("CACHEGRAM") or str(ROOT / "build" / "src" / "cli" / "cachegram")
QUIET = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def tunable(name):
    text = (ROOT / "src" / "collect" / "tunables.h").read_text()
    return float(re.search(rf"#define {name} ([\d.]+)", text).group(1))


def written(path, text):
    path.write_text(text)
    return path


def programs(folder):
    text = "".join(path.read_text(errors="replace") for path in sorted((ROOT / "src").rglob("*.c")))
    (folder / "text").write_text((text * (1 + 8_000_000 // len(text)))[:8_000_000])
    file = str(folder / "text")
    return {
        "gzip": ["gzip", "-9c", file],
        "bzip2": ["bzip2", "-9kc", file],
        "xz": ["xz", "-1kc", file],
        "sort": ["sort", file],
        "sed": ["sed", "s/[aeiou]\\+/X/g", file],
        "awk": ["awk", "{c[$1]++} END{for(k in c) n+=c[k]; print n}", file],
        "perl-map": ["perl", "-e", "@a=map{($_*7919)%1000003}1..600000;print $a[5]"],
        "perl-sort": ["perl", "-e", "@a=map{($_*7919)%1000003}1..600000;@b=sort{$a<=>$b}@a;print $b[5]"],
        "python3-loop": ["/usr/bin/python3", "-c", "sum(i*i%7 for i in range(3000000))"],
        "python3-dict": ["/usr/bin/python3", "-c", "d={}\nfor i in range(1200000): d[i*7919%400009]=i\nprint(sum(d.values()))"],
        "lua": ["lua5.4", "-e", "local t={} for i=1,3000000 do t[i*7919%100003]=i end print(#t)"],
        "ruby": ["ruby", "-e", "h={};600000.times{|i|h[i*7919%100003]=i};puts h.size"],
        "jq": ["jq", "-n", "reduce range(200000) as $i ({};.[($i%1000)|tostring]=$i)|length"],
        "jq-group": ["jq", "-n", "[range(150000) | {k: (. * 7919 % 1009), v: .}] | group_by(.k) | map(map(.v) | add) | length"],
        "perl-words": ["perl", str(ROOT / "scripts" / "words.pl"), file],
        "php": ["php", "-r", "$h = []; for ($i = 0; $i < 3000000; $i++) { $k = 'k' . ($i * 7919 % 20011); $h[$k] = ($h[$k] ?? 0) + strlen($k); }"
                " ksort($h); echo count($h);"],
        "tclsh": ["tclsh", str(written(folder / "x.tcl", "for {set i 0} {$i < 600000} {incr i} {incr h([expr {$i * 7919 % 10007}]) $i}\n"
                                       "puts [array size h]\n"))],
        "sqlite3": ["sqlite3", ":memory:",
                    "create table t(a,b); insert into t with recursive c(i) as (select 1 union all select i+1 from c"
                    " where i<400000) select i, i*7919%1000 from c; select sum(a) from t group by b%10;"],
    }


def user_seconds(argv):
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run(argv, check=True, **QUIET)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def counted(argv, db):
    """Counters of a run that is counted throughout."""
    subprocess.run([CACHEGRAM, "record", "--allowance", "0", "--gap-us", "2000000", "--watch", "none", "--clock",
                    "count-always", "-o", db, "--", *argv], check=True, **QUIET)
    with sqlite3.connect(db) as con:
        return dict(con.execute("select name, sum(value) from counter group by name"))


def measured(argv, db):
    """Native seconds, counters, and nanoseconds in counting code."""
    before, count, after = user_seconds(argv), counted(argv, db), user_seconds(argv)
    return (before + after) / 2, count, count["count_cpu_ns"] - count.get("translate_ns", 0)


def cycle_ns():
    machine = subprocess.run([CACHEGRAM, "machine", "--format", "json", "--largest", "4M"], check=True, capture_output=True)
    return 1e9 / json.loads(machine.stdout)["clock_hz"]


def main():
    if "--help" in sys.argv:
        print(__doc__)
        return
    cycle = cycle_ns()
    block, turn = tunable("COLLECT_COUNT_BLOCK_CYCLES") * cycle, tunable("COLLECT_COUNT_TURN_TIMES")
    least = tunable("COLLECT_COUNT_NATIVE_CYCLES") * cycle
    errors = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        chosen = programs(folder)
        print(f"{'program':<14}{'native s':>9}{'counted':>9}{'ratio':>7}{'blocks/ns':>11}{'turns/block':>13}{'estimate':>10}")
        for key in sys.argv[1:] or chosen:
            argv = chosen[key]
            if not shutil.which(argv[0]):
                print(f"{key:<14}not installed")
                continue
            native, count, ns = sorted((measured(argv, folder / "p.db") for _ in range(3)), key=lambda m: m[2] / m[0])[1]
            blocks, turns = count["count_blocks"], count["count_turns"]
            estimate = max((ns - block * blocks) / (1 + turn * min(turns / blocks, 1)), least * blocks) / (native * 1e9)
            errors.append(math.log(estimate))
            print(f"{key:<14}{native:9.3f}{ns / 1e9:9.3f}{ns / 1e9 / native:7.2f}{blocks / native / 1e9:11.2f}"
                  f"{turns / blocks:13.2f}{estimate:10.2f}", flush=True)
    if len(errors) > 1:
        print(f"spread {statistics.pstdev(errors):.2f}, mean {math.exp(statistics.mean(errors)):.2f}")


if __name__ == "__main__":
    main()
