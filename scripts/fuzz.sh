#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds the fuzz targets of tests/fuzz with clang (address and undefined-behaviour sanitizers) and runs each
# for some seconds, all at the same time, from seeds that the command itself writes. What is found is kept in build/fuzz.
#
# usage: scripts/fuzz.sh SECONDS         exit status 77: no clang that can do it
set -eu
cd "$(dirname "$0")/.."

seconds=$1
out=build/fuzz
flags="-g -O1 -std=gnu11 -D_GNU_SOURCE -Isrc -fno-sanitize-recover=all"
# Buffers are large and short-lived here: freed ones are better used again than kept aside.
export ASAN_OPTIONS=quarantine_size_mb=4:thread_local_quarantine_size_kb=64
mkdir -p $out
echo 'int LLVMFuzzerTestOneInput(const char *d, unsigned long n); int LLVMFuzzerTestOneInput(const char *d, unsigned long n) { return d && n ? 0 : 0; }' >$out/probe.c
if ! clang -fsanitize=fuzzer,address,undefined -o $out/probe $out/probe.c 2>/dev/null; then
    echo "fuzz.sh: no clang with libFuzzer; nothing was fuzzed" >&2
    exit 77
fi

# Seeds: a byte that names the format (see fuzz_trace.c), then a small trace in it.
cachegram=build/src/cli/cachegram
seeds=$out/seeds-trace
mkdir -p $seeds $out/seeds-columns $out/seeds-samples
{
    echo address,size,rw,pc,pid,tid,burst
    awk 'BEGIN { for (i = 0; i < 300; i++) printf "%d,%d,%s,%d,%d,%d,%d\n", (i * i) % 977 * 8, 1 + i % 8,
        i % 3 ? "load" : "store", 4096 + i % 7, 1 + i % 2, i % 5, i % 90 == 0 }' </dev/null
} >$out/seed.csv
$cachegram import -o $out/seed.trace $out/seed.csv 2>/dev/null
number=0
for format in cachegram lackey din csv usf; do
    [ $format = usf ] && number=5
    printf "\\x0$number" >"$seeds/$format"
    $cachegram export --to $format -o - $out/seed.trace 2>/dev/null >>"$seeds/$format"
    number=$((number + 1))
done
printf '\x04\x19\0\0\0\x05\0\0\0\0\0\0\0\x16\0\x04\0\x07\0\0\0\0\0\0\0\x0a\0\x03\0\0\x10\x40\0\0\0\0\0\0\0\x08\0\0\x20\0\0\0\0\0\0' \
    >$seeds/drmemtrace
