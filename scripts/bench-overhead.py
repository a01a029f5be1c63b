#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Whether the overhead that a profile reports is the overhead that there was.

Pairs of a native run and a recorded one follow each other, in random order. Measured is the CPU time (user and system,
all processes) of the recorded run, the recorder's included, over that of the native run of the same pair; reported is
what the profile of the recorded run says: its overhead, and the recorder's on top. Both are printed as the median of
the pairs and the middle half of them. "noise" is the middle half of ratios of neighbouring native runs: what the machine does
by itself to a pair. None of the programs is one of scripts/rounds.sh. The charge for counting code was chosen with a look at those marked
with a star, and at no other. `make` is many short processes; `short` ones run for a tenth of a second or so.

    scripts/bench-overhead.py [--pairs 7] [--programs gnugo,lua] [--overhead 5] [--options "--gap-us 20000"] [--json FILE]
"""
import argparse
import contextlib
import json
import os
import pathlib
import random
import shlex
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

import bench

PERCENT = 100
SEEN = ("gnugo", "x264", "php", "lua")  # when BUDGET_COUNTING_PERCENT was chosen
SEED = 11

LUA = """local n, s, t = tonumber(arg[1]), 0, {}
for i = 1, n do local k = i * 7919 % 60013; t[k] = (t[k] or 0) + i; if i % 7 == 0 then s = s .. "" end end
local keys = {} for k in pairs(t) do keys[#keys + 1] = k end table.sort(keys, function(a, b) return t[a] < t[b] end)
print(#keys, keys[1])
"""
RUBY = """h = Hash.new(0); n = ARGV[0].to_i
n.times { |i| h[(i * 7919 % 60013).to_s] += i }
puts h.sort_by { |k, v| [v % 1000, k] }.first.inspect
"""
NODE = """const n = +process.argv[2], m = new Map(); let s = 0;
for (let i = 0; i < n; i++) { const k = 'k' + i * 7919 % 60013; m.set(k, (m.get(k) || 0) + i);
  if (i % 200000 === 0) s += JSON.stringify([...m].slice(0, 5000)).length; }
console.log(m.size, s);
"""
PHP = """<?php $n = (int)$argv[1]; $h = [];
for ($i = 0; $i < $n; $i++) { $k = 'k' . ($i * 7919 % 60013); $h[$k] = ($h[$k] ?? 0) + $i; }
asort($h); echo count($h), ' ', array_key_first($h), "\\n";
"""
TCL = """set n [lindex $argv 0]
for {set i 0} {$i < $n} {incr i} { set k [expr {$i * 7919 % 60013}]; if {[info exists h($k)]} {incr h($k) $i} else {set h($k) $i} }
puts [llength [lsort -integer [array names h]]]
"""
POSTSCRIPT = """/n %d def 0 1 n { /i exch def i 400 mod i 7 mul 600 mod moveto
 i 13 mul 500 mod i 29 mul 700 mod i 11 mul 400 mod i 3 mul 300 mod i 5 mul 600 mod i 17 mul 800 mod curveto
 i 100 mod 100 div setgray stroke } for showpage
"""


def written(path, text):
    path.write_text(text, encoding="ascii")
    return str(path)


def video(path, frames):
    """Grey blocks that move over noise, 352 x 288."""
    rng = random.Random(SEED)
    noise = rng.randbytes(352 * 288 + 4096)
    with open(path, "wb") as out:
        out.write(b"YUV4MPEG2 W352 H288 F25:1 Ip A1:1 C420jpeg\n")
        for f in range(frames):
            luma = bytearray(noise[f % 4096:f % 4096 + 352 * 288])
            for y in range(60, 180):
                luma[y * 352 + 3 * f % 200:y * 352 + 3 * f % 200 + 100] = bytes(100)
            out.write(b"FRAME\n" + luma + bytes([128]) * (352 * 288 // 2))
    return str(path)


def sound(path, seconds):
    rng = random.Random(SEED)
    samples = bytearray()
    level = 0
    for _ in range(44100):
        level = max(-30000, min(30000, level + rng.randint(-900, 900)))
        samples += level.to_bytes(2, "little", signed=True)
    path.write_bytes(bytes(samples) * seconds)
    return str(path)


def project(folder, files):
    """A C project for make: object files that include nothing, and a program."""
    folder.mkdir(exist_ok=True)
    for i in range(files):
        bench.c_source(folder / f"m{i}.c", 4)
        text = (folder / f"m{i}.c").read_text().replace("int f", f"int m{i}_f")
        (folder / f"m{i}.c").write_text(text)
    (folder / "Makefile").write_text(
        f"OBJECTS = {' '.join(f'm{i}.o' for i in range(files))}\nall: ; $(MAKE) -s clean; $(MAKE) -s lib.a\n"
        "lib.a: $(OBJECTS) ; ar rcs $@ $^\n%.o: %.c ; /usr/bin/gcc -O1 -c -o $@ $<\nclean: ; rm -f *.o lib.a\n")
    return ["make", "-s", "-j2", "-C", str(folder)]


def data(path, size):
    """Part of a library: machine code and tables, hard to compress."""
    source = subprocess.run(["gcc", "-print-prog-name=cc1"], capture_output=True, text=True, check=True).stdout.strip()
    with open(source, "rb") as f:
        f.seek(1 << 20)
        path.write_bytes(f.read(size))
    return str(path)


def moves(path, n):
    return written(path, "genmove black\ngenmove white\n" * n + "quit\n")


# name: the tool that it needs, and what makes its input in a folder and returns its argv. One to five seconds natively.
PROGRAMS = {
    "gnugo": ("/usr/games/gnugo", lambda d: ["/usr/games/gnugo", "--mode", "gtp", "--seed", "5", "--level", "10",
                                             "--gtp-input", moves(d / "moves", 8)]),
    "x264": ("x264", lambda d: ["x264", "--quiet", "--threads", "1", "--preset", "medium", "-o", "/dev/null",
                                video(d / "in.y4m", 240)]),
    "flac": ("flac", lambda d: ["flac", "-s", "-8", "-e", "-p", "-f", "-c", "--force-raw-format", "--endian=little",
                                "--sign=signed", "--channels=2", "--bps=16", "--sample-rate=44100",
                                sound(d / "in.raw", 20)]),
    "brotli": ("brotli", lambda d: ["brotli", "-q", "9", "-c", data(d / "in.bin", 4000000)]),
    "7z": ("7z", lambda d: ["7z", "a", "-mmt1", "-mx5", "-so", "-txz", "x", data(d / "in.bin", 5000000)]),
    "lua": ("lua5.4", lambda d: ["lua5.4", written(d / "x.lua", LUA), "20000000"]),
    "ruby": ("ruby", lambda d: ["ruby", written(d / "x.rb", RUBY), "3000000"]),
    "php": ("php", lambda d: ["php", "-n", written(d / "x.php", PHP), "9000000"]),
    "tcl": ("tclsh", lambda d: ["tclsh", written(d / "x.tcl", TCL), "1000000"]),
    "node": ("node", lambda d: ["node", written(d / "x.js", NODE), "9000000"]),
    "gs": ("gs", lambda d: ["gs", "-q", "-dBATCH", "-dNOPAUSE", "-sDEVICE=png16m", "-r100", "-sOutputFile=/dev/null",
                            written(d / "x.ps", POSTSCRIPT % 15000)]),
    "redis": ("redis-benchmark", lambda d: ["redis-server", "--save", "", "--port", "0", "--unixsocket",
                                            str(d / "socket"), "--dir", str(d)]),
    "make": ("make", lambda d: project(d / "project", 24)),
    "short-lua": ("lua5.4", lambda d: ["lua5.4", written(d / "x.lua", LUA), "900000"]),
    "short-gnugo": ("/usr/games/gnugo", lambda d: ["/usr/games/gnugo", "--mode", "gtp", "--seed", "5", "--level", "1",
                                                   "--gtp-input", moves(d / "moves", 2)]),
}


def redis_client(d):
    """The fixed work of the server, and its end."""
    socket = str(d / "socket")
    for _ in range(500):
        if subprocess.run(["redis-cli", "-s", socket, "ping"], capture_output=True, check=False).returncode == 0:
            break
        time.sleep(0.02)
    subprocess.run(["redis-benchmark", "-s", socket, "-q", "-n", "60000", "-r", "100000", "-P", "8", "-t",
                    "set,get,lpush,lrange_100,zadd"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    subprocess.run(["redis-cli", "-s", socket, "shutdown", "nosave"], capture_output=True, check=False)


CLIENTS = {"redis": redis_client}


def cpu_seconds(argv, folder, client):
    with open(folder / "errors", "wb") as errors, \
            subprocess.Popen(argv, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors) as p:
        if client:
            client(folder)
        _, status, usage = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
    if p.returncode != 0:
        sys.exit(f"bench-overhead.py: status {p.returncode}: {' '.join(argv)}\n"
                 + (folder / "errors").read_text(errors="replace")[-500:])
    return usage.ru_utime + usage.ru_stime


def profile_of(db):
    with contextlib.closing(sqlite3.connect(f"file:{db}?mode=ro", uri=True)) as con:
        run = dict(con.execute("SELECT key, value FROM run"))
        counters = dict(con.execute("SELECT name, sum(value) FROM counter GROUP BY name"))
        processes = con.execute("SELECT count(*) FROM process").fetchone()[0]
    return run, counters, processes


def one_pair(argv, folder, client, prefix, rng):
    native = recorded = None
    for way in rng.sample(("native", "recorded"), 2):
        if way == "native":
            native = cpu_seconds(argv, folder, client)
        else:
            recorded = cpu_seconds(prefix + argv, folder, client)
    run, counters, processes = profile_of(folder / "overhead.db")
    number = lambda key: float(run.get(key, 0) or 0)
    own = number("cpu_seconds") - number("burst_cpu_seconds") - number("watch_cpu_seconds") - number("start_cpu_seconds")
    # Both as a share of what the profile takes for the program's own time.
    reported = (number("cpu_seconds") + number("recorder_cpu_seconds")) / own - 1 if own > 0 else float("nan")
    return {"native": native, "recorded": recorded, "reported": PERCENT * reported,
            "measured": PERCENT * (recorded / native - 1), "bursts": number("bursts"), "processes": processes,
            "recorder": PERCENT * number("recorder_cpu_seconds") / own if own > 0 else 0,
            "run": {k: number(k) for k in ("cpu_seconds", "burst_cpu_seconds", "watch_cpu_seconds", "start_cpu_seconds",
                                           "recorder_cpu_seconds")}, "counters": counters}


def middle(values):
    """The median, and the middle half."""
    if len(values) < 2:
        return f"{values[0]:6.1f}" if values else ""
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return f"{statistics.median(values):6.1f} ({low:.1f} to {high:.1f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--programs", default=",".join(PROGRAMS))
    parser.add_argument("--overhead", default="5")
    parser.add_argument("--options", default="", help="of record, in place of --overhead")
    parser.add_argument("--json", help="write every pair to this file")
    args = parser.parse_args()
    options = shlex.split(args.options) or ["--overhead", args.overhead]
    results, rng, cachegram = {}, random.Random(SEED), bench.find_cachegram()
    print(f"# record {' '.join(options)}; {args.pairs} pairs; median (middle half) in percent; load "
          f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    print("| program | native s | processes | bursts | reported % | of that recorder | measured % | noise % |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |", flush=True)
    for name in args.programs.split(","):
        tool, make = PROGRAMS[name]
        if shutil.which(tool) is None:
            print(f"bench-overhead.py: {tool} is not installed, {name} left out", file=sys.stderr)
            continue
        with tempfile.TemporaryDirectory(prefix="cachegram-overhead-") as where:
            folder = pathlib.Path(where)
            argv, client = make(folder), CLIENTS.get(name)
            prefix = [cachegram, "record", "-o", str(folder / "overhead.db"), "--allowance", "0", *options, "--"]
            cpu_seconds(argv, folder, client)  # reads the files in
            pairs = [one_pair(argv, folder, client, prefix, rng) for _ in range(args.pairs)]
        results[name] = pairs
        native = [p["native"] for p in pairs]
        noise = [PERCENT * (b / a - 1) for a, b in zip(native, native[1:])]
        of = lambda key: [p[key] for p in pairs]
        print(f"| {name}{' *' if name in SEEN else ''} | {statistics.median(native):.2f} | {pairs[-1]['processes']} | "
              f"{statistics.median(of('bursts')):.0f} | {middle(of('reported'))} | {statistics.median(of('recorder')):.1f} | "
              f"{middle(of('measured'))} | {middle(noise)} |", flush=True)
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(results, indent=1) + "\n", encoding="ascii")


if __name__ == "__main__":
    main()
