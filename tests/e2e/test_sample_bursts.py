# SPDX-License-Identifier: Apache-2.0
"""`sample --bursts` and what is made of its profiles, against exact answers for the same trace."""
import csv
import io
import json
import random
import sqlite3

import pytest

from conftest import run

REFERENCES = 400000
WAYS_SIZES = (4096, 8192, 16384, 32768, 65536)


def make_references():
    """Line numbers: scans, a hot set, and columns of a matrix whose rows are 64 lines apart; two rounds of each."""
    rng = random.Random(4)
    lines = []
    for _ in range(2):
        lines += [i % 3000 for i in range(60000)]
        lines += [10000 + (rng.randrange(200) if rng.random() < 0.9 else rng.randrange(9000)) for _ in range(70000)]
        lines += [50000 + i % 32 * 64 + i // 3200 % 64 for i in range(70000)]
    return lines


def lru_misses(lines, sets, ways):
    """Of an LRU cache that is really kept."""
    cache = [{} for _ in range(sets)]
    misses = 0
    for line in lines:
        own = cache[line % sets]
        if line in own:
            del own[line]
        else:
            misses += 1
            if len(own) == ways:
                del own[next(iter(own))]
        own[line] = True
    return misses / len(lines)


def random_misses(lines, room):
    rng = random.Random(5)
    held, where, misses = [], set(), 0
    for line in lines:
        if line in where:
            continue
        misses += 1
        where.add(line)
        if len(held) < room:
            held.append(line)
        else:
            i = rng.randrange(room)
            where.remove(held[i])
            held[i] = line
    return misses / len(lines)


@pytest.fixture(scope="module")
def lines():
    return make_references()


@pytest.fixture(scope="module")
def trace(lines, cachegram, tmp_path_factory):
    folder = tmp_path_factory.mktemp("bursts")
    with open(folder / "t.csv", "w") as out:
        out.write("address,rw\n" + "".join(f"{line * 64},{'s' if line % 3 == 0 else 'l'}\n" for line in lines))
    assert run([cachegram, "import", "-o", folder / "t.trace", folder / "t.csv"]).status == 0
    return folder / "t.trace"


def curve(result):
    assert result.status == 0, result.err
    return {int(r["size_bytes"]): tuple(float(r[k]) if r[k] else None for k in ("miss_ratio", "ci_low", "ci_high"))
            for r in csv.DictReader(io.StringIO(result.out.decode()))}


def test_curves_agree_with_exact_ones(cachegram, trace, tmp_path):
    result = run([cachegram, "sample", "--bursts", "40,80", "--seeds", "3", "--burst-refs", "2000", "-o",
                  tmp_path / "p.db", trace])
    assert result.status == 0 and result.out == b"" and result.err == b""
    sizes = ["--format", "csv", "--sizes", "1K..2M"]
    exact = curve(run([cachegram, "stack", *sizes, trace]))
    inside = []
    for bursts in (40, 80):
        for seed in (1, 2, 3):
            for size, (ratio, low, high) in curve(
                    run([cachegram, "mrc", *sizes, tmp_path / f"p-{bursts}-{seed}.db"])).items():
                assert low <= ratio <= high
                assert abs(ratio - exact[size][0]) < 0.06, (bursts, seed, size)
                inside.append(low <= exact[size][0] <= high)
    assert sum(inside) >= 0.85 * len(inside)


def test_ways_see_conflicts(cachegram, trace, lines, tmp_path):
    """The columns fit into half of a cache of 64 lines, but not into one of its sets."""
    assert run([cachegram, "sample", "--bursts", "80", "--burst-refs", "2000", "--sets", "-o", tmp_path / "p.db",
                trace]).status == 0
    sizes = ["--format", "csv", "--sizes", ",".join(map(str, WAYS_SIZES))]
    full = curve(run([cachegram, "mrc", *sizes, tmp_path / "p.db"]))
    eight = curve(run([cachegram, "mrc", *sizes, "--ways", "8", tmp_path / "p.db"]))
    for size in WAYS_SIZES:
        assert abs(eight[size][0] - lru_misses(lines, size // 512, 8)) < 0.04, size
    assert eight[32768][0] - full[32768][0] > 0.2
    # Without --sizes those of a power of two of sets are shown.
    rows = curve(run([cachegram, "mrc", "--ways", "12", "--format", "csv", tmp_path / "p.db"]))
    assert list(rows)[:3] == [1536, 3072, 6144] and max(rows) <= 64 << 20
    wrong = run([cachegram, "mrc", "--ways", "8", "--sizes", "48K", tmp_path / "p.db"])
    assert wrong.status == 1 and b"96 sets" in wrong.err
    assert b"8 ways" in run([cachegram, "mrc", "--ways", "8", tmp_path / "p.db"]).out


def test_random_replacement(cachegram, trace, lines, tmp_path):
    assert run([cachegram, "sample", "--bursts", "80", "--burst-refs", "2000", "-o", tmp_path / "p.db",
                trace]).status == 0
    got = curve(run([cachegram, "mrc", "--model", "random", "--format", "csv", "--sizes", "16K,64K,1M",
                     tmp_path / "p.db"]))
    for size, (ratio, low, high) in got.items():
        assert low <= ratio <= high
        # StatCache takes the miss ratio for constant, which it is not here.
        assert abs(ratio - random_misses(lines, size // 64)) < 0.08, size


def test_censoring_and_clock_errors_have_little_effect(cachegram, trace, tmp_path):
    options = ["--drop-rate", "0.3", "--clock-error", "0.2", "--watch", "8"]
    assert run([cachegram, "sample", "--bursts", "80", "--burst-refs", "2000", *options, "-o", tmp_path / "p.db",
                trace]).status == 0
    with sqlite3.connect(tmp_path / "p.db") as db:
        outcomes = dict(db.execute("SELECT outcome, count(*) FROM watch GROUP BY outcome"))
    assert outcomes["dropped"] > 50 and outcomes["reused"] > 200 and sum(outcomes.values()) == 640
    exact = curve(run([cachegram, "stack", "--format", "csv", "--sizes", "32K,128K,512K", trace]))
    for size, (ratio, _, _) in curve(run([cachegram, "mrc", "--format", "csv", "--sizes", "32K,128K,512K",
                                          tmp_path / "p.db"])).items():
        assert abs(ratio - exact[size][0]) < 0.06, size


def test_words(cachegram, trace, tmp_path):
    path = tmp_path / "p.db"
    assert run([cachegram, "sample", "--bursts", "60", "--burst-refs", "1000", "-o", path, trace]).status == 0
    text = run([cachegram, "mrc", path]).out.decode()
    assert "240 watched lines" in text and "shorter than about 5%" in text
    assert "░" in text and "could not be watched" not in text
    report = run([cachegram, "report", "-v", path]).out.decode()
    assert "watched     240 lines" in report and "shorter than about 5%" in report
    data = json.loads(run([cachegram, "mrc", "--format", "json", path]).out)
    assert data["watched"] == 240 and data["watches_dropped"] == 0 and data["ways"] == 0
    with sqlite3.connect(path) as db:
        db.execute("UPDATE watch SET outcome = 'refused', outcome_code = 5 WHERE id % 4 = 0")
        db.execute("UPDATE watch SET clock_error = 0.5 WHERE id = 7")
    text = run([cachegram, "mrc", path]).out.decode()
    assert "25% of the lines chosen could not be watched" in text and "clock may be wrong by 50%" in text
    with sqlite3.connect(path) as db:
        db.execute("DELETE FROM watch")
    text = run([cachegram, "mrc", path]).out.decode()
    assert "no lines were watched" in text and "not enough samples" in text
    with sqlite3.connect(path) as db:
        db.execute("DELETE FROM burst WHERE id > 1")
    assert "1 burst is few" in run([cachegram, "mrc", path]).out.decode()


@pytest.mark.parametrize("options, status, word", [
    (["--bursts", "x"], 2, "--bursts"), (["--bursts", "10", "--seeds", "0"], 2, "--seeds"),
    (["--bursts", "10", "--drop-rate", "2"], 2, "--drop-rate"), (["--bursts", "10", "--line", "48"], 2, "--line"),
    (["--bursts", "10", "--watch", "-1"], 2, "--watch"), (["--bursts", "10", "--nonsense"], 2, "--nonsense"),
    (["--bursts", "10", "--burst-refs", "1000000"], 1, "do not fit"),
])
def test_wrong_usage(options, status, word, cachegram, trace, tmp_path):
    result = run([cachegram, "sample", *options, "-o", tmp_path / "p.db", trace])
    assert result.status == status and result.err.count(b"\n") == 1 and word.encode() in result.err
    assert not (tmp_path / "p.db").exists()


def test_damaged_trace(cachegram, trace, tmp_path):
    """No profile is left of half a trace."""
    (tmp_path / "half.trace").write_bytes(trace.read_bytes()[:-1000])
    result = run([cachegram, "sample", "--bursts", "10", "--burst-refs", "100", "-o", tmp_path / "p.db",
                  tmp_path / "half.trace"])
    assert result.status == 1 and result.err.count(b"\n") == 1
    assert not (tmp_path / "p.db").exists()
    missing = run([cachegram, "sample", "--bursts", "10", "-o", tmp_path / "p.db", tmp_path / "none"])
    assert missing.status == 1 and not (tmp_path / "p.db").exists()
