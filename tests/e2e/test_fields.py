# SPDX-License-Identifier: Apache-2.0
"""Fields of structures: a hot field among cold ones is named in the first place, where its type is known."""
import re
import csv
import io
import json
import shutil
import sqlite3
import subprocess

import pytest

from conftest import MODES, TARGETS, build_target, compile_text, run

# Object, field, type, how it is written.
PLANTED = {
    "derived": ("shop::products", "weight", "item", "shop::products[].weight"),
    "nested": ("shop::shapes", "corners[].y", "shape", "shop::shapes[].corners[].y"),
    "local": ("table", "hot", "", "table[].hot"),
    "united": ("shop::choices", "value.whole|real", "choice", "shop::choices[].value.whole|real"),
    "several": ("shop::shapes", "(several)", "", "shop::shapes (several fields)"),
    "alone": ("shop::numbers", "", "", "shop::numbers"),
}
ROUNDS = {"burst": 8000, "full": 40}


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return build_target(TARGETS / "hot_fields.cpp", tmp_path_factory.mktemp("fields"))


def record(cachegram, mode, db, *argv):
    result = run([cachegram, "record", *MODES[mode], "-o", db, "--", *argv])
    assert result.status == 0, result.err


def hotspots(cachegram, db, *options):
    result = run([cachegram, "hotspots", "--format", "csv", "--size", "32K", *options, db])
    assert result.status == 0, result.err
    return list(csv.DictReader(io.StringIO(result.out.decode())))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("what", PLANTED)
def test_planted(what, mode, program, cachegram, tmp_path):
    data, field, kind, written = PLANTED[what]
    db = tmp_path / "p.db"
    record(cachegram, mode, db, program, what, ROUNDS[mode])
    for by in ("field", "object,field", "field,function"):
        first = hotspots(cachegram, db, "--by", by)[0]
        assert first["object"].endswith(data)  # a local one has its function before it
        assert (first["field"], first["field_type"]) == (field, kind)
        assert float(first["miss_share"]) > 0.9
        assert first["function"] == (what + "()" if by == "field,function" else "") or first["function"].endswith(what)
    data = json.loads(run([cachegram, "hotspots", "--format", "json", "--size", "32K", "--by", "field", db]).out)
    assert (data["rows"][0].get("field", ""), data["rows"][0].get("field_type", "")) == (field, kind)
    text = run([cachegram, "hotspots", "--size", "32K", "--by", "field", "--limit", "1", db]).out.decode()
    assert text.startswith("Misses by field: ") and f"{written}  (hot_fields)" in text
    # Tables by object and by field add up to the same.
    for column in ("miss_share", "refs_share"):
        assert sum(float(row[column]) for row in hotspots(cachegram, db, "--by", "field")) == pytest.approx(1, abs=1e-6)


# Program, arguments, function, object, field, type. Blocks: what a variable points to, or an allocator's T.
BLOCKS = {
    "calloc": ("hot_list.c", [3], "follow", "block of shuffled::nodes hot_list.c:", "next", "node"),
    "malloc": ("hot_blocks.c", ["list", 30], "follow", "block of new_node::n hot_blocks.c:", "next|value[]", "node"),
    "new": ("hot_blocks.cpp", ["new", 30], "main", "block of store::make_item hot_blocks.cpp:", "key", "Item"),
    "vector": ("hot_cloud.cpp", [30], "model::cloud::sum_charges", "block of main::cloud.particles hot_cloud.cpp:", "charge", "particle"),
    # The library has the function for a const node, too.
    "map": ("hot_blocks.cpp", ["map", 30], "std::_Rb_tree_increment(std::_Rb_tree_node_base*)", "block of store::Table::insert hot_blocks.cpp:",
            "_M_left|_M_right|_M_parent|", "_Rb_tree_node_base|"),
    "list": ("hot_elements.cpp", ["list", 30], "sum_list", "block of main hot_elements.cpp:", "note[]", "order"),
    "unique": ("hot_elements.cpp", ["unique", 30], "sum_array", "block of main hot_elements.cpp:", "price", "order"),
    "rust vector": ("hot_rust.rs", ["mass", 30], "hot_rust::bodies::total_mass", "block of hot_rust::bodies::make hot_rust.rs:",
                    "mass", "Body"),
    "rust box": ("hot_rust.rs", ["links", 30], "hot_rust::links::length", "block of hot_rust::links::make hot_rust.rs:", "next", "Link"),
    "rust map": ("hot_rust.rs", ["prices", 30], "hot_rust::prices::total", "block of hot_rust::prices::make hot_rust.rs:", "0",
                 "(u64, hot_rust::prices::Entry)"),
    "fortran": ("hot_fields.f90", [60], "hot_fields|bodies::total_mass", "bodies::all_bodies",
                "mass", "body"),
}


