# SPDX-License-Identifier: Apache-2.0
"""`cachegram sample`: the papers' sampler, and its curves against exact ones of the same trace."""
import contextlib
import csv
import io
import json
import random
import sqlite3
import struct

import pytest

from conftest import run

SIZES = "4K,16K,32K,64K"


def sample(cachegram, trace, db, *args, status=0):
    result = run([cachegram, "sample", trace, "-o", db, *args])
    assert result.status == status, result.err
    return result


def curve(cachegram, command, path, *args):
    result = run([cachegram, command, path, "--sizes", SIZES, "--format", "csv", *args])
    assert result.status == 0, result.err
    return [(float(r["miss_ratio"]), r["ci_low"], r["ci_high"]) for r in csv.DictReader(io.StringIO(result.out.decode()))]


@pytest.fixture(scope="module")
def trace(tmp_path_factory, cachegram):
    """200,000 references to 1,500 lines: some popular, a walk, any. The same behaviour all along."""
    rng, path = random.Random(1), tmp_path_factory.mktemp("trace") / "t.csv"
    with open(path, "w") as f:
        f.write("address,size\n")
        for i in range(200000):
            pick = rng.random()
            line = rng.randrange(30) if pick < 0.6 else i // 3 % 400 if pick < 0.8 else rng.randrange(1500)
            f.write(f"{64 * line},4\n")
    return path


def test_sampling_every_reference_leaves_the_model_error(cachegram, trace, tmp_path):
    """Every reference sampled, windows end to end: what is left is the models' own error."""
    sample(cachegram, trace, tmp_path / "p.db", "--window", "20000", "--hibernate", 0, "--samples", 20000)
    exact = curve(cachegram, "stack", trace)
    for (got, low, high), (want, _, _) in zip(curve(cachegram, "mrc", tmp_path / "p.db"), exact):
        assert got == pytest.approx(want, abs=0.006)
        assert float(low) <= got <= float(high)
    sizes = [f"L1:{size}:full:random" for size in SIZES.split(",")]
    result = run([cachegram, "sim", trace, "--format", "csv", "--cache", ",".join(sizes)])
    by_random = [float(r["miss_ratio"]) for r in csv.DictReader(io.StringIO(result.out.decode()))]
    modelled = curve(cachegram, "mrc", tmp_path / "p.db", "--model", "random")
    for (got, _, _), want in zip(modelled, by_random):
        assert got == pytest.approx(want, abs=0.006)
    assert max(abs(a[0] - b[0]) for a, b in zip(modelled, exact)) > 0.01  # the two policies do differ here


def test_sparse_samples_come_close(cachegram, trace, tmp_path):
    """The papers' proportions on a small trace: 1/10 of the time, 1 in 8 there."""
    sample(cachegram, trace, tmp_path / "p.db", "--window", "1e3", "--hibernate", "9e3", "--samples", 125)
    with sqlite3.connect(tmp_path / "p.db") as db:
        reported = dict(db.execute("select key, value from run"))
        samples, dangling = db.execute("select count(*), count(*) - count(distance) from reuse_sample").fetchone()
        windows, references = db.execute("select count(*), sum(refs) from reuse_window").fetchone()
        assert db.execute("select count(*) from reuse_sample s join reuse_window w on w.id = s.window where"
                          " s.ref >= w.start_ref and s.ref < w.start_ref + w.refs").fetchone()[0] == samples
    assert (reported["mode"], reported["complete"], reported["window_refs"]) == ("sparse", "yes", 1000)
    assert (reported["samples"], reported["dangling"], reported["windows"]) == (samples, dangling, windows)
    assert 10 <= windows <= 35 and samples == pytest.approx(references / 8, rel=0.2)
    for (got, _, _), (want, _, _) in zip(curve(cachegram, "mrc", tmp_path / "p.db"), curve(cachegram, "stack", trace)):
        assert got == pytest.approx(want, abs=0.05)


def test_cyclic(cachegram, tmp_path):
    """Round and round over 100 lines: all misses below, only dangling ones (the last round) above."""
    (tmp_path / "t.csv").write_text("address,size\n" + "".join(f"{64 * (i % 100)},8\n" for i in range(20000)))
    sample(cachegram, tmp_path / "t.csv", tmp_path / "p.db", "--window", 20000, "--hibernate", 0, "--samples", 20000)
    got = [m for m, _, _ in curve(cachegram, "mrc", tmp_path / "p.db")]
    assert got[0] == 1
    assert got[1] == got[3] and got[1] == pytest.approx(100 / 20000, abs=0.002)


def test_the_seed_decides(cachegram, trace, tmp_path):
    lists = []
    for name, seed in (("a", 5), ("b", 5), ("c", 6)):
        sample(cachegram, trace, tmp_path / name, "--window", 5000, "--hibernate", 5000, "--samples", 50, "--seed", seed)
        with sqlite3.connect(tmp_path / name) as db:
            lists.append(db.execute("select window, ref, distance, line from reuse_sample order by id").fetchall())
    assert lists[0] == lists[1] != lists[2]


def test_report_and_formats(cachegram, trace, tmp_path):
    result = sample(cachegram, trace, tmp_path / "p.db", "--window", 5000, "--hibernate", 5000, "--samples", 50)
    assert result.out == b"" and b"samples in" in result.err
    assert b"sparse" in run([cachegram, "report", tmp_path / "p.db"]).out
    data = json.loads(run([cachegram, "mrc", tmp_path / "p.db", "--format", "json"]).out)
    assert data["mode"] == "sparse" and data["windows"] > 5 and data["samples"] > 100
    assert run([cachegram, "mrc", tmp_path / "p.db", "--thread", 7]).status == 1


