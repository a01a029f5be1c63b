# SPDX-License-Identifier: Apache-2.0
"""`cachegram sim`: against Valgrind's cachegrind to the last miss, closed forms, threads and traces on cores,
samples, the three formats, bad input, interrupts.

Cachegrind and lackey run the same program in turn, with the same environment and addresses, and see the same
references; lackey's listing becomes a trace in which instruction fetches are another thread's loads, since
cachegrind's last level serves both. Without --vex-iropt-level=0 Valgrind's optimiser drops loads whose result
is not used, not the same ones under each tool: 4 of 1.3 million in the perl case.
"""
import csv
import io
import json
import re
import signal
import subprocess
import unicodedata

import pytest

from conftest import ROOT, need, run
from test_harmless import text

ONE = "L1:4K:4:lru"


def sim(cachegram, *args, status=0, **how):
    result = run([cachegram, "sim", *args], **how)
    assert result.status == status, result.err
    return result


def rows(cachegram, *args, **how):
    return list(csv.DictReader(io.StringIO(sim(cachegram, *args, "--format", "csv", **how).out.decode())))


def write_trace(path, references):
    """references: (address, size, 'l' or 's', tid)."""
    path.write_text("address,size,rw,tid\n" + "".join(f"{a},{s},{rw},{t}\n" for a, s, rw, t in references))
    return path


# --- cachegrind ---

PROGRAMS = {
    "gzip": lambda d: [need("gzip"), "-c", text(d / "in", 8000)],
    "perl": lambda d: [need("perl"), "-e", "$h{$_ * 7919 % 1009} += $_ for 1..300; print scalar(%h), qq(\\n)"],
}
# I1 = D1 and LL: size, ways, line.
GEOMETRIES = [((32768, 8, 64), (262144, 16, 64)), ((8192, 1, 32), (65536, 4, 32)), ((2048, 2, 128), (16384, 8, 128))]


def valgrind(tool, argv, log, options=()):
    command = [need("setarch"), "-R", need("valgrind"), f"--tool={tool}", f"--log-file={log}", "--vex-iropt-level=0",
               *options, *argv]
    # The environment is on the program's stack: it must be the same under both tools.
    result = run(command, env={"PATH": "/usr/bin:/bin", "LC_ALL": "C", "PERL_HASH_SEED": "0"}, timeout=200)
    assert result.status == 0, result.err[-300:]


def lackey_to_csv(log, out):
    pc = "0x0"
    out.write("address,size,rw,pc,tid\n")
    for line in log:
        kind = line[:3]
        if kind not in ("I  ", " L ", " S ", " M "):
            continue
        address, size = line[3:].strip().split(",")
        if kind == "I  ":
            pc = "0x" + address
            out.write(f"{pc},{size},l,{pc},1\n")
        else:
            for rw in {" L ": "l", " S ": "s", " M ": "ls"}[kind]:
                out.write(f"0x{address},{size},{rw},{pc},2\n")


@pytest.mark.parametrize("program", PROGRAMS)
def test_equal_to_cachegrind(cachegram, tmp_path, program):
    argv = PROGRAMS[program](tmp_path)
    valgrind("lackey", argv, tmp_path / "lackey.log", ["--trace-mem=yes", "--basic-counts=no"])
    with open(tmp_path / "lackey.log", errors="replace") as log, open(tmp_path / "trace.csv", "w") as out:
        lackey_to_csv(log, out)
    for n, (l1, ll) in enumerate(GEOMETRIES):
        comma = [",".join(map(str, cache)) for cache in (l1, ll)]
        spec = f"L1:{l1[0]}:{l1[1]}:lru,L2:{ll[0]}:{ll[1]}:lru:shared"
        out = tmp_path / f"cachegrind.{n}"
        valgrind("cachegrind", argv, tmp_path / "cachegrind.log",
                 ["--cache-sim=yes", f"--I1={comma[0]}", f"--D1={comma[0]}", f"--LL={comma[1]}",
                  f"--cachegrind-out-file={out}"])
        found = out.read_text()
        events = re.search(r"^events: (.*)$", found, re.M)[1].split()
        want = dict(zip(events, map(int, re.search(r"^summary: (.*)$", found, re.M)[1].split())))
        got = {(r["level"], r["core"]): {k: int(r[k]) for k in ("accesses", "misses", "stores", "store_misses")}
               for r in rows(cachegram, tmp_path / "trace.csv", "--like", "cachegrind", "--line", l1[2],
                             "--cache", spec)}
        fetches, data, ll_fetches, ll_data = (got[key] for key in (("L1", "0"), ("L1", "1"), ("L2", "0"), ("L2", "1")))
        assert fetches["accesses"] == want["Ir"] > 100000
        assert fetches["misses"] == want["I1mr"] > 0
        assert ll_fetches["misses"] == want["ILmr"] > 0
        assert data["stores"] == want["Dw"]
        assert data["accesses"] == want["Dr"] + want["Dw"]
        assert data["store_misses"] == want["D1mw"] > 0
        assert data["misses"] == want["D1mr"] + want["D1mw"]
        assert ll_data["store_misses"] == want["DLmw"] > 0
        assert ll_data["misses"] == want["DLmr"] + want["DLmw"]


