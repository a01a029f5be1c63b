/* SPDX-License-Identifier: Apache-2.0 */
/* Executes argv[2], ... where calls whose numbers the kernel may not know kill the process, or (argv[1]:
 * "thread") the thread, as libseccomp's filters do for those of other architectures. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    unsigned kill =
        argc > 2 && !strcmp(argv[1], "thread") ? SECCOMP_RET_KILL_THREAD : SECCOMP_RET_KILL_PROCESS;
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x400, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, kill),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof code / sizeof *code, code};
    if (argc < 3 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
        return 1;
    execvp(argv[2], argv + 2);
    return 127;
}
