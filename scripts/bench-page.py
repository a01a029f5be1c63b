#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What the page of a large profile costs the browser: 10,000 windows, 5,000 sites, calls of 50 of them. CPU time of the page's own thread.

usage: bench-page.py [--runs N] [--windows N] [--sites N]      after make build
"""

import argparse
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
from browser import browser  # noqa: E402
from conftest import find_cachegram  # noqa: E402
from page_help import many_calls, many_sites, many_windows, open_and_use  # noqa: E402


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--windows", type=int, default=10000)
    parser.add_argument("--sites", type=int, default=5000)
    a = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        db, out = pathlib.Path(folder) / "large.db", pathlib.Path(folder) / "large.html"
        many_sites(db, a.sites, hot=50)
        many_calls(db)
        many_windows(db, a.windows)
        subprocess.run([find_cachegram(), "html", "-o", out, db], check=True)
        costs = []
        for _ in range(a.runs):
            with browser() as b:
                costs.append(open_and_use(b, out))
        print(f"{a.windows} windows, {a.sites} sites: a page of {out.stat().st_size / 2 ** 20:.2f} MB; median of {a.runs} (lowest, highest), ms of CPU time")
        for step in costs[0]:
            values = [c[step] for c in costs]
            print(f"  {step:20} {statistics.median(values):6.0f}  ({min(values):.0f}, {max(values):.0f})")


main()
