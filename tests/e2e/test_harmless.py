# SPDX-License-Identifier: Apache-2.0
"""Real programs write the same bytes and end the same way under the profiler as alone.

Each case makes its input (sized for the mode: full mode costs some ten times the native time), runs the
command natively and recorded, and compares outputs, exit status, and every file that the command made.
"""
import os
import random
import shutil
import socket
import subprocess
import time

import pytest

from conftest import BURST, MODES, need, run, totals

DEBUG_INFO = False


def text(path, size):
    """Compressible text, the same on every machine."""
    rng = random.Random(7)
    words = ["".join(rng.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(rng.randint(2, 9))) for _ in range(3000)]
    out = []
    have = 0
    while have < size:
        line = " ".join(rng.choices(words, k=12)) + "\n"
        out.append(line)
        have += len(line)
    path.write_text("".join(out)[:size])
    return path


def compressor(*argv):
    def case(d, scale):
        text(d / "in", int(argv[-1] * scale))
        return ["sh", "-c", f"{' '.join([need(argv[0]), *argv[1:-1]])} < in > packed; echo $?"]

    case.program = argv[0]
    return case


def perl(d, scale):
    (d / "x.pl").write_text("my (%h, $s);\nfor my $i (1..$ARGV[0]) { my $k = ($i * 7919) % 10007; $h{\"k$k\"} += $i;\n"
                            "  $s .= chr(97 + $k % 26); $s =~ s/abc/x/g if $i % 1000 == 0; }\n"
                            "print join(',', map { \"$_=$h{$_}\" } (sort keys %h)[0..50]), ' ', length $s, \"\\n\";\n")
    return [need("perl"), "x.pl", int(600000 * scale)]


def python(d, scale):
    (d / "x.py").write_text("import sys, json, re, collections\n"
                            "n = int(sys.argv[1])\nc = collections.Counter(str(i * i)[-3:] for i in range(n))\n"
                            "s = json.dumps(c, sort_keys=True)\nassert json.loads(s) == c\n"
                            "print(len(re.findall(r'\\d+', s)), s[:300])\nsys.exit(5)\n")
    return ["/usr/bin/python3", "x.py", int(800000 * scale)]


def sqlite(d, scale):
    rows = int(60000 * scale)
    (d / "x.sql").write_text("create table t(a integer primary key, b text, c real);\n"
                             f"with recursive n(i) as (select 1 union all select i+1 from n where i < {rows})"
                             " insert into t select i, 'row ' || (i * 7919 % 10007), i * 0.5 from n;\n"
                             "create index tb on t(b);\nselect b, count(*), sum(c) from t group by b order by 3 desc limit 9;\n"
                             "select count(*) from t x join t y on x.b = y.b where x.a < 3000;\npragma integrity_check;\n")
    return ["sh", "-c", f"{need('sqlite3')} data.sqlite < x.sql"]


C_SOURCE = """#include <stdio.h>
#include <stdlib.h>
static int cmp(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
int main(void) { int v[100]; for (int i = 0; i < 100; i++) v[i] = i * 7919 % 101;
qsort(v, 100, sizeof *v, cmp); for (int i = 0; i < 100; i++) printf("%d ", v[i]); puts(""); return 0; }
"""


def gcc(d, scale):
    bodies = "".join(f"int f{i}(int x) {{ int s = {i}; for (int j = 0; j < x; j++) s = s * 31 + (j ^ {i}); return s; }}\n"
                     for i in range(int(400 * scale)))
    (d / "x.c").write_text(C_SOURCE + bodies)
    return ["sh", "-c", f"{need('gcc')} -O2 -c x.c -o x.o && gcc x.o -o x && ./x"]


def gxx(d, scale):
    (d / "x.cpp").write_text("#include <map>\n#include <stdexcept>\n#include <string>\n#include <cstdio>\n#include <cstdlib>\n"
                             "static int f(int n) { if (n == 0) throw std::out_of_range(\"zero\"); return f(n - 1) + 1; }\n"
                             "int main(int, char **v) { std::map<std::string, int> m; int c = 0, n = atoi(v[1]);\n"
                             "for (int i = 0; i < n; i++) { m[std::to_string(i % 5000)] += i;\n"
                             "if (i % 100 == 0) try { f(i % 17); } catch (const std::exception &e) { c += e.what()[0]; } }\n"
                             "std::printf(\"%zu %d %d\\n\", m.size(), c, m[\"42\"]); throw 3; }\n")
    subprocess.run([need("g++"), "-O1", "x.cpp", "-o", "x"], cwd=d, check=True)
    return ["sh", "-c", f"ulimit -c 0; exec ./x {int(1000000 * scale)}"]  # ends by an uncaught exception