@pytest.mark.parametrize("what", BLOCKS)
def test_blocks(what, cachegram, tmp_path):
    source, args, function, name, field, kind = BLOCKS[what]
    db = tmp_path / "p.db"
    record(cachegram, "full", db, build_target(TARGETS / source, tmp_path), *args)
    first = hotspots(cachegram, db, "--by", "function,field")[0]
    assert first["function"] in function.split("|")
    assert any(first["object"].startswith(part) for part in name.split("|"))
    # The C++ library has debug information here or not.
    assert first["field"] in field.split("|") and first["field_type"] in kind.split("|")
    if what == "calloc":
        finding = json.loads(run([cachegram, "report", "--format", "json", db]).out)["findings"][0]
        assert (finding["function"], finding["field"]) == ("follow", "next")
        text = run([cachegram, "hotspots", "--by", "field", "--size", "32K", db]).out.decode()
        assert f"  {first['object']}: node.next  (hot_list)\n" in text


# Of hot_pools.c: function, object, field, type, how it is written.
POOLS = {
    "slab": ("sum_weights", "block of slabs hot_pools.c:", "weight", "edge", ": edge.weight"),
    "arena": ("sum_weights", "arena", "weight", "edge", "arena[].weight"),
    "file": ("count_group", "[file hot_pools.", "group", "record", ": record.group"),
    "wrapper": ("count_group", "block of must_have hot_pools.c:", "group", "record", ": record.group"),
}


@pytest.mark.parametrize("scene", POOLS)
def test_pools(scene, cachegram, tmp_path):
    """Memory that was not allocated for the structures in it: what code works on tells their type, or a caller of the function that allocated."""
    function, name, field, kind, written = POOLS[scene]
    program, db = tmp_path / "hot_pools", tmp_path / "p.db"
    subprocess.run(["gcc", "-O2", "-g", "-o", program, TARGETS / "hot_pools.c"], check=True)
    record(cachegram, "full", db, program, scene)
    first = hotspots(cachegram, db, "--by", "function,field")[0]
    assert first["function"] == function and first["object"].startswith(name)
    assert (first["field"], first["field_type"]) == (field, kind)
    assert written in run([cachegram, "hotspots", "--by", "field", "--size", "32K", "--limit", "1", db]).out.decode()


def test_pool_of_the_library(cachegram, tmp_path):
    """An element of a list in an arena: a reference to it is a constant more than the register, which points to the node."""
    (tmp_path / "a.cpp").write_text("""
        #include <cstdio>
        #include <list>
        #include <memory_resource>
        struct body { double x, y, mass; char name[104]; };
        static std::pmr::monotonic_buffer_resource arena;
        [[gnu::noipa]] static double total(const std::pmr::list<body> &all)
        {
            double sum = 0;
            for (const body &one : all)
                sum += one.mass;
            return sum;
        }
        int main()
        {
            std::pmr::list<body> all(20000, body{}, &arena);
            double sum = 0;
            for (int i = 0; i < 10; i++)
                sum += total(all);
            std::printf("%g\\n", sum);
        }
        """)
    subprocess.run(["g++", "-std=c++17", "-O2", "-g", "-o", tmp_path / "a", tmp_path / "a.cpp"], check=True)
    record(cachegram, "full", tmp_path / "p.db", tmp_path / "a")
    rows = hotspots(cachegram, tmp_path / "p.db", "--by", "function,field")
    assert ("mass", "body") in {(row["field"], row["field_type"]) for row in rows if row["function"] == "total"}


