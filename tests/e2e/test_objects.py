# SPDX-License-Identifier: Apache-2.0
"""What misses: programs that miss on one data object, named in the first place, with the function that does.

Nothing here depends on how many bursts a budget pays for: they come every 2 ms of CPU time.
"""
import csv
import io
import json
import os
import re
import shutil
import subprocess

import pytest

from conftest import MODES, TARGETS, build_target, compile_text, run

# Argument, function, object, kind.
PLANTED = {
    "global": ("by_columns", "matrix", "variable"),
    "static": ("at_random", "table.0", "variable"),
    "stack": ("at_random", "use_stack::local", "local"),
    "main": ("at_random", "use_stack::local", "local"),
    "file": ("at_random", "[file data.bin]", "file"),
    "mmap": ("at_random", "block of main::mapped hot_objects.c:{mmap}", "block"),
}
ROUNDS = {"burst": "6000", "full": "40"}


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return build_target(TARGETS / "hot_objects.c", tmp_path_factory.mktemp("objects"))


def marked_line(source, mark):
    """Number of the line of a target's source that ends with the comment."""
    found = [i for i, line in enumerate((TARGETS / source).read_text().splitlines(), 1) if line.endswith(f"// {mark}")]
    assert len(found) == 1
    return found[0]


def hotspots(cachegram, db, *options):
    result = run([cachegram, "hotspots", "--format", "csv", "--size", "32K", *options, db])
    assert result.status == 0, result.err
    return list(csv.DictReader(io.StringIO(result.out.decode())))


def record(cachegram, mode, db, program, what, file):
    result = run([cachegram, "record", *MODES[mode], "-o", db, "--", program, what, ROUNDS[mode], file])
    assert result.status == 0, result.err
    return result


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("what", PLANTED)
def test_planted(what, mode, program, cachegram, tmp_path):
    function, name, kind = PLANTED[what]
    db = tmp_path / "p.db"
    result = record(cachegram, mode, db, program, what, tmp_path / "data.bin")
    name = name.format(tid=result.out.decode().strip(), mmap=marked_line("hot_objects.c", "mmap"))
    first = hotspots(cachegram, db, "--by", "object")[0]
    assert (first["object"], first["object_kind"]) == (name, kind)
    assert float(first["miss_share"]) > 0.9
    assert first["function"] == first["module"] == first["line"] == ""
    if kind == "variable":
        assert first["object_module"] == str(program)
        symbols = subprocess.run(["nm", "-S", program], check=True, capture_output=True, text=True).stdout
        address, size = next(row.split()[:2] for row in symbols.splitlines() if row.endswith(" " + name))
        assert (int(first["object_offset"]), int(first["object_size"])) == (int(address, 16), int(size, 16))
    if kind == "local":
        assert (first["object_module"], int(first["object_size"])) == (str(program), 512 << 10)
    if kind == "file":
        assert first["object_module"] == str(tmp_path / "data.bin")
    pair = hotspots(cachegram, db, "--by", "function,object")[0]
    assert (pair["function"], pair["object"]) == (function, name)
    line = hotspots(cachegram, db, "--by", "object,line")[0]
    assert line["line"] != "" and line["object"] == name


@pytest.mark.in_turns
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("pie", ["-pie", "-no-pie"])
def test_thread_local_variables(mode, pie, cachegram, tmp_path):
    """By name and field, those of all threads together."""
    program = build_target(TARGETS / "hot_thread_local.cpp", tmp_path, pie)
    db = tmp_path / "p.db"
    rounds = {"burst": "80000000", "full": "300000"}[mode]
    assert run([cachegram, "record", *MODES[mode], "-o", db, "--", program, rounds]).status == 0
    rows = {row["object"]: row for row in hotspots(cachegram, db, "--by", "object")[:2]}
    assert set(rows) == {"table", "stats"}
    for name, row in rows.items():
        assert (row["object_kind"], row["object_module"]) == ("thread-local", str(program))
        assert float(row["miss_share"]) == pytest.approx(0.5, abs={"burst": 0.2, "full": 0.1}[mode])
        symbols = subprocess.run(["nm", "-SC", program], check=True, capture_output=True, text=True).stdout
        value, size = next(line.split()[:2] for line in symbols.splitlines() if line.split()[-1] == name)
        assert (int(row["object_offset"]), int(row["object_size"])) == (int(value, 16), int(size, 16))
    fields = {(row["object"], row["field"]) for row in hotspots(cachegram, db, "--by", "field")[:2]}
    assert fields == {("table", ""), ("stats", "histogram[]")}
    subprocess.run(["strip", program], check=True)
    assert run([cachegram, "record", *MODES[mode], "-o", db, "--", program, rounds]).status == 0
    first = hotspots(cachegram, db, "--by", "object")[0]
    assert first["object"] == f"[thread-local data of {program.name}]" and float(first["miss_share"]) > 0.9


@pytest.mark.parametrize("what", ["main", "stack"])
def test_the_stack_of_a_process_that_has_ended(what, program, cachegram, tmp_path):
    """It may end before its mappings were read, and the main stack may have grown since. Of eight recordings one or two
    did not know the main stack; of forty one to six did not know the stack of a thread."""
    db, stripped = tmp_path / "p.db", tmp_path / "stripped"
    stack = {"main": "[stack of main thread]", "stack": "[stack of thread {tid}]"}[what]
    subprocess.run(["strip", "-o", stripped, program], check=True)
    for _ in range({"main": 8, "stack": 30}[what]):
        result = run([cachegram, "record", *MODES["full"], "-o", db, "--", stripped, what, "2", ""])
        assert result.status == 0, result.err
        name = stack.format(tid=result.out.decode().strip())
        assert hotspots(cachegram, db, "--by", "object")[0]["object"] == name


def test_a_file_that_is_not_mapped_any_more(cachegram, tmp_path):
    """The process unmaps it, and ends, before its mappings are read."""
    compile_text(tmp_path / "a.c", """
        #include <fcntl.h>
        #include <sys/mman.h>
        #define BYTES 400000
        int main(int argc, char **argv)
        {
            volatile long sum = 0;
            for (int file = 1; file < argc; file++) {
                int fd = open(argv[file], O_RDONLY);
                volatile char *p = mmap(0, BYTES, PROT_READ, MAP_PRIVATE, fd, 0);
                for (int i = 0; i < 10 * BYTES; i += 64)
                    sum += p[i % BYTES];
                munmap((void *)p, BYTES);
            }
            return 0;
        }
        """, "-O1")
    files = [tmp_path / "first.bin", tmp_path / "second.bin"]
    for file in files:
        file.write_bytes(bytes(400000))
    db = tmp_path / "p.db"
    for names, share in ((files[:1], 0.9), (files, 0.3)):  # the second is mapped where the first one was
        for _ in range(4):
            assert run([cachegram, "record", *MODES["full"], "-o", db, "--", tmp_path / "a", *names]).status == 0
            rows = {row["object"]: row for row in hotspots(cachegram, db, "--by", "object")}
            for name in names:
                assert float(rows[f"[file {name.name}]"]["miss_share"]) > share
            assert rows[f"[file {names[0].name}]"]["object_module"] == str(names[0])
            assert float(rows.get("[unknown]", {"miss_share": 0})["miss_share"]) < 0.05


SMALL_BLOCK = """
    #include <stdio.h>
    #include <stdlib.h>
    volatile long *counter, *others[40];
    int main(void)
    {
        puts("some output");  /* allocates */
        for (int i = 0; i < 40; i++)
            others[i] = malloc(24);
        counter = realloc(malloc(24), 400);  // counter
        for (long i = 0; i < 60000000; i++)
            counter[24 + (i & 3)]++;  // in a line of its own
        return 0;
    }
    """


