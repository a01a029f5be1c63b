// SPDX-License-Identifier: Apache-2.0
// C++ exceptions through frames with destructors.
struct tally {
    long &sum;
    ~tally() { sum = sum * 3 + 1; }
};

static __attribute__((noinline)) void deeper(long depth, long value, long &sum)
{
    tally t{sum};
    if (depth == 0)
        throw value;
    deeper(depth - 1, value, sum);
}

extern "C" long hunt_throws(long depth, long value)
{
    long sum = 0;
    try {
        deeper(depth, value, sum);
    } catch (long caught) {
        sum += caught;
    }
    return sum;
}
