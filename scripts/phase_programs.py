# SPDX-License-Identifier: Apache-2.0
"""Programs with phases that no constant of cachegram was fitted to: bench-timeline.py profiles them.

Inputs are made. All run in one process and write only to their folder.
"""
import random
import subprocess

import bench
import papers_programs

CPP = """#include <algorithm>
#include <iostream>
#include <map>
#include <regex>
#include <sstream>
#include <unordered_map>
"""
CPP_PART = """struct K{i} {{ int a; std::string b; bool operator<(const K{i} &o) const {{ return a < o.a || (a == o.a && b < o.b); }} }};
int f{i}(const std::string &s) {{
  std::map<K{i}, std::vector<std::string>> m; std::regex r("[a-{c}]+{i}"); std::smatch found; std::stringstream in(s); std::string w;
  while (in >> w) if (std::regex_match(w, found, r)) m[K{i}{{(int)w.size() % {i}, w}}].push_back(found[0]);
  std::vector<K{i}> k; for (auto &e : m) k.push_back(e.first); std::sort(k.begin(), k.end(), [](const K{i} &a, const K{i} &b) {{ return b < a; }});
  return (int)k.size();
}}
"""
STYLE = """<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
<xsl:output method="text"/>
<xsl:key name="by-group" match="item" use="@group"/>
<xsl:template match="/">
  <xsl:for-each select="//item[generate-id() = generate-id(key('by-group', @group)[1])]">
    <xsl:sort select="@group" data-type="number"/>
    <xsl:value-of select="concat(@group, ' ', count(key('by-group', @group)), ' ', sum(key('by-group', @group)/price), '&#10;')"/>
  </xsl:for-each>
  <xsl:for-each select="//item"><xsl:sort select="name"/><xsl:sort select="price" data-type="number" order="descending"/>
    <xsl:if test="position() mod 50 = 0"><xsl:value-of select="concat(translate(name, 'abcdef', 'ABCDEF'), '&#10;')"/></xsl:if>
  </xsl:for-each>
  <xsl:value-of select="count(//item[price &gt; 500 and contains(text, 'lorem')])"/>
</xsl:template>
</xsl:stylesheet>
"""
WORDS = "lorem ipsum dolor sit amet consectetur adipiscing elit sed do eiusmod tempor".split()


def items(n):
    rng = random.Random(7)
    return "<list>" + "".join(
        f'<item group="{rng.randrange(n // 50 + 1)}"><name>{"".join(rng.choices("abcdefghij", k=6))}</name>'
        f'<price>{rng.randrange(1000)}</price><text>{" ".join(rng.choices(WORDS, k=8))}</text></item>\n' for _ in range(n)) + "</list>"


def preprocessed(d, parts):
    """C++ that uses much of the standard library. A bare cc1plus may not find headers."""
    source = papers_programs.written(d / "x.cc", CPP + "".join(
        CPP_PART.format(i=i + 2, c="dgkmpswz"[i % 8]) for i in range(parts)))
    subprocess.run(["g++", "-E", "-P", source, "-o", str(d / "x.ii")], check=True)
    return str(d / "x.ii")


def cc1plus():
    return subprocess.run(["g++", "-print-prog-name=cc1plus"], capture_output=True, text=True, check=False).stdout.strip()


def built(name):
    return str(bench.ROOT / "build" / "tests" / name)


def programs(scale=1):
    """name: function that makes the program's input in a folder and returns its argv. scale: times the work."""
    return {
        "cc1plus": lambda d: [cc1plus(), "-quiet", "-O2", preprocessed(d, scale), "-o", str(d / "x.s")],
        "xsltproc": lambda d: ["xsltproc", papers_programs.written(d / "x.xsl", STYLE),
                               papers_programs.written(d / "x.xml", items(10000 * scale))],
        "path_search": lambda d: [built("path_search"), str(scale)],
        "network_flow": lambda d: [built("network_flow"), str(scale)],
    }


NAMES = tuple(programs())
