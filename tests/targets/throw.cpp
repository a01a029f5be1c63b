/* SPDX-License-Identifier: Apache-2.0 */
/* build: -fnon-call-exceptions */
/* Exceptions through several frames with destructors, rethrown, nested, and out of a signal handler. */
#include <csignal>
#include <cstdio>
#include <stdexcept>
#include <string>
#include "rounds.h"

static long destroyed;
struct guard {
    ~guard() { destroyed++; }
};

__attribute__((noinline)) static int deep(int n, int limit)
{
    guard g;
    if (n == limit)
        throw std::runtime_error("depth " + std::to_string(n));
    return deep(n + 1, limit) + 1;
}

__attribute__((noinline)) static int middle(int limit)
{
    try {
        return deep(0, limit);
    } catch (const std::runtime_error &e) {
        guard g;
        throw std::logic_error(std::string("wrapped ") + e.what());
    }
}

static void on_fault(int)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGSEGV);
    sigprocmask(SIG_UNBLOCK, &set, nullptr);
    throw 5;
}

int main()
{
    unsigned digest = 0;
    for (int i = 0; i < rounds_of_work(4000); i++) {
        try {
            middle(i % 20);
        } catch (const std::exception &e) {
            for (const char *p = e.what(); *p; p++)
                digest = digest * 31 + static_cast<unsigned char>(*p);
        }
    }
    std::printf("digest %u destroyed %ld\n", digest, destroyed);

    std::signal(SIGSEGV, on_fault);
    int caught = 0;
    for (volatile int i = 0; i < 700; i = i + 1) {
        try {
            guard g;
            *reinterpret_cast<volatile int *>(8L + i) = 1;
        } catch (int five) {
            caught += five;
        }
        std::signal(SIGSEGV, on_fault);
    }
    std::printf("caught %d destroyed %ld\n", caught, destroyed);
    return 0;
}
