/* SPDX-License-Identifier: Apache-2.0 */
/* not_here.h - a test that this machine cannot run. cmocka's skip() prints "not ok", which meson counts as
 * failed. */
#ifndef CACHEGRAM_TESTS_NOT_HERE_H
#define CACHEGRAM_TESTS_NOT_HERE_H

#include <stdio.h>

/* Says on stderr what was not tested, and why; the caller returns. scripts/run-tests.sh repeats these lines.
 */
static inline void not_tested_here(const char *test, const char *why)
{
    fprintf(stderr, "not tested here: %s: %s\n", test, why);
}

#endif
