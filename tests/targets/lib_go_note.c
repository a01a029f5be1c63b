/* SPDX-License-Identifier: Apache-2.0 */
/* A library with the note by which Go's linker marks what it makes, after another one. */
__asm__(".section .note.others,\"a\",@note\n"
        ".long 6, 3, 1\n"
        ".asciz \"Other\"\n"
        ".zero 2\n"
        ".ascii \"abc\"\n"
        ".zero 1\n"
        ".section .note.go.buildid,\"a\",@note\n"
        ".long 4, 4, 4\n"
        ".asciz \"Go\"\n"
        ".zero 1\n"
        ".long 0\n"
        ".text\n");

int like_go(int x);
int like_go(int x)
{
    return x + 1;
}
