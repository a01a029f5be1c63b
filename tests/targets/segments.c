/* SPDX-License-Identifier: Apache-2.0 */
/* Loads a segment register with no selector, which clears the segment's base, again and again; no fault is
 * due. */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
#include "rounds.h"

static void handler(int sig)
{
    (void)sig;
    _exit(1);
}

int main(void)
{
    static volatile unsigned words[1024];
    signal(SIGSEGV, handler);
    for (int i = 0; i < rounds_of_work(300000); i++) {
        for (unsigned j = 0; j < 50; j++)
            words[((unsigned)i + j * 7) % 1024]++;
        if (i % 64 == 0)
            __asm__ volatile("mov %0, %%gs" ::"r"(0));
        if (i % 64 == 32)
            __asm__ volatile("push $0; .byte 0x0f, 0xa9" ::: "memory"); /* pop gs */
    }
    puts("done");
    return 0;
}