def test_a_small_block_from_the_start(cachegram, tmp_path):
    """The first blocks of a process are reported whatever their size: what is allocated once may be used for ever."""
    compile_text(tmp_path / "a.c", SMALL_BLOCK)
    line = next(i for i, text in enumerate(SMALL_BLOCK.splitlines(), 1) if text.endswith("// counter"))
    for mode in "full", "burst":
        db = tmp_path / "p.db"
        options = {"full": ["--mode", "full"], "burst": ["--gap-us", "2000", "--allowance", "0"]}[mode]
        result = run([cachegram, "record", *options, "-o", db, "--", tmp_path / "a"])
        assert result.status == 0, result.err
        first = hotspots(cachegram, db, "--by", "object", "--sort", "refs")[0]
        assert first["object"] == f"block of counter a.c:{line}" and float(first["refs_share"]) > 0.5


@pytest.mark.parametrize("mode", MODES)
def test_the_same_misses(mode, program, cachegram, tmp_path):
    """Tables by object and by code add up to the same references and misses."""
    db = tmp_path / "p.db"
    record(cachegram, mode, db, program, "global", "")
    totals, shares = [], {}
    for by in ("function", "object", "function,object", "insn,object"):
        data = json.loads(run([cachegram, "hotspots", "--format", "json", "--size", "32K", "--by", by, db]).out)
        totals.append(data["miss_ratio"])
        for what in ("miss_share", "refs_share"):
            assert sum(row[what] for row in data["rows"]) == pytest.approx(1, abs=1e-6)
        shares[by] = {row.get("function"): row["miss_share"] for row in data["rows"]}
    assert totals == [pytest.approx(totals[0], rel=1e-9)] * 4
    pairs = [row for row in hotspots(cachegram, db, "--by", "function,object") if row["function"] == "by_columns"]
    # In bursts, what is not decided by them is estimated for each row, and its sum depends on the rows.
    assert sum(float(row["miss_share"]) for row in pairs) == pytest.approx(
        shares["function"]["by_columns"], abs=1e-6 if mode == "full" else 1e-4)


def test_full_mode_counts_exactly(program, cachegram, tmp_path):
    """32 columns of 1024 rows, 2 KB apart: each touch is to a line that 1023 others have displaced."""
    db = tmp_path / "p.db"
    record(cachegram, "full", db, program, "global", "")
    total = json.loads(run([cachegram, "hotspots", "--format", "json", "--size", "32K", db]).out)
    row = hotspots(cachegram, db, "--by", "object")[0]
    everything = run([cachegram, "mrc", "--format", "csv", "--sizes", "32K", db]).out.decode().splitlines()[1].split(",")
    assert total["miss_ratio"] == pytest.approx(float(everything[1]), abs=1e-9)
    references = sum(int(r["recorded_refs"]) for r in hotspots(cachegram, db))
    misses = float(row["miss_share"]) * total["miss_ratio"] * references
    assert misses == pytest.approx(32 * 1024 * int(ROUNDS["full"]), rel=1e-3)
    assert float(row["miss_ratio"]) == pytest.approx(1, abs=0.02)  # its references are a sample of them


@pytest.mark.parametrize("way", ["separate", "nothing"])
def test_symbols(way, program, cachegram, tmp_path):
    """A symbol table in a file of its own; none: the section is named."""
    copy, db = tmp_path / "copy", tmp_path / "p.db"
    shutil.copy(program, copy)
    if way == "separate":
        subprocess.run(["objcopy", "--only-keep-debug", copy, tmp_path / "copy.debug"], check=True)
    subprocess.run(["strip", copy], check=True)
    if way == "separate":
        subprocess.run(["objcopy", f"--add-gnu-debuglink={tmp_path / 'copy.debug'}", copy], check=True)
    record(cachegram, "burst", db, copy, "global", "")
    row = hotspots(cachegram, db, "--by", "object")[0]
    expected = ("matrix", "variable") if way == "separate" else ("[.bss of copy]", "section")
    assert (row["object"], row["object_kind"]) == expected
    assert row["object_module"] == str(copy)


def test_hostile_names(program, cachegram, tmp_path):
    """A mapped file whose name would steer a terminal, or is no UTF-8."""
    file = tmp_path.joinpath("a\x1b[31m\n,\"b").as_posix().encode() + b"\xff\xc2\x9b"
    db = tmp_path / "p.db"
    record(cachegram, "burst", db, program, "file", file.decode(errors="surrogateescape"))
    for by in ("object", "function,object"):
        for form in ("text", "csv", "json"):
            text = run([cachegram, "hotspots", "--format", form, "--by", by, db]).out.decode()
            assert not any(ord(c) < 32 and c != "\n" or 0x7f <= ord(c) < 0xa0 for c in text)
            if form == "json":
                assert any(row["object"].startswith("[file a") for row in json.loads(text)["rows"])
            if form == "csv":
                rows = list(csv.DictReader(io.StringIO(text)))
                assert all(len(row) == 28 and None not in row for row in rows)


@pytest.mark.parametrize("by", ["object,object", "function,line", "object,", ",object", "function,object,line"])
def test_wrong_usage(by, cachegram):
    result = run([cachegram, "hotspots", "--by", by])
    assert (result.status, result.out) == (2, b"")
    assert result.err.count(b"\n") == 1


def test_text_and_filter(program, cachegram, tmp_path):
    db = tmp_path / "p.db"
    record(cachegram, "burst", db, program, "global", "")
    out = run([cachegram, "hotspots", "--size", "32K", "--by", "function,object", db]).out.decode().splitlines()
    assert out[0] == "Misses by function, object: LRU cache of 32K, 64-byte lines"
    assert out[3].split()[-2:] == ["function", "object"]
    assert out[4].split("%  ")[-1].split() == ["by_columns", "(hot_objects)", "matrix", "(hot_objects)"]
    rows = hotspots(cachegram, db, "--by", "object", "--dso", "hot_objects")
    assert rows and {row["object_module"] for row in rows} == {str(program)}
    none = run([cachegram, "hotspots", "--by", "object", "--dso", "libnone.so", db])
    assert none.status == 1 and b"holds no data of the file 'libnone.so'" in none.err


# --- blocks of the heap, by the place of their allocation ---

BLOCKS = {
    "list": ("follow", "new_node::n"), "malloc": ("read_lines", "make_array::array"), "calloc": ("read_lines", "make_array::array"),
    "realloc": ("read_lines", "make_array::array"), "aligned_alloc": ("read_lines", "make_array::array"),
    "memalign": ("read_lines", "make_array::array"), "posix_memalign": ("read_lines", "make_array::array"),
    "valloc": ("read_lines", "make_array::array"), "strdup": ("read_lines", "make_array::array"), "mmap": ("read_lines", "make_array::array"),
}


@pytest.fixture(scope="module")
def blocks(tmp_path_factory):
    return build_target(TARGETS / "hot_blocks.c", tmp_path_factory.mktemp("blocks"))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("what", BLOCKS)
