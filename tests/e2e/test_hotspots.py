# SPDX-License-Identifier: Apache-2.0
"""Who misses: programs whose misses are all in one place, named by function and line in the first place.

Nothing here depends on how many bursts a budget pays for: they come every 2 ms of CPU time.
"""
import csv
import io
import json
import math
import pathlib
import re
import shutil
import sqlite3
import subprocess

import pytest

from conftest import BURST, FULL, ROOT, TARGETS, build_target, compile_text, run, run_keys
from record_command import parts, record_command

# Program, its argument, function as compiled, function of the line (inlined or the same).
PLANTED = {
    "hot_matrix": ("30", "by_columns", "by_columns"),
    "hot_list": ("150", "follow", "follow"),  # of which few watched lines are touched again, on a busy machine
    "hot_hash": ("80", "look_up", "look_up"),
    "hot_inlined": ("30", "grid::Solver<double>::sum_columns", "grid::Matrix<double>::at"),
}


def source_of(name):
    return next(path for path in (TARGETS / f"{name}.c", TARGETS / f"{name}.cpp") if path.exists())


def marked_line(name, mark):
    """Number of the line of its source that has the comment."""
    lines = source_of(name).read_text().splitlines()
    found = [i + 1 for i, line in enumerate(lines) if line.rstrip(" */").endswith(mark) and "//" in line or f"/* {mark} */" in line]
    assert len(found) == 1
    return found[0]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hot")
    return {name: build_target(source_of(name), folder) for name in PLANTED}


def hotspots(cachegram, db, *options):
    result = run([cachegram, "hotspots", "--format", "csv", *options, db])
    assert result.status == 0, result.err
    return list(csv.DictReader(io.StringIO(result.out.decode())))


@pytest.fixture(scope="module")
def profiles(built, cachegram, tmp_path_factory):
    """One recording of each program."""
    folder = tmp_path_factory.mktemp("hot_profiles")
    made = {}
    for name, program in built.items():
        made[name] = folder / f"{name}.db"
        result = run([cachegram, "record", *BURST, "-o", made[name], "--", program, PLANTED[name][0]])
        assert result.status == 0, result.err
    return made


INLINED = """
#include <stdlib.h>
static __attribute__((always_inline)) inline long walk(const long *at, long n)
{
    long sum = 0;
    for (long i = 0; i < n; i += 8) sum += *(const volatile long *)(at + i);
    return sum;
}
static __attribute__((always_inline)) inline long twice(const long *at, long n) { return walk(at, n) + walk(at, n); }
__attribute__((noinline)) long small(const long *at) { return twice(at, 2048); } /* 16 KB */
__attribute__((noinline)) long large(const long *at) { return walk(at, 65536); } /* 512 KB */
int main(void)
{
    long *memory = calloc(65536, sizeof *memory), sum = 0;
    for (int i = 0; i < 100; i++) {
        for (int k = 0; k < 16; k++) sum += small(memory);
        sum += large(memory);
    }
    return sum != 0;
}
"""


def test_curve_of_an_inlined_function(cachegram, tmp_path):
    """Of a function that is nowhere compiled by itself: of its lines, in all functions that have them."""
    (tmp_path / "inlined.c").write_text(INLINED)
    subprocess.run(["gcc", "-O2", "-g", "-o", tmp_path / "inlined", tmp_path / "inlined.c"], check=True)
    db = tmp_path / "p.db"
    assert run([cachegram, "record", "--mode", "full", "-o", db, "--", tmp_path / "inlined"]).status == 0

    def ratio(function, size="128K"):
        got = run([cachegram, "mrc", "--function", function, "--sizes", size, "--format", "csv", db])
        assert got.status == 0, got.err
        return float(got.out.decode().splitlines()[1].split(",")[1])
    assert ratio("large") == pytest.approx(1 - 16 / 512, abs=0.005)  # small has touched the first 16 KB
    assert ratio("small") < 0.1  # the first of 32 walks after each large one
    # Half of walk's references are the large ones.
    assert ratio("walk") == pytest.approx((ratio("small") * 16 * 2 * 256 + ratio("large") * 8192) / (16 * 2 * 256 + 8192), rel=0.02)
    assert ratio("twice") == pytest.approx(ratio("small"), rel=0.05)
    assert ratio("walk", "1M") < 0.02
    missing = run([cachegram, "mrc", "--function", "walks", db])
    assert missing.status == 1 and b"holds no references of that function" in missing.err


@pytest.mark.parametrize("name", PLANTED)
def test_planted(name, profiles, cachegram):
    _, function, inner = PLANTED[name]
    rows = hotspots(cachegram, profiles[name], "--size", "32K")
    assert rows[0]["function"] == function
    assert float(rows[0]["miss_share"]) > 0.6
    assert rows[0]["enough_samples"] == "1"
    assert float(rows[0]["miss_share_low"]) <= float(rows[0]["miss_share"]) <= float(rows[0]["miss_share_high"])
    assert sum(float(row["miss_share"]) for row in rows) == pytest.approx(1, abs=1e-6)
    assert sum(float(row["refs_share"]) for row in rows) == pytest.approx(1, abs=1e-6)
    lines = hotspots(cachegram, profiles[name], "--size", "32K", "--by", "line")
    assert (lines[0]["function"], lines[0]["line"]) == (inner, str(marked_line(name, "misses")))
    assert lines[0]["file"].endswith(source_of(name).name)
    if inner != function:
        assert lines[0]["inlined_into"] == f"{function} {source_of(name).name}:{marked_line(name, 'inlined')}"
    modules = hotspots(cachegram, profiles[name], "--size", "32K", "--by", "module")
    assert modules[0]["module"].endswith("/" + name)