# The same with the bit that asks for a round trip.
for seed in "$seeds"/*[a-z]; do
    printf "\\x1$(head -c 1 "$seed" | od -An -tu1 | tr -d ' ')" >"$seed-1"
    tail -c +2 "$seed" >>"$seed-1"
done
head -c 2000 $out/seed.trace >$out/seeds-columns/some
$cachegram sample --window 100 --hibernate 10 --samples 20 -o $out/seed.db $out/seed.trace 2>/dev/null
rm -f $out/seeds-samples/usf
$cachegram export --to usf -o $out/seeds-samples/usf $out/seed.db 2>/dev/null

# See struct head of fuzz_paths.c. Block 1 calls, block 2 returns; each record has a header and the stack pointer.
mkdir -p $out/seeds-paths
python3 - $out/seeds-paths/calls <<'END'
import struct, sys
CODE, STACK = 0x400000, 0x7ff000
def block(ends, rw):
    return struct.pack("<Q6H3I", CODE + 0x10, 2, 1, 1, 0, 0, 0, 0, ends, 5) + struct.pack("<qHBBBBBBBBBBI", 0, 8, rw, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0)
templates = bytes(8) + block(1, 2) + block(2, 1)
module = struct.pack("<QQQ", CODE, CODE + 0x10000, 0)
words = [0] * 64
words[4], words[5], words[8], words[9] = STACK + 64, CODE + 0x20, STACK + 16, CODE + 0x10
buffers = b"".join(struct.pack("<4Q64Q4I", CODE + 0x99, STACK, STACK + 32, 64, *words, tid, tid, 1, 0) for tid in (0, 1, 0))
head = module * 3 + struct.pack("<I8IH", 2, 8, 8 + 56, 0, 0, 0, 0, 0, 0, len(templates) // 8)
head += bytes(-len(head) % 8) + buffers
records = b"".join(struct.pack("<QQ", 1 + i % 3 // 2 | 2 << 20, STACK - 64 * (i % 20)) for i in range(60))
open(sys.argv[1], "wb").write(head + templates + records)
END

# A jitdump: lines, unwinding information and code of a function, the function again, and a move.
mkdir -p $out/seeds-jit
python3 - $out/seeds-jit/dump <<'END'
import struct, sys
def record(kind, time, body):
    return struct.pack("<IIQ", kind, 16 + len(body), time) + body
def load(time, address, name):
    return record(0, time, struct.pack("<IIQQQQ", 1, 1, address, address, 16, 0) + name + b"\0" + b"\x90" * 16)
def lines(address, files):
    return record(2, 5, struct.pack("<QQ", address, len(files))
                  + b"".join(struct.pack("<Qii", address + 64 + 4 * i, 7 + i, 0) + file + b"\0" for i, file in enumerate(files)))
dump = struct.pack("<6I2Q", 0x4a695444, 1, 40, 62, 0, 1, 3, 0)
dump += lines(0x1000, [b"a.js", b"\xff", b"b.js"]) + record(4, 5, bytes(8)) + load(6, 0x1000, b"f a.js:7:1")
dump += lines(0x1008, [b"\x01" * 16 + b"ir/long.js"] * 2) + load(9, 0x1008, b"g /a/very/long/dir/long.js:7:1")
dump += record(1, 12, struct.pack("<IIQQQQQ", 1, 1, 0x2000, 0x1000, 0x2000, 16, 0)) + record(3, 13, b"") + load(14, 0x1000, b"h")
open(sys.argv[1], "wb").write(dump)
END

# Of these, each target uses some.
sources="src/trace/*.c src/base/array.c src/base/error.c"
jit_sources="src/symbols/jit-dump.c src/symbols/jit-entries.c src/base/array.c"
path_sources="src/collect/records/decode*.c src/collect/reduce/call-paths.c src/collect/reduce/code.c
    src/collect/reduce/sampled-table.c src/collect/objects/callers.c src/collect/objects/frames.c
    src/collect/objects/table.c src/symbols/data.c src/symbols/definitions.c src/symbols/demangle.c
    src/symbols/image.c src/symbols/jit-dump.c src/symbols/jit-entries.c src/symbols/jit-map.c src/symbols/line-rows.c
    src/symbols/locals.c src/symbols/mangled.c src/symbols/members.c src/symbols/plt.c src/symbols/scopes.c src/symbols/servers.c
    src/symbols/unwind.c src/base/array.c src/base/error.c src/base/pages.c"
objects=$out/objects
objects_of() {
    local file
    for file in "$@"; do
        echo "$objects/${file%.c}.o"
    done
}
# Each file once, whatever the number of targets that use it.
# shellcheck disable=SC2086 # lists of words
compile="$(printf '%s\n' $sources $jit_sources $path_sources tests/fuzz/*.c | sort -u)"
# shellcheck disable=SC2016 # for the shell that is started
xargs -P "$(nproc)" -I % sh -c 'mkdir -p "$1/$(dirname %)" && clang $2 -fsanitize=fuzzer-no-link,address,undefined -c -o "$1/$(echo % | sed s/c$/o/)" %' \
    sh $objects "$flags" <<<"$compile"
fuzz_target() {
    local target=$1 files=$sources
    [ "$target" = paths ] && files=$path_sources
    [ "$target" = jit ] && files=$jit_sources
    # shellcheck disable=SC2046,SC2086 # lists of words
    clang -fsanitize=fuzzer,address,undefined -o $out/fuzz_$target $(objects_of tests/fuzz/fuzz_$target.c $files) \
        -ldw -lelf -liberty -lzstd -lm -lpthread || return 1
    mkdir -p $out/corpus-$target
    if ! $out/fuzz_$target -max_total_time="$seconds" -timeout=20 -rss_limit_mb=3000 -max_len=6000 -artifact_prefix=$out/ \
        $out/corpus-$target $out/seeds-$target >$out/$target.log 2>&1; then
        tail -40 $out/$target.log
        echo "fuzz.sh: fuzz_$target found something: see $out" >&2
        return 1
    fi
    echo "fuzz_$target: $(tail -1 $out/$target.log)"
}
jobs=()
for target in columns trace samples paths jit; do
    fuzz_target $target &
    jobs+=($!)
done
status=0
for job in "${jobs[@]}"; do
    wait "$job" || status=1
done
exit $status
