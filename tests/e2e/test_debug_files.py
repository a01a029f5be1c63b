# SPDX-License-Identifier: Apache-2.0
"""Debug information that is not in the program: found by build id, or from a server; and code without lines."""
import contextlib
import csv
import http.server
import io
import json
import os
import pathlib
import re
import shutil
import sqlite3
import subprocess
import threading

import pytest

from conftest import FULL, TARGETS, build_target, run

LINE = next(i for i, text in enumerate((TARGETS / "hot_layout.c").read_text().splitlines(), 1) if text.endswith("// columns"))


def hotspots(cachegram, db, *options):
    result = run([cachegram, "hotspots", "--format", "csv", "--size", "32K", *options, db])
    assert result.status == 0, result.err
    return list(csv.DictReader(io.StringIO(result.out.decode())))


@pytest.fixture
def stripped(tmp_path):
    """A program without symbols, its debug file elsewhere, and its build id."""
    program, debug = tmp_path / "program", tmp_path / "elsewhere.debug"
    shutil.copy(build_target(TARGETS / "hot_layout.c", tmp_path), program)
    subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True)
    subprocess.run(["strip", program], check=True)
    notes = subprocess.run(["readelf", "-n", program], check=True, capture_output=True, text=True).stdout
    return program, debug, re.search(r"Build ID: ([0-9a-f]+)", notes)[1]


def check_named(cachegram, db, build_id):
    row = hotspots(cachegram, db, "--by", "line")[0]
    assert (row["function"], row["line"]) == ("by_columns", str(LINE))
    assert row["file"].endswith("hot_layout.c")
    data = json.loads(run([cachegram, "hotspots", "--format", "json", "--size", "32K", db]).out)
    assert data["rows"][0]["build_id"] == build_id


def check_not_named(cachegram, db):
    row = hotspots(cachegram, db, "--by", "line")[0]
    assert row["function"].startswith("program+0x") and row["line"] == ""


@contextlib.contextmanager
def server(files):
    """A debuginfod: files by path. Yields its URL, and the paths that were asked for."""
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            body = files.get(self.path)
            self.send_response(200 if body is not None else 404)
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, *_):
            pass
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        thread = threading.Thread(target=listening.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.server_port}", asked
        listening.shutdown()


@pytest.mark.parametrize("has_it", [True, False])
def test_debuginfod(has_it, stripped, cachegram, tmp_path):
    program, debug, build_id = stripped
    path, db = f"/buildid/{build_id}/debuginfo", tmp_path / "p.db"
    with server({path: debug.read_bytes()} if has_it else {}) as (url, asked):
        env = {**os.environ, "DEBUGINFOD_URLS": url, "DEBUGINFOD_CACHE_PATH": str(tmp_path / "cache")}
        result = run([cachegram, "record", *FULL, "-o", db, "--", program, "columns", "1"], env=env)
    assert result.status == 0, result.err
    assert path in asked
    if has_it:
        check_named(cachegram, db, build_id)
    else:
        check_not_named(cachegram, db)


def test_debuginfod_is_not_asked_without_its_variable(stripped, cachegram, tmp_path):
    program, _, _ = stripped
    env = {name: value for name, value in os.environ.items() if not name.startswith("DEBUGINFOD")}
    db = tmp_path / "p.db"
    assert run([cachegram, "record", *FULL, "-o", db, "--", program, "columns", "1"], env=env).status == 0
    check_not_named(cachegram, db)


@pytest.mark.parametrize("debug_info", [0, 1])
def test_without_debug_information(debug_info, cachegram, tmp_path):
    """As most tests record: functions by the symbol table, no lines."""
    db = tmp_path / "p.db"
    program = build_target(TARGETS / "hot_matrix.c", tmp_path)
    result = run(["env", f"CACHEGRAM_DEBUG=debug-info={debug_info}", cachegram, "record", *FULL, "-o", db, "--", program, "columns", "1"])
    assert result.status == 0, result.err
    with sqlite3.connect(db) as con:
        functions, lines = con.execute("select count(function), count(line) from frame").fetchone()
    assert functions > 20 and (lines > 0) == bool(debug_info)


