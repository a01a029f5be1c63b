# SPDX-License-Identifier: Apache-2.0
"""Traces: written by record, read by stack, import and export; and what happens when something breaks."""
import csv
import io
import json
import os
import signal
import sqlite3
import subprocess
import threading
import time

import pytest

from conftest import FULL, common_folder, need, only_once, run, target_environment, totals

# Some 150,000 references a round, with a working set of about a megabyte.
BUSY = ["perl", "-e", "my @a = map { $_ * 3 } 0 .. 10000; for my $r (1 .. $ARGV[0]) { $a[($_ * 7919) % 10000] += $r "
                      "for 0 .. 1000 } print scalar(@a), qq{\\n}"]


def busy(rounds):
    need("perl")
    return [*BUSY, str(rounds)]


def curve(cachegram, command, *args):
    """The rows of a csv curve, as dictionaries."""
    result = run([cachegram, command, "--format", "csv", *args])
    assert result.status == 0, result.err
    assert result.err == b""
    return list(csv.DictReader(io.StringIO(result.out.decode())))


def points(rows):
    return [(row["size_bytes"], row["miss_ratio"]) for row in rows]


@pytest.fixture(scope="module")
def traced(cachegram, tmp_path_factory):
    """A full recording of a busy program: its trace and its profile."""
    folder = common_folder(tmp_path_factory) / "traced"
    with only_once(folder) as first:
        if first:
            folder.mkdir(exist_ok=True)
            result = run([cachegram, "record", *FULL, "-o", folder / "p.db", "--trace", folder / "t.trace", "--", *busy(2)])
            assert result.status == 0 and result.out == b"10001\n"
            assert result.err.count(b"\n") == 1, result.err
    return folder / "t.trace", folder / "p.db"


def test_stack_of_a_trace_is_the_curve_of_the_profile(cachegram, traced):
    trace, profile = traced
    sizes = "1K..64M"
    assert points(curve(cachegram, "stack", "--sizes", sizes, trace)) == points(
        curve(cachegram, "mrc", "--sizes", sizes, profile))


def awk(program, path):
    """Lines that an awk program prints of a csv file without its header: much quicker than reading it here."""
    return subprocess.run(["awk", "-F,", f"NR == 1 {{ next }} {program}", path], check=True, capture_output=True,
                          text=True).stdout.split("\n")[:-1]


def number_of_lines(path, expression):
    """That match a regular expression: much quicker than awk."""
    return int(subprocess.run(["grep", "-c", expression, path], stdout=subprocess.PIPE, env={**os.environ, "LC_ALL": "C"}, check=False).stdout)


def test_trace_holds_every_reference(cachegram, traced, tmp_path):
    trace, profile = traced
    out = tmp_path / "t.csv"
    assert run([cachegram, "export", "--to", "csv", "-o", out, trace]).status == 0
    total = totals(profile)
    with open(out, encoding="ascii") as lines:
        header, first = next(lines), next(lines).rstrip()
    assert header == "address,size,rw,pc,pid,tid\n"
    # One thread, and all have a program counter.
    assert number_of_lines(out, ",load,") == total["loads"] and number_of_lines(out, ",store,") == total["stores"]
    assert number_of_lines(out, f",{','.join(first.split(',')[4:])}$") == total["references"]
    assert number_of_lines(out, ",0x0,") == 0
    assert os.path.getsize(trace) < 2 * total["references"]


def test_bursts_are_marked(cachegram, record, tmp_path):
    trace = tmp_path / "b.trace"
    result, profile = record(["--mode", "burst", "--burst-refs", "5000", "--gap-us", "2000", "--trace", trace],
                             busy(5000))
    assert result.status == 0
    out = tmp_path / "b.csv"
    assert run([cachegram, "export", "--to", "csv", "-o", out, trace]).status == 0
    lengths = awk("$7 { if (n) print n; n = 0 } { n++ } END { print n }", out)
    with sqlite3.connect(profile) as con:
        bursts = con.execute("select refs, words from burst order by id").fetchall()
    assert len(lengths) == len(bursts) > 2
    for length, (refs, words) in zip(lengths, bursts):
        # Of one that a string instruction makes far longer than its words, the profile has the beginning.
        assert int(length) == refs or int(length) > refs > 8 * words
    stack = run([cachegram, "stack", trace])
    assert stack.status == 0 and b"holds bursts" in stack.err