def hmmsearch(d, scale):
    rng = random.Random(3)
    acids = "ACDEFGHIKLMNPQRSTVWY"
    base = "".join(rng.choice(acids) for _ in range(120))

    def vary(s, share):
        return "".join(rng.choice(acids) if rng.random() < share else c for c in s)

    (d / "a.sto").write_text("# STOCKHOLM 1.0\n\n" + "".join(f"seq{i:<8}{vary(base, 0.2)}\n" for i in range(12)) + "//\n")
    with open(d / "db.fa", "w") as f:
        for i in range(int(8000 * scale)):
            s = vary(base, 0.4) if i % 50 == 0 else "".join(rng.choice(acids) for _ in range(300))
            f.write(f">s{i}\n{s}\n")
    subprocess.run([need("hmmbuild"), "a.hmm", "a.sto"], cwd=d, check=True, stdout=subprocess.DEVNULL)
    # One worker thread: the order of hits with the same score is not fixed with more. Times are reported: cut off.
    return ["sh", "-c", f"{need('hmmsearch')} --cpu 1 --seed 7 -o out.raw --tblout t.raw a.hmm db.fa; s=$?;"
            " grep -v -e '^#' -e Mc/sec out.raw; grep -v '^#' t.raw; rm out.raw t.raw; exit $s"]


def gnugo(d, scale):
    moves = 6 if scale >= 1 else 2
    (d / "in.gtp").write_text("boardsize 9\n" + "genmove b\ngenmove w\n" * moves + "showboard\nquit\n")
    return ["sh", "-c", f"{need('gnugo')} --mode gtp --seed 5 --level {5 if scale >= 1 else 1} < in.gtp"]


def povray(d, scale):
    (d / "s.pov").write_text("camera { location <0,2,-6> look_at 0 }\nlight_source { <5,9,-5> rgb 1 }\n"
                             "plane { y, -1 pigment { checker rgb 1 rgb 0.2 } }\n"
                             "#declare i = 0; #while (i < 12) sphere { <2*sin(i), 0.3*i-1, 2*cos(i)>, 0.5\n"
                             "pigment { rgb <0.1*i, 0.5, 0.8> } finish { reflection 0.4 } } #declare i = i + 1; #end\n")
    side = 160 if scale >= 1 else 48
    # Its messages tell times; the picture and the status are what counts.
    return ["sh", "-c", f"{need('povray')} +Is.pov +Oout.ppm +FP +W{side} +H{side} +A0.3 +WT1 -D -GA 2>/dev/null; s=$?;"
            " sed -i /^#/d out.ppm; exit $s"]  # the comments tell the date


def openssl(d, scale):
    text(d / "in", int(12000000 * scale))
    tool, iterations = need("openssl"), int(20000 * scale)
    return ["sh", "-c", f"{tool} dgst -sha256 in; {tool} dgst -md5 in; {tool} enc -aes-256-cbc -pbkdf2 -iter {iterations}"
            f" -S 0011223344556677 -pass pass:x -in in -out enc && {tool} enc -d -aes-256-cbc -pbkdf2 -iter {iterations}"
            " -pass pass:x -S 0011223344556677 -in enc -out dec && cmp in dec"]


def sevenzip(d, scale):
    text(d / "in", int(1500000 * scale))
    os.utime(d / "in", (1e9, 1e9))
    return ["sh", "-c", f"{need('7z')} a -mmt=1 -mtc=off -mta=off -bb0 -bd o.7z in >/dev/null && 7z x -so o.7z | cmp - in"]


def node(d, scale):
    (d / "x.js").write_text("const n = +process.argv[2]; const m = new Map(); let s = '';\n"
                            "for (let i = 0; i < n; i++) { const k = 'k' + (i * 7919 % 10007); m.set(k, (m.get(k) || 0) + i);\n"
                            "if (i % 1000 === 0) { s += JSON.stringify({k, v: m.get(k)}); try { null.x } catch (e) { s += e.name } } }\n"
                            "setTimeout(() => { console.log(m.size, s.length, s.slice(0, 200)); process.exitCode = 6 }, 5);\n")
    return [need("node"), "x.js", int(3000000 * scale)]


