#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes an assembly file that contains FILE as it is, between the symbols NAME and NAME_end.

usage: scripts/embed.py FILE NAME OUTPUT
"""
import os
import sys

path, name, output = sys.argv[1:]
quoted = os.path.abspath(path).replace("\\", "\\\\").replace('"', '\\"')
with open(output, "w", encoding="utf-8", errors="surrogateescape") as f:
    f.write(f"""    .section .rodata
    .global {name}, {name}_end
{name}:
    .incbin "{quoted}"
{name}_end:
    .byte 0
    .section .note.GNU-stack, "", @progbits
""")
