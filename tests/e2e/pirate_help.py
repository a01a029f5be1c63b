# SPDX-License-Identifier: Apache-2.0
"""What the tests of `cachegram pirate` share."""
import contextlib
import csv
import io
import os
import pathlib
import subprocess
import time

import pytest

from conftest import run

NOT_NOW = "cannot be distinguished by time here"
CANNOT = ("no Pirate can run here", NOT_NOW)


WAITS = [5] * 12  # seconds: all tests together wait a minute for a quieter moment


@pytest.fixture(scope="module")
def able(cachegram, tmp_path_factory):
    """Skips where no Pirate can run at all; that it says so in one sentence is tested below, on one core."""
    result = run([cachegram, "pirate", "--limit", "100", "--sizes", "2M", "-o",
                  tmp_path_factory.mktemp("able") / "x.db", "--", "true"])
    if result.status == 125 and any(why in result.err.decode() for why in CANNOT):
        pytest.skip(result.err.decode().strip())
    assert result.status == 0, result.err


@pytest.fixture
def pirate(cachegram, tmp_path, able):
    def go(*args, wrap=(), **how):
        argv = [cachegram, "pirate", "--limit", "100", "-o", tmp_path / "p.db"]
        while True:
            result = run([*wrap, *argv, *args], cwd=tmp_path, **how)
            if b"breakpoints, which never fire here" in result.err:
                pytest.skip(result.err.decode().strip())
            if not is_not_now(result.status, result.err):
                return result
            if not WAITS:
                pytest.skip(result.err.decode().strip())
            time.sleep(WAITS.pop())
    return go


def is_not_now(status, err):
    """Neighbours slow the cache down so much that the Pirate refuses to begin: it may be another moment's `able`."""
    return status in (1, 125) and NOT_NOW.encode() in err  # 1: of a program that runs already


def pirate_argv(pirate):
    """The command line after the fixture; a profile's path at its end."""
    fixture = dict(zip(pirate.__code__.co_freevars, (c.cell_contents for c in pirate.__closure__)))
    return [fixture["cachegram"], "pirate", "--limit", "100", "-o", str(fixture["tmp_path"] / "p.db")]


STARTED = []  # those that run


@contextlib.contextmanager
def started(pirate, *args, wrap=(), **how):
    """A `cachegram pirate` beside the test, which is skipped if the Pirate refuses to begin now; p.said: its stderr's file."""
    argv = pirate_argv(pirate)
    said = pathlib.Path(argv[-1]).with_name("said")
    with said.open("wb") as err, subprocess.Popen([str(a) for a in (*wrap, *argv, *args)], stderr=err, **how) as p:
        p.said = said
        STARTED.append(p)
        try:
            yield p
        except Exception:
            skip_if_refused()
            p.kill()
            raise
        finally:
            STARTED.remove(p)


def skip_if_refused():
    """No test waits for what a Pirate that did not begin will not do."""
    for p in STARTED:
        if is_not_now(p.poll(), p.said.read_bytes()):
            pytest.skip(p.said.read_text().strip())


def assert_running(p):
    ended = p.poll() is not None
    skip_if_refused()
    assert not ended, p.said.read_text()


def rows(text):
    return list(csv.DictReader(io.StringIO(text.decode() if isinstance(text, bytes) else text)))


def processes_like(word):
    """Processes with the word in their command line, our own tests' apart."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if word in line and int(path.parent.name) != os.getpid():
            found.append((int(path.parent.name), line))
    return found


def wait_until(condition, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        skip_if_refused()
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


def fields_of(pid):
    """What /proc/PID/stat tells: name, state, parent, ..."""
    name, rest = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)
    return [name.split("(", 1)[1], *rest.split()]


def target_of(p):
    """The program that a `cachegram pirate` started: micro."""
    found = []

    def look():
        assert_running(p)
        for path in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                name, _, parent = fields_of(path.name)[:3]
            except OSError:
                continue
            if (name, parent) == ("micro", str(p.pid)):
                found.append(int(path.name))
        return found
    wait_until(look)
    return found[0]


def state_of(pid, gone=None):
    """R, S, T, ...; what is said to be reported of a process that is gone, which else is an error."""
    try:
        return fields_of(pid)[1]
    except OSError:
        if gone is None:
            raise
        return gone


def children_of(pid):
    """Those that its first thread started."""
    return [int(c) for c in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def cpu_seconds(pid):
    """User and system time of a process so far."""
    return sum(int(t) for t in fields_of(pid)[12:14]) / os.sysconf("SC_CLK_TCK")