CASES = {
    "bzip2": compressor("bzip2", "-9", 4e6), "gzip": compressor("gzip", "-6", "-n", 8e6),
    "xz-T1": compressor("xz", "-3", "-T1", 2e6), "xz-T2": compressor("xz", "-2", "-T2", "--block-size=500000", 3e6),
    "zstd": compressor("zstd", "-9", "-q", 6e6), "pigz": compressor("pigz", "-p", "2", "-n", 8e6),
    "perl": perl, "python3": python, "sqlite3": sqlite, "gcc": gcc, "g++": gxx, "hmmsearch": hmmsearch,
    "gnugo": gnugo, "povray": povray, "openssl": openssl, "7z": sevenzip, "node": node,
}
# Inputs of full mode against those of burst mode; and where a program needs less to do all that it does.
FULL_SCALE = 0.1
OWN_SCALE = {"burst": {"gcc": 0.25, "node": 0.3, "xz-T1": 0.4, "xz-T2": 0.4, "7z": 0.5, "zstd": 0.5},
             "full": {"gcc": 0.02, "node": 0.01, "7z": 0.05, "perl": 0.05, "python3": 0.02, "openssl": 0.05, "zstd": 0.05,
                      "g++": 0.05}}


def files(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def same_environment(folder):
    env = dict(os.environ, HOME=str(folder), TMPDIR=str(folder), LC_ALL="C", PERL_HASH_SEED="0", PYTHONHASHSEED="0",
               SOURCE_DATE_EPOCH="1000000000", PYTHONDONTWRITEBYTECODE="1")
    return env


EARLY = {"early": ["--allowance", "300ms"]}  # the modes change in the middle of the run


@pytest.mark.in_turns
@pytest.mark.parametrize("mode", MODES | EARLY)
@pytest.mark.parametrize("name", CASES)
def test_harmless(record, tmp_path, name, mode):
    scale = OWN_SCALE["full" if mode == "full" else "burst"].get(name, 1 if mode in ("burst", "early") else FULL_SCALE)
    folder = tmp_path / "work"  # the same path in both runs: it may be part of the output
    folder.mkdir()
    argv = CASES[name](folder, scale)
    shutil.copytree(folder, tmp_path / "clean", symlinks=True)
    native = run(argv, cwd=folder, env=same_environment(folder))
    native_files = files(folder)
    shutil.rmtree(folder)
    shutil.copytree(tmp_path / "clean", folder, symlinks=True)
    result, db = record((MODES | EARLY)[mode], argv, cwd=folder, env=same_environment(folder))
    assert result.status == native.status, result.err[-500:]
    assert result.out == native.out
    assert result.err == native.err
    assert result.summary.startswith(b"cachegram: ")
    got = files(folder)
    assert got.keys() == native_files.keys()
    for path, content in native_files.items():
        assert got[path] == content, path
    total = totals(db)
    assert total["references"] > 0 and (mode != "burst" or total["bursts"] > 0)
    assert total["loads"] + total["stores"] == total["references"]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def test_redis_under_load(cachegram, tmp_path):
    """A server that lives through a benchmark, answers right, and shuts down on request."""
    port = free_port()
    db = tmp_path / "redis.db"
    server = [need("redis-server"), "--port", str(port), "--save", "", "--dir", str(tmp_path), "--daemonize", "no"]
    client = shutil.which("redis-cli") or need("redis-cli")
    bench = need("redis-benchmark")
    with open(tmp_path / "log", "wb") as log:
        p = subprocess.Popen([cachegram, "record", "-o", str(db), *BURST, "--", *server], stdout=log, stderr=log,
                             start_new_session=True)
        try:
            for _ in range(100):
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    time.sleep(0.1)
            subprocess.run([bench, "-p", str(port), "-q", "-n", "15000", "-c", "20", "-r", "5000", "-t",
                            "set,get,lpush,lrange_100,zadd"], check=True, stdout=subprocess.DEVNULL, timeout=100)

            def ask(*words):
                return subprocess.run([client, "-p", str(port), *words], check=True, capture_output=True,
                                      timeout=30).stdout

            assert ask("set", "a", "b") == b"OK\n" and ask("get", "a") == b"b\n"
            script = "local s = 0 for i = 1, 300000 do s = s + i % 7 end return s"
            assert ask("eval", script, "0") == b"%d\n" % sum(i % 7 for i in range(1, 300001))
            ask("bgsave")
            subprocess.run([client, "-p", str(port), "shutdown", "nosave"], timeout=30, capture_output=True)
            assert p.wait(30) == 0
        finally:
            if p.poll() is None:
                os.killpg(p.pid, 9)
                p.wait()
    assert totals(db)["references"] > 0


def test_profile_is_readable_by_report(record, cachegram, tmp_path):
    text(tmp_path / "in", 1000000)
    _, db = record(BURST, [need("bzip2"), "-c", tmp_path / "in"])
    for form in ("text", "json", "csv"):
        assert run([cachegram, "report", "--format", form, db]).status == 0
