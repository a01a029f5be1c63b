# SPDX-License-Identifier: Apache-2.0
"""Planted programs with bad layouts: the report names function, line and object in the first place, with the cause and
the remedy; after the remedy the misses are gone.
"""
import csv
import fcntl
import io
import json
import os
import pty
import re
import sqlite3
import struct
import subprocess
import termios

import pytest

from conftest import BURST, MODES, ROOT, TARGETS, build_target, compile_text, run

OPTIONS = {"full": MODES["full"], "default": ["--allowance", "30s"], "burst": MODES["burst"]}
# An allowance that lasts for the whole run: by default, these runs are too short for findings from bursts.
# Program, arguments, rounds (in bursts more), function, mark of the line, object, remedy.
PLANTED = {
    "columns": ("hot_layout.c", ["columns"], (2, 40), "by_columns", "columns", "matrix", "order"),
    "fields": ("hot_layout.c", ["fields"], (60, 8000), "sum_fields", "fields", "records", "pack"),
    "new": ("hot_layout.c", ["new"], (40, 400), "fill_new", "new", "blocks of fill_new::buffer hot_layout.c:{allocated}", "stream"),
    "list": ("hot_list.c", [], (6, 60), "follow", "misses", "blocks of shuffled::nodes hot_list.c:15", "pack"),
    "hash": ("hot_hash.c", [], (10, 100), "look_up", "misses", "table", "pack"),
    "c++": ("hot_cloud.cpp", [], (60, 8000), "model::cloud::sum_charges", "charge", "blocks of main::cloud.particles hot_cloud.cpp:{particles}",
            "pack"),
    "c++ columns": ("hot_inlined.cpp", [], (2, 40), "grid::Solver<double>::sum_columns", "misses",
                    "blocks of main::matrix.data_ hot_inlined.cpp:{data}", "order"),
    "rust": ("hot_rust.rs", ["mass"], (60, 8000), "hot_rust::bodies::total_mass", "mass",
             "blocks of hot_rust::bodies::make hot_rust.rs:{bodies}", "pack"),
    "rust columns": ("hot_rust.rs", ["columns"], (2, 40), "<hot_rust::grid::Matrix<f64>>::sum_columns", "columns",
                     "blocks of <hot_rust::grid::Matrix<f64>>::new hot_rust.rs:{cells}", "order"),
    "fortran": ("hot_fields.f90", [], (60, 8000), "hot_fields", "misses", "bodies::all_bodies", "pack"),
    "fortran rows": ("hot_fortran.f90", [], (2, 40), "hot_fortran", "misses", "grid::field", "order"),
}
FIELDS = {"fields": "hot", "list": "next", "hash": "key", "c++": "charge", "rust": "mass", "fortran": "mass"}
USED = {what: 8 for what in PLANTED if what != "new"}


def marked_line(source, mark):
    """Number of the line of a target's source that ends with the comment."""
    for i, line in enumerate((TARGETS / source).read_text().splitlines(), 1):
        if re.search(rf"(/[/*]|!) {mark}( \*/)?$", line):
            return i
    raise AssertionError(mark)


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("layout")
    return {source: build_target(TARGETS / source, folder) for source in {row[0] for row in PLANTED.values()}}


def findings(cachegram, options, db, argv):
    result = run([cachegram, "record", *options, "-o", db, "--", *argv])
    assert result.status == 0, result.err
    data = json.loads(run([cachegram, "report", "--format", "json", db]).out)
    assert (data["conflicts"], data["false_sharing"]) == ([], [])  # what they miss does not fit into the cache
    return data["findings"]


@pytest.mark.parametrize("what", ["turn", "columns"])
def test_transposition(what, programs, cachegram, tmp_path):
    """With its loops exchanged it has as many misses, on the other matrix."""
    db = tmp_path / "p.db"
    first = findings(cachegram, MODES["full"], db, [programs["hot_layout.c"], what, 2])[0]
    assert (first["object"], first["remedy"]) == ({"turn": "turned", "columns": "matrix"}[what], "order")
    text = run([cachegram, "report", db]).out.decode()
    assert ("as in a transposition, process both in small blocks" in text) == (what == "turn")


