#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The long tests alone (about an hour): stress-ng's checks and CPython's test suite, alone and under frequent bursts;
# a million random instruction sequences. Needs what `make test` builds. Arguments go to pytest:
# scripts/test-long.sh -k threading
set -e
cd "$(dirname "$0")/.."
for need in stress-ng /usr/bin/python3; do
    command -v "$need" >/dev/null || { echo "test-long: $need is not installed" >&2; exit 1; }
done
/usr/bin/python3 -c 'import test.test_signal' 2>/dev/null ||
    { echo "test-long: CPython's tests are not installed (scripts/install-deps.sh long)" >&2; exit 1; }
exec /usr/bin/python3 -m pytest -p no:cacheprovider -q tests/long "$@"
