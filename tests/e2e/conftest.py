# SPDX-License-Identifier: Apache-2.0
"""What the end-to-end tests share: the program under test, compiled targets, runs, profile totals.

Environment: CACHEGRAM (the command; default build/src/cli/cachegram), CACHEGRAM_ALLOW_SKIP (skip a
program that is not installed instead of failing), CACHEGRAM_TEST_TIMEOUT (seconds a run, default 120),
CACHEGRAM_TEST_LIMIT (seconds a test, default five runs).
"""
import contextlib
import fcntl
import functools
import hashlib
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import tempfile

import pytest

from record_command import record_command

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGETS = ROOT / "tests" / "targets"
TIMEOUT = float(os.environ.get("CACHEGRAM_TEST_TIMEOUT", "120"))
LIMIT = float(os.environ.get("CACHEGRAM_TEST_LIMIT", 5 * TIMEOUT))
BURST = ["--mode", "burst", "--burst-refs", "30000", "--gap-us", "2000"]
FULL = ["--mode", "full"]
MODES = {"burst": BURST, "full": FULL}
# A shell ignores it in what it starts in the background, and what is ignored here is in all that is started from here.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config):
    config.addinivalue_line("markers", "alone: run after the others, by itself: it confines programs to processors and measures times")
    config.addinivalue_line("markers", "in_turns: each program in every other mode, and each mode with every other program")


# What takes longest, longest first (CPU time): no worker is to begin with one of them when there is little else left.
LONGEST = ["targets", "harmless", "hunted", "timeline", "watch", "clock", "objects", "isa", "surroundings", "page", "allowance",
           "unprofiled", "layout", "fields", "hotspots", "verify"]


def without_every_other(items):
    """Of the tests marked in_turns, half of the combinations of parameters: as the squares of one colour of a chessboard."""
    values = {}  # by test and parameter, in the order of their first appearance
    for item in items:
        if item.get_closest_marker("in_turns") is None:
            yield item
            continue
        place = 0
        for name, value in item.callspec.params.items():
            seen = values.setdefault((item.path, item.originalname, name), [])
            if value not in seen:
                seen.append(value)
            place += seen.index(value)
        if place % 2 == 0:
            yield item


def pytest_collection_modifyitems(config, items):
    """`make test-long` leaves out none; neither does who names a case."""
    if not os.environ.get("CACHEGRAM_TEST_LONG") and not any("::" in argument for argument in config.args):
        kept = list(without_every_other(items))
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = kept
    order = {f"test_{name}.py": i for i, name in enumerate(LONGEST)}
    items.sort(key=lambda item: order.get(item.path.name, len(order)))


def descendants(pid):
    """All processes below a process; those whose parents are gone are not found."""
    found = []
    for listed in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = [int(c) for c in listed.read_text().split()]
        except OSError:
            continue
        for child in children:
            found += [child, *descendants(child)]
    return found


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    """No test waits for ever: at its limit, what it started is killed (it may be stopped), and it fails."""
    failed = []

    def end(*_):
        below = descendants(os.getpid())
        for pid in below:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        if not failed:  # afterwards the waits of its cleaning up are to end, no more
            failed.append(item.nodeid)
            pytest.fail(f"no end after {LIMIT:g} s; {len(below)} processes were killed")
    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, LIMIT, 5)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def find_cachegram():
    named = os.environ.get("CACHEGRAM")
    path = pathlib.Path(named) if named else ROOT / "build" / "src" / "cli" / "cachegram"
    return str(path.resolve()) if path.exists() else None


class Result:
    """Exit status (128 + N after signal N, as a shell tells it), both outputs, the recorder's last line."""

    def __init__(self, status, out, err):
        self.status = status if status >= 0 else 128 - status
        self.out = out
        self.err = err
        self.summary = self.missing = b""

    def split_summary(self):
        """Takes the recorder's line off the end of stderr, and its warnings after it: all are then in `summary`.

        A program that forbids itself system calls, say, cannot be recorded from then on; and on a busy machine the
        recorder may be too late for some of what it reports.
        """
        lines = self.err.splitlines(True)
        n = len(lines)
        while n > 0 and lines[n - 1].startswith(b"cachegram: warning: "):
            n -= 1
        if n > 0 and lines[n - 1].startswith(b"cachegram: "):
            n -= 1
        self.summary = b"".join(lines[n:]).rstrip(b"\n")
        self.missing = b"".join(line for line in lines[n:] if b"references are missing" in line)
        self.err = b"".join(lines[:n])
        return self