def test_full_mode_counts_exactly(built, cachegram, tmp_path):
    """The column walk touches each of its lines 1024 lines after the last time: 64 KB. The row walk misses in one of 8."""
    db = tmp_path / "full.db"
    assert run([cachegram, "record", *FULL, "-o", db, "--", built["hot_matrix"], "1"]).status == 0
    rows = {row["function"]: row for row in hotspots(cachegram, db, "--size", "32K")}
    n = 1024 * 1024
    # Both functions are vectorised or not as the compiler likes; what misses does not depend on it.
    recorded = int(rows["by_columns"]["recorded_refs"])
    assert recorded == pytest.approx(n, rel=0.01)
    assert float(rows["by_columns"]["miss_ratio"]) == pytest.approx(1, abs=0.001)
    misses = float(rows["by_rows"]["miss_ratio"]) * int(rows["by_rows"]["recorded_refs"])
    assert misses == pytest.approx(n / 8, rel=0.01)
    # In 128 KB a column's lines stay until the next one.
    rows = {row["function"]: row for row in hotspots(cachegram, db, "--size", "128K")}
    assert float(rows["by_columns"]["miss_ratio"]) == pytest.approx(1 / 8, abs=0.001)
    # All sites together are the curve.
    shown = run([cachegram, "mrc", "--format", "csv", "--sizes", "32K", db]).out.decode().splitlines()[1].split(",")
    data = json.loads(run([cachegram, "hotspots", "--format", "json", "--size", "32K", db]).out)
    assert data["miss_ratio"] == pytest.approx(float(shown[1]), abs=1e-9)
    assert sum(row["miss_share"] for row in data["rows"]) == pytest.approx(1)
    # A reference that straddles two lines is one reference and two touches; each output names what it counts.
    keys = run_keys(db)
    assert f"from all {keys['touches']} touches of lines;" in run([cachegram, "hotspots", db]).out.decode()
    assert f"from all {keys['references']} references\n" in run([cachegram, "mrc", db]).out.decode()
    assert int(keys["references"]) < int(keys["touches"])


def test_bursts_add_up_to_the_curve(profiles, cachegram):
    db = profiles["hot_hash"]
    for size in ("32K", "1M"):
        curve = run([cachegram, "mrc", "--format", "csv", "--sizes", size, db]).out.decode().splitlines()[1].split(",")
        data = json.loads(run([cachegram, "hotspots", "--format", "json", "--size", size, db]).out)
        if curve[1]:
            # Blocks are counted whole, also the one in which a burst ended.
            assert data["miss_ratio"] == pytest.approx(float(curve[1]), rel=1e-3)


@pytest.mark.parametrize("mode", [FULL, BURST], ids=["full", "bursts"])
def test_any_size(mode, cachegram, tmp_path):
    """Code is counted by half octaves of distances; between their edges, too, all of it misses as the curve says: all
    distances are 1200 lines, which is 75 KB."""
    program = build_target(TARGETS / "cycle.c", tmp_path)
    db = tmp_path / "p.db"
    rounds = "500" if mode is FULL else "50000"
    assert run([cachegram, "record", *mode, "-o", db, "--", program, "1200", rounds]).status == 0
    for size, least, most in (("70K", 0.5, 1), ("80K", 0, 0.1)):
        curve = run([cachegram, "mrc", "--format", "csv", "--sizes", size, db]).out.decode().splitlines()[1].split(",")
        data = json.loads(run([cachegram, "hotspots", "--format", "json", "--size", size, db]).out)
        assert least <= data["miss_ratio"] <= most
        assert data["miss_ratio"] == pytest.approx(float(curve[1]), abs=1e-3)


def test_watched_lines_have_sites(profiles):
    """The list is larger than a burst's reach: that its lines are touched again is seen by watching them only."""
    with sqlite3.connect(f"file:{profiles['hot_list']}?mode=ro", uri=True) as con:
        kinds = con.execute("select distinct o.kind from watch w join site s on s.id = w.site join frame f on f.id = s.outer_frame"
                            " join object o on o.id = w.object where f.function = 'follow'").fetchall()
        rows = con.execute("select w.pc, m.start_addr, m.file_offset, s.offset, i.path, m.path, f.function from watch w"
                           " join burst b on b.id = w.burst join site s on s.id = w.site join image i on i.id = s.image"
                           " join frame f on f.id = s.outer_frame"
                           " join module m on m.process = b.process and w.pc >= m.start_addr and w.pc < m.end_addr"
                           " where w.outcome = 'reused'").fetchall()
    assert rows
    for pc, start, file_offset, offset, image, module, _ in rows:
        assert (pc - start + file_offset, module) == (offset, image)
    assert "follow" in [row[-1] for row in rows]
    assert kinds == [("block",)]  # the nodes are one allocation


@pytest.fixture(scope="module")
def stripped(built, tmp_path_factory):
    """Three ways of hiding the names: in a file of their own, only functions known, nothing known."""
    folder = tmp_path_factory.mktemp("stripped")
    made = {}
    for way in ("separate", "symbols", "nothing"):
        made[way] = folder / way
        shutil.copy(built["hot_matrix"], made[way])
    subprocess.run(["objcopy", "--only-keep-debug", made["separate"], folder / "separate.debug"], check=True)
    subprocess.run(["strip", made["separate"]], check=True)
    subprocess.run(["objcopy", f"--add-gnu-debuglink={folder / 'separate.debug'}", made["separate"]], check=True)
    subprocess.run(["strip", "--strip-debug", made["symbols"]], check=True)
    subprocess.run(["strip", made["nothing"]], check=True)
    return made


