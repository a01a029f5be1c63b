# SPDX-License-Identifier: Apache-2.0
"""A few random instruction sequences; tests/long/test_isa_long.py has the many."""
import pytest

from isa_cases import GENERATORS, MODES, PLACES, Cases

COUNT = 5000
REFERENCES_COUNT = 1000


@pytest.mark.in_turns
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("generator", GENERATORS)
def test_registers_flags_and_memory(cachegram, tmp_path, generator, place):
    cases = Cases(tmp_path, cachegram, generator, place, 1, COUNT)
    for mode in MODES:
        cases.compare_run(mode)
    cases.clear()


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("generator", GENERATORS)
def test_references(cachegram, tmp_path, generator, place):
    cases = Cases(tmp_path, cachegram, generator, place, 2, REFERENCES_COUNT)
    cases.compare_references()
    cases.clear()
