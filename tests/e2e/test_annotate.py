# SPDX-License-Identifier: Apache-2.0
"""Misses beside source lines and instructions: planted programs, and what is missing: sources, debug information, the
program. Full mode, whose answers are exact, unless the text differs."""
import csv
import io
import json
import os
import re
import shutil
import sqlite3
import subprocess

import pytest

from conftest import BURST, FULL, TARGETS, build_target, compile_text, run

# The matrix is 8 MB; a column of it has 1024 lines.
SIZE = ["--size", "32K"]


def annotate(cachegram, *options):
    result = run([cachegram, "annotate", *SIZE, *options])
    assert result.status == 0, result.err
    return result.out.decode()


def rows(cachegram, *options):
    return list(csv.DictReader(io.StringIO(annotate(cachegram, "--format", "csv", *options))))


def marked(source, mark):
    lines = [i + 1 for i, line in enumerate(source.read_text().splitlines()) if re.search(rf"(//|/\*) {mark}( \*/)?$", line)]
    assert len(lines) == 1
    return lines[0]


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """A program in C and one in C++, with copies of their sources, which tests may move away: {name: (source, profile)}."""
    made = {}
    for name in ("hot_matrix.c", "hot_inlined.cpp"):
        folder = tmp_path_factory.mktemp("annotate") / "sources"
        folder.mkdir()
        shutil.copy2(TARGETS / name, folder)
        for header in TARGETS.glob("*.h"):
            shutil.copy2(header, folder)
        made[name] = folder / name, folder.parent / "p.db", build_target(folder / name, folder.parent)
    return made


@pytest.fixture(scope="module")
def matrix(places, cachegram):
    source, db, program = places["hot_matrix.c"]
    assert run([cachegram, "record", *FULL, "-o", db, "--", program, "1"]).status == 0
    return source, db, program


@pytest.fixture(scope="module")
def inlined(places, cachegram):
    source, db, program = places["hot_inlined.cpp"]
    assert run([cachegram, "record", *FULL, "-o", db, "--", program, "1"]).status == 0
    return source, db, program


def test_the_interval_of_the_curve(places, cachegram, tmp_path):
    """The miss ratio of a table from bursts is as uncertain as the curve says, which knows more than a table's sites."""
    _, _, program = places["hot_matrix.c"]
    db = tmp_path / "p.db"
    assert run([cachegram, "record", *BURST, "-o", db, "--", program, "30"]).status == 0
    (point,) = csv.DictReader(io.StringIO(run([cachegram, "mrc", "--sizes", "32K", "--format", "csv", db]).out.decode()))
    found = re.compile(r"miss ratio [0-9.]+% \(([0-9.]+)% to ([0-9.]+)%\)")
    low, high = map(float, found.search(annotate(cachegram, db)).groups())
    assert low <= 100 * float(point["ci_low"]) + 0.001 and high >= 100 * float(point["ci_high"]) - 0.001
    assert found.search(run([cachegram, "hotspots", *SIZE, db]).out.decode())[0] in annotate(cachegram, db)


def test_lines_of_a_function(matrix, cachegram):
    source, db, _ = matrix
    lines = rows(cachegram, db, "by_columns")
    worst = max(lines, key=lambda row: float(row["miss_share"]))
    assert (worst["function"], worst["file"], int(worst["line"])) == ("by_columns", str(source), marked(source, "misses"))
    assert worst["text"] == source.read_text().splitlines()[int(worst["line"]) - 1]
    assert float(worst["miss_ratio"]) == pytest.approx(1, abs=0.001)
    assert worst["offset"] == "" and worst["object"] != ""
    # All lines of the function are the function.
    table = run([cachegram, "hotspots", *SIZE, "--format", "csv", db]).out.decode()
    function = next(row for row in csv.DictReader(io.StringIO(table)) if row["function"] == "by_columns")
    assert sum(float(row["miss_share"]) for row in lines) == pytest.approx(float(function["miss_share"]), abs=1e-9)
    assert sum(int(row["recorded_refs"]) for row in lines) == int(function["recorded_refs"])


