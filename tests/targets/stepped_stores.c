/* SPDX-License-Identifier: Apache-2.0 */
/* stepped_stores N: N times an instruction that the agent single-steps, and that is in no record (maskmovq).
 */
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    unsigned char memory[64] = {0};
    long n = argc > 1 ? atol(argv[1]) : 0;
    __asm__ volatile("pcmpeqb %%mm0, %%mm0\n\t"
                     "pcmpeqb %%mm1, %%mm1\n"
                     "1:\tmaskmovq %%mm1, %%mm0\n\t"
                     "dec %0\n\t"
                     "jnz 1b\n\t"
                     "emms"
                     : "+r"(n)
                     : "D"(memory)
                     : "memory", "cc", "mm0", "mm1");
    printf("%d\n", memory[0]);
    return 0;
}
