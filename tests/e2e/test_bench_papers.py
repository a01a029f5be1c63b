# SPDX-License-Identifier: Apache-2.0
"""The StatStack paper's experiment (scripts/bench-papers.py) on a small scale: do its figures say what they claim?"""
import csv
import io
import json
import pathlib
import random
import sys

import pytest

from conftest import run

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "bench-papers.py"
SIZES = [32768, 1 << 20]


@pytest.fixture(scope="module")
def trace(tmp_path_factory, cachegram):
    """Three million references, of which S1 has one window or none: many near ones, a walk, any."""
    rng, folder = random.Random(1), tmp_path_factory.mktemp("trace")
    with open(folder / "t.csv", "w", encoding="ascii") as f:
        f.write("address,size\n")
        for i in range(300000):
            pick = rng.random()
            line = rng.randrange(300) if pick < 0.7 else i // 3 % 900 if pick < 0.97 else rng.randrange(9000)
            f.write(f"{64 * line + 60},{8 if i % 10 == 0 else 4}\n" * 10)
    result = run([cachegram, "import", folder / "t.csv", "-o", folder / "t.trace"])
    assert result.status == 0, result.err
    return folder / "t.trace"


def experiment(cachegram, trace, least=0, repeats=12, seed=500):
    tool = pathlib.Path(cachegram).resolve().parents[2] / "tests" / "bench_papers"
    return run([tool, trace, least, repeats, seed])


def curve(cachegram, command, path, *args):
    result = run([cachegram, command, path, "--sizes", "32K..8M", "--format", "csv", *args])
    assert result.status == 0, result.err
    return [float(row["miss_ratio"]) for row in csv.DictReader(io.StringIO(result.out.decode()))]


def test_one_pass_finds_what_the_commands_find(cachegram, trace, tmp_path):
    result = experiment(cachegram, trace)
    assert result.status == 0, result.err
    found = json.loads(result.out)
    assert found["references"] == 3000000 and found["accesses"] == 3300000
    assert found["exact"] == pytest.approx(curve(cachegram, "stack", trace), abs=1e-8)
    compared = 0
    for at, preset in [(0, "s1"), (7, "s1"), (0, "s2"), (24, "every_window")]:
        options = ["--hibernate", "0"] if preset == "every_window" else ["--preset", preset]
        repeat = found[preset]["repeats"][0 if preset == "every_window" else at]
        seed = {"s1": 500, "s2": 512, "every_window": 500}[preset] + at  # the samplers are numbered through
        sampled = run([cachegram, "sample", trace, "-o", tmp_path / "p.db", "--seed", seed, *options])
        assert sampled.status == 0, sampled.err
        if repeat["samples"] == 0:
            assert set(repeat["miss_ratios"]) == {None}
        else:
            compared += 1
            assert repeat["miss_ratios"] == pytest.approx(curve(cachegram, "mrc", tmp_path / "p.db"), abs=1e-8)
    assert compared > 0
    assert len(found["s1"]["repeats"]) == len(found["s2"]["repeats"]) == 12


def test_a_trace_that_is_too_short_is_refused(cachegram, trace):
    result = experiment(cachegram, trace, least=3000001)
    assert result.status == 1 and "3000000 references" in result.err.decode()


def test_errors_are_calculated_as_published(tmp_path):
    """Two repeats of one program, worked out by hand: errors from the mean and from the exact curve."""
    def estimates(*curves):
        return {"repeats": [{"miss_ratios": c} for c in curves]}

    sizes = [32768, 524288, 8388608]
    result = {"references": 2e9, "lines": 5, "sizes": sizes, "exact": [0.10, 0.05, 0.01],
              "s1": estimates([0.11, 0.052, 0.01], [0.12, 0.052, None]), "s2": estimates([0.10, 0.05, 0.01], [0.10, 0.05, 0.01]),
              "every_window": estimates([0.10, 0.05, 0.04])}
    (tmp_path / "r.json").write_text(json.dumps({"bzip2": result}))
    reported = run([sys.executable, SCRIPT, "--no-measure", "--results", tmp_path / "r.json", "--svg", tmp_path / "r.svg"])
    assert reported.status == 0, reported.err
    cells = [[cell.strip() for cell in line.split("|")] for line in reported.out.decode().splitlines()]
    rows = {row[1]: row for row in cells if len(row) > 9}
    # From the mean: 0.5 0.5 0 0 0 points; from the exact curve: 1 2 0.2 0.2 0.
    assert rows["S1: StatStack, from its mean"][2:4] == ["5", "0.200"]
    assert rows["S1: StatStack, from its mean"][8:10] == ["60%", "60%"]
    assert rows["S1: StatStack, from exact"][2:4] == ["5", "0.680"]
    assert rows["S1: StatStack, from exact"][7] == "2.00"
    assert rows["S2: StatStack, from exact"][3] == "0.000"
    assert "S1: bursts, from exact" not in rows
    assert rows["bzip2"][5] == "1.00, 3.00"
    assert (tmp_path / "r.svg").read_text().startswith("<svg")
