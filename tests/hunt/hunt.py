#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Hunts for programs that do under `cachegram record` what they do not do alone.

Programs come from generate.py. What a program prints and how it ends natively, the same three times, is the truth; then
it runs in every mode. A difference is kept in a folder (program, command, outputs), and made as small as it can be while
it still happens.

usage: hunt.py [--seed TEXT] [--seconds N] [--programs N] [--jobs N] [--modes LIST] [--only FRAGMENTS] [--without FRAGMENTS]
               [--keep DIR] [--replay DIR] [--tries N] [--no-minimise] [--minimise-seconds N] [--no-references] [--junitxml FILE] [--nice N]
               [--verbose]

  --seed TEXT       programs TEXT:0, TEXT:1, ... (default: another one each time)
  --seconds N       begin no program after N seconds (default 60); --programs N: after N programs
  --jobs N          so many at the same time (default 1)
  --modes LIST      of default, gap, watch, full, always, early, switch (default: all)
  --only LIST       most fragments are of these; --without LIST: none is
  --keep DIR        where faults go (default: a folder under /tmp, which is printed)
  --replay DIR      runs a kept fault again, --tries times (default 20)
  --no-references   do not compare the references recorded in full mode
  --minimise-seconds N   at most so long for each fault (default 180); --no-minimise: not at all

Environment: CACHEGRAM (the command; default build/src/cli/cachegram).
Exit status: 1 if anything differed, or nothing ran.
"""
import argparse
import collections
import contextlib
import ctypes
import json
import os
import pathlib
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import xml.sax.saxutils

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import generate  # noqa: E402
from record_command import record_command  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
MODES = {
    "default": ["--allowance", "1s"],
    "gap": ["--gap-us", "500"],
    "watch": ["--gap-us", "500", "--burst-refs", "30000", "--clock", "cputime", "CACHEGRAM_DEBUG=watch-lines=32"],
    "full": ["--mode", "full"],
    "lines": ["--mode", "full", "--lines", "1/16"],
    "always": ["--mode", "count", "--allowance", "0"],
    "early": ["--allowance", "60ms"],
    "switch": ["CACHEGRAM_DEBUG=switch-ms=3"],
}
TOO_LONG = 2.0  # seconds a program may take natively
LIBRARIES = {"lib_one": [], "lib_two": ["-DHUNT_TWO"], "lib_calls": [], "lib_throws": []}
LOST_SHARE, LOST_FREE = 0.02, 150_000  # of the references that work() made, so many may be missing in full mode


class Outcome:
    """How a run ended: status (128 + N after signal N), output, and what else is known."""

    def __init__(self, status, out, err, seconds, hang="", refs=None):
        self.status, self.out, self.err, self.seconds, self.hang, self.refs = status, out, err, seconds, hang, refs

    def answer(self):
        return self.status, self.out


def process_stat(pid):
    """Fields of /proc/PID/stat after the name; empty if it is gone."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


