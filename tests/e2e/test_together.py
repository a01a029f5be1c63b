# SPDX-License-Identifier: Apache-2.0
"""corun, place, predict and machine, on profiles made here from docs/format.md: loops, whose curves are known."""
import csv
import io
import json
import re
import sqlite3

import pytest

from test_cli import SCHEMA, cachegram

LINE = 64


def leb128(value):
    out = b""
    while True:
        value, low = value >> 7, value & 127
        if not value:
            return out + bytes([low])
        out += bytes([low | 128])


def bin_of(value):
    if value < 1024:
        return value
    b = 1024
    while int(2 ** (10 + (b + 1 - 1024) / 256)) <= value:
        b += 1
    return b


def blob(counts):
    bins, out, at = {}, b"", 0
    for value, count in counts.items():
        bins[bin_of(value)] = bins.get(bin_of(value), 0) + count
    for b in sorted(bins):
        out += leb128(b - at) + leb128(bins[b])
        at = b + 1
    return sum(bins.values()), out


def write_profile(path, mode, run, histograms, bursts=()):
    with sqlite3.connect(path) as db:
        db.executescript(SCHEMA)
        run = {"complete": "yes", "mode": mode, "line_bytes": LINE, **run}
        db.executemany("INSERT INTO run VALUES (?, ?)", run.items())
        for refs in bursts:
            db.execute("INSERT INTO burst(refs, process, tid, weight, end_code, start_ns, end_ns) "
                       "VALUES (?, 1, 1, ?, 1, 0, 1)", (refs, refs))
        for (burst, kind), counts in histograms.items():
            db.execute("INSERT INTO histogram VALUES (?, ?, ?, ?)", (burst, kind, *blob(counts)))
    db.close()
    return path


def loop_profile(path, lines, rounds=200, hot=3):
    """Round and round `lines` lines, each touched hot + 1 times in a row."""
    touches = lines * rounds * (hot + 1)
    distances = {0: lines * rounds * hot, lines - 1: lines * (rounds - 1)}
    reuse = {0: lines * rounds * hot, (lines - 1) * (hot + 1): lines * (rounds - 1)}
    return write_profile(path, "full", {"command": "loop", "references": touches, "touches": touches,
                                        "instructions": 2 * touches, "cold": lines},
                         {(0, "stack"): distances, (0, "reuse"): reuse})


def timed_profile(path, refs_per_ns):
    """A burst of 2000 references and 4000 instructions; its 100 lines are not used again: 5% miss in any cache."""
    write_profile(path, "burst", {"references": 2000, "touches": 2000, "instructions": 4000, "seed": 1,
                                  "cpu": "Loop Master 3", "clock": "count", "clock_error": 0.2},
                  {(1, "stack"): {0: 1900}, (1, "reuse"): {0: 1900}, (1, "first"): {i: 1 for i in range(100)},
                   (1, "age"): {0: 100}}, bursts=[2000])
    with sqlite3.connect(path) as db:
        db.execute("UPDATE burst SET instructions = 4000, lines = 100, start_refs = 0, refs_per_ns = ?",
                   (refs_per_ns,))
        db.executemany("INSERT INTO watch(burst, address, position, age, outcome_code, refs) "
                       "VALUES (1, ?, 0, 0, 3, 1e9)", [(LINE * i,) for i in range(100)])
    db.close()


@pytest.fixture(name="folder", scope="module")
def make_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("together")
    loop_profile(folder / "small.db", 4096)     # 256K
    loop_profile(folder / "large.db", 20000)    # 1.2M
    loop_profile(folder / "huge.db", 400000)    # 24M
    write_profile(folder / "burst.db", "burst", {"references": 2000, "touches": 2000, "instructions": 4000,
                                                 "seed": 1},
                  {(1, "stack"): {0: 1900}, (1, "reuse"): {0: 1900}, (1, "first"): {i: 1 for i in range(100)},
                   (1, "age"): {0: 100}}, bursts=[2000])
    timed_profile(folder / "timed.db", refs_per_ns=0.5)
    timed_profile(folder / "quick.db", refs_per_ns=5)
    levels = [{"size_bytes": size, "latency_cycles": cycles} for size, cycles in ((32 << 10, 4), (1 << 20, 44))]
    (folder / "home.json").write_text(json.dumps({"name": "home", "cpu": "Loop Master 3", "clock_hz": 2e9,
                                                  "levels": levels, "memory": {"latency_cycles": 14}}))
    return folder


