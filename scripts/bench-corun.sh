#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# StatCC against simulation, on programs of Debian, and prints the tables of docs/accuracy.md. Each program does
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

# Inputs: text of random words, common ones more often; binary data from what Debian's compiler is made of.
cc1=$(gcc -print-prog-name=cc1)
perl -e 'srand(7); my @w = map { join "", map { chr(97 + int rand 26) } 1 .. 2 + int rand 9 } 1 .. 20000;
         for (1 .. 100000) { print join(" ", map { $w[int(20000 * rand() ** 3)] } 1 .. 8), "\n" }' >text
tail -c +8000001 "$cc1" | head -c 4000000 >binary
head -c 600000 binary >binary-600K
head -c 900000 binary >binary-900K
head -c 1350000 binary >binary-1350K
head -c 1800000 text >text-1800K
head -c 450000 text >text-450K
bzip2 -c text-1800K >text.bz2
xz -9 -c text >text.xz
gzip -9 -c binary binary >binary.gz
cat >hash.pl <<'PERL'
for (1 .. shift) {
    my (%h, $s); my $x = 1;
    for (1 .. 125000) { $x = ($x * 1103515245 + 12345) % 2147483648; $h{$x % 30000}++; }
    $s += $h{$_} for sort keys %h;
    print "$s\n";
}
PERL
cat >sort.pl <<'PERL'
for (1 .. shift) {
    open my $f, '<', 'text-450K'; my @w; push @w, split while <$f>;
    my @s = sort @w; print "$s[0] $s[-1]\n";
}
PERL
cat >counts.py <<'PYTHON'
import random
import sys
for r in range(int(sys.argv[1])):
    random.seed(3)
    d = {}
    for i in range(45000):
        k = random.randrange(20000)
        d[k] = d.get(k, 0) + i
    print(sum(v for k, v in sorted(d.items(), key=lambda x: (x[1] % 1000, x[0]))))
PYTHON
sql='create table t(a integer primary key, b integer, c text);
with recursive n(x) as (select 1 union all select x+1 from n where x<23000)
  insert into t select x, (x*7919)%23011, hex(x*x) from n;
create index i on t(b);
select sum(a.b), count(*) from t a join t b on a.b = b.a where b.c like "%A%";
drop table t;'

# rounds N TEXT: it, N times
rounds() {
    for ((i = 0; i < $1; i++)); do
        echo "$2"
    done
}

# make_command NAME N: sets `command` to what makes N rounds. One process, one thread: else lines of several would be
# taken for one's.
make_command() {
    local n=$2 files
    case $1 in
    bzip2) mapfile -t files < <(rounds "$n" binary-600K) && command=(bzip2 -c "${files[@]}") ;;
    bunzip2) mapfile -t files < <(rounds "$n" text.bz2) && command=(bzip2 -dc "${files[@]}") ;;
    gzip) mapfile -t files < <(rounds "$n" binary-1350K) && command=(gzip -c "${files[@]}") ;;
    gunzip) mapfile -t files < <(rounds "$n" binary.gz) && command=(gzip -dc "${files[@]}") ;;
    xz) mapfile -t files < <(rounds "$n" binary-600K) && command=(xz -1 -T1 -c "${files[@]}") ;;
    unxz) mapfile -t files < <(rounds "$n" text.xz) && command=(xz -dc "${files[@]}") ;;
    zstd) mapfile -t files < <(rounds "$n" binary-900K) &&
        command=(zstd -q --single-thread -12 -c "${files[@]}") ;;
    sqlite) rounds "$n" "$sql" >"join-$n.sql" && command=(sqlite3 :memory: ".read join-$n.sql") ;;
    perl) command=(perl hash.pl "$n") ;;
    perlsort) command=(perl sort.pl "$n") ;;
    python) command=(/usr/bin/python3 counts.py "$n") ;;
    awk) mapfile -t files < <(rounds "$n" text-1800K) &&
        command=(awk 'FNR==1{for(w in c)n+=c[w]*length(w); delete c} {for(i=1;i<=NF;i++)c[$i]++} END{print n}'
            "${files[@]}") ;;
    bc) echo "scale=600; for (i = 0; i < $n; i++) x = 4*a(1); x" >"pi-$n.bc" && command=(bc -l "pi-$n.bc") ;;
    esac
}
programs="bzip2 bunzip2 gzip gunzip xz unxz zstd sqlite perl perlsort python awk bc"

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
