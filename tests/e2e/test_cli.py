# SPDX-License-Identifier: Apache-2.0
"""The command line: results in the three formats, and what is said of bad input.

Profiles are made here with sqlite3 from docs/format.md alone, so that page is tested too. The program is
$CACHEGRAM, or build/src/cli/cachegram.
"""
import csv
import io
import json
import os
import pathlib
import re
import shutil
import sqlite3
import subprocess
import unicodedata

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CACHEGRAM = os.environ.get("CACHEGRAM", str(ROOT / "build" / "src" / "cli" / "cachegram"))
SCHEMA = """
PRAGMA application_id = 0x4367726d;
PRAGMA user_version = 16;
CREATE TABLE run(key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE process(id INTEGER PRIMARY KEY, pid, ppid, exe, start_ns);
CREATE TABLE counter(process, name TEXT, value, PRIMARY KEY(process, name)) WITHOUT ROWID;
CREATE TABLE module(id INTEGER PRIMARY KEY, process, start_addr, end_addr, file_offset, path);
CREATE TABLE burst(id INTEGER PRIMARY KEY, process, tid, start_ns, end_ns, cpu_start_ns, cpu_end_ns, refs, loads,
    stores, instructions, words, new_blocks, lines, pc, end_code, end_reason, end_detail, weight REAL,
    start_refs REAL, refs_per_ns REAL, blocks, near_per_ns REAL, steps, string_hits REAL, gap_ns);
CREATE TABLE watch(id INTEGER PRIMARY KEY, burst, address, position, age, outcome_code, outcome TEXT, refs REAL,
    clock_error REAL, cpu_ns REAL, weight REAL, inside_refs REAL, pc INTEGER, site INTEGER, object INTEGER,
    tail_refs REAL, tail_lines REAL, tid INTEGER, own_cpu_ns REAL);
CREATE TABLE histogram(burst, kind TEXT, total, bins BLOB, PRIMARY KEY(burst, kind));
"""


def cachegram(*args, cwd=None, env=None, stdout=subprocess.PIPE):
    environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR", "LANG", "LC_ALL", "LC_CTYPE")}
    environment.update(env or {})
    return subprocess.run([str(pathlib.Path(CACHEGRAM).resolve()), *map(str, args)], cwd=cwd, env=environment,
                          stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=60)


def leb128(n):
    out = bytearray()
    while n >= 128:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes(out + bytes([n]))


def histogram(counts):
    """{bin: count} as the blob of the format."""
    blob, following = b"", 0
    for bin, count in sorted(counts.items()):
        blob += leb128(bin - following) + leb128(count)
        following = bin + 1
    return blob


def put(db, burst, kind, counts):
    db.execute("INSERT INTO histogram VALUES(?,?,?,?)", (burst, kind, sum(counts.values()), histogram(counts)))


def make(path, mode, **run):
    db = sqlite3.connect(path)
    db.executescript(SCHEMA)
    values = {"command": "true", "mode": mode, "complete": "yes", "line_bytes": 64, **run}
    db.executemany("INSERT INTO run VALUES(?,?)", values.items())
    return db


@pytest.fixture
def full(tmp_path):
    """100 references: 10 cold, 60 at distance 0, 20 at 100, 10 at 1000 lines."""
    path = tmp_path / "full.db"
    db = make(path, "full", references=100, cold=10, loads=70, stores=30)
    distances = {0: 60, 100: 20, 1000: 10}
    put(db, 0, "stack", distances)
    put(db, 0, "reuse", distances)
    db.commit()
    db.close()
    return path


@pytest.fixture
def burst(tmp_path):
    path = tmp_path / "burst.db"
    db = make(path, "burst", warning="first\nsecond", cpu_seconds=8.1, wall_seconds=9, overhead_percent=1.25, exit_status=3)
    for i in range(1, 21):
        db.execute("INSERT INTO burst(id, process, tid, refs, loads, stores, end_code, end_reason, weight) "
                   "VALUES(?,1,?,1000,600,400,1,'full',1)", (i, 100 + i % 2))
        put(db, i, "stack", {0: 700, 40 + i: 200})
        put(db, i, "reuse", {0: 700, 60 + i: 200})
        put(db, i, "first", {k: 1 for k in range(100)})
        put(db, i, "age", {k: 1 for k in range(100)})
    db.execute("INSERT INTO counter VALUES(1, 'triggers', 100), (1, 'skipped_code', 50), (1, 'lost_buffers', 1)")
    db.commit()
    db.close()
    return path