def test_blocks(what, mode, blocks, cachegram, tmp_path):
    """The block that misses, and not the one that hits; for small blocks of which few are reported, too."""
    function, allocator = BLOCKS[what]
    db = tmp_path / "p.db"
    rounds = {"burst": "100" if what == "list" else "10000", "full": "10" if what == "list" else "30"}[mode]
    assert run([cachegram, "record", *MODES[mode], "-o", db, "--", blocks, what, rounds]).status == 0
    name = f"block of {allocator} hot_blocks.c:{marked_line('hot_blocks.c', what)}"
    first = hotspots(cachegram, db, "--by", "function,object")[0]
    assert (first["function"], first["object"], first["object_kind"]) == (function, name, "block")
    assert first["object_module"] == str(blocks)
    rows = {row["object"]: row for row in hotspots(cachegram, db, "--by", "object")}
    # Bursts of the list differ in how many of its blocks were reported: 0.79 once, 0.88 to 1 in 28 others.
    assert float(rows[name]["miss_share"]) > (0.6 if mode == "full" or what == "list" else 0.8)
    hits = rows.get(f"block of main hot_blocks.c:{marked_line('hot_blocks.c', 'hits')}")
    assert hits is None or float(hits["miss_share"]) < 0.02


@pytest.mark.parametrize("mode", MODES)
def test_small_blocks_that_share_lines(mode, cachegram, tmp_path):
    """Misses belong to the block that was touched, not to its neighbours in the line, within a burst and beyond."""
    program = build_target(TARGETS / "hot_pairs.c", tmp_path)
    names = {what: f"block of new_{what}::{what} hot_pairs.c:{marked_line('hot_pairs.c', what)}" for what in ("key", "payload")}
    for what, touched, neighbour in [("keys", "key", "payload"), ("payloads", "payload", "key")]:
        db = tmp_path / f"{what}.db"
        rounds = {"burst": "300", "full": "10"}[mode]
        assert run([cachegram, "record", *MODES[mode], "-o", db, "--", program, what, rounds]).status == 0
        for size in "32K", "1M":
            rows = {(row["function"], row["object"]): float(row["miss_share"])
                    for row in hotspots(cachegram, db, "--by", "function,object", "--size", size)}
            # The rest of the misses is that of making the lists, and of the array of pointers to payloads.
            assert rows[f"read_{what}", names[touched]] > 0.2, size
            assert rows.get((f"read_{what}", names[neighbour]), 0) < 0.02, size


def test_wrappers(blocks, cachegram, tmp_path):
    """Blocks are named by the caller of what the user calls an allocation function."""
    db = tmp_path / "p.db"
    assert run([cachegram, "record", *MODES["burst"], "-o", db, "--", blocks, "list", "60"]).status == 0
    row = hotspots(cachegram, db, "--by", "object", "--alloc-wrappers", "other,new_*")[0]
    # The call is in a loop, so its line may be that of the loop; make_list may be inlined.
    assert row["object"].startswith("block of make_list hot_blocks.c:")
    # If all that is known of a path allocates for others, the outermost function says most.
    row = hotspots(cachegram, db, "--by", "object", "--alloc-wrappers", "*")[0]
    assert row["object_kind"] == "block" and not row["object"].startswith(("block of xmalloc ", "block of new_node "))


@pytest.mark.parametrize("allocate", ["zmalloc", "__gnat_malloc", "jv_mem_alloc", "__zend_malloc"])
def test_usual_wrappers(allocate, cachegram, tmp_path):
    """A class's own operator new, and the functions of well-known programs, need not be named."""
    compile_text(tmp_path / "x.cpp",
        "#include <cstdlib>\nstruct node { node *next; long value[7]; static void *operator new(std::size_t n); };\n"
        "__attribute__((noipa)) void *node::operator new(std::size_t n) { return malloc(n); }\n"
        "extern \"C\" __attribute__((noipa)) void *" + allocate + "(std::size_t n) { return malloc(n); }\n"
        "static node *list; static long *table;\n"
        "__attribute__((noipa)) static void make_list() { for (int i = 0; i < 40000; i++) { node *n = new node(); n->next = list; list = n; } }\n"
        "__attribute__((noipa)) static void make_table() { table = (long *)" + allocate + "(8 << 20); }\n"
        "int main() { make_list(); make_table(); long sum = 0; for (volatile int r = 0; r < 3; r++) {\n"
        "for (node *n = list; n; n = n->next) sum += n->value[2]++; for (long i = 0; i < 1 << 20; i += 8) sum += table[i]++; }\n"
        "return sum == 1; }\n")
    db = tmp_path / "p.db"
    assert run([cachegram, "record", *MODES["full"], "-o", db, "--", tmp_path / "x"]).status == 0
    assert {row["object"] for row in hotspots(cachegram, db, "--by", "object", "--limit", "2")} == {
        "block of list x.cpp:6", "block of table x.cpp:7"}


def test_members_of_variables(cachegram, tmp_path):
    """A block whose address a member of a static variable gets; in Fortran an allocatable component."""
    (tmp_path / "c.c").write_text("""
        #include <stdlib.h>
        struct { int n; long *table, *slots[2]; } state;
        int main(void)
        {
            long sum = 0;
            state.table = calloc(40000, 8);
            state.slots[1] = calloc(40000, 8);
            for (int k = 0; k < 2; k++)
                for (int i = 0; i < 40000; i++)
                    sum += state.table[i] + state.slots[1][i];
            return sum != 0;
        }
        """)
    (tmp_path / "f.f90").write_text("""
        program f
          implicit none
          type :: grid
            integer :: n
            real(8), allocatable :: u(:,:), v(:,:)
          end type
          type(grid), save :: g
          integer :: i
          allocate(g%u(200,200), g%v(200,200))
          g%u = 1
          do i = 1, 3
            g%v = 2 * g%u + i
            g%u = g%v - i
          end do
          print *, sum(g%u)
        end program
        """)
    for source, compiler, wanted in ("c.c", "gcc", {"state.table", "state.slots"}), ("f.f90", "gfortran", {"g.u", "g.v"}):
        program, db = tmp_path / source[0], tmp_path / f"{source[0]}.db"
        subprocess.run([compiler, "-O1", "-g", "-o", program, tmp_path / source], check=True)
        assert run([cachegram, "record", "--mode", "full", "-o", db, "--", program]).status == 0
        rows = {row["object"] for row in hotspots(cachegram, db, "--by", "object") if float(row["miss_share"]) > 0.1}
        assert {name.removeprefix("block of ").split()[0] for name in rows} == wanted


CONTAINERS = """
#include <cstdio>
#include <vector>
struct work {
    std::vector<long> left, right;
};
class graph {
    std::vector<int> offsets, targets;

  public:
    __attribute__((noinline)) void build(int n)
    {
        for (int i = 0; i < n; i++)
            targets.push_back((int)((i * 7919l) % n));
        offsets.resize((unsigned long)n);
    }
    __attribute__((noinline)) long sum() const
    {
        long all = 0;
        for (int target : targets)
            all += offsets[(unsigned long)target];
        return all;
    }
};
int main()
{
    work w;
    graph g;
    long all = 0;
    w.left.assign(100000, 1);
    w.right.resize(100000);
    g.build(100000);
    for (int round = 0; round < 2; round++) {
        all += g.sum();
        for (unsigned long i = 0; i < 100000; i++)
            all += w.left[i] + w.right[i];
    }
    std::printf("%ld\\n", all);
}
"""


def test_containers_have_the_names_of_variables(cachegram, tmp_path):
    """What a vector has allocated belongs to the variable, or the member, that is the vector: whether the allocation is
    inlined into the function that has it, or called for it."""
    program = compile_text(tmp_path / "a.cpp", CONTAINERS, "-O2", "-g")
    db = tmp_path / "p.db"
    assert run([cachegram, "record", "--mode", "full", "-o", db, "--", program]).status == 0
    rows = {row["object"] for row in hotspots(cachegram, db, "--by", "object") if float(row["miss_share"]) > 0.02}
    names = {re.sub(r" a.cpp:.*", "", name.removeprefix("block of ")) for name in rows}
    assert {"main::w.left", "main::w.right", "graph::targets"} <= names


