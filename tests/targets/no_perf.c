/* Executes a command to which the kernel refuses performance events, as a container or a strict
 * kernel.perf_event_paranoid would. --no-timers: nor timers; --timers: timers alone.
 * usage: no_perf [--no-timers|--timers] COMMAND [ARGUMENTS] */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int timers_alone = argc > 1 && strcmp(argv[1], "--timers") == 0;
    int no_timers = timers_alone || (argc > 1 && strcmp(argv[1], "--no-timers") == 0);
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, timers_alone ? ~0u : SYS_perf_event_open, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, no_timers ? SYS_timer_create : ~0u, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof code / sizeof *code, code};
    argc -= no_timers;
    argv += no_timers;
    if (argc < 2 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
        return 125;
    execvp(argv[1], argv + 1);
    return 126;
}
