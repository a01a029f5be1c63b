// SPDX-License-Identifier: Apache-2.0
// Misses in thread-local variables of the main thread and of another one: a table, and one field of a structure.
// hot_thread_local ROUNDS
#include <cstdlib>
#include <thread>

struct Stats {
    long calls[4];
    long histogram[1 << 17];
};

alignas(128) thread_local long table[1 << 17];
static thread_local Stats stats;
static thread_local int small = 3;

__attribute__((noinline)) static void count(int rounds)
{
    unsigned dice = 1;
    for (int i = 0; i < rounds; i++) {
        dice = dice * 1664525 + 1013904223;
        table[dice >> 15] += small;
        stats.histogram[(dice >> 7) % (1 << 17)]++;
        stats.calls[i % 4]++;
    }
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 0;
    std::thread other(count, rounds);
    count(rounds);
    other.join();
    return 0;
}