def test_common_block(cachegram, tmp_path):
    """Its members, by their names in all units that have it."""
    (tmp_path / "a.f90").write_text("""
        program main
          implicit none
          real(8) :: first(256, 256), second(256, 256)
          common /shared/ first, second
          integer :: k
          first = 1
          second = 2
          do k = 1, 3
            call walk()
          end do
          print *, second(3, 4)
        end program
        subroutine walk()
          implicit none
          real(8) :: first(256, 256), other(256, 256)
          common /shared/ first, other
          integer :: i, j
          do i = 1, 256
            do j = 1, 256
              other(i, j) = other(i, j) + first(1, 1)
            end do
          end do
        end subroutine
        """)
    subprocess.run(["gfortran", "-O1", "-fno-inline", "-g", "-o", tmp_path / "a", tmp_path / "a.f90"], check=True)
    record(cachegram, "full", tmp_path / "p.db", tmp_path / "a")
    rows = [row for row in hotspots(cachegram, tmp_path / "p.db", "--by", "function,field") if row["object"] == "shared_"]
    assert rows[0]["function"] == "walk_" and rows[0]["field"] in ("second|other", "other|second")
    assert "first" in {row["field"] for row in rows}


def test_hash_map_of_rust(cachegram, tmp_path):
    """Entries and control bytes are in one block: the instructions tell which of them they read."""
    db = tmp_path / "p.db"
    record(cachegram, "full", db, build_target(TARGETS / "hot_rust.rs", tmp_path), "prices", 30)
    rows = {row["field"]: row for row in hotspots(cachegram, db, "--by", "function,field") if row["function"] == "hot_rust::prices::total"}
    assert rows["ctrl"]["field_type"] == "RawTable"
    assert float(rows["0"]["miss_share"]) + float(rows["ctrl"]["miss_share"]) > 0.85


def test_enum_of_rust(cachegram, tmp_path):
    """The number of the variant, and the fields of two variants at the same place, in an Option, which has no field of its own."""
    db = tmp_path / "p.db"
    record(cachegram, "full", db, build_target(TARGETS / "hot_rust.rs", tmp_path), "shapes", 30)
    rows = {row["field"]: row for row in hotspots(cachegram, db, "--by", "function,field") if row["function"] == "hot_rust::shapes::area"}
    for field in ("{variant}", "Circle.radius|Square.side"):
        assert rows[field]["field_type"] == "Shape"
    assert float(rows["{variant}"]["miss_share"]) + float(rows["Circle.radius|Square.side"]["miss_share"]) > 0.85


def test_empty_base(cachegram, tmp_path):
    """std::pair has a base class without data, which lies where its first member does."""
    db = tmp_path / "p.db"
    record(cachegram, "full", db, build_target(TARGETS / "hot_elements.cpp", tmp_path), "map", 30)
    rows = hotspots(cachegram, db, "--by", "function,field")
    assert "first" in {row["field"] for row in rows if row["function"] == "sum_keys"}


# Of hot_declared.cpp: function, object, field, type.
DECLARED = {
    "weigh": ("weigh", "boxes", "weight", "shape"),
    "deepen": ("deepen", "block of main::list hot_declared.cpp:", "depth", "box"),
    "travel": ("travel", "trips", "to|both", ""),
    "read": ("read", "trips", "text._M_dataplus._M_p", ""),
}


