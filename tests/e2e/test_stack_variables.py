# SPDX-License-Identifier: Apache-2.0
"""Large variables on stacks are data objects of their own, by the debug information."""
import csv
import io
import subprocess

import pytest

from conftest import MODES, TARGETS, build_target, compile_text, run

# Misses in a cache of 64 KB, in passes over 512 KB in each round (tests/targets/stack_arrays.c); with two before the
# first one, of cells.
PASSES = {"first::red": 3, "second::blue": 4, "blocks::upper": 1, "blocks::lower": 2, "main::cells": 1.2, "thread::own": 2}
ROUNDS = {"burst": "1200", "full": "10"}


def hotspots(cachegram, db, *options):
    result = run([cachegram, "hotspots", "--format", "csv", "--size", "64K", *options, db])
    assert result.status == 0, result.err
    return list(csv.DictReader(io.StringIO(result.out.decode())))


def record(cachegram, mode, db, *program):
    result = run([cachegram, "record", *MODES[mode], "-o", db, "--", *program])
    assert result.status == 0, result.err


def shares(rows, of="miss_share"):
    return {row["object"]: float(row[of]) for row in rows}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("flags", ["-O0", "-O2", "-O2 -fno-omit-frame-pointer", "-O1 -gdwarf-4"])
def test_arrays(flags, mode, cachegram, tmp_path):
    program = build_target(TARGETS / "stack_arrays.c", tmp_path, *flags.split())
    db = tmp_path / "p.db"
    record(cachegram, mode, db, program, ROUNDS[mode])
    rows = hotspots(cachegram, db, "--by", "object")
    found = shares(rows)
    # Some bursts begin where main's frame is not known; and there are too few to know the shares.
    assert sum(found.get(name, 0) for name in PASSES) > (0.98 if mode == "full" else 0.7)
    if mode == "burst":
        return
    refs = shares(rows, "refs_share")
    for name, passes in PASSES.items():
        assert found[name] == pytest.approx(passes / sum(PASSES.values()), rel=0.02), name
    for name in "first::red", "second::blue", "thread::own":  # memset makes nearly all, one reference for each byte
        expected = {"second::blue": 0.48}.get(name, 0.24) if flags != "-O0" else {"second::blue": 0.39}.get(name, 0.197)
        assert refs[name] == pytest.approx(expected, rel=0.04), name
    row = next(row for row in rows if row["object"] == "main::cells")
    assert (row["object_kind"], row["object_module"], row["object_size"]) == ("local", str(program), str(1 << 20))
    fields = {(row["object"], row["field"], row["field_type"]) for row in hotspots(cachegram, db, "--by", "field")}
    assert ("main::cells", "key", "cell") in fields


def test_where_the_debug_information_is(cachegram, tmp_path):
    """Beside the program's addresses, in a file for the debugger, or nowhere."""
    source = TARGETS / "stack_arrays.c"
    subprocess.run(["gcc", "-O2", "-g", "-gsplit-dwarf", "-pthread", source, "-o", "split"], cwd=tmp_path, check=True)
    record(cachegram, "full", tmp_path / "p.db", tmp_path / "split", ROUNDS["full"])
    assert shares(hotspots(cachegram, tmp_path / "p.db", "--by", "object"))["second::blue"] > 0.25
    program = build_target(TARGETS / "stack_arrays.c", tmp_path, "-O2")
    db = tmp_path / "p.db"
    subprocess.run(["objcopy", "--only-keep-debug", program, f"{program}.debug"], check=True)
    subprocess.run(["strip", program], check=True)
    subprocess.run(["objcopy", f"--add-gnu-debuglink={program}.debug", program], check=True)
    record(cachegram, "full", db, program, ROUNDS["full"])
    assert shares(hotspots(cachegram, db, "--by", "object"))["second::blue"] > 0.25
    (tmp_path / f"{program.name}.debug").unlink()
    record(cachegram, "full", db, program, ROUNDS["full"])
    rows = hotspots(cachegram, db, "--by", "object")
    assert shares(rows)["[stack of main thread]"] > 0.8 and not any(row["object"] in PASSES for row in rows)


def test_units_in_files_of_their_own(cachegram, tmp_path):
    """With -gsplit-dwarf entries of two units may have the same offset, each in its file: here the functions have."""
    text = ("void {0}(int n)\n{{\n    volatile long {1}[16384];\n    for (int i = 0; i < 8 * n; i++)\n"
            "        {1}[i * 8 % 16384] = i;\n}}\n")
    (tmp_path / "a.c").write_text(text.format("one", "red"))
    (tmp_path / "b.c").write_text(text.format("two", "sky"))
    (tmp_path / "m.c").write_text("void one(int), two(int);\nint main(void)\n{\n    one(5000);\n    two(5000);\n    return 0;\n}\n")
    subprocess.run(["gcc", "-O1", "-g", "-gsplit-dwarf", "a.c", "b.c", "m.c", "-o", "split"], cwd=tmp_path, check=True)
    record(cachegram, "full", tmp_path / "p.db", tmp_path / "split")
    found = shares(hotspots(cachegram, tmp_path / "p.db", "--by", "object"))
    assert found["one::red"] == pytest.approx(0.5, abs=0.05) and found["two::sky"] == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize("mode", MODES)
