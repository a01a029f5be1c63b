# SPDX-License-Identifier: Apache-2.0
"""Programs whose runs make a billion references and somewhat more: what bench-papers.py traces.

Inputs are made, or are part of the compiler. All run in one process and write only to their folder.
"""
import pathlib
import random
import shutil
import subprocess

import bench

GNUGO = "/usr/games/gnugo"
TOOLS = {"cc1": ["gcc"], "gnugo": [GNUGO], "hmmsearch": ["hmmsearch", "hmmbuild"], "python3": ["/usr/bin/python3"]}
AMINO_ACIDS = "ACDEFGHIKLMNPQRSTVWY"
SCENE = """camera { location <0, 6, -14> look_at <0, 1, 0> }
light_source { <10, 20, -10> color rgb 1 }
light_source { <-12, 9, -4> color rgb <0.3, 0.3, 0.5> }
plane { y, 0 pigment { checker color rgb 1 color rgb 0.2 } finish { reflection 0.2 } }
#declare R = seed(7);
#declare I = 0;
#while (I < 1500)
sphere { <rand(R) * 16 - 8, rand(R) * 6, rand(R) * 16 - 6>, 0.1 + rand(R) * 0.3
  pigment { color rgb <rand(R), rand(R), rand(R)> } finish { phong 0.8 reflection 0.15 } }
#declare I = I + 1;
#end
"""
PERL = """my (%count, @order); srand(7);
for my $i (1 .. $ARGV[0]) { my $word = join '', map { chr(97 + int rand 26) } 1 .. 3; $count{$word} .= " $i"; }
for my $word (sort { length $count{$b} <=> length $count{$a} || $a cmp $b } keys %count) {
  push @order, scalar(my @all = split ' ', $count{$word}); }
print "$order[0] ", scalar(@order), "\\n";
"""
PYTHON = """import json, random, sys
rng = random.Random(7)
items = [{"id": i, "name": "n%d" % rng.randrange(5000), "values": [rng.random() for _ in range(4)]}
         for i in range(int(sys.argv[1]))]
text = json.dumps(items)
groups = {}
for item in json.loads(text):
    groups.setdefault(item["name"], []).append(sum(item["values"]))
print(len(text), max(groups, key=lambda name: sum(groups[name])))
"""


def part_of_cc1(path, size):
    """The compiler's first bytes, from the start again if there are not enough: real data, of several kinds."""
    data = pathlib.Path(cc1()).read_bytes()
    path.write_bytes((data * (size // len(data) + 1))[:size])
    return str(path)


def cc1():
    return subprocess.run(["gcc", "-print-prog-name=cc1"], capture_output=True, text=True, check=False).stdout.strip()


def written(path, text):
    path.write_text(text)
    return str(path)


def proteins(d, families, sequences):
    """A profile of many families and a file of sequences, a tenth of them relatives of one family."""
    rng = random.Random(7)
    ancestors = ["".join(rng.choices(AMINO_ACIDS, k=180)) for _ in range(families)]

    def relative(ancestor, change):
        return "".join(rng.choice(AMINO_ACIDS) if rng.random() < change else a for a in ancestor)

    with open(d / "families.hmm", "w", encoding="ascii") as out:
        for i, ancestor in enumerate(ancestors):
            rows = "".join(f"s{k} {relative(ancestor, 0.3)}\n" for k in range(12))
            argv = ["hmmbuild", "--amino", str(d / "one.hmm"),
                    written(d / "family.sto", f"# STOCKHOLM 1.0\n#=GF ID family{i}\n{rows}//\n")]
            subprocess.run(argv, stdout=subprocess.DEVNULL, check=True)
            out.write((d / "one.hmm").read_text())
    with open(d / "sequences.fa", "w", encoding="ascii") as out:
        for k in range(sequences):
            body = relative(rng.choice(ancestors), 0.5) if k % 10 == 0 else \
                "".join(rng.choices(AMINO_ACIDS, k=rng.randint(80, 600)))
            out.write(f">q{k}\n{body}\n")
    return [str(d / "families.hmm"), str(d / "sequences.fa")]


def programs(scale=1):
    """name: function that makes the program's input in a folder and returns its argv. scale: times the references."""
    return {
        "bzip2": lambda d: ["bzip2", "-c", part_of_cc1(d / "data", 5000000 * scale)],
        "gzip": lambda d: ["gzip", "-c", part_of_cc1(d / "data", 16000000 * scale)],
        "xz": lambda d: ["xz", "-T1", "-3", "-c", part_of_cc1(d / "data", 7000000 * scale)],
        "cc1": lambda d: [cc1(), "-quiet", "-O2", bench.c_source(d / "x.c", 95 * scale), "-o", str(d / "x.s")],
        "perl": lambda d: ["perl", written(d / "x.pl", PERL), str(260000 * scale)],
        "python3": lambda d: ["/usr/bin/python3", written(d / "x.py", PYTHON), str(60000 * scale)],
        "sqlite3": lambda d: ["sqlite3", "-batch", "-init", bench.sql(d / "x.sql", 180000 * scale), ":memory:", ""],
        "hmmsearch": lambda d: ["hmmsearch", "--cpu", "0", *proteins(d, 10, 3800 * scale)],
        "gnugo": lambda d: [GNUGO, "--mode", "gtp", "--seed", "7", "--level", "8", "--gtp-input",
                          written(d / "moves", "genmove black\ngenmove white\n" * 6 * scale + "quit\n")],
        "povray": lambda d: ["povray", "+I" + written(d / "x.pov", SCENE), "+O" + str(d / "x.png"), "-D", "+WT1",
                             "+W320", f"+H{240 * scale}"],
        "sort": lambda d: ["sort", "--parallel=1", "-S", "200M", bench.text(d / "text", 48000000 * scale)],
        "zstd": lambda d: ["zstd", "-12", "--single-thread", "-q", "-c", part_of_cc1(d / "data", 8000000 * scale)],
    }


NAMES = tuple(programs())
STUDIED = NAMES[:11]  # of docs/accuracy-models.md's tables from traces


def here(name, tools=TOOLS):
    return all(shutil.which(tool) for tool in tools.get(name, [name]))