@pytest.mark.parametrize("compiler", ["g++ -g", "g++ -g -fdebug-types-section", "g++ -gdwarf-4 -fdebug-types-section", "g++ -g -gsplit-dwarf"])
def test_declared_elsewhere(compiler, cachegram, tmp_path):
    """A unit that only declares a class: its definition in another unit, or in a unit of types."""
    source, program = TARGETS / "hot_declared.cpp", tmp_path / "hot_declared"
    for name, options in (("shapes", ["-DWHOLE"]), ("main", [])):
        subprocess.run([*compiler.split(), "-O1", *options, "-c", source, "-o", f"{name}.o"], cwd=tmp_path, check=True)
    subprocess.run(["g++", "-o", program, "shapes.o", "main.o"], cwd=tmp_path, check=True)
    for what, (function, data, field, kind) in DECLARED.items():
        db = tmp_path / f"{what}.db"
        record(cachegram, "full", db, program, what)
        first = hotspots(cachegram, db, "--by", "function,field")[0]
        assert first["function"] == function and first["object"].startswith(data), what
        assert first["field"] == field and first["field_type"] in kind.split("|"), what
        assert float(first["miss_share"]) > 0.4, what


@pytest.mark.parametrize("level", ["-O0", "-O2"])
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_array_of_unknown_length(compiler, level, cachegram, tmp_path):
    """The last member of a structure, whose size does not say where a block of it ends."""
    program = compile_text(tmp_path / "a.c", """
        #include <stdio.h>
        #include <stdlib.h>
        struct node { long key, level; struct node *next[]; };
        static __attribute__((noinline)) long walk(const struct node *x, int level)
        {
            long sum = 0;
            for (; x != NULL; x = x->next[level])
                sum += x->key;
            return sum;
        }
        int main(void)
        {
            enum { N = 4000 };
            struct node **nodes = calloc(N, sizeof *nodes);
            for (int i = 0; i < N; i++) {
                nodes[i] = calloc(1, sizeof(struct node) + (unsigned)(i % 3 + 14) * sizeof(struct node *));
                nodes[i]->key = i;
            }
            for (int i = 0; i + 1 < N; i++)
                for (int k = 0; k < 14; k++)
                    nodes[i * 1237l % N]->next[k] = nodes[(i + 1) * 1237l % N];
            long sum = 0;
            for (int k = 0; k < 30; k++)
                sum += walk(nodes[0], k % 14);
            printf("%ld\\n", sum);
        }
        """, level, "-g")
    if compiler != "gcc":
        subprocess.run([compiler, level, "-g", "-o", program, tmp_path / "a.c"], check=True)
    record(cachegram, "full", tmp_path / "p.db", program)
    rows = [row for row in hotspots(cachegram, tmp_path / "p.db", "--by", "function,field") if row["function"] == "walk"]
    assert {(row["field"], row["field_type"]) for row in rows[:2]} == {("key", "node"), ("next[]", "node")}
    assert all(float(row["miss_share"]) > 0.1 for row in rows[:2])


# Of hot_indexed.c: function, field, type.
INDEXED = {
    "array": ("sum_values", "value", "item"),
    "inner": ("sum_points", "points[].y", "grid"),
    "member": ("sum_members", "value", "item"),
    "global": ("sum_global", "value", "item"),
}


@pytest.mark.parametrize("level", ["-O0", "-O2"])
@pytest.mark.parametrize("scene", INDEXED)
def test_indexed(scene, level, cachegram, tmp_path):
    """Memory of which only the code says what it is, by a pointer in a register and an index, or one loaded from elsewhere."""
    if (scene, level) == ("inner", "-O0"):
        pytest.skip("the element's address is a product that is added to that of the array")
    function, field, kind = INDEXED[scene]
    program, db = tmp_path / "hot_indexed", tmp_path / "p.db"
    subprocess.run(["gcc", level, "-g", "-o", program, TARGETS / "hot_indexed.c"], check=True)
    record(cachegram, "full", db, program, scene)
    rows = hotspots(cachegram, db, "--by", "function,field")
    first = next(row for row in rows if row["function"] == function and " hot_indexed.c:" in row["object"])
    assert (first["field"], first["field_type"]) == (field, kind)
    assert float(first["miss_share"]) > (0.45 if scene == "member" else 0.8)


