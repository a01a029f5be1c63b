#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What traces cost: bytes a reference in the file, CPU time a reference to write, to read, to get stack distances.

Records real programs in full mode, then reads what was recorded; each timing is the median of the rounds. "write"
is the CPU time of the recorder with the trace but without distances. A synthetic trace of 4 million distinct lines, at random,
shows the worst that stack distances can be. Prints a table for docs/trace-format.md.

    scripts/bench-traces.py [--rounds 3] [--programs bzip2,perl]
"""
import argparse
import json
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
CACHEGRAM = os.environ.get("CACHEGRAM", str(ROOT / "build" / "src" / "cli" / "cachegram"))
READ_ONLY = ROOT / "build" / "tests" / "bench_trace"


def cpu_seconds(argv):
    """Output and CPU time of a command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = subprocess.run([str(a) for a in argv], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if result.returncode != 0:
        sys.exit(f"bench-traces.py: {argv[0]} failed: {result.stderr.decode()}")
    return result, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def programs(folder):
    data = folder / "data"
    data.write_bytes(pathlib.Path("/usr/bin/perl").read_bytes()[:1500000])
    source = folder / "x.c"
    source.write_text("unsigned long strlen(const char *);\n" + "".join(
        f"int f{i}(const char *s, int n) {{ int t = 0; for (int i = 0; i < n; i++) t += s[i % (int)strlen(s)] * {i}; "
        "return t; }\n" for i in range(60)))
    cc1 = subprocess.run(["gcc", "-print-prog-name=cc1"], capture_output=True, text=True, check=False).stdout.strip()
    sql = ("create table t(a integer primary key, b text); with recursive n(i) as (select 1 union all select i+1 from n "
           "where i < 40000) insert into t select i, 'row ' || (i * 7919 % 10007) from n; create index tb on t(b); "
           "select count(*) from t x join t y on x.b = y.b where x.a < 5000;")
    python = "import json\nd = {str(i * 7919 % 10007): [i] * 3 for i in range(60000)}\nprint(len(json.dumps(d)))"
    perl = "my %h; $h{($_ * 7919) % 10007} .= chr(97 + $_ % 26) for 1 .. 400000; print scalar(keys %h)"
    return {"bzip2": ["bzip2", "-c", data], "xz": ["xz", "-1", "-c", data], "sqlite3": ["sqlite3", ":memory:", sql],
            "python3": ["/usr/bin/python3", "-c", python], "perl": ["perl", "-e", perl],
            "cc1": [cc1, "-quiet", "-O2", source, "-o", "/dev/null"]}


def stack(trace, rounds, *options):
    """JSON of `stack` with one computing thread, and its CPU seconds."""
    times = []
    for _ in range(rounds):
        result, seconds = cpu_seconds([CACHEGRAM, "stack", "--jobs", "1", "--format", "json", *options, trace])
        times.append(seconds)
    return json.loads(result.stdout), statistics.median(times)


def row(name, trace, write_seconds, rounds):
    answer, stack_seconds = stack(trace, rounds)
    refs, lines = answer["references"], answer["stacks"][0]["lines"]
    read = statistics.median(float(cpu_seconds([READ_ONLY, trace])[0].stdout) for _ in range(rounds))
    write = f"{write_seconds / refs * 1e9:.1f}" if write_seconds else "-"
    per_line = answer["memory_bytes"] / lines
    print(f"| {name} | {refs / 1e6:.0f} M | {lines} | {os.path.getsize(trace) / refs:.3f} | {write} | {read:.1f} | "
          f"{stack_seconds / refs * 1e9:.1f} | {refs / stack_seconds / 1e6:.0f} | {per_line:.0f} |", flush=True)


def synthetic(path, lines, references):
    """Random lines, through import: no program is so bad."""
    with subprocess.Popen([CACHEGRAM, "import", "--from", "din", "-o", path, "-"], stdin=subprocess.PIPE,
                          stderr=subprocess.DEVNULL) as p:
        script = (f"BEGIN {{ for (i = 0; i < {lines}; i++) printf \"0 %x\\n\", i * 64; "
                  f"for (i = 0; i < {references - lines}; i++) printf \"0 %x\\n\", int(rand() * {lines}) * 64 }}")
        subprocess.run(["awk", script], stdout=p.stdin, check=True)
        p.stdin.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--programs", default="bzip2,xz,sqlite3,python3,perl,cc1")
    arguments = parser.parse_args()
    print("| program | references | lines | bytes/ref | write ns/ref | read ns/ref | stack ns/ref | stack M/s | stack bytes/line |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="cachegram-bench-"))
    try:
        known = programs(folder)
        for name in arguments.programs.split(","):
            if shutil.which(str(known[name][0])) is None:
                continue
            trace = folder / "t.trace"
            # Its own CPU time over the program's is in the summary; here we want it alone: with trace minus without.
            record = [CACHEGRAM, "record", "--mode", "full", "--reduce", "none", "-o", folder / "p.db"]
            write = []
            for _ in range(arguments.rounds):
                _, without = cpu_seconds([*record, "--", *known[name]])
                _, with_trace = cpu_seconds([*record, "--trace", trace, "--", *known[name]])
                write.append(with_trace - without)
            row(name, trace, statistics.median(write), arguments.rounds)
        for lines, references in ((100000, 10000000), (4000000, 20000000)):
            synthetic(folder / "t.trace", lines, references)
            row(f"{lines} random lines", folder / "t.trace", None, 1)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
