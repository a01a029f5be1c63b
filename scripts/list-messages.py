#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Lists every string of the sources that a user may see: messages, help, report texts; for review.

A string counts if it has two words. Adjacent literals are joined. Not listed: comments, SQL, includes, assertions.

usage: list-messages.py [FOLDER...]      default: src; prints a table in markdown
"""

import pathlib
import re
import sys

TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)
WORDS = re.compile(r"[A-Za-z]{2,} [a-z]{2,}")
NOT_SEEN = re.compile(r"^(SELECT|INSERT|UPDATE|DELETE|CREATE|PRAGMA|ATTACH|BEGIN|VALUES| FROM| WHERE)\b")
SKIPPED_LINE = re.compile(r"^\s*(#\s*include|static_assert|_Static_assert|assert\()")


def strings(text):
    """Yields (offset, string) with adjacent literals joined; comments are blanked first."""
    text = TOKEN.sub(lambda m: m.group() if m.group().startswith('"') else re.sub(r"[^\n]", " ", m.group()), text)
    start, joined, end = None, "", 0
    for m in TOKEN.finditer(text):
        if start is not None and text[end:m.start()].strip() in ("", "\\"):
            joined += m.group()[1:-1]
        else:
            if start is not None:
                yield start, joined
            start, joined = m.start(), m.group()[1:-1]
        end = m.end()
    if start is not None:
        yield start, joined


def main():
    print("| place | text |\n| --- | --- |")
    for folder in sys.argv[1:] or ["src"]:
        for path in sorted(pathlib.Path(folder).rglob("*.[ch]")):
            text = path.read_text()
            for offset, string in strings(text):
                line = text.count("\n", 0, offset) + 1
                if not WORDS.search(string) or NOT_SEEN.match(string) or SKIPPED_LINE.match(text.splitlines()[line - 1]):
                    continue
                print(f"| {path}:{line} | {string.replace('|', chr(92) + '|')} |")


if __name__ == "__main__":
    main()
