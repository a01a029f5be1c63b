#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that dependencies point one way: every #include "..." under src follows the arrows.

    base  <-  model, sim, trace  <-  profile  <-  symbols, machine  <-  collect, report  <-  cli
    base  <-  agent; agent and collect share the wire header; nothing includes agent

A part may include itself, the parts named for it below, and nothing else. Includes are written
relative to src ("base/error.h"), so that the part is seen in the line itself.

usage: check-includes.py [SRC]      exit status 1 if an include goes against an arrow
"""

import pathlib
import re
import sys

BELOW_PROFILE = {"base", "model", "sim", "trace"}
BELOW_COLLECT = BELOW_PROFILE | {"profile", "symbols", "machine"}

MAY_INCLUDE = {
    "wire": set(),
    "base": set(),
    "model": {"base"},
    "sim": {"base"},
    "trace": {"base"},
    "profile": BELOW_PROFILE,
    "symbols": BELOW_PROFILE | {"profile"},
    "machine": BELOW_PROFILE | {"profile"},
    "collect": BELOW_COLLECT | {"wire"},
    "pirate": {"base", "machine", "profile", "collect"},
    "report": BELOW_COLLECT,
    "cli": BELOW_COLLECT | {"collect", "pirate", "report"},
    "agent": {"base", "wire"},
}

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


def violations(src):
    """Yields one sentence for every include that should not be."""
    for path in sorted(src.rglob("*.[chS]")):
        part = path.relative_to(src).parts[0]
        text = path.read_text()
        for match in INCLUDE.finditer(text):
            included = match.group(1)
            line = text.count("\n", 0, match.start(1)) + 1
            where = f"{path}:{line}: \"{included}\""
            target = pathlib.PurePosixPath(included).parts[0]
            if part not in MAY_INCLUDE:
                yield f"{where}: no arrow is known for src/{part}; add it to scripts/check-includes.py"
            elif not (src / included).is_file():
                yield f"{where}: no such file under src; includes are written relative to src"
            elif target != part and target not in MAY_INCLUDE[part]:
                yield f"{where}: {part} may not depend on {target}"


def main():
    src = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "src")
    if not any(src.rglob("*.[chS]")):
        sys.exit(f"check-includes.py: no source files under {src}")
    found = list(violations(src))
    for sentence in found:
        print(sentence, file=sys.stderr)
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
