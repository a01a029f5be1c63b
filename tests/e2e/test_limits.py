# SPDX-License-Identifier: Apache-2.0
"""A recorder that meets limits of its own: files that may not grow, no one to look at the references."""
import json
import os
import re
import resource
import subprocess
import time

import pytest

from conftest import find_cachegram, open_to_others

DEBUG_INFO = False

SPIN = ["/usr/bin/python3", "-c", "print(sum(range(6000000)))"]


def record(args, soft_bytes=None, hard_bytes=None):
    def limit():
        if hard_bytes is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (hard_bytes, hard_bytes))
        elif soft_bytes is not None:
            _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft_bytes, hard))

    return subprocess.run([find_cachegram(), "record", *args], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=60, check=False, preexec_fn=limit)


def test_no_file_may_grow(tmp_path):
    db = tmp_path / "a.db"
    result = record(["-o", db, "--", "true"], hard_bytes=100 << 10)
    assert result.returncode == 125 and not db.exists()
    assert result.stderr.count("\n") == 1 and "limit on the size of files (ulimit -f, 100 KB)" in result.stderr


def test_the_programs_own_limit_stays(tmp_path):
    result = record(["-o", tmp_path / "a.db", "--", "sh", "-c", "ulimit -f; ulimit -S -f unlimited"],
                    soft_bytes=1 << 20)
    assert (result.returncode, result.stdout) == (0, "2048\n")  # of 512 bytes


def test_profile_that_could_not_grow(tmp_path):
    """What was seen till then is there, and nothing claims that the program was too short."""
    db = tmp_path / "a.db"
    result = record(["-o", db, "--gap-us", "2000", "--", *SPIN], soft_bytes=160 << 10)
    assert result.returncode == 0 and result.stdout == f"{sum(range(6000000))}\n"
    assert "recording ended early" in result.stderr and "the limit on the size of files (ulimit -f, 160 KB)" in result.stderr
    early = record(["-o", tmp_path / "b.db", "--", "true"], soft_bytes=20 << 10)
    assert early.returncode == 125 and "the limit on the size of files (ulimit -f, 20 KB)" in early.stderr
    reported = subprocess.run([find_cachegram(), "report", db], capture_output=True, text=True, timeout=60, check=False)
    assert "recording ended early" in reported.stdout and "too short" not in reported.stdout + reported.stderr


def test_beginning_is_not_called_exact(tmp_path):
    """All references are recorded at first; then the profile cannot grow."""
    db = tmp_path / "a.db"
    result = record(["-o", db, "--mode", "full", "--", "/usr/bin/python3", "-c", "print(sum(range(600000)))"], soft_bytes=240 << 10)
    assert result.returncode == 0 and "recording ended early" in result.stderr

    def run(*args):
        return subprocess.run([find_cachegram(), *args, db], capture_output=True, text=True, timeout=60, check=True).stdout

    reported = run("report")
    assert "recording ended early" in reported and "exact" not in reported and "was killed" not in reported
    assert re.search(r"from all \d+ references until the recording ended early", run("mrc"))
    assert json.loads(run("mrc", "--format", "json"))["complete"] is False


def test_traced_without_a_reducer(tmp_path):
    """The line at the end counts what the trace got."""
    trace = tmp_path / "a.trace"
    result = record(["-o", tmp_path / "a.db", "--reduce", "none", "--gap-us", "2000", "--trace", trace, "--", *SPIN])
    reported = re.search(r"cachegram: (\d+) references in (\d+) bursts?,.* traced (\d+):", result.stderr)
    assert reported and int(reported[1]) > 0 and int(reported[2]) > 0 and reported[1] == reported[3]


@pytest.mark.parametrize("limit", ["v", "d"])
def test_memory_is_the_programs(built, tmp_path, limit):
    """Under a limit on addresses or data the agent, which takes 170 MB of them, keeps away, and says so."""
    argv = ["sh", "-c", f"ulimit -{limit} 200000; exec {built / 'grow'}"]
    native = int(subprocess.run(argv, capture_output=True, check=True).stdout)
    result = record(["-o", tmp_path / "a.db", "--", *argv])
    assert native < 200 and abs(int(result.stdout) - native) < 12
    assert "(grow): its limit on memory" in result.stderr


def test_memory_that_must_be_left(built, tmp_path):
    """The message names the limit from which on a program is profiled."""
    def limited(mb):
        micro = f"exec {built / 'micro'} random 65536 1000000"
        return record(["-o", tmp_path / "a.db", "--", "sh", "-c", f"ulimit -v {mb * 1024}; {micro}"]).stderr

    named = int(re.search(r"leaves less than (\d+) MB", limited(500))[1])
    assert "its limit on memory" in limited(named - 10) and "its limit on memory" not in limited(named + 250)


def test_recorder_is_killed_first(tmp_path):
    """If memory runs out: by its score, the recorder; the program and what it starts keep theirs."""
    with open("/proc/self/oom_score_adj") as score:
        before = score.read()
    script = "for i in $(seq 100); do [ $(cat /proc/$PPID/oom_score_adj) = 1000 ] && break; sleep 0.1; done; " \
             "cat /proc/$PPID/oom_score_adj /proc/$$/oom_score_adj /proc/self/oom_score_adj"
    result = subprocess.run([find_cachegram(), "record", "-o", tmp_path / "p.db", "--", "sh", "-c", script],
                            stdout=subprocess.PIPE, text=True, check=True)
    assert result.stdout == "1000\n" + 2 * before


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&-", "<&- >&- 2>&-"])
def test_closed_descriptors(tmp_path, closed):
    """The command finds them closed as well, and none of the recorder's files takes their place."""
    state = tmp_path / "state"
    argv = ["sh", "-c", 'echo /proc/self/fd/* > "$1"', "sh", state]
    script = ["sh", "-c", f'exec "$@" {closed}', "sh"]
    assert subprocess.run([*script, *argv], check=False).returncode == 0
    native = state.read_text()
    db, trace = tmp_path / "a.db", tmp_path / "a.trace"
    assert subprocess.run([*script, find_cachegram(), "record", "-o", db, "--mode", "full", "--trace", trace, "--", *argv],
                          check=False).returncode == 0
    assert state.read_text() == native
    for file in [["report", db], ["sim", "--cache", "L1:32K:8", trace]]:
        assert subprocess.run([find_cachegram(), *file], capture_output=True, timeout=60, check=False).returncode == 0


