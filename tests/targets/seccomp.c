/* SPDX-License-Identifier: Apache-2.0 */
/* Computes, then forbids itself all system calls but a few (argv[1]: "prctl", "syscall" or "strict"),
 * computes on. */
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "rounds.h"

static uint64_t work(uint64_t x)
{
    static uint64_t table[65536];
    for (int i = 0; i < rounds_of_work(6000000); i++) {
        x = x * 6364136223846793005ull + 1442695040888963407ull;
        table[x >> 48] += x;
    }
    return x + table[77];
}

int main(int argc, char **argv)
{
#define ALLOW(n) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (n), 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(SYS_write),
        ALLOW(SYS_exit_group),
        ALLOW(SYS_exit),
        ALLOW(SYS_rt_sigreturn),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog filter = {sizeof code / sizeof *code, code};
    const char *how = argc > 1 ? argv[1] : "prctl";
    char text[64];
    uint64_t digest = 1;
    for (int i = 0; i < 8; i++) /* long enough to be sampled */
        digest = work(digest);
    int failed = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (!strcmp(how, "strict"))
        failed |= prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
    else if (!strcmp(how, "prctl"))
        failed |= prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
    else
        failed |= (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter);
    for (int i = 0; i < 10; i++)
        digest = work(digest);
    int n = snprintf(text, sizeof text, "failed %d digest %llu\n", failed, (unsigned long long)digest);
    if (write(1, text, (size_t)n) != n)
        return 1;
    __asm__ volatile("syscall"
                     :
                     : "a"(SYS_exit), "D"(0L)
                     : "rcx", "r11"); /* strict mode knows no exit_group */
    return 0;
}