def test_vectors_of_rust_that_are_not_optimized(cachegram, tmp_path):
    """The innermost calls may be in a library without debug information, and the block of `own` does not contain the
    instruction that loads its address for the call."""
    (tmp_path / "a.rs").write_text("""
        struct P { x: f64, y: f64 }
        struct World { ps: Vec<P>, n: usize }
        fn main() {
            let mut w = World { ps: Vec::new(), n: 3 };
            let mut own: Vec<u64> = Vec::new();
            for i in 0..8192u64 { w.ps.push(P { x: i as f64, y: 2.0 }); own.push(i); }
            let mut s = 0.0;
            for _ in 0..2 {
                for p in &w.ps { s += p.x + p.y; }
                for i in (0..8192).step_by(8) { s += own[i] as f64; }
            }
            println!("{} {}", s, w.n);
        }
        """)
    subprocess.run(["/usr/bin/rustc", "-g", "-o", tmp_path / "a", tmp_path / "a.rs"], check=True, cwd=tmp_path)
    assert run([cachegram, "record", "--mode", "full", "-o", tmp_path / "p.db", "--", tmp_path / "a"]).status == 0
    names = {row["object"] for row in hotspots(cachegram, tmp_path / "p.db", "--by", "object") if float(row["miss_share"]) > 0.1}
    assert names == {"block of a::main::w.ps a.rs:7", "block of a::main::own a.rs:7"}


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_containers_that_are_not_optimized(compiler, cachegram, tmp_path):
    """Without inlining, an allocation is up to nine calls of the C++ library deep."""
    (tmp_path / "a.cpp").write_text("""
        #include <cstdio>
        #include <map>
        #include <string>
        #include <unordered_map>
        #include <vector>
        struct row { long key, rest[7]; };
        static void fill(std::map<std::string, row> &tree, std::unordered_map<long, row> &table)
        {
            for (long i = 0; i < 4000; i++) {
                tree["a name that is not short " + std::to_string(i)].key = i;
                table[i].key = i;
            }
        }
        int main()
        {
            std::map<std::string, row> tree;
            std::unordered_map<long, row> table;
            std::vector<row> list;
            fill(tree, table);
            for (long i = 0; i < 4000; i++)
                list.push_back(row());
            long sum = 0;
            for (int round = 0; round < 6; round++) {
                for (const auto &each : tree)
                    sum += each.second.key + each.first[20];
                for (long i = 0; i < 4000; i++)
                    sum += table[i].key + list[i * 7 % 4000].key;
            }
            std::printf("%ld\\n", sum);
        }
        """)
    subprocess.run([*compiler.split(), "-O0", "-g", "-o", "a", "a.cpp"], cwd=tmp_path, check=True)
    db = tmp_path / "p.db"
    assert run([cachegram, "record", "--mode", "full", "-o", db, "--", tmp_path / "a"]).status == 0
    rows = {row["object"] for row in hotspots(cachegram, db, "--by", "object") if float(row["miss_share"]) > 0.02}
    places = {re.sub(r"(:[0-9]+):.*| by .*", r"\1", name) for name in rows if name != "[heap]"}
    assert places == {"block of fill a.cpp:11", "block of fill a.cpp:12", "block of main::list a.cpp:22"}


@pytest.mark.parametrize("pool", ["ggc_internal_alloc", "g_slice_alloc"])
def test_pools_are_no_wrappers(pool, cachegram, tmp_path):
    """What is taken for many callers does not belong to the one that needed the next piece."""
    compile_text(tmp_path / "x.c",
        "#include <stdlib.h>\nstatic char *left; static long n;\n"
        f"__attribute__((noipa)) void *{pool}(long size) {{ if (n < size) {{ left = malloc(8 << 20); n = 8 << 20; }} n -= size; return left + n; }}\n"
        f"__attribute__((noipa)) static void *start(void) {{ return {pool}(64); }}\n"
        f"int main(void) {{ long sum = start() == 0; char *p = {pool}(6 << 20); for (volatile int r = 0; r < 4; r++)\n"
        "for (int i = 0; i < 6 << 20; i += 64) sum += p[i]++; return sum == 1; }\n")
    db = tmp_path / "p.db"
    assert run([cachegram, "record", *MODES["full"], "-o", db, "--", tmp_path / "x"]).status == 0
    assert hotspots(cachegram, db, "--by", "object")[0]["object"] == "block of left x.c:3"


def test_no_debug_information(blocks, cachegram, tmp_path):
    copy, db = tmp_path / "copy", tmp_path / "p.db"
    shutil.copy(blocks, copy)
    subprocess.run(["strip", copy], check=True)
    assert run([cachegram, "record", *MODES["burst"], "-o", db, "--", copy, "malloc", "10000"]).status == 0
    row = hotspots(cachegram, db, "--by", "object")[0]
    assert row["object"].startswith("block of copy+0x") and row["object_kind"] == "block"


def test_switched_off(blocks, cachegram, tmp_path):
    db = tmp_path / "p.db"
    assert run([cachegram, "record", *MODES["burst"], "--objects", "off", "-o", db, "--", blocks, "malloc", "10000"]).status == 0
    rows = hotspots(cachegram, db, "--by", "object")
    assert {row["object"] for row in rows} == {"[unknown]"}
    assert hotspots(cachegram, db)[0]["function"] == "read_lines"


@pytest.mark.parametrize("what, allocator", [("new", "store::make_item"), ("vector", "store::Table::fill"),
                                             ("map", "store::Table::insert")])
def test_cpp(what, allocator, cachegram, tmp_path):
    """Through operator new and the functions of the library that are inlined."""
    program, db = build_target(TARGETS / "hot_blocks.cpp", tmp_path), tmp_path / "p.db"
    assert run([cachegram, "record", *MODES["full"], "-o", db, "--", program, what, "30"]).status == 0
    row = hotspots(cachegram, db, "--by", "object")[0]
    assert row["object"] == f"block of {allocator} hot_blocks.cpp:{marked_line('hot_blocks.cpp', what)}"
    assert float(row["miss_share"]) > 0.8


def test_calls_on_one_line(cachegram, tmp_path):
    """Have the names of their variables, and so have copies that the compiler made of one call."""
    program, db = build_target(TARGETS / "hot_one_line.c", tmp_path), tmp_path / "p.db"
    assert run([cachegram, "record", *MODES["full"], "-o", db, "--", program]).status == 0
    rows = {row["object"]: float(row["miss_share"]) for row in hotspots(cachegram, db, "--by", "object") if float(row["miss_share"]) > 0.05}
    number = marked_line("hot_one_line.c", "two calls")
    copied = marked_line("hot_one_line.c", "copied")
    assert rows == {f"block of main::{name} hot_one_line.c:{line}": pytest.approx(share, abs=0.02)
                    for name, line, share in [("often", number, 3 / 8), ("seldom", number, 1 / 8),
                                              ("copy", copied, 3 / 8), ("other", copied, 1 / 8)]}


