# SPDX-License-Identifier: Apache-2.0
"""More than a million random instruction sequences: registers, flags, memory and faults as natively, in full mode
and under bursts, from mapped and from made code; and the references of some of them against the oracle.

A failure tells the arguments of isa_generate and shows the sequences that differ. Other seeds: CACHEGRAM_SEED=N.
"""
import os

import pytest

from isa_cases import GENERATORS, MODES, MOST, PLACES, Cases

FIRST_SEED = int(os.environ.get("CACHEGRAM_SEED", "1000"))
# Generators, places, and this many seeds of MOST sequences each: 1,040,000.
SEEDS = range(FIRST_SEED, FIRST_SEED + 52 // len(PLACES))
REFERENCES_COUNT = 1500


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("generator", GENERATORS)
def test_registers_flags_and_memory(cachegram, tmp_path, generator, place, seed):
    cases = Cases(tmp_path, cachegram, generator, place, seed, MOST)
    try:
        # All in full mode; one of the others each.
        cases.compare_run("full")
        cases.compare_run([mode for mode in MODES if mode != "full"][seed % 3])
    finally:
        cases.clear()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("generator", GENERATORS)
def test_references(cachegram, tmp_path, generator, place, seed):
    cases = Cases(tmp_path, cachegram, generator, place, seed + 1_000_000, REFERENCES_COUNT)
    try:
        cases.compare_references()
    finally:
        cases.clear()
