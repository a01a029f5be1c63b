#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that dependencies point one way, between parts, between the rooms of a part, and between files.

    base  <-  model, sim, trace  <-  profile  <-  machine  <-  collect  <-  pirate
                                             <-  symbols, analysis  <-  report  <-  cli
    base  <-  agent; agent and collect share the wire header; nothing includes agent

Parts: every #include "..." under src names a file below src, in the same part or in one of those that
MAY_INCLUDE names for it. Includes are written relative to src ("base/error.h"), so that the part is seen in
the line itself.

Rooms: the sub-folders of a part that ROOMS lists. A file may include its own room and those that are named
for it. Of the files in the part's own folder, headers in COMMON are below all rooms; the others are above.

Internal headers ("internal.h", "x-internal.h") are for the files of their own folder.

Parts of the agent's struct thread: a file may name those of its own room and of rooms below.

Circles: two files form a circle if each uses, directly or through others, what the other one defines. They
are looked for in the object files of a build folder (nm), not in includes, as only calls and data count.

With --counts, also prints for each part how many files use each other, by the same object files.

usage: check-includes.py [--circles BUILD [--counts]] [SRC]      exit status 1 if anything points the wrong way
"""

import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import sys

BELOW_PROFILE = {"base", "model", "sim", "trace"}
BELOW_COLLECT = BELOW_PROFILE | {"profile", "symbols", "machine"}

# "part" or "part/room".
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
    "pirate": {"base", "machine", "profile", "collect/launch"},
    "analysis": BELOW_PROFILE | {"profile", "symbols"},
    "report": BELOW_COLLECT | {"analysis"},
    "cli": BELOW_COLLECT | {"collect", "pirate", "analysis", "report"},
    "agent": {"base", "wire"},
}


def storeys(*rooms):
    """Each room may include all that come before it."""
    return {room: set(rooms[:i]) for i, room in enumerate(rooms)}


ROOMS = {
    "collect": {
        "launch": set(),
        "clock": {"launch"},
        "records": set(),
        "objects": set(),
        "watch": {"launch", "clock", "records", "objects"},
        "reduce": {"clock", "records", "objects"},
        "drain": {"launch", "clock", "records", "objects", "watch", "reduce"},
        "replay": {"watch", "reduce"},
    },
    "agent": storeys("sys", "code", "translator", "threads", "signals", "divert", "clock", "burst", "watch", "intercept",
                     "life", "interpose", "main"),
}

COMMON = {"collect/tunables.h", "agent/tunables.h", "agent/memory.h", "agent/thread.h"}

# Parts of the agent's struct thread, and the folder that each belongs to: those below do not touch it.
THREAD_PARTS = {
    "generated": "translator", "translation": "translator", "tables": "translator", "timing": "threads", "phases": "threads", "signals": "signals",
    "divert": "divert", "clock": "clock", "burst": "burst", "native": "burst", "watch": "watch", "start": "life",
}
THREAD_PART = re.compile(r"->(" + "|".join(THREAD_PARTS) + r")\.\w")

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
ABOVE, BELOW = "(above)", "(below)"


def room_of(file):
    """The room of a file, given relative to src; ABOVE or BELOW in the part's own folder; None: it has none."""
    part, *rest = pathlib.PurePosixPath(file).parts
    if part not in ROOMS:
        return None
    if len(rest) > 1:
        return rest[0]
    return BELOW if file in COMMON else ABOVE


def is_internal(header):
    name = os.path.basename(header)
    return name == "internal.h" or name.endswith("-internal.h")


def part_violation(part, file):
    """Why a file of `part` may not use `file`, of another part; None: it may."""
    target, *rest = pathlib.PurePosixPath(file).parts
    if target in MAY_INCLUDE[part] or f"{target}/{rest[0]}" in MAY_INCLUDE[part]:
        return None
    rooms = sorted(name for name in MAY_INCLUDE[part] if name.startswith(f"{target}/"))
    return f"{part} may not depend on {target}" + (f", but for {', '.join(rooms)}" if rooms else "")


def room_violation(part, room, other):
    """Why a file of `room` may not use one of `other`, of the same part; None: it may."""
    known = ROOMS[part]
    for name in (room, other):
        if name not in known and name not in (ABOVE, BELOW):
            return f"no arrow is known for src/{part}/{name}; add it to scripts/check-includes.py"
    if room in (ABOVE, other) or other == BELOW:
        return None
    if room == BELOW or other == ABOVE or other not in known[room]:
        return f"{part}/{room} may not depend on {part}/{other}"
    return None


def violations(src):
    """Yields one sentence for every include that should not be."""
    for path in sorted(src.rglob("*.[chS]")):
        name = path.relative_to(src).as_posix()
        part = name.split("/")[0]
        text = path.read_text()
        for match in INCLUDE.finditer(text):
            included = match.group(1)
            line = text.count("\n", 0, match.start(1)) + 1
            why = None
            if part not in MAY_INCLUDE:
                why = f"no arrow is known for src/{part}; add it to scripts/check-includes.py"
            elif not (src / included).is_file():
                why = "no such file under src; includes are written relative to src"
            elif is_internal(included) and os.path.dirname(included) != os.path.dirname(name):
                why = "an internal header, of another folder"
            elif included.split("/")[0] != part:
                why = part_violation(part, included)
            elif room_of(name) is not None:
                why = room_violation(part, room_of(name), room_of(included))
            if why:
                yield f"{path}:{line}: \"{included}\": {why}"
        yield from part_uses(path, name, text)


