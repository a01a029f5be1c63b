#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Profiles perl as it counts the words of 128 MB of this machine's own files, and shows the report. After
# `make build`.
set -eu
cd "$(dirname "$0")/.."

cachegram=$PWD/build/src/cli/cachegram
demo=build/demo
rm -rf "$demo"
mkdir -p "$demo"
cd "$demo"

# Real input that every machine with a compiler has: headers, then libraries and programs.
# head closes the pipe early, which tar calls an error.
{ tar --sort=name -C / -cf - usr/include usr/lib/gcc 2>/dev/null || :; } | head -c 128M >input.tar
cp ../../scripts/words.pl .

# With the default budget of 5% a run of ten seconds has some 80 bursts, and two runs may differ by half a point.
echo "\$ cachegram record --overhead 20 -o demo.db -- perl words.pl input.tar > /dev/null"
"$cachegram" record --overhead 20 -o demo.db -- perl words.pl input.tar >/dev/null
echo
echo "\$ cachegram report demo.db"
"$cachegram" report demo.db
rm input.tar
