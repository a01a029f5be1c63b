# SPDX-License-Identifier: Apache-2.0
"""Windows and phases: `timeline`, `phases`, `mrc --phase`, the heat map, on a program with known phases."""
import collections
import csv
import io
import itertools
import json
import math
import os
import re
import shutil
import sqlite3
import subprocess

import pytest

from conftest import FULL, run, run_keys
from record_command import parts, record_command

DEBUG_INFO = False

MILLION = 1000000
SEQUENCE = "ABACABAD"  # of tests/targets/phases.c
KB, MB = 1 << 10, 1 << 20


def call(cachegram, *args, **more):
    return subprocess.run([cachegram, *map(str, args)], capture_output=True, text=True, timeout=120, check=False, **more)


def table(cachegram, *args):
    result = call(cachegram, *args, "--format", "csv")
    assert result.returncode == 0, result.stderr
    return list(csv.DictReader(io.StringIO(result.stdout)))


def windows_of(rows):
    """One dictionary for each window, with its miss ratios by size; None: its phase had no burst."""
    windows = {}
    for row in rows:
        w = windows.setdefault(int(row["window"]), {**row, "ratios": {}})
        w["ratios"][int(row["size_bytes"])] = float(row["miss_ratio"]) if row["miss_ratio"] else None
    return list(windows.values())


def runs(phases, least):
    """The phases in order, without what lasts for fewer windows than `least`."""
    long = [phase for phase, group in itertools.groupby(phases) if len(list(group)) >= least]
    return [phase for phase, _ in itertools.groupby(long)]


def letters(found):
    """The phase that each letter of the sequence is, if the last eight found are that sequence."""
    last = found[-len(SEQUENCE):]
    assert len(last) == len(SEQUENCE), found
    names = dict(zip(SEQUENCE, last))
    assert [names[c] for c in SEQUENCE] == last and len(set(names.values())) == 4, found
    return names


@pytest.fixture(scope="module")
def full(cachegram, built, tmp_path_factory):
    db = tmp_path_factory.mktemp("timeline") / "full.db"
    result = run([cachegram, "record", "-o", db, *FULL, "--", built / "phases", 4])
    assert result.status == 0, result.err
    return db


@pytest.fixture(scope="module")
def begun_in_full(cachegram, built, tmp_path_factory):
    """First exact windows, then sampled ones."""
    db = tmp_path_factory.mktemp("begun") / "p.db"
    result = run([*record_command(cachegram, db, [*parts(20000000, 20000000), "--allowance", "300ms"]), "--", built / "phases", 40])
    assert result.status == 0, result.err
    return db


@pytest.fixture(scope="module")
def in_bursts(cachegram, built, tmp_path_factory):
    db = tmp_path_factory.mktemp("bursts") / "p.db"
    result = run([cachegram, "record", "-o", db, "--allowance", "0", "--gap-us", "8000", "--seed", "5", "--", built / "phases", 120])
    assert result.status == 0, result.err
    return db


@pytest.fixture
def to_change(in_bursts, tmp_path):
    """A copy."""
    return shutil.copy(in_bursts, tmp_path / "copy.db")


def test_miss_ratios_fall_with_the_size(cachegram, begun_in_full):
    """In every window and phase, although each size has an error of its own; whichever sizes are asked for together."""
    db = begun_in_full
    for command, key in (("timeline", "window"), ("phases", "phase")):
        rows = table(cachegram, command, db, "--sizes", "1K..64M")
        for number, group in itertools.groupby(rows, lambda row: row[key]):
            ratios = [float(row["miss_ratio"]) for row in group if row["miss_ratio"]]
            assert all(a >= b - 1e-9 for a, b in itertools.pairwise(ratios)), (command, number, ratios)
        alone = {(row[key], row["miss_ratio"]) for row in table(cachegram, command, db, "--sizes", "256K")}
        assert alone and alone == {(row[key], row["miss_ratio"]) for row in rows if row["size_bytes"] == "262144"}


def test_exact_windows(cachegram, full):
    with sqlite3.connect(f"file:{full}?mode=ro", uri=True) as db:
        refs, cold, kinds = db.execute("select sum(refs), sum(cold), group_concat(distinct kind) from time_window").fetchone()
    keys = run_keys(full)
    assert kinds == "exact" and refs == int(keys["references"]) and cold == int(keys["cold"])
    windows = windows_of(table(cachegram, "timeline", full, "--sizes", "1K..8M"))
    sums = collections.Counter()
    for w in windows:
        for size, ratio in w["ratios"].items():
            sums[size] += int(w["refs"]) * ratio / refs
    for row in table(cachegram, "mrc", full, "--sizes", "1K..8M"):
        # Hardly any reference straddles two lines, which would be two touches.
        assert math.isclose(sums[int(row["size_bytes"])], float(row["miss_ratio"]), abs_tol=1e-5)
    before = 0
    for w in windows:
        assert int(w["start_refs"]) == before and w["exact"] == "1"
        before += int(w["refs"])


