#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# StatCC against simulation, on programs of Debian, and prints the tables of docs/accuracy-models.md. Each program does
# the same work, some 100 million references, over and over in one process. Three rounds of it are traced (full
# mode), and the middle one is the window that is simulated: ten programs, picked as the paper did, all 55 pairs
# and 20 quads of them. Besides, as many rounds as take SECONDS are recorded in burst mode at 5% overhead, and all
# pairs solved from these profiles too. 1.5 GB below FOLDER; traces and profiles that are there already are taken
# as they are. It takes some 20 minutes of CPU time, most of it the simulation.
#
# The time of the three rounds, just before that, is kept as nanoseconds an instruction: to compare with what the
# profile tells.
#
# usage: scripts/bench-corun.sh [--folder FOLDER] [--references N] [--seconds SECONDS] [--only-bursts]
#   --references N    windows of at most N references, from the middle round (default: all of it)
#   --seconds S       CPU time of each program in burst mode (default 15; 0: no bursts)
#   --only-bursts     only the pairs from profiles of bursts
set -eu
cd "$(dirname "$0")/.."
. scripts/rounds.sh
cachegram=$PWD/build/src/cli/cachegram
bench=$PWD/build/tests/bench_corun
folder=build/bench-corun
references=0
seconds=15
options=()
while [ $# -gt 0 ]; do
    case $1 in
    --folder) folder=$2 ;;
    --references) references=$2 ;;
    --seconds) seconds=$2 ;;
    --only-bursts)
        options+=(--only-bursts)
        shift
        continue
        ;;
    *)
        echo "bench-corun.sh: unknown option $1" >&2
        exit 2
        ;;
    esac
    shift 2
done
mkdir -p "$folder"
cd "$folder"
export LC_ALL=C
ROUNDS=3

make_inputs

# record NAME OPTION...: the program in `command`
record() {
    local name=$1
    shift
    if ! "$cachegram" record "$@" -- "${command[@]}" >/dev/null 2>"$name.log" </dev/null; then
        cat "$name.log" >&2
        echo "bench-corun.sh: recording $name failed" >&2
        exit 1
    fi
    tail -n 1 "$name.log" >&2
}

for name in $programs; do
    make_command "$name" $ROUNDS
    [ -s "$name.cgt" ] && continue
    record "$name" --mode full --trace "$name.part" -o "$name.db"
    mv "$name.part" "$name.cgt"
done
if [ "$seconds" != 0 ]; then
    options+=(--profiles bursts)
    mkdir -p bursts
    for name in $programs; do
        [ -s "bursts/$name.db" ] && continue
        make_command "$name" $ROUNDS
        TIMEFORMAT=%U
        took=$({ time "${command[@]}" >/dev/null 2>&1 </dev/null; } 2>&1)
        instructions=$(sqlite3 "$name.db" "SELECT value FROM run WHERE key = 'instructions'")
        awk -v t="$took" -v i="$instructions" 'BEGIN { print 1e9 * t / i }' >"bursts/$name.ns"
        make_command "$name" "$(awk -v s="$seconds" -v r=$ROUNDS -v t="$took" 'BEGIN { print int(s * r / t) + 1 }')"
        record "$name" --overhead 5 -o "bursts/$name.part"
        mv "bursts/$name.part" "bursts/$name.db"
    done
fi
exec "$bench" --rounds $ROUNDS --references "$references" "${options[@]}" ./*.cgt