# Levels of 16K and 1M: a miss costs 9 and 190 cycles more than a hit.
MACHINE = {"name": "two levels", "cpu": "", "source": "made up", "cores": 1, "line_bytes": 64,
           "levels": [{"size_bytes": 16384, "latency_cycles": 4}, {"size_bytes": 1048576, "latency_cycles": 13}],
           "memory": {"latency_cycles": 203}}


def test_stall(matrix, cachegram, tmp_path):
    """Each line's and instruction's share of what the misses of all levels cost, whatever --size is."""
    _, db, _ = matrix
    machine = tmp_path / "machine.json"
    machine.write_text(json.dumps(MACHINE))
    key = lambda row: (row["line"], row["offset"])
    cost, all_cost = {}, 0
    for size, cycles in (("16K", 9), ("1M", 190)):
        total = run([cachegram, "hotspots", "--size", size, "--by", "module", "--format", "csv", db]).out.decode()
        all_cost += cycles * sum(float(row["misses_per_1000_refs"]) for row in csv.DictReader(io.StringIO(total)))
        for row in rows(cachegram, "--size", size, "--asm", db, "by_columns"):
            cost[key(row)] = cost.get(key(row), 0) + float(row["misses_per_1000_refs"]) * cycles
    found = rows(cachegram, "--asm", "--machine", machine, db, "by_columns")
    assert len(found) == len(cost) and {row["offset"] != "" for row in found} == {True, False}
    for row in found:
        assert float(row["stall_share"]) == pytest.approx(cost[key(row)] / all_cost, abs=1e-6), row
    part, = json.loads(annotate(cachegram, "--format", "json", "--machine", machine, db, "by_columns"))["parts"]
    assert part["stall_share"] == pytest.approx(sum(line["stall_share"] for line in part["lines"])) and part["stall_share"] > 0.5
    worst = max(found, key=lambda row: (row["offset"] == "", float(row["stall_share"])))
    text = annotate(cachegram, "--machine", machine, db, "by_columns")
    assert re.search(r"^ +misses +stall +miss ratio +refs ", text, re.M)
    assert re.search(rf"^ +[0-9.]+% +{100 * float(worst['stall_share']):.2f}% .* {worst['line']}  ", text, re.M)
    assert " stall " not in annotate(cachegram, db, "by_columns")
    assert {row["stall_share"] for row in rows(cachegram, "--asm", db, "by_columns")} == {""}
    machine.write_text(json.dumps({**MACHINE, "memory": {}}))
    lacking = run([cachegram, "annotate", "--machine", machine, db])
    assert lacking.status == 1 and b"lacks the latency of memory" in lacking.err


def test_text(matrix, cachegram):
    source, db, _ = matrix
    out = annotate(cachegram, db)
    assert out.startswith("Misses by source line: LRU cache of 32K, 64-byte lines\nfrom all ")
    # Functions with most of the misses come first.
    assert out.index("\nby_columns  (hot_matrix)\n") < out.index("\nby_rows  (hot_matrix)\n")
    assert f"\n{source}\n" in out
    line = next(line for line in out.splitlines() if line.endswith("/* misses */"))
    share = float(line.split("%")[0])
    assert share > 80 and f" {marked(source, 'misses')} " in line
    # The lines around it have no numbers.
    loop = next(line for line in out[out.index("\nby_columns"):].splitlines() if "for (int row" in line)
    assert "%" not in loop
    assert "changed after the program was built" not in out


def test_nothing_counts_twice(cachegram, tmp_path):
    """By default sections are functions as compiled, as in hotspots, although one of them is also inlined into another."""
    (tmp_path / "a.c").write_text("""
        #include <stdio.h>
        static long first[100000], second[100000];
        static inline __attribute__((always_inline)) long shared(const long *at, int n)
        {
            long sum = 0;
            for (int i = 0; i < n; i += 8)
                sum += at[i];
            return sum;
        }
        static __attribute__((noipa)) long around(const long *at, int n) { return shared(at, n) + 1; }
        int main(void)
        {
            long sum = 0;
            long (*volatile compiled)(const long *, int) = shared;
            for (int i = 0; i < 5; i++)
                sum += around(first, 100000) + compiled(second, 100000);
            printf("%ld\\n", sum);
        }
        """)
    subprocess.run(["gcc", "-O1", "-g", "-o", tmp_path / "a", tmp_path / "a.c"], check=True)
    assert run([cachegram, "record", "--mode", "full", "-o", tmp_path / "p.db", "--", tmp_path / "a"]).status == 0
    shares = {}
    for row in rows(cachegram, tmp_path / "p.db"):
        shares[row["function"]] = shares.get(row["function"], 0) + float(row["miss_share"])
    assert set(shares) == {"around", "shared"}
    for share in shares.values():
        assert share == pytest.approx(1 / 2, abs=0.02)