# Of hot_stored.cpp: function, field, type.
STORED = {
    "member": ("read_entries", "value", "entry"),
    "element": ("read_rows", "value", "entry"),
    "constructed": ("read_rows", "weight", "derived"),
    "derived": ("derived::plus_weight", "weight", "derived"),
}


@pytest.mark.parametrize("scene", STORED)
def test_stored(scene, cachegram, tmp_path):
    """What is done with an allocation's result, where no variable has it: a member, an element, a call that keeps it."""
    function, field, kind = STORED[scene]
    program, db = tmp_path / "hot_stored", tmp_path / "p.db"
    subprocess.run(["g++", "-O2", "-g", "-o", program, TARGETS / "hot_stored.cpp"], check=True)
    record(cachegram, "full", db, program, scene)
    rows = [row for row in hotspots(cachegram, db, "--by", "function,field") if row["function"] == function]
    assert rows[0]["object"].startswith(("block of make_", "block of table::entries")) and float(rows[0]["miss_share"]) > 0.3
    assert (rows[0]["field"], rows[0]["field_type"]) == (field, kind)
    fields = {row["field"] for row in hotspots(cachegram, db, "--by", "field") if row["field_type"] == "base"}
    assert fields <= {"id", "total", "cold[]"}  # nothing of what the derived class adds


def test_argument_of_fortran(cachegram, tmp_path):
    """An array that a subroutine gets: its address is in a register, or was added to an index."""
    source, program, db = tmp_path / "bodies.f90", tmp_path / "bodies", tmp_path / "p.db"
    source.write_text("""
        module types
          type :: body
             real(8) :: place(3), speed(3), mass
             integer :: number, cell
             real(8) :: more(8)
          end type
        contains
        subroutine fill(list, n)
          integer :: n, i
          type(body) :: list(n)
          do i = 1, n
             list(i)%mass = i
          end do
        end subroutine
        function total(list, n) result(sum)
          integer :: n, i, k
          type(body) :: list(n)
          real(8) :: sum
          sum = 0
          k = 0
          do i = 1, n
             sum = sum + list(k + 1)%mass
             k = mod(k * 5 + 12345, n)
          end do
        end function
        end module
        program main
          use types
          type(body), allocatable :: all(:)
          integer :: i
          real(8) :: sum
          allocate(all(16384))
          call fill(all, 16384)
          sum = 0
          do i = 1, 20
             sum = sum + total(all, 16384)
          end do
          print '(f0.1)', sum
        end program
        """)
    subprocess.run(["gfortran", "-O1", "-fno-inline", "-fno-ipa-cp", "-g", "-o", program, source], check=True, cwd=tmp_path)
    record(cachegram, "full", db, program)
    first = hotspots(cachegram, db, "--by", "function,field")[0]
    assert first["function"] == "types::total" and first["object"].startswith("block of ")
    assert (first["field"], first["field_type"]) == ("mass", "body")


def test_array_in_a_structure_of_fortran(cachegram, tmp_path):
    """The call stores what it allocates to the descriptor in a structure that the subroutine gets."""
    source, program, db = tmp_path / "mesh.f90", tmp_path / "mesh", tmp_path / "p.db"
    source.write_text("""
        module types
          type :: cell
             real(8) :: u, v, rest(6)
          end type
          type :: mesh
             type(cell), allocatable :: cells(:,:)
          end type
        contains
        subroutine fill(m, n)
          type(mesh), intent(inout) :: m
          integer, intent(in) :: n
          allocate(m%cells(n, n))
          m%cells%v = 1
        end subroutine
        function total(m) result(sum)
          type(mesh), intent(in) :: m
          real(8) :: sum
          integer :: i, k
          sum = 0
          do i = 1, size(m%cells, 1)
             do k = 1, size(m%cells, 2)
                sum = sum + m%cells(i, k)%v
             end do
          end do
        end function
        end module
        program main
          use types
          type(mesh) :: all
          integer :: i
          real(8) :: sum
          call fill(all, 200)
          sum = 0
          do i = 1, 5
             sum = sum + total(all)
          end do
          print '(f0.1)', sum
        end program
        """)
    subprocess.run(["gfortran", "-O2", "-fno-inline", "-fno-ipa-cp", "-fno-ipa-sra", "-g", "-o", program, source], check=True, cwd=tmp_path)
    record(cachegram, "full", db, program)
    first = hotspots(cachegram, db, "--by", "function,field")[0]
    assert (first["function"], first["field"], first["field_type"]) == ("types::total", "v", "cell")
    assert first["object"].startswith("block of mesh::cells ")


