# SPDX-License-Identifier: Apache-2.0
"""StatStack against the exact curve of the same full-mode run: within a point on real programs (docs/accuracy-models.md)."""
import csv
import io

import pytest

from conftest import FULL, need, run
from test_harmless import text
from test_lackey import perl, sqlite

SIZES = "32K,64K,128K,256K,512K,1M,2M,4M,8M"


def gzip(d, _big):
    """Its phases are shorter than a tenth of a second: one distribution of distances for all misses by 1.6 points."""
    return [need("gzip"), "-c", text(d / "in", 600000)]


def curve(cachegram, db, model):
    result = run([cachegram, "mrc", "--format", "csv", "--sizes", SIZES, "--model", model, db])
    assert result.status == 0, result.err
    return [float(row["miss_ratio"]) for row in csv.DictReader(io.StringIO(result.out.decode()))]


@pytest.mark.parametrize("case", [gzip, perl, sqlite], ids=lambda c: c.__name__)
def test_statstack(cachegram, record, tmp_path, case):
    result, db = record(FULL, case(tmp_path, 1))
    assert result.status == 0, result.err
    exact = curve(cachegram, db, "lru")
    assert exact[0] > 0 and exact == sorted(exact, reverse=True)
    model = curve(cachegram, db, "statstack")
    assert model != exact
    assert max(abs(a - b) for a, b in zip(model, exact)) <= 0.01, (exact, model)
