// SPDX-License-Identifier: Apache-2.0
/* Two functions without a name of their own: lambdas, whose debug information calls both "operator()". */
#include <cstdio>
#include <vector>

int main()
{
    std::vector<long> large(1 << 17, 1), small(256, 1);
    auto all = [](const std::vector<long> &from) __attribute__((noinline)) {
        long sum = 0;
        for (size_t i = 0; i < from.size(); i += 8)
            sum += from[i];
        return sum;
    };
    auto few = [](const std::vector<long> &from) __attribute__((noinline)) {
        long sum = 0;
        for (size_t k = 0; k < 64; k++)
            for (size_t i = 0; i < from.size(); i++)
                sum += from[i] * (long)k;
        return sum;
    };
    long sum = 0;
    for (int i = 0; i < 10; i++)
        sum += all(large) + few(small);
    std::printf("%ld\n", sum);
}
