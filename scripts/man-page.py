#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a manual page: fills man/NAME.1.in with what the command itself says.

man-page.py CACHEGRAM IN OUT [DEPFILE]

Names, arguments and order of the options, operands and the commands' one-line descriptions are in one place, src/cli:
`cachegram help` and `cachegram COMMAND --help` print them. A page has the rest, and these lines:

    @NAME@           the section NAME
    @SYNOPSIS@       the section SYNOPSIS
    @COMMANDS@       the list of commands
    @OPTION size@    begins the item of --size in a list; several names share an item
    @HELP ARGS...@   from here on, options are those that `cachegram COMMAND ARGS... --help` lists
    @INCLUDE FILE@   the lines of FILE, next to IN, with lines of this kind as well

An option that is listed by --help and has no item, or the other way round, is an error: no page is made. An option
that --help does not list, such as those for tests, has an item written by hand, beginning with `.It Fl`.
"""
import pathlib
import re
import subprocess
import sys


def fail(message):
    sys.exit(f"man-page.py: {sys.argv[2]}: {message}")


def ask(cachegram, *args):
    return subprocess.run([cachegram, *args], capture_output=True, text=True, check=True).stdout


# A variable, a word, "...", or what stands between them.
TOKEN = re.compile(r"[A-Z][A-Z0-9]*|[a-z0-9][a-z0-9/.=-]*|\.\.\.|[][|,:=]")


def macros(text):
    """What an argument looks like in --help, such as NAME|FILE, as macros of mdoc."""
    if re.fullmatch(r"[a-z0-9-]+(\|[a-z0-9-]+)*", text):
        return "Cm " + text.replace("|", " | ")
    words, previous = [], "|"
    for token in TOKEN.findall(text):
        if previous not in "[|" and token not in "|,:]":
            words.append("Ns")
        if token == "[":
            words.append("Oo")
        elif token == "]":
            words.append("Oc")
        elif token == "..." or token[0].isupper():
            words += ["Ar", token.lower()]
        elif token[0].isalnum():
            words += ["Cm", token]
        else:
            words.append(token)
        previous = token
    return " ".join(words)


class Options:
    """Those of one --help: of each long name the short one, or None, and the forms of its argument."""

    def __init__(self, text):
        self.short, self.forms, self.used = {}, {}, {}
        for line in text.splitlines():
            if self.forms and not line:
                break  # what follows the list may have examples
            match = re.match(r"  (?:-(\w), )? *--([a-z][a-z-]*)(\[=[^ ]*\])?(?: ([^ ]+))?", line)
            if match and match[2] != "help":
                self.short[match[2]] = match[1]
                self.forms.setdefault(match[2], []).append(match[3] or match[4] or "")
                self.used[match[2]] = 0
        self.usages = re.findall(r"^(?:usage:|      ) cachegram [a-z]+ ?(.*)$", text, re.M)

    def argument(self, form):
        if form.startswith("[="):
            return f" Ns Oo = Ns {macros(form[2:-1])} Oc"
        return " " + macros(form) if form else ""

    def item(self, name, items):
        """An option at the head of an item; `items` is the number of them that the page has."""
        forms = self.forms[name]
        if 1 < items != len(forms):
            fail(f"--{name} has {items} items, but {len(forms)} lines in --help")
        form = "|".join(forms) if items == 1 else forms[self.used[name]]
        self.used[name] += 1
        short = f"Fl {self.short[name]} , " if self.short[name] else ""
        return f"{short}Fl -{name}{self.argument(form)}"

    def brief(self, name):
        return f"Fl {self.short[name] or '-' + name}{self.argument('|'.join(self.forms[name]))}"

    def name_of(self, word):
        """The long name of the option -x or --xyz."""
        return next((name for name, short in self.short.items() if word in ("--" + name, f"-{short}")), None)


def synopsis(command, options):
    lines = [".Sh SYNOPSIS"]
    for number, usage in enumerate(options.usages):
        words = usage.split()
        named = {options.name_of(word) for word in words} - {None}
        lines.append(f".Nm cachegram Cm {command}")
        while words:
            word = words.pop(0)
            if word == "[OPTIONS]" and number == 0:
                lines += [f".Op {options.brief(name)}" for name in options.forms if name not in named]
            elif word == "[OPTIONS]":
                lines.append(".Op Ar option ...")
            elif word == "--":
                lines.append(".Fl -")
            elif word == "[--]":
                lines.append(".Op Fl -")
            elif options.name_of(word):
                lines.append("." + options.brief(options.name_of(word)))
                words.pop(0)
            elif word == "[ARGUMENTS]":
                lines.append(".Op Ar argument ...")
            elif word.startswith("["):
                lines.append(".Op " + macros(word[1:-1]))
            else:
                lines.append("." + macros(word.replace("...", "")) + (" ..." if word.endswith("...") else ""))
    return lines


def read(path, sources):
    """The lines of a page's source, with those that it includes."""
    sources.append(path)
    for line in path.read_text().splitlines():
        match = re.fullmatch(r"@INCLUDE (\S+)@", line)
        if match:
            yield from read(path.parent / match[1], sources)
        else:
            yield line


