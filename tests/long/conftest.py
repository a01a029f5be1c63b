# SPDX-License-Identifier: Apache-2.0
"""The long tests use the end-to-end tests' fixtures."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))

import importlib.util  # noqa: E402

spec = importlib.util.spec_from_file_location(
    "e2e_conftest", pathlib.Path(__file__).resolve().parents[1] / "e2e" / "conftest.py")
e2e = importlib.util.module_from_spec(spec)
sys.modules["e2e_conftest"] = e2e
spec.loader.exec_module(e2e)

cachegram = e2e.cachegram
record = e2e.record
built = e2e.built
e2e.LIMIT *= 6  # whole suites are one test here
pytest_runtest_protocol = e2e.pytest_runtest_protocol
FULL = e2e.FULL  # for test files of tests/e2e that are imported here
run = e2e.run