def test_inlined_code(inlined, cachegram):
    """It counts at the call in the function that it was inlined into, and at its own line in its own."""
    source, db, _ = inlined
    outer = max(rows(cachegram, db, "grid::Solver<double>::sum_columns"), key=lambda row: float(row["miss_share"]))
    inner = max(rows(cachegram, db, "at"), key=lambda row: float(row["miss_share"]))
    of_file = max(rows(cachegram, db, "hot_inlined.cpp"), key=lambda row: float(row["miss_share"]))
    assert (outer["function"], int(outer["line"])) == ("grid::Solver<double>::sum_columns", marked(source, "inlined"))
    assert (inner["function"], int(inner["line"])) == ("grid::Matrix<double>::at", marked(source, "misses"))
    assert (of_file["function"], of_file["file"], of_file["line"]) == ("", str(source), inner["line"])


def test_instructions(matrix, cachegram):
    source, db, program = matrix
    listing = [row for row in rows(cachegram, "--asm", db, "by_columns") if row["offset"]]
    dump = subprocess.run(["objdump", "-d", "--no-show-raw-insn", program], check=True, capture_output=True, text=True).stdout
    known = dict(re.findall(r"^ *([0-9a-f]+):\t(\S+)", dump, re.MULTILINE))
    headers = subprocess.run(["readelf", "-lW", program], check=True, capture_output=True, text=True).stdout
    segments = [[int(word, 16) for word in line.split()[1:6]] for line in headers.splitlines() if line.split()[:1] == ["LOAD"]]
    for row in listing:
        offset = int(row["offset"])
        address = next(offset - s[0] + s[1] for s in segments if s[0] <= offset < s[0] + s[3])
        same = {"jnz": "jne", "jz": "je", "jnb": "jae", "jnbe": "ja", "jnl": "jge", "jnle": "jg", "nop": "nopw"}
        ours = row["text"].split()[0]
        assert known[f"{address:x}"].rstrip("lqw") in (ours.rstrip("lqw"), same.get(ours, ours).rstrip("lqw"), "cs", "data16", "xchg")
    worst = max(listing, key=lambda row: float(row["miss_share"]))
    assert int(worst["line"]) == marked(source, "misses")
    lines = [row for row in rows(cachegram, db, "by_columns")]
    assert sum(float(row["miss_share"]) for row in listing) == pytest.approx(sum(float(row["miss_share"]) for row in lines))
    text = annotate(cachegram, "--asm", db, "by_columns")
    assert re.search(r"^ *\d+\.\d+% +\d+\.\d+% +\d+\.\d+% +[0-9a-f]+:  \S", text, re.MULTILINE)
    # A source line has the sum of its instructions, once.
    numbered = re.findall(r"^ *(\d+\.\d+)% .*  +(\d+)  \s*\S", text, re.MULTILINE)
    expected = {row["line"]: 100 * float(row["miss_share"]) for row in lines if float(row["refs_share"]) > 0}
    assert [n for _, n in numbered if n in expected] and len(numbered) == len(dict(map(reversed, numbered)))
    for percent, number in numbered:
        assert float(percent) == pytest.approx(expected[number], abs=0.006)


