/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_shared - do two CPUs share the last-level cache right now? Of a virtual machine's, the host may run
 * them wherever it likes, and move them. For each line on standard input one on standard output: 1 if they
 * do, 0 if not, ? if it cannot be reported, then the nanoseconds that a cache line takes from one to the
 * other (pirate/pirate.h). At the start a line of the two CPUs: the first is for the program that is looked
 * at.
 *
 * usage: bench_shared < COMMANDS
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>

#include "pirate/pirate.h"

#define SET_BYTES (UINT64_C(8) << 20)
#define TRIES 20 /* one of the two CPUs may be busy with others */

static int fail(const char *what, const struct error *err)
{
    fprintf(stderr, "bench_shared: %s: %s\n", what, err->text);
    return 1;
}

static void answer(struct pirate *p)
{
    int shared = -EAGAIN;
    for (int i = 0; i < TRIES && shared == -EAGAIN; i++)
        shared = pirate_is_shared(p);
    printf("%s %.1f\n",
           shared < 0 ? "?"
           : shared   ? "1"
                      : "0",
           pirate_transfer_ticks(p) / pirate_ticks_per_ns(p));
    fflush(stdout);
}

int main(void)
{
    struct llc llc;
    struct pirate *p;
    struct error err;
    cpu_set_t mine;
    int cpu = 0, c;
    if (llc_find(-1, &llc, &err) != 0)
        return fail("the last-level cache", &err);
    llc_target_cpus(&llc, 1, &mine);
    while (cpu < CPU_SETSIZE && !CPU_ISSET((size_t)cpu, &mine))
        cpu++;
    CPU_ZERO(&mine);
    CPU_SET((size_t)cpu, &mine);
    if (sched_setaffinity(0, sizeof mine, &mine) != 0) {
        perror("bench_shared");
        return 1;
    }
    if (pirate_new(&llc, 1, SET_BYTES, &p, &err) != 0)
        return fail("the other thread", &err);
    int code = -ENOTSUP;
    for (int i = 0; i < TRIES && code == -ENOTSUP; i++)
        code = pirate_calibrate(p, &err);
    if (code == 0) {
        printf("%d %d\n", cpu, llc.pirate_cpu[0]);
        fflush(stdout);
        while ((c = getchar()) != EOF)
            if (c == '\n')
                answer(p);
    }
    pirate_free(p);
    return code == 0 ? 0 : fail("calibration", &err);
}