@pytest.mark.parametrize("way", ["separate", "symbols", "nothing"])
def test_debug_information(way, stripped, built, cachegram, tmp_path):
    db = tmp_path / "p.db"
    assert run([cachegram, "record", *BURST, "-o", db, "--", stripped[way], "30"]).status == 0
    function = hotspots(cachegram, db, "--size", "32K")[0]
    line = hotspots(cachegram, db, "--size", "32K", "--by", "line")[0]
    insn = hotspots(cachegram, db, "--size", "32K", "--by", "insn")[0]
    assert function["module"] == line["module"] == str(stripped[way])
    assert int(insn["offset"]) > 0
    if way == "separate":
        assert (line["function"], line["line"]) == ("by_columns", str(marked_line("hot_matrix", "misses")))
    elif way == "symbols":
        assert function["function"] == "by_columns" and line["file"] == "" and line["line"] == ""
    else:  # where the function begins
        symbols = subprocess.run(["nm", built["hot_matrix"]], check=True, capture_output=True, text=True).stdout
        start = next(int(row.split()[0], 16) for row in symbols.splitlines() if row.endswith(" by_columns"))
        assert function["function"] == f"nothing+{start:#x}"
    text = run([cachegram, "hotspots", "--size", "32K", db]).out
    assert (b"are functions of files without symbols: compile with -g" in text) == (way == "nothing")


def test_readable_elsewhere(built, cachegram, tmp_path):
    """Names are in the profile: the program is not needed any more."""
    program = tmp_path / "program"
    shutil.copy(built["hot_list"], program)
    assert run([cachegram, "record", *BURST, "-o", tmp_path / "p.db", "--", program, "30"]).status == 0
    program.unlink()
    assert hotspots(cachegram, tmp_path / "p.db", "--size", "32K")[0]["function"] == "follow"


def test_hostile_names(built, cachegram, tmp_path):
    """A file whose name would steer a terminal, or is no UTF-8."""
    program = tmp_path.joinpath("a\x1b[31m\n,\"b").as_posix().encode() + b"\xff\xc2\x9b"
    shutil.copy(built["hot_matrix"], program)
    subprocess.run(["strip", program], check=True)
    db = tmp_path / "p.db"
    result = run([cachegram, "record", *BURST, "-o", db, "--", program.decode(errors="surrogateescape"), "20"])
    assert result.status == 0
    for options in ([], ["--by", "line"], ["--by", "module"], ["--by", "insn"]):
        for form in ("text", "csv", "json"):
            out = run([cachegram, "hotspots", "--format", form, *options, db]).out
            text = out.decode()  # valid UTF-8
            assert not any(ord(c) < 32 and c != "\n" or 0x7f <= ord(c) < 0xa0 for c in text)
            if form == "json":
                json.loads(text)
            if form == "csv":
                rows = list(csv.DictReader(io.StringIO(text)))
                assert all(len(row) == 28 and None not in row for row in rows)


def test_csv_columns(profiles, cachegram):
    """Those that --help and the manual list."""
    names = run([cachegram, "hotspots", "--format", "csv", "--call-graph", profiles["hot_matrix"]]).out.decode().split("\n")[0]
    listed = re.sub(r"\s", "", run([cachegram, "hotspots", "--help"]).out.decode())
    manual = (ROOT / "man" / "cachegram-hotspots.1.in").read_text()
    assert f"CSVcolumns:{names.removesuffix(',call_path,call_share')}." in listed
    assert f".Ql {names.removesuffix(',call_path,call_share')} ." in manual


ONE_NAME = {
    "one.c": "static __attribute__((noinline)) long walk(const long *p, long n)\n{\n    long sum = 0;\n"
             "    for (long i = 0; i < n; i += 8)\n        sum += p[i];\n    return sum;\n}\n"
             "__attribute__((noinline)) long one(const long *p, long n) { return walk(p, n) + p[0]; }\n",
    "two.c": "static __attribute__((noinline)) long walk(const long *p, long n)\n{\n    long sum = 0;\n"
             "    for (long i = 0; i < n; i++)\n        sum += p[i & 255];\n    return sum;\n}\n"
             "__attribute__((noinline)) long two(const long *p, long n) { return walk(p, n) + p[0]; }\n",
    "main.c": "#include <stdio.h>\nlong one(const long *p, long n), two(const long *p, long n);\nstatic long data[1 << 18];\n"
              "int main(void)\n{\n    long sum = 0;\n    for (int i = 0; i < 10; i++)\n"
              "        sum += one(data, 1 << 18) + two(data, 1 << 15);\n    printf(\"%ld\\n\", sum);\n}\n",
    "parts.c": "#include <stdio.h>\nstatic long data[1 << 18];\n__attribute__((noinline)) long parse(const long *p, long n)\n{\n"
               "    long sum = p[0];\n#line 7 \"parts.y\"\n    for (long i = 0; i < n; i += 8)\n        sum += p[i];\n    return sum;\n"
               "#line 10 \"parts.c\"\n}\nint main(void) { printf(\"%ld\\n\", parse(data, 1 << 18)); }\n",
}


def test_functions_of_one_name(cachegram, tmp_path):
    """Static functions of two files are two rows, with the files' names; a function with lines of two files is one."""
    for name, text in ONE_NAME.items():
        (tmp_path / name).write_text(text)
    for program, sources in (("walks", ["one.c", "two.c", "main.c"]), ("parts", ["parts.c"])):
        subprocess.run(["gcc", "-O2", "-g", "-o", program, *sources], cwd=tmp_path, check=True)
        assert run([cachegram, "record", *FULL, "-o", tmp_path / f"{program}.db", "--", tmp_path / program]).status == 0
    db, size = tmp_path / "walks.db", ("--size", "32K")
    found = {row["function"]: row for row in hotspots(cachegram, db, *size)}
    assert float(found["walk (one.c)"]["miss_ratio"]) > 0.99 and float(found["walk (two.c)"]["miss_ratio"]) < 0.01
    assert "walk" not in found and len(found) == len(hotspots(cachegram, db, *size))
    ratio = lambda name: float(run([cachegram, "mrc", "--function", name, "--sizes", "32K", "--format", "csv", db]).out.split(b",")[-3])
    assert ratio("walk (two.c)") < 0.01 < 0.4 < ratio("walk") < 0.6
    changes = run([cachegram, "diff", "--by", "function", *size, "--format", "csv", db, db]).out.decode()
    assert "\nwalk (one.c)," in changes and all(float(row["delta"]) == 0 for row in csv.DictReader(io.StringIO(changes)))
    lines = list(csv.DictReader(io.StringIO(run([cachegram, "annotate", *size, "--format", "csv", db]).out.decode())))
    assert sum(float(row["refs_share"]) for row in lines) < 1 + 1e-6
    names = [row["function"] for row in hotspots(cachegram, tmp_path / "parts.db", *size)]
    assert names.count("parse") == 1 and not any(name.startswith("parse (") for name in names)