def test_threads_and_processes(cachegram, record, built, tmp_path):
    trace = tmp_path / "t.trace"
    result, _ = record([*FULL, "--trace", trace], [built / "threads"], env=target_environment(10))
    assert result.status == 0
    rows = curve(cachegram, "stack", "--sizes", "64K", "--threads", "separate", "--line", "32,64", trace)
    threads = {row["tid"] for row in rows}
    assert len(threads) > 2 and len(rows) == 2 * len(threads)
    assert {row["line_bytes"] for row in rows} == {"32", "64"}
    together = curve(cachegram, "stack", "--sizes", "64K", "--line", "32,64", trace)
    assert [row["tid"] for row in together] == ["", ""]
    result, profile = record([*FULL, "--trace", trace], ["sh", "-c", "ls / > /dev/null; ls /usr > /dev/null"])
    assert result.status == 0
    rows = curve(cachegram, "stack", "--sizes", "64K", "--threads", "separate", trace)
    with sqlite3.connect(profile) as con:
        pids = {str(pid) for (pid,) in con.execute("select pid from process")}
    assert {row["pid"] for row in rows} == pids and len(pids) == 3


def test_sample_of_lines_agrees_with_exact_curve(cachegram, traced):
    trace, _ = traced
    exact = curve(cachegram, "stack", "--sizes", "64K..4M", trace)
    sample = curve(cachegram, "stack", "--sizes", "64K..4M", "--shards", "0.2", trace)
    reported = [(float(e["miss_ratio"]), *(float(s[key]) for key in ("miss_ratio", "ci_low", "ci_high")))
            for e, s in zip(exact, sample) if s["miss_ratio"]]
    assert len(reported) > 8
    for truth, estimate, low, high in reported:
        # One sample, so that it may be outside of its 95% band, at all sizes at once; but not far. Student's t of
        # eight groups has long tails: one sample in 500 or so is two half widths off, one in 30,000 is four.
        assert low < estimate < high and abs(truth - estimate) < 2 * (high - low)


def test_json_and_text(cachegram, traced):
    trace, _ = traced
    result = run([cachegram, "stack", "--format", "json", "--jobs", "3", "--line", "64,128", "--sizes", "32K,1M", trace])
    answer = json.loads(result.out)
    assert [s["line_bytes"] for s in answer["stacks"]] == [64, 128]
    for stack in answer["stacks"]:
        assert stack["touches"] >= answer["references"] and stack["cold"] == stack["lines"]
        assert len(stack["points"]) == 2
    # 40 bytes a line, and what does not grow with them.
    assert answer["memory_bytes"] < 40 * sum(s["lines"] for s in answer["stacks"]) + 16e6
    text = run([cachegram, "stack", "--sizes", "32K,1M", trace]).out.decode()
    assert "64-byte lines" in text and " 32K " in text


def test_pipes(cachegram, traced):
    trace, _ = traced
    with open(trace, "rb") as file:
        data = file.read()
    direct = run([cachegram, "stack", "--format", "csv", trace])
    piped = run([cachegram, "stack", "--format", "csv", "-"], stdin=data)
    assert (piped.status, piped.out) == (0, direct.out)
    lackey = run([cachegram, "export", "--to", "lackey", trace])
    back = run([cachegram, "import", "-o", "-", "-"], stdin=lackey.out)
    assert back.status == 0
    again = run([cachegram, "stack", "--format", "csv", "-"], stdin=back.out)
    assert again.out == direct.out


def test_valgrind_lackey(cachegram, tmp_path):
    valgrind = need("valgrind")
    out = tmp_path / "lackey"
    run([valgrind, "--tool=lackey", "--trace-mem=yes", f"--log-file={out}", "true"])
    result = run([cachegram, "import", "-o", tmp_path / "l.trace", out])
    assert result.status == 0 and b"warning" not in result.err
    with open(out) as file:
        accesses = sum({" L": 1, " S": 1, " M": 2}.get(line[:2], 0) for line in file)
    assert int(result.err.split()[1]) == accesses > 10000


def test_nothing_before_the_damage(cachegram, traced, tmp_path):
    trace, _ = traced
    cut = tmp_path / "cut.trace"
    cut.write_bytes(trace.read_bytes()[:1000])
    result = run([cachegram, "stack", cut])
    assert result.status == 1 and result.out == b"" and result.err.count(b"\n") == 1 and b"truncated" in result.err
    result = run([cachegram, "import", "--partial", "-o", tmp_path / "out", cut])
    assert result.status == 1 and not (tmp_path / "out").exists()