def part_uses(path, name, text):
    """Yields one sentence for every part of struct thread that belongs to a folder above the file's own."""
    room = room_of(name)
    if not name.startswith("agent/") or room in (ABOVE, BELOW):
        return
    for match in THREAD_PART.finditer(text):
        owner = THREAD_PARTS[match.group(1)]
        if owner != room and owner not in ROOMS["agent"][room]:
            line = text.count("\n", 0, match.start()) + 1
            yield f"{path}:{line}: thread's part `{match.group(1)}` belongs to {owner}, which is above {room}"


def symbols(build, src):
    """Source file below src -> (global symbols that its object defines, those that it needs)."""
    found, objects = {}, collections.defaultdict(list)
    for entry in json.loads((build / "compile_commands.json").read_text()):
        folder = pathlib.Path(entry["directory"])
        file = pathlib.Path(os.path.normpath(folder / entry["file"]))
        if not file.is_relative_to(src):
            continue
        objects[str(folder / entry["output"])].append(found.setdefault(file.relative_to(src).as_posix(), (set(), set())))
    nm = subprocess.run(["nm", "-A", "-g", *objects], check=True, capture_output=True, text=True)
    for line in nm.stdout.splitlines():
        name, _, rest = line.rpartition(":")
        *_, kind, symbol = rest.split()
        for defined, needed in objects[name]:
            (needed if kind in "Uwv" else defined).add(symbol)
    return found


def uses(build, src):
    """File -> {file that it uses: the symbols}. Of two that define a name, the one of the same part is meant."""
    found = symbols(build, src)
    owners = collections.defaultdict(set)
    for file, (defined, _) in found.items():
        for symbol in defined:
            owners[symbol].add(file)
    graph = {file: collections.defaultdict(set) for file in found}
    for file, (_, needed) in found.items():
        part = file.split("/")[0]
        for symbol in needed:
            there = owners[symbol]
            for other in {o for o in there if o.split("/")[0] == part} or there:
                if other != file:
                    graph[file][other].add(symbol)
    return graph


def circles(graph):
    """Lists of files that all reach each other (Tarjan)."""
    index, low, stack, found = {}, {}, [], []

    def visit(file):
        index[file] = low[file] = len(index)
        stack.append(file)
        for other in graph[file]:
            if other not in index:
                visit(other)
                low[file] = min(low[file], low[other])
            elif other in stack:
                low[file] = min(low[file], index[other])
        if low[file] == index[file]:
            circle = [stack.pop()]
            while circle[-1] != file:
                circle.append(stack.pop())
            if len(circle) > 1:
                found.append(sorted(circle))

    for file in graph:
        if file not in index:
            visit(file)
    return found


def is_upward(file, other):
    """Of two files of one part: whether the first is in a room that may not use the second's."""
    part = file.split("/")[0]
    return room_of(file) is not None and room_violation(part, room_of(file), room_of(other)) is not None


def print_counts(graph):
    for part in sorted({file.split("/")[0] for file in graph}):
        files = [file for file in graph if file.startswith(f"{part}/")]
        arrows = [(a, b) for a in files for b in graph[a] if b.startswith(f"{part}/")]
        rooms = {(room_of(a), room_of(b)) for a, b in arrows if room_of(a) != room_of(b)}
        print(f"{part}: {len(files)} files, {len(arrows)} arrows between them, {len(rooms)} between folders,"
              f" {sum(is_upward(a, b) for a, b in arrows)} upward,"
              f" {len(circles({a: [b for b in graph[a] if b in files] for a in files}))} circles")


def circle_sentences(graph):
    for circle in circles(graph):
        arrows = [f"{a} uses {', '.join(sorted(graph[a][b])[:3])} of {b}" for a in circle for b in circle if graph[a].get(b)]
        yield "a circle of files: " + "; ".join(arrows)


def main():
    options = argparse.ArgumentParser(usage="check-includes.py [--circles BUILD [--counts]] [SRC]")
    options.add_argument("--circles", metavar="BUILD", type=pathlib.Path)
    options.add_argument("--counts", action="store_true")
    options.add_argument("src", nargs="?", default="src", type=pathlib.Path)
    args = options.parse_args()
    if not any(args.src.rglob("*.[chS]")):
        sys.exit(f"check-includes.py: no source files under {args.src}")
    found = list(violations(args.src))
    if args.circles:
        graph = uses(args.circles.resolve(), args.src.resolve())
        if not any(graph.values()):
            sys.exit(f"check-includes.py: no object files of {args.src} in {args.circles}")
        found += circle_sentences(graph)
        if args.counts:
            print_counts(graph)
    for sentence in found:
        print(sentence, file=sys.stderr)
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