def test_instructions_of_another_program(matrix, cachegram, tmp_path):
    """The same path, another file: no instructions are shown, and why."""
    _, _, program = matrix
    copy, db = tmp_path / "program", tmp_path / "p.db"
    shutil.copy(program, copy)
    assert run([cachegram, "record", *FULL, "-o", db, "--", copy, "1"]).status == 0
    shutil.copy("/bin/true", copy)
    assert "No instructions: '{}' is not the file that was recorded".format(copy) in annotate(cachegram, "--asm", db, "by_columns")
    copy.unlink()
    out = annotate(cachegram, "--asm", db, "by_columns")
    assert f"No instructions: cannot read '{copy}': No such file or directory" in out and "/* misses */" in out
    assert all(row["offset"] == "" for row in rows(cachegram, "--asm", db, "by_columns"))


def test_sources_elsewhere(matrix, cachegram, tmp_path):
    source, db, _ = matrix
    hidden = source.with_suffix(".away")
    source.rename(hidden)
    try:
        out = annotate(cachegram, db, "by_columns")
        assert f"{source} was not found: line numbers only" in out and "misses */" not in out
        assert re.search(rf"% .* {marked(hidden, 'misses')} *$", out, re.MULTILINE)
        assert json.loads(annotate(cachegram, "--format", "json", db, "by_columns"))["parts"][0]["source"] is None
        (tmp_path / "new" / "sources").mkdir(parents=True)
        shutil.copy2(hidden, tmp_path / "new" / "sources" / source.name)
        for options in (["--source-dir", tmp_path / "new" / "sources"], ["--source-dir", "/nothing", "--source-dir", tmp_path / "new"],
                        ["--prefix-map", f"{source.parent.parent}={tmp_path / 'new'}"], ["--prefix-map", f"/={tmp_path}/none", "--prefix-map", f"{source.parent}/={tmp_path / 'new' / 'sources'}"]):
            out = annotate(cachegram, *options, db, "by_columns")
            assert "/* misses */" in out and f"\n{tmp_path / 'new' / 'sources' / source.name}\n" in out
        # Not every folder that begins alike.
        assert "was not found" in annotate(cachegram, "--prefix-map", f"{str(source.parent)[:-1]}={tmp_path / 'new'}", db, "by_columns")
    finally:
        hidden.rename(source)


def test_source_changed(matrix, cachegram):
    source, db, _ = matrix
    before = source.stat()
    source.touch()
    try:
        with sqlite3.connect(db) as con:
            con.execute("update run set value = '2001-01-01T00:00:00Z' where key = 'started'")
        assert "changed after the program was built" in annotate(cachegram, db, "by_columns")
        assert json.loads(annotate(cachegram, "--format", "json", db, "by_columns"))["parts"][0]["source_changed"] is True
    finally:
        with sqlite3.connect(db) as con:
            con.execute("update run set value = '2037-01-01T00:00:00Z' where key = 'started'")
    assert before.st_size == source.stat().st_size


def test_source_changed_at_once(cachegram, tmp_path):
    """After the program was built, before or after it was recorded, be it in the same second; one warning for a file."""
    source, program, db = tmp_path / "x.c", tmp_path / "x", tmp_path / "p.db"
    text = ("static char data[1 << 20];\n__attribute__((noinline)) int one(void) { int s = 0; for (int i = 0; i < 1 << 20; i += 64) s += data[i]++; return s; }\n"
            "__attribute__((noinline)) int two(void) { int s = 0; for (int i = 0; i < 1 << 20; i += 64) s += data[i]--; return s; }\n"
            "int main(void) { int s = 0; for (int i = 0; i < 9; i++) s += one() + two(); return s & 64; }\n")
    source.write_text(text)
    subprocess.run(["gcc", "-O1", "-g", "-o", program, source], check=True)
    assert run([cachegram, "record", *FULL, "-o", db, "--", program]).status == 0
    result = run([cachegram, "annotate", db])
    assert result.err == b"" and b"was built" not in result.out
    built = program.stat().st_mtime_ns
    os.utime(source, ns=(built + 1, built + 1))
    result = run([cachegram, "annotate", db])
    assert result.err.decode() == (f"cachegram: warning: '{source}' was changed after '{program}' was built: "
                                   "numbers may stand beside the wrong lines\n")
    assert result.out.count(b"changed after the program was built") == 2