@pytest.mark.parametrize("mode", [*MODES, "off"])
def test_allocation_is_unchanged(mode, cachegram, built, tmp_path):
    """Results, errno and contents are those of a native run."""
    program = [built / "alloc_calls", 3000 if mode == "full" else 16000]
    options = MODES["burst"] + ["--objects", "off"] if mode == "off" else MODES[mode]
    native = run(program)
    recorded = run([cachegram, "record", *options, "-o", tmp_path / "p.db", "--", *program])
    assert (recorded.status, recorded.out) == (native.status, native.out) == (0, native.out)


def test_own_malloc(cachegram, tmp_path):
    """A program's own malloc stays in use, and the table says that its blocks are not known."""
    program, db = build_target(TARGETS / "own_malloc.c", tmp_path), tmp_path / "p.db"
    assert run([cachegram, "record", *MODES["burst"], "-o", db, "--", program, "8000"]).status == 0
    assert hotspots(cachegram, db, "--by", "object")[0]["object"] == "arena"
    out = run([cachegram, "hotspots", "--by", "object", db]).out.decode()
    assert "its own malloc" in out


# As the allocators do: an operator new that has memory of its own.
ALLOCATOR_WITH_NEW = """#include <cstddef>
#include <new>
#include <unistd.h>
void *operator new(std::size_t bytes) { return sbrk((bytes + 15) & -16); }
void operator delete(void *) noexcept {}
void operator delete(void *, std::size_t) noexcept {}
"""

USER_OF_NEW = """struct node { node *next; long x[15]; };
__attribute__((noipa)) static node *get(node *next) { return new node{next, {}}; }
int main()
{
    node *first = nullptr;
    for (int i = 0; i < 4000; i++)
        first = get(first);
    long sum = 0;
    for (volatile int r = 0; r < 20; r++)
        for (node *n = first; n; n = n->next)
            sum += n->x[3];
    return sum != 0;
}
"""


def test_allocator_with_new(cachegram, tmp_path):
    """Blocks of an operator new that does not call malloc have no names; what the table advises names them."""
    (tmp_path / "new.cpp").write_text(ALLOCATOR_WITH_NEW)
    (tmp_path / "x.cpp").write_text(USER_OF_NEW)
    library = "libjemalloc.so.2"
    subprocess.run(["g++", "-O2", "-shared", "-fPIC", "-o", library, "new.cpp"], cwd=tmp_path, check=True)
    subprocess.run(["g++", "-O2", "-g", "-o", "x", "x.cpp", tmp_path / library, f"-Wl,-rpath,{tmp_path}"],
                   cwd=tmp_path, check=True)
    outs = []
    for preload in "", "libstdc++.so.6":
        db = tmp_path / f"p{preload}.db"
        command = [cachegram, "record", *MODES["full"], "-o", db, "--", tmp_path / "x"]
        assert run(["env", f"LD_PRELOAD={preload}", *command]).status == 0
        outs.append(run([cachegram, "hotspots", "--size", "32K", "--by", "object", db]).out.decode())
    note = "the operator new of libjemalloc.so.2 does not call malloc"
    assert "[heap]" in outs[0] and note in outs[0] and "LD_PRELOAD=libstdc++.so.6" in outs[0]
    assert "block of get x.cpp:2" in outs[1] and note not in outs[1]


# Nodes of malloc, and as many that the program's own allocator has put into memory of its own.
OWN_ALLOCATOR = """#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#define N 30000
struct node { struct node *next; long value[6]; };
static char *pool;
static struct node *from_pool(void) { return (struct node *)(pool += 64); }
static struct node *from_malloc(void) { return malloc(sizeof(struct node)); }
__attribute__((noipa)) static long walk(struct node *n)
{
    long sum = 0;
    for (; n; n = n->next)
        sum += n->value[0];
    return sum;
}
static struct node *list(struct node *(*get)(void))
{
    struct node *first = NULL;
    for (int i = 0; i < N; i++) {
        struct node *n = get();
        *n = (struct node){first, {i}};
        first = n;
    }
    return first;
}
int main(void)
{
    pool = sbrk((N + 1) * 64l + 4096);
    pool = (char *)(((long)pool + 4095) & -4096l);
    struct node *own = list(from_pool), *other = list(from_malloc);
    long sum = 0;
    for (int i = 0; i < 6; i++)
        sum += walk(own) + walk(other);
    printf("%ld\\n", sum);
}
"""


def test_own_allocator(cachegram, tmp_path):
    """Memory among the heap's in which no block was ever sampled is not attributed to the blocks that the same code
    touches elsewhere."""
    compile_text(tmp_path / "own.c", OWN_ALLOCATOR)
    assert run([cachegram, "record", "--mode", "full", "-o", tmp_path / "p.db", "--", tmp_path / "own"]).status == 0
    shares = {}
    for row in hotspots(cachegram, tmp_path / "p.db", "--by", "function,object"):
        if row["function"] == "walk":
            shares[row["object"]] = shares.get(row["object"], 0) + float(row["miss_share"])
    total = sum(shares.values())
    assert total > 0.6
    assert shares["[heap]"] / total == pytest.approx(0.5, abs=0.05), shares
    assert shares["block of from_malloc own.c:8"] / total == pytest.approx(0.5, abs=0.05), shares


def test_pointer_to_malloc(cachegram, tmp_path):
    """In a program at a fixed address it points into the program, which yet has no malloc of its own."""
    (tmp_path / "x.c").write_text(
        "#include <stdlib.h>\n__attribute__((noipa)) static char *get(void *(*allocate)(size_t)) { return allocate(8 << 20); }\n"
        "int main(void) { char *p = get(malloc); int sum = 0; for (volatile int r = 0; r < 3; r++)\n"
        "for (int i = 0; i < 8 << 20; i += 64) sum += p[i]++; return sum & 256; }\n")
    subprocess.run(["gcc", "-O1", "-g", "-fno-pie", "-no-pie", "-o", "x", "x.c"], cwd=tmp_path, check=True)
    db = tmp_path / "p.db"
    assert run([cachegram, "record", *MODES["full"], "-o", db, "--", tmp_path / "x"]).status == 0
    out = run([cachegram, "hotspots", "--by", "object", db]).out.decode()
    assert "block of get x.c:2" in out and "its own malloc" not in out


UNLOADED = """
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
__attribute__((noinline)) static long walk(const char *p, long n)
{
    long s = 0;
    for (int k = 0; k < 10; k++)
        for (long i = 0; i < n; i += 64)
            s += ((volatile const char *)p)[i];
    return s;
}
int main(int argc, char **argv)
{
    void *library = dlopen("./lib.so", RTLD_NOW);
    long (*own)(void) = (long (*)(void))dlsym(library, "own");
    long r = own();
    dlclose(library);
    char *p = argc > 1 ? mmap(0, 3 << 20, PROT_READ, MAP_PRIVATE, open(argv[1], O_RDONLY), 0) : malloc(6 << 20);
    return (r + walk(p, argc > 1 ? 3 << 20 : 6 << 20)) & 1;
}
"""
LIBRARY = """
static char table[7 << 20];
long own(void)
{
    long s = 0;
    for (int k = 0; k < 10; k++)
        for (long i = 0; i < sizeof table; i += 64)
            s += ((volatile char *)table)[i];
    return s;
}
"""