@pytest.fixture
def strings(tmp_path):
    """20 bursts, each of 1000 steps, three in ten of which are at a distance of 1000 lines. Counting found one
    hit of string instructions for each step. Bursts have none: at least 1000 / 63 touches are missing."""
    path = tmp_path / "strings.db"
    db = make(path, "burst", seed=1)
    for i in range(1, 21):
        db.execute("INSERT INTO burst(id, process, tid, refs, loads, stores, end_code, end_reason, weight, steps, string_hits) "
                   "VALUES(?,1,1,1000,600,400,1,'full',1,1000,1)", (i,))
        put(db, i, "stack", {0: 700, 1000: 300})
        put(db, i, "reuse", {0: 700, 1000: 300})
    db.commit()
    db.close()
    return path


def one_line(result, status):
    assert result.returncode == status
    assert result.stdout == ""
    assert result.stderr.startswith("cachegram: ")
    assert result.stderr.count("\n") == 1 and result.stderr.endswith("\n")
    return result.stderr


# --- results ---

def test_string_instructions_that_no_burst_has(strings):
    """Their touches miss where the cache holds less than 1/3 of the hits of all bursts, 20000 / 3 / 63 lines; else half
    of them may."""
    result = cachegram("mrc", strings, "--format", "csv", "--sizes", "4K,32K")
    assert result.returncode == 0, result.stderr
    rows = [[float(x) for x in row] for row in list(csv.reader(io.StringIO(result.stdout)))[1:]]
    seen = 2000 / (2000 + 1000 / 63)
    for row, size, most_likely in zip(rows, (4 << 10, 32 << 10), (1, 0.5)):
        assert row == [size, *[pytest.approx(seen * 300 / 2000 + misses * (1 - seen), abs=1e-9) for misses in (most_likely, 0, 1)]]
    assert "0.8% of the touches were counted instead, and are taken to miss in caches of less than 6.61K" in cachegram("report", strings).stdout


def test_string_instructions_that_bursts_have(strings):
    """As many touches as counting found hits for: nothing is missing."""
    db = sqlite3.connect(strings)
    db.execute("UPDATE burst SET refs = 2000")
    for i in range(1, 21):
        db.execute("DELETE FROM histogram WHERE burst = ?", (i,))
        for kind in ("stack", "reuse"):
            put(db, i, kind, {0: 700, 1000: 300 + 16})
    db.commit()
    db.close()
    small, = csv.DictReader(io.StringIO(cachegram("mrc", strings, "--format", "csv", "--sizes", "32K").stdout))
    assert float(small["miss_ratio"]) == pytest.approx(316 / 2016, abs=1e-9)
    assert "string instructions" not in cachegram("report", strings).stdout


def test_mrc_full_csv_is_exact(full):
    # Lines: 64, 100, 101 (distance 100 needs 101 lines), 1024, 2^20.
    result = cachegram("mrc", full, "--format", "csv", "--sizes", "4K,6400,6464,64K,64M")
    assert result.stderr == "" and result.returncode == 0
    rows = list(csv.reader(io.StringIO(result.stdout)))
    assert rows[0] == ["size_bytes", "miss_ratio", "ci_low", "ci_high"]
    assert [r[0] for r in rows[1:]] == ["4096", "6400", "6464", "65536", "67108864"]
    assert [float(r[1]) for r in rows[1:]] == pytest.approx([0.4, 0.4, 0.2, 0.1, 0.1], abs=1e-9)
    for row in rows[1:]:
        assert row[1] == row[2] == row[3]


def test_mrc_default_sizes(full):
    rows = cachegram("mrc", full, "--format=csv").stdout.splitlines()
    assert len(rows) == 1 + 33
    assert rows[1].startswith("1024,") and rows[2].startswith("1448,") and rows[-1].startswith("67108864,")


def test_mrc_json_agrees_with_csv(burst):
    for model in ("lru", "random"):
        rows = list(csv.DictReader(io.StringIO(cachegram("mrc", burst, "--model", model, "--format", "csv").stdout)))
        data = json.loads(cachegram("mrc", burst, "--model", model, "--format", "json").stdout)
        assert data["mode"] == "burst" and data["model"] == model and data["bursts"] == 20
        assert len(data["points"]) == len(rows) == 33
        for point, row in zip(data["points"], rows):
            for key, text in row.items():
                assert point[key] == (None if text == "" else float(text))


