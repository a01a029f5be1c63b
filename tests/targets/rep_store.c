/* SPDX-License-Identifier: Apache-2.0 */
/* String instructions of 100 million elements each: one of them is a burst. */
#include <stdio.h>
#include <stdlib.h>

int main(void)
{
    size_t bytes = 100u << 20;
    unsigned char *memory = malloc(bytes);
    unsigned sum = 0;
    for (int i = 0; memory != NULL && i < 20; i++) {
        void *at = memory;
        size_t count = bytes;
        __asm__ volatile("rep stosb" : "+D"(at), "+c"(count) : "a"(i) : "memory");
        sum += memory[i * 1000];
    }
    printf("%u\n", sum);
    free(memory);
    return 0;
}
