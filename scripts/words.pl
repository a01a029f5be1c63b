# SPDX-License-Identifier: Apache-2.0
# Counts the words of its input and prints the ten most frequent ones: what scripts/demo.sh profiles.
while (<>) { $count{$_}++ for split }
print "$_ $count{$_}\n" for (sort { $count{$b} <=> $count{$a} || $a cmp $b } keys %count)[0 .. 9];