@pytest.mark.parametrize("way", ["separate", "symbols", "nothing"])
def test_debug_information(way, matrix, cachegram, tmp_path):
    source, _, program = matrix
    stripped, db = tmp_path / "program", tmp_path / "p.db"
    shutil.copy(program, stripped)
    if way == "separate":
        subprocess.run(["objcopy", "--only-keep-debug", stripped, tmp_path / "program.debug"], check=True)
        subprocess.run(["strip", stripped], check=True)
        subprocess.run(["objcopy", f"--add-gnu-debuglink={tmp_path / 'program.debug'}", stripped], check=True)
    else:
        subprocess.run(["strip", *(["--strip-debug"] if way == "symbols" else []), stripped], check=True)
    assert run([cachegram, "record", *FULL, "-o", db, "--", stripped, "1"]).status == 0
    out = annotate(cachegram, db)
    worst = max(rows(cachegram, "--asm", db), key=lambda row: float(row["miss_share"]) if row["offset"] else 0)
    assert float(worst["miss_share"]) > 0.8 and worst["text"] != ""
    if way == "separate":
        assert "/* misses */" in out and int(worst["line"]) == marked(source, "misses")
    else:
        assert "No line numbers: the code has no debug information" in out
        assert re.search(r"% +program\+0x[0-9a-f]+$", out, re.MULTILINE)
        assert worst["line"] == "" and worst["function"] == ("by_columns" if way == "symbols" else worst["function"])


def test_wrong_size_of_a_function(cachegram, tmp_path):
    """Beyond its segment: its instructions are listed as if it had no symbol."""
    db = tmp_path / "p.db"
    program = compile_text(tmp_path / "program.c", """
        static volatile long table[1 << 16];
        __attribute__((noinline)) void walk(void) { for (long i = 0; i < 1 << 20; i++) table[i * 7919 % (1 << 16)]++; }
        __asm__(".size walk, 1 << 50");
        int main(void) { walk(); }""", "-O1", "-g", "-fno-toplevel-reorder")
    assert "0x4000000000000 FUNC" in subprocess.run(["readelf", "-sW", program], capture_output=True, text=True, check=True).stdout
    assert run([cachegram, "record", *FULL, "-o", db, "--", program]).status == 0
    found = rows(cachegram, "--asm", db, "walk")
    assert any(float(row["miss_share"]) > 0.9 and row["text"].startswith("mov") for row in found if row["offset"])
    assert len(found) < 100


def test_fortran(cachegram, tmp_path):
    source, db = TARGETS / "hot_fortran.f90", tmp_path / "p.db"
    subprocess.run(["gfortran", "-O2", "-g", "-J", tmp_path, "-o", tmp_path / "program", source], check=True)
    assert run([cachegram, "record", *FULL, "-o", db, "--", tmp_path / "program", "2"]).status == 0
    number = 1 + [line.endswith("! misses") for line in source.read_text().splitlines()].index(True)
    worst = max(rows(cachegram, db, "along_rows"), key=lambda row: float(row["miss_share"]))
    assert (worst["function"], worst["line"]) == ("grid::along_rows", str(number)) and "field" in worst["object"]
    assert float(worst["miss_share"]) > 0.9


def test_bursts_have_intervals(matrix, cachegram, tmp_path):
    _, _, program = matrix
    db = tmp_path / "p.db"
    assert run([cachegram, "record", *BURST, "-o", db, "--", program, "30"]).status == 0
    out = annotate(cachegram, db, "by_columns")
    assert re.search(r"^from \d+ bursts, ", out, re.MULTILINE)
    assert re.search(r"^\d+\.\d+% of the misses \((\d+\.\d+% to \d+\.\d+%|few samples)\), ", out, re.MULTILINE)


