# SPDX-License-Identifier: Apache-2.0
"""--help, the man pages (made from it) and the shells' completion name the same commands and options."""
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


def make_page(source, folder):
    """scripts/man-page.py makes the page of that source."""
    page = folder / source.name.removesuffix(".in")
    return page, subprocess.run([ROOT / "scripts" / "man-page.py", find_cachegram(), source, page], capture_output=True, text=True, timeout=60, check=False)


def changed_page(tmp_path, name, *changes):
    """Standard error of man-page.py if those replacements are made in the page's source; it must fail."""
    for included in (ROOT / "man").glob("*-options.in"):
        (tmp_path / included.name).write_text(included.read_text())
    text = (ROOT / "man" / f"{name}.1.in").read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    source = tmp_path / f"{name}.1.in"
    source.write_text(text)
    page, result = make_page(source, tmp_path)
    assert result.returncode == 1 and not page.exists()
    return result.stderr


def test_commands(tmp_path):
    assert len(COMMANDS) > 15
    assert completed("cachegram", "") == [*COMMANDS, "--help", "--version"]
    assert completed("cachegram", "re") == ["record", "report"]
    page, result = make_page(ROOT / "man" / "cachegram.1.in", tmp_path)
    assert result.returncode == 0, result.stderr
    main = page.read_text()
    for command in COMMANDS:
        assert command == "help" or re.search(rf"\.Xr cachegram-{command} 1", main), command


@pytest.mark.parametrize("command", [c for c in COMMANDS if c != "help"])
def test_options(command, tmp_path):
    """Every option of --help is in the man page and completed; the man page has no other that does not exist."""
    listed = options_of(command)
    assert "--help" in listed or command == "help"
    assert sorted(completed("cachegram", command, "--")) == sorted(listed)
    page, result = make_page(ROOT / "man" / f"cachegram-{command}.1.in", tmp_path)
    assert result.returncode == 0, result.stderr
    documented = set()
    for line in page.read_text().splitlines():
        if line.startswith((".It Fl", ".Op Fl")):
            documented |= {"-" + name for name in re.findall(r"Fl (-[a-z][a-z-]*)", line)}
            documented |= {"-" + name for name in re.findall(r", (-[a-z][a-z-]*)", line)}
    assert listed - documented - {"--help"} == set()
    # Some are not listed, such as those for benchmarks; but they exist.
    for option in documented - listed - {"--help"}:
        result = subprocess.run([find_cachegram(), command, *(["--bursts", "1"] if command == "sample" else []), option], capture_output=True, text=True, timeout=60, check=False)
        assert result.returncode == 2 and "unknown" not in result.stderr, option


def test_page_says_what_help_says(tmp_path):
    """Forms of arguments: a variable, alternatives, both, an optional value, an option with two forms."""
    text = {name: make_page(ROOT / "man" / f"cachegram-{name}.1.in", tmp_path)[0].read_text() for name in ("diff", "pirate", "sim", "html", "record", "export")}
    assert ".Nm cachegram-diff\n.Nd what changed between two profiles, before and after\n" in text["diff"]
    assert ".Op Fl -sizes Ar list\n" in text["diff"] and "\n.Ar before\n.Ar after\n.Sh DESCRIPTION\n" in text["diff"]
    assert "\n.It Fl -format Cm text | csv | json | html\n" in text["diff"]
    assert "\n.It Fl -color Ns Oo = Ns Cm auto | always | never Oc\n" in text["diff"]
    assert "\n.It Fl -threads Cm auto | Ar n\n" in text["pirate"] and "\n.Op Fl -count\n" in text["pirate"]
    assert "\n.Nm cachegram Cm pirate\n.Op Ar option ...\n.Fl -progress " in text["pirate"]
    assert "\n.It Fl -time-sample Ar len : Ns Ar per\n" in text["sim"] and "\n.It Fl -time-sample Cm bursts\n" in text["sim"]
    assert "\n.Ar trace ...\n.Fl -cache Ar spec Ns Oo , Ns Ar spec Ns Ar ... Oc\n.Sh " in text["sim"]
    assert "\n.It Fl o , Fl -output Ar out\n" in text["html"] and "\n.It Fl -prefix-map Ar old Ns = Ns Ar new\n" in text["html"]
    assert "\n.It Fl -lines Cm 1/ Ns Ar n\n" in text["record"] and "\n.Op Fl -\n.Ar command\n.Op Ar argument ...\n" in text["record"]
    assert text["export"].count("\n.Fl -to Ar format\n") == 2 and ".Op Fl -to" not in text["export"]


def test_page_with_other_options_than_help(tmp_path):
    """No page is made."""
    assert "no item of --limit" in changed_page(tmp_path, "cachegram-diff", ("@OPTION limit@\n", ""))
    assert "--sizs is not an option that --help lists" in changed_page(tmp_path, "cachegram-diff", ("@OPTION sizes@", "@OPTION sizs@"))
    assert "write @OPTION limit@" in changed_page(tmp_path, "cachegram-diff", ("@OPTION limit@", ".It Fl -limit Ar n"))
    assert "--limit has 2 items" in changed_page(tmp_path, "cachegram-diff", ("@OPTION limit@", "@OPTION limit@\n@OPTION limit@"))
    assert "no item of --watch" in changed_page(tmp_path, "cachegram-sample", ("@OPTION watch@\n", ""))
    assert "'@OPTIN limit@' is not understood" in changed_page(tmp_path, "cachegram-diff", ("@OPTION limit@", "@OPTIN limit@"))


def formats_of(command, heading):
    return set(re.findall(r"^  ([\w-]+) {2,}", help_text(command, "--help").split(f"\n{heading}:\n")[1].split("\n\n")[0], re.M))


def items_of(page, section):
    text = (ROOT / "man" / f"{page}.1.in").read_text().split(f".Sh {section}\n")[1].split("\n.Sh ")[0]
    return set(re.findall(r"^\.It Cm (\S+)$", text, re.M))


def test_trace_formats():
    read = items_of("cachegram-import", "FORMATS")
    assert formats_of("import", "Formats") == read
    assert formats_of("export", "Formats of traces") == read - {"drmemtrace"} | items_of("cachegram-export", "FORMATS OF TRACES")