def test_only_lru_is_exact(full):
    for model, exact in (("lru", True), ("random", False), ("statstack", False)):
        result = cachegram("mrc", full, "--model", model, "--format", "json")
        assert json.loads(result.stdout)["exact"] is exact
        assert ("estimated" in cachegram("mrc", full, "--model", model).stdout) is not exact


def test_what_full_mode_does_not_hold(full):
    """The advice is what helps a user who did not ask for full mode, too: a short run is recorded like that."""
    for command, option in (("mrc", "--thread"), ("hotspots", "--tid")):
        said = one_line(cachegram(command, full, option, "100"), 1)
        assert "--allowance 0" in said and "mrc --threads separate" in said
    assert "sim FILE --cache L1:32K:8'" in one_line(cachegram("mrc", full, "--ways", "8"), 1)


def test_version_after_any_command():
    listed = re.findall(r"^  (\w+) ", cachegram("help").stdout, re.M)
    assert "mrc" in listed and "help" in listed
    for command in listed:
        result = cachegram(command, "--version")
        assert result.returncode == 0 and result.stdout == cachegram("--version").stdout, (command, result.stderr)


def test_range_with_one_end(full):
    for sizes in ("1M..", "..1M", ".."):
        assert f"the range '{sizes}' has one end only" in one_line(cachegram("mrc", full, "--sizes", sizes), 2)


def test_size_without_samples_has_bounds_only(burst):
    # No burst holds more than 100 lines.
    row = cachegram("mrc", burst, "--format", "csv", "--sizes", "64M").stdout.splitlines()[1].split(",")
    assert row[1] == "" and 0 <= float(row[2]) <= float(row[3]) <= 1
    assert "not enough samples" in cachegram("mrc", burst, "--sizes", "64M").stdout


def test_thread(burst):
    assert json.loads(cachegram("mrc", burst, "--thread", "100", "--format", "json").stdout)["bursts"] == 10
    assert "thread 7" in one_line(cachegram("mrc", burst, "--thread", "7"), 1)


@pytest.mark.parametrize("command", ["mrc", "report"])
@pytest.mark.parametrize("columns", [30, 80, 200])
def test_text_fits_and_color_is_optional(command, columns, burst):
    result = cachegram(command, burst, env={"COLUMNS": str(columns)})
    assert result.returncode == 0 and "\033" not in result.stdout
    drawing = [line for line in result.stdout.splitlines() if line[6:7] in ("┤", "│", "└")]
    assert len(drawing) > (10 if columns >= 80 else 4)  # long sentences take lines of narrow screens
    for line in drawing:
        assert sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line) <= columns
    assert "\033[" in cachegram(command, burst, "--color=always").stdout
    assert "\033[" not in cachegram(command, burst, "--color=never").stdout


@pytest.mark.parametrize("command", ["mrc", "report", "report -v"])
def test_ascii_where_the_locale_has_nothing_else(command, burst):
    """The drawing is the same, but for its characters: a cell of the curve in one is a cell in the other."""
    utf8 = cachegram(*command.split(), burst).stdout
    for locale in ({"LC_ALL": "C"}, {"LANG": "C"}, {"LANG": "C.UTF-8", "LC_CTYPE": "POSIX"}):
        plain = cachegram(*command.split(), burst, env=locale).stdout
        assert plain.isascii() and not utf8.isascii()
        rows = [(a, b) for a, b in zip(utf8.splitlines(), plain.splitlines()) if a[6:7] in ("┤", "│")]
        assert len(rows) > 4
        for a, b in rows:
            assert [c == " " for c in a] == [c == " " for c in b] and [c == "░" for c in a] == [c == ":" for c in b]
    assert cachegram(*command.split(), burst, env={"LANG": "en_US.UTF-8"}).stdout == utf8


