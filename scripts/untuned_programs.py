# SPDX-License-Identifier: Apache-2.0
"""Programs that no constant of cachegram was fitted to, four to five seconds each: bench-accuracy.py profiles them.

Keep it so: whoever tunes something looks at others. Inputs are made, or are part of the compiler.
"""
import papers_programs

LUA = """local scale = tonumber(arg[1])
local function tree(d) if d == 0 then return {} end return {tree(d - 1), tree(d - 1)} end
local function count(t) if t[1] then return 1 + count(t[1]) + count(t[2]) end return 1 end
local n, words, x, keys = 0, {}, 1, {}
for i = 1, 50 * scale do n = n + count(tree(15)) end
for i = 1, 3000000 * scale do
  x = (x * 1103515245 + 12345) % 2147483648
  local k = "w" .. (x % 50000); words[k] = (words[k] or 0) + 1
end
for k in pairs(words) do keys[#keys + 1] = k end
table.sort(keys)
print(n, #keys)
"""
RUBY = """x = 1; h = Hash.new(0); a = []
(2200000 * ARGV[0].to_i).times { x = (x * 1103515245 + 12345) & 0x7fffffff; h["k#{x % 60000}"] += 1; a << (x % 1000000) if x % 3 == 0 }
a.sort!
puts h.sort_by { |k, v| [-v, k] }.first(10).inspect, a.size, a.join(",").scan(/9\\d*7/).size
"""
PHP = """<?php mt_srand(7); $a = []; for ($i = 0; $i < 4000000 * $argv[1]; $i++) { $a[] = mt_rand(); } sort($a);
$h = []; foreach ($a as $v) { $k = substr(md5((string)$v), 0, 4); $h[$k] = ($h[$k] ?? 0) + 1; } ksort($h);
$s = str_repeat("lorem ipsum ", 80000);
for ($i = 0; $i < 90 * $argv[1]; $i++) { $s2 = strrev(preg_replace('/i(p|t)/', '$1i', $s)); }
echo count($h), " ", strlen($s2), "\\n";
"""
TOOLS = {"lua": ["lua5.4"], "ruby": ["ruby"], "php": ["php"]}


def programs(scale=1):
    """name: function that makes the program's input in a folder and returns its argv. scale: times the work."""
    return {
        "lua": lambda d: ["lua5.4", papers_programs.written(d / "x.lua", LUA), str(scale)],
        "ruby": lambda d: ["ruby", papers_programs.written(d / "x.rb", RUBY), str(scale)],
        "php": lambda d: ["php", papers_programs.written(d / "x.php", PHP), str(scale)],
    }


NAMES = tuple(programs())
