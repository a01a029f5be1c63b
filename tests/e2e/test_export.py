# SPDX-License-Identifier: Apache-2.0
"""export of a profile: for pprof, flame graphs, Prometheus, and as JSON."""
import csv
import io
import json
import re
import sqlite3

import pytest

from conftest import FULL, TARGETS, build_target, run
from test_cli import cachegram as command, full, one_line  # noqa: F401 (fixtures)


@pytest.fixture(scope="module")
def profile(cachegram, tmp_path_factory):
    folder = tmp_path_factory.mktemp("export")
    program = build_target(TARGETS / "hot_inlined.cpp", folder)
    result = run([cachegram, "record", *FULL, "-o", folder / "inlined.db", "--", program, "1"])
    assert result.status == 0, result.err
    return folder / "inlined.db"


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 128:
            return value, at


def message(data):
    """{field: [values]} of a message of protobuf."""
    fields, at = {}, 0
    while at < len(data):
        key, at = varint(data, at)
        value, at = varint(data, at)
        if key & 7 == 2:
            value, at = data[at:at + value], at + value
            assert len(value) == 0 or at <= len(data)
        else:
            assert key & 7 == 0
        fields.setdefault(key >> 3, []).append(value)
    return fields


def packed(data):
    values, at = [], 0
    while at < len(data):
        value, at = varint(data, at)
        values.append(value)
    return values


def exported(cachegram, *args):
    result = run([cachegram, "export", *args])
    assert result.status == 0, result.err
    return result.out


def test_pprof(profile, cachegram):
    data = message(exported(cachegram, "--to", "pprof", "--size", "32K", profile))
    strings = [s.decode() for s in data[6]]
    assert strings[0] == ""
    types = [[strings[message(t)[k][0]] for k in (1, 2)] for t in data[1]]
    assert types == [["misses", "count"], ["references", "count"]] and strings[data[14][0]] == "misses"
    functions = {f[1][0]: (strings[f[2][0]], strings[f[4][0]]) for f in map(message, data[5])}
    assert all(3 not in f for f in map(message, data[5]))  # a mangled name equal to the name would have pprof shorten it
    mappings = {m[1][0]: (strings[m[5][0]], strings[m[6][0]]) for m in map(message, data[3])}
    locations = {}
    for place in map(message, data[4]):
        lines = [(functions[m[1][0]][0], m.get(2, [0])[0]) for m in map(message, place.get(4, []))]
        locations[place[1][0]] = (mappings[place[2][0]], place.get(3, [None])[0], lines)
    found = {}
    for sample in map(message, data[2]):
        (location, *callers), (misses, references) = packed(sample[1][0]), packed(sample[2][0])
        image, offset, lines = locations[location]
        before = found.get((image[0], offset), (0, 0, lines, image[1], 0))
        found[image[0], offset] = (before[0] + misses, before[1] + references, lines, image[1], before[4] + 1)
        assert all(caller in locations for caller in callers)
    rows = list(csv.DictReader(io.StringIO(exported_rows(cachegram, profile))))
    assert len(rows) == len(found)
    total = sqlite3.connect(profile).execute("select value from run where key = 'touches'").fetchone()[0]
    for row in rows:
        misses, references, lines, build_id, paths = found[row["module"], int(row["offset"]) if row["offset"] else None]
        assert references == pytest.approx(float(row["refs_share"]) * total, abs=paths)
        assert misses == pytest.approx(float(row["misses_per_1000_refs"]) * total / 1000, abs=paths)
        if row["line"]:
            assert lines[0] == (row["function"], int(row["line"])) and build_id
            assert [name for name, _ in lines[1:]] == [part.rsplit(" ", 1)[0] for part in row["inlined_into"].split(" < ") if part]
    worst = max(found.values())
    assert [name for name, _ in worst[2]] == ["grid::Matrix<double>::at", "grid::Solver<double>::sum_columns"]


def exported_rows(cachegram, profile):
    return run([cachegram, "hotspots", "--by", "insn", "--size", "32K", "--format", "csv", profile]).out.decode()


def test_collapsed(profile, cachegram):
    assert exported(cachegram, "--to", "collapsed", "--size", "32K", profile) == \
        run([cachegram, "hotspots", "--call-graph", "--format", "collapsed", "--size", "32K", profile]).out


def test_prometheus(profile, cachegram, tmp_path):
    text = exported(cachegram, "--to", "prometheus", profile).decode()
    line = re.compile(r'(cachegram_\w+)\{command="((?:[^"\\\n]|\\.)*)"(?:,size_bytes="(\d+)")?\} (-?[\d.]+)')
    samples = [line.fullmatch(row).groups() for row in text.splitlines() if not row.startswith("#")]
    for name in {sample[0] for sample in samples}:  # together, after what they are
        assert text.count(f"# TYPE {name} gauge\n{name}{{") == 1
    curve = csv.DictReader(io.StringIO(run([cachegram, "mrc", "--format", "csv", profile]).out.decode()))
    assert {size: value for name, _, size, value in samples if name == "cachegram_miss_ratio"} == {row["size_bytes"]: row["miss_ratio"] for row in curve}
    with sqlite3.connect(profile) as con:
        con.execute("update run set value = ? where key = 'command'", ('a "b\\c" \n\x1b',))
    text = exported(cachegram, "--to", "prometheus", profile).decode()
    assert 'command="a \\"b\\\\c\\" ??"' in text


