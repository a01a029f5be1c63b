/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code that the program writes itself: a page that is rewritten many times (all of it, one byte, from
 * inside the running code), and one that is unmapped and mapped again with other code.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

typedef int (*function)(int);

/* mov edi, eax; then `n` times add eax, imm; ret */
static void emit(uint8_t *p, int n, int32_t imm)
{
    *p++ = 0x89, *p++ = 0xf8;
    for (int i = 0; i < n; i++) {
        *p++ = 0x05;
        memcpy(p, &imm, 4);
        p += 4;
    }
    *p = 0xc3;
}

int main(void)
{
    uint8_t *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return 1;
    unsigned digest = 0;
    int wrong = 0;
    function f = (function)(void *)page;
    for (int round = 0; round < 12000; round++) {
        int n = 1 + round % 50;
        emit(page, n, round);
        for (int i = 0; i < 40; i++) {
            int got = f(i);
            wrong += got != i + n * round;
            digest = digest * 31 + (unsigned)got;
        }
    }
    printf("rewritten: wrong %d digest %u\n", wrong, digest);

    /* One byte of an immediate changes between calls. */
    emit(page, 1, 0);
    for (int i = 0; i < 100000; i++) {
        page[3] = (uint8_t)i;
        int got = f(1);
        wrong += got != 1 + (i & 255);
    }
    printf("patched: wrong %d\n", wrong);

    /* The code patches an instruction that comes later in the same run of instructions:
     * mov byte [rip+1], dil ; mov al, 0 ; movzx eax, al ; ret */
    static const uint8_t self[] = {0x40, 0x88, 0x3d, 1, 0, 0, 0, 0xb0, 0, 0x0f, 0xb6, 0xc0, 0xc3};
    memcpy(page, self, sizeof self);
    for (int i = 0; i < 5000; i++)
        wrong += f(i & 255) != (i & 255);
    printf("self-patching: wrong %d\n", wrong);

    /* Written, then made executable, then taken away; the same address again with other code. */
    for (int round = 0; round < 3000; round++) {
        uint8_t *again =
            mmap(page, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        emit(again, 3, round * 7);
        mprotect(again, 4096, PROT_READ | PROT_EXEC);
        for (int i = 0; i < 300; i++)
            wrong += ((function)(void *)again)(i) != i + 3 * 7 * round;
        munmap(again, 4096);
    }
    printf("mapped again: wrong %d\n", wrong);
    return wrong != 0;
}
