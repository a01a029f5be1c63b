# SPDX-License-Identifier: Apache-2.0
"""docs/format.md describes every table, column and key of `run` that a profile holds."""
import re
import sqlite3

import pytest

from conftest import FULL, ROOT, run

PAGE = re.sub(r"\s+", " ", (ROOT / "docs" / "format.md").read_text())


def undescribed(db):
    with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as con:
        for table, in con.execute("select name from sqlite_master where type = 'table'").fetchall():
            columns = ", ".join(row[1] for row in con.execute(f"pragma table_info({table})"))
            if f"`{table}({columns})`" not in PAGE:
                yield f"{table}({columns})"
        for key, in con.execute("select key from run"):
            if f"`{key}`" not in PAGE:
                yield key


@pytest.mark.parametrize("options", [FULL, [*FULL, "--lines", "1/4"], ["--gap-us", "500"], ["--mode", "count"]],
                         ids=" ".join)
def test_recorded(built, record, options):
    _, db = record(options, [built / "flags"])
    assert list(undescribed(db)) == []


@pytest.mark.parametrize("options", [["--window", "100", "--hibernate", "0", "--samples", "10"],
                                     ["--bursts", "2", "--burst-refs", "100"]], ids=" ".join)
def test_sampled_from_a_trace(cachegram, tmp_path, options):
    trace, db = tmp_path / "t.csv", tmp_path / "t.db"
    trace.write_text("address\n" + "".join(f"{64 * (i % 40)}\n" for i in range(4000)))
    result = run([cachegram, "sample", *options, "-o", db, trace])
    assert result.status == 0, result.err
    assert list(undescribed(db)) == []
