/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One field of each structure misses: hot_fields WHAT ROUNDS. WHAT: derived (of a base class), nested (a
 * structure in an array in a structure), local (a variable in a function), united (a union's), bits (bit
 * fields of one word), several (two fields by one instruction), alone (no structure), pool (cells behind the
 * head of one block).
 */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

enum { N = 1 << 14 };

namespace shop
{
struct item {
    long cold[7];
    long weight;
};

struct product : item {
    long more[8];
};

struct point {
    long x, y, z, unused;
};

struct shape {
    long name[8];
    point corners[2];
};

struct choice {
    long before[15];
    union {
        long whole;
        double real;
    } value;
};

struct flags {
    long before[8];
    unsigned long first : 5, second : 7;
    long after[7];
};

product products[N];
shape shapes[N];
choice choices[N];
flags all_flags[N];
long numbers[16 * N];
} // namespace shop

static volatile long sink;

/* The sum of one number of each of N pieces of 128 bytes, in an order that no prefetcher knows. */
template <class Get> static inline __attribute__((always_inline)) long walk(Get get)
{
    long sum = 0;
    for (std::uint32_t i = 0, at = 0; i < N; i++, at = (at * 5 + 12345) % N)
        sum += get(at);
    return sum;
}

static __attribute__((noinline)) void derived()
{
    sink += walk([](std::uint32_t i) { return shop::products[i].weight; });
}

static __attribute__((noinline)) void nested()
{
    sink += walk([](std::uint32_t i) { return shop::shapes[i].corners[1].y; });
}

static __attribute__((noinline)) void local()
{
    static struct {
        long before[15], hot;
    } table[N];
    sink += walk([](std::uint32_t i) { return table[i].hot; });
    table[sink % N].hot = 1; // or all would be known to be 0
}

static __attribute__((noinline)) void united()
{
    sink += walk([](std::uint32_t i) { return shop::choices[i].value.whole; });
}

static __attribute__((noinline)) void bits()
{
    sink += walk([](std::uint32_t i) { return (long)shop::all_flags[i].second; });
}

/* Every other time another field. */
static __attribute__((noinline)) void several()
{
    sink += walk([](std::uint32_t i) {
        const volatile long *at = i / 64 % 2 ? &shop::shapes[i].name[3] : &shop::shapes[i].corners[0].z;
        return *at;
    });
}

static __attribute__((noinline)) void alone()
{
    sink += walk([](std::uint32_t i) { return shop::numbers[16 * i]; });
}

struct cell {
    long cold[15], hot;
};

static __attribute__((noipa)) long get(const cell *c)
{
    return c->hot;
}

static __attribute__((noinline)) void fill(char *bytes, std::size_t n)
{
    for (std::size_t i = 0; i < n; i += sizeof(long))
        *(volatile long *)(bytes + i) = 1;
}

static __attribute__((noinline)) void pool()
{
    static char *memory = nullptr;
    const std::size_t head = 64, n = head + N * sizeof(cell);
    if (memory == nullptr)
        memory = (char *)std::malloc(n);
    fill(memory, n);
    const cell *cells = (const cell *)(memory + head);
    for (int i = 0; i < 8; i++)
        sink += walk([cells](std::uint32_t k) { return get(&cells[k]); });
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)();
    } list[] = {{"derived", derived}, {"nested", nested},   {"local", local}, {"united", united},
                {"bits", bits},       {"several", several}, {"alone", alone},     {"pool", pool}};
    int rounds = argc > 2 ? std::atoi(argv[2]) : 1;
    for (const auto &each : list)
        for (int r = 0; argc > 1 && std::strcmp(argv[1], each.name) == 0 && r < rounds; r++)
            each.run();
    std::printf("%ld\n", (long)sink);
}
