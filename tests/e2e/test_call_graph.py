# SPDX-License-Identifier: Apache-2.0
"""hotspots --call-graph: by which calls code was reached when it missed, in the orders in which stacks change."""
import csv
import io
import json
import shutil
import sqlite3
import subprocess

import pytest

from conftest import TARGETS, build_target, run
from test_export import message, packed

MODES = {"full": (["--mode", "full"], 300), "burst": (["--allowance", "0", "--gap-us", "2000"], 12000), "default": ([], 30000)}
# Callers of each function, innermost first, and their share of its misses.
EXPECTED = {"touch_paths": {("often", "main"): 0.75, ("seldom", "main"): 0.25},
            "touch_deep": {("deep", "deep", "main"): 1},  # a repeated call is shown once
            "touch_jump": {("jump", "main"): 1},
            "touch_turns": {("turns", "main"): 0.5, ("coroutine",): 0.5},
            "touch_sorts": {("compare", "qsort_r", "sorts", "main"): 1},
            "touch_allocated": {("main",): 1},  # not malloc's call, which has returned
            "touch_thread": {("thread",): 1}}


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return build_target(TARGETS / "call_graph.c", tmp_path_factory.mktemp("call_graph"))


@pytest.fixture(scope="module", params=MODES)
def profile(request, program, cachegram, tmp_path_factory):
    db = tmp_path_factory.mktemp("profile") / "p.db"
    options, rounds = MODES[request.param]
    native = run([program, rounds])
    result = run([cachegram, "record", *options, "-o", db, "--", program, rounds])
    assert (result.status, result.out) == (0, native.out), result.err
    return db


def rows(cachegram, db, *options):
    result = run([cachegram, "hotspots", "--call-graph", "--size", "32K", "--format", "json", *options, db])
    assert result.status == 0, result.err
    return {row["function"]: row for row in json.loads(result.out)["rows"]}


# What of libc's functions is visible depends on its version and on whether its debug information is installed.
LIBC = ("qsort", "msort", "_quicksort", "start_thread", "clone", "__libc_start", "__start_context", "_start", "libc.so")


def paths(calls, before=()):
    """[(functions of the program that call each other, innermost first, up to main; share)]"""
    left = {}
    for call in calls:
        name = call["function"] or call.get("module", "?")
        chain = before
        if name.startswith(("qsort", "__qsort", "msort")):
            chain = before if before and before[-1] == "qsort_r" else (*before, "qsort_r")
        elif not any(part in name for part in LIBC):
            chain = (*before, name)
        below = paths(call["callers"], chain) if name != "main" else {}
        for path, share in below.items():
            left[path] = left.get(path, 0) + share
        rest = call["share"] - sum(below.values())
        if rest > 1e-6:
            left[chain] = left.get(chain, 0) + rest
    return left


def test_paths(cachegram, profile):
    table = rows(cachegram, profile)
    for function, expected in EXPECTED.items():
        found = paths(table[function]["calls"])
        for path, share in expected.items():
            assert found.get(path, 0) == pytest.approx(share, abs=0.06), (function, found)


def test_finding(cachegram, profile):
    """The report's sentence names the caller of the function with most of the misses."""
    found = [f for f in json.loads(run([cachegram, "report", "--format", "json", profile]).out)["findings"] if f["function"] == "touch_thread"]
    for finding in found:
        assert (finding["caller"], finding["caller_file"].rsplit("/", 1)[1]) == ("thread", "call_graph.c")
        assert finding["caller_share"] > 0.9
    text = run([cachegram, "report", profile]).out.decode()
    assert (", called by thread (call_graph.c:" in text) == bool(found)
    with sqlite3.connect(profile) as connection:
        assert found or connection.execute("SELECT value FROM run WHERE key = 'mode'").fetchone() != ("full",)


def test_formats(cachegram, profile):
    """The same paths in each format."""
    call = [cachegram, "hotspots", "--call-graph", "--size", "32K"]
    text = run([*call, profile]).out.decode()
    assert "< often call_graph.c:" in text and "called by" in text
    lines = list(csv.DictReader(io.StringIO(run([*call, "--format", "csv", profile]).out.decode())))
    shares = {}
    for line in lines:
        if line["function"] == "touch_paths":
            caller = line["call_path"].split(" ")[0]
            shares[caller] = shares.get(caller, 0) + float(line["call_share"])
    assert sum(shares.values()) == pytest.approx(1) and shares["often"] == pytest.approx(0.75, abs=0.06)
    stacks = run([*call, "--format", "collapsed", profile]).out.decode().splitlines()
    often = sum(int(s.rsplit(" ", 1)[1]) for s in stacks if ";main;often;touch_paths;" in s)
    seldom = sum(int(s.rsplit(" ", 1)[1]) for s in stacks if ";main;seldom;touch_paths;" in s)
    assert often / seldom == pytest.approx(3, rel=0.25)
    assert run([cachegram, "export", "--to", "collapsed", "--size", "32K", "-o", "-", profile]).out.decode().splitlines() == stacks
    pairs = run([*call, "--by", "function,object", "--format", "json", profile])
    assert any(row["function"] == "touch_deep" and row["calls"][0]["function"] == "deep" for row in json.loads(pairs.out)["rows"])


