# SPDX-License-Identifier: Apache-2.0
"""Loads and stores of real programs against Valgrind's lackey, which shares no code with us.

The C library must pick the same string functions under both: Valgrind hides AVX-512, ERMS and others from
the program, so GLIBC_TUNABLES hides them from ours too. Lackey sees the dynamic loader from its first
instruction and we do not: each program runs with a small and a larger input, and the differences are compared.
"""
import os
import re

import pytest

from conftest import FULL, need, run, totals
from test_harmless import text

DEBUG_INFO = False

HIDE = "glibc.cpu.hwcaps=" + ",".join(
    f"-{f}" for f in ("AVX512F", "AVX512VL", "AVX512BW", "AVX512CD", "AVX512DQ", "AVX512ER", "AVX512PF", "ERMS", "FSRM",
                      "AVX2_Usable", "AVX2", "BMI2", "Prefer_No_VZEROUPPER", "RTM", "MOVBE", "LZCNT"))


def environment():
    return dict(os.environ, GLIBC_TUNABLES=HIDE, LD_BIND_NOW="1", PERL_HASH_SEED="0", LC_ALL="C")


def gzip(d, big):
    return [need("gzip"), "-c", text(d / f"in{big}", 250000 if big else 60000)]


def perl(d, big):
    (d / "x.pl").write_text("my (%h, $s); for my $i (1..$ARGV[0]) { my $k = ($i * 7919) % 1009; $h{$k} += $i;"
                            " $s .= chr(97 + $k % 26) } print length($s), ' ', scalar(keys %h), \"\\n\";\n")
    return [need("perl"), d / "x.pl", 40000 if big else 8000]


def sqlite(d, big):
    n = 8000 if big else 1500
    (d / f"x{big}.sql").write_text(f"with recursive n(i) as (select 1 union all select i+1 from n where i < {n})"
                                   " select count(*), sum(i * 7 % 13), max('x' || i) from n;\n")
    return [need("sqlite3"), "-batch", "-init", d / f"x{big}.sql", ":memory:", ""]


def lackey(argv, env):
    result = run([need("valgrind"), "--tool=lackey", "--basic-counts=no", "--detailed-counts=yes", *argv], env=env,
                 timeout=200)
    assert result.status == 0, result.err[-300:]
    loads = stores = 0
    for line in result.err.decode(errors="replace").splitlines():
        match = re.match(r"==\d+==\s+[IFDV]\d+\s+([\d,]+)\s+([\d,]+)\s+[\d,]+\s*$", line)
        if match:
            loads += int(match[1].replace(",", ""))
            stores += int(match[2].replace(",", ""))
    assert loads and stores
    return loads, stores


@pytest.mark.parametrize("case", [gzip, perl, sqlite], ids=lambda c: c.__name__)
def test_lackey(record, tmp_path, case):
    env = environment()
    theirs, ours = [], []
    for big in (0, 1):
        argv = case(tmp_path, big)
        theirs.append(lackey(argv, env))
        result, db = record(FULL, argv, env=env)
        assert result.status == 0, result.err
        total = totals(db)
        ours.append((total["loads"], total["stores"]))
    for which, name in enumerate(("loads", "stores")):
        want = theirs[1][which] - theirs[0][which]
        got = ours[1][which] - ours[0][which]
        assert got == pytest.approx(want, rel=1e-3), name
