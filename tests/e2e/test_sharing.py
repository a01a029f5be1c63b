# SPDX-License-Identifier: Apache-2.0
"""False sharing between threads: the report names the data, the function and the line; other sharing is not called so."""
import json
import re
import sqlite3

import pytest

from conftest import TARGETS, build_target, run

OPTIONS = {"full": ["--mode", "full"], "default": []}
# What is shared falsely: function (and the comment of its line), data, about what part of the references, fields.
FALSE = {"packed": ("packed", "counters", 0.98, []), "blocks": ("blocks", "blocks of allocated hot_sharing.c:{allocated}", 0.98, []),
         "reader": ("reader", "pair", 0.5, ["read"]), "writers": ("writers", "totals", 0.98, ["made", "used"]),
         "ends": ("at_the_end", "ends", 0.98, [])}
# Full mode looks at a piece of 131072 words in the mean: without contention 400 thousand rounds give some 20.
ROUNDS = {"full": {"locked": 400}, "default": {"locked": 1000}}
SOURCE = "hot_sharing.c"


def marked_line(mark):
    lines = (TARGETS / SOURCE).read_text().splitlines()
    return next(i for i, line in enumerate(lines, 1) if line.endswith(f"// {mark}"))


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return build_target(TARGETS / SOURCE, tmp_path_factory.mktemp("sharing"))


def record(cachegram, db, mode, argv):
    result = run([cachegram, "record", *OPTIONS[mode], "-o", db, "--", *argv])
    assert result.status == 0, result.err
    return json.loads(run([cachegram, "report", "--format", "json", db]).out)["false_sharing"]


def rounds(mode, what):
    return ROUNDS[mode].get(what, 3000 if mode == "full" else 12000)


@pytest.mark.parametrize("mode", OPTIONS)
@pytest.mark.parametrize("what", FALSE)
def test_false_sharing(what, mode, program, cachegram, tmp_path):
    db = tmp_path / "p.db"
    found = record(cachegram, db, mode, [program, what, rounds(mode, what)])
    function, name, share, fields = FALSE[what]
    assert len(found) == 1
    assert (found[0]["function"], found[0]["line"]) == (function, marked_line(what))
    assert found[0]["object"] == name.format(allocated=marked_line("allocated"))
    assert sorted(found[0].get("fields", [])) == fields
    assert 0.1 * share < found[0]["share"] < 1.1 * share  # threads that wait for a processor take long turns
    text = run([cachegram, "report", db]).out.decode()
    named = {0: "", 1: ", field read,", 2: ", fields (made and used|used and made),"}[len(fields)]
    assert re.search(rf"At least \d+% of the references are to lines of {re.escape(found[0]['object'])}{named} while another thread writes "
                     rf"other bytes of the line \(false sharing\), mostly in {function} \({SOURCE}:{found[0]['line']}\)\..*"
                     "align or pad what each thread writes to 64 bytes", text)


@pytest.mark.parametrize("mode", OPTIONS)
@pytest.mark.parametrize("what", ["padded", "same", "locked"])
def test_no_false_sharing(what, mode, program, cachegram, tmp_path):
    """Lines of their own; and true sharing, which has another remedy."""
    db = tmp_path / "p.db"
    assert record(cachegram, db, mode, [program, what, rounds(mode, what)]) == []
    text = run([cachegram, "report", db]).out.decode()
    assert "false sharing" not in text
    found = json.loads(run([cachegram, "report", "--format", "json", db]).out)["true_sharing"]
    assert [place["object"] for place in found] == {"padded": [], "same": ["common"], "locked": ["locked"]}[what]
    assert [place["share"] > 0.1 for place in found] == [True] * len(found)
    assert text.count("while another thread writes the same bytes (true sharing)") == len(found)
    with sqlite3.connect(db) as connection:
        name = {"padded": "padded_counters", "same": "common", "locked": "locked"}[what]
        apart, same = connection.execute("SELECT sum(apart), sum(same) FROM sharing x JOIN object o ON o.id = x.object "
                                         "WHERE o.name = ?", (name,)).fetchone()
        if what == "padded":
            assert not apart
        else:
            assert same > 4 * apart


def test_one_thread(program, cachegram, tmp_path):
    """There is nobody to share with; a profile without the table still has a report."""
    db = tmp_path / "p.db"
    assert record(cachegram, db, "full", [program, "packed", 1000, 1]) == []
    with sqlite3.connect(db) as connection:
        connection.execute("DROP TABLE sharing")
    assert json.loads(run([cachegram, "report", "--format", "json", db]).out)["false_sharing"] == []