def rows(*args, cwd):
    done = cachegram(*args, "--format", "csv", cwd=cwd)
    assert done.returncode == 0, done.stderr
    return list(csv.DictReader(io.StringIO(done.stdout)))


COLUMNS = ("program,size_bytes,solo_miss_ratio,shared_miss_ratio,solo_cpi,shared_cpi,slowdown,"
           "cache_share_bytes")


def test_one_program_is_its_own_curve(folder):
    for size in ("32K", "512K", "1M", "2M", "32M"):
        for model, mrc in (("lru", "lru"), ("statstack", "statstack")):
            [alone] = rows("corun", "large.db", "--llc", size, "--model", model, cwd=folder)
            [point] = rows("mrc", "large.db", "--sizes", size, "--model", mrc, cwd=folder)
            assert alone["solo_miss_ratio"] == alone["shared_miss_ratio"] == point["miss_ratio"]
            assert float(alone["slowdown"]) == 1


def test_cpi_is_the_papers(folder):
    [alone] = rows("corun", "small.db", cwd=folder)
    miss, touches = 1 / 800, 0.5    # cold ones; a quarter of the references miss the private cache
    assert float(alone["solo_cpi"]) == pytest.approx(1 + touches * (0.75 + 10 * (0.25 - miss) + 130 * miss))


def test_columns_and_formats(folder):
    done = cachegram("corun", "small.db", "large.db", "--format", "csv", cwd=folder)
    assert done.stdout.startswith(COLUMNS)
    as_json = json.loads(cachegram("corun", "small.db", "large.db", "--format", "json", cwd=folder).stdout)
    as_csv = list(csv.DictReader(io.StringIO(done.stdout)))
    assert as_json["converged"] is True and as_json["from_all_references"] is True and len(as_json["programs"]) == 2
    for a, b in zip(as_json["programs"], as_csv):
        assert a["program"] == b["program"] and a["shared_cpi"] == float(b["shared_cpi"])
    text = cachegram("corun", "small.db", "large.db", "--cpi-error", "10%", cwd=folder).stdout
    assert max(len(line) for line in text.splitlines()) <= 80


def test_equal_programs_share_equally(folder):
    got = rows("corun", "-n", "4", "large.db", cwd=folder)
    assert len(got) == 4
    for row in got:
        assert float(row["cache_share_bytes"]) == pytest.approx(512 << 10, rel=1e-5)
        assert row["shared_cpi"] == got[0]["shared_cpi"] and float(row["slowdown"]) > 1.5


def test_large_loop_takes_from_small(folder):
    small, huge = rows("corun", "small.db", "huge.db", cwd=folder)
    assert float(huge["cache_share_bytes"]) > (1 << 20)
    assert sum(float(r["cache_share_bytes"]) for r in (small, huge)) == pytest.approx(2 << 20, rel=1e-4)


def test_partitions(folder):
    by_size = rows("corun", "large.db", "huge.db", "--partition", "1536K,0", cwd=folder)
    by_ways = rows("corun", "large.db", "huge.db", "--partition", "12w,0", cwd=folder)
    assert by_size == by_ways
    assert float(by_size[0]["shared_miss_ratio"]) == pytest.approx(1 / 800)
    assert float(rows("corun", "large.db", "huge.db", cwd=folder)[0]["shared_miss_ratio"]) > 0.1
    for ways in range(1, 12): # parts of 12 are not exact, and may add up to more than the whole
        rows("corun", "large.db", "huge.db", "--ways", "12", "--partition", f"{ways}w,{12 - ways}w", cwd=folder)
    for bad, words in (("3M,0", "leave nothing"), ("17w,0", "16 ways"), ("1M", "one item for each")):
        done = cachegram("corun", "large.db", "huge.db", "--partition", bad, cwd=folder)
        assert done.returncode in (1, 2) and words in done.stderr