def test_neighbours_of_one_name(cachegram, tmp_path):
    """Static functions of two files are two rows even if no code is known between them: what calls them is a jump."""
    (tmp_path / "one.c").write_text(ONE_NAME["one.c"].replace(" + p[0]", ""))
    (tmp_path / "two.c").write_text(ONE_NAME["two.c"].replace(" + p[0]", ""))
    (tmp_path / "main.c").write_text(ONE_NAME["main.c"])
    subprocess.run(["gcc", "-O2", "-g", "-o", "walks", "one.c", "two.c", "main.c"], cwd=tmp_path, check=True)
    db = tmp_path / "walks.db"
    assert run([cachegram, "record", *FULL, "-o", db, "--", tmp_path / "walks"]).status == 0
    found = {row["function"]: row for row in hotspots(cachegram, db, "--size", "32K")}
    assert "walk" not in found and "one" not in found
    assert float(found["walk (one.c)"]["miss_ratio"]) > 0.99 and float(found["walk (two.c)"]["miss_ratio"]) < 0.01


def test_lambdas(cachegram, tmp_path):
    """Each is a function of its own, with the name of its symbol: debug information calls all of them 'operator()'."""
    db = tmp_path / "lambdas.db"
    program = build_target(TARGETS / "hot_lambdas.cpp", tmp_path)
    assert run([cachegram, "record", *FULL, "-o", db, "--", program]).status == 0
    found = {row["function"]: float(row["miss_ratio"]) for row in hotspots(cachegram, db, "--size", "32K") if "operator()" in row["function"]}
    all_of_it, few = (f"main::{{lambda(std::vector<long, std::allocator<long> > const&)#{n}}}::operator()" for n in (1, 2))
    assert set(found) == {all_of_it, few} and found[all_of_it] > 0.99 and found[few] < 0.01
    annotated = run([cachegram, "annotate", "--size", "32K", db, all_of_it]).out.decode()
    assert re.search(r"100\.000%.* sum \+= from\[i\];", annotated) and "* (long)k" not in annotated


LONG_NAMES = """
#include <map>
#include <string>
#include <vector>
using table = std::map<std::string, std::vector<std::string>>;
template <typename T> __attribute__((noipa)) long look_up(const T &t, long n)
{
    long sum = 0;
    for (long i = 0; i < n; i++)
        sum += t.find("a key in the table " + std::to_string(i * 7919 % n))->second.size();
    return sum;
}
int main()
{
    table t;
    for (long i = 0; i < 20000; i++)
        t["a key in the table " + std::to_string(i)];
    return look_up(t, 20000) != 0;
}
"""


def test_long_names_in_text(cachegram, tmp_path):
    """Without arguments of templates, and what a library inlines; other formats have both."""
    compile_text(tmp_path / "x.cpp", LONG_NAMES, "-O2", "-g")
    db = tmp_path / "p.db"
    assert run([cachegram, "record", *FULL, "-o", db, "--", tmp_path / "x"]).status == 0
    name = next(row["function"] for row in hotspots(cachegram, db) if row["function"].startswith("look_up<"))
    assert len(name) > 200 and "std::allocator<char>" in name
    short = re.search(r"  (look_up<\S.*)  \(x\)\n", run([cachegram, "hotspots", db]).out.decode())[1]
    assert "<...>" in short and len(short) <= 90
    assert any(row["inlined_into"].count(" < ") > 1 for row in hotspots(cachegram, db, "--by", "line", "--size", "32K"))
    text = run([cachegram, "hotspots", "--by", "line", "--size", "32K", db]).out.decode()
    assert f" < ... < {short} x.cpp:10  (x)\n" in text


def test_process_without_bursts(built, cachegram, tmp_path):
    """Of a process that was over before the first burst, the misses of all rows together are all of its misses."""
    db = tmp_path / "shell.db"
    command = ["sh", "-c", f"sh -c 'echo {'$((1+1)) ' * 200}'; exec {built['hot_matrix']} 60"]
    shell = pathlib.Path("/bin/sh").resolve().name
    assert run([*record_command(cachegram, db, [*parts(1000000, 1), "--allowance", "200ms"]), "--", *command]).status == 0
    for by in ("function", "object"):
        rows = hotspots(cachegram, db, "--size", "32K", "--by", by, "--comm", shell)
        assert sum(float(row["miss_share"]) for row in rows) == pytest.approx(1, abs=1e-6)
        assert sum(float(row["refs_share"]) for row in rows) == pytest.approx(1, abs=1e-6)
    # Which of the matrix' two functions comes first is chance: few bursts, and they take milliseconds in turn.
    rows = hotspots(cachegram, db, "--size", "32K")
    assert rows[0]["function"] in ("by_columns", "by_rows") and any(row["module"].endswith(shell) for row in rows)