# --- what fails before the command runs leaves all files as they were ---

OLD_FILES = {"p.db": b"", "p.db.old": b"older", "t": b"trace", "t.old": b"older trace"}


def fill_folder(folder):
    """A good profile and an earlier one, a trace and an earlier one."""
    assert record(["-o", folder / "p.db", "--", "true"]).returncode == 0
    for name, text in OLD_FILES.items():
        if text:
            (folder / name).write_bytes(text)
    return contents(folder)


def contents(folder):
    return {f.name: f.read_bytes() if f.is_file() else None for f in folder.iterdir()}


def test_too_few_descriptors(tmp_path):
    """Whatever it was that could not be opened."""
    before = fill_folder(tmp_path)
    failed = 0
    for most in range(4, 12):
        result = subprocess.run(["prlimit", f"--nofile={most}", find_cachegram(), "record", "-o", "p.db", "--trace", "t",
                                 "--", "true"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
        if result.returncode == 0:
            assert "p.db" in result.stderr
            break
        failed += 1
        assert result.returncode == 125, (most, result.stderr)
        assert result.stderr.count("\n") == 1, (most, result.stderr)
        assert contents(tmp_path) == before, most
    assert failed > 2


@pytest.mark.parametrize("fill,least", [("dd if=/dev/zero of=fill bs=4k 2>/dev/null", "size=4m"),
                                        ("touch fill", "nr_inodes=4"), ("touch fill", "nr_inodes=5")])
def test_full_disk_at_the_start(tmp_path, fill, least):
    """A full disk; no inode for the profile, or for its journal."""
    disk = tmp_path / "disk"
    disk.mkdir()
    script = f"""mount -t tmpfs -o size=4m none {disk} && cd {disk} || exit 99
        "$1" record -o p.db true 2>/dev/null && echo older > p.db.old && cp p.db ../good
        {fill}; mount -o remount,{least} none {disk} && "$1" record -o p.db true; echo $?
        ls -A; cat p.db.old; cmp p.db ../good"""
    result = subprocess.run(["unshare", "-rm", "sh", "-c", script, "-", find_cachegram()], capture_output=True, text=True,
                            timeout=60, check=False)
    if result.returncode == 99:
        pytest.skip("no right to mount a small disk")
    assert result.stdout.split() == ["125", "fill", "p.db", "p.db.old", "older"], (result.stdout, result.stderr)
    assert result.stderr.count("\n") == 1 and "p.db" in result.stderr


@pytest.mark.parametrize("made", ["p.db-journal", "p.db.old", None])
def test_profile_name_in_use_or_too_long(tmp_path, made):
    name = "p.db" if made else "n" * 250
    (tmp_path / name).write_bytes(b"")
    if made:
        (tmp_path / made).mkdir()
    before = contents(tmp_path)
    result = record(["-o", tmp_path / name, "--", "echo", "ran"])
    assert (result.returncode, result.stdout) == (125, "") and result.stderr.count("\n") == 1
    assert contents(tmp_path) == before


def test_two_at_once(tmp_path):
    """One of them records; the others do not run, and touch nothing."""
    (tmp_path / "p.db").write_bytes(b"")
    (tmp_path / "p.db.old").write_bytes(b"older")
    os.mkfifo(tmp_path / "gate")
    many = [subprocess.Popen([find_cachegram(), "record", "-o", "p.db", "--", "cat", "gate"], cwd=tmp_path,
                             stderr=subprocess.PIPE, text=True) for _ in range(4)]
    end = time.monotonic() + 60
    while sum(p.poll() is None for p in many) > 1 and time.monotonic() < end:
        time.sleep(0.01)
    with open(tmp_path / "gate", "wb"):  # once cat has it open, too
        pass
    reported = [(p.communicate(timeout=60)[1], p.returncode) for p in many]
    (tmp_path / "gate").unlink()
    assert sorted(status for _, status in reported) == [0, 125, 125, 125], reported
    assert all("another cachegram is writing" in text for text, status in reported if status == 125)
    assert sorted(contents(tmp_path)) == ["p.db", "p.db.old"] and (tmp_path / "p.db.old").read_bytes() == b""


def test_folder_without_permission(tmp_path):
    """As another user, if we are root: what is wrong is the permission, not that there is no such file."""
    folder = tmp_path / "ro"
    folder.mkdir()
    folder.chmod(0o555)
    open_to_others(tmp_path)
    other = ["setpriv", "--reuid=65534", "--clear-groups"] if os.getuid() == 0 else []
    if subprocess.run([*other, find_cachegram(), "--version"], capture_output=True, check=False).returncode != 0:
        pytest.skip("another user cannot run cachegram from here")
    result = subprocess.run([*other, find_cachegram(), "record", "-o", "ro/x.db", "--", "true"], cwd=tmp_path,
                            capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 125 and result.stderr.count("\n") == 1
    assert "ro/x.db" in result.stderr and "Permission denied" in result.stderr