def test_damage(cachegram, traced, tmp_path):
    trace, _ = traced
    cut = tmp_path / "cut.trace"
    cut.write_bytes(trace.read_bytes()[:int(os.path.getsize(trace) * 0.97)])
    out = tmp_path / "out.trace"
    refused = run([cachegram, "import", "-o", out, cut])
    assert refused.status == 1 and refused.err.count(b"\n") == 1 and b"cut" in refused.err
    assert not out.exists()
    kept = run([cachegram, "import", "--partial", "-o", out, cut])
    assert kept.status == 1
    whole = run([cachegram, "stack", "--format", "csv", out])
    reported = run([cachegram, "stack", "--format", "csv", cut])
    assert whole.status == 0 and reported.status == 1
    assert reported.out == whole.out and reported.err.count(b"\n") == 1


@pytest.mark.parametrize("arguments, status, says", [
    (["stack"], 2, b"no trace given"),
    (["stack", "a", "b"], 2, b"one trace at a time"),
    (["stack", "--line", "48", "t"], 2, b"powers of two"),
    (["stack", "--shards", "0", "t"], 2, b"above 0"),
    (["stack", "--shards", "nan", "t"], 2, b"above 0"),
    (["stack", "--threads", "both", "t"], 2, b"together or separate"),
    (["stack", "--jobs", "0", "t"], 2, b"from 1 to 1024"),
    (["stack", "--sizes", "x", "t"], 2, b"x"),
    (["stack", "/nonexistent"], 1, b"No such file"),
    (["stack", "/dev/null"], 1, b"empty"),
    (["stack", "--from", "nonsense", "/dev/null"], 1, b"nonsense"),
    (["stack", "/bin/sh"], 1, b"not a trace"),
    (["import"], 2, b"no trace given"),
    (["import", "/bin/sh"], 1, b"not a trace"),
    (["import", "--from", "csv", "/bin/sh"], 1, b"header line"),
    (["import", "--nonsense", "t"], 2, b"--nonsense"),
    (["export", "t"], 2, b"--to"),
    (["export", "--to", "din"], 2, b"no trace given"),
    (["export", "--to", "csv"], 2, b"a folder is needed"),
    (["export", "--to", "csv", "--line", "7", "t"], 2, b"power of two"),
    (["record", "--trace", "-", "true"], 2, b"--trace"),
    (["record", "-o", "x", "--trace", "x", "echo", "ran"], 2, b"--trace x: that is the profile's file"),
    (["record", "--trace", "./cachegram.db", "echo", "ran"], 2, b"that is the profile's file"),
    (["record", "--trace", "/nonexistent/t", "true"], 125, b"/nonexistent/t"),
    (["record", "--trace", "/dev/full", "true"], 125, b"No space left"),
])
def test_wrong_use(cachegram, tmp_path, arguments, status, says):
    result = run([cachegram, *arguments], cwd=tmp_path)
    assert result.status == status
    assert says in result.err and result.err.count(b"\n") == 1, result.err
    assert result.out == b""
    assert os.listdir(tmp_path) == []


def test_profile_is_refused_as_a_trace(cachegram, traced):
    result = run([cachegram, "export", "--to", "din", traced[1]])
    assert result.status == 1 and b"is a profile, not a trace" in result.err


@pytest.mark.parametrize("command", (["mrc"], ["report"], ["hotspots"], ["annotate"], ["corun"]))
def test_trace_is_refused_as_a_profile(cachegram, traced, command):
    result = run([cachegram, *command, traced[0], *(["main"] if command == ["annotate"] else [])])
    assert result.status == 1 and result.err.count(b"\n") == 1
    assert b"is a trace, not a profile: 'cachegram stack' prints its miss ratios" in result.err


def test_same_file_in_and_out(cachegram, traced):
    trace, _ = traced
    before = trace.read_bytes()
    result = run([cachegram, "export", "--to", "csv", "-o", trace, trace])
    assert result.status == 1 and b"same file" in result.err
    assert trace.read_bytes() == before