@pytest.mark.in_turns
@pytest.mark.parametrize("mode", OPTIONS)
@pytest.mark.parametrize("what", PLANTED)
def test_planted(what, mode, programs, cachegram, tmp_path):
    source, args, rounds, function, mark, name, remedy = PLANTED[what]
    db = tmp_path / "p.db"
    for times in (1, 4):  # on a busy machine there may be too few bursts
        found = findings(cachegram, OPTIONS[mode], db, [programs[source], *args, times * rounds[mode == "burst"]])
        if found:
            break
    first = found[0]
    assert (first["function"], first["line"]) == (function, marked_line(source, mark))
    assert first["size_bytes"] == 32768
    if mode != "full" and remedy == "stream" and first["cold_share"] is None:  # too few watched lines
        assert first["remedy"] in (None, "stream")
        # The sentence may be that of another size, of which more or less is known.
        assert re.search("is not known, as too few were watched|Not even a cache of [0-9]+[KM] would|never touched before",
                         run([cachegram, "report", db]).out.decode())
        return
    assert first["remedy"] == remedy
    if name:
        if "{" in name:
            name = re.sub(r"{(\w+)}", lambda found: str(marked_line(source, found[1])), name)
        assert first["object"] == name
    assert first.get("field") == FIELDS.get(what)
    if what in USED:
        assert first["used_bytes_per_line"] == pytest.approx(USED[what], abs=1)
    if what == "columns":
        assert first["stride_bytes"] == 8192
    for by in ("line", "line,object"):  # the same in the columns of the tables
        rows = csv.DictReader(io.StringIO(run([cachegram, "hotspots", "--size", "32K", "--by", by, "--format", "csv", db]).out.decode()))
        row = max(rows, key=lambda row: float(row["miss_share"]))
        assert float(row["line_used_share"]) == pytest.approx(USED.get(what, 64) / 64, abs=0.02)
        rows = list(csv.DictReader(io.StringIO(run([cachegram, "causes", "--size", "32K", "--by", by, "--format", "csv", db]).out.decode())))
        if mode == "full":  # streams are cold; all others push out their own lines
            assert rows[0]["evictor"] == ("(cold)" if remedy == "stream" else rows[0]["victim"])
            assert str(first["line"]) in rows[0]["victim"]
        if what in ("columns", "new"):
            assert row["stride_bytes"] in ({"columns": ("8192",), "new": ("8", "16", "32", "64")}[what])
    if mode == "full":  # others may have too few watched lines to tell
        assert (first["cold_share"] > 0.9) == (remedy == "stream")
    if mode == "full":  # 8 MB or 1 MB of lines are used, and some more
        assert first["gone_at_bytes"] in {"columns": (8 << 20, 32 << 20), "fields": (2 << 20,), "c++": (2 << 20,),
                                          "new": (None,)}.get(what, (first["gone_at_bytes"],))
    text = run([cachegram, "report", db]).out.decode()
    sentence = {"order": "exchange the loops", "pack": "bytes of a line are used", "stream": "never touched before"}[remedy]
    assert re.search(rf"% of the misses in a cache of 32K.* are in {re.escape(function)} \((?:mostly )?{source}:{first['line']}(?: in \S+, which is inlined)?\).*"
                     rf"{sentence}", text)


def test_large_structures_are_not_a_matrix(cachegram, tmp_path):
    """A walk over structures has a constant stride, too, but no loops to exchange."""
    compile_text(tmp_path / "a.c",
        "#include <stdlib.h>\nstruct s { double x; char rest[184]; };\nint main(void)\n{\n"
        "    struct s *all = calloc(100000, sizeof *all);\n    for (int t = 0; t < 20; t++)\n"
        "        for (int i = 0; i < 100000; i++)\n            all[i].x += 0.1;\n    return all[7].x < 1;\n}\n")
    found = findings(cachegram, OPTIONS["full"], tmp_path / "p.db", [tmp_path / "a"])
    assert found[0]["stride_bytes"] == 192
    said = run([cachegram, "report", tmp_path / "p.db"]).out
    assert b"Each step goes 192 bytes further and uses 8 of the 64 bytes of a line: if that is the size of a structure" in said


@pytest.mark.parametrize("level, used", [("-O2", 1), ("-O0", None)])
def test_columns_that_fit(level, used, cachegram, tmp_path):
    """A walk down columns is no fault while the cache holds a line until the next columns use the rest of it. How much
    they use is not known where that takes longer than the pieces of the run that are looked at."""
    compile_text(tmp_path / "a.c",
        "static double grid[480][520], scale[8], shift[8];\nstatic __attribute__((noinline)) void walk(void)\n{\n"
        "    for (int x = 0; x < 520; x++)\n        for (int y = 0; y < 480; y++)\n"
        "            grid[y][x] = grid[y][x] * scale[x & 7] + shift[y & 7] + scale[y & 7] * shift[x & 7];\n}\n"
        "int main(void)\n{\n    for (int t = 0; t < 10; t++)\n        walk();\n    return grid[3][4] > 1;\n}\n", level, "-g")
    found = findings(cachegram, OPTIONS["full"], tmp_path / "p.db", [tmp_path / "a"])[0]
    assert (found["function"], found["line"], found["remedy"]) == ("walk", 6, "block")
    assert found["used_bytes_per_line"] == (None if used is None else pytest.approx(64 * used, abs=3))


