# SPDX-License-Identifier: Apache-2.0
"""Causes of misses: planted programs whose victims and evictors are known.

The program `two` walks a table of 4096 lines and a log of 12288 lines in turn, so between two touches of any line all
others were touched: three quarters of them of the log. Caches of more than 16384 lines hold both.
"""
import csv
import io
import json
import sqlite3

import pytest

from conftest import MODES, TARGETS, build_target, run

ROUNDS = {"full": "60", "burst": "2000", "first": "60"}
OPTIONS = {**MODES, "first": []}  # default options: all of a short run is recorded
# Share of the misses that (victim, evictor) have, and how far sampling may be off.
EXPECTED = {("log", "log"): 0.5625, ("log", "table"): 0.1875, ("table", "log"): 0.1875, ("table", "table"): 0.0625}
NAMES = {"object": {"log_of_all": "log", "table": "table"}, "function": {"write_log": "log", "look_up": "table"}}
OFF = 0.06


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return build_target(TARGETS / "hot_causes.c", tmp_path_factory.mktemp("causes"))


@pytest.fixture(scope="module")
def profile(cachegram, program, tmp_path_factory):
    made = {}

    def make(what, mode):
        if (what, mode) not in made:
            db = tmp_path_factory.mktemp("db") / "p.db"
            rounds = "300" if what == "stream" else ROUNDS[mode]
            for _ in range(5):  # on a busy machine the fate of too few watched lines may be seen
                result = run([cachegram, "record", *OPTIONS[mode], "-o", db, "--", program, what, rounds])
                assert result.status == 0, result.err
                if what != "stream" or json.loads(run([cachegram, "causes", "--format", "json", db]).out)["cold_share"] is not None:
                    break
            made[what, mode] = db
        return made[what, mode]

    return make


def causes(cachegram, db, *options):
    result = run([cachegram, "causes", "--format", "csv", *options, db])
    assert result.status == 0, result.err
    return [{**row, "share": float(row["share"])} for row in csv.DictReader(io.StringIO(result.out.decode()))]


@pytest.mark.parametrize("by", ["object", "function"])
@pytest.mark.parametrize("mode", ["full", "first"])
def test_matrix(mode, by, cachegram, profile):
    rows = causes(cachegram, profile("two", mode), "--by", by, "--size", "512K")
    assert sum(row["share"] for row in rows) == pytest.approx(1, abs=1e-6)
    assert all(row["size_bytes"] == "524288" for row in rows)
    names = NAMES[by]
    for (victim, evictor), share in EXPECTED.items():
        found = sum(r["share"] for r in rows if names.get(r["victim"]) == victim and names.get(r["evictor"]) == evictor)
        assert found == pytest.approx(share, abs=OFF), (victim, evictor)
    cold = sum(row["share"] for row in rows if row["evictor"] == "(cold)")
    assert cold == pytest.approx(1 / 61, abs=0.005)  # one of 61 walks


@pytest.mark.parametrize("mode", ["full", "first"])
def test_cold_is_exact(mode, cachegram, profile):
    """Beyond the size of all data only first touches miss."""
    rows = causes(cachegram, profile("two", mode), "--size", "64M")
    assert rows and all(row["evictor"] == "(cold)" for row in rows)
    assert [row["victim"] for row in rows[:2]] == ["log_of_all", "table"]
    assert rows[0]["share"] / rows[1]["share"] == pytest.approx(3, rel=0.01)


def test_bursts(cachegram, profile):
    """Within bursts of 30000 references, at 128K: both walks replace their own lines only, or each other's."""
    rows = causes(cachegram, profile("two", "burst"), "--size", "128K")
    by_victim = {"log_of_all": 0, "table": 0}
    for row in rows:
        assert row["evictor"] != "(cold)" or row["share"] < 0.1
        by_victim[row["victim"]] = by_victim.get(row["victim"], 0) + row["share"]
    assert by_victim["log_of_all"] == pytest.approx(0.75, abs=0.12)
    assert by_victim["table"] == pytest.approx(0.25, abs=0.12)
    assert (rows[0]["victim"], rows[0]["evictor"]) == ("log_of_all", "log_of_all")


@pytest.mark.parametrize("mode", ["full", "burst"])
def test_stream_is_cold(mode, cachegram, profile):
    db = profile("stream", mode)
    first = causes(cachegram, db, "--size", "1M")[0]
    assert first["victim"].startswith("block of stream::bytes hot_causes.c:") and first["share"] > 0.9
    known = json.loads(run([cachegram, "causes", "--format", "json", db]).out)["cold_share"] is not None
    assert first["evictor"] == ("(cold)" if known else first["victim"])