def test_command_that_is_not_found_leaves_all_as_it_was(cachegram, tmp_path):
    (tmp_path / "t").write_bytes(b"older")
    result = run([cachegram, "record", "--trace", "t", "./nothing"], cwd=tmp_path)
    assert result.status == 127
    assert os.listdir(tmp_path) == ["t"] and (tmp_path / "t").read_bytes() == b"older"
    assert run([cachegram, "record", "--trace", "t", "true"], cwd=tmp_path).status == 0
    assert (tmp_path / "t.old").read_bytes() == b"older"


def test_killed_recorder_leaves_a_readable_trace(cachegram, tmp_path):
    trace = tmp_path / "t.trace"
    with subprocess.Popen([cachegram, "record", *FULL, "-o", tmp_path / "p.db", "--trace", trace, "--", *busy(100000)],
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True) as p:
        until = time.time() + 60
        while time.time() < until and not (trace.exists() and os.path.getsize(trace) > 100000):
            time.sleep(0.1)
        p.send_signal(signal.SIGKILL)
        p.wait()
        os.killpg(p.pid, signal.SIGKILL)
    result = run([cachegram, "stack", "--format", "csv", "--sizes", "1M", trace])
    assert result.status == 1 and b"did not complete" in result.err
    assert len(result.out.splitlines()) == 2
    answer = json.loads(run([cachegram, "stack", "--format", "json", "--sizes", "1M", trace]).out)
    assert answer["references"] > 100000


def test_full_disk(cachegram, tmp_path):
    """On a disk of 200 KB: the trace ends there, the program does not suffer, nor does the profile."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = ["unshare", "-rm", "sh", "-c", f"mount -t tmpfs -o size=200k none {disk} && exec \"$@\"", "-"]
    if run([*mounted, "true"]).status != 0:
        pytest.skip("no right to mount a small disk; the unit tests have a limit on file sizes instead")
    stack = f"\"$1\" stack --format json --sizes 1M {disk}/t.trace > {tmp_path}/answer; echo $? > {tmp_path}/status"
    script = f"\"$@\"; status=$?; {stack}; exit $status"
    result = run([*mounted, "sh", "-c", script, "-", cachegram, "record", *FULL, "-o", tmp_path / "p.db", "--trace",
                  disk / "t.trace", "--", *busy(60)])
    assert result.status == 0 and result.out == b"10001\n"
    assert b"the trace is incomplete: cannot write" in result.err and b"No space left on device" in result.err
    assert (tmp_path / "status").read_text() == "1\n"
    answer = json.loads((tmp_path / "answer").read_text())
    assert 0 < answer["references"] < totals(tmp_path / "p.db")["references"]
    assert f", traced {answer['references']}: ".encode() in result.err
    assert run([cachegram, "mrc", tmp_path / "p.db"]).status == 0


def test_closed_pipe_does_not_end_the_recording(cachegram, tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)

    def read_a_little():
        with open(fifo, "rb") as file:
            file.read(1000)

    reader = threading.Thread(target=read_a_little)
    reader.start()
    result = run([cachegram, "record", *FULL, "-o", tmp_path / "p.db", "--trace", fifo, "--", *busy(60)])
    reader.join()
    assert result.status == 0 and result.out == b"10001\n"
    assert b"Broken pipe" in result.err


def test_interrupt(cachegram, tmp_path):
    """An endless trace: what was read until Ctrl-C is reported."""
    with subprocess.Popen(["yes", "0 1000"], stdout=subprocess.PIPE) as endless, \
            subprocess.Popen([cachegram, "stack", "--from", "din", "--format", "csv", "--sizes", "1M", "-"],
                             stdin=endless.stdout, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
        time.sleep(1)
        p.send_signal(signal.SIGINT)
        out, err = p.communicate(timeout=30)
        endless.kill()
    assert p.returncode == 130
    assert b"interrupted" in err and len(out.splitlines()) == 2
    with subprocess.Popen(["yes", "0 1000"], stdout=subprocess.PIPE) as endless, \
            subprocess.Popen([cachegram, "import", "--from", "din", "-o", tmp_path / "t.trace", "-"],
                             stdin=endless.stdout, stderr=subprocess.PIPE) as p:
        time.sleep(1)
        p.send_signal(signal.SIGINT)
        _, err = p.communicate(timeout=30)
        endless.kill()
    assert p.returncode == 130 and b"interrupted" in err
    assert not (tmp_path / "t.trace").exists()