def test_mean_of_phases(cachegram, full):
    """What a program misses alone does not depend on whether its phases are distinguished."""
    for size in ("4K", "16K", "64K", "200K", "256K", "400K", "1M", "4M"):
        one, by_phases = (json.loads(run([cachegram, "corun", *more, "--llc", size, "--format", "json", full]).out)["programs"][0]
                          for more in (["--no-phases"], []))
        assert by_phases["phases"] > 1
        assert by_phases["solo_miss_ratio"] == pytest.approx(one["solo_miss_ratio"], rel=1e-5), size


def test_known_phases(cachegram, full):
    windows = windows_of(table(cachegram, "timeline", full, "--sizes", "4K,8K,256K,1M"))
    phases = letters(runs([w["phase"] for w in windows], 2))
    # Four phases, and the loader, the filling of arrays, and the linking of nodes.
    assert len({w["phase"] for w in windows}) <= 7
    expected = {"A": (0.75, 0.5, 0, 0), "B": (1, 1, 1, 1), "C": (1, 0, 0, 0), "D": (1, 1, 1, 0)}
    of_phase = collections.defaultdict(dict)
    for row in table(cachegram, "phases", full, "--sizes", "4K,8K,256K,1M"):
        of_phase[row["phase"]][int(row["size_bytes"])] = float(row["miss_ratio"])
    for name, ratios in expected.items():
        for size, ratio in zip((4 * KB, 8 * KB, 256 * KB, MB), ratios):
            # Windows on the boundary contain up to half of another phase: of 16, and two boundaries.
            assert abs(of_phase[phases[name]][size] - ratio) < 0.07, (name, size)
    # Boundaries: each phase makes four million loads, and the program ends after the last one.
    end = int(windows[-1]["start_refs"]) + int(windows[-1]["refs"])
    begins = [end - (len(SEQUENCE) - i) * 4 * MILLION for i in range(len(SEQUENCE))]
    for w in windows:
        start, stop = int(w["start_refs"]), int(w["start_refs"]) + int(w["refs"])
        inside = [c for c, begin in zip(SEQUENCE, begins) if begin <= start and stop <= begin + 4 * MILLION]
        if inside:
            assert w["phase"] == phases[inside[0]], w


def test_curve_of_a_phase(cachegram, full):
    rows = {(r["phase"], r["size_bytes"]): r for r in table(cachegram, "phases", full, "--sizes", "1K,8K,64K,1M")}
    numbers = sorted({phase for phase, _ in rows})
    for phase in numbers:
        for point in table(cachegram, "mrc", full, "--phase", phase, "--sizes", "1K,8K,64K,1M"):
            other = float(rows[phase, point["size_bytes"]]["miss_ratio"])
            assert math.isclose(float(point["miss_ratio"]), other, abs_tol=1e-4)
            assert point["ci_low"] == point["ci_high"] == point["miss_ratio"]
    more = call(cachegram, "mrc", full, "--phase", len(numbers) + 1)
    assert more.returncode == 1 and f"no phase {len(numbers) + 1}; it has {len(numbers)}" in more.stderr
    for wrong in (["--phase", "0"], ["--phase", "x"], ["--phase", "1", "--model", "random"], ["--phase", "1", "--ways", "8"]):
        assert call(cachegram, "mrc", full, *wrong).returncode == 2


def test_corun_by_phases(cachegram, full):
    """What phases change, and that it can be turned off; the model has unit tests against simulation."""
    def corun(*options):
        return table(cachegram, "corun", full, full, "--llc", "768K", *options)
    by_phase, mean = corun(), corun("--no-phases")
    for phased, whole in zip(by_phase, mean):
        assert int(phased["phases"]) > 3 and whole["phases"] == "1" and whole["mean_cpi"] == ""
        assert phased["mean_miss_ratio"] == whole["shared_miss_ratio"] and phased["mean_cpi"] == whole["shared_cpi"]
        assert float(phased["solo_cpi"]) == pytest.approx(float(whole["solo_cpi"]), rel=0.02)
        # 512 KB of one program and 8 or 16 KB of the other fit into the cache; twice 512 KB do not, half of it neither.
        assert float(phased["shared_miss_ratio"]) < 0.95 * float(whole["shared_miss_ratio"])
    text = call(cachegram, "corun", full, full, "--llc", "768K").stdout
    assert "Solved for each combination of phases" in text
    assert f"slowdown {float(mean[0]['slowdown']):.3f}, miss ratio {100 * float(mean[0]['shared_miss_ratio']):.3f}%" in text
    assert "phases" not in call(cachegram, "corun", full, full, "--no-phases").stdout


def corun_phases(cachegram, db):
    """How many phases corun uses of a profile, and what it says about them."""
    numbers = table(cachegram, "corun", db, db, "--llc", "768K")[0]["phases"]
    return int(numbers), call(cachegram, "corun", db, db, "--llc", "768K").stdout


