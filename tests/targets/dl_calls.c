/* SPDX-License-Identifier: Apache-2.0 */
/* build: -ldl */
/* Calls walk() of two libraries in turn, each at the place where the other was. usage: dl_calls A B rounds */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef unsigned walk_function(unsigned);

int main(int argc, char **argv)
{
    unsigned sum = 0, moved = 0;
    uintptr_t first = 0;
    for (int i = 0; argc == 4 && i < atoi(argv[3]); i++) {
        void *library = dlopen(argv[1 + i / 10 % 2], RTLD_NOW);
        if (library == NULL)
            return 1;
        walk_function *walk = (walk_function *)(uintptr_t)dlsym(library, "walk");
        for (int k = 0; k < 20; k++)
            sum = walk(sum);
        moved += first != 0 && first != (uintptr_t)walk;
        first = (uintptr_t)walk;
        dlclose(library);
    }
    printf("%u, moved %u times\n", sum, moved);
    return 0;
}
