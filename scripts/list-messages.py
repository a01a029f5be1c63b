#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Lists every string of the sources that a user may see, once, with its places: messages, help, report texts, and those
of the page that `html` writes; for review.

A string counts if it has two words. Adjacent literals are joined. Not listed: comments, SQL, includes, assertions.

usage: list-messages.py [FOLDER...]      default: src web; prints a table in markdown
"""

import pathlib
import re
import sys

TOKENS = {
    ".c": r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"',
    ".js": r'(?<!:)//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|`(?:\\.|\$\{(?:[^{}`]|`[^`]*`|\{[^{}]*\})*\}|[^`\\])*`',
}
TOKENS[".h"] = TOKENS[".c"]
BETWEEN = re.compile(r"\\?\s*(PRI[a-zA-Z0-9]+\s*)?")
WORDS = re.compile(r"[A-Za-z]{2,},? [a-z]{2,}")
NOT_SEEN = re.compile(r"^(SELECT|INSERT|UPDATE|DELETE|CREATE|PRAGMA|ATTACH|BEGIN|VALUES| FROM| WHERE|SQLite format 3)\b")
SKIPPED_LINE = re.compile(r"^\s*(#\s*include|static_assert|_Static_assert|assert\(|__asm__|import\b)")
GENERATED = {"page.html", "package-lock.json"}


def strings(text, token):
    """Yields (offset, string) with adjacent literals joined, also around PRIu64; comments are blanked first."""
    token = re.compile(token, re.DOTALL)
    comment = ("//", "/*")
    text = token.sub(lambda m: re.sub(r"[^\n]", " ", m[0]) if m[0].startswith(comment) else m[0], text)
    start, joined, end = None, "", 0
    for m in token.finditer(text):
        string = m[0][1:-1]
        if start is not None and BETWEEN.fullmatch(text, end, m.start()):
            joined += "llu" * ("PRI" in text[end:m.start()]) + string
        else:
            if start is not None:
                yield start, joined
            start, joined = m.start(), string
        end = m.end()
    if start is not None:
        yield start, joined


def main():
    places = {}
    for folder in sys.argv[1:] or ["src", "web"]:
        for path in sorted(pathlib.Path(folder).rglob("*")):
            if path.suffix not in TOKENS or path.name in GENERATED or "node_modules" in path.parts:
                continue
            text = path.read_text()
            lines = text.splitlines()
            for offset, string in strings(text, TOKENS[path.suffix]):
                line = text.count("\n", 0, offset) + 1
                string = " ".join(string.split()) if path.suffix == ".js" else string
                if WORDS.search(string) and not NOT_SEEN.match(string) and not SKIPPED_LINE.match(lines[line - 1]):
                    places.setdefault(string, []).append(f"{path}:{line}")
    print("| place | text |\n| --- | --- |")
    for string, where in places.items():
        more = f" and {len(where) - 1} more" if len(where) > 1 else ""
        print(f"| {where[0]}{more} | {string.replace('|', chr(92) + '|')} |")


if __name__ == "__main__":
    main()