def test_build_id(stripped, cachegram, tmp_path):
    """Where distributions keep them: /usr/lib/debug, which is a folder of the test in a mount namespace."""
    program, debug, build_id = stripped
    folder, db = tmp_path / "debug" / ".build-id" / build_id[:2], tmp_path / "p.db"
    folder.mkdir(parents=True)
    shutil.copy(debug, folder / f"{build_id[2:]}.debug")
    env = {name: value for name, value in os.environ.items() if not name.startswith("DEBUGINFOD")}
    record = [cachegram, "record", *FULL, "-o", db, "--", program, "columns", "1"]
    place = "/usr/lib/debug"
    namespace = ["unshare", "-rm", "sh", "-c", f"mount --bind {tmp_path / 'debug'} {place} && exec \"$@\"", "sh"]
    if pathlib.Path(place).is_dir() and run([*namespace, "true"]).status == 0:
        assert run([*namespace, *record], env=env).status == 0
        check_named(cachegram, db, build_id)
    else:  # no namespaces here: at least nothing else may find it
        assert run(record, env=env).status == 0
        check_not_named(cachegram, db)


def signed_leb(value, size):
    """LEB128 of that many bytes."""
    return bytes(value >> 7 * i & 0x7f | (0x80 if i < size - 1 else 0) for i in range(size))


def make_line_0(program, line):
    """Gives the instructions of a line the line 0, as compilers do: the assembler would refuse. Steps to that line and
    back (DW_LNS_advance_line, 3) become steps to 0 and back, of the same length."""
    data, found = bytearray(program.read_bytes()), {1: 0, -1: 0}
    text = subprocess.run(["readelf", "-SW", program], check=True, capture_output=True, text=True).stdout
    start, size = (int(number, 16) for number in re.search(r"\.debug_line +PROGBITS +\S+ (\S+) (\S+)", text).groups())
    for at in range(start, start + size - 4):
        for sign in (1, -1):
            for near in range(100):
                old = sign * (line - near)
                if data[at:at + 4] == b"\x03" + signed_leb(old, 3):
                    data[at + 1:at + 4] = signed_leb(old - sign * line, 3)
                    found[sign] += 1
    assert found[1] > 0 and found[-1] > 0
    program.write_bytes(data)


def test_line_0(cachegram, tmp_path):
    """The nearest line before, marked."""
    program, db = build_target(TARGETS / "hot_line0.c", tmp_path), tmp_path / "p.db"

    def rows():
        text = subprocess.run(["readelf", "--debug-dump=decodedline", program], check=True, capture_output=True, text=True).stdout
        return [int(line) for line in re.findall(r"^hot_line0\.c +(\d+) ", text, re.M)]
    before = rows()
    make_line_0(program, 60000)
    assert rows() == [0 if line == 60000 else line for line in before]
    nearest = before[before.index(60000) - 1]
    assert run([cachegram, "record", *FULL, "-o", db, "--", program, "20"]).status == 0
    data = json.loads(run([cachegram, "hotspots", "--format", "json", "--size", "32K", "--by", "line", db]).out)
    frame = data["rows"][0]["frames"][0]
    assert (frame["function"], frame["line"], frame["line_guessed"]) == ("at_random", nearest, True)
    text = run([cachegram, "hotspots", "--size", "32K", "--by", "line", db]).out.decode()
    assert f"at_random hot_line0.c:~{nearest}  (hot_line0)\n" in text
    assert "\n~: the compiler gave the instruction no line" in text


@pytest.mark.parametrize("version", ["-gdwarf-5", "-gdwarf-4"])
def test_split_dwarf(version, cachegram, tmp_path):
    """With -gsplit-dwarf, what is inlined, and the types of variables, are in a file beside the program."""
    (tmp_path / "a.c").write_text(
        "struct item { long key, value; char rest[48]; };\nstatic struct item table[50000];\n"
        "static inline __attribute__((always_inline)) long pick(const struct item *a, int n)\n{\n"
        "    for (int i = 0; i < n; i++)\n        if (a[i].value != 0)\n            return i;\n    return 0;\n}\n"
        "int main(int argc, char **argv)\n{\n    long sum = argv == 0;\n    for (volatile int t = 0; t < 5; t++)\n"
        "        sum += pick(table, 50000 - argc);\n    return sum != 0;\n}\n")
    rows = []
    for options in [[], ["-gsplit-dwarf"]]:
        subprocess.run(["gcc", "-O1", "-g", version, *options, "-o", "a", "a.c"], cwd=tmp_path, check=True)
        assert bool(list(tmp_path.glob("*.dwo"))) == bool(options)
        assert run([cachegram, "record", "--mode", "full", "-o", tmp_path / "p.db", "--", tmp_path / "a"]).status == 0
        result = run([cachegram, "hotspots", "--by", "line,field", "--size", "32K", "--limit", "1", "--format", "csv", tmp_path / "p.db"])
        row = next(csv.DictReader(io.StringIO(result.out.decode())))
        rows.append([row[name] for name in ("function", "line", "inlined_into", "object", "field", "field_type")])
    assert rows[0] == rows[1] == ["pick", "6", "main a.c:14", "table", "value", "item"]