def test_pprof(cachegram, profile, tmp_path):
    out = tmp_path / "p.pb"
    assert run([cachegram, "export", "--to", "pprof", "--size", "32K", "-o", out, profile]).status == 0
    fields = message(out.read_bytes())
    strings = [text.decode() for text in fields[6]]
    functions = {f[1][0]: strings[f[2][0]] for f in map(message, fields[5])}
    places = {}
    for place in map(message, fields[4]):
        places[place[1][0]] = [functions[message(line)[1][0]] for line in place.get(4, [])]
    misses = {}
    for sample in map(message, fields[2]):
        stack = [name for i in packed(sample[1][0]) for name in places[i]]
        if stack[:1] == ["touch_paths"] and len(stack) > 1:  # of instructions that hardly miss, no path is known
            misses[stack[1]] = misses.get(stack[1], 0) + packed(sample[2][0])[0]
    assert misses["often"] / sum(misses.values()) == pytest.approx(0.75, abs=0.06)


# In a burst of which the recorder learns when the next library is there already, callers are that one's: up to 3%.
@pytest.mark.parametrize("options,least", [(["--mode", "full"], 0.97), (["--allowance", "0", "--gap-us", "500"], 0.9)], ids=["full", "burst"])
def test_replaced_library(cachegram, tmp_path, options, least):
    """A library at the place where another one was, again and again: the callers are those of the right one."""
    libraries = []
    for name in ("one", "two"):
        libraries.append(tmp_path / f"lib{name}.so")
        subprocess.run(["gcc", "-O2", "-g", "-shared", "-fPIC", f"-DNAME(f)=f##_{name}", "-o", libraries[-1], TARGETS / "lib_calls.c"], check=True)
    program = build_target(TARGETS / "dl_calls.c", tmp_path)
    native = run([program, *libraries, 200])
    if b"moved 0 times" not in native.out:
        pytest.skip("the libraries are not at the same address")
    result = run([cachegram, "record", *options, "-o", tmp_path / "p.db", "--", program, *libraries, 200])
    assert (result.status, result.out) == (0, native.out), result.err
    table = rows(cachegram, tmp_path / "p.db")
    for name in ("one", "two"):
        calls = table[f"touch_{name}"]["calls"]
        assert sum(call["share"] for call in calls if call["function"] == f"call_{name}") > least, calls


def test_without(cachegram, program, tmp_path):
    db = tmp_path / "p.db"
    assert run([cachegram, "record", "--call-graph", "off", "-o", db, "--", program, "100"]).status == 0
    result = run([cachegram, "hotspots", "--call-graph", db])
    assert result.status == 1 and b"no call paths" in result.err and result.err.count(b"\n") == 1
    with sqlite3.connect(db) as connection:
        assert connection.execute("SELECT count(*) FROM call_path").fetchone() == (0,)
    assert run([cachegram, "hotspots", "--call-graph", "--by", "object", db]).status == 2
    bad = run([cachegram, "record", "--call-graph", "maybe", "true"])
    assert bad.status == 2 and b"--call-graph maybe: must be on or off" in bad.err
    collapsed = run([cachegram, "export", "--to", "collapsed", "-o", "-", db])
    assert collapsed.status == 0 and b"call_graph;" in collapsed.out


def test_damaged(cachegram, program, tmp_path):
    """Paths that lead to themselves, to later ones or to none."""
    db = tmp_path / "p.db"
    assert run([cachegram, "record", "-o", db, "--", program, "100"]).status == 0
    for change in ("caller = id", "caller = id + 1", "caller = 1000000", "frame = 1 << 40, image = -3"):
        shutil.copy(db, tmp_path / "q.db")
        with sqlite3.connect(tmp_path / "q.db") as connection:
            connection.execute(f"UPDATE call_path SET {change}")
        for form in ("text", "csv", "json", "collapsed"):
            assert run([cachegram, "hotspots", "--call-graph", "--format", form, tmp_path / "q.db"]).status == 0


def test_what_has_called_main(cachegram, tmp_path):
    """Text leaves it out, also where the call is in a function that was inlined into main, and of main itself."""
    source = tmp_path / "a.c"
    source.write_text(
        "static char table[1 << 20];\nstatic __attribute__((noinline)) long sweep(const volatile char *p)\n{\n    long sum = 0;\n"
        "    for (int i = 0; i < 1 << 20; i += 64)\n        sum += p[i];\n    return sum;\n}\n"
        "static inline __attribute__((always_inline)) long sweeps(void)\n{\n    return sweep(table) + sweep(table);\n}\n"
        "int main(void)\n{\n    long sum = sweeps();\n    for (volatile char *p = table; p < table + (1 << 20); p += 64)\n"
        "        *p = 1;\n    return sum > 0;\n}\n")
    assert run(["gcc", "-O2", "-g", "-o", tmp_path / "a", source]).status == 0
    assert run([cachegram, "record", "--mode", "full", "-o", tmp_path / "p.db", "--", tmp_path / "a"]).status == 0
    shown = run([cachegram, "hotspots", "--call-graph", "--size", "32K", tmp_path / "p.db"]).out.decode()
    assert "  sweep  (a)" in shown and "  main  (a)" in shown
    assert "< sweeps a.c:11 < main a.c:15\n" in shown and "< __libc_start" not in shown and "< _start" not in shown