def test_wrong_cpis_and_measured_ones(folder):
    row = rows("corun", "large.db", "small.db", "--cpi-error", "10", cwd=folder)[0]
    assert 0 <= float(row["wrong_cpi_change"]) < 0.5
    row = rows("corun", "large.db", "small.db", "--solo-cpi", "3.5,2.5", cwd=folder)[0]
    assert float(row["solo_cpi"]) == pytest.approx(3.5)
    done = cachegram("corun", "large.db", "--solo-cpi", "0.1", cwd=folder)
    assert done.returncode == 1 and "are fewer than its references take" in done.stderr


def test_base_from_the_profile(folder):
    # 0.5 references an instruction at 0.5 a nanosecond: 1 ns, 2 cycles at 2 GHz. 5% of the references go to memory
    # and take 10 cycles more than a hit: 0.25 of the 2 cycles.
    def of(name, *options):
        return rows("corun", name, *options, cwd=folder)[0]
    row = of("timed.db", "--machine", "home.json")
    assert row["base_from"] == "profile" and float(row["overlap"]) == 1
    assert float(row["cpi_base"]) == pytest.approx(1.75) and float(row["solo_cpi"]) == pytest.approx(2)
    # On another machine the base goes with it.
    row = of("timed.db", "--machine", "rome-7742", "--recorded-on", "home.json")
    assert row["base_from"] == "profile" and float(row["cpi_base"]) == pytest.approx(1.75)
    assert float(row["solo_cpi"]) == pytest.approx(1.75 + 0.5 * 0.05 * (414.8 - 4))
    # 0.2 cycles an instruction: nothing could be left for misses.
    for name, options, why in (("quick.db", ["--machine", "home.json"], "is shorter than its references take"),
                               ("timed.db", ["--machine", "rome-7742"], "another machine"),
                               ("timed.db", [], "without --machine"), ("large.db", ["--machine", "home.json"], "no time")):
        row = of(name, *options)
        assert row["base_from"] == "default" and float(row["cpi_base"]) == 1
        for command in ("corun", "predict", "place"):
            files = [name, name] if command == "place" else [name]
            text = cachegram(command, *files, *options, cwd=folder).stdout
            assert "base 1.000" in text and "(default: " in text and why in text, command
    row = of("timed.db", "--machine", "home.json", "--cpi-base", "1.5")
    assert (row["base_from"], float(row["cpi_base"])) == ("option", 1.5)
    row = of("timed.db", "--machine", "home.json", "--solo-cpi", "1")
    assert row["base_from"] == "solo" and float(row["cpi_base"]) == pytest.approx(0.75)
    # From two sizes: what differs between them tells the overlap. 20% of large.db's misses go away at 2M.
    miss = [float(rows("corun", "large.db", "--llc", size, cwd=folder)[0]["solo_miss_ratio"]) for size in ("1M", "2M")]
    cpi = [0.5 + 0.5 * (0.25 - m) * 9 / 2 + 0.5 * m * 129 / 2 for m in miss]
    row = of("large.db", "--solo-cpi", f"{cpi[0]:.9f}@1M:{cpi[1]:.9f}@2M")
    assert (float(row["cpi_base"]), float(row["overlap"])) == pytest.approx((0.5, 2), rel=1e-6)
    # What it takes to hide more than there is: overlap. 0.3 - 0.25 cycles are left for 0.25 of misses.
    row = of("timed.db", "--machine", "home.json", "--solo-cpi", "0.3")
    assert (float(row["cpi_base"]), float(row["overlap"])) == pytest.approx((0.25, 5))
    [memory] = [r for r in rows("predict", "timed.db", "--machine", "home.json", cwd=folder) if r["level"] == "memory"]
    assert memory["base_from"] == "profile" and float(memory["cycles_share"]) == pytest.approx(0.25 / 2)
    text = cachegram("corun", "timed.db", "large.db", "--machine", "home.json", cwd=folder).stdout
    assert "CPI model of timed: base 1.750, overlap of misses 1.00\n" in text
    assert "(from the profile: 1.000 ns per instruction, clock count, ±20%)" in text
    done = cachegram("corun", "timed.db", "--recorded-on", "statcc-paper", cwd=folder)
    assert done.returncode == 1 and "lacks its clock" in done.stderr and done.stderr.count("\n") == 1