def in_session(session):
    """Processes of a session that have not ended."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            fields = process_stat(name)
            if len(fields) > 3 and fields[3] == str(session) and fields[0] not in "ZX":
                found.append(int(name))
    return found


def where_they_hang(pids):
    """For each thread of the processes: state, system call, what it waits in."""
    lines = []
    for pid in pids:
        for task in sorted(pathlib.Path(f"/proc/{pid}/task").glob("*")):
            said = [str(task)]
            for name in ("comm", "wchan", "syscall", "stat"):
                try:
                    said.append((task / name).read_text(errors="replace").strip()[:160])
                except OSError as error:
                    said.append(str(error))
            try:
                status = (task / "status").read_text(errors="replace")
                said += re.findall(r"(?:State|Sig\w+|ShdPnd):\s*\S+", status)
            except OSError:
                pass
            lines.append(" | ".join(said))
    return "\n".join(lines)


def dump_cores(pids, keep, most=6):
    """Writes core files of processes that hang, at most so many in a folder; returns their names. Needs gdb."""
    named = []
    for pid in pids if shutil.which("gcore") else []:
        if len(list(keep.glob("core.*"))) < most:
            with contextlib.suppress(subprocess.TimeoutExpired):
                subprocess.run(["gcore", "-o", keep / "core", str(pid)], capture_output=True, timeout=120)
                named.append(f"{keep}/core.{pid}")
    return named


def target_of(pid, program):
    """The profiled process itself: the first one below pid that executes the program."""
    for child in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            for found in child.read_text().split():
                if os.readlink(f"/proc/{found}/exe") == str(program):
                    return int(found)
        except OSError:
            pass
    return None


def end_session(session):
    for _ in range(5):
        left = in_session(session)
        if not left:
            return
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.02)


class Hunter:
    def __init__(self, args):
        self.args = args
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="hunt-"))
        self.keep = pathlib.Path(args.keep) if args.keep else pathlib.Path(tempfile.mkdtemp(prefix="hunt-faults-"))
        self.keep.mkdir(parents=True, exist_ok=True)
        self.cachegram = os.environ.get("CACHEGRAM") or str(ROOT / "build" / "src" / "cli" / "cachegram")
        self.libraries()
        self.lock = threading.Lock()
        self.starting = threading.Lock()  # a program, until it is in sessions
        self.sessions, self.spinners = set(), set()  # what runs now
        self.programs = self.runs = 0
        self.begun = self.broken = None
        self.thrown_away = collections.Counter()
        self.faults = []
        self.cases = []  # (seed, modes that differed)
        self.fragments = collections.Counter()

    def libraries(self):
        for name, flags in LIBRARIES.items():
            source = HERE / ("lib_throws.cpp" if name == "lib_throws" else "lib_one.c" if name == "lib_two" else name + ".c")
            compiler = "g++" if source.suffix == ".cpp" else "gcc"
            subprocess.run([compiler, "-O2", "-shared", "-fPIC", *flags, "-o", self.work / f"{name}.so", source], check=True)

    def build(self, tree, folder, text=None):
        """Compiles a tree (or the text that was once written for it) in a folder; returns the program's path."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "program.c").write_text(text or generate.source(tree))
        (folder / "program.json").write_text(json.dumps(tree))
        done = subprocess.run(["gcc", "-std=gnu11", tree["optimise"], "-w", "-g", "-pthread", f'-DHUNT_DIR="{self.work}"',
                               "-o", folder / "program", folder / "program.c", "-ldl"], capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"hunt.py: {folder}/program.c: {done.stderr[:2000]}")
        return folder / "program"

    def run(self, tree, program, options=None, limit=30.0):
        """Runs a program natively (options None) or recorded."""
        with tempfile.TemporaryDirectory(dir=self.work) as name:
            folder = pathlib.Path(name)
            argv = [str(program)]
            if options is not None:
                # Names of code are not looked at, and debug information takes longer than the programs.
                options = [*options, "CACHEGRAM_DEBUG=debug-info=0"]
                argv = [*record_command(self.cachegram, folder / "p.db", options), "--", *argv]
            begun, hang = time.monotonic(), ""
            with open(folder / "out", "wb") as out, open(folder / "err", "wb") as err, self.starting:
                process = subprocess.Popen(argv, cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                           start_new_session=True)
                self.sessions.add(process.pid)
            ends_by_kill = any(generate.FRAGMENTS[n["f"]].kill for n in tree["end"])
            try:
                if ends_by_kill:
                    self.kill_from_outside(tree, program, process, folder / "out", options, limit)
                process.wait(max(0.1, begun + limit - time.monotonic()))
            except subprocess.TimeoutExpired:
                left = in_session(process.pid)
                hang = where_they_hang(left) or "?"
                if options is not None:
                    hang = "\n".join([hang, *dump_cores([pid for pid in left if pid != process.pid], self.keep)])
                process.kill()
            seconds = time.monotonic() - begun
            end_session(process.pid)
            process.wait()
            self.sessions.discard(process.pid)
            status = process.returncode if process.returncode >= 0 else 128 - process.returncode
            text = (folder / "err").read_bytes()
            refs = None
            if options is not None and not hang and "full" in options:
                refs = self.references(folder / "p.db")
            with self.lock:
                self.runs += options is not None
            return Outcome(status, (folder / "out").read_bytes(), text, seconds, hang, refs)

    @staticmethod
    def kill_from_outside(tree, program, process, out, options, limit):
        """Once the program says that it is ready: after some milliseconds, the signal of the tree."""
        end = time.monotonic() + limit
        while not out.read_bytes().endswith(b"ready\n"):
            if process.poll() is not None or time.monotonic() > end:
                return
            time.sleep(0.002)
        time.sleep(tree["kill_ms"] / 1000)
        target = process.pid if options is None else target_of(process.pid, program)
        if target is not None:
            os.kill(target, getattr(signal, tree["kill"]))

    @staticmethod
    def references(db):
        try:
            with sqlite3.connect(f"file:{db}?mode=ro", uri=True) as con:
                reported = dict(con.execute("select key, value from run"))
            return int(float(reported["references"]))
        except (sqlite3.Error, KeyError, ValueError) as error:
            return f"unreadable profile: {error}"

    def native(self, tree, program, times=3):
        """The truth, or why there is none."""
        first = None
        for _ in range(times):
            got = self.run(tree, program, limit=10.0)
            if got.hang:
                return None, "hangs natively"
            if got.seconds > TOO_LONG:
                return None, "too long"
            if first is not None and got.answer() != first.answer():
                return None, "not deterministic"
            first = first or got
            first.seconds = max(first.seconds, got.seconds)
        return first, None

    def symptom(self, truth, got, mode):
        """What is wrong with a run, in a few words; or nothing."""
        if got.hang:
            return "hang"
        if got.status != truth.status:
            died = f"killed by {signal.Signals(got.status - 128).name}" if 128 < got.status < 160 else f"status {got.status}"
            return f"{died} instead of {truth.status}"
        if got.out != truth.out:
            return "output"
        if mode in ("full", "lines") and not self.args.no_references:
            if isinstance(got.refs, str):
                return got.refs
            made = sum(int(n) for n in re.findall(rb"^refs (\d+)$", truth.out, re.MULTILINE))
            if got.refs < made * (1 - LOST_SHARE) - LOST_FREE:
                return f"lost references ({100 - 100 * got.refs // made}%)"
        return None

    def limit(self, truth, mode):
        return 40 + 200 * truth.seconds

    def attempt(self, tree, program, truth, mode):
        got = self.run(tree, program, MODES[mode], self.limit(truth, mode))
        return self.symptom(truth, got, mode), got

    def one(self, seed, rng):
        """One program in all modes."""
        tree = generate.make(seed, self.args.only, self.args.without)
        folder = self.work / f"program-{threading.get_ident()}"
        program = self.build(tree, folder)
        truth, why = self.native(tree, program)
        if truth is None:
            with self.lock:
                self.thrown_away[why] += 1
                if self.args.verbose:
                    print(f"thrown away: {seed}: {why}: {' '.join(generate.names(tree['c'] + tree['end']))}", flush=True)
            return
        busy = []
        if rng.random() < 0.4:
            busy = [subprocess.Popen(["sh", "-c", "while kill -0 $PPID 2> /dev/null; do :; done"])
                    for _ in range(os.cpu_count() or 1)]
            self.spinners.update(busy)
        differed = []
        try:
            for mode in self.args.modes:
                wrong, got = self.attempt(tree, program, truth, mode)
                if wrong is None:
                    continue
                again, _ = self.native(tree, program, 10)
                if again is None or again.answer() != truth.answer():
                    with self.lock:
                        self.thrown_away["not deterministic, seen later"] += 1
                    break
                differed.append((mode, wrong, got))
        finally:
            for process in busy:
                process.kill()
                process.wait()
            self.spinners.difference_update(busy)
        with self.lock:
            self.programs += 1
            self.fragments.update(generate.names(tree["c"] + tree["end"]))
            self.cases.append((seed, [f"{mode}: {wrong}" for mode, wrong, _ in differed]))
        for mode, wrong, got in differed:
            self.found(tree, program, truth, mode, wrong, got, bool(busy))

    def found(self, tree, program, truth, mode, wrong, got, busy):
        with self.lock:
            number = len(self.faults)
            fault = {"seed": tree["seed"], "mode": mode, "symptom": wrong, "busy": busy,
                     "fragments": list(generate.names(tree["c"] + tree["end"]))}
            self.faults.append(fault)
        folder = self.keep / f"{tree['seed'].replace('/', '_')}-{mode}"
        folder.mkdir(parents=True, exist_ok=True)
        self.write(folder, tree, program, truth, got, mode)
        small, rate = (tree, None) if self.args.no_minimise else self.minimise(tree, mode, kind(wrong))
        if rate is not None:
            fault["fragments"] = list(generate.names(small["c"] + small["end"]))
            fault["rate"] = rate
            self.build(small, folder / "small")
        fault["folder"] = str(folder)
        (folder / "fault.json").write_text(json.dumps(fault, indent=1))
        print(f"fault {number}: {mode}: {wrong}; seed {tree['seed']}{', busy' if busy else ''}; "
              f"{'rate ' + rate + ', ' if rate else ''}{' '.join(fault['fragments'])}; {folder}", flush=True)

    def write(self, folder, tree, program, truth, got, mode):
        for name in ("program.c", "program.json", "program"):
            shutil.copy(program.parent / name, folder / name)
        (folder / "native.out").write_bytes(truth.out)
        (folder / "got.out").write_bytes(got.out)
        (folder / "got.err").write_bytes(got.err)
        (folder / "hang").write_text(got.hang)
        (folder / "command").write_text(' '.join(record_command(self.cachegram, "cachegram.db", MODES[mode])) + " -- ./program\n")

    # Making it smaller.

    def minimise(self, tree, mode, like):
        """Takes parts away while a fault of that kind still happens. Returns the tree and its rate."""
        end = time.monotonic() + self.args.minimise_seconds
        folder = self.work / f"small-{threading.get_ident()}"

        def happens(candidate, tries):
            """How often, as 'N of M' up to the first; None if never, or if it has no native answer."""
            program = self.build(candidate, folder)
            truth, _ = self.native(candidate, program)
            if truth is None:
                return None
            for n in range(1, tries + 1):
                if time.monotonic() > end:
                    return None
                wrong = self.attempt(candidate, program, truth, mode)[0]
                if wrong is not None and kind(wrong) == like:
                    return f"1 of {n}"
            return None

        first = happens(tree, 30)
        if first is None:
            return tree, "not again" if time.monotonic() < end else "not again in time"
        tries = min(40, 4 * int(first.split()[-1]) + 4)
        small, rate = tree, first
        progress = True
        while progress and time.monotonic() < end:
            progress = False
            for candidate in smaller(small):
                if time.monotonic() > end:
                    break
                got = happens(candidate, tries)
                if got is not None:
                    small, rate, progress = candidate, got, True
                    break
        return small, rate

    def replay(self, folder):
        """A kept fault, again and again; its smallest program if there is one."""
        fault = json.loads((folder / "fault.json").read_text())
        where = folder / "small" if (folder / "small").exists() else folder
        tree = json.loads((where / "program.json").read_text())
        program = self.build(tree, self.work / "replay", (where / "program.c").read_text())
        truth, why = self.native(tree, program)
        if truth is None:
            raise SystemExit(f"hunt.py: {folder}: {why}")
        seen = collections.Counter(self.attempt(tree, program, truth, fault["mode"])[0] or "as natively"
                                   for _ in range(self.args.tries))
        print(f"{fault['mode']}: " + ", ".join(f"{n} {what}" for what, n in seen.most_common()))
        return 0 if set(seen) == {"as natively"} else 1

    def end(self, *_):
        """On a signal: nothing that was started goes on; what was found so far is printed."""
        # Never released: workers start nothing more, and do not report that their files are gone. This thread may have them.
        self.starting.acquire(timeout=2)
        self.lock.acquire(timeout=2)
        for process in list(self.spinners):
            process.kill()
        for session in list(self.sessions):
            end_session(session)
        shutil.rmtree(self.work, ignore_errors=True)
        if self.begun is not None:
            self.summary(time.monotonic() - self.begun)
            sys.stdout.flush()
        os._exit(130)

    def hunt(self):
        seed = self.args.seed or f"{random.SystemRandom().randrange(1 << 40):x}"
        print(f"hunt: seed {seed}, {self.args.jobs} jobs, modes {','.join(self.args.modes)}, faults to {self.keep}", flush=True)
        self.begun, next_index = time.monotonic(), iter(range(self.args.programs or 1 << 40))
        index_lock = threading.Lock()

        def worker():
            while time.monotonic() - self.begun < self.args.seconds:
                with index_lock:
                    index = next(next_index, None)
                if index is None:
                    return
                try:
                    self.one(f"{seed}:{index}", random.Random(f"{seed}:{index}:surroundings"))
                except BaseException as error:
                    with self.lock:
                        self.broken = error
                    raise
        threads = [threading.Thread(target=worker) for _ in range(self.args.jobs)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        return self.summary(time.monotonic() - self.begun)

    def summary(self, seconds):
        away = sum(self.thrown_away.values())
        print(f"hunt: {self.programs} programs, {self.runs} recorded runs, {seconds:.0f} s; {away} programs thrown away "
              f"({', '.join(f'{n} {why}' for why, n in self.thrown_away.most_common()) or 'none'}); {len(self.faults)} faults")
        classes = collections.defaultdict(list)
        for fault in self.faults:
            classes[(re.sub(r"\(\d+%\)", "", fault["symptom"]), " ".join(sorted(set(fault["fragments"]))))].append(fault)
        for (wrong, fragments), faults in sorted(classes.items(), key=lambda c: -len(c[1])):
            modes = collections.Counter(f["mode"] for f in faults)
            print(f"  {len(faults):3d}  {wrong}: {fragments} ({', '.join(f'{m} {n}' for m, n in modes.items())})")
        if self.args.junitxml:
            self.junit()
        if self.broken:
            print(f"hunt: {self.broken!r}")
        return 1 if self.faults or not self.programs or self.broken else 0

    def junit(self):
        lines = ["<testsuites><testsuite name='hunt'>"]
        for seed, wrong in self.cases:
            name = xml.sax.saxutils.quoteattr(seed)
            said = xml.sax.saxutils.quoteattr("; ".join(wrong))
            lines.append(f"<testcase classname='hunt' name={name}>" + (f"<failure message={said}/>" if wrong else "")
                         + "</testcase>")
        if not self.cases or self.broken:
            lines.append("<testcase classname='hunt' name='any program'><failure message='nothing ran, or the hunt broke'/>"
                         "</testcase>")
        pathlib.Path(self.args.junitxml).write_text("\n".join([*lines, "</testsuite></testsuites>"]))


def kind(symptom):
    """What symptoms of one fault have in common."""
    word = symptom.split()[0]
    return "died" if word in ("killed", "status") else word


def smaller(tree):
    """Trees with something taken away, the largest pieces first."""
    def variants(nodes):
        for i, node in enumerate(nodes):
            yield nodes[:i] + nodes[i + 1:]
        for i, node in enumerate(nodes):
            below = node.get("c")
            if below:
                plain = [n for b in below for n in b["c"]] if node["f"] == "in_parallel" else below
                yield nodes[:i] + plain + nodes[i + 1:]
                for changed in variants(below):
                    if node["f"] != "in_parallel" or 1 <= len(changed) <= 4 and all(b["f"] == "body" for b in changed):
                        yield nodes[:i] + [{**node, "c": changed}] + nodes[i + 1:]

    def milder(nodes):
        for i, node in enumerate(nodes):
            for name, value in node["p"].items():
                said = generate.FRAGMENTS[node["f"]].parameters[name]
                if said in ("signal", "anysignal"):
                    continue
                least = str(generate.choices(said)[0])
                if value != least:
                    yield nodes[:i] + [{**node, "p": {**node["p"], name: least}}] + nodes[i + 1:]
            for changed in milder(node.get("c", [])):
                yield nodes[:i] + [{**node, "c": changed}] + nodes[i + 1:]

    if len(tree["c"]) > 1:
        for node in tree["c"]:
            yield {**tree, "c": [node], "end": []}
    if tree["end"]:
        yield {**tree, "end": []}
    for nodes in variants(tree["c"]):
        yield {**tree, "c": nodes}
    for nodes in milder(tree["c"]):
        yield {**tree, "c": nodes}
    for nodes in milder(tree["end"]):
        yield {**tree, "end": nodes}


def main():
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--help", action="store_true")
    parser.add_argument("--seed")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--programs", type=int)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--modes", type=lambda s: s.split(","), default=list(MODES))
    parser.add_argument("--only", type=lambda s: s.split(","), default=[])
    parser.add_argument("--without", type=lambda s: [w for w in s.split(",") if w], default=[])
    parser.add_argument("--keep")
    parser.add_argument("--replay", type=pathlib.Path)
    parser.add_argument("--tries", type=int, default=20)
    parser.add_argument("--no-minimise", action="store_true")
    parser.add_argument("--minimise-seconds", type=float, default=180)
    parser.add_argument("--no-references", action="store_true")
    parser.add_argument("--junitxml")
    parser.add_argument("--nice", type=int, default=0)
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    if args.help:
        print(__doc__)
        return 0
    for name in args.only + args.without:
        if name not in generate.FRAGMENTS:
            parser.error(f"no fragment {name}; there are {' '.join(sorted(generate.FRAGMENTS))}")
    for name in args.modes:
        if name not in MODES:
            parser.error(f"no mode {name}; there are {' '.join(MODES)}")
    os.nice(args.nice)
    ctypes.CDLL(None).prctl(36, 1)  # PR_SET_CHILD_SUBREAPER: what runs leave behind comes here
    for number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    hunter = Hunter(args)
    signal.signal(signal.SIGINT, hunter.end)
    signal.signal(signal.SIGTERM, hunter.end)
    try:
        return hunter.replay(args.replay) if args.replay else hunter.hunt()
    finally:
        shutil.rmtree(hunter.work, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