def test_rows_of_a_table_of_full_mode(cachegram, built, tmp_path):
    """Of some data, no reference was sampled: its ratio is not known, and it comes last."""
    db = tmp_path / "full.db"
    assert run([cachegram, "record", "--mode", "full", "-o", db, "--", built["hot_matrix"], "1"]).status == 0
    for order in [], ["--sort", "ratio"]:
        ratios = [row["miss_ratio"] for row in hotspots(cachegram, db, "--by", "object", *order)]
        known = [float(ratio) for ratio in ratios if ratio]
        assert 4 < len(known) < len(ratios) - 4
        if order:
            assert ratios[len(known):] == [""] * (len(ratios) - len(known)) and known == sorted(known, reverse=True)
    # What --dso does not ask for is no row that a larger --limit would show.
    of_file = len(hotspots(cachegram, db, "--dso", "hot_matrix"))
    assert 1 < of_file < len(hotspots(cachegram, db))
    for limit, left_out in (0, []), (1, [str(of_file - 1)]):
        done = run([cachegram, "hotspots", "--dso", "hot_matrix", "--limit", str(limit), db])
        assert re.findall(r"^and (\d+) more", done.out.decode(), re.M) == left_out


def test_filters_and_order(profiles, cachegram):
    db = profiles["hot_matrix"]
    rows = hotspots(cachegram, db, "--size", "32K", "--sort", "refs")
    shares = [float(row["refs_share"]) for row in rows]
    assert shares == sorted(shares, reverse=True)
    assert len(hotspots(cachegram, db, "--limit", "1")) == 1
    assert all(float(row["miss_share"]) >= 0.05 for row in hotspots(cachegram, db, "--size", "32K", "--percent-limit", "5"))
    # As with --comm: rows are left out only of what is there.
    none = run([cachegram, "hotspots", "--dso", "libnone.so", db])
    assert none.status == 1 and none.out == b"" and b"holds no code of the file 'libnone.so'" in none.err
    assert hotspots(cachegram, db, "--dso", "hot_matrix", "--percent-limit", "100") == []
    assert {row["module"].rsplit("/", 1)[1] for row in hotspots(cachegram, db, "--dso", "hot_matrix")} == {"hot_matrix"}
    assert hotspots(cachegram, db, "--comm", "hot_matrix")[0]["function"] == hotspots(cachegram, db)[0]["function"]
    other = run([cachegram, "hotspots", "--comm", "other", db])
    assert (other.status, other.err) == (1, f"cachegram: no process in the profile '{db}' ran 'other'; it has processes of hot_matrix\n".encode())
    with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as con:
        (tid,) = con.execute("select tid from burst limit 1").fetchone()
    assert hotspots(cachegram, db, "--tid", str(tid)) == hotspots(cachegram, db)
    assert run([cachegram, "hotspots", "--tid", "1", db]).status == 1


BIG_AND_SMALL = """
#include <stdlib.h>
#include <pthread.h>
static long *memory[2];
__attribute__((noinline)) static void sweep(long *p, long bytes, long n)
{
    for (volatile long i = 0; i < n; i++)
        for (long k = 0; k < bytes; k += 64)
            p[k / 8]++;
}
static void *run(void *big)
{
    big ? sweep(memory[1], 8 << 20, 500) : sweep(memory[0], 16384, 500 * 4096);
    return NULL;
}
int main(int argc, char **argv)
{
    pthread_t thread[2];
    int only = argc > 1 ? atoi(argv[1]) : -1;
    for (long i = 0; i < 2; i++)
        memory[i] = calloc(1, 8 << 20);
    for (long i = 0; i < 2; i++)
        if (only < 0 || only == i)
            pthread_create(&thread[i], NULL, run, (void *)i);
    for (long i = 0; i < 2; i++)
        if (only < 0 || only == i)
            pthread_join(thread[i], NULL);
    return 0;
}
"""


@pytest.mark.parametrize("what", ["thread", "process"])
def test_a_part_by_itself(what, cachegram, tmp_path):
    """Misses beyond bursts are those of the selected bursts, not of others that miss more often."""
    (tmp_path / "x.c").write_text(BIG_AND_SMALL)
    subprocess.run(["gcc", "-O1", "-pthread", "-o", tmp_path / "small", tmp_path / "x.c"], check=True)
    shutil.copy(tmp_path / "small", tmp_path / "big")
    db = tmp_path / "p.db"
    command = [tmp_path / "small"] if what == "thread" else ["sh", "-c", f"{tmp_path}/small 0; {tmp_path}/big 1"]
    assert run([cachegram, "record", *BURST, "-o", db, "--", *command]).status == 0
    parts = [["--comm", "small"], ["--comm", "big"]]
    if what == "thread":
        with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as con:
            parts = [["--tid", str(tid)] for (tid,) in con.execute("select tid from burst group by tid order by avg(lines)")]
    low, high = (sum(float(row["misses_per_1000_refs"]) for row in hotspots(cachegram, db, "--size", "32K", *part))
                 for part in parts)
    assert low < 0.5 and high > 495  # of a load and a store, one misses


# Levels of 16K and 1M: a miss costs 9 and 190 cycles more than a hit.
MACHINE = {"name": "two levels", "cpu": "", "source": "made up", "cores": 1, "line_bytes": 64,
           "levels": [{"size_bytes": 16384, "latency_cycles": 4}, {"size_bytes": 1048576, "latency_cycles": 13}],
           "memory": {"latency_cycles": 203}}


@pytest.mark.parametrize("by", ["function", "object", "function,object"])
def test_stall_is_of_all_levels(profiles, cachegram, tmp_path, by):
    db, machine = profiles["hot_hash"], tmp_path / "machine.json"
    machine.write_text(json.dumps(MACHINE))
    key = lambda row: (row["function"], row["object"], row["module"], row["object_module"], row["object_offset"])
    cost = {}
    for size, cycles in (("16K", 9), ("1M", 190)):
        for row in hotspots(cachegram, db, "--by", by, "--size", size):
            cost[key(row)] = cost.get(key(row), 0) + float(row["misses_per_1000_refs"]) * cycles
    rows = hotspots(cachegram, db, "--by", by, "--size", "64K", "--machine", str(machine), "--sort", "stall")
    for row in rows:
        assert float(row["stall_share"]) == pytest.approx(cost[key(row)] / sum(cost.values()), abs=1e-6), row
    assert [float(row["stall_share"]) for row in rows] == sorted((float(row["stall_share"]) for row in rows), reverse=True)
    assert float(rows[0]["stall_share"]) > 0.5
    assert run([cachegram, "hotspots", "--sort", "stall", db]).status == 2
    text = run([cachegram, "hotspots", "--machine", str(machine), db]).out
    assert b" stall " in text and b" stall " not in run([cachegram, "hotspots", db]).out
    machine.write_text(json.dumps({**MACHINE, "memory": {}}))
    lacking = run([cachegram, "hotspots", "--machine", str(machine), db])
    assert lacking.status == 1 and b"lacks the latency of memory" in lacking.err


