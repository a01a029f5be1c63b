#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# StatCC against simulation, on programs of Debian: traces them (full mode), picks ten as the paper did,
# simulates all 55 pairs and 20 quads of them, and prints the tables of docs/accuracy.md. Takes about 15
# minutes and 1.5 GB below FOLDER; traces that are there already are taken as they are.
#
# usage: scripts/bench-corun.sh [FOLDER [REFERENCES]]      (make bench-corun; default build/bench-corun, 20000000)
set -eu
cd "$(dirname "$0")/.."
root=$PWD
cachegram=$PWD/build/src/cli/cachegram
bench=$PWD/build/tests/bench_corun
folder=${1:-build/bench-corun}
references=${2:-20000000}
mkdir -p "$folder"
cd "$folder"

# Inputs: text of random words, common ones more often; binary data from what Debian's compiler is made of.
cc1=$(gcc -print-prog-name=cc1)
perl -e 'srand(7); my @w = map { join "", map { chr(97 + int rand 26) } 1 .. 2 + int rand 9 } 1 .. 20000;
         for (1 .. 60000) { print join(" ", map { $w[int(20000 * rand() ** 3)] } 1 .. 8), "\n" }' >text
tail -c +8000001 "$cc1" | head -c 3000000 >binary
head -c 1600000 binary >binary-half
bzip2 -c text >text.bz2
xz -9 -c text >text.xz
echo 'scale=350; 4*a(1)' >pi.bc
gcc -E -P -D_GNU_SOURCE -I"$root/src" "$root/src/cli/main.c" >program.i
cat >join.sql <<'SQL'
create table t(a integer primary key, b integer, c text);
with recursive n(x) as (select 1 union all select x+1 from n where x<40000)
  insert into t select x, (x*7919)%40009, hex(x*x) from n;
create index i on t(b);
select sum(a.b), count(*) from t a join t b on a.b = b.a where b.c like '%A%';
SQL
cat >hash.pl <<'PERL'
my (%h, $s); my $x = 1;
for (1 .. 250000) { $x = ($x * 1103515245 + 12345) % 2147483648; $h{$x % 30000}++; }
$s += $h{$_} for sort keys %h;
print "$s\n";
PERL
cat >counts.py <<'PYTHON'
import random
random.seed(3)
d = {}
for i in range(400000):
    k = random.randrange(20000)
    d[k] = d.get(k, 0) + i
print(sum(v for k, v in sorted(d.items(), key=lambda x: (x[1] % 1000, x[0]))))
PYTHON

# trace NAME COMMAND...: one process, one thread, else lines of several would be taken for one's.
trace() {
    local name=$1
    shift
    [ -s "$name.cgt" ] && return
    if ! "$cachegram" record --mode full --trace "$name.part" -o "$name.db" -- "$@" >/dev/null 2>"$name.log" \
        </dev/null; then
        cat "$name.log" >&2
        echo "bench-corun.sh: tracing $name failed" >&2
        exit 1
    fi
    mv "$name.part" "$name.cgt"
    tail -n 1 "$name.log" >&2
}

export LC_ALL=C
trace bzip2 bzip2 -c binary-half
trace bunzip2 bzip2 -dc text.bz2
trace gzip gzip -c binary
trace xz xz -1 -T1 -c binary-half
trace unxz xz -dc text.xz
trace zstd zstd -q --single-thread -12 -c binary
trace sqlite sqlite3 :memory: '.read join.sql'
trace perl perl hash.pl
trace python /usr/bin/python3 counts.py
trace sort sort --parallel=1 text
trace cc1 "$cc1" -quiet -O2 program.i -o program.s
trace awk awk '{for(i=1;i<=NF;i++)c[$i]++} END{for(w in c)n+=c[w]*length(w); print n}' text
trace bc bc -l pi.bc

exec "$bench" --references "$references" ./*.cgt
