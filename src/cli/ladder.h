/* SPDX-License-Identifier: Apache-2.0 */
/* ladder.h - the ways to record, from cheap to exact, as `record --help` and `doctor` print them. The numbers
 * are those of docs/accuracy-short.md, "The ladder". */
#ifndef CACHEGRAM_CLI_LADDER_H
#define CACHEGRAM_CLI_LADDER_H

#define CLI_LADDER                                                                                          \
    "Ways to record, from cheap to exact. Error: of the curve, in percentage points, the median (and the\n" \
    "largest) of five to seven programs of 0.5 to 3 s at cache sizes of 1K-16K and of 32K-8M:\n"            \
    "\n"                                                                                                    \
    "                              CPU time              1K-16K        32K-8M\n"                            \
    "  (default)                   5% more, and 1 s      0.17 (5.7)    0.06 (1.5)\n"                        \
    "  --overhead 20               20% more, and 1 s     0.12 (2.4)    0.02 (0.9)\n"                        \
    "  --mode count                1.3 to 4 times        0.11 (0.4)    0.08 (0.7)\n"                        \
    "  --mode full --lines 1/16    7 to 17 times         0.25 (1.9)    0.00 (0.1)\n"                        \
    "  --mode full                 25 to 80 times        exact\n"

#endif