def test_damage(cachegram, tmp_path):
    rows = "".join(f"{64 * (i % 50)},8\n" for i in range(5000))
    (tmp_path / "t.csv").write_text("address,size\n" + rows + "broken\n")
    result = sample(cachegram, tmp_path / "t.csv", tmp_path / "p.db", "--window", 1000, "--hibernate", 0, "--samples",
                    500, status=1)
    assert b"not read to its end" in result.err
    with sqlite3.connect(tmp_path / "p.db") as db:
        reported = dict(db.execute("select key, value from run"))
    assert reported["references"] == 5000 and "dangling" in reported["warning"]


def test_bad_input_leaves_no_file(cachegram, trace, tmp_path):
    (tmp_path / "empty.csv").write_text("address,size\n")
    for name in ("missing", "empty.csv"):
        sample(cachegram, tmp_path / name, tmp_path / "p.db", status=1)
        assert not (tmp_path / "p.db").exists()
    for args in (["--window", "x"], ["--window", "0"], ["--samples", "2e6"], ["--hibernate", "-1"], ["--preset", "s3"],
                 ["--line", "48"], ["--seed", "-1"], ["--bogus"], ["one-more-trace"]):
        result = sample(cachegram, trace, tmp_path / "p.db", *args, status=2)
        assert result.err.count(b"\n") == 1 and not (tmp_path / "p.db").exists()


def usf_access(address, time, pc=0):
    return struct.pack("<QQQHHB", pc, address, time, 0, 8, 0)


def usf_file(path, events, flags=0x82, line_bytes=64):
    header = struct.pack("<HHIQQII", 2, 0, flags, 0, 0, line_bytes, 0)
    path.write_bytes(b"USF1\0" + struct.pack("<I", len(header)) + header + events)
    return path


def rows(db, what):
    with contextlib.closing(sqlite3.connect(db)) as con:
        return con.execute(what).fetchall()


BURSTS = (
    b"\2" + struct.pack("<Q", 1000) +
    b"\0" + usf_access(0x1008, 1010) + usf_access(0x1010, 1011) + b"\6" +
    b"\2" + struct.pack("<Q", 5000) +
    b"\1" + usf_access(0x2000, 5003) + b"\6" +
    b"\0" + usf_access(0x3fff, 1020) + usf_access(0x3fc0, 6020) + b"\6" +  # of the first burst
    b"\0" + usf_access(0x4000, 5004) + usf_access(0x4000, 5009) + b"\7")   # 128 bytes


def test_samples_of_a_usf_file(cachegram, tmp_path):
    source, profile = usf_file(tmp_path / "s.usf", BURSTS), tmp_path / "p.db"
    result = run([cachegram, "sample", "-o", profile, source])
    assert result.status == 0, result.err
    assert rows(profile, "select start_ref, refs from reuse_window order by id") == [(0, 21), (4000, 4)]
    samples = rows(profile, "select window, ref, distance, line from reuse_sample order by ref")
    assert samples == [(1, 10, 0, 0x40), (1, 20, 4999, 0xff), (2, 4003, None, 0x80)]
    # Those of longer lines, by themselves.
    result = run([cachegram, "sample", "--line", "128", "-o", profile, source])
    assert result.status == 0, result.err
    assert rows(profile, "select distance, line from reuse_sample") == [(4, 0x80)]
    result = run([cachegram, "sample", "--line", "32", "-o", profile, source])
    assert result.status == 1 and b"no samples of lines of 32 bytes, but 4 of others" in result.err


def test_damaged_usf_samples(cachegram, tmp_path):
    for length, samples in ((len(BURSTS) - 1, 3), (100, 1), (40, None)):
        profile = tmp_path / f"{length}.db"
        result = run([cachegram, "sample", "-o", profile, usf_file(tmp_path / "s.usf", BURSTS[:length])])
        assert result.status == 1 and b"truncated" in result.err and result.err.count(b"cachegram: ") >= 1
        assert profile.exists() == (samples is not None)
        if samples:
            assert len(rows(profile, "select * from reuse_sample")) == samples
    backwards = b"\0" + usf_access(0x40, 9) + usf_access(0x40, 9) + b"\6"
    result = run([cachegram, "sample", "-o", tmp_path / "p.db", usf_file(tmp_path / "s.usf", backwards)])
    assert result.status == 1 and b"ends before it begins" in result.err
    result = run([cachegram, "stack", usf_file(tmp_path / "s.usf", BURSTS)])
    assert result.status == 1 and b"'cachegram sample' takes them" in result.err


def test_samples_to_usf_and_back(cachegram, tmp_path):
    trace = tmp_path / "t.csv"
    with open(trace, "w") as out:
        out.write("address,size,rw\n")
        for i in range(60000):
            out.write(f"{(i * i * 7919 % 3001) * 64:#x},8,load\n")
    one, usf, other = tmp_path / "1.db", tmp_path / "s.usf", tmp_path / "2.db"
    for argv in (["sample", "--window", "5000", "--hibernate", "2000", "--samples", "500", "-o", one, trace],
                 ["export", "--to", "usf", "-o", usf, one], ["sample", "-o", other, usf]):
        result = run([cachegram, *argv])
        assert result.status == 0, result.err
    what = "select window, distance, line from reuse_sample order by window, ref"
    assert rows(one, what) == rows(other, what) and len(rows(one, what)) > 1000
    # What is there already is not written over, be it the profile itself.
    result = run([cachegram, "export", "--to", "usf", "-o", one, one])
    assert result.status == 1 and b"File exists" in result.err
    assert rows(one, what) == rows(other, what)
    result = run([cachegram, "export", "--to", "csv", one])
    assert result.status == 2 and b"--table NAME" in result.err