def test_function_in_another(cachegram, tmp_path):
    """In assembly language one function may be inside another: what follows it there is the outer one's."""
    (tmp_path / "walk.s").write_text(
        ".globl walk\n.type walk, @function\nwalk:\n    jmp 1f\n.type inner, @function\ninner:\n    nop\n.size inner, .-inner\n"
        "1:  movzbl (%rdi), %eax\n    add $64, %rdi\n    dec %rsi\n    jnz 1b\n    ret\n.size walk, .-walk\n"
        '.section .note.GNU-stack, "", @progbits\n')
    (tmp_path / "a.c").write_text("void walk(char *, long);\nstatic char memory[1 << 20];\n"
                                  "int main(void)\n{\n    walk(memory, 16384);\n    return 0;\n}\n")
    subprocess.run(["gcc", "-o", "a", "a.c", "walk.s"], cwd=tmp_path, check=True)
    assert run([cachegram, "record", *FULL, "-o", tmp_path / "p.db", "--", tmp_path / "a"]).status == 0
    assert hotspots(cachegram, tmp_path / "p.db")[0]["function"] == "walk"


@pytest.mark.parametrize("version", ["-gdwarf-5", "-gdwarf-4"])
def test_function_that_is_left_out(version, cachegram, tmp_path):
    """The linker leaves it out, but not its debug information: that has addresses from 0 on, and other functions have
    some of these. What is inlined there has them too, and is in several parts."""
    lines = "".join(f"    x += mix(x + {i}) * {2 * i + 3};\n    if (x == {i})\n        abort();\n" for i in range(400))
    (tmp_path / "a.c").write_text(
        "#include <stdlib.h>\nstatic inline __attribute__((always_inline)) unsigned mix(unsigned x)\n{\n"
        "    if (__builtin_expect(x % 7 == 3, 0))\n        exit(1);\n    return x ^ x << 13;\n}\n"
        f"unsigned left_out(unsigned x)\n{{\n{lines}    return x;\n}}\n"
        "static char memory[1 << 20];\n__attribute__((noinline)) int walk(void)\n{\n    int sum = 0;\n"
        "    for (char *p = memory; p < memory + sizeof memory; p += 512)\n        sum += p[0] + p[64] * 2 + p[128] * 3 + p[192] * 4 "
        "+ p[256] * 5 + p[320] * 6 + p[384] * 7;\n    return sum;\n}\nint main(void)\n{\n    return walk();\n}\n")
    few_rows = ["-gno-column-info", "-gno-variable-location-views", "-gno-statement-frontiers"]
    subprocess.run(["gcc", "-O1", "-g", version, *few_rows, "-ffunction-sections", "-Wl,--gc-sections", "-pie", "-fPIE", "-o", "a",
                    "a.c"], cwd=tmp_path, check=True)
    expected = (tmp_path / "a.c").read_text().splitlines().index(
        "        sum += p[0] + p[64] * 2 + p[128] * 3 + p[192] * 4 + p[256] * 5 + p[320] * 6 + p[384] * 7;") + 1
    assert run([cachegram, "record", *FULL, "-o", tmp_path / "p.db", "--", tmp_path / "a"]).status == 0
    row = hotspots(cachegram, tmp_path / "p.db", "--by", "line")[0]
    assert (row["function"], row["line"]) == ("walk", str(expected)) and float(row["miss_share"]) > 0.9


def test_common_part(cachegram, tmp_path):
    """What several programs have in common may be in a file of its own: distributions do so with dwz. The units there are in no
    language, so that libdw does not know how long arrays are."""
    (tmp_path / "a.c").write_text(
        "#include <stdlib.h>\nstruct person { char name[40]; long age; char address[80]; };\nstruct person *people;\n"
        "int main(void)\n{\n    long sum = 0;\n    people = calloc(50000, sizeof *people);\n    for (volatile int t = 0; t < 5; t++)\n"
        "        for (int i = 0; i < 50000; i++)\n            sum += people[i].age;\n    return sum != 0;\n}\n")
    subprocess.run(["gcc", "-O1", "-g", "-o", "a", "a.c"], cwd=tmp_path, check=True)
    shutil.copy(tmp_path / "a", tmp_path / "b")
    subprocess.run(["dwz", "-m", "common", "a", "b"], cwd=tmp_path, check=True)
    assert run([cachegram, "record", *FULL, "-o", tmp_path / "p.db", "--", tmp_path / "a"]).status == 0
    row = hotspots(cachegram, tmp_path / "p.db", "--by", "line,field")[0]
    assert [row[name] for name in ("function", "line", "field", "field_type")] == ["main", "10", "age", "person"]
