/* SPDX-License-Identifier: Apache-2.0 */
/* Syscall user dispatch of the program's own, which exempts libc: what its functions do is not dispatched. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile char selector;
static volatile long dispatched;
static unsigned long low, bytes;

static void caught(int sig, siginfo_t *info, void *context)
{
    (void)sig, (void)info, (void)context;
    dispatched++;
    selector = 0; /* for the return from here */
}

static int find_libc(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size, (void)unused;
    for (int i = 0; i < info->dlpi_phnum && strstr(info->dlpi_name, "libc.so"); i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X) {
            low = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            bytes = info->dlpi_phdr[i].p_memsz;
        }
    return 0;
}

static long own_getppid(void)
{
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(SYS_getppid) : "rcx", "r11", "memory");
    return result;
}

int main(void)
{
    struct sigaction a = {.sa_sigaction = caught, .sa_flags = SA_SIGINFO};
    void *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    long pid = getpid(), same = 0, changed = 0;
    dl_iterate_phdr(find_libc, NULL);
    sigaction(SIGSYS, &a, NULL);
    if (!low || prctl(59 /* PR_SET_SYSCALL_USER_DISPATCH */, 1, low, bytes, &selector) != 0) {
        puts("none");
        return 77;
    }
    for (int i = 0; i < 100; i++) {
        selector = 1;
        same += syscall(SYS_getpid) == pid && getpid() == pid;
        changed += mprotect(page, 4096, PROT_READ | PROT_WRITE) == 0;
        long named = prctl(PR_SET_NAME, "dispatching");
        own_getppid();
        selector = 0;
        same += named == 0;
    }
    *(char *)page = 1;
    int off = prctl(59, 0, 0, 0, 0);
    printf("dispatched %ld, same %ld, changed %ld, off %d\n", dispatched, same, changed, off);
    return 0;
}
