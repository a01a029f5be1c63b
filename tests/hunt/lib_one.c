/* SPDX-License-Identifier: Apache-2.0 */
/* Loaded and unloaded by load_unload; lib_two.c is its twin with other code in the same places. */
static __thread long calls;
static long table[600] = {1, 2, 3};

#ifdef HUNT_TWO
enum { FACTOR = 11 };
#else
enum { FACTOR = 7 };
#endif

long hunted(long x)
{
    table[(x + calls) % 600] += x * FACTOR;
    return table[x % 600] + FACTOR + ++calls % 3;
}

__attribute__((constructor)) static void begins(void)
{
    table[3] = FACTOR;
}

__attribute__((destructor)) static void ends(void)
{
    table[3]++;
}
