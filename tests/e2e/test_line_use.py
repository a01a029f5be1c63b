# SPDX-License-Identifier: Apache-2.0
"""The share of a line's bytes that is used: of programs of which it is known, as they were written."""
import csv
import io
import sqlite3

import pytest

from conftest import MODES, TARGETS, build_target, run
from record_command import parts, record_command

# Arguments of line_use, function, share: a line has 64 bytes, a number 8.
USED = {
    "start": (["start", 63, 3], "read_numbers", (3 * 64 + 60 * 8) / (63 * 64)),
    "middle": (["start", 25, 5], "read_numbers", (5 * 64 + 20 * 8) / (25 * 64)),
    "mixed": (["mixed", 100], "read_both", (4096 * 8 + 1024 * 64) / (5120 * 64)),
    "short": (["short", 1], "read_some", 16 / 64),
}


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return build_target(TARGETS / "line_use.c", tmp_path_factory.mktemp("line_use"))


def first_row(cachegram, options, db, argv, by):
    assert run([*record_command(cachegram, db, options), "--", *argv]).status == 0
    result = run([cachegram, "hotspots", "--format", "csv", "--size", "32K", "--by", by, db])
    assert result.status == 0, result.err
    return next(csv.DictReader(io.StringIO(result.out.decode())))


@pytest.mark.parametrize("what", USED)
def test_in_full_mode(what, program, cachegram, tmp_path):
    """Whether it changes in the course of a run, differs between data, or the run is shorter than a buffer."""
    argv, function, share = USED[what]
    row = first_row(cachegram, MODES["full"], tmp_path / "p.db", [program, *argv], "function")
    assert row["function"] == function
    assert float(row["line_used_share"]) == pytest.approx(share, rel=0.12)


def test_fields_of_a_short_run(program, cachegram, tmp_path):
    row = first_row(cachegram, MODES["full"], tmp_path / "p.db", [program, "short", 1], "field")
    assert (row["object"], row["field_type"]) == ("records", "record") and row["field"] in ("first", "hot")


@pytest.mark.parametrize("options, argv, share, error", [
    (MODES["burst"], ["mixed", 40000], USED["mixed"][2], 0.05),
    # Each burst represents far more than what was recorded completely before.
    ([*parts(1000000, 10000000), "--allowance", "300ms"], ["start", 30000, 3000], (3000 * 64 + 27000 * 8) / (30000 * 64), 0.1),
])
def test_in_bursts(options, argv, share, error, program, cachegram, tmp_path):
    row = first_row(cachegram, options, tmp_path / "p.db", [program, *argv], "function")
    assert float(row["line_used_share"]) == pytest.approx(share, abs=error)


def test_no_more_than_the_line(program, cachegram, tmp_path):
    """Bytes are of the whole number of lines that is stored with them."""
    db = tmp_path / "p.db"
    assert run([cachegram, "record", *MODES["full"], "-o", db, "--", program, "mixed", "100"]).status == 0
    with sqlite3.connect(db) as connection:
        assert connection.execute("SELECT count(*), sum(bytes > 64 * lines) FROM line_use").fetchone()[1] == 0