def test_curve_of_a_function(profiles, built, cachegram, tmp_path):
    """At each size what hotspots prints at that size; of all functions together, the program's curve."""
    exact = tmp_path / "exact.db"
    assert run([cachegram, "record", *FULL, "-o", exact, "--", built["hot_hash"], "2"]).status == 0
    sizes = ["1K", "32K", "1M"]

    def curve(db, *options):
        result = run([cachegram, "mrc", "--sizes", ",".join(sizes), "--format", "csv", *options, db])
        assert result.status == 0, result.err
        return list(csv.DictReader(io.StringIO(result.out.decode())))

    for db in (exact, profiles["hot_hash"]):
        for options, by in ((["--function", "look_up"], "function"), (["--object", "table"], "object"),
                            (["--function", "look_up", "--object", "table"], "function,object")):
            for size, point in zip(sizes, curve(db, *options)):
                (row,) = [row for row in hotspots(cachegram, db, "--by", by, "--size", size)
                          if row["function"] in ("", "look_up") and row["object"] in ("", "table")]
                assert float(point["miss_ratio"]) == pytest.approx(float(row["miss_ratio"]), abs=1e-6)
                if row["miss_ratio_low"]:
                    assert float(point["ci_low"]) == pytest.approx(float(row["miss_ratio_low"]), abs=1e-6)
    for all_functions, whole in zip(curve(exact, "--function", "*"), curve(exact)):  # of near misses, a sample has code
        assert float(all_functions["miss_ratio"]) == pytest.approx(float(whole["miss_ratio"]), abs=5e-4)
    read = json.loads(run([cachegram, "mrc", "--function", "look_up", "--sizes", "512,1M", "--format", "json", exact]).out)
    assert read["function"] == "look_up" and read["points"][0]["miss_ratio"] is None
    assert 0 < read["selected_references"] < read["references"]
    assert b"by look_up: " in run([cachegram, "mrc", "--function", "look_up", exact]).out
    missing = run([cachegram, "mrc", "--function", "nosuch", exact])
    assert (missing.status, missing.out) == (1, b"") and b"holds no references of that function" in missing.err
    assert run([cachegram, "mrc", "--function", "x", "--ways", "4", exact]).status == 2


def test_text(profiles, cachegram):
    out = run([cachegram, "hotspots", "--size", "32K", "--by", "line", profiles["hot_matrix"]]).out.decode()
    lines = out.splitlines()
    assert lines[0] == "Misses by line: LRU cache of 32K, 64-byte lines"
    assert lines[1].startswith("from ") and "miss ratio" in lines[1]
    assert lines[4].endswith(f"by_columns hot_matrix.c:{marked_line('hot_matrix', 'misses')}  (hot_matrix)")


def test_advice(profiles, cachegram):
    """How many bursts would make the largest share accurate is said unless it is."""
    wide = 0
    for db in profiles.values():
        for size in ("32K", "1M", "16M"):
            row = hotspots(cachegram, db, "--size", size)[0]
            out = run([cachegram, "hotspots", "--size", size, db]).out.decode()
            times = 0
            if row["enough_samples"] == "1":
                share, low, high = (float(row[key]) for key in ("miss_share", "miss_share_low", "miss_share_high"))
                times = ((high - low) / 2 / (0.1 * share)) ** 2
            assert ("To know more" in out) == (row["enough_samples"] == "0")
            assert ("times as many bursts" in out) == (times >= 2), (row, times)
            wide += times >= 2 or row["enough_samples"] == "0"
    assert wide > 0


def test_first_touches_of_tails(profiles, cachegram):
    """Codes 132 to 251 of burst_site (docs/format.md)."""
    def numbers(blob):
        value = shift = 0
        for byte in blob:
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                yield value
                value = shift = 0

    entries = outcomes = 0
    with sqlite3.connect(f"file:{profiles['hot_hash']}?mode=ro", uri=True) as con:
        for (counts,) in con.execute("select counts from burst_site where burst > 0"):
            number = numbers(counts)
            for _ in number:  # a block
                next(number)
                for _ in range(next(number)):
                    _, code, _, count = (next(number) for _ in range(4))
                    entries += count if 132 <= code < 172 else 0
                    outcomes += count if 172 <= code < 252 else 0
    assert entries == outcomes > 1000


def test_collapsed(profiles, cachegram):
    """Frames from the outermost to the innermost, and a number."""
    options = ["hotspots", "--size", "32K", "--format", "collapsed"]
    out = run([cachegram, *options, profiles["hot_inlined"]]).out.decode()
    stacks = {stack: int(n) for stack, n in (line.rsplit(" ", 1) for line in out.splitlines())}
    line = marked_line("hot_inlined", "misses")
    worst = max(stacks, key=stacks.get)
    assert worst == f"hot_inlined;{PLANTED['hot_inlined'][1]};{PLANTED['hot_inlined'][2]};hot_inlined.cpp:{line}"
    assert sum(stacks.values()) == pytest.approx(1e6, abs=len(stacks))
    out = run([cachegram, *options, "--by", "function", profiles["hot_inlined"]]).out.decode()
    assert out.startswith(f"hot_inlined;{PLANTED['hot_inlined'][1]} ")