def test_allocators_of_types_of_one_size(cachegram, tmp_path):
    """GCC makes one function of the allocators of both vectors; debug information has the name of either."""
    compile_text(tmp_path / "vectors.cpp", """#include <vector>
struct price { long bid, ask, rest[6]; };
struct order { long id, count, rest[6]; };
__attribute__((noinline)) long sum_up(const std::vector<price> &prices, const std::vector<order> &orders)
{
    long sum = 0;
    for (const price &p : prices)
        sum += p.ask;
    for (const order &o : orders)
        sum += o.count;
    return sum;
}
int main(int argc, char **)
{
    long n = argc * 30000, sum = 0;
    std::vector<price> prices(n);
    std::vector<order> orders(n);
    for (volatile int t = 0; t < 4; t++)
        sum += sum_up(prices, orders);
    return sum == 1;
}
""", "-std=c++20", "-O2", "-g", "-w")
    record(cachegram, "full", tmp_path / "p.db", tmp_path / "vectors")
    rows = [row for row in hotspots(cachegram, tmp_path / "p.db", "--by", "function,field") if row["function"].startswith("sum_up")]
    found = {row["object"].split()[2]: (row["field_type"], row["field"]) for row in rows[:2]}
    assert found == {"main::prices": ("price", "ask"), "main::orders": ("order", "count")}


def test_short_loops(cachegram, tmp_path):
    """Loops of a fiftieth of a short run: all, or nearly all, have their field and the use of their lines."""
    db = tmp_path / "p.db"
    record(cachegram, "full", db, build_target(TARGETS / "hot_turns.c", tmp_path))
    rows = [row for row in hotspots(cachegram, db, "--by", "function,field")
            if row["object"] == row["function"].replace("turn", "table") and float(row["miss_share"]) > 0.01]
    assert len(rows) == 32
    assert sum(row["field"] == "hot" for row in rows) >= 28
    assert sum(row["line_used_share"] != "" for row in rows) >= 28


def test_no_array(program, cachegram, tmp_path):
    """Cells that do not begin where their block does: instructions know the field, offsets do not."""
    db = tmp_path / "p.db"
    record(cachegram, "full", db, program, "pool", 3)
    rows = hotspots(cachegram, db, "--by", "function,field")
    of = {name: {row["field"] for row in rows if row["function"].split("(")[0] == name and row["object"].startswith("block of memory ")}
          for name in ("get", "fill")}
    assert of == {"get": {"hot"}, "fill": {""}}


def test_bit_fields(program, cachegram, tmp_path):
    """The compiler may read one byte or the whole word of both."""
    db = tmp_path / "p.db"
    record(cachegram, "full", db, program, "bits", 40)
    assert hotspots(cachegram, db, "--by", "field")[0]["field"] in ("first|second", "second")