def test_memory_that_others_use_later(mode, cachegram, tmp_path):
    """A function has a large array, once; then deep calls use the same memory, to which it belongs no longer."""
    compile_text(tmp_path / "a.c", """
        #include <stdio.h>
        #include <stdlib.h>
        #define NOINLINE __attribute__((noinline))
        static NOINLINE long once(long n)
        {
            volatile char big[400000];
            long sum = 0;
            for (long i = 0; i < 400000; i++)
                big[i] = (char)(i * n);
            for (long i = 0; i < 400000; i += 64)
                sum += big[i];
            return sum;
        }
        static NOINLINE long fib(long n)
        {
            volatile long here = n;
            return here < 2 ? here : fib(n - 1) + fib(n - 2);
        }
        static NOINLINE long deep(long depth)
        {
            volatile char here[100];
            here[0] = (char)depth;
            return depth == 0 ? fib(16) : deep(depth - 1) + here[0];
        }
        int main(int argc, char **argv)
        {
            long sum = once(argc);
            for (int i = 0; i < atoi(argv[1]); i++)
                sum += deep(i % 3000);
            printf("%ld\\n", sum);
            return 0;
        }
        """, "-O2", "-g")
    db = tmp_path / "p.db"
    record(cachegram, mode, db, tmp_path / "a", {"burst": "6000", "full": "600"}[mode])
    rows = hotspots(cachegram, db, "--by", "function,object")
    assert sum(float(row["refs_share"]) for row in rows
               if row["object"] == "once::big" and row["function"] != "once") < 0.01
    assert sum(float(row["refs_share"]) for row in rows if row["object"] == "[stack of main thread]") > 0.9


@pytest.mark.parametrize("flags", ["-O0", "-O2"])
def test_arrays_of_variable_length(flags, cachegram, tmp_path):
    """They have no fixed place: those of a function are one object."""
    compile_text(tmp_path / "a.c", """
        #include <stdio.h>
        static __attribute__((noinline)) double sum(int n, double m[n][n])
        {
            double all = 0;
            for (int j = 0; j < n; j++)
                for (int i = 0; i < n; i++)
                    all += m[i][j];
            return all;
        }
        int main(int argc, char **argv)
        {
            int n = 300 + argc;
            double a[n][n], b[n][n], fixed[1000], all = 0;
            for (int i = 0; i < n; i++)
                for (int j = 0; j < n; j++)
                    b[i][j] = a[i][j] = i * j;
            for (int i = 0; i < 1000; i++)
                fixed[i] = i;
            for (int r = 0; r < 5; r++)
                all += sum(n, a) + sum(n, b) + fixed[r];
            printf("%g\\n", all);
            return 0;
        }
        """, flags, "-g")
    db = tmp_path / "p.db"
    record(cachegram, "full", db, tmp_path / "a")
    assert shares(hotspots(cachegram, db, "--by", "object"))["main::a|b"] > 0.97


def test_an_aligned_frame(cachegram, tmp_path):
    """Its variables are found by the stack pointer."""
    compile_text(tmp_path / "a.c", """
        #include <stdio.h>
        #include <string.h>
        static __attribute__((noinline)) long walk(volatile char *from)
        {
            long sum = 0;
            for (int r = 0; r < 20; r++)
                for (int i = 0; i < 8192; i++)
                    sum += from[64 * i];
            return sum;
        }
        int main(int argc, char **argv)
        {
            _Alignas(64) char big[512 << 10];
            memset(big, argc, sizeof big);
            printf("%ld\\n", walk(big));
            return 0;
        }
        """, "-O2", "-g")
    db = tmp_path / "p.db"
    record(cachegram, "full", db, tmp_path / "a")
    assert shares(hotspots(cachegram, db, "--by", "object"))["main::big"] > 0.97


@pytest.mark.parametrize("flags", ["-O", "-C force-frame-pointers=yes -O", "-C opt-level=0"])
def test_rust(flags, cachegram, tmp_path):
    """LLVM has other frame bases than gcc."""
    source = tmp_path / "r.rs"
    source.write_text("""
        #[derive(Clone, Copy)]
        struct Body { x: f64, v: f64, rest: [f64; 6] }
        #[inline(never)]
        fn drift(bodies: &mut [Body]) -> f64 {
            let mut sum = 0.0;
            for b in bodies.iter_mut() { b.x += b.v; sum += b.x; }
            sum
        }
        fn main() {
            let mut bodies = [Body { x: 1.0, v: 0.5, rest: [0.0; 6] }; 20000];
            let mut sum = 0.0;
            for _ in 0..20 { sum += drift(&mut bodies); }
            println!("{} {}", sum, bodies[5].rest[0]);
        }
        """)
    subprocess.run(["/usr/bin/rustc", "-g", *flags.split(), "-o", tmp_path / "r", source], check=True)
    db = tmp_path / "p.db"
    record(cachegram, "full", db, tmp_path / "r")
    assert shares(hotspots(cachegram, db, "--by", "object"))["r::main::bodies"] > 0.95
    fields = {(row["object"], row["field"]) for row in hotspots(cachegram, db, "--by", "field")}
    assert fields & {("r::main::bodies", "x"), ("r::main::bodies", "v")}
