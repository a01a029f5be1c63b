# SPDX-License-Identifier: Apache-2.0
"""record --reduce: less is made of the same references."""
import pytest

from conftest import MODES, need, run, totals
from test_harmless import text


@pytest.mark.parametrize("mode", MODES)
def test_reduce(cachegram, record, tmp_path, mode):
    argv = [need("gzip"), "-c", text(tmp_path / "in", 300000)]
    seen = {}
    for way in ("none", "counts", "distances"):
        # Without address randomisation start-up touches the same in all runs.
        result, db = record([*MODES[mode], "--reduce", way], argv, wrap=["setarch", "-R"])
        assert result.status == 0, result.err
        seen[way] = totals(db)
        curve = run([cachegram, "mrc", "--sizes", "32K", db])
        assert (curve.status == 0) == (way == "distances"), curve.err
        assert (b"no curve can be made" in result.summary) == (way != "distances")
    assert seen["none"]["references"] == 0
    if mode == "full":
        assert seen["counts"] == seen["distances"]
        assert seen["counts"]["references"] > 1000000
    else:  # bursts are at random places
        assert seen["counts"]["bursts"] > 0 and seen["counts"]["loads"] > seen["counts"]["stores"] > 0