def test_json(profile, cachegram):
    data = json.loads(exported(cachegram, "--to", "json", profile))
    curve = json.loads(run([cachegram, "mrc", "--format", "json", profile]).out)
    assert data["lru"] == curve and data["sizes"] and len(data["hotspots"][0]["tables"]) == len(data["sizes"])
    assert {"summary", "findings", "facts", "machines", "causes", "random"} <= set(data)


def test_wrong(full, tmp_path):
    one_line(command("export", "--to", "pprof", full), 1)  # it has no code
    one_line(command("export", "--to", "pprof", tmp_path / "none.db"), 1)
    one_line(command("export", "--to", "pprof", "--size", "x", full), 2)
    assert "use --to" in one_line(command("export", full), 2)
    assert "'x' is not a format" in one_line(command("export", "--to", "x", full), 2)
    one_line(command("export", "--to", "prometheus", full, full), 2)
    assert command("export", "--to", "prometheus", full, "-o", "/dev/full").returncode == 1
    assert command("export", "--to", "prometheus", full, "-o", tmp_path / "out").returncode == 0
    assert (tmp_path / "out").read_text() == command("export", "--to", "prometheus", full).stdout
    for name in ("pprof", "collapsed", "prometheus", "json"):
        assert f"\n  {name} " in command("export", "--help").stdout


def test_tables(profile, cachegram, tmp_path):
    """Each table is what its command prints."""
    folder = tmp_path / "tables"
    result = command("export", "--to", "csv", "--size", "32K", "-o", folder, profile)
    assert result.returncode == 0 and result.stdout == result.stderr == ""
    sizes = "1K,2K,4K,8K,16K,32K,64K,128K,256K,512K,1M,2M,4M,8M,16M,32M,64M"
    as_printed = {"run": ["report"], "curve": ["mrc"], "curve-random": ["mrc", "--model", "random"],
                  "timeline": ["timeline", "--sizes", sizes], "phases": ["phases", "--sizes", sizes],
                  **{f"hotspots-{by.replace(',', '-')}": ["hotspots", "--by", by, "--size", "32K"] for by in ("function", "line", "object", "function,object")},
                  "hotspots-calls": ["hotspots", "--call-graph", "--size", "32K"],
                  "causes": ["causes", "--size", "32K"]}
    for table, arguments in as_printed.items():
        printed = command(*arguments, "--format", "csv", profile)
        if printed.returncode:
            assert not (folder / f"{table}.csv").exists()
            one_line(command("export", "--to", "csv", "--table", table, profile), 1)
            continue
        assert (folder / f"{table}.csv").read_text() == printed.stdout, table
        assert command("export", "--to", "csv", "--table", table, "--size", "32K", profile).stdout == printed.stdout
    assert not (folder / "pirate.csv").exists() and {"run", "curve", "hotspots-line", "hotspots-calls"} <= {file.stem for file in folder.iterdir()}
    # The folder is of one profile.
    before = {file: file.read_text() for file in folder.iterdir()}
    assert "exists" in one_line(command("export", "--to", "csv", "-o", folder, profile), 1)
    assert before == {file: file.read_text() for file in folder.iterdir()}


def test_places_in_tables(tmp_path):
    from test_page import HOSTILE, place_profile
    db = tmp_path / "places.db"
    place_profile(db, 'a "b",\x1b' + HOSTILE[0])
    assert command("export", "--to", "csv", "-o", tmp_path / "out", db).returncode == 0
    shared, conflicts = (list(csv.DictReader((tmp_path / "out" / f"{name}.csv").open())) for name in ("false-sharing", "conflicts"))
    assert [(float(r["refs_share"]), r["object"], r["line"], r["line_bytes"]) for r in shared + conflicts] == [(0.04, "variable_5", "3", "64"), (0.03, "variable_6", "4", "64")]
    assert shared[0]["function"] == 'a "b",?' + HOSTILE[0] + "3"
    assert [r["available_bytes"] for r in csv.DictReader((tmp_path / "out" / "pirate.csv").open())] == ["8388608", "1048576"]


def rows_of(data):
    """Those of a table in JSON."""
    for key in ("rows", "points", "pirate"):
        if key in data:
            return data[key]
    return None


