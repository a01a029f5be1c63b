#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# End-to-end tests with the command (recorder, analysis, reports) built with address and undefined-behaviour sanitizers;
# the library that is loaded into targets is the ordinary one. Fails if a sanitizer reports anything. Tests that fail for
# another reason are listed and do not count: this recorder is several times as slow, and some of them need its speed.
# Half an hour for all. Needs what `make test` builds, and clang: with gcc's both sanitizers, what is undefined is reported
# on stderr alone, among the output of the tests.
#
# usage: scripts/test-sanitized.sh [FILE...]     tests/e2e/test_objects.py, say
set -eu
cd "$(dirname "$0")/.."
library=$PWD/build/src/agent/libcachegram-agent.so
[ -e "$library" ] || { echo "test-sanitized.sh: $library is missing: make build" >&2; exit 2; }
command -v clang >/dev/null || { echo "test-sanitized.sh: clang is missing" >&2; exit 2; }
[ $# -gt 0 ] || set -- tests/e2e
folder=build-asan-command
CC=clang scripts/build.sh $folder -Dlibrary=false -Db_sanitize=address,undefined -Db_lundef=false -Doptimization=1 \
    -Dwerror=false -Dc_args="-fno-sanitize-recover=all -fno-sanitize=pointer-overflow -g1" >/dev/null
reports=$(mktemp -d)
chmod 777 "$reports" # some tests give up being root
trap 'rm -rf "$reports"' EXIT
export CACHEGRAM=$PWD/$folder/src/cli/cachegram CACHEGRAM_AGENT=$library
export ASAN_OPTIONS=detect_leaks=0:log_path=$reports/address
export UBSAN_OPTIONS=print_stacktrace=1:log_path=$reports/undefined
# 1: tests failed. 2 and more: pytest itself did.
/usr/bin/python3 -m pytest -q --tb=no -p no:cacheprovider -n "$(nproc)" --dist loadfile -m "not alone" "$@" || [ $? -eq 1 ]
if [ -n "$(ls -A "$reports")" ]; then
    cat "$reports"/*
    exit 1
fi