def test_finding_in_the_report(profiles, built, cachegram, tmp_path):
    """Where most of the misses are, if it is certain; nothing of a program that has no such place."""
    line = marked_line("hot_matrix", "misses")
    db = tmp_path / "p.db"
    assert run([cachegram, "record", *FULL, "-o", db, "--", built["hot_matrix"], "1"]).status == 0
    out = run([cachegram, "report", db]).out.decode()
    assert re.match(r"\d+\.\d+% of the references hit in a cache of ", out)
    assert re.search(rf"^[89]\d% of the misses in a cache of 32K \(a common L1\)( and \d+% at 1M \(a common L2\))? are in by_columns \(hot_matrix\.c:{line}\)", out, re.M)
    table = re.search(r"^Misses by function: LRU cache of (\S+), .*", out, re.M | re.S)
    assert f"  {hotspots(cachegram, db, '--size', table[1])[0]['function']}  (hot_matrix)\n" in table[0]
    data = json.loads(run([cachegram, "report", "--format", "json", db]).out)
    first = data["findings"][0]
    assert (first["size_bytes"], first["function"], first["line"]) == (32768, "by_columns", line)
    assert first["miss_share_low"] <= first["miss_share"] <= first["miss_share_high"]
    # Loads and stores in the same place miss too rarely to speak of.
    rare = tmp_path / "rare.db"
    with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as source, sqlite3.connect(rare) as con:
        source.backup(con)
        con.execute("delete from site_distance")
        con.execute("delete from burst_site")
    assert json.loads(run([cachegram, "report", "--format", "json", rare]).out)["findings"] == []


def test_total_of_a_difference(profiles, cachegram):
    """The interval of all misses is that of the miss ratio which hotspots prints, however few they are."""
    db = profiles["hot_matrix"]
    for size in ("32K", "1M", "64M"):
        text = run([cachegram, "hotspots", "--size", size, db]).out.decode()
        if "miss ratio not known (" in text:
            assert size == "64M"
            continue
        ratio, low, high = map(float, re.search(r"miss ratio (\S+)% \((\S+)% to (\S+)%\)", text).groups())
        total = json.loads(run([cachegram, "diff", "--by", "function", "--size", size, "--format", "json", db, db]).out)["total"]
        assert total["delta_high"] == -total["delta_low"] == pytest.approx(10 * math.hypot(ratio - low, high - ratio), abs=0.03)


def test_size_of_the_data(cachegram, tmp_path):
    """The cache in which the misses would be gone is not twice as large as the data."""
    source = tmp_path / "rounds.c"
    source.write_text("static char data[768 << 10];\nint main(void) { int sum = 0; for (volatile int r = 0; r < 30; r++)\n"
                      "for (int i = 0; i < 768 << 10; i += 64) sum += data[i]++; return sum & 64; }\n")
    subprocess.run(["gcc", "-O1", "-g", "-o", tmp_path / "rounds", source], check=True)
    db = tmp_path / "p.db"
    assert run([cachegram, "record", *FULL, "-o", db, "--", tmp_path / "rounds"]).status == 0
    assert json.loads(run([cachegram, "report", "--format", "json", db]).out)["findings"][0]["gone_at_bytes"] == 1 << 20
    assert b" Less than a tenth of those at 32K would remain in a cache of 1M." in run([cachegram, "report", db]).out


def test_long_name_in_the_report(cachegram, tmp_path):
    name = "a_name_" * 100
    source = tmp_path / "x.c"
    source.write_text(f"static char {name}[1 << 23];\n__attribute__((noipa)) int f_{name[:84]}(void) {{ int sum = 0; for (volatile int r = 0;\n"
                      f"r < 3; r++) for (int i = 0; i < 1 << 23; i += 64) sum += {name}[i]++; return sum & 64; }}\n"
                      f"int main(void) {{ return f_{name[:84]}(); }}\n")
    subprocess.run(["gcc", "-O1", "-g", "-o", tmp_path / "x", source], check=True)
    db = tmp_path / "p.db"
    assert run([cachegram, "record", *FULL, "-o", db, "--", tmp_path / "x"]).status == 0
    found = re.search(r", on ((?:a_name_)+\S*?)\. ", run([cachegram, "report", db]).out.decode() + " ")[1]
    assert found.endswith("...") and name.startswith(found[:-3]) and len(found) > 300
    row = next(line for line in run([cachegram, "report", db]).out.decode().splitlines() if "  f_a_name" in line)
    assert len(row) == 80 and row.endswith("...")


def test_finding_in_main(cachegram, tmp_path):
    """Who calls main() is no news: the report does not say so."""
    source = tmp_path / "all_in_main.c"
    source.write_text("static char data[1 << 23];\nint main(void) { int sum = 0; for (volatile int r = 0; r < 3; r++)\n"
                      "for (int i = 0; i < 1 << 23; i += 64) sum += data[i]++; return sum & 64; }\n")
    subprocess.run(["gcc", "-O1", "-g", "-o", tmp_path / "all_in_main", source], check=True)
    db = tmp_path / "p.db"
    assert run([cachegram, "record", *FULL, "-o", db, "--", tmp_path / "all_in_main"]).status == 0
    finding = json.loads(run([cachegram, "report", "--format", "json", db]).out)["findings"][0]
    assert finding["function"] == "main" and "caller" not in finding
    out = run([cachegram, "report", db]).out.decode()
    assert " are in main (all_in_main.c:3), on data." in out and "called by" not in out


@pytest.mark.parametrize("wrong", [["--by", "nonsense"], ["--size", "x"], ["--sort", "x"], ["--limit", "-1"],
                                   ["--percent-limit", "101"], ["--tid", "0"], ["--nonsense"], ["a", "b"]])
def test_wrong_usage(wrong, cachegram):
    result = run([cachegram, "hotspots", *wrong])
    assert (result.status, result.out) == (2, b"")
    assert result.err.count(b"\n") == 1


