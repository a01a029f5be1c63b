/* SPDX-License-Identifier: Apache-2.0 */
/*
 * too_much_code FUNCTIONS - makes so many functions at run time, calls each of them once, and prints the sum
 * of their results. From about half a million on, a process has more blocks than a profile
 * distinguishes.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define FUNCTION_BYTES 16u

int main(int argc, char **argv)
{
    size_t n = argc > 1 ? strtoul(argv[1], NULL, 0) : 1;
    uint8_t *code = mmap(NULL, n * FUNCTION_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (code == MAP_FAILED)
        return perror("mmap"), 1;
    /* mov (%rdi), %eax; add $i, %eax; ret */
    for (size_t i = 0; i < n; i++) {
        uint8_t *at = code + i * FUNCTION_BYTES;
        uint32_t number = (uint32_t)i;
        memcpy(at, "\x8b\x07\x05", 3);
        memcpy(at + 3, &number, 4);
        at[7] = 0xc3;
    }
    uint32_t one = 1;
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t (*function)(const uint32_t *);
        uint8_t *at = code + i * FUNCTION_BYTES;
        memcpy(&function, &at, sizeof function);
        sum += function(&one);
    }
    printf("%llu\n", (unsigned long long)sum);
    return 0;
}