def test_kernel_down_columns(cachegram, tmp_path):
    """The step from one access to the next is small, that from one line to the next is not: the loops are wrong."""
    compile_text(tmp_path / "a.c",
        "float in[1024][1024];\nstatic __attribute__((noinline)) float blur(volatile int width)\n{\n    float most = 0;\n"
        "    for (int x = 0; x < 400; x++)\n        for (int y = 0; y < 1024; y++) {\n            float sum = 0;\n"
        "            for (int k = 0; k < width; k++)\n                sum += in[y][x + k];\n            most = sum > most ? sum : most;\n"
        "        }\n    return most;\n}\nint main(void)\n{\n    return blur(5) > 1;\n}\n")
    found = findings(cachegram, OPTIONS["full"], tmp_path / "p.db", [tmp_path / "a"])[0]
    assert (found["function"], found["line"], found["remedy"], found["stride_bytes"]) == ("blur", 9, "order", 4096)
    assert b"Each step goes 4096 bytes further" in run([cachegram, "report", tmp_path / "p.db"]).out


def test_one_byte_of_a_line(cachegram, tmp_path):
    compile_text(tmp_path / "a.c",
        "static volatile char table[1 << 20];\nint main(void)\n{\n    unsigned x = 1, sum = 0;\n"
        "    for (int t = 0; t < 200000; t++)\n        sum += table[((x = x * 1664525 + 1013904223) >> 18) * 64];\n"
        "    return sum > 1;\n}\n")
    found = findings(cachegram, OPTIONS["full"], tmp_path / "p.db", [tmp_path / "a"])[0]
    assert found["remedy"] == "pack" and found["used_bytes_per_line"] == 1
    assert b"Only 1 of the 64 bytes of a line is used:" in run([cachegram, "report", tmp_path / "p.db"]).out


def test_backwards(cachegram, tmp_path):
    compile_text(tmp_path / "a.c",
        "#include <stdlib.h>\nstruct s { double x; char rest[184]; };\nint main(void)\n{\n"
        "    struct s *all = calloc(100000, sizeof *all);\n    for (int t = 0; t < 20; t++)\n"
        "        for (int i = 99999; i >= 0; i--)\n            all[i].x += 0.1;\n    return all[7].x < 1;\n}\n")
    assert findings(cachegram, OPTIONS["full"], tmp_path / "p.db", [tmp_path / "a"])[0]["stride_bytes"] == -192
    assert b"Each step goes 192 bytes back and uses 8 of" in run([cachegram, "report", tmp_path / "p.db"]).out


def test_stride_of_a_copy(cachegram, tmp_path):
    """An instruction that reads here and writes there has the stride of one of them, not the distance of both."""
    compile_text(tmp_path / "a.c",
        "#include <stdlib.h>\nint main(void)\n{\n    long *a = calloc(1 << 20, 8), *b = calloc(1 << 20, 8);\n"
        "    for (int i = 0; i < 100000; i++) {\n        long *to = a + i * 8, *from = b + i * 8, n = 64;\n"
        "        __asm__ volatile(\"rep movsq\" : \"+D\"(to), \"+S\"(from), \"+c\"(n)::\"memory\");\n    }\n    return (int)a[7];\n}\n")
    assert run([cachegram, "record", *OPTIONS["full"], "-o", tmp_path / "p.db", "--", tmp_path / "a"]).status == 0
    with sqlite3.connect(tmp_path / "p.db") as connection:
        strides = connection.execute("SELECT x.bytes FROM stride x JOIN site s ON s.id = x.site JOIN frame f ON f.id = s.frame "
                                     "WHERE f.function = 'main' AND f.line = 7 AND x.refs > 1000").fetchall()
    assert strides == [(8,)]