def test_samples_that_do_not_reach(folder):
    done = cachegram("corun", "burst.db", "large.db", "--format", "csv", cwd=folder)
    assert done.returncode == 0 and "only bounds" in done.stderr
    for row in csv.DictReader(io.StringIO(done.stdout)):
        assert row["shared_miss_ratio"] == row["shared_cpi"] == ""
        assert 0 <= float(row["shared_low"]) <= float(row["shared_high"]) <= 1
        assert float(row["cpi_low"]) <= float(row["cpi_high"])
    done = cachegram("place", "burst.db", "large.db", cwd=folder)
    assert done.returncode == 1 and "not enough samples" in done.stderr


def test_misuse(folder):
    for args in (["corun"], ["corun", "--llc", "x", "small.db"], ["corun", "--latency", "1,2", "small.db"],
                 ["corun", "-n", "0", "small.db"], ["corun", "-n", "65", "small.db"], ["place"],
                 ["corun", "--solo-cpi", "1,2", "small.db"], ["corun", "--solo-cpi", "1,", "small.db", "large.db"],
                 ["corun", "--solo-cpi", "1@1M", "small.db"], ["corun", "--solo-cpi", "1@1M:2", "small.db"],
                 ["corun", "--solo-cpi", "1:2", "small.db"], ["corun", "--partition", "1M,0", "small.db"],
                 ["corun", "--partition", ",0", "small.db", "large.db"],
                 ["predict", "--solo-cpi", "0", "small.db"],
                 ["place", "--caches", "2M", "small.db"], ["place", "--goal", "best", "small.db"],
                 ["predict", "--what-if", "l2=1M", "small.db"], ["machine", "a", "b"], ["machine", "--seconds", "0"]):
        done = cachegram(*args, cwd=folder)
        assert done.returncode == 2 and done.stdout == "", args
        assert done.stderr.count("\n") == 1
    for args in (["corun", "absent.db"], ["predict", "--machine", "absent", "small.db"], ["machine", "small.db"],
                 ["place", "--caches", "2M:1", "small.db", "large.db"]):
        done = cachegram(*args, cwd=folder)
        assert done.returncode == 1 and done.stdout == "" and done.stderr.count("\n") == 1, args


def test_place(folder):
    # Two loops fit together in none of the caches; each fits alone, or next to a small one.
    names = ["large.db", "small.db"]
    got = rows("place", "-n", "2", *names, "--caches", "2M:2,2M:2", cwd=folder)
    assert list(got[0]) == ["cache", "size_bytes", "program", "slowdown", "cpi_base", "overlap", "base_from", "threads"]
    for cache in "01":
        assert sorted(r["program"] for r in got if r["cache"] == cache) == ["large", "small"]
    best = json.loads(cachegram("place", "-n", "2", *names, "--caches", "2M:2,2M:2", "--format", "json",
                                cwd=folder).stdout)
    assert best["exact"] and best["total_slowdown"] <= best["random_mean"] and best["bound"] == best["total_slowdown"]
    many = json.loads(cachegram("place", "-n", "7", *names, "--caches", "4M:7,4M:7", "--format", "json",
                                cwd=folder).stdout)
    assert not many["exact"] and many["bound"] <= many["total_slowdown"] <= many["spread"] + 1e-9


def test_predict(folder):
    got = json.loads(cachegram("predict", "huge.db", "--machine", "rome-7742", "--what-if", "llc=64M", "--format",
                               "json", cwd=folder).stdout)
    assert got["cpi"] < 0.5 * got["cpi_without_what_if"]    # 24M fit then
    assert [level["level"] for level in got["levels"]] == ["L1", "L2", "L3", "memory"]
    assert got["levels"][2]["size_bytes"] == 64 << 20
    assert got["levels"][0]["cycles_share"] == 0    # an out-of-order core does not wait for hits
    assert got["base_share"] + sum(level["cycles_share"] for level in got["levels"]) == pytest.approx(1)
    assert got["ns_per_ref"] == pytest.approx(got["cpi"] * 2 / 3.4)
    text = cachegram("predict", "huge.db", "--machine", "rome-7742", cwd=folder).stdout
    assert "waiting for memory" in text
    text = cachegram("predict", "burst.db", cwd=folder).stdout
    assert "Not enough samples" in text


