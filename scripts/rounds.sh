#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Programs of Debian that do the same work, some 100 million references, over and over in one process of one thread:
# what a few rounds of it do, all do.
#
# usage: scripts/rounds.sh inputs               makes what they read, in the current folder
#        scripts/rounds.sh command NAME N       the command for N rounds of NAME, words ended by NUL
#        scripts/rounds.sh programs             their names
#        . scripts/rounds.sh; make_command NAME N; echo "${command[@]}"; echo $programs

sql='create table t(a integer primary key, b integer, c text);
with recursive n(x) as (select 1 union all select x+1 from n where x<23000)
  insert into t select x, (x*7919)%23011, hex(x*x) from n;
create index i on t(b);
select sum(a.b), count(*) from t a join t b on a.b = b.a where b.c like "%A%";
drop table t;'

make_inputs() {
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
}

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

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
    set -eu
    export LC_ALL=C
    case ${1:-} in
    inputs) make_inputs ;;
    command)
        make_command "$2" "$3"
        printf '%s\0' "${command[@]}"
        ;;
    programs) echo "$programs" ;;
    *)
        echo "rounds.sh: what? (see the comment in it)" >&2
        exit 2
        ;;
    esac
fi