def test_the_line_that_calls_a_library(cachegram, tmp_path):
    """What is inlined from an installed header is in several of its lines, none of which the user has written."""
    compile_text(tmp_path / "orders.cpp",
        "#include <unordered_map>\n#include <vector>\nstruct order { long id, price; char rest[48]; };\n"
        "__attribute__((noinline)) long look_up(std::unordered_map<long, order> &orders, const std::vector<long> &keys)\n{\n"
        "    long sum = 0;\n    for (long key : keys)\n        sum += orders.find(key)->second.price;\n    return sum;\n}\n"
        "int main()\n{\n    std::unordered_map<long, order> orders;\n    std::vector<long> keys;\n    long sum = 0;\n"
        "    for (long i = 0; i < 16384; i++)\n        orders[i * 7919].price = i;\n"
        "    for (long i = 0; i < 16384; i++)\n        keys.push_back(i * (i + 1) / 2 % 16384 * 7919);\n"
        "    for (volatile int t = 0; t < 8; t++)\n        sum += look_up(orders, keys);\n    return sum == 1;\n}\n", "-O2", "-g")
    found = findings(cachegram, OPTIONS["full"], tmp_path / "p.db", [tmp_path / "orders"])[0]
    assert (found["function"], found["file"], found["line"], found["remedy"]) == ("look_up", str(tmp_path / "orders.cpp"), 8, "pack")
    assert found["object"] == "blocks of main::orders orders.cpp:17 by _Scoped_node"
    said = run([cachegram, "report", tmp_path / "p.db"]).out
    assert b" are in look_up (orders.cpp:8), mostly on blocks of main::orders orders.cpp:17 by _Scoped_node." in said
    # The second column begins below its head, also where the first has long names.
    _, _, _, head, first, second, *_ = run([cachegram, "causes", "--size", "32K", tmp_path / "p.db"]).out.decode().splitlines()
    assert head.index("evicted by") == first.rindex("block of") == second.rindex("block of")


def test_data_in_a_file(cachegram, tmp_path):
    """Said by its name, as other data."""
    compile_text(tmp_path / "a.c",
        "#include <fcntl.h>\n#include <sys/mman.h>\nint main(int n, char **argv)\n{\n    volatile long sum = 0;\n    (void)n;\n"
        "    volatile char *p = mmap(0, 1 << 20, PROT_READ, MAP_PRIVATE, open(argv[1], O_RDONLY), 0);\n"
        "    for (int i = 0; i < 10 << 20; i += 64)\n        sum += p[i % (1 << 20)];\n    return 0;\n}\n")
    (tmp_path / "table.bin").write_bytes(bytes(1 << 20))
    found = findings(cachegram, OPTIONS["full"], tmp_path / "p.db", [tmp_path / "a", tmp_path / "table.bin"])[0]
    assert (found["function"], found["line"], found["object"]) == ("main", 9, "the file table.bin")
    assert b" are in main (a.c:9), on the file table.bin. " in run([cachegram, "report", tmp_path / "p.db"]).out


@pytest.mark.parametrize("bad,good,size", [("columns", "rows", "32K"), ("fields", "packed", "256K")])
def test_remedy(bad, good, size, programs, cachegram, tmp_path):
    """The program with the remedy misses less: by the factor of the bytes that a line wastes."""
    ratio = {}
    for what in (bad, good):
        db = tmp_path / f"{what}.db"
        findings(cachegram, OPTIONS["full"], db, [programs["hot_layout.c"], what, 8 if bad == "columns" else 100])
        out = run([cachegram, "mrc", "--sizes", size, "--format", "csv", db]).out.decode().splitlines()
        ratio[what] = float(out[1].split(",")[1])
    assert ratio[good] < ratio[bad] / 4


def test_tables(programs, cachegram, tmp_path):
    """line_use and stride in the profile, of the column walk; a profile without them still has a report."""
    db = tmp_path / "p.db"
    findings(cachegram, OPTIONS["full"], db, [programs["hot_layout.c"], "columns", 4])
    with sqlite3.connect(db) as connection:
        function = "JOIN site s ON s.id = x.site JOIN frame f ON f.id = s.outer_frame AND f.function = 'by_columns'"
        lines, used = connection.execute(
            f"SELECT sum(x.lines), sum(x.bytes) FROM line_use x {function} JOIN object o ON o.id = x.object "
            "WHERE o.name = 'matrix'").fetchone()
        assert lines > 10000 and used == pytest.approx(8 * lines, rel=0.01)
        stride, refs, same = connection.execute(
            f"SELECT x.bytes, x.refs, x.same FROM stride x {function} ORDER BY x.refs DESC").fetchone()
        assert stride == 8192 and refs > 10000 and same > 0.95 * refs
        text = run([cachegram, "hotspots", "--size", "32K", "--by", "line", db]).out.decode().splitlines()
        # 12.5%, or a little more where neighbours are used by chance.
        assert "refs  used    stride  line" in text[3] and re.search("   1[23]%      8192  by_columns", text[4])
        connection.execute("DROP TABLE line_use")
        connection.execute("DROP TABLE stride")
    first = json.loads(run([cachegram, "report", "--format", "json", db]).out)["findings"][0]
    assert (first["function"], first["remedy"], first["used_bytes_per_line"]) == ("by_columns", "block", None)
    assert run([cachegram, "hotspots", "--size", "32K", "--by", "line", db]).out.decode().splitlines()[3].endswith("refs  line")