def test_report(burst):
    text, verbose = cachegram("report", burst).stdout, cachegram("report", "-v", burst).stdout
    for part in ("true", "first\n", "second\n", "1.25%", "50 triggers ignored", "1 buffer of references", "exit        3"):
        assert part in text and part in verbose
    for part in ("started", "20 in 2 threads", "100% at full length"):
        assert part not in text and part in verbose
    assert "recorded    20000 references: 20 bursts in 2 threads; " in text
    assert text.index("warning") < text.index("command")
    data = json.loads(cachegram("report", burst, "--format", "json").stdout)
    assert data["bursts"] == 20 and data["references"] == 20000 and data["ends"] == {"full": 20}
    assert data["counters"]["skipped_code"] == 50 and len(data["points"]) == 33
    # This machine's caches are on the axis, and below the drawing with what `mrc` says of them.
    levels = [row for row in csv.DictReader(io.StringIO(cachegram("machine", "--reported", "--format", "csv").stdout)) if row["level"].startswith("L")]
    for i, size in enumerate(sorted({int(row["size_bytes"]) for row in levels})):
        point = next(csv.DictReader(io.StringIO(cachegram("mrc", burst, "--sizes", size, "--format", "csv").stdout)))
        shown = re.search(rf"^  L{i + 1} +\S+ +(.*?)%?(  \(|$)", text, re.M)[1]
        assert shown == ("not enough samples" if point["miss_ratio"] == "" else f"{100 * float(point['miss_ratio']):.3f}")
        assert size > 64 << 20 or f"▲L{i + 1}" in text
    rows = dict(csv.reader(io.StringIO(cachegram("report", burst, "--format", "csv").stdout)))
    assert rows["warning"] == "first\nsecond" and rows["end.full"] == "20"


def test_one_burst_is_no_bursts(burst):
    with sqlite3.connect(burst) as db:
        db.execute("DELETE FROM burst WHERE id > 1")
    assert "from 1 burst, 1000 references" in cachegram("mrc", burst).stdout
    assert ": 1 burst in 1 thread; " in cachegram("report", burst).stdout


def test_report_adds_the_recorder(burst):
    """What profiling added is in two processes, the program's own and the recorder."""
    assert "; profiling added 0.10 s (1.25%)\n" in cachegram("report", burst).stdout
    with sqlite3.connect(burst) as db:
        db.execute("INSERT INTO run VALUES('recorder_cpu_seconds', 0.3)")
    assert "; profiling added 0.40 s (5.00%), recorder included\n" in cachegram("report", burst).stdout
    verbose = cachegram("report", "-v", burst).stdout
    assert "overhead    5.00% of CPU time, " in verbose and "recorder    300.0 ms of these" in verbose
    assert json.loads(cachegram("report", burst, "--format", "json").stdout)["recorder_cpu_seconds"] == 0.3


def test_report_answers_first(tmp_path):
    """60 of 100 references hit at once, 30 need 36 MB, 10 are first touches."""
    db = make(tmp_path / "p.db", "full", references=100, cold=10, loads=100, stores=0, warning="careful")
    for kind in ("stack", "reuse"):
        put(db, 0, kind, {0: 60, 3353: 30})  # bin 3353 is 2^(10 + (3353 - 1024) / 256) = 560,971 lines
    db.commit()
    curve = {int(row["size_bytes"]): float(row["miss_ratio"]) for row in csv.DictReader(io.StringIO(cachegram("mrc", tmp_path / "p.db", "--format", "csv").stdout))}
    assert curve[32 << 20] == 0.4 and curve[64 << 20] == 0.1
    lines = cachegram("report", tmp_path / "p.db").stdout.splitlines()
    assert re.fullmatch(r"60\.0% of the references hit in a cache of \S+ \(this machine's L1\); 64M instead of 32M would gain 30\.0 percentage points\.", lines[0])
    assert lines[1] == "" and "careful" in lines[2]
    answer = json.loads(cachegram("report", tmp_path / "p.db", "--format", "json").stdout)["answer"]
    assert answer["hit_ratio_low"] == answer["hit_ratio_high"] == answer["hit_ratio"] and answer["gain_low"] == answer["gain_high"] == answer["gain"]
    assert (answer["hit_ratio"], answer["from_bytes"], answer["to_bytes"], answer["gain"], answer["flat"]) == (pytest.approx(0.6), 32 << 20, 64 << 20, pytest.approx(0.3), False)
    # Nothing beyond the first level: that is an answer, too.
    db.execute("delete from histogram")
    for kind in ("stack", "reuse"):
        put(db, 0, kind, {0: 90})
    db.commit()
    assert cachegram("report", tmp_path / "p.db").stdout.splitlines()[0].endswith("; a larger cache would gain less than 0.5 percentage points.")