def test_in_c_and_in_the_report(cachegram, tmp_path):
    """The report's sentence has the field; causes are by field, too; the program is not needed any more."""
    program, db = tmp_path / "layout", tmp_path / "p.db"
    shutil.copy(build_target(TARGETS / "hot_layout.c", tmp_path), program)
    record(cachegram, "full", db, program, "fields", 60)
    program.unlink()
    first = hotspots(cachegram, db, "--by", "line,field")[0]
    assert (first["function"], first["object"], first["field"], first["field_type"]) == ("sum_fields", "records", "hot", "record")
    assert float(first["line_used_share"]) == pytest.approx(1 / 8, abs=0.01)
    finding = json.loads(run([cachegram, "report", "--format", "json", db]).out)["findings"][0]
    assert (finding["object"], finding["field"], finding["remedy"]) == ("records", "hot", "pack")
    assert ", on records, field hot. " in run([cachegram, "report", db]).out.decode()
    result = run([cachegram, "causes", "--by", "field", "--size", "32K", "--format", "csv", db])
    row = next(csv.DictReader(io.StringIO(result.out.decode())))
    assert (row["victim"], row["evictor"]) == ("records[].hot", "records[].hot")
    assert run([cachegram, "causes", "--by", "field", db]).out.startswith(b"Causes of misses by field: ")
    with sqlite3.connect(db) as connection:  # as from an earlier version
        connection.execute("DROP TABLE field")
        connection.execute("DROP TABLE site_field")
    assert hotspots(cachegram, db, "--by", "field")[0]["field"] == ""


@pytest.mark.parametrize("way", ["separate", "symbols"])
def test_debug_information(way, cachegram, tmp_path):
    program, db = tmp_path / "program", tmp_path / "p.db"
    shutil.copy(build_target(TARGETS / "hot_layout.c", tmp_path), program)
    if way == "separate":
        subprocess.run(["objcopy", "--only-keep-debug", program, tmp_path / "program.debug"], check=True)
        subprocess.run(["strip", "--strip-debug", program], check=True)
        subprocess.run(["objcopy", f"--add-gnu-debuglink={tmp_path / 'program.debug'}", program], check=True)
    else:
        subprocess.run(["strip", "--strip-debug", program], check=True)
    record(cachegram, "full", db, program, "fields", 20)
    first = hotspots(cachegram, db, "--by", "field")[0]
    assert (first["object"], first["field"]) == ("records", "hot" if way == "separate" else "")


@pytest.mark.parametrize("wrong", ["field,field", "object,object", "field,nonsense", ",field"])
def test_wrong_usage(wrong, cachegram):
    for command in ("hotspots", "causes"):
        result = run([cachegram, command, "--by", wrong])
        assert (result.status, result.out) == (2, b"") and b"must be function, line" in result.err


def test_damaged(program, cachegram, tmp_path):
    """Fields of other objects, and ids that do not exist."""
    db = tmp_path / "p.db"
    record(cachegram, "full", db, program, "nested", 10)
    for change in ("UPDATE field SET object = -1", "UPDATE field SET id = id + 1000", "UPDATE site_field SET field = 1 << 40",
                   "UPDATE site_field SET lines = -1, object = 1 << 60", "UPDATE field SET name = NULL, type = NULL"):
        damaged = tmp_path / "damaged.db"
        shutil.copy(db, damaged)
        with sqlite3.connect(damaged) as connection:
            connection.execute(change)
        assert hotspots(cachegram, damaged, "--by", "field")[0]["object"] == "shop::shapes"




@pytest.mark.parametrize("level", ["-O0", "-O2"])
@pytest.mark.parametrize("what, field", [("global", "value"), ("local", "value"), ("header", "")])
def test_assigned(what, field, level, cachegram, tmp_path):
    """Blocks are of the structure to which the variable points that they are assigned to."""
    program, db = tmp_path / "hot_assigned", tmp_path / "p.db"
    subprocess.run(["gcc", level, "-g", "-o", program, TARGETS / "hot_assigned.c"], check=True)
    record(cachegram, "full", db, program, what)
    first = hotspots(cachegram, db, "--by", "function,field")[0]
    assert first["function"] == "sum_of" and re.match("block of (items|main::own|main::header) hot_assigned.c:", first["object"])
    assert (first["field"], first["field_type"]) == (field, "item" if field else "")
