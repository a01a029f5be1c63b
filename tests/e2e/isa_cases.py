# SPDX-License-Identifier: Apache-2.0
"""Random instruction sequences, native against translated; the programs are in tests/isa (see isa.h there)."""
import contextlib
import pathlib
import sqlite3
import subprocess

from record_command import record_command

# As far as possible without random addresses: code near the agent's own needs them to be known.
SETARCH = ["setarch", "-R"]
FIXED = subprocess.run([*SETARCH, "true"], stderr=subprocess.DEVNULL).returncode == 0
PLACES = ["low", "high"] if FIXED else ["low"]
GENERATORS = ["bytes", "forms"]
# Sequences that one process runs: their translations must fit.
MOST = 10000

# How they are recorded: options of the command, options of isa_run.
FULL = (["--mode", "full"], ["--trigger", "0"])
LINES = (["--mode", "full", "--lines", "1/4"], ["--trigger", "0"])
# A burst begins before each sequence and ends somewhere in it.
ENDING = (["--mode", "burst", "--clock", "cputime", "--burst-refs", "1000", "--gap-us", "2000"], ["--trigger", "700"])
# Bursts begin and end at any place.
OFTEN = (["--mode", "burst", "--burst-refs", "2000", "--gap-us", "50"], [])
MADE = (["--mode", "full"], ["--trigger", "0", "--code", "memory"])
# Counted, with hardly a burst in between.
ALWAYS = ["--mode", "burst", "--clock", "count-always", "--gap-us", "10000000"]
LOW_VECTOR = (["CACHEGRAM_DEBUG=count-vector=15", *ALWAYS], ["--trigger", "0"])
COUNTED = (ALWAYS, ["--trigger", "0"])
COUNTED_MADE = (ALWAYS, ["--trigger", "0", "--code", "memory"])
MODES = {"full": FULL, "lines": LINES, "ending": ENDING, "often": OFTEN, "made": MADE, "counted": COUNTED,
         "counted made": COUNTED_MADE, "counted 15": LOW_VECTOR}


def last_numbers(output):
    """The figures on the last line of isa_compare's output."""
    words = output.rstrip().splitlines()[-1].split()
    return {words[i]: int(words[i + 1]) for i in range(0, len(words), 2)}


class Cases:
    """One file of sequences."""

    def __init__(self, folder, cachegram, generator, place, seed, count, timeout=120):
        self.folder = pathlib.Path(folder)
        self.cachegram = cachegram
        build = pathlib.Path(cachegram).parents[2]
        self.tools = build / "tests" / "isa"
        self.agent = build / "src" / "agent" / "libcachegram-agent.so"
        self.count = count
        self.timeout = timeout
        self.file = self.folder / f"{generator}-{place}-{seed}.isa"
        self.what = f"{generator} {place} {seed} {count}"
        self.call(self.tool("isa_generate"), generator, place, seed, count, self.file)
        self.call(*self.setarch(), self.tool("isa_run"), self.file, 0, count, self.path("native"))

    def setarch(self):
        return SETARCH if FIXED else []

    def tool(self, name):
        return self.tools / name

    def path(self, kind):
        return self.file.with_suffix("." + kind)

    def call(self, *argv, statuses=(0,)):
        done = subprocess.run([str(a) for a in argv], capture_output=True, text=True, timeout=self.timeout)
        assert done.returncode in statuses, (
            f"isa_generate {self.what}\n{' '.join(map(str, argv))}\nstatus {done.returncode}\n"
            f"{done.stdout[-12000:]}\n{done.stderr[-2000:]}")
        return done.stdout

    def clear(self):
        for path in self.folder.glob(self.file.stem + ".*"):
            path.unlink()

    def compare_run(self, mode):
        """Runs all sequences under the recorder: they must end as natively. Returns the agent's counters."""
        recording, options = MODES[mode]
        recording = [*recording, "CACHEGRAM_DEBUG=debug-info=0"]  # takes longer than the sequences
        db = self.path("db")
        self.call(*self.setarch(), *record_command(self.cachegram, db, recording), "--",
                  self.tool("isa_run"), *options, "--like", self.path("native"), self.file, 0, self.count,
                  self.path(mode.replace(" ", "-")))
        output = self.call(self.tool("isa_compare"), "results", self.file, self.path("native"), self.path(mode.replace(" ", "-")))
        figures = last_numbers(output)
        assert figures["sequences"] == self.count and figures["left_out"] <= self.count // 40, figures
        with contextlib.closing(sqlite3.connect(db)) as profile:
            counters = dict(profile.execute("select name, value from counter"))
        assert counters["disabled"] == 0
        # Was what is compared translated at all? A sequence has some five blocks.
        if mode in ("full", "lines", "made", "counted", "counted made", "counted 15"):
            assert counters["blocks"] > 2 * self.count, counters
        if mode == "ending":
            assert counters["bursts"] > self.count // 4, counters
        if mode == "often":
            assert counters["bursts"] > 0, counters
        return counters

    def compare_lines(self, like):
        """After the oracle's run: an agent that filters lines, with a filter that all of them pass, must record each."""
        self.call(*self.setarch(), self.tool("isa_record"), "--lines", self.agent, self.file, self.path("touched"),
                  self.tool("isa_run"), "--trigger", 0, *like, self.file, 0, self.count, self.path("full"))
        figures = last_numbers(self.call(self.tool("isa_compare"), "lines", self.file, self.path("expected"),
                                         self.path("touched")))
        faults = last_numbers(self.call(self.tool("isa_compare"), "results", self.file, self.path("native"),
                                        self.path("native")))["faults"]
        assert figures["lines"] > 8 * self.count and figures["more"] <= faults, (figures, faults)

    def compare_references(self):
        """The references that are recorded must be the oracle's, one by one. Returns the figures."""
        like = ["--like", self.path("native")]
        self.call(*self.setarch(), self.tool("isa_run"), "--oracle", self.path("expected"), *like, self.file, 0,
                  self.count, self.path("stepped"))
        self.call(*self.setarch(), self.tool("isa_record"), self.agent, self.file, self.path("recorded"),
                  self.tool("isa_run"), "--trigger", 0, *like, self.file, 0, self.count, self.path("full"))
        output = self.call(self.tool("isa_compare"), "refs", self.file, self.path("expected"),
                           self.path("recorded"))
        figures = last_numbers(output)
        self.compare_lines(like)
        assert figures["same"] > 8 * self.count and figures["stepped"] < figures["same"] // 10, figures
        assert figures["astray"] < self.count // 50, figures
        return figures
