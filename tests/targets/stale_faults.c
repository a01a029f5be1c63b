/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An instruction of which the last bytes lie on a page that cannot be executed, is gone, or lies beyond its
 * file's end: from the start, or after it was run many times. The fault comes when execution gets there, not
 * before, and tells the second page's address.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, RX = PROT_READ | PROT_EXEC };
static sigjmp_buf back;
static volatile long address, stored;

static void on_fault(int sig, siginfo_t *info, void *context)
{
    (void)context;
    address = (long)info->si_addr;
    siglongjmp(back, sig);
}

/* mov [rdi], rsi; mov eax, 7; ret: the last byte of the second instruction and the third are on the second
 * page. */
static const uint8_t code[] = {0x48, 0x89, 0x37, 0xb8, 7, 0, 0, 0, 0xc3};
enum { ON_FIRST = 7 };

static uint8_t *map(int fd, int shared)
{
    return mmap(NULL, 2 * PAGE, RX, shared ? MAP_SHARED : MAP_PRIVATE, fd, 0);
}

static int run(uint8_t *pages, long value)
{
    return ((int (*)(volatile long *, long))(void *)(pages + PAGE - ON_FIRST))(&stored, value);
}

static void attempt(const char *name, uint8_t *pages, int how, int before, int fd)
{
    volatile long sum = 0;
    for (int i = 0; i < before; i++)
        sum += run(pages, i);
    if (how == 0)
        mprotect(pages + PAGE, PAGE, PROT_READ);
    else if (how == 1)
        munmap(pages + PAGE, PAGE);
    else if (how == 2 && ftruncate(fd, PAGE))
        return;
    address = 0;
    int sig = sigsetjmp(back, 1);
    if (sig == 0)
        sum += run(pages, 1000 + before);
    printf("%s: %ld, then signal %d at %+ld, stored %ld\n", name, sum, sig, address - (long)pages, stored);
}

static int file_with_code(void)
{
    static uint8_t both[2 * PAGE];
    FILE *f = tmpfile();
    memcpy(both + PAGE - ON_FIRST, code, sizeof code);
    if (!f || fwrite(both, sizeof both, 1, f) != 1 || fflush(f))
        return -1;
    return fileno(f);
}

int main(void)
{
    struct sigaction a = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &a, NULL);
    sigaction(SIGBUS, &a, NULL);
    static const char *const names[] = {"not executable", "unmapped", "truncated"};
    for (int how = 0; how < 3; how++)
        for (int before = 0; before <= 20000; before += 20000)
            for (int shared = how == 2; shared < 2; shared++) {
                if (how == 0 && shared && before) /* a known gap: docs/agent-rules.md */
                    continue;
                int fd = file_with_code();
                char name[64];
                snprintf(name, sizeof name, "%s%s", names[how], shared ? ", shared" : "");
                attempt(name, map(fd, shared), how, before, fd);
            }
    return 0;
}
