# SPDX-License-Identifier: Apache-2.0
"""docs/tutorial.md: its commands print what it shows, numbers within a few per cent."""
import os
import pathlib
import re
import subprocess

from conftest import ROOT, find_cachegram

NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def same(shown, printed):
    if NUMBER.sub("#", shown).split() != NUMBER.sub("#", printed).split():
        return False
    pairs = zip(map(float, NUMBER.findall(shown)), map(float, NUMBER.findall(printed)))
    return all(abs(a - b) <= max(0.01, 0.05 * abs(a)) for a, b in pairs)


def test_tutorial(tmp_path):
    text = (ROOT / "docs" / "tutorial.md").read_text()
    blocks = re.findall(r"^```(\S+)(?: (\S+))?\n(.*?)^```$", text, re.M | re.S)
    slow, loop = (block for kind, _, block in blocks if kind == "c")
    (tmp_path / "slow.c").write_text(slow)
    old = re.search(r"(?<=\{\n)    for .*?(?=\}\n\nint main)", slow, re.S)[0]
    (tmp_path / "fast.c").write_text(slow.replace(old, loop))
    env = {**os.environ, "COLUMNS": "100", "PATH": f"{pathlib.Path(find_cachegram()).parent}:{os.environ['PATH']}"}
    commands = 0
    for block in (block for kind, _, block in blocks if kind == "console"):
        for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.M):
            done = subprocess.run(command, shell=True, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120)
            assert done.returncode == 0, (command, done.stderr)
            assert same(shown, done.stdout), (command, done.stdout)
            commands += 1
    assert commands == 9