@pytest.mark.parametrize("known", [True, False])
def test_report_answers_with_intervals(burst, known):
    """Those of `mrc`, and what they leave possible."""
    if known:  # nothing is left to be watched, and bin 2000 is about 14,000 lines
        db = sqlite3.connect(burst)
        db.execute("delete from histogram")
        db.execute("update burst set refs = 900")
        for i in range(1, 21):
            for kind in ("stack", "reuse"):
                put(db, i, kind, {0: 700 + 5 * i, 2000: 200 - 5 * i})
        db.commit()
        db.close()

    def point(size):
        row = next(csv.DictReader(io.StringIO(cachegram("mrc", burst, "--sizes", size, "--format", "csv").stdout)))
        return {name: float(row[name]) for name in ("ci_low", "ci_high")}
    answer = json.loads(cachegram("report", burst, "--format", "json").stdout)["answer"]
    text = cachegram("report", burst).stdout.splitlines()[0]
    first, last = point(int(answer["size_bytes"])), point(64 << 20)
    assert first["ci_low"] < first["ci_high"]
    assert answer["hit_ratio_low"] == pytest.approx(1 - first["ci_high"]) and answer["hit_ratio_high"] == pytest.approx(1 - first["ci_low"])
    assert answer["most_gain"] == pytest.approx(first["ci_high"] - last["ci_low"], abs=1e-9)
    if not known:
        assert answer["hit_ratio"] is None
        assert text.startswith(f"There are not enough samples to say more than that {100 * answer['hit_ratio_low']:.1f} to {100 * answer['hit_ratio_high']:.1f}% of the references hit")
        return
    digits = 2 if answer["hit_ratio"] > 0.99 else 1
    assert f"% ({100 * answer['hit_ratio_low']:.{digits}f} to {100 * answer['hit_ratio_high']:.{digits}f}%) of the references hit" in text
    if "gain" in answer:
        before, after = point(int(answer["from_bytes"])), point(int(answer["to_bytes"]))
        assert (answer["gain_low"], answer["gain_high"]) == (pytest.approx(before["ci_low"] - after["ci_high"]), pytest.approx(before["ci_high"] - after["ci_low"]))
        assert f" ({100 * answer['gain_low']:.1f} to {100 * answer['gain_high']:.1f}) percentage points." in text
    elif not answer["flat"]:
        assert text.endswith(f"; a larger cache would gain at most {100 * answer['most_gain']:.1f} percentage points.")


def test_report_without_samples(tmp_path):
    make(tmp_path / "p.db", "burst", command="a\033[31m\"b").commit()
    result = cachegram("report", tmp_path / "p.db")
    assert result.returncode == 0 and "no curve" in result.stdout and "\033" not in result.stdout
    assert json.loads(cachegram("report", tmp_path / "p.db", "--format=json").stdout)["command"] == "a\033[31m\"b"
    assert "too short" in one_line(cachegram("mrc", tmp_path / "p.db"), 1)


def test_default_profile(full):
    shutil.copy(full, full.parent / "cachegram.db")
    assert cachegram("mrc", cwd=full.parent).returncode == 0


def test_profile_is_only_read(full):
    before = full.read_bytes()
    os.chmod(full, 0o444)
    os.chmod(full.parent, 0o555)
    try:
        assert cachegram("mrc", full).returncode == 0
    finally:
        os.chmod(full.parent, 0o755)
    assert full.read_bytes() == before
    assert [p.name for p in full.parent.iterdir()] == ["full.db"]


# --- help and usage ---

def test_help():
    for command in (["help"], ["--help"], ["help", "mrc"], ["mrc", "--help"], ["report", "--help"]):
        result = cachegram(*command)
        assert result.returncode == 0 and result.stdout.startswith("usage: cachegram") and result.stderr == ""
    assert cachegram("--version").stdout.startswith("cachegram ")


@pytest.mark.parametrize("args", [
    [], ["nonsense"], ["help", "nonsense"], ["mrc", "--nonsense"], ["mrc", "-q"], ["mrc", "--sizes"],
    ["mrc", "--sizes", "12Q"], ["mrc", "--sizes", "0"], ["mrc", "--sizes", ""], ["mrc", "--sizes", "-1"],
    ["mrc", "--format", "xml"], ["mrc", "--model", "plru"], ["mrc", "--color=sometimes"], ["mrc", "--thread", "x"],
    ["mrc", "--help=3"], ["mrc", "a", "b"], ["report", "--sizes", "1K"], ["report", "a", "b"],
])
def test_wrong_usage(args):
    one_line(cachegram(*args), 2)


# --- bad files ---

