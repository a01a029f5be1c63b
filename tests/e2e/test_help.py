# SPDX-License-Identifier: Apache-2.0
"""--help, the man pages and the shells' completion name the same commands and options."""
import os
import pathlib
import re
import subprocess

import pytest

from conftest import ROOT, find_cachegram


def help_text(*args):
    return subprocess.run([find_cachegram(), *args], capture_output=True, text=True, timeout=60, check=True).stdout


COMMANDS = re.findall(r"^  ([a-z]+) ", help_text("help"), re.M)


def options_of(command):
    return {m[2] for m in re.finditer(r"^  (-., )? *(--[a-z][a-z-]*)", help_text(command, "--help"), re.M)}


def completed(*words):
    """What bash offers for the last of the words."""
    script = f'. "{ROOT}/completions/cachegram.bash"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _cachegram; printf "%s\\n" "${{COMPREPLY[@]}}"'
    folder = pathlib.Path(find_cachegram()).parent
    return subprocess.run(["bash", "-c", script, "bash", *words], capture_output=True, text=True, timeout=60, check=True,
                          env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}).stdout.split()


def test_commands():
    assert len(COMMANDS) > 15
    assert completed("cachegram", "") == [*COMMANDS, "--help", "--version"]
    assert completed("cachegram", "re") == ["record", "report"]
    main = (ROOT / "man" / "cachegram.1").read_text()
    for command in COMMANDS:
        assert command == "help" or re.search(rf"\.Xr cachegram-{command} 1", main), command


@pytest.mark.parametrize("command", [c for c in COMMANDS if c != "help"])
def test_options(command):
    """Every option of --help is in the man page and completed; the man page has no other that does not exist."""
    listed = options_of(command)
    assert "--help" in listed or command == "help"
    assert sorted(completed("cachegram", command, "--")) == sorted(listed)
    page = (ROOT / "man" / f"cachegram-{command}.1").read_text()
    documented = set()
    for line in page.splitlines():
        if line.startswith((".It Fl", ".Op Fl")):
            documented |= {"-" + name for name in re.findall(r"Fl (-[a-z][a-z-]*)", line)}
            documented |= {"-" + name for name in re.findall(r", (-[a-z][a-z-]*)", line)}
    assert listed - documented - {"--help"} == set()
    # Some are not listed, such as those for tests; but they exist.
    for option in documented - listed - {"--help"}:
        result = subprocess.run([find_cachegram(), command, *(["--bursts", "1"] if command == "sample" else []), option], capture_output=True, text=True, timeout=60, check=False)
        assert result.returncode == 2 and "unknown" not in result.stderr, option
