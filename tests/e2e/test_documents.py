# SPDX-License-Identifier: Apache-2.0
"""What the documents name exists: files, functions, members and constants."""
import re

import pytest

from conftest import ROOT

FOLDERS = ("completions", "docs", "man", "scripts", "src", "tests", "web")
FILES = [str(path.relative_to(ROOT)) for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.is_file()]
FILES += [path.name for path in ROOT.iterdir() if path.is_file()]
DOCUMENTS = [name for name in FILES if name.endswith(".md")]
CODE = {name: (ROOT / name).read_text(errors="replace") for name in FILES
        if name.startswith(("src/", "tests/", "scripts/")) and not name.endswith(".md")}
WORDS = set(re.findall(r"\w+", " ".join(text for name, text in CODE.items() if name != "tests/e2e/test_documents.py")))
# Names of files that a reader makes, and of parts that were removed.
NOT_HERE = {"docs/tutorial.md": {"slow.c", "fast.c"}, "docs/decisions/what-went.md": {"rates_persistence", "model/statcc-phases"}}


def named(text):
    """What is between backquotes, without blocks of code."""
    text = re.sub(r"```.*?```", "", text, flags=re.S)
    paragraphs = [part for part in text.split("\n\n") if not part.startswith("    ")]
    return {" ".join(name.split()) for part in paragraphs for name in re.findall(r"`([^`]+)`", part)}


def files_of(name):
    return [file for file in FILES if file == name or file.endswith("/" + name)]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_named_things_exist(document):
    missing = []
    for name in named((ROOT / document).read_text()) - NOT_HERE.get(document, set()):
        if "NAME" in name:
            continue
        if re.fullmatch(r"[\w./-]+\.(c|h|S|in|py|sh|md)", name) and not files_of(name):
            missing.append(name)
        elif re.fullmatch(r"(completions|docs|man|scripts|src|tests|web)/[\w./-]+", name) and not (ROOT / name).exists():
            missing.append(name)
        elif re.fullmatch(r"[a-z]\w*_\w+|[A-Z][A-Z0-9]*_[A-Z0-9_]+", name) and name not in WORDS:
            missing.append(name)
    assert missing == []


def test_the_life_of_a_reference():
    """Each function of a step is defined, in the file that follows it if there is one."""
    text = (ROOT / "docs" / "architecture.md").read_text()
    text = " ".join(text[text.index("## The life of a reference"):text.index("## Likely changes")].split())
    # `a`, `b` and `c` (`file.c`): c at least is in the file.
    pairs = re.findall(r"`(\w+)` \(`([\w./-]+\.c)`", text)
    assert len(pairs) > 25
    for function, file in pairs:
        found = [name for name in CODE if f"/{file}" in f"/{name}"]
        assert found, file
        definition = re.compile(rf"^\w[^\n;=]*\b{function}\([^;{{]*\)\n{{", re.M)
        assert any(definition.search(CODE[name]) for name in found), (function, file)


@pytest.mark.parametrize("document", ["man/cachegram-record.1.in", "docs/agent-rules.md"])
def test_limit_on_memory(document):
    """The least room for memory with which the agent starts is the one that it asks for."""
    least = re.search(r"#define WIRE_ROOM_MB (\d+)", CODE["src/wire/wire.h"])[1]
    text = " ".join((ROOT / document).read_text().split())
    assert re.findall(r"less than (?:about )?(\d+) MB left", text) == [least]