def test_formats(cachegram, profile):
    db = profile("two", "full")
    text = run([cachegram, "causes", "--size", "512K", "--limit", "4", db]).out.decode()
    assert text.startswith("Causes of misses by object: LRU cache of 512K, 64-byte lines\n")
    assert "evicted by" in text and "sim --causes" in text and " more (--limit" in text
    document = json.loads(run([cachegram, "causes", "--size", "512K", "--format", "json", db]).out)
    rows = causes(cachegram, db, "--size", "512K")
    assert document["mode"] == "full" and document["size_bytes"] == 524288
    assert [(r["victim"], r["evictor"], r["share"]) for r in document["rows"]] == \
        [(r["victim"], r["evictor"], r["share"]) for r in rows]
    assert document["cold_share"] == pytest.approx(sum(r["share"] for r in rows if r["evictor"] == "(cold)"), abs=1e-5)
    assert len(causes(cachegram, db, "--size", "512K", "--percent-limit", "10")) == 3
    assert len(causes(cachegram, db, "--size", "512K", "--percent-limit", "0")) >= 3


def test_wrong_usage(cachegram, profile):
    db = profile("two", "full")
    assert run([cachegram, "causes", "--by", "colour", db]).status == 2
    assert run([cachegram, "causes", "--size", "0", db]).status == 2
    assert run([cachegram, "causes", "--tid", "3", db]).status == 2
    assert run([cachegram, "causes", "--size", "100", db]).status == 1


def test_in_the_profile(cachegram, profile):
    """Table cause: ids of sites and objects; without it there are still cold misses, and the usual evictors."""
    db = profile("two", "full")
    with sqlite3.connect(db) as connection:
        rows = connection.execute(
            "SELECT v.name, o.name, sum(c.refs) FROM cause c JOIN object v ON v.id = c.victim_object "
            "JOIN object o ON o.id = c.object WHERE c.lines >= 8192 GROUP BY 1, 2 ORDER BY 3 DESC").fetchall()
        assert rows[0][:2] == ("log_of_all", "log_of_all")
        reuses = sum(row[2] for row in rows)
        assert reuses == pytest.approx(60 * 16384, rel=0.05)
        assert connection.execute("SELECT count(*) FROM cause c LEFT JOIN site s ON s.id = c.site "
                                  "LEFT JOIN site t ON t.id = c.victim_site WHERE s.id IS NULL OR t.id IS NULL").fetchone() == (0,)


def test_cold_is_not_known(cachegram, profile, tmp_path):
    """With two watched lines, one of them never touched again, no misses are called cold: half of them would be."""
    copy = tmp_path / "few.db"
    copy.write_bytes(profile("two", "burst").read_bytes())
    with sqlite3.connect(copy) as connection:
        connection.execute("DELETE FROM watch WHERE id NOT IN (SELECT id FROM watch ORDER BY id LIMIT 2)")
        connection.execute("UPDATE watch SET outcome_code = 3, outcome = 'dangling'"
                           " WHERE id = (SELECT min(id) FROM watch)")
    connection.close()
    assert json.loads(run([cachegram, "causes", "--format", "json", copy]).out)["cold_share"] is None
    assert sum(r["share"] for r in causes(cachegram, copy) if r["evictor"] == "(cold)") < 0.1


def test_an_older_profile(cachegram, profile, tmp_path):
    copy = tmp_path / "old.db"
    copy.write_bytes(profile("two", "full").read_bytes())
    with sqlite3.connect(copy) as connection:
        connection.execute("DROP TABLE cause")
    connection.close()
    rows = causes(cachegram, copy, "--size", "512K")
    found = {(r["victim"], r["evictor"]): r for r in rows}
    assert found["table", "log_of_all"]["share"] == pytest.approx(0.1875, abs=OFF)
    assert {r["sampled_reuses"] for r in rows} == {"0"}


def test_string_instructions_that_no_burst_has(cachegram, profile, tmp_path):
    """Misses that are in no row are missing here as in the table of hotspots, and a note says so."""
    db = tmp_path / "p.db"
    db.write_bytes(profile("two", "burst").read_bytes())
    assert "are in no row" not in run([cachegram, "causes", "--size", "4K", db]).out.decode()
    with sqlite3.connect(db) as con:
        con.execute("update burst set string_hits = 100 * steps")
    shown = run([cachegram, "hotspots", "--size", "4K", "--format", "csv", db]).out.decode()
    in_rows = sum(float(row["miss_share"]) for row in csv.DictReader(io.StringIO(shown)))
    assert 0 < in_rows < 0.95
    assert sum(row["share"] for row in causes(cachegram, db, "--size", "4K")) == pytest.approx(in_rows, abs=1e-3)
    note = f"About {100 * (1 - in_rows):.0f}% of the misses\nare estimated to be theirs, and are in no row."
    for command in ("hotspots", "causes"):
        assert note in run([cachegram, command, "--size", "4K", db]).out.decode(), command