def test_hostile_names(matrix, cachegram, tmp_path):
    """A program and a source whose names and text would steer a terminal, or are no UTF-8."""
    source = tmp_path.joinpath("a\x1b[31m,\"b").as_posix() + "\udcff\udcc2\udc9b.c"
    with open(source, "wb") as f:
        f.write(matrix[0].read_bytes().replace(b"/* misses */", b"/* \x1b[31m\t\x00 \xff\xc2\x9b misses */"))
    program, db = source[:-2], tmp_path / "p.db"
    subprocess.run(["gcc", "-O1", "-g", "-w", "-o", program, "-x", "c", source], check=True)
    assert run([cachegram, "record", *FULL, "-o", db, "--", program, "1"]).status == 0
    for form in ("text", "csv", "json"):
        text = annotate(cachegram, "--format", form, "--asm", db)
        assert not any(ord(c) < 32 and c != "\n" or 0x7f <= ord(c) < 0xa0 for c in text)
        if form == "json":
            assert json.loads(text)["parts"]
        if form == "csv":
            assert all(len(row) == 14 and None not in row for row in csv.DictReader(io.StringIO(text)))


def test_unknown_names(matrix, cachegram):
    _, db, _ = matrix
    result = run([cachegram, "annotate", db, "by_column"])
    assert result.status == 1 and result.out == b"" and b"'by_column'" in result.err and result.err.count(b"\n") == 1
    assert run([cachegram, "annotate", db, "matrix.c"]).status == 1  # hot_matrix.c is another file
    assert run([cachegram, "annotate", db, "sources/hot_matrix.c"]).status == 0


def test_function_of_many_lines(cachegram, tmp_path):
    """Time grows like the number of lines, not like its square: this took minutes, and takes half a second."""
    lines = "".join(f"  s += a[(s + {i * 37}) & 65535]; b[(s ^ {i * 101}) & 65535] += s;\n" for i in range(6000))
    program = compile_text(tmp_path / "a.c", f"static long a[1 << 16], b[1 << 16];\n__attribute__((noipa)) long f(long s)\n{{\n{lines}  return s;\n}}\n"
                           "int main(void) { return f(1) == 0; }\n", "-O0", "-g")
    assert run([cachegram, "record", *FULL, "-o", tmp_path / "p.db", "--", program]).status == 0
    result = subprocess.run([cachegram, "annotate", *SIZE, "--asm", tmp_path / "p.db", "f"], capture_output=True, text=True, timeout=45)
    assert result.returncode == 0 and len(re.findall(r"%  \S* +\d+    s \+= a", result.stdout)) == 6000


@pytest.mark.parametrize("wrong", [["--size", "x"], ["--prefix-map", "a"], ["--prefix-map", "=a"], ["--nonsense"], ["a", "b", "c"]])
def test_wrong_usage(wrong, cachegram):
    result = run([cachegram, "annotate", *wrong])
    assert (result.status, result.out) == (2, b"")
    assert result.err.count(b"\n") == 1


OVERLOADS = """
#include <stdlib.h>
static long *data;
__attribute__((noinline)) long walk(long n) { long s = 0; for (long i = 0; i < n; i++) s += data[i * 8]; return s; }
__attribute__((noinline)) long walk(long n, long step)
{
    long s = 0;
    for (long i = 0; i < n; i++) s += data[i * 8 * step];
    return s;
}
__attribute__((noinline)) static long *get(size_t n) { return (long *)calloc(n, 64); }
__attribute__((noinline)) static long *get(int n) { return (long *)calloc(n, 64); }
int main() { data = get((size_t)70000); data = get(80000); return (walk(10000) + walk(30000, 2)) & 1; }
"""


def test_overloads(cachegram, tmp_path):
    """Each is a row of its own; a name without parameters selects all of them."""
    (tmp_path / "x.cpp").write_text(OVERLOADS)
    subprocess.run(["g++", "-O1", "-g", "-o", "x", "x.cpp"], cwd=tmp_path, check=True)
    subprocess.run([cachegram, "record", "--mode", "full", "-o", "x.db", "./x"], cwd=tmp_path, check=True)

    def output(*options):
        return subprocess.run([cachegram, *options], cwd=tmp_path, check=True, capture_output=True, text=True).stdout

    shares = {r["function"]: float(r["refs_share"]) for r in csv.DictReader(io.StringIO(output("hotspots", "x.db", "--format", "csv")))}
    assert shares["walk(long, long)"] == pytest.approx(3 * shares["walk(long)"], rel=0.02)
    assert "walk" not in shares
    assert "references by walk: 4" in output("mrc", "x.db", "--function", "walk")
    assert "references by walk(long): 1" in output("mrc", "x.db", "--function", "walk(long)")
    text = output("annotate", "x.db", "walk")
    assert "walk(long)  (x)" in text and "walk(long, long)  (x)" in text
    for pattern in ("w*k", "walk(*)", "wa??"):
        assert "walk(long)  (x)" in output("annotate", "x.db", pattern)
    objects = output("hotspots", "x.db", "--by", "object", "--alloc-wrappers", "get")
    assert "block of main" in objects and "block of get" not in objects


