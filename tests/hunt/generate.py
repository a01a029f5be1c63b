#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Generates C programs from fragments: random, but the same for the same seed (README.md).

A program is a tree. A leaf is a call of a fragment with parameters; a wrapper has a body that runs in its
surroundings (in a signal handler, in a child, next to other threads). The tree is plain data, so that hunt.py can store
it and take it apart.

usage: generate.py SEED     prints the program
"""
import json
import pathlib
import random
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
ASYNC = ["SIGUSR1", "SIGUSR2", "SIGHUP", "SIGWINCH", "SIGURG", "SIGIO", "SIGPWR", "SIGQUIT", "SIGINT",
         *(f"SIGRTMIN+{n}" for n in range(1, 9))]
FAULTS = ["SIGTRAP", "SIGSEGV", "SIGSYS", "SIGFPE", "SIGBUS", "SIGILL"]
MAX_NODES = 14
RUNS = 40  # runs of concurrent bodies; hunt.h has some more

SPEC = re.compile(r"/\* hunt: (leaf|wrapper|exec|end)\b([^*]*)\*/\s*static void (\w+)\((.*?)\)\s*[{;]", re.DOTALL)
PARAMETER = re.compile(r"int (\w+)\s*/\*\s*(.*?)\s*\*/", re.DOTALL)


class Fragment:
    """What a `/* hunt: ... */` comment and the function after it say."""

    def __init__(self, kind, rest, name, signature, file):
        self.kind, self.name, self.file = kind, name, file
        self.sets = {"claims": set(), "not": set(), "adds": set(), "removes": set(), "requires": set()}
        words = rest.split()
        self.kill = "kill" in words
        for key, values in zip(words, words[1:]):
            if key in self.sets:
                self.sets[key] = set(values.split(","))
        self.parameters = {name: " ".join(values.split()) for name, values in PARAMETER.findall(signature)}

    def fits(self, context, claimed):
        return (not self.sets["not"] & context and not self.sets["claims"] & claimed
                and self.sets["requires"] <= context)


def load():
    fragments = {}
    for path in sorted((HERE / "fragments").glob("*.c")):
        text = path.read_text()
        marks = text.count("/* hunt: ")
        found = SPEC.findall(text)
        assert len(found) == marks, f"{path}: {marks} marks, {len(found)} functions that could be read"
        for kind, rest, name, signature in found:
            fragments[name] = Fragment(kind, rest, name, signature, path)
    return fragments


FRAGMENTS = load()


def choices(values):
    """The values of a parameter, simplest first: `3..20`, or words."""
    if match := re.fullmatch(r"(-?\d+)\.\.(-?\d+)", values):
        return range(int(match[1]), int(match[2]) + 1)
    return values.split()


class Maker:
    def __init__(self, rng, only=(), without=()):
        self.rng, self.nodes, self.runs = rng, 0, 0
        self.only = set(only)
        self.known = {name: f for name, f in FRAGMENTS.items() if name not in without}

    def pick(self, kinds, context, claimed):
        some = [f for f in self.known.values() if f.kind in kinds and f.fits(context, claimed)]
        wanted = [f for f in some if f.name in self.only]
        if wanted and self.rng.random() < 0.6:
            some = wanted
        return self.rng.choice(some) if some else None

    def node(self, fragment, claimed):
        """A call with parameters; and what it claims, its signals included."""
        self.nodes += 1
        values, claims = {}, set(fragment.sets["claims"])
        for name, said in fragment.parameters.items():
            if said in ("signal", "anysignal"):
                free = [s for s in ASYNC if s not in claimed | claims]
                if said == "anysignal" and "FAULTS" not in claimed | claims and self.rng.random() < 0.3:
                    free = FAULTS
                    claims.add("FAULTS")
                values[name] = self.rng.choice(free)
                claims.add(values[name])
            else:
                values[name] = str(self.rng.choice(choices(said)))
        return {"f": fragment.name, "p": values}, claims

    def one(self, context, claimed, depth):
        """One node with all below it, and all claims in it; or nothing."""
        kinds = {"leaf"}
        if depth > 0 and self.nodes < MAX_NODES and self.rng.random() < 0.45:
            kinds = {"wrapper", "exec"}
            if not context & {"vfork", "handler", "blocked", "seccomp"} and self.rng.random() < 0.15:
                return self.parallel(context, claimed, depth)
        fragment = self.pick(kinds, context, claimed) or self.pick({"leaf"}, context, claimed)
        if fragment is None:
            return None, set()
        node, claims = self.node(fragment, claimed)
        if fragment.kind == "leaf":
            return node, claims
        below = (context - fragment.sets["removes"]) | fragment.sets["adds"]
        if fragment.kind == "exec":
            below = {"child"} | context & {"blocked"}
        node["c"], more = self.sequence(below, claimed | claims, depth - 1, self.rng.randint(1, 2))
        return node, claims | more

    def sequence(self, context, claimed, depth, n):
        nodes, claims = [], set()
        for _ in range(n):
            node, more = self.one(context, claimed, depth)
            if node is not None:
                nodes.append(node)
                claims |= more
        return nodes, claims

    def parallel(self, context, claimed, depth):
        """Bodies that run at the same time claim different things."""
        self.nodes += 1
        node, claims = {"f": "in_parallel", "p": {}, "c": []}, set()
        for _ in range(self.rng.randint(2, 3)):
            nodes, more = self.sequence(context | {"threads", "maps"}, claimed | claims, depth - 1, self.rng.randint(1, 2))
            claims |= more
            node["c"].append({"f": "body", "p": {}, "c": nodes})
        return node, claims


def make(seed, only=(), without=()):
    """The tree of a seed."""
    rng = random.Random(f"hunt {seed}")
    maker = Maker(rng, only, without)
    tree = {"seed": str(seed), "optimise": rng.choice(["-O0", "-O1", "-O2", "-O3"]), "pool": rng.randrange(3),
            "kill": rng.choice(["SIGKILL", "SIGTERM", "SIGINT"]), "kill_ms": rng.choice([0, 1, 5, 20, 60])}
    tree["c"], _ = maker.sequence(set(), set(), 3, rng.randint(1, 5))
    end = maker.pick({"end"}, set(), set())
    tree["end"] = [maker.node(end, set())[0]] if end is not None and rng.random() < 0.6 else []
    return tree


def names(nodes):
    """All fragments in a tree, in order."""
    for node in nodes:
        if node["f"] != "body":
            yield node["f"]
        yield from names(node.get("c", []))


class Writer:
    def __init__(self):
        self.functions, self.stages, self.runs, self.count = [], [], 0, 0

    def body(self, nodes):
        """Writes a function that runs nodes in sequence; returns its name."""
        lines = []
        for node in nodes:
            lines += self.call(node)
        self.count += 1
        name = f"body_{self.count}"
        self.functions.append(f"static void {name}(struct run *r)\n{{\n" + "".join(f"    {x}\n" for x in lines) + "}\n")
        return name

    def call(self, node):
        name, values = node["f"], list(node["p"].values())
        lines = [f'note(r, "- {name}\\n");']
        if name == "in_parallel":
            bodies = [self.body(b["c"]) for b in node["c"]]
            runs = [1 + (self.runs + i) % RUNS for i in range(len(bodies))]
            self.runs += len(bodies)
            return [*lines, "{", f"    static body *const bodies[] = {{{', '.join(bodies)}}};",
                    f"    static const int runs[] = {{{', '.join(map(str, runs))}}};",
                    f"    in_parallel(r, bodies, runs, {len(bodies)});", "}"]
        kind = FRAGMENTS[name].kind
        if kind == "wrapper":
            values.insert(0, self.body(node["c"]))
        elif kind == "exec":
            self.stages.append(self.body(node["c"]))
            values.insert(0, str(len(self.stages)))
        return [*lines, f"{name}({', '.join(['r', *values])});"]


MAIN = """
static int run_stage(int stage)
{
    struct run *r = &shared->runs[0];
    switch (stage) {
%s    default:
        note(r, "stage %%d\\n", stage);
    }
    print_run(r);
    print_refs();
    return 20 + stage;
}

int main(int argc, char **argv)
{
    begin();
    struct run *r = &shared->runs[0];
    make_pool(r, %d);
    if (argc == 2)
        return run_stage(atoi(argv[1]));
    %s(r);
    print_run(r);
    print_refs();
%s    return 0;
}
"""


def source(tree):
    """The program's text, complete in itself but for the libraries in HUNT_DIR."""
    writer = Writer()
    top = writer.body(tree["c"])
    end = "".join(f"    {line}\n" for node in tree["end"] for line in writer.call(node) if not line.startswith("note"))
    used = {FRAGMENTS[n].file if n in FRAGMENTS else HERE / "fragments" / "threads.c"
            for n in names(tree["c"] + tree["end"])}
    text = [f"/* {json.dumps(tree)} */\n", (HERE / "hunt.h").read_text()]
    text += [path.read_text().replace('#include "../hunt.h"', "") for path in sorted(used)]
    text += writer.functions
    stages = "".join(f"    case {i}:\n        {body}(r);\n        break;\n" for i, body in enumerate(writer.stages, 1))
    return "\n".join(text) + MAIN % (stages, tree["pool"], top, end)


if __name__ == "__main__":
    sys.stdout.write(source(make(sys.argv[1])))