def test_json_has_the_tables_of_csv(profile, cachegram, full, tmp_path):
    """The same tables; each as its command prints it as JSON, with as many rows."""
    from test_page import place_profile
    places = tmp_path / "places.db"
    place_profile(places, "plain")
    seen = set()
    listed = re.findall(r"^  (\S+) ", command("export", "--help").stdout.split("\nTables of csv")[1], re.M)
    for number, db in enumerate((profile, places, full)):
        folder = tmp_path / f"out{number}"
        assert command("export", "--to", "csv", "--size", "32K", "-o", folder, db).returncode == 0
        tables = json.loads(exported(cachegram, "--to", "json", "--size", "32K", db))["tables"]
        names = {file.stem for file in folder.iterdir()}
        assert set(tables) == names and list(tables) == [name for name in listed if name in names]
        seen |= names
        for name, data in tables.items():
            assert json.loads(command("export", "--to", "json", "--table", name, "--size", "32K", db).stdout) == data
            rows = list(csv.DictReader((folder / f"{name}.csv").open()))
            if name.startswith("hotspots-") and name != "hotspots-calls" or name in ("false-sharing", "true-sharing", "conflicts", "pirate", "curve", "curve-random"):
                assert len(rows_of(data)) == len(rows) > 0, name
        assert tables["run"]["mode"] == "full" and {key for key, value in tables["run"].items() if not isinstance(value, dict)} <= {row["key"] for row in csv.DictReader((folder / "run.csv").open())}
        assert tables["curve"] == json.loads(command("mrc", "--format", "json", db).stdout)
    assert seen == set(listed)
    # What a profile does not hold is an error if it is asked for.
    one_line(command("export", "--to", "json", "--table", "hotspots-line", full), 1)
    assert all(row["calls"] for row in json.loads(exported(cachegram, "--to", "json", "--table", "hotspots-calls", profile))["rows"][:1])


def test_tables_wrong(full, profile, tmp_path):
    one_line(command("export", "--to", "csv", full), 2)  # several tables, one output
    one_line(command("export", "--to", "csv", "--table", "x", full), 2)
    one_line(command("export", "--to", "pprof", "--table", "curve", full), 2)
    one_line(command("export", "--to", "csv", "--table", "hotspots-line", full), 1)
    # A size that tables cannot have is an error, not a reason to leave them out.
    for target in (["csv", "-o", tmp_path / "none"], ["json"]):
        assert "too small" in one_line(command("export", "--to", *target, "--size", "100", profile), 1)
        assert not (tmp_path / "none").exists()
    bad = tmp_path / "bad.db"
    bad.write_bytes(full.read_bytes()[:5000])
    assert command("export", "--to", "csv", "-o", tmp_path / "none", bad).returncode == 1 and not (tmp_path / "none").exists()
    assert command("export", "--to", "csv", "-o", tmp_path / "no" / "folder", full).returncode == 1
    help_text = command("export", "--help").stdout
    assert all(f"\n  {table} " in help_text for table in ("run", "curve", "timeline", "phases", "hotspots-function-object", "causes", "false-sharing", "true-sharing", "conflicts", "pirate"))


def damaged(profile, tmp_path, change):
    """A copy of the profile, changed by SQL."""
    copy = tmp_path / "damaged.db"
    with sqlite3.connect(profile) as db, sqlite3.connect(copy) as to:
        db.backup(to)
        to.execute(change)
    return copy


@pytest.mark.parametrize("kind", ["csv", "json", "prometheus"])
def test_part_is_damaged(cachegram, profile, tmp_path, kind):
    """What only one of many tables needs must not be left out in silence."""
    kinds = {"csv": "reuse", "json": "reuse", "prometheus": "stack"}
    copy = damaged(profile, tmp_path, f"UPDATE histogram SET total = total + 1 WHERE kind = '{kinds[kind]}'")
    result = run([cachegram, "export", "--to", kind, "-o", tmp_path / "out", copy])
    assert (result.status, result.out) == (1, b"")
    assert result.err.count(b"\n") == 1 and b"damaged (the " in result.err
    assert not (tmp_path / "out").exists()


def test_counts_are_damaged(cachegram, profile, tmp_path):
    """report has tables of code only if there are some."""
    copy = damaged(profile, tmp_path, "UPDATE burst_site SET counts = x'ff'")
    result = run([cachegram, "report", copy])
    assert (result.status, result.out) == (1, b"")
    assert b"damaged (counts of sites)" in result.err


def test_names_of_a_foreign_profile(cachegram, profile, tmp_path):
    """Control characters do not reach the terminal, neither in warnings nor in errors."""
    copy = damaged(profile, tmp_path, "INSERT OR REPLACE INTO run VALUES "
                   "('unprofiled', char(27) || ']0;x' || char(7)), ('unprofiled_cpu_seconds', 5)")
    with sqlite3.connect(copy) as db:
        db.execute("UPDATE process SET exe = '/' || char(27) || '[2J'")
    warned = run([cachegram, "hotspots", "--size", "32K", copy])
    assert warned.status == 0 and b"warning" in warned.err and b"]0;x" in warned.err
    refused = run([cachegram, "hotspots", "--size", "32K", "--comm", "none", copy])
    assert refused.status == 1 and b"[2J" in refused.err
    assert not set(b"\x1b\x07") & set(warned.err + refused.err)