def run(argv, cwd=None, env=None, stdin=None, timeout=TIMEOUT):
    """Runs argv in a session of its own, so that a time-out can end all of its descendants.

    Output goes to files, not pipes: a stray descendant that keeps a pipe open must not hang the test.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        with subprocess.Popen([str(a) for a in argv], cwd=cwd, env=env, stdout=out, stderr=err,
                              stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
                              start_new_session=True) as p:
            try:
                p.communicate(stdin, timeout=timeout)
            except subprocess.TimeoutExpired:
                try:
                    os.killpg(p.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
                p.wait()
                out.seek(0), err.seek(0)
                pytest.fail(f"no end after {timeout:g} s: {argv}\nstdout: {out.read()[-400:]!r}\n"
                            f"stderr: {err.read()[-400:]!r}")
        out.seek(0), err.seek(0)
        return Result(p.returncode, out.read(), err.read())


def work_divisor(options):
    """What divides the work of the targets between what is tested (tests/targets/rounds.h). In full mode each reference costs
    some ten times as much and more, and all are recorded from the start: no burst has to meet anything."""
    return 10 if "full" in options else 1


def target_environment(divisor):
    return {**os.environ, "TARGET_WORK_DIVISOR": str(divisor)} if divisor != 1 else None


@functools.lru_cache(maxsize=None)
def run_natively(*argv, divisor=1):
    """Once for all modes in which the program is then recorded."""
    return run(argv, env=target_environment(divisor))


def totals(db):
    """Loads, stores, references and number of bursts of a profile (docs/format.md), summed over its bursts."""
    with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as con:
        row = con.execute("select coalesce(sum(loads),0), coalesce(sum(stores),0), coalesce(sum(refs),0), count(*)"
                          " from burst").fetchone()
        reported = dict(con.execute("select key, value from run"))
    sums = dict(zip(("loads", "stores", "references", "bursts"), row))
    for key in ("loads", "stores", "references"):
        if reported.get("mode") in ("full", "lines") or "full_references" in reported:  # one burst that never ends: no rows, only the run's totals
            sums[key] = int(float(reported[key]))
        elif key in reported:
            assert int(float(reported[key])) == sums[key], f"run.{key} and the sum over bursts differ"
    return sums


def run_keys(db):
    """Table `run` of a profile."""
    with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as con:
        return dict(con.execute("select key, value from run"))


@pytest.fixture(scope="session")
def cachegram():
    path = find_cachegram()
    assert path, "build cachegram first, or name it in CACHEGRAM"
    return path


@pytest.fixture
def record(cachegram, tmp_path, request):
    """record(options, argv, ...) -> (Result without the recorder's line, path of the profile).

    Without an allowance unless the options say so: most tests want bursts, and their programs are short. Without
    debug information if the file of the test has DEBUG_INFO = False: that of libc takes longer than the programs.
    """
    count = [0]
    debug = [] if getattr(request.module, "DEBUG_INFO", True) else ["CACHEGRAM_DEBUG=debug-info=0"]

    def go(options, argv, wrap=(), **how):
        count[0] += 1
        if "--allowance" not in options and not any("switch-ms" in str(option) for option in options):
            options = ["--allowance", "0", *options]
        db = tmp_path / f"profile{count[0]}.db"
        command = record_command(cachegram, db, [*debug, *options])
        at = command.index(cachegram)
        result = run([*command[:at], *wrap, *command[at:], "--", *argv], **how).split_summary()
        return result, db

    return go


def common_folder(tmp_path_factory):
    """A folder for all workers of a parallel run (pytest -n)."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "common"
    folder.mkdir(mode=0o755, exist_ok=True)
    return folder


@contextlib.contextmanager
def only_once(path):
    """True for whoever comes first and makes the path; the others wait until it is complete."""
    with open(f"{path}.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.exists(f"{path}.made"):
            yield False
        else:
            yield True
            pathlib.Path(f"{path}.made").touch()


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """Folder with the C and C++ files of tests/targets compiled: NAME.c to NAME, lib_NAME.c to lib_NAME.so.

    Those named hot_* are left to the tests that want them, which build them themselves (`build_target`).
    """
    folder = common_folder(tmp_path_factory) / "targets"
    folder.mkdir(mode=0o755, exist_ok=True)
    sources = [s for s in [*sorted(TARGETS.glob("*.c")), *sorted(TARGETS.glob("*.cpp"))] if not s.name.startswith("hot_")]
    if os.environ.get("PYTEST_XDIST_WORKER", "gw0") != "gw0":
        sources.reverse()  # two workers meet in the middle
    for source in sources:
        with only_once(folder / source.name) as first:
            if first:
                compile_target(source, folder)
    return folder


@pytest.fixture(scope="session", autouse=True)
def compiled(tmp_path_factory):
    """The folder for what build_target has compiled, by source and options."""
    build_target.compiled = common_folder(tmp_path_factory) / "compiled"
    build_target.compiled.mkdir(mode=0o755, exist_ok=True)


def build_target(source, folder, *options):
    """The program, compiled, in that folder: a copy of one that was compiled before, if another test wanted the same."""
    if source.parent != TARGETS:
        return compile_target(source, folder, *options)
    own = build_target.compiled / "-".join([source.name, *options])
    with only_once(own) as first:
        if first:
            own.mkdir()
            compile_target(source, own, *options)
        program, = (path for path in own.iterdir() if path.suffix != ".mod")
    return shutil.copy2(program, folder / program.name)


def compile_target(source, folder, *options):
    """A comment `/* build: FLAGS */` in a source adds flags."""
    extra = []
    for line in source.read_text().splitlines():
        if line.startswith("/* build: "):
            extra = line[len("/* build: "):].split("*/")[0].split()
    if source.suffix == ".rs":
        command = ["/usr/bin/rustc", "-O", "-g", "-C", "symbol-mangling-version=v0", source]
        return compile_once(command, folder / source.stem)
    compiler = {".cpp": ["g++", "-std=gnu++17"], ".f90": ["gfortran", "-J", folder], ".c": ["gcc", "-std=gnu11"]}[source.suffix]
    library = source.stem.startswith("lib_")
    output = folder / (source.stem + (".so" if library else ""))
    shared = ["-shared", "-fPIC"] if library else []
    command = [*compiler, "-O2", "-g", "-Wall", "-Wextra", *options, *shared, source, *extra]
    if source.suffix == ".f90":  # which also writes a module
        subprocess.run([*command, "-o", output], check=True)
        return output
    return compile_once(command, output)


def compile_once(command, output):
    """Programs are kept from one run of the tests to the next, by their sources, the compiler, and its options."""
    compiler = pathlib.Path(shutil.which(command[0])).resolve()
    contents = [path.read_bytes() for path in [*sorted(TARGETS.glob("*.h")), *(word for word in command if isinstance(word, pathlib.Path))]]
    key = hashlib.sha256(repr((command, os.getcwd(), str(compiler), compiler.stat().st_mtime, contents)).encode()).hexdigest()[:16]
    kept = ROOT / "build" / "test-targets" / f"{output.name}-{key}"
    if kept.exists():
        return shutil.copy2(kept, output)
    subprocess.run([*command, "-o", output], check=True)
    kept.parent.mkdir(parents=True, exist_ok=True)
    copy = kept.with_name(f"{kept.name}.{os.getpid()}")  # two at once
    shutil.copy2(output, copy)
    copy.rename(kept)
    return output


def compile_text(source, text, *options):
    """The program of this text, beside its source; options are -O1 -g unless others are given."""
    source.write_text(text)
    program = source.with_suffix("")
    compiler = "g++" if source.suffix == ".cpp" else "gcc"
    subprocess.run([compiler, *(options or ("-O1", "-g")), "-o", program, source], check=True)
    return program


def open_to_others(folder):
    """Lets other users into a folder of the tests, and thus into those above that are ours."""
    for above in [folder, *folder.parents[:3]]:
        mode = above.stat().st_mode
        if above.stat().st_uid == os.getuid() and mode & 0o055 != 0o055:
            above.chmod(mode & 0o777 | 0o055)


@pytest.fixture(scope="session")
def static_micro(tmp_path_factory):
    """tests/targets/micro.c, linked statically: a program that cannot be profiled."""
    output = common_folder(tmp_path_factory) / "linked-statically"
    with only_once(output) as first:
        if first:
            subprocess.run(["gcc", "-std=gnu11", "-O2", "-static", "-o", output, TARGETS / "micro.c"], check=True)
    return output


def need(program):
    """Path of an installed program; else the test fails, or is skipped where that was allowed."""
    path = shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/games:/usr/bin:/usr/sbin")
    if path is None:
        if os.environ.get("CACHEGRAM_ALLOW_SKIP"):
            pytest.skip(f"{program} is not installed")
        pytest.fail(f"{program} is not installed (set CACHEGRAM_ALLOW_SKIP=1 to skip)")
    return path