def test_corun_of_processes(cachegram, built, record):
    """Processes that run one after the other are in one phase at a time, others are not."""
    program = built / "phases"
    _, one_by_one = record(FULL, ["sh", "-c", f"{program} 1; {program} 1"])
    used, text = corun_phases(cachegram, one_by_one)
    assert used > 3 and "not used" not in text
    _, together = record(FULL, ["sh", "-c", f"{program} 1 & {program} 1 & wait"])
    used, text = corun_phases(cachegram, together)
    assert used == 1 and re.search(r"\nThe \d+ phases of profile2 are not used: its threads are in several at a time\.\n$", text)
    assert "not used" not in call(cachegram, "corun", together, together, "--no-phases").stdout
    assert "(4 phases, not used" in call(cachegram, "corun", one_by_one, together).stdout.replace(f"({phases_of(cachegram, together)} ", "(4 ")


def phases_of(cachegram, db):
    return len({row["phase"] for row in table(cachegram, "phases", db, "--sizes", "1M")})


def test_corun_of_a_slow_phase(cachegram, to_change):
    """One that waits for memory has few references, but as much time as others."""
    db = to_change
    before, text = corun_phases(cachegram, db)
    assert before > 2
    numbers = {row["phase"]: int(row["cpu_ns"]) for row in table(cachegram, "phases", db, "--sizes", "1M") if row["phase"]}
    slow = max(numbers, key=numbers.get)
    with sqlite3.connect(db) as con:
        con.execute("update burst set refs_per_ns = refs_per_ns / 10000, near_per_ns = near_per_ns / 10000 where exists"
                    " (select 1 from time_window w where w.process = burst.process and w.tid = burst.tid and w.phase = ?"
                    "  and burst.start_ns >= w.start_ns and burst.start_ns < w.end_ns)", (slow,))
    rows = {row["phase"]: row for row in table(cachegram, "phases", db, "--sizes", "1M")}
    assert int(rows[slow]["refs"]) < 0.015 * sum(int(row["refs"]) for row in rows.values())
    report = call(cachegram, "report", db).stdout
    said = re.search(r"\nPhase (\d+), with ([\d.]+)% of the references, has (\d+)% of the CPU time: see timeline --axis time\n", report)
    assert said and said[1] == slow and float(said[2]) < 1.5 and int(said[3]) > 10
    assert int(table(cachegram, "corun", db, db, "--llc", "768K")[0]["phases"]) == before
    if before < phases_of(cachegram, db):
        assert f"({phases_of(cachegram, db)} phases, small ones joined: {before})" in text


def test_place_by_phases(cachegram, full):
    def place(*options):
        done = call(cachegram, "place", "-n", "2", full, "--caches", "768K:2", "--format", "json", *options)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)
    phased, mean = place(), place("--no-phases")
    assert phased["total_slowdown_without_phases"] == mean["total_slowdown"] > phased["total_slowdown"]
    assert mean["total_slowdown_without_phases"] is None
    pair = table(cachegram, "corun", full, full, "--llc", "768K")
    assert phased["total_slowdown"] == pytest.approx(sum(float(p["slowdown"]) for p in pair), rel=1e-6)
    text = call(cachegram, "place", "-n", "2", full, "--caches", "768K:2").stdout
    assert f"would be {mean['total_slowdown']:.3f}; the assignment would be the same." in text


def test_formats_agree(cachegram, full):
    rows = table(cachegram, "timeline", full, "--sizes", "32K,1M")
    data = json.loads(call(cachegram, "timeline", full, "--sizes", "32K,1M", "--format", "json").stdout)
    assert data["sizes"] == [32 * KB, MB] and data["exact_windows"] == len(data["windows"])
    assert [float(r["miss_ratio"]) for r in rows] == [m for w in data["windows"] for m in w["miss_ratio"]]
    assert [int(r["phase"]) for r in rows[::2]] == [w["phase"] for w in data["windows"]]
    of_phases = json.loads(call(cachegram, "phases", full, "--sizes", "32K,1M", "--format", "json").stdout)
    assert of_phases["phases"] == data["phases"]
    assert sum(p["refs"] for p in data["phases"]) == sum(w["refs"] for w in data["windows"])


def picture(text):
    """The rows of a heat map by label."""
    return {m[1]: m[2] for m in re.finditer(r"^ *(phase|\d+[KM])  (.*)$", text.split("┴")[0].split("+--")[0], re.M)}


def test_heat_map(cachegram, full):
    environment = {k: v for k, v in os.environ.items() if k not in ("LANG", "LC_ALL", "LC_CTYPE", "NO_COLOR")}
    plain = call(cachegram, "timeline", full, env={**environment, "COLUMNS": "100"}).stdout
    rows = picture(plain)
    assert "\033" not in plain and len(rows) == 18 and len(set(map(len, (rows["1K"], rows["64M"], rows["phase"])))) == 1
    # The phases' working sets: 8 KB, 16 KB, 512 KB, 4 MB.
    last = rows["phase"][-1]
    assert rows["256K"][-5:] == "█████" and rows["1M"][-5:] == "     " and rows["phase"][-5:] == 5 * last
    for line in ("4K", "8K", "16K", "32K", "1M"):
        assert set(rows[line]) <= set(" ░▒▓█")
    ascii_only = call(cachegram, "timeline", full, env={**environment, "COLUMNS": "100", "LC_ALL": "C"}).stdout
    shades = str.maketrans("░▒▓█", ".+%@")
    drawn = picture(ascii_only)
    assert drawn["256K"] == rows["256K"].translate(shades) and drawn["phase"] == rows["phase"]
    for color in ("auto", "always"):  # nothing of the drawing is wider than the terminal, the legend included
        narrow = call(cachegram, "timeline", full, f"--color={color}", env={**environment, "COLUMNS": "40"}).stdout
        lines = re.sub("\033[^m]*m", "", narrow).split("\n\n")[1].split("\n")
        assert len(lines) > 18 and max(map(len, lines)) <= 40, max(lines, key=len)
        assert ("20%" if color == "auto" else "100%") in lines[-1]
    colored = call(cachegram, "timeline", full, "--color=always", env={**environment, "COLUMNS": "100"}).stdout
    assert re.search(r"256K  (\033\[48;5;\d+m ){91}\033\[0m$", colored, re.M)