def check_complete(options):
    missing = ["--" + name for name, used in options.used.items() if not used]
    if missing:
        fail(f"no item of {', '.join(missing)}")


def fill(cachegram, lines, command):
    helps = dict(re.findall(r"^  ([a-z]+) +(.*)$", ask(cachegram, "help"), re.M))
    if command and command not in helps:
        fail(f"'{command}' is not a command")
    options = Options(ask(cachegram, command, "--help") if command else "")
    parts = 0
    items = []  # of each @HELP@'s part: how many items an option has
    for line in lines:
        if not items or line.startswith("@HELP "):
            items.append({})
        match = re.fullmatch(r"@OPTION (.*)@", line)
        for name in match[1].split() if match else []:
            items[-1][name] = items[-1].get(name, 0) + 1
    for line in lines:
        match = re.fullmatch(r"@([A-Z]+)(?: (.*))?@", line)
        hand = re.findall(r"Fl -([a-z][a-z-]*)", line) if line.startswith(".It Fl") else []
        if set(hand) & set(options.forms):
            fail(f"'{line}' is an option of --help: write @OPTION {' '.join(hand)}@")
        if not match:
            yield line
        elif match[1] == "NAME" and command:
            yield from (".Sh NAME", f".Nm cachegram-{command}", f".Nd {helps[command]}")
        elif match[1] == "SYNOPSIS" and command:
            yield from synopsis(command, options)
        elif match[1] == "COMMANDS":
            for name, what in helps.items():
                yield from (f".It Cm {name}", what[0].upper() + what[1:] + ("." if name == "help" else "; see"))
                if name != "help":
                    yield f".Xr cachegram-{name} 1 ."
        elif match[1] == "HELP":
            check_complete(options)
            options = Options(ask(cachegram, command, *match[2].split(), "--help"))
            parts += 1
        elif match[1] == "OPTION":
            names = match[2].split()
            unknown = [name for name in names if name not in options.forms]
            if unknown:
                fail(f"--{unknown[0]} is not an option that --help lists")
            yield ".It " + " , ".join(options.item(name, items[parts][name]) for name in names)
        else:
            fail(f"'{line}' is not understood")
    check_complete(options)


def main():
    cachegram, source, out = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    sources = []
    lines = list(read(source, sources))
    command = source.name.removesuffix(".1.in").removeprefix("cachegram").removeprefix("-")
    page = "".join(line + "\n" for line in fill(cachegram, lines, command))
    out.write_text(page)
    if len(sys.argv) > 4:
        pathlib.Path(sys.argv[4]).write_text(f"{out}: {' '.join(map(str, sources))}\n")


main()
