# SPDX-License-Identifier: Apache-2.0
"""Every option that takes a number or one of several words refuses a bad value: one message, exit status 2, and nothing is
run or written."""
import re
import sqlite3

import pytest

from test_cli import cachegram, make
from test_help import COMMANDS, help_text

# Any text may be right, or only the profile can tell: names of files, functions, data and programs.
ANY_TEXT = {"--output", "--function", "--object", "--comm", "--alloc-wrappers", "--dso", "--source-dir", "--keep", "--results"}
# Names, too, or judged together with what the profile or program holds.
NAMES = {("sim", "--from"), ("stack", "--from"), ("sample", "--from"), ("import", "--from"), ("export", "--from"),
         ("pirate", "--from"), ("pirate", "--to"), ("pirate", "--progress"), ("corun", "--partition"),
         ("hotspots", "--machine"), ("annotate", "--machine"), ("record", "--trace"),
         *((command, option) for command in ("corun", "place", "predict") for option in ("--machine", "--recorded-on"))}
# Options that are not listed in --help.
UNLISTED = {"record": ["--reduce"]}
# What none of the others takes.
BAD = ["x", "-5", ""]
MORE_BAD = {("record", "--overhead"): ["0", "101", "nan"], ("verify", "--overhead"): ["0", "101", "nan"],
            ("record", "--burst-refs"): ["0"], ("verify", "--burst-refs"): ["0"], ("record", "--gap-us"): ["-1", "0"],
            ("record", "--line"): ["0", "63"], ("record", "--lines"): ["2"]}


def options_with_values(command, *first):
    """Those that --help shows with a value in capitals, or as words to choose from."""
    text = help_text(command, *first, "--help")
    return [m[1] for m in re.finditer(r"^ {2,6}(?:-., )? {0,4}(--[a-z][a-z-]*) (?:[A-Z]|\S+\|)", text, re.M)]


def cases():
    for command in (c for c in COMMANDS if c != "help"):
        options = options_with_values(command) + UNLISTED.get(command, [])
        for option in dict.fromkeys(options):
            if option not in ANY_TEXT and (command, option) not in NAMES:
                yield command, [], option
    for option in dict.fromkeys(options_with_values("sample", "--bursts", "1")):
        if option not in ANY_TEXT and option not in ("--from", "--bursts"):
            yield "sample", ["--bursts", "1"], option


CASES = list(cases())


def test_cases_hold_all_options():
    """None is lost because --help is written in another way."""
    found = {(command, option) for command, _, option in CASES}
    assert {("record", "--overhead"), ("record", "--mode"), ("mrc", "--ways"), ("hotspots", "--limit"), ("pirate", "--repeats"),
            ("place", "--goal"), ("sample", "--drop-rate"), ("machine", "--seconds"), ("export", "--to")} <= found
    assert len(CASES) > 110, len(CASES)


@pytest.fixture(scope="module")
def operands(tmp_path_factory):
    """Of each command: what makes it run if the option is not looked at."""
    folder = tmp_path_factory.mktemp("operands")
    make(folder / "full.db", "full", references=100, cold=10, loads=70, stores=30).commit()
    (folder / "t.din").write_text("0 1000\n1 2000\n" * 100)
    profile, trace, command = folder / "full.db", folder / "t.din", ["--", "sh", "-c", "touch ran"]
    return {"record": command, "verify": command, "pirate": command, "diff": [profile, profile],
            "corun": [profile, profile], "place": [profile, profile], "doctor": [], "machine": [],
            "stack": [trace], "sim": [trace], "sample": [trace], "import": [trace], "export": [trace],
            **{c: [profile] for c in ("report", "html", "mrc", "timeline", "phases", "hotspots", "causes", "annotate", "predict")}}


@pytest.mark.parametrize("command,first,option", CASES, ids=lambda v: " ".join(v) if isinstance(v, list) else v)
def test_bad_value(command, first, option, operands, tmp_path):
    for value in BAD + MORE_BAD.get((command, option), []):
        needed = ["--to", "csv"] if command == "export" and option != "--to" else []
        result = cachegram(command, *first, *needed, f"{option}={value}", *operands[command], cwd=tmp_path)
        said = (command, option, value, result.stderr, result.stdout[:200])
        assert result.returncode == 2, said
        assert result.stderr.startswith("cachegram") and result.stderr.count("\n") == 1, said
        assert result.stdout == "", said
        assert list(tmp_path.iterdir()) == [], said


CONTRADICTIONS = [["record", "--mode", "count", "--clock", "cputime"], ["record", "--clock", "pmu", "--mode", "count"],
                  ["machine", "--list", "-o", "m.json"], ["machine", "--list", "--reported"],
                  ["verify", "--keep", "name"], ["verify", "--seed", "1"]]


@pytest.mark.parametrize("arguments", CONTRADICTIONS, ids=" ".join)
def test_contradictions(arguments, operands, tmp_path):
    """An option that would have no effect is refused, not ignored."""
    more = [operands["diff"][0]] * 2 if arguments[0] == "verify" else operands[arguments[0]]
    result = cachegram(*arguments, *more, cwd=tmp_path)
    assert result.returncode == 2 and result.stderr.count("\n") == 1 and result.stdout == "", result
    assert list(tmp_path.iterdir()) == []


def test_last_mode_counts(tmp_path):
    """Of several, as of other options."""
    def clock(*options):
        assert cachegram("record", *options, "-o", "p.db", "--", "true", cwd=tmp_path).returncode == 0
        return sqlite3.connect(tmp_path / "p.db").execute("SELECT value FROM run WHERE key = 'clock'").fetchone()
    usual = clock()
    assert clock("--mode", "count", "--mode", "burst") == usual
    assert clock("--mode", "burst", "--mode", "count") == clock("--clock", "count-always")


def test_results_of_before_are_kept(tmp_path):
    """Where there are no new ones, and no empty file is left."""
    (tmp_path / "r.txt").write_text("earlier\n")
    for name in "r.txt", "new.txt":
        assert cachegram("pirate", "--results", name, "--", "./nothing", cwd=tmp_path).returncode in (125, 127)
    assert (tmp_path / "r.txt").read_text() == "earlier\n"
    assert not (tmp_path / "new.txt").exists()


@pytest.mark.parametrize("debug", ["watch-lines=0", "watch-lines=65", "switch-ms=x", "switch-ms=", "count-vector=14",
                                   "count-vector=16", "debug-info=2", "watch-lines", "unknown=1", "watch-lines=1,unknown=1"])
def test_bad_debugging(debug, tmp_path):
    """The variable for tests is checked like an option."""
    result = cachegram("record", "--", "sh", "-c", "touch ran", cwd=tmp_path, env={"CACHEGRAM_DEBUG": debug})
    assert result.returncode == 2 and "CACHEGRAM_DEBUG: " in result.stderr and result.stderr.count("\n") == 1, result
    assert list(tmp_path.iterdir()) == []


def test_debugging_is_not_seen(tmp_path):
    """The program has its environment as without."""
    result = cachegram("record", "--", "sh", "-c", "echo ${CACHEGRAM_DEBUG-unset}", cwd=tmp_path,
                       env={"CACHEGRAM_DEBUG": "watch-lines=32,switch-ms=2"})
    assert result.returncode == 0 and result.stdout == "unset\n", result