def test_report_names_code_in_a_narrow_terminal(cachegram, full):
    """A table that is cut where the names begin would be of no use."""
    wide, narrow = (call(cachegram, "report", full, env={**os.environ, "COLUMNS": columns}).stdout for columns in ("100", "40"))
    names = re.findall(r"^ *[\d.]+% .*%  (\w+)", wide.split("Misses by function")[1], re.M)
    assert names and all(name in narrow.split("Misses by function")[1] for name in names)


def test_report_fits_two_screens(cachegram, full, tmp_path):
    """48 lines of 80 columns. A warning takes lines from the drawing of the curve, down to four."""
    shutil.copy(full, tmp_path / "p.db")
    db = sqlite3.connect(tmp_path / "p.db")
    environment = {**os.environ, "COLUMNS": "80"}
    drawn = []
    for words in (0, 10, 20, 200):
        db.execute("INSERT OR REPLACE INTO run(key, value) VALUES('warning', ?)", (" ".join(words * ["carefully"]),))
        db.commit()
        text = call(cachegram, "report", tmp_path / "p.db", env=environment).stdout
        lines = text.splitlines()
        assert text.count("carefully") == words and "Misses by function" in text and "Miss ratio by cache size and time" in text
        taken = sum(max(1, -(-len(line) // 80)) for line in lines)
        drawn.append(sum(line[6:7] in ("┤", "│") for line in lines))
        assert taken == 48 or (taken < 48 and drawn[-1] == 11) or (words == 200 and drawn[-1] == 4)
    assert drawn == sorted(drawn, reverse=True) and drawn[0] > drawn[3] == 4
    # A row of hotspots is cut, but not with -v.
    rows = text[text.index("Misses by function"):].splitlines()
    assert max(map(len, rows)) <= 80
    full_text = call(cachegram, "report", "-v", tmp_path / "p.db", env=environment).stdout
    assert sum(line[6:7] in ("┤", "│") for line in full_text.splitlines()) == 11
    # In a narrow terminal only the columns that matter most: the share and the name.
    narrow = call(cachegram, "report", tmp_path / "p.db", env={**environment, "COLUMNS": "40"}).stdout
    narrow = narrow[narrow.index("Misses by function"):].splitlines()[1:]
    assert len(narrow) > 1 and all("%  " in line or line.startswith("and ") for line in narrow) and max(map(len, narrow)) <= 40


def test_heat_map_of_report(cachegram, full):
    """Fewer sizes, those of the list below the curve up to 16M, drawn as timeline does."""
    environment = {**os.environ, "COLUMNS": "100"}
    text = call(cachegram, "report", full, env=environment).stdout
    rows = picture(text[text.index("Miss ratio by cache size and time"):])
    sizes = [size for size in rows if size != "phase"]
    listed = re.findall(r"^  (?:L\d|  ) +(\d+[KM]) +[\d.]+%", text, re.M)
    assert sizes[::-1] == [size for size in listed if size[-1] == "K" or int(size[:-1]) <= 16] and 3 <= len(sizes) <= 6
    assert rows == picture(call(cachegram, "timeline", "--sizes", ",".join(sizes), full, env=environment).stdout)


def test_sampled(cachegram, in_bursts):
    """Bursts and ticks find the same phases. No time is needed for that: windows are of CPU time."""
    db = in_bursts
    windows = windows_of(table(cachegram, "timeline", db, "--sizes", "4K,64K,256K"))
    assert all(w["exact"] == "0" for w in windows)
    assert re.match(rf"Miss ratio by phase and cache size: {len(windows)} windows of 64-byte lines, from \d+ bursts\n", call(cachegram, "phases", db).stdout)
    phases = letters(runs([w["phase"] for w in windows], 2))
    numbers = collections.Counter(w["phase"] for w in windows)
    assert sum(numbers[p] for p in set(phases.values())) > 0.9 * len(windows)
    of_phase = collections.defaultdict(dict)
    for row in table(cachegram, "phases", db, "--sizes", "4K,64K,256K"):
        of_phase[row["phase"]][int(row["size_bytes"])] = row["miss_ratio"]
    # At 4 KB all distances are inside bursts; C and D are the same code.
    for name, at_4k, at_64k in (("A", 0.75, 0), ("B", 1, 1), ("C", 1, 0), ("D", 1, 1)):
        assert abs(float(of_phase[phases[name]][4 * KB]) - at_4k) < 0.05
        assert abs(float(of_phase[phases[name]][64 * KB]) - at_64k) < 0.2  # by watched lines
    # Watched lines are counted by phase, and a phase that does not exist is not one without bursts.
    watched = [json.loads(call(cachegram, "mrc", db, "--format", "json", *phase).stdout)["watched"]
               for phase in [()] + [("--phase", n) for n in of_phase if n]]
    assert all(watched) and sum(watched[1:]) <= watched[0]
    for command in ("mrc", "hotspots"):
        assert "has no phase 99; it has" in call(cachegram, command, "--phase", 99, db).stderr
    # A window's bursts are those that began in it.
    with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as con:
        bursts, = con.execute("select count(*) from burst").fetchone()
        in_windows, = con.execute("select count(*) from burst b join time_window w on w.process = b.process and w.tid = b.tid"
                                  " and b.start_ns >= w.start_ns and b.start_ns < w.end_ns").fetchone()
    assert in_windows >= bursts - 2
    assert sum(int(w["bursts"]) for w in windows) == bursts


def test_unknown_sizes(cachegram, built, record):
    """Without watched lines, large sizes are beyond the bursts' reach: `phases` and `timeline` know no more than `mrc`."""
    result, db = record(["--gap-us", "8000", "--seed", "5", "--watch", "none"], [built / "phases", 60])
    assert result.status == 0, result.err
    known = {}
    for row in table(cachegram, "phases", db, "--sizes", "4K,64K,1M,64M"):
        if row["phase"] and row["bursts"] != "0":
            known.setdefault(row["phase"], []).append(bool(row["miss_ratio"]))
    assert any(not all(sizes) for sizes in known.values()) and all(sizes[0] for sizes in known.values())
    for w in windows_of(table(cachegram, "timeline", db, "--sizes", "4K,64K,1M,64M")):
        assert w["phase"] not in known or [r is not None for r in w["ratios"].values()] == known[w["phase"]]
    assert not table(cachegram, "mrc", db, "--sizes", "64M")[0]["miss_ratio"]
    text = call(cachegram, "timeline", db).stdout
    assert "\n        ?: not enough samples\n" in text and "\n-: not enough samples\n" in text


def references(cachegram, db):
    return sum(float(row["refs"]) for row in table(cachegram, "timeline", db, "--sizes", "1M"))


def test_cpu_time(cachegram, full, in_bursts):
    """Of phases and windows: that of the sampled ones is in the profile; in full mode none is known."""
    db = in_bursts
    with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as con:
        times = dict(con.execute("select phase, sum(cpu_ns) from time_window group by phase"))
    assert {int(r["phase"] or 0): int(r["cpu_ns"]) for r in table(cachegram, "phases", db, "--sizes", "1M")} == times
    assert sum(int(w["cpu_ns"]) for w in windows_of(table(cachegram, "timeline", db, "--sizes", "1M"))) == sum(times.values())
    text = call(cachegram, "phases", db).stdout
    assert "CPU time" in text
    shares = [float(m) for m in re.findall(r"^ +(?:\d+|none) +[\d.]+% +([\d.]+)%", text, re.M)]
    assert len(shares) == len(times) and 99.9 < sum(shares) < 100.1
    assert {r["cpu_ns"] for r in table(cachegram, "phases", full)} == {""} and "CPU time" not in call(cachegram, "phases", full).stdout
    assert json.loads(call(cachegram, "phases", full, "--format", "json").stdout)["phases"][0]["cpu_ns"] is None


def test_time_of_exact_windows(cachegram, begun_in_full):
    """What was recorded completely took as much time as its references do elsewhere in the phase, not that in full mode."""
    windows = windows_of(table(cachegram, "timeline", begun_in_full, "--sizes", "64K"))
    exact, sampled = ([(int(w["refs"]), int(w["cpu_ns"])) for w in windows if w["exact"] == kind] for kind in "10")
    assert exact and sampled
    rates = [sum(refs for refs, _ in some) / sum(ns for _, ns in some) for some in (exact, sampled)]
    assert 1 / 8 < rates[0] / rates[1] < 8


def test_elapsed_time(cachegram, to_change):
    """A pause takes no work, but time. Here the windows of the second half are ten seconds later than they were."""
    db = to_change
    with sqlite3.connect(db) as con:
        (middle,), = con.execute("select start_ns from time_window order by id limit 1 offset (select count(*) / 2 from time_window)")
        for moved, columns in (("time_window", ("start_ns", "end_ns")), ("burst", ("start_ns", "end_ns"))):
            for name in columns[::-1]:
                con.execute(f"update {moved} set {name} = {name} + 10000000000 where start_ns >= ?", (middle,))
        (end,), = con.execute("select max(end_ns) from time_window")
        # As long as it is, since a busy machine may not have run the program for some time before or after, either.
        (began, ended), = con.execute("select start_ns - gap, start_ns from (select start_ns, start_ns - "
                                      "max(end_ns) over (order by start_ns rows between unbounded preceding and "
                                      "1 preceding) as gap from time_window) order by gap desc limit 1")
    assert ended - began >= 0.9 * 10e9
    environment = {**os.environ, "COLUMNS": "109", "LC_ALL": "C.UTF-8"}
    by_work, by_time = (call(cachegram, "timeline", db, "--sizes", "4K,256K", *more, env=environment).stdout for more in ([], ["--axis", "time"]))
    assert "-" not in picture(by_work)["phase"] and "idle" not in by_work
    rows = picture(by_time)
    assert len(rows["phase"]) == 100 and "-: idle, or not seen" in by_time and f" {end / 1e9:.2f} s, about " in by_time
    pause = max(re.findall("-+", rows["phase"]), key=len)
    assert abs(len(pause) - 100 * (ended - began) / end) < 3
    at = rows["phase"].index(pause)
    assert abs(at - 100 * began / end) < 3 and set(rows["4K"][at:at + len(pause)]) == {" "}


def test_references_without_rates(cachegram, built, record):
    """Clock `cputime` measures no rate of references: an ordinary one is assumed."""
    _, db = record(["--clock", "cputime", "--gap-us", "2000"], [built / "phases", 40])
    true = len(SEQUENCE) * 40 * MILLION
    assert true / 8 < references(cachegram, db) < 8 * true


def test_references_that_were_counted(cachegram, built, record):
    """Where all references are counted, a burst knows how many its thread made before it; so do the windows around it."""
    result, db = record([*parts(20000000), "--mode", "count", "--allowance", "300ms"], [built / "phases", 280])
    assert result.status == 0, result.err
    windows = windows_of(table(cachegram, "timeline", db, "--sizes", "1M"))
    exact = sum(int(w["refs"]) for w in windows if w["exact"] == "1")
    total = exact + sum(int(w["refs"]) for w in windows if w["exact"] == "0")
    assert math.isclose(total, int(run_keys(db)["clock_references"]), rel_tol=0.01)
    with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as con:
        bursts = con.execute("select start_ns, start_refs from burst").fetchall()
    assert len(bursts) > 10 and len(windows) > 20
    slack = total - exact - max(start_refs for _, start_refs in bursts) + 0.002 * total  # after the last burst
    for start_ns, start_refs in bursts:
        w = [w for w in windows if int(w["start_ns"]) <= start_ns and w["exact"] == "0"][-1]
        before = int(w["start_refs"]) - exact
        assert before - slack <= start_refs <= before + int(w["refs"]) + slack, (start_ns, w)


BURN = "i=0; while [ $i -lt {} ]; do i=$((i+1)); done; "


def test_time_before_exec(cachegram, built, record):
    """CPU time of a process goes on when it executes another program: that has only what it used itself."""
    result, db = record(["--gap-us", "8000"], ["sh", "-c", BURN.format(400000) + f"exec {built / 'phases'} 20"])
    assert result.status == 0, result.err
    with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as con:
        (shell, _), (program, began) = con.execute("select id, start_ns from process order by id").fetchall()
        times = dict(con.execute("select process, sum(cpu_ns) / 1e9 from time_window group by process"))
        first, = con.execute("select min(start_ns) from time_window where process = ?", (program,)).fetchone()
    assert times[shell] > 0.1 and times[shell] + times[program] < 1.05 * float(run_keys(db)["cpu_seconds"])
    assert first > began - 20e6  # the loader runs before it is known that the process began


def test_work_after_execs(cachegram, built, record, tmp_path):
    """A process that executes several programs while everything is counted does not hide what comes after."""
    script = tmp_path / "again"
    script.write_text("#!/bin/sh\n" + BURN.format(2000) + f"[ $1 -gt 0 ] && exec $0 $(($1 - 1))\nexec {built / 'phases'} 160\n")
    script.chmod(0o755)
    result, db = record([*parts(4000000, 100000000), "--allowance", "1s"], [script, "20"])
    assert result.status == 0, result.err
    keys = run_keys(db)
    with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as con:
        timed, = con.execute("select count(*) from burst where gap_ns is not null").fetchone()
        seconds, = con.execute("select coalesce(sum(cpu_ns), 0) / 1e9 from time_window where ticks > 5").fetchone()  # none while all is counted
    assert timed > 3 and float(keys["rest_cpu_seconds"]) > max(0.5 * seconds, 0.01)


def test_references_of_cold_code(cachegram, built, record, tmp_path):
    """Rates before bursts in much code that was new are not used, if most bursts are such."""
    _, db = record([*parts(1000000, 50000000), "--allowance", "300ms", "--overhead", "20"], [built / "sweep", 4000, 50000])
    cold = shutil.copy(db, tmp_path / "cold.db")
    with sqlite3.connect(cold) as con:
        changed = con.execute("update burst set new_blocks = 1000, near_per_ns = near_per_ns / 20, "
                              "refs_per_ns = refs_per_ns / 20 where start_refs is null and gap_ns is not null").rowcount
    # A twentieth of what follows if they were used; else that of the counted part.
    assert changed > 0 and 0.5 < references(cachegram, cold) / references(cachegram, db) < 2
    with sqlite3.connect(cold) as con:  # little of the code was new
        con.execute("update burst set new_blocks = 0")
    known = float(run_keys(db)["counted_references"]) + float(run_keys(db)["full_references"])
    assert references(cachegram, cold) - known < 0.1 * (references(cachegram, db) - known)


def test_phase_without_burst(cachegram, built, full, record):
    """Nothing is known of such a phase, and all outputs say so."""
    result, db = record(["--gap-us", "60000", "--seed", "5", "--allowance", "0"], [built / "phases", 60])
    assert result.status == 0, result.err
    burstless = [r["window"] for r in table(cachegram, "timeline", db, "--sizes", "4K") if r["bursts"] == "0"]
    with sqlite3.connect(db) as con:
        con.execute("update time_window set phase = 1")
        con.executemany("update time_window set phase = 7 where id = ?", [(w,) for w in burstless])
    assert burstless
    rows = [r for r in table(cachegram, "phases", db, "--sizes", "4K,1M") if r["phase"] == "7"]
    assert [r["miss_ratio"] for r in rows] == ["", ""] and rows[0]["bursts"] == "0"
    rows = [r for r in table(cachegram, "timeline", db, "--sizes", "4K,1M") if r["phase"] == "7"]
    assert [r["miss_ratio"] for r in rows] == 2 * len(burstless) * [""]
    data = json.loads(call(cachegram, "timeline", db, "--sizes", "4K", "--format", "json").stdout)
    assert [p["miss_ratio"] for p in data["phases"] if p["phase"] == 7] == [[None]]
    for command in ("phases", "timeline"):
        assert "\nPhase 7 had no burst: its miss ratios are not known.\n" in call(cachegram, command, db).stdout
    failed = call(cachegram, "mrc", db, "--phase", "7")
    assert failed.returncode == 1 and "holds no bursts of phase 7" in failed.stderr
    compared = json.loads(call(cachegram, "verify", "--format", "json", db, full).stdout)
    assert compared["unknown_parts"] > 0 and compared["cdf_error"] > 0
    assert "of these parts have not enough samples" in call(cachegram, "verify", db, full).stdout


def test_after_full_mode(cachegram, begun_in_full):
    """A run with an allowance: first exact windows, then sampled ones."""
    db = begun_in_full
    kinds = [w["exact"] for w in windows_of(table(cachegram, "timeline", db, "--sizes", "64K"))]
    assert kinds == sorted(kinds, reverse=True) and {"0", "1"} == set(kinds)
    with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as con:
        refs, = con.execute("select sum(refs) from time_window where kind = 'exact'").fetchone()
    assert refs == int(run_keys(db)["full_references"])


def test_threads_and_processes(cachegram, built, record):
    result, db = record(FULL, ["sh", "-c", f"{built / 'threads'} & {built / 'phases'} 1; wait"])
    assert result.status == 0, result.err
    by_thread = collections.defaultdict(list)
    for w in windows_of(table(cachegram, "timeline", db, "--sizes", "64K")):
        by_thread[w["process"], w["tid"]].append(w)
    assert len({process for process, _ in by_thread}) >= 3 and len(by_thread) > len({p for p, _ in by_thread})
    for windows in by_thread.values():
        before, end = 0, 0
        for w in windows:
            assert int(w["start_refs"]) == before and int(w["start_ns"]) >= end
            before, end = before + int(w["refs"]), int(w["end_ns"])
    assert sum(int(w["refs"]) for ws in by_thread.values() for w in ws) == int(run_keys(db)["references"])
    rows = table(cachegram, "timeline", db, "--sizes", "64K")
    for _, tid in by_thread:
        assert table(cachegram, "timeline", db, "--sizes", "64K", "--tid", tid) == [r for r in rows if r["tid"] == tid]
    with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as con:
        ran = {str(n) for n, in con.execute("select id from process where exe like '%/phases'")}
    one = [r for r in rows if r["process"] in ran]
    assert one and one == table(cachegram, "timeline", db, "--sizes", "64K", "--comm", "phases")
    data = json.loads(call(cachegram, "phases", db, "--comm", "phases", "--format", "json").stdout)
    assert data["exact_windows"] == len(one) and sum(p["refs"] for p in data["phases"]) == sum(int(r["refs"]) for r in one)
    for wrong, message in ((("--tid", "1"), "no references of thread 1"), (("--comm", "none"), "ran 'none'; it has processes of ")):
        failed = call(cachegram, "timeline", db, *wrong)
        assert failed.returncode == 1 and message in failed.stderr and failed.stdout == ""


def test_verify_over_time(cachegram, built, full, record):
    """A profile compared with itself has no error; with another program, as much as the two differ."""
    same = json.loads(call(cachegram, "verify", "--format", "json", full, full).stdout)
    assert same["cdf_error"] == 0 and [t["size_bytes"] for t in same["times"]] == [KB << i for i in range(12)]
    result, other = record(FULL, [built / "phases", 2])
    assert result.status == 0, result.err
    twice = json.loads(call(cachegram, "verify", "--format", "json", other, full).stdout)
    assert 0 < twice["cdf_error"] < 0.05 and twice["parts"] > 60  # the same phases, but for the start
    text = call(cachegram, "verify", other, full).stdout
    assert f"{100 * twice['cdf_error']:.4f}" in text and "CDF" in text


def test_time_in_no_window(cachegram, to_change):
    """Threads that end before anything of them is seen have no windows, and that is said. Here most windows are taken away."""
    db = to_change
    def share():
        found = json.loads(call(cachegram, "phases", db, "--format", "json").stdout)["cpu_time_share"]
        with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as con:
            seconds, = con.execute("select sum(cpu_ns) / 1e9 from time_window").fetchone()
        assert found == pytest.approx(min(1, seconds / float(run_keys(db)["user_cpu_seconds"])), rel=1e-3)
        return found
    def said():
        return [re.findall(r"\nNote: windows contain (\d+)% of the CPU time", call(cachegram, command, db).stdout) for command in ("phases", "timeline")]
    assert share() > 0.5 and said() == [[], []]
    with sqlite3.connect(db) as con:
        con.execute("delete from time_window where id > (select count(*) / 4 from time_window)")
    assert share() < 0.5 and said() == [[f"{100 * share():.0f}"]] * 2
    assert json.loads(call(cachegram, "phases", db, "--comm", "phases", "--format", "json").stdout)["cpu_time_share"] is None


def test_incomplete_recording(cachegram, full, tmp_path):
    """The commands say that a recording was killed, or still runs."""
    db = shutil.copy(full, tmp_path / "p.db")
    said = "Note: the recording is not complete: it is still running, or was killed.\n"
    for command in ("timeline", "phases"):
        assert said not in call(cachegram, command, db).stdout
    with sqlite3.connect(db) as con:
        assert con.execute("update run set value = 'no' where key = 'complete'").rowcount == 1
    for command in ("timeline", "phases"):
        assert said in call(cachegram, command, db).stdout
        assert json.loads(call(cachegram, command, db, "--format", "json").stdout)["complete"] is False


def test_without_windows(cachegram, built, record):
    result, db = record([*FULL, "--lines", "1/4"], [built / "phases", 1])
    assert result.status == 0, result.err
    for command in (["timeline"], ["phases"], ["mrc", "--phase", "1"]):
        failed = call(cachegram, *command, db)
        assert failed.returncode == 1 and failed.stderr.count("\n") == 1 and failed.stdout == ""
    assert call(cachegram, "report", db).returncode == 0


def test_variation_within_a_phase(full, cachegram, tmp_path):
    """Windows of `full`, dealt out anew: in the first phase, A's miss ratio, and B's where an instance begins."""
    db = tmp_path / "made.db"
    with sqlite3.connect(full) as old, sqlite3.connect(db) as connection:
        old.backup(connection)
        rows = connection.execute("SELECT id, phase, refs, cold, stack FROM time_window ORDER BY id").fetchall()
        counts = collections.Counter(row[1] for row in rows)
        middle = {phase: [row for row in rows if row[1] == phase][n // 2] for phase, n in counts.items()}
        ratio = {phase: float(row["miss_ratio"]) for row in table(cachegram, "phases", "--sizes", "32K", full) for phase in [int(row["phase"])]}
        low, high = min(ratio, key=ratio.get), max(ratio, key=ratio.get)
        assert len(rows) >= 72 and ratio[high] > ratio[low] + 0.01
        for i, row in enumerate(rows[:72]):
            first, stay = i % 6 == 0, i // 6
            of = middle[high if first and stay % 2 == 0 else low]
            connection.execute("UPDATE time_window SET phase = ?, refs = ?, cold = 0, stack = ? WHERE id = ?", (1 + stay % 2, of[2], of[4], row[0]))
        connection.execute("DELETE FROM time_window WHERE id > ?", (rows[71][0],))
    kinds = {(row["phase"], row["size_bytes"]): row["variation"] for row in table(cachegram, "phases", "--sizes", "32K,2M", db)}
    assert kinds == {("1", "32768"): "transition", ("1", "2097152"): "", ("2", "32768"): "", ("2", "2097152"): ""}
    found = json.loads(call(cachegram, "phases", "--sizes", "32K,2M", "--format", "json", db).stdout)["phases"]
    assert "variation" not in found[1]
    variation = found[0]["variation"]
    assert variation["size_bytes"] == 32768 and set(variation) == {"size_bytes", "first_windows_miss_ratio", "other_windows_miss_ratio"}
    assert variation["first_windows_miss_ratio"] > variation["other_windows_miss_ratio"] + 0.01
    text = call(cachegram, "phases", "--sizes", "32K,2M", db).stdout
    assert re.search(r"\nWithin phase 1, at 32K: the first windows after it was entered miss in [\d.]+%, the others in [\d.]+%\.\n$", text)
    assert "Within" not in call(cachegram, "phases", full).stdout
    exported = call(cachegram, "export", "--to", "csv", "--table", "phases", db).stdout
    assert ",transition," in exported and exported == call(cachegram, "phases", "--format", "csv", db).stdout