@pytest.mark.parametrize("command", ["mrc", "report"])
@pytest.mark.parametrize("kind, word", [
    ("missing", "no profile"), ("folder", "folder"), ("empty", "empty"), ("text", "not a cachegram profile"),
    ("sqlite", "not a cachegram profile"), ("older", "older"), ("newer", "newer"), ("truncated", "truncated"), ("short", "truncated"),
    ("tables", "damaged"), ("blob", "damaged"), ("line", "damaged"),
])
def test_bad_file(command, kind, word, full, tmp_path):
    path = tmp_path / "bad.db"
    if kind == "folder":
        path.mkdir()
    elif kind == "empty":
        path.write_bytes(b"")
    elif kind == "text":
        path.write_text("hello\n" * 1000)
    elif kind == "sqlite":
        sqlite3.connect(path).executescript("CREATE TABLE t(x);")
    elif kind == "truncated":
        path.write_bytes(full.read_bytes()[:-100])
    elif kind == "short":
        path.write_bytes(full.read_bytes()[:50])
    elif kind != "missing":
        shutil.copy(full, path)
        sqlite3.connect(path).executescript({
            "newer": "PRAGMA user_version = 1000;",
            "older": "PRAGMA user_version = 6;",
            "tables": "DROP TABLE histogram;",
            "blob": "UPDATE histogram SET total = total + 1;",
            "line": "UPDATE run SET value = 0 WHERE key = 'line_bytes';",
        }[kind])
    message = one_line(cachegram(command, path), 1)
    assert word in message and f"'{path}'" in message


@pytest.mark.parametrize("arguments", [["mrc", "--format", "csv"], ["export", "--to", "json"]], ids=["short", "long"])
def test_full_disk(full, arguments):
    """Also if the output is so long that most of it was written before the end."""
    with open("/dev/full", "w") as out:
        result = cachegram(*arguments, full, stdout=out)
    assert result.returncode == 1 and result.stderr == "cachegram: cannot write the results to stdout: No space left on device\n"


def test_closed_pipe_with_the_signal_ignored(full):
    """Not a failure, however much could not be written."""
    assert len(cachegram("export", "--to", "json", full).stdout) > 1 << 13
    read, write = os.pipe()
    os.close(read)
    result = subprocess.run([CACHEGRAM, "export", "--to", "json", full], stdout=write, stderr=subprocess.PIPE, timeout=60, restore_signals=False)  # Python ignores SIGPIPE
    os.close(write)
    assert (result.returncode, result.stderr) == (0, b"")


@pytest.mark.parametrize("name", ["a\x1b[31mb", "a\u202eb", "a\u2066b", "a\u2028b", "a\x9bb", "a\x07b", b"a\xffb"])
def test_hostile_names(name, tmp_path):
    """What could change what a terminal shows becomes a question mark, in text and CSV; the ends of lines of warnings stay."""
    db = make(tmp_path / "p.db", "burst")
    raw = name if isinstance(name, bytes) else name.encode()
    db.executemany("INSERT OR REPLACE INTO run VALUES(?, CAST(? AS TEXT))", [("command", raw), ("warning", raw + b"\nsecond"), ("seed", raw), ("started", raw)])
    db.commit()
    text = cachegram("report", "-v", tmp_path / "p.db").stdout
    assert text.count("a?") == 4
    rows = dict(csv.reader(io.StringIO(cachegram("report", "--format", "csv", tmp_path / "p.db").stdout)))
    assert rows["warning"].splitlines() == [rows["command"], "second"] and rows["command"].startswith("a?") and rows["command"].isprintable()
    assert all(c.isprintable() or c == "\n" for c in text)


def test_closed_pipe(full):
    read, write = os.pipe()
    os.close(read)
    result = cachegram("mrc", full, stdout=write)
    os.close(write)
    assert result.stderr == ""


def test_files_that_are_replaced_keep_their_rights(full, tmp_path):
    """Who could not read the page before cannot afterwards; a new one is as the umask has it."""
    old, new = tmp_path / "old.html", tmp_path / "new.html"
    old.write_text("before")
    for mode in 0o600, 0o640:
        old.chmod(mode)
        assert cachegram("html", "-o", old, full).returncode == 0
        assert old.stat().st_mode & 0o777 == mode and old.stat().st_size > 1000
    assert cachegram("html", "-o", new, full).returncode == 0
    umask = os.umask(0)
    os.umask(umask)
    assert new.stat().st_mode & 0o777 == 0o666 & ~umask
    assert not list(tmp_path.glob("*.part"))