def on_terminal(argv, width, folder):
    """Standard output of a command that has a terminal of that width."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("4H", 24, width, 0, 0))
    # The terminal stays open on this side and the end is marked: some kernels lose what was written last before it is closed.
    marked = ["sh", "-c", '"$@"; status=$?; echo "it ended"; exit $status', "sh", *argv]
    with subprocess.Popen(marked, stdout=its, cwd=folder) as command, open(ours, "rb", buffering=0) as output:
        text = b""
        while not text.endswith(b"it ended\r\n"):
            text += output.read(4096)
    os.close(its)
    assert command.returncode == 0
    return text.decode().removesuffix("it ended\r\n").replace("\r\n", "\n")


def test_the_readme(programs, cachegram, tmp_path):
    """Its example prints what it says: the line, the object, the cause, the remedy, and the effect of the remedy."""
    readme = (ROOT / "README.md").read_text()
    section = " ".join(readme.split("## From misses to", 1)[1].split("\n## ", 1)[0].split())
    program = programs["hot_layout.c"]
    sizes = r"\d+% of the misses in a cache of 32K \(a common L1\) and \d+% at 1M \(a common L2\) are in "
    for argv in re.findall(r"^    \$ cachegram (record .*)$", readme, re.M):
        if "./layout" in argv:
            assert run([cachegram, *argv.replace("./layout", str(program)).split()], cwd=tmp_path).status == 0
    report = run([cachegram, "report"], cwd=tmp_path).out.decode()
    finding = next(line for line in report.splitlines() if "of the misses in a cache of 32K" in line)
    # On a terminal, sentences are broken between words.
    shown = on_terminal([cachegram, "report", "--color=never"], 60, tmp_path).split("\n\n")[0].splitlines()
    assert " ".join(shown) == " ".join(report.split("\n\n")[0].split()) and 50 < max(map(len, shown)) <= 60
    for text in (section, finding):
        assert re.search(sizes + rf"by_columns \(hot_layout\.c:{marked_line('hot_layout.c', 'columns')}\), on matrix\.", text)
    assert finding.split(", on matrix.")[1].split("Each step")[1] in section
    rows = run([cachegram, "causes", "--size", "32K"], cwd=tmp_path).out.decode().splitlines()
    first = next(i for i, row in enumerate(rows) if "evicted by" in row)
    assert " ".join(rows[first].split()) in section
    for row, evictor in zip(rows[first + 1:], ("matrix", "(cold)")):
        share, victim, other = row.split()[:3]
        assert (victim, other) == ("matrix", evictor) and f"matrix {evictor}" in section
    change = run([cachegram, "diff", "--sizes", "32K", "cachegram.db", "after.db"], cwd=tmp_path).out.decode()
    before, after = map(float, re.search(r"32K +([\d.]+)% +([\d.]+)%.*fewer misses", change).groups())
    printed = list(map(float, re.search(r"32K ([\d.]+)% ([\d.]+)%.*fewer misses", section).groups()))
    assert [before, after] == pytest.approx(printed, abs=1)


def test_more_than_any_cache_holds(cachegram, tmp_path):
    """System calls are many, so that no watched line is seen to the end: whether memory is new each time is not known, but
    caches hold none of it."""
    compile_text(tmp_path / "leak.c",
        "#include <stdlib.h>\n#include <unistd.h>\nstatic long small[1024];\n"
        "__attribute__((noipa)) static void fill(long *p, long n) { for (long i = 0; i < n; i++) p[i] = i; }\n"
        "__attribute__((noipa)) static long other(void) { long s = 0; for (int i = 0; i < 4000; i++) s += small[i & 1023]++; return s; }\n"
        "int main(void) { long s = 0; for (int i = 0; i < 60000; i++) { fill(malloc(4000), 500); s += other();\n"
        "for (int k = 0; k < 5; k++) s += getppid(); } return s == 1; }\n", "-O2", "-g")
    db = tmp_path / "p.db"
    first = findings(cachegram, BURST, db, [tmp_path / "leak"])[0]
    assert (first["function"], first["line"], first["gone_at_bytes"]) == ("fill", 4, None)
    assert first["remedy"] == "stream", first
    words = "Not even a cache of [0-9]+[KM] would hold" if first["cold_share"] is None else "never touched before"
    assert re.search(f"are in fill .*{words}", run([cachegram, "report", db]).out.decode())
