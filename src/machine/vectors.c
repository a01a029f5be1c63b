/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/vectors.h"
#include <cpuid.h>

/* Components of the extended state (Intel's manual, XCR0). */
#define STATE_AVX 0x06u
#define STATE_AVX512 0xe6u

int vectors_have_bmi2(void)
{
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_BMI2) != 0;
}

unsigned vectors_for_counting(void)
{
    unsigned a, b, c, d, low, high;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE) || !__get_cpuid_count(7, 0, &a, &b, &c, &d) ||
        !(b & bit_BMI2) || !(b & bit_AVX2))
        return 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    if (b & bit_AVX512VL && (low & STATE_AVX512) == STATE_AVX512)
        return 31;
    return (low & STATE_AVX) == STATE_AVX ? 15 : 0;
}