def test_documented_queries(profiles, cachegram, tmp_path):
    """Each query of docs/format.md finds rows in one of three profiles."""
    sharing = tmp_path / "sharing.db"
    program = build_target(TARGETS / "hot_sharing.c", tmp_path)
    assert run([cachegram, "record", *FULL, "-o", sharing, "--", program, "packed", "2000"]).status == 0
    text = re.search(r"```sql\n(.*?)```", (ROOT / "docs" / "format.md").read_text(), re.DOTALL).group(1)
    queries = [query for query in text.split(";") if query.strip()]
    assert len(queries) == 12
    for query in queries:
        rows = []
        for path in (profiles["hot_matrix"], profiles["hot_inlined"], sharing):
            with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as con:
                rows += con.execute(query).fetchall()
        assert rows, query


def test_diff_names_the_function_that_changed(built, cachegram, tmp_path):
    """The same program with 2 and with 6 sweeps over the columns: more misses there, and nowhere else as many."""
    made = []
    for sweeps in ("2", "6"):
        made.append(tmp_path / f"{sweeps}.db")
        program = tmp_path / f"matrix-{sweeps}"
        shutil.copy(built["hot_matrix"], program)
        result = run([cachegram, "record", *FULL, "-o", made[-1], "--", program, sweeps])
        assert result.status == 0, result.err
    result = run([cachegram, "diff", "--by", "function", "--size", "32K", "--format", "csv", *made])
    rows = list(csv.DictReader(io.StringIO(result.out.decode())))
    assert result.status == 0 and rows[0]["function"] == "by_columns" and rows[0]["module"].endswith("matrix-2")
    assert rows[0]["significant"] == "1" and float(rows[0]["delta"]) > 0
    for row, db in (("before", made[0]), ("after", made[1])):
        listed = {r["function"]: r for r in hotspots(cachegram, db, "--size", "32K")}
        assert float(rows[0][row]) == pytest.approx(float(listed["by_columns"]["misses_per_1000_refs"]), rel=1e-6)
    shown = run([cachegram, "diff", "--by", "function", "--size", "32K", "--limit", "1", *made]).out.decode()
    assert "by_columns  (matrix-2)" in shown and "more misses" in shown and "more functions changed less" in shown


def test_strings_by_object(cachegram, tmp_path):
    """A copy by one instruction touches few lines for its many references, which belong to it in pairs, too."""
    db = tmp_path / "p.db"
    program = build_target(TARGETS / "copies.c", tmp_path)
    assert run([cachegram, "record", "--allowance", "0", "--gap-us", "2000", "-o", db, "--", program, "10000"]).status == 0

    def refs_share(by, **columns):
        return sum(float(row["refs_share"]) for row in hotspots(cachegram, db, "--by", by, "--limit", "0")
                   if all(row[column] in values for column, values in columns.items()))
    share = refs_share("function", function=["copy"])
    assert share > 0.4
    assert refs_share("function,object", function=["copy"]) == pytest.approx(share, abs=0.03)
    assert refs_share("object", object=["from", "to"]) == pytest.approx(share, abs=0.03)
    # Bursts that have more such references than were counted between them.
    with sqlite3.connect(db) as con:
        con.execute("update burst set string_hits = 0")
    assert max(float(row["refs_share"]) for row in hotspots(cachegram, db, "--size", "32K")) <= 1
    listed = run([cachegram, "annotate", "--size", "32K", "--format", "csv", db, "copy"]).out.decode()
    shown = sum(float(row["refs_share"]) for row in csv.DictReader(io.StringIO(listed)))
    in_table, = [float(row["refs_share"]) for row in hotspots(cachegram, db, "--size", "32K") if row["function"] == "copy"]
    assert shown == pytest.approx(in_table, rel=1e-6)


def test_strings_of_a_part(profiles, cachegram, tmp_path):
    """Elements of string instructions, as counted between bursts, are among the references of a thread and of a phase."""
    db = shutil.copy(profiles["hot_matrix"], tmp_path / "p.db")
    with sqlite3.connect(db) as con:
        con.execute("update burst set string_hits = 3")
        (tid,) = con.execute("select distinct tid from burst").fetchone()
        (phase,) = con.execute("select phase from time_window where kind = 'sampled' order by cpu_ns desc").fetchone()

    def ratios(options_of_hotspots, options_of_mrc):
        data = json.loads(run([cachegram, "hotspots", "--size", "32K", "--format", "json", *options_of_hotspots, db]).out)
        curve = json.loads(run([cachegram, "mrc", "--sizes", "32K", "--format", "json", *options_of_mrc, db]).out)
        return data["miss_ratio"], curve["points"][0]["miss_ratio"]
    whole, curve = ratios([], [])
    assert whole == pytest.approx(curve, rel=0.01)
    assert ratios(["--tid", str(tid)], ["--thread", str(tid)]) == pytest.approx((whole, whole), rel=0.01)
    shown, curve = ratios(["--phase", str(phase)], ["--phase", str(phase)])
    assert shown == pytest.approx(curve, rel=0.02)


def test_no_estimate(cachegram, tmp_path):
    """Where the curve has none, a table does not print one either: no line is followed beyond the bursts here."""
    db = tmp_path / "p.db"
    program = build_target(source_of("hot_matrix"), tmp_path)
    assert run([cachegram, "record", *BURST, "--watch", "none", "-o", db, "--", program, "30"]).status == 0
    curve = run([cachegram, "mrc", "--sizes", "4K,64M", "--format", "csv", db]).out.decode()
    known = {int(row["size_bytes"]): row["miss_ratio"] != "" for row in csv.DictReader(io.StringIO(curve))}
    assert known == {4096: True, 64 << 20: False}
    for command in ("hotspots", "annotate"):
        assert "miss ratio not known (" in run([cachegram, command, "--size", "64M", db]).out.decode()
        assert "not known" not in run([cachegram, command, "--size", "4K", db]).out.decode()