@pytest.mark.parametrize("what", ["block", "file"])
def test_where_a_library_was(cachegram, tmp_path, what):
    """What takes the place of an unloaded library is not its variable, nor was its variable what is there now. A
    buffer of records may be of both times."""
    (tmp_path / "main.c").write_text(UNLOADED)
    (tmp_path / "lib.c").write_text(LIBRARY)
    (tmp_path / "data.bin").write_bytes(b"x" * (3 << 20))
    subprocess.run(["gcc", "-O1", "-g", "-fPIC", "-shared", "-o", "lib.so", "lib.c"], cwd=tmp_path, check=True)
    subprocess.run(["gcc", "-O1", "-g", "-o", "main", "main.c"], cwd=tmp_path, check=True)
    subprocess.run([cachegram, "record", "--mode", "full", "-o", "x.db", "./main", *(["data.bin"] if what == "file" else [])],
                   cwd=tmp_path, stdout=subprocess.DEVNULL)
    out = run([cachegram, "hotspots", tmp_path / "x.db", "--by", "function,object", "--format", "csv"]).out.decode()
    shares = {}
    for r in csv.DictReader(io.StringIO(out)):
        shares.setdefault(r["function"], {})[r["object"]] = float(r["refs_share"])
    for function, of in ("walk", "block of main" if what == "block" else "[file data.bin]"), ("own", "table"):
        total = sum(shares[function].values())
        there = sum(share for name, share in shares[function].items() if name.startswith(of))
        assert there > 0.9 * total, shares


ARRAYS = """
program arrays
  real(8), allocatable :: a(:), b(:)
  integer :: i, k
  real(8) :: s
  allocate(a(200000), b(400000))
  a = 1
  b = 2
  s = 0
  do k = 1, 5
    do i = 1, 200000, 8
      s = s + a(i)
    end do
  end do
  print *, s + sum(b)
end program
"""


@pytest.mark.parametrize("debug, names", [("-g", ("arrays::a arrays.f90:6", "arrays::b arrays.f90:6")),
                                          ("-g1", ("arrays arrays.f90:6 call 1", "arrays arrays.f90:6 call 2"))])