# --- known answers ---

def test_cyclic_and_several_hierarchies(cachegram, tmp_path):
    """Round and round over 65 lines: LRU of 64 lines misses always, of 128 only at first."""
    trace = write_trace(tmp_path / "t.csv", [(64 * (i % 65), 8, "l", 1) for i in range(6500)])
    got = rows(cachegram, trace, "--causes", "--cache", "L1:4K:full", "L1:8K:full:fifo,L2:16K:8", "--cache", "L1:4K:1",
               "--seed", 1)
    assert [(r["config"], r["level"], int(r["misses"])) for r in got] == [
        ("1", "L1", 6500), ("2", "L1", 65), ("2", "L2", 65), ("3", "L1", 65 + 2 * 99)]
    assert [int(got[0][c + "_misses"]) for c in ("cold", "capacity", "conflict")] == [65, 6435, 0]
    # Direct mapped, lines 0 and 64 push each other out; a fully associative cache would have missed too.
    assert [int(got[3][c + "_misses"]) for c in ("cold", "capacity", "conflict")] == [65, 198, 0]
    assert got[0]["ways"] == "64" and got[0]["miss_ratio"] == "1"


def test_fully_associative_lru_is_the_stack_curve(cachegram, tmp_path):
    """Two simulators that share no code: misses at each size, and by stack distances."""
    trace = write_trace(tmp_path / "t.csv", [(64 * (i * i * i % 29 * (i % 11) + i // 50 % 9), 8, "l", 1) for i in range(30000)])
    sizes = [2 ** k * 64 for k in range(9)]
    curve = run([cachegram, "stack", trace, "--sizes", ",".join(map(str, sizes)), "--format", "csv"]).out.decode()
    want = [float(r["miss_ratio"]) for r in csv.DictReader(io.StringIO(curve))]
    got = rows(cachegram, trace, "--cache", ",".join(f"L1:{size}:full" for size in sizes))
    assert [int(r["misses"]) for r in got] == [round(m * 30000) for m in want]
    assert len(set(want)) > 5


def test_straddling_reference_is_two_accesses_or_one(cachegram, tmp_path):
    trace = write_trace(tmp_path / "t.csv", [(60, 8, "l", 1), (60, 8, "s", 1), (0, 8, "l", 1)])
    both = rows(cachegram, trace, "--cache", ONE)[0]
    assert (both["accesses"], both["misses"], both["stores"]) == ("5", "2", "2")
    one = rows(cachegram, trace, "--cache", ONE, "--like", "cachegrind")[0]
    assert (one["accesses"], one["misses"], one["stores"]) == ("2", "1", "0")  # load and store: a modify


def test_threads_on_cores_take_lines_from_each_other(cachegram, tmp_path):
    trace = write_trace(tmp_path / "t.csv", [(128, 8, "s", 10 + i % 2) for i in range(1000)])
    apart = rows(cachegram, trace, "--causes", "--cache", f"{ONE},L2:64K:8:inclusive:shared")
    assert [(r["level"], r["core"], r["misses"], r["coherence_misses"]) for r in apart] == [
        ("L1", "0", "500", "499"), ("L1", "1", "500", "499"), ("L2", "0", "1", "0"), ("L2", "1", "0", "0")]
    together = rows(cachegram, trace, "--cores", 1, "--cache", ONE)
    assert [(r["core"], r["misses"]) for r in together] == [("0", "1")]


def test_traces_have_memory_of_their_own_and_take_turns(cachegram, tmp_path):
    a = write_trace(tmp_path / "a.csv", [(64 * (i % 40), 8, "l", 1) for i in range(4000)])
    alone = rows(cachegram, a, "--cache", "L1:4K:full:lru:shared")
    assert alone[0]["misses"] == "40"
    both = rows(cachegram, a, a, "--cache", "L1:4K:full:lru:shared")
    assert [(r["core"], r["accesses"], r["misses"]) for r in both] == [("0", "4000", "4000"), ("1", "4000", "4000")]


def test_samples(cachegram, tmp_path):
    trace = write_trace(tmp_path / "t.csv", [((i * i * 31 + i // 7) % 9973 * 8, 4, "l", 1) for i in range(60000)])
    whole = float(rows(cachegram, trace, "--cache", ONE)[0]["miss_ratio"])
    time = rows(cachegram, trace, "--cache", ONE, "--time-sample", "1K:5e3", "--seed", 3)[0]
    assert int(time["accesses"]) == 12000 and int(time["unknown"]) == 12 * 64
    assert float(time["ci_low"]) <= whole <= float(time["ci_high"])
    assert float(time["miss_ratio"]) == pytest.approx((int(time["misses"]) + 12 * 32) / 12000)
    sets = rows(cachegram, trace, "--cache", ONE, "--sets", "1/4")[0]
    assert 0 < int(sets["accesses"]) < 30000
    assert 0 < float(sets["ci_low"]) < float(sets["miss_ratio"]) < float(sets["ci_high"])
    assert sets["ci_low"] == rows(cachegram, trace, "--cache", ONE, "--sets", "0.25")[0]["ci_low"]
    # Two of eight sets are the fewest, a 32nd of 64 sets.
    both = ["--cache", "L1:4K:8", "L1:32K:8", "--sets", "1/32"]
    assert [float(row["simulated_share"]) for row in rows(cachegram, trace, *both)] == [1 / 4, 1 / 32]
    shown = sim(cachegram, trace, *both).out.decode()
    assert re.findall("Hierarchy (.)\nsimulated: (.*)% of the sets", shown) == [("1", "25"), ("2", "3.12")]


def test_bursts_as_samples(cachegram, tmp_path):
    """Two bursts that touch the same 8 lines: nothing is known at the second one's start either."""
    rows_of = "".join(f"{64 * (i % 8)},8,{int(i in (0, 100))}\n" for i in range(200))
    (tmp_path / "t.csv").write_text("address,size,burst\n" + rows_of)
    got = rows(cachegram, tmp_path / "t.csv", "--cache", ONE, "--time-sample", "bursts")[0]
    assert (got["accesses"], got["misses"], got["unknown"]) == ("200", "0", "16")
    assert got["ci_low"] == "0" and float(got["miss_ratio"]) == 8 / 200
    whole = write_trace(tmp_path / "whole.csv", [(64 * i, 8, "l", 1) for i in range(8)])
    refused = sim(cachegram, whole, "--cache", ONE, "--time-sample", "bursts", status=1)
    assert refused.err.endswith(b"whole.csv holds no bursts: give --time-sample LENGTH:PERIOD\n") and not refused.out


# --- policies ---

def test_policies_are_listed(cachegram, tmp_path):
    """Each file policy-NAME.c is a policy that can be used and that the message, --help and the man page name."""
    policies = {path.stem.removeprefix("policy-") for path in (ROOT / "src" / "sim").glob("policy-*.c")}
    trace = write_trace(tmp_path / "t.csv", [(0, 8, "l", 1)])
    wrong = sim(cachegram, trace, "--cache", "L1:4K:4:none", status=2).err.decode()
    assert set(re.search(r"not a policy \(([^)]*)\)", wrong)[1].split(", ")) == policies
    usage = sim(cachegram, "--help").out.decode()
    assert set(re.split(r",\s+", re.search(r"Policies: ([^.]*)\.", usage)[1])) == policies
    man = (ROOT / "man" / "cachegram-sim.1.in").read_text()
    assert set(re.search(r"^\.It Cm (lru .*)$", man, re.M)[1].split(" | ")) == policies
    for policy in policies:
        assert rows(cachegram, trace, "--cache", f"L1:4K:4:{policy}")[0]["policy"] == policy


# --- output, bad input ---

def test_formats(cachegram, tmp_path):
    trace = write_trace(tmp_path / "t.csv", [(64 * i, 8, "ls"[i % 2], 1) for i in range(500)])
    args = [trace, "--cache", "L1:4K:4:plru,L2:1M:full:nehalem:inclusive:shared", "--causes"]
    out = sim(cachegram, *args, "--format", "csv").out.decode()
    assert out.startswith("level,core,size_bytes,ways,policy,accesses,misses,miss_ratio,evictions,writebacks,config,")
    data = json.loads(sim(cachegram, *args, "--format", "json").out)
    assert data["references"] == 500 and [c["level"] for c in data["caches"]] == ["L1", "L2"]
    assert data["caches"][0]["evictions"] == 436 and data["caches"][0]["cold_misses"] == 500
    shown = sim(cachegram, *args, env={"COLUMNS": "80", "PATH": "/usr/bin:/bin"}).out.decode()
    assert "plru" in shown and "full" in shown and "436" in shown
    for line in shown.splitlines()[1:]:  # the first one has the file's name
        assert sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line) <= 80, line


WRONG_USAGE = [
    ([], "no trace given"),
    (["T"], "no caches given"),
    (["T", "--cache", "L1"], "LEVEL:SIZE:WAYS"),
    (["T", "--cache", "L9:4K:4"], "L9"),
    (["T", "--cache", "L1:4K:four"], "four"),
    (["T", "--cache", "L1:4Q:4"], "4Q"),
    (["T", "--cache", "L1:4K:4:mru"], "mru"),
    (["T", "--cache", "L1:4K:4:lru:fifo"], "fifo"),
    (["T", "--cache", "L1:4K:0"], "'0'"),
    (["T", "--cache", "L1:4K:3"], "divided into sets"),
    (["T", "--cache", "L1:4K:4:inclusive"], "first level"),
    (["T", "--cache", "L1:4K:4,L3:8K:4"], "L2"),
    (["T", "--cache", "L2:4K:4"], "L1"),
    (["T", "--cache", "L1:6K:6:plru"], "power of two"),
    (["T", "--cache", "L1:4K:4:shared,L2:8K:4"], "shared"),
    (["T", "--cache", ONE, "--line", "100"], "line"),
    (["T", "--cache", ONE, "--cores", "0"], "--cores"),
    (["T", "--cache", ONE, "--cores", "65"], "--cores"),
    (["T", "--cache", ONE, "--sets", "2"], "--sets"),
    (["T", "--cache", "L1:4K:full", "--sets", "1/2"], "sets"),
    (["T", "--cache", ONE, "--sets", "1/4", "--causes"], "--causes"),
    (["T", "--cache", ONE, "--time-sample", "10"], "LENGTH:PERIOD"),
    (["T", "--cache", ONE, "--time-sample", "10:5"], "longer"),
    (["T", "--cache", ONE, "--time-sample", "bursts", "--time-sample", "5:10"], "either"),
    (["T", "--cache", "L1:4K:4:fifo", "--time-sample", "5:10"], "lru"),
    (["T", "--cache", ONE, "--like", "perf"], "cachegrind"),
    (["T", "--cache", ONE, "--seed", "x"], "--seed"),
    (["T", "--cache", ONE, "--bogus"], "--bogus"),
    (["T", "--cache"], "needs a value"),
    (["T", "--cache", ONE, "--format", "xml"], "xml"),
]


@pytest.mark.parametrize("args,reported", WRONG_USAGE, ids=lambda v: " ".join(v) if isinstance(v, list) else None)
def test_wrong_usage(cachegram, tmp_path, args, reported):
    trace = write_trace(tmp_path / "t.csv", [(0, 8, "l", 1)])
    result = sim(cachegram, *[trace if a == "T" else a for a in args], status=2)
    message = result.err.decode()
    assert reported in message and message.count("\n") == 1 and result.out == b""


def test_bad_traces(cachegram, tmp_path):
    (tmp_path / "foreign").write_bytes(bytes(range(256)) * 10)
    write_trace(tmp_path / "empty", [])
    for name in ("missing", "foreign", "empty"):
        result = sim(cachegram, tmp_path / name, "--cache", ONE, status=1)
        assert name in result.err.decode() and result.err.count(b"\n") == 1 and result.out == b""


def test_damaged_trace_gives_what_came_before(cachegram, tmp_path):
    trace = write_trace(tmp_path / "t.csv", [(64 * i, 8, "l", 1) for i in range(30000)])
    with open(trace, "a") as f:
        f.write("twelve,8,l,1\n64,8,l,1\n")
    result = sim(cachegram, trace, "--cache", ONE, "--format", "csv", status=1)
    assert result.err.count(b"\n") == 1 and b"30002" in result.err
    assert list(csv.DictReader(io.StringIO(result.out.decode())))[0]["accesses"] == "30000"


def test_interrupt(cachegram):
    """Fed through a pipe without end; SIGINT once the first references must have been read."""
    with subprocess.Popen([cachegram, "sim", "-", "--from", "csv", "--cache", ONE, "--format", "json"],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
        block = b"".join(b"%d,8,l\n" % (64 * i) for i in range(10000))
        p.stdin.write(b"address,size,rw\n")
        for _ in range(50):  # much more than pipe and buffers hold: when it is written, it is being read
            p.stdin.write(block)
        p.stdin.flush()
        p.send_signal(signal.SIGINT)
        for _ in range(20):  # a reader at rest in a read goes on once more
            try:
                p.stdin.write(block)
                p.stdin.flush()
            except BrokenPipeError:
                break
        try:
            p.stdin.close()
        except BrokenPipeError:
            pass
        out, err = p.stdout.read(), p.stderr.read()
        assert p.wait(timeout=60) == 128 + signal.SIGINT, err
    assert b"interrupted" in err
    assert json.loads(out)["references"] > 100000
