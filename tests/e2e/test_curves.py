# SPDX-License-Identifier: Apache-2.0
"""Full mode's curves against closed forms and against an independent LRU simulation, to 1e-4.

The programs are assembly loops whose only references are known. Each runs with N and 2N references; the
misses of the difference are compared, so that the start of the process cancels.
"""
import csv
import io
import math
import os
import subprocess

import pytest

from conftest import FULL, run, totals

DEBUG_INFO = False

THREADS = r"""
/* threads ROUNDS TOGETHER: two that each go through memory of their own, at the same time or one after the other. */
#include <pthread.h>
#include <stdlib.h>
static pthread_barrier_t turn;
static int rounds;
static void *sweep(void *memory)
{
    for (volatile int n = 0; n < rounds; n++) {
        for (int i = 0; i < 1 << 17; i += 64)
            ((volatile char *)memory)[i]++;
        if (n % 100 == 0)
            pthread_barrier_wait(&turn);
    }
    return NULL;
}
int main(int argc, char **argv)
{
    pthread_t thread[2];
    int together = argc > 2;
    rounds = argc > 1 ? atoi(argv[1]) : 0;
    pthread_barrier_init(&turn, NULL, together ? 2 : 1);
    for (int i = 0; i < 2; i++) {
        pthread_create(&thread[i], NULL, sweep, calloc(1, 1 << 17));
        if (!together)
            pthread_join(thread[i], NULL);
    }
    for (int i = 0; together && i < 2; i++)
        pthread_join(thread[i], NULL);
    return 0;
}
"""
LINE = 64
PROGRAM = r"""
/* curve: `curve cyclic|stores|words|random LINES REFERENCES`, no other references while it runs. */
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
int main(int argc, char **argv)
{
    if (argc < 4) return 2;
    uint64_t lines = strtoull(argv[2], 0, 10), refs = strtoull(argv[3], 0, 10);
    char *p = mmap(0, lines * 64, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *at = p;
    char *end = p + lines * 64;
    uint64_t x = 12345, t;
    switch (argv[1][0]) {
    case 'c':
        __asm__ volatile("1: mov (%0), %2\n\tadd $64, %0\n\tcmp %4, %0\n\tcmove %3, %0\n\tdec %1\n\tjnz 1b"
                         : "+&r"(at), "+&r"(refs), "=&r"(t) : "r"(p), "r"(end) : "cc", "memory");
        break;
    case 's':
        __asm__ volatile("1: mov %2, (%0)\n\tadd $64, %0\n\tcmp %4, %0\n\tcmove %3, %0\n\tdec %1\n\tjnz 1b"
                         : "+&r"(at), "+&r"(refs), "=&r"(t) : "r"(p), "r"(end) : "cc", "memory");
        break;
    case 'w':
        __asm__ volatile("1: mov (%0), %2\n\tadd $8, %0\n\tcmp %4, %0\n\tcmove %3, %0\n\tdec %1\n\tjnz 1b"
                         : "+&r"(at), "+&r"(refs), "=&r"(t) : "r"(p), "r"(end) : "cc", "memory");
        break;
    case 'r': /* line = top 32 bits of a 64-bit linear congruence, scaled to the number of lines */
        __asm__ volatile("1: imul %5, %0\n\tadd $1442695, %0\n\tmov %0, %2\n\tshr $32, %2\n\timul %4, %2\n\t"
                         "shr $32, %2\n\tshl $6, %2\n\tmov (%3,%2), %2\n\tdec %1\n\tjnz 1b"
                         : "+&r"(x), "+&r"(refs), "=&r"(t) : "r"(p), "r"(lines), "r"(6364136223846793005ull)
                         : "cc", "memory");
        break;
    default:
        return 2;
    }
    return 0;
}
"""
# The independent twin: an LRU list of `size` lines over the same random sequence; prints misses.
ORACLE = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
    if (argc < 4) return 2;
    uint32_t lines = (uint32_t)atol(argv[1]), size = (uint32_t)atol(argv[3]), used = 0;
    uint64_t refs = strtoull(argv[2], 0, 10), x = 12345, misses = 0;
    uint32_t *next = malloc((lines + 1) * 4), *prev = malloc((lines + 1) * 4), head = lines;
    char *in = calloc(lines, 1);
    next[head] = prev[head] = head;
    while (refs--) {
        x = x * 6364136223846793005ull + 1442695;
        uint32_t line = (uint32_t)(((x >> 32) * lines) >> 32);
        if (in[line]) {
            next[prev[line]] = next[line];
            prev[next[line]] = prev[line];
        } else {
            misses++;
            if (used == size) {
                uint32_t old = prev[head];
                in[old] = 0;
                prev[head] = prev[old];
                next[prev[old]] = head;
            } else {
                used++;
            }
            in[line] = 1;
        }
        next[line] = next[head];
        prev[line] = head;
        prev[next[head]] = line;
        next[head] = line;
    }
    printf("%llu\n", (unsigned long long)misses);
    return 0;
}
"""


@pytest.fixture(scope="session")
def programs(tmp_path_factory):
    d = tmp_path_factory.mktemp("curves")
    for name, text in (("curve", PROGRAM), ("oracle", ORACLE)):
        (d / f"{name}.c").write_text(text)
        subprocess.run(["gcc", "-std=gnu11", "-O2", "-Wl,-z,now", "-o", d / name, d / f"{name}.c"], check=True)
    return d


def curve(cachegram, db, sizes, *options):
    result = run([cachegram, "mrc", "--format", "csv", "--sizes", ",".join(str(s) for s in sizes), *options, db])
    assert result.status == 0, result.err
    rows = list(csv.DictReader(io.StringIO(result.out.decode())))
    assert [int(r["size_bytes"]) for r in rows] == list(sizes)
    return [float(r["miss_ratio"]) for r in rows]


def difference(cachegram, record, programs, kind, lines, refs, sizes, *options):
    """Miss ratios of the second `refs` references, by subtraction of two runs."""
    seen = []
    for n in (refs, 2 * refs):
        result, db = record(FULL, [programs / "curve", kind, lines, n], wrap=["setarch", "-R"])
        assert result.status == 0, result.err
        seen.append((totals(db)["references"], curve(cachegram, db, sizes, *options)))
    (r1, m1), (r2, m2) = seen
    assert r2 - r1 == refs
    return [(b * r2 - a * r1) / refs for a, b in zip(m1, m2)]


@pytest.mark.parametrize("kind", ["cyclic", "stores"])
@pytest.mark.parametrize("lines", [64, 1024, 16384])
def test_cyclic(cachegram, record, programs, kind, lines):
    """A scan of K lines in a ring: all miss below K lines, none from K lines up."""
    sizes = [LINE * lines // 4, LINE * lines // 2, LINE * lines, LINE * lines * 2, LINE * lines * 16]
    got = difference(cachegram, record, programs, kind, lines, 2000000, sizes)
    assert got == pytest.approx([1, 1, 0, 0, 0], abs=1e-4)


def test_words(cachegram, record, programs):
    """Eight references a line: an eighth misses where the ring does not fit."""
    lines = 4096
    got = difference(cachegram, record, programs, "words", lines, 2000000, [LINE * lines // 2, LINE * lines])
    assert got == pytest.approx([0.125, 0], abs=1e-4)


@pytest.mark.parametrize("lines", [256, 4096, 32768])
def test_random(cachegram, record, programs, lines):
    """Uniformly random lines: 1 - L/K in the limit, and the twin's misses exactly (bins of the histogram apart)."""
    refs = 2000000
    shares = [1 / 16, 1 / 4, 1 / 2]
    sizes = [int(LINE * lines * s) for s in shares] + [LINE * lines]
    got = difference(cachegram, record, programs, "random", lines, refs, sizes)

    def misses(n, size):
        return int(run([programs / "oracle", lines, n, size // LINE]).out)

    twin = [(misses(2 * refs, s) - misses(refs, s)) / refs for s in sizes]
    assert got == pytest.approx(twin, abs=1e-5)
    for share, ratio in zip(shares, got):
        # Four standard deviations of a count of `refs` draws, and 1e-4.
        assert ratio == pytest.approx(1 - share, abs=1e-4 + 4 * math.sqrt(share * (1 - share) / refs))


def test_one_processor(cachegram, record, programs):
    """Buffers are decoded by other threads where there are several processors: the results are the same."""
    sizes = [LINE * n for n in (16, 256, 2048, 4096, 8192)]
    seen = []
    for wrap in (["setarch", "-R"], ["setarch", "-R", "taskset", "-c", str(min(os.sched_getaffinity(0)))]):
        result, db = record(FULL, [programs / "curve", "random", 4096, 2000000], wrap=wrap)
        assert result.status == 0, result.err
        hotspots = run([cachegram, "hotspots", "--by", "insn,object", "--size", "64K", "--format", "csv", db])
        seen.append((totals(db)["references"], curve(cachegram, db, sizes), hotspots.out))
    assert seen[1] == seen[0]


def test_random_replacement(cachegram, record, programs):
    """StatCache on a ring of K lines: M = 1 - (1 - 1/L)^(M (K - 1)) (Berg & Hagersten), here solved by bisection."""
    lines, refs = 4096, 10000000
    result, db = record(FULL, [programs / "curve", "cyclic", lines, refs])
    assert result.status == 0
    sizes = [LINE * lines // 4, LINE * lines // 2, LINE * lines * 3 // 4]
    got = curve(cachegram, db, sizes, "--model", "random")
    for size, ratio in zip(sizes, got):
        low, high = 1e-9, 1.0
        for _ in range(100):
            m = (low + high) / 2
            if -math.expm1(m * (lines - 1) * math.log1p(-LINE / size)) > m:
                low = m
            else:
                high = m
        # Start-up is about a hundredth of the references and hits: 2% covers it.
        assert ratio == pytest.approx(low, rel=0.02)


@pytest.mark.parametrize("options", [FULL, ["--allowance", "0", "--gap-us", "1000"]], ids=["full", "burst"])
def test_threads_at_the_same_time(options, cachegram, tmp_path):
    """Their references are in the order of buffers, so no curve is exact for a cache that they share: report and mrc say so."""
    (tmp_path / "threads.c").write_text(THREADS)
    subprocess.run(["gcc", "-O1", "-pthread", "-o", tmp_path / "threads", tmp_path / "threads.c"], check=True)
    db = tmp_path / "p.db"
    for arguments, together in (["together"], True), ([], False):
        program = [tmp_path / "threads", "500" if options == FULL else "200000", *arguments]
        for _ in range(5):  # where there is no processor for it, the second thread runs after the first
            assert run([cachegram, "record", *options, "-o", db, "--", *program]).status == 0
            if not together or b"2 threads work at the same time" in run([cachegram, "mrc", db]).out:
                break
        for command in ("report", "mrc"):
            shown = run([cachegram, command, db]).out
            assert (b"2 threads work at the same time" in shown) == together
            assert (b"curve is exact" in shown) == (command == "report" and options == FULL and not together)
