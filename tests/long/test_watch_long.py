# SPDX-License-Identifier: Apache-2.0
"""Watching at its hardest settings, again and again: what goes wrong once in fifty runs goes wrong for someone."""
import pytest

from test_watch import THREADED, threads_as_native


@pytest.mark.parametrize("scene", THREADED)
def test_threads(built, record, scene):
    threads_as_native(built, record, scene, 50)