NAMES = """
#include <cstdlib>
static long *data;
namespace ns {
template <typename T> struct table {
    template <typename F> __attribute__((noipa)) long visit(F f) { long s = 0; for (T i = 0; i < 70000; i++) s += f(data[i * 8]); return s; }
};
}
int main() { data = (long *)calloc(70000, 64); return ns::table<int>().visit([](long x) { return x; }) != 0; }
"""


def test_names_without_arguments(cachegram, tmp_path):
    """Of templates; and of Java methods, which have their result in front. A class is no function."""
    (tmp_path / "x.cpp").write_text(NAMES)
    subprocess.run(["g++", "-O1", "-g", "-o", "x", "x.cpp"], cwd=tmp_path, check=True)
    subprocess.run([cachegram, "record", "--mode", "full", "-o", "x.db", "./x"], cwd=tmp_path, check=True)
    db = tmp_path / "x.db"
    for name in ("visit", "ns::table<int>::visit"):
        out = run([cachegram, "annotate", db, name])
        assert out.status == 0 and b"ns::table<int>::visit<main::" in out.out
    for name in ("table", "ns::table<int>", "ns", "vis", "lambda"):
        assert run([cachegram, "annotate", db, name]).status == 1, name
    with sqlite3.connect(db) as con:
        con.execute("update frame set function = 'long Table.visit(int, Other.list)' where function like '%visit%'")
    for name in ("visit", "Table.visit", "long Table.visit", "long Table.visit(int, Other.list)"):
        assert run([cachegram, "annotate", db, name]).status == 0, name
    for name in ("Table", "list", "Other.list"):
        assert run([cachegram, "annotate", db, name]).status == 1, name


def test_of_a_part_of_the_run(cachegram, record, built):
    """Only a phase, a thread or an executable: the same shares as in hotspots."""
    result, db = record(["--gap-us", "4000", "--seed", "5"], [built / "phases", 60])
    assert result.status == 0, result.err
    phases = list(csv.DictReader(io.StringIO(run([cachegram, "phases", db, "--sizes", "32K", "--format", "csv"]).out.decode())))
    used = [row["phase"] for row in phases if row["phase"] and int(row["bursts"]) > 4]
    assert len(used) > 1
    seen, small = set(), ["--size", "1K"]  # where all phases have misses
    for phase in used:
        lines = rows(cachegram, *small, "--phase", phase, db)
        wanted = run([cachegram, "hotspots", *small, "--phase", phase, "--by", "line", "--format", "csv", db]).out.decode()
        wanted = {(r["function"], r["line"]): (r["refs_share"], r["recorded_refs"]) for r in csv.DictReader(io.StringIO(wanted)) if r["file"].endswith("phases.c")}
        found = {(r["function"], r["line"]): (r["refs_share"], r["recorded_refs"]) for r in lines if r["file"].endswith("phases.c") and r["line"] != "0"}
        assert found and all(wanted[key] == found[key] for key in found if key in wanted) and found.keys() & wanted.keys()
        seen.add(tuple(sorted(found)))
    assert len(seen) > 1  # different code in different phases
    assert f", phase {used[0]}\n" in annotate(cachegram, *small, "--phase", used[0], db)
    assert rows(cachegram, "--comm", "phases", db) == rows(cachegram, db)
    for wrong, message in ((("--phase", "99"), "no phase 99"), (("--comm", "none"), "ran 'none'"), (("--tid", "1"), "no references of thread 1")):
        failed = run([cachegram, "annotate", *wrong, db])
        assert failed.status == 1 and message in failed.err.decode() and failed.out == b""
