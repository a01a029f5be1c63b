#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs `cachegram verify` on programs of a second or so, those that are installed, and prints a table of the errors.

usage: verify-programs.py [--cachegram PATH] [--programs NAME,...]

Takes some twenty minutes. The programs are ones for which nothing was fitted; their inputs are made here. docs/accuracy.md
has the means.
"""
import argparse
import contextlib
import json
import pathlib
import random
import shutil
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent

PROGRAMS = {
    "gawk": "gawk '{for(i=1;i<=NF;i++)c[$i]++}END{for(w in c)n+=c[w];print n}' text",
    "mawk": "mawk '{for(i=1;i<=NF;i++)c[$i]++}END{for(w in c)n+=c[w];print n}' text",
    "sort": "sort --parallel=1 text -o /dev/null",
    "zstd": "zstd -q -9 -c text",
    "lz4": "lz4 -9 -c text",
    "gs": "gs -q -dNOPAUSE -dBATCH -sDEVICE=ppmraw -r100 -sOutputFile=/dev/null page.ps page.ps page.ps",
    "Rscript": "Rscript --vanilla -e 'set.seed(1);print(sum(svd(matrix(rnorm(4e5),ncol=400))$d));print(sort(rnorm(2e6))[10])'",
    "octave-cli": "octave-cli --no-gui --norc --eval 'A=rand(300);for i=1:20,[q,r]=qr(A);A=r*q;end;disp(sum(diag(A)))'",
    "ruby": "ruby -e 'h=Hash.new(0);s=1;900000.times{s=(s*16807)%2147483647;h[s%50021]+=1};puts h.size'",
    "php": "php -r 'mt_srand(1);for($i=0;$i<900000;$i++)$a[]=mt_rand();sort($a);foreach($a as $x)$h[$x%10007]=1;echo count($h);'",
    "lua": "lua -e 'local t,s={},1 for i=1,20000000 do s=(s*16807)%2147483647 t[s%65537]=(t[s%65537] or 0)+1 end print(#t)'",
    "bc": "bc -lq pi.bc",
    "xmllint": "xmllint --noout --repeat x.xml x.xml x.xml x.xml",
    "jq": "jq -c 'group_by(.k)|map({k:.[0].k,n:length})|length' x.json",
    "tclsh": "tclsh hash.tcl",
    "guile": "guile --no-auto-compile -c '(define (f n) (if (< n 2) n (+ (f (- n 1)) (f (- n 2))))) (display (f 31))'",
    "ocaml": "ocaml map.ml",
    "swipl": "swipl -g 'numlist(1,300000,L),msort(L,M),foldl([X,A,B]>>(B is A+X),M,0,S),print(S),nl,halt'",
    "gcc": "gcc -O2 -c -o /dev/null functions.c",
    "git": f"git -C {ROOT} log -p --stat -n 60",
    "pigz": "pigz -p 1 -c text",
}


def make_inputs():
    draw = random.Random(1).randint
    sources = "".join(p.read_text() for p in sorted(ROOT.glob("src/**/*.c")))
    pathlib.Path("text").write_text(8 * sources)
    shapes = (f"/Helvetica findfont {draw(8, 30)} scalefont setfont {draw(0, 600)} {draw(0, 780)} moveto (word{i}) show\n"
              f"newpath {i % 600} {draw(0, 600)} {draw(1, 30)} 0 360 arc fill\n" for i in range(6000))
    pathlib.Path("page.ps").write_text("%!PS\n" + "".join(shapes) + "showpage\n")
    pathlib.Path("pi.bc").write_text("scale=900\na=4*a(1)\nscale=300\nfor(i=1;i<60;i++) b+=sqrt(i)\nb\n")
    elements = (f"<e k='{draw(0, 999)}'><a>{i}</a><b>text {i * 7}</b></e>" for i in range(3000))
    pathlib.Path("x.xml").write_text("<r>" + "".join(elements) + "</r>")
    pathlib.Path("x.json").write_text(json.dumps([{"k": draw(0, 5000), "v": f"x{i}", "w": [i]} for i in range(120000)]))
    pathlib.Path("hash.tcl").write_text("set s 1\nfor {set i 0} {$i<500000} {incr i} {set s [expr {($s*16807)%2147483647}]\n"
                                        "incr h([expr {$s%20011}])}\nputs [array size h]\n")
    pathlib.Path("map.ml").write_text("module M=Map.Make(Int);; let () = let m=ref M.empty and s=ref 1 in for i=1 to 150000 do "
                                      "s:=(!s*16807) mod 2147483647; m:=M.add (!s mod 40009) i !m done; print_int (M.cardinal !m)\n")
    function = ("int f%d(int a,int b,int*p){int s=0;for(int i=0;i<a;i++){s+=p[i]*%d;if(s>b)s-=b^%d;"
                "switch(s&7){case 0:s+=3;break;case 1:s*=5;break;case 2:s^=p[b&7];break;default:s-=i;}}return s;}\n")
    pathlib.Path("functions.c").write_text("".join(function % (i, draw(1, 99), draw(1, 99)) for i in range(70)))


def error(points, low, high):
    """Mean absolute difference in percentage points."""
    known = [abs(p["estimate"] - p["exact"]) for p in points if low <= p["size_bytes"] <= high and p["estimate"] is not None]
    return 100 * statistics.mean(known) if known else float("nan")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cachegram", default=ROOT / "build/src/cli/cachegram")
    parser.add_argument("--programs", default=",".join(PROGRAMS))
    args = parser.parse_args()
    rows = []
    print("| program | references | bursts | error 32K-8M | error 1K-16K | intervals hold |\n" + 6 * "| --- " + "|")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        make_inputs()
        for name in args.programs.split(","):
            if not shutil.which(name):
                print(f"| {name} | not installed | | | | |", flush=True)
                continue
            command = [args.cachegram, "verify", "--format", "json", "--", "sh", "-c", f"exec {PROGRAMS[name]} > /dev/null"]
            result = subprocess.run(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, check=True)
            r = json.loads(result.stdout)
            row = (error(r["points"], 32 << 10, 8 << 20), error(r["points"], 1 << 10, 16 << 10), r["inside"] / len(r["points"]))
            rows += [row] if r["bursts"] else []
            print(f"| {name} | {r['exact_references']:.2g} | {r['bursts']} | {row[0]:.3f} | {row[1]:.3f} | {row[2]:.0%} |",
                  flush=True)
    if rows:
        mean = [statistics.mean(column) for column in zip(*rows)]
        print(f"| mean | | | {mean[0]:.3f} | {mean[1]:.3f} | {mean[2]:.0%} |")


if __name__ == "__main__":
    main()