def test_machine(folder):
    known = cachegram("machine", "--list", cwd=folder).stdout
    names = re.findall(r"^(\S+) ", known, re.M)
    assert "statcc-paper" in names and "rome-7742" in names
    for name in names:
        machine = json.loads(cachegram("machine", name, "--format", "json", cwd=folder).stdout)
        sizes, cycles = [[level[key] for level in machine["levels"]] for key in ("size_bytes", "latency_cycles")]
        cycles.append(machine["memory"]["latency_cycles"])
        assert sizes == sorted(sizes) and cycles == sorted(cycles) and cycles[0] > 0 and machine["source"]
        assert cachegram("predict", "timed.db", "--machine", name, cwd=folder).returncode == 0, name
    paper = rows("corun", "large.db", "huge.db", "--machine", "statcc-paper", cwd=folder)
    assert paper == rows("corun", "large.db", "huge.db", cwd=folder)
    done = cachegram("machine", "--seconds", "0.001", "--largest", "4M", "-o", "this.json", cwd=folder)
    assert done.returncode == 0, done.stderr
    this = json.loads((folder / "this.json").read_text())
    assert this["levels"][0]["latency_ns"] > 0 and 0.3 < this["clock_hz"] / this["tsc_hz"] < 3
    assert this["levels"][0]["bandwidth"][0]["read_gbps"] > 0 and len(this["latency_curve"]) > 15
    # Of memory, 4M show nothing if the last cache holds half of them.
    assert (this["memory"]["bandwidth"] != []) == (4 << 20 > 2 * this["levels"][-1]["size_bytes"])
    again = json.loads(cachegram("machine", "this.json", "--format", "json", cwd=folder).stdout)
    assert again == this
    # Too small a buffer for the latency of any machine's memory.
    done = cachegram("machine", "--seconds", "0.001", "--largest", "64K", "-o", "small.json", cwd=folder)
    assert done.returncode == 0 and json.loads((folder / "small.json").read_text())["memory"]["latency_ns"] is None
    why = re.fullmatch("cachegram: warning: this description (lacks the latency of .*: the largest buffer, of 64K, was too small; "
                       "'cachegram machine --largest [0-9.]+[KMG] --output FILE' measures it)\n", done.stderr)[1]
    for args in (["predict", "timed.db"], ["corun", "large.db", "huge.db"], ["hotspots", "timed.db"]):
        refused = cachegram(*args, "--machine", "small.json", cwd=folder)
        assert refused.returncode == 1 and why in refused.stderr, refused.stderr
    reported = json.loads(cachegram("machine", "--reported", "--format", "json", cwd=folder).stdout)
    assert reported["levels"][0]["latency_ns"] is None
    assert reported["levels"][0]["size_bytes"] == this["levels"][0]["size_bytes"]


def test_damaged_descriptions(folder):
    whole = cachegram("machine", "rome-7742", "--format", "json", cwd=folder).stdout
    for cut in range(0, len(whole), 37):
        (folder / "cut.json").write_text(whole[:cut])
        done = cachegram("predict", "small.db", "--machine", "cut.json", cwd=folder)
        assert done.returncode == 1 and done.stderr.count("\n") == 1
    for strange in ("[]", "{}", '{"levels": 3}', '{"levels": [{"size_bytes": -1}]}',
                    '{"levels": [{"size_bytes": 1024}]}', '{"levels": [1, 2, 3, 4, 5]}', "null"):
        (folder / "cut.json").write_text(strange)
        done = cachegram("predict", "small.db", "--machine", "cut.json", cwd=folder)
        assert done.returncode == 1 and done.stdout == "", strange
