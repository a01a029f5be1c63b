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


def test_end_reasons():
    """A reason for a burst's end has a code, a name, words in the report, and a row in docs/format.md."""
    def listed(file, pattern):
        return re.findall(r'"([^"]*)"', re.search(pattern, (ROOT / "src" / file).read_text())[1])
    codes = re.findall(r"WIRE_END_\w+", re.search(r"enum wire_end \{(.*?)\};", (ROOT / "src/wire/wire.h").read_text(), re.S)[1])
    names = listed("profile/names.c", r"end_names\[\] = \{([^}]*)\}")
    words = listed("report/summary.c", r"static void put_ends\([^}]*?words\[\] = \{([^}]*)\}")
    assert codes[-1] == "WIRE_END_COUNT"
    assert len(names) == len(words) == len(codes) - 1
    table = PAGE.split("The codes of `end_code`:")[1].split("`watch(")[0]
    assert re.findall(r"\| (\d+) \| `(\w+)` \|", table) == [(str(code), name) for code, name in enumerate(names)]


@pytest.mark.parametrize("options", [["--window", "100", "--hibernate", "0", "--samples", "10"],
                                     ["--bursts", "2", "--burst-refs", "100"]], ids=" ".join)
def test_sampled_from_a_trace(cachegram, tmp_path, options):
    trace, db = tmp_path / "t.csv", tmp_path / "t.db"
    trace.write_text("address\n" + "".join(f"{64 * (i % 40)}\n" for i in range(4000)))
    result = run([cachegram, "sample", *options, "-o", db, trace])
    assert result.status == 0, result.err
    assert list(undescribed(db)) == []