def test_arrays_of_one_line(debug, names, cachegram, tmp_path):
    """gfortran's columns are those of statements: the calls of one have numbers, where -g1 does not name the arrays."""
    (tmp_path / "arrays.f90").write_text(ARRAYS)
    subprocess.run(["gfortran", "-O1", debug, "-o", "arrays", "arrays.f90"], cwd=tmp_path, check=True)
    subprocess.run([cachegram, "record", "--mode", "full", "-o", "x.db", "./arrays"], cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
    out = run([cachegram, "hotspots", tmp_path / "x.db", "--by", "object", "--size", "32K", "--format", "csv"]).out.decode()
    misses = {r["object"]: float(r["miss_share"]) for r in csv.DictReader(io.StringIO(out))}
    first, second = (misses[f"block of {name}"] for name in names)
    assert "block of arrays arrays.f90:6" not in misses
    # a: written once, and read five times; b, twice as large: written and read once
    assert first / second == pytest.approx(6 / 4, rel=0.02)


ALLOCATABLES = """
module store
  implicit none
  type cell
    real(8) :: mass, speed, spare(14)
  end type
  type(cell), allocatable :: cells(:)
  real(8), pointer :: table(:)
contains
  subroutine make(a, n)
    real(8), allocatable, intent(out) :: a(:)
    integer, intent(in) :: n
    allocate(a(n))
  end subroutine
  subroutine fill(a)
    real(8), intent(inout) :: a(:)
    integer :: i
    do i = 1, size(a)
      a(i) = i
    end do
  end subroutine
  real(8) function passes(n)
    integer, intent(in) :: n
    real(8), allocatable :: local(:), passed(:)
    integer :: i, k
    allocate(local(n))
    call make(passed, n)
    call fill(local)
    call fill(passed)
    passes = 0
    do k = 1, 3
      do i = 1, n
        passes = passes + local(i) * passed(n + 1 - i)
      end do
    end do
    deallocate(local)
  end function
  real(8) function speeds()
    integer :: i, k
    speeds = 0
    do k = 1, 9
      do i = 1, size(cells)
        speeds = speeds + cells(i)%speed
      end do
    end do
  end function
end module
program main
  use store
  implicit none
  real(8) :: s
  integer :: i
  allocate(cells(20000), table(100000))
  do i = 1, 20000
    cells(i)%mass = i
    cells(i)%speed = i + 1
  end do
  table = 3
  s = 0
  do i = 1, 3
    s = s + passes(100000) + speeds() + table(i * 7919)
    call fill(table)
  end do
  print *, s
end program
"""


@pytest.mark.parametrize("level, local, passed", [("-O0", "store::passes::local", "store::make"), ("-O3", "store::passes::local", "store::make::a")])
def test_allocatable_arrays_have_their_names(level, local, passed, cachegram, tmp_path):
    """Of a module, of a function and of its caller; and the fields of their elements. (Where optimized code has no place for
    a descriptor, and where it is reached through the frame, the function is named instead.)"""
    (tmp_path / "a.f90").write_text(ALLOCATABLES.lstrip())
    subprocess.run(["gfortran", level, "-g", "-o", "a", "a.f90"], cwd=tmp_path, check=True)
    subprocess.run([cachegram, "record", "--mode", "full", "-o", "x.db", "./a"], cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
    out = run([cachegram, "hotspots", tmp_path / "x.db", "--by", "field", "--size", "32K", "--format", "csv"]).out.decode()
    rows = [r for r in csv.DictReader(io.StringIO(out)) if float(r["miss_share"]) > 0.01]
    assert {r["object"].removeprefix("block of ") for r in rows} == {
        "store::cells a.f90:52", "store::table a.f90:52", f"{local} a.f90:25", f"{passed} a.f90:12"}
    assert max((float(r["miss_share"]), r["field_type"], r["field"]) for r in rows if "cells" in r["object"])[1:] == ("cell", "speed")


LIBRARY_HEADER = """#include <stdlib.h>
namespace lib {
__attribute__((noinline)) inline void *get(size_t n) { return malloc(n); }
template <class T> struct table {
    T *values; int *numbers;
    __attribute__((noinline)) T *make_values(size_t n) { return (T *)get(n * sizeof(T)); }
    __attribute__((noinline)) int *make_numbers(size_t n) { return (int *)get(n * sizeof(int)); }
    table(size_t n) : values(make_values(n)), numbers(make_numbers(n)) {}
};
}
"""
USES_HEADER = """#include "include/c++/lib.hpp"
__attribute__((noipa)) static double sum_of(const lib::table<double> &t, int n)
{
    double sum = 0;
    for (int k = 0; k < 4; k++)
        for (int i = 0; i < n; i += 8)
            sum += t.values[i] + t.numbers[i];
    return sum;
}
int main()
{
    int n = 200000;
    lib::table<double> first(n);
    lib::table<double> second(n / 2);
    return sum_of(first, n) + sum_of(second, n / 2) == 1;
}
"""


def test_blocks_that_installed_headers_allocate(cachegram, tmp_path):
    """As lines of code: what a library's header allocates is named by the line of the program that calls it."""
    (tmp_path / "include" / "c++").mkdir(parents=True)
    (tmp_path / "include" / "c++" / "lib.hpp").write_text(LIBRARY_HEADER)
    (tmp_path / "a.cpp").write_text(USES_HEADER)
    subprocess.run(["g++", "-O2", "-g", "-fno-optimize-sibling-calls", "-o", "a", tmp_path / "a.cpp"], cwd=tmp_path, check=True)
    subprocess.run([cachegram, "record", "--mode", "full", "-o", "x.db", "./a"], cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
    out = run([cachegram, "hotspots", tmp_path / "x.db", "--by", "object", "--size", "32K", "--format", "csv"]).out.decode()
    misses = {r["object"]: float(r["miss_share"]) for r in csv.DictReader(io.StringIO(out)) if float(r["miss_share"]) > 0.02}
    # Of a table, each line of values and, every other time, one of numbers is missed.
    assert misses == {f"block of main a.cpp:{line} by make_{what}": pytest.approx(share, rel=0.02)
                      for line, what, share in [(13, "values", 4 / 9), (13, "numbers", 2 / 9), (14, "values", 2 / 9), (14, "numbers", 1 / 9)]}


HASH_MAP = """#include <unordered_map>
int main()
{
    std::unordered_map<long, long> map;
    long sum = 0;
    for (long i = 0; i < 100000; i++)
        map[i * 7919] = i;
    for (long k = 0; k < 3; k++)
        for (long i = 0; i < 100000; i++)
            sum += map.find((i * 31337 + k) % 100000 * 7919)->second;
    return sum == 1;
}
"""


def test_nodes_and_buckets(cachegram, tmp_path):
    """One line makes both: the buckets are allocated by what inserts a node, the node before that."""
    compile_text(tmp_path / "a.cpp", HASH_MAP, "-O2", "-g")
    subprocess.run([cachegram, "record", "--mode", "full", "-o", "x.db", "./a"], cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
    out = run([cachegram, "hotspots", tmp_path / "x.db", "--by", "object", "--size", "32K", "--format", "csv"]).out.decode()
    names = {r["object"] for r in csv.DictReader(io.StringIO(out)) if float(r["miss_share"]) > 0.02}
    assert {name for name in names if name.startswith("block of main::map a.cpp:7")} == {
        "block of main::map a.cpp:7 by _Scoped_node", "block of main::map a.cpp:7 by _M_insert_unique_node"}


SOME_CALLS = """
#include <stdlib.h>
#include <string.h>
enum { N = 1 << 18 };
int main(int argc, char **argv)
{
    long a_too = strcmp(argv[1], "both") == 0, sum = 0;
    volatile long *a = a_too ? calloc(N, 8) : 0, *b = calloc(N, 8);
    for (int k = 0; k < (a_too ? 2 : 4); k++)
        for (int i = 0; i < N; i += 8)
            sum += b[i] + (a_too && k == 0 ? a[i] : 0);
    return sum != 0;
}
"""


@pytest.mark.parametrize("rebuilt", [False, True])
def test_diff_where_not_all_calls_of_a_line_ran(rebuilt, cachegram, tmp_path):
    """A block is compared with that of the same call, although the name has a column in one of the profiles only."""
    (tmp_path / "calls.c").write_text(SOME_CALLS)
    for what in ("both", "one"):
        if what == "both" or rebuilt: # other code before main: calls are elsewhere in the file
            subprocess.run(["gcc", "-g1", "-O0", "-o", "calls", "calls.c"] + (["-pg"] if what == "one" else []), cwd=tmp_path, check=True)
        subprocess.run([cachegram, "record", "--mode", "full", "-o", f"{what}.db", "./calls", what], cwd=tmp_path, check=True)
    out = run([cachegram, "diff", "--by", "object", "--size", "1M", "--format", "csv", tmp_path / "both.db", tmp_path / "one.db"]).out
    changes = {row["object"]: (float(row["before"]), float(row["after"])) for row in csv.DictReader(io.StringIO(out.decode()))
               if row["object"].startswith("block of main calls.c")}
    number, line = next((n, text) for n, text in enumerate(SOME_CALLS.splitlines(), 1) if "calloc" in text)
    a, b = (f"block of main calls.c:{number}:{column + 1}" for column in (line.index("calloc"), line.rindex("calloc")))
    assert changes.keys() == {a, b}
    assert changes[a][0] > 0 and changes[a][1] == 0
    # while there is a, each line of b is missed twice as often as one of a
    assert changes[b][0] / changes[a][0] == pytest.approx(2, abs=0.01) and changes[b][1] > 0


FORKS = """
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static long walk(volatile char *p, long n)
{
    long s = 0;
    for (int k = 0; k < 10; k++)
        for (long i = 0; i < n; i += 64)
            s += p[i];
    return s;
}
int main(void)
{
    char *kept = malloc(2 << 20), *freed = malloc(3 << 20);
    for (long i = 0; i < 2 << 20; i += 64)
        kept[i] = 1;
    for (int child = 0; child < 2; child++) {
        if (fork() == 0) {
            free(freed);
            char *own = malloc(3 << 20);
            _exit((walk(kept, 2 << 20) + walk(own, 3 << 20)) & 1);
        }
        wait(NULL);
    }
    return 0;
}
"""


def test_blocks_of_the_parent(cachegram, tmp_path):
    """A forked child has its parent's blocks, and what it allocates itself where they were freed."""
    (tmp_path / "forks.c").write_text(FORKS)
    subprocess.run(["gcc", "-O1", "-g", "-o", "forks", "forks.c"], cwd=tmp_path, check=True)
    subprocess.run([cachegram, "record", "--mode", "full", "-o", "x.db", "./forks"], cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
    out = run([cachegram, "hotspots", tmp_path / "x.db", "--by", "object", "--size", "32K", "--format", "csv"]).out.decode()
    misses = {r["object"]: float(r["miss_share"]) for r in csv.DictReader(io.StringIO(out))}
    line = {word: next(i for i, text in enumerate(FORKS.splitlines(), 1) if word in text) for word in ("*kept", "*own")}
    assert misses[f"block of main::kept forks.c:{line['*kept']}"] == pytest.approx(42 / 102, abs=0.05)  # megabytes
    assert misses[f"block of main::own forks.c:{line['*own']}"] == pytest.approx(60 / 102, abs=0.05)


DAEMON = r"""
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    long n = 2 << 20, s = 0;
    int is_over[2];
    char *kept = malloc(n), end;
    if (argc < 1 || pipe(is_over) < 0)
        return 1;
    for (int k = 0; k < 20; k++)
        for (long i = 0; i < n; i += 8)
            kept[i] = 1;
    for (int generation = atoi(argv[1]); generation > 0; generation--)
        if (fork() > 0) {
            close(is_over[1]);
            return generation == atoi(argv[1]) && read(is_over[0], &end, 1) > 0; /* the others end at once */
        }
    for (int k = 0; k < 10; k++)
        for (long i = 0; i < n; i += 64)
            s += kept[i];
    return s & 1;
}
"""


@pytest.mark.parametrize("generations", [1, 2, 4])
def test_blocks_of_a_parent_that_has_ended(cachegram, tmp_path, generations):
    """So a daemon, whose parent ends while the recorder has not seen it yet, has its parent's blocks, too."""
    (tmp_path / "daemon.c").write_text(DAEMON)
    subprocess.run(["gcc", "-O1", "-g", "-o", "daemon", "daemon.c"], cwd=tmp_path, check=True)
    subprocess.run([cachegram, "record", "--mode", "full", "-o", "x.db", "./daemon", str(generations)], cwd=tmp_path, check=True)
    out = run([cachegram, "hotspots", tmp_path / "x.db", "--by", "object", "--size", "32K", "--format", "csv"]).out.decode()
    misses = {r["object"]: float(r["miss_share"]) for r in csv.DictReader(io.StringIO(out))}
    line = next(i for i, text in enumerate(DAEMON.splitlines(), 1) if "*kept" in text)
    assert misses[f"block of main::kept daemon.c:{line}"] > 0.99


RECEIVERS = """
#include <stdlib.h>
enum { N = 1 << 18 };
struct table { long n; volatile long *slots; };
volatile long *everywhere;
struct table *table;
__attribute__((noinline)) void *own(size_t n) { void *p = calloc(n, 8); return p ? p : (abort(), p); }
__attribute__((noinline)) void fill(struct table *t) { t->slots = calloc(N, 8); }
__attribute__((noinline)) static long walk(volatile long *p) { long s = 0; for (int i = 0; i < N; i += 8) s += p[i]; return s; }
int main(void)
{
    everywhere = calloc(N, 8);
    table = malloc(sizeof *table);
    fill(table);
    volatile long *here = calloc(N, 8);
    volatile long *others = own(N);
    return (walk(everywhere) + walk(table->slots) + walk(here) + walk(others)) & 1;
}
"""


@pytest.mark.parametrize("compiler", ["gcc -O0", "gcc -O2", "clang -O0", "clang -O2"])
def test_blocks_have_the_names_of_variables(compiler, cachegram, tmp_path):
    """What the address is assigned to: a global variable, a member of a structure (if a register points to it), a local
    variable, also by an own allocator."""
    (tmp_path / "a.c").write_text(RECEIVERS)
    subprocess.run([*compiler.split(), "-g", "-o", "a", "a.c"], cwd=tmp_path, check=True)
    assert run([cachegram, "record", *MODES["full"], "-o", tmp_path / "p.db", "--", tmp_path / "a"]).status == 0
    for options, last in ([], "own a.c:7"), (["--alloc-wrappers", "own"], "main::others a.c:16"):
        rows = hotspots(cachegram, tmp_path / "p.db", "--by", "object", "--limit", "4", *options)
        assert {row["object"].removeprefix("block of ") for row in rows} == {
            "everywhere a.c:12", "table::slots a.c:8", "main::here a.c:15", last}


STORED = """
#include <stdio.h>
#include <stdlib.h>
enum { N = 1 << 18, BYTES = N * 8 };
struct pool { long *free; long left; };
struct grid { long n; long *cells; struct pool pool; };
struct item { char *name; long size; };
long *everywhere, *kept;
static inline void *aligned(size_t n) { void *p; return posix_memalign(&p, 64, n) == 0 ? p : NULL; }
__attribute__((noinline)) int own(struct pool *pool, size_t n) { pool->free = malloc(n); return pool->free ? 0 : 1; }
__attribute__((noinline)) void fill(struct grid *g) { if (posix_memalign((void **)&g->cells, 64, BYTES) != 0) abort(); g->n = N; }
__attribute__((noinline)) static double sum(const long *p) { double s = 0; for (int i = 0; i < N; i++) s += p[i]; return s; }
__attribute__((noinline)) void keep(void *p) { kept = p; }
__attribute__((noinline)) struct item *first(void) { return calloc(4, sizeof(struct item)); }
int main(void)
{
    static struct grid grid;
    struct pool pool;
    void *q;
    if (posix_memalign(&q, 64, BYTES))
        return 1;
    long *b = aligned(BYTES), *d = q;
    for (long i = 0; i < N; i++)
        b[i] = d[i] = i;
    fill(&grid);
    if (posix_memalign((void **)&everywhere, 64, BYTES) != 0 || own(&pool, BYTES) != 0)
        return 1;
    struct item *items = first();
    items->size = 1;
    keep(realloc(items, BYTES));
    printf("%g\\n", sum(kept) + sum(b) + sum(d) + sum(grid.cells) + sum(everywhere) + sum(pool.free));
    return 0;
}
"""


@pytest.mark.parametrize("compiler", ["gcc -O0", "gcc -O2", "clang -O0", "clang -O2"])
def test_blocks_whose_address_the_call_stores(compiler, cachegram, tmp_path):
    """As posix_memalign does, in the pointer whose address it gets; optimized code may load it from there to where the
    variable is. Such a pointer may have the pool's place in the frame, whose name would be wrong; so would be that of the
    first member of what realloc gets."""
    (tmp_path / "a.c").write_text(STORED)
    subprocess.run([*compiler.split(), "-g", "-o", "a", "a.c"], cwd=tmp_path, check=True)
    assert run([cachegram, "record", *MODES["full"], "-o", tmp_path / "p.db", "--", tmp_path / "a"]).status == 0
    rows = hotspots(cachegram, tmp_path / "p.db", "--by", "object", "--limit", "6")
    # Where it is inlined, gcc says where b is, and clang where p is.
    wrapped = {"gcc -O2": "main::b a.c:9", "clang -O2": "aligned::p a.c:9"}.get(compiler, "aligned a.c:9")
    assert {row["object"].removeprefix("block of ") for row in rows} == {
        wrapped, "main::q a.c:20", "grid::cells a.c:11", "everywhere a.c:26", "pool::free a.c:10", "main a.c:30"}


REPLACED = """
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
enum { BYTES = 65536 };
static void touch(volatile char *bytes)
{
    for (int i = 0; i < 4 * BYTES; i += 64)
        bytes[i % BYTES]++;
}
int main(int argc, char **argv)
{
    volatile char local[BYTES];
    if (argc > 1) {
        kill(getppid(), SIGCONT);
        usleep(300000);
        return 0;
    }
    kill(getppid(), SIGSTOP);
    touch(local);
    char *block = malloc(BYTES);
    touch(block);
    return execl(argv[0], argv[0], "again", (char *)NULL);
}
"""


def test_program_that_was_replaced(cachegram, tmp_path):
    """The recorder, stopped meanwhile, looks at the process when that executes another program, whose mappings are not those
    of the first one."""
    compile_text(tmp_path / "a.c", REPLACED)
    assert run([cachegram, "record", *MODES["full"], "-o", tmp_path / "p.db", "--", tmp_path / "a"]).status == 0
    rows = hotspots(cachegram, tmp_path / "p.db", "--by", "object", "--limit", "2")
    assert {row["object"] for row in rows} == {"main::local", "block of main::block a.c:21"}


COPIED = """
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef LIBRARY
static void late(void)
{
    usleep(300000);
}
__attribute__((constructor)) static void begin(void)
{
    pthread_atfork(NULL, NULL, late);
}
#else
enum { BYTES = 65536 };
int main(int argc, char **argv)
{
    pid_t recorder = getppid();
    if (argc > 1) {
        usleep(800000);
        kill(atoi(argv[1]), SIGCONT);
        usleep(300000);
        return 0;
    }
    if (fork() == 0) /* its slot will be free again */
        _exit(0);
    if (fork() == 0) {
        usleep(500000);
        volatile char *block = malloc(BYTES);
        kill(recorder, SIGSTOP);
        if (fork() == 0) {
            for (int i = 0; i < 4 * BYTES; i += 64)
                block[i % BYTES]++;
            _exit(0);
        }
        char number[16];
        sprintf(number, "%d", (int)recorder);
        execl(argv[0], argv[0], number, (char *)NULL);
    }
    while (wait(NULL) > 0)
        ;
    return 0;
}
#endif
"""


def test_copy_of_program_that_was_replaced(cachegram, tmp_path):
    """A process forks, and executes another program before the child takes its slot, which is above that program's: the child
    has the blocks of the program before."""
    compile_text(tmp_path / "a.c", COPIED)
    compile_text(tmp_path / "lib.c", COPIED, "-shared", "-fPIC", "-DLIBRARY")
    result = run([cachegram, "record", *MODES["full"], "-o", tmp_path / "p.db", "--", tmp_path / "a"],
                 env={**os.environ, "LD_PRELOAD": str(tmp_path / "lib")})
    assert result.status == 0, result.err
    rows = hotspots(cachegram, tmp_path / "p.db", "--by", "object", "--limit", "1")
    assert [row["object"] for row in rows] == ["block of main::block a.c:32"]
