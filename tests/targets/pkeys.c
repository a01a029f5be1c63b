/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory protection keys, as JITs and databases use them: data that may be accessed, or written, only between
 * two changes of the rights register; code in memory that only its writer may write; handlers, which run with
 * the rights that the kernel gives them; and accesses that the key forbids. Prints what it saw.
 *
 * pkeys ROUNDS THREADS CODE
 * CODE: 0: none; 1: code that can be read while it cannot be written; 2: code that can only be executed
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define BYTES (1 << 20)
#define THREADS_MOST 8

static int data_key, code_key, code_rights, rounds;
static unsigned char *data, *code;
static sigjmp_buf after_fault;
static volatile int faults, key_of_fault, ticks, rights_in_handler;

static void on_fault(int sig, siginfo_t *info, void *context)
{
    (void)sig, (void)context;
    faults++;
    key_of_fault = info->si_code == SEGV_PKUERR ? (int)info->si_pkey : -info->si_code;
    siglongjmp(after_fault, 1);
}

static void on_tick(int sig)
{
    (void)sig;
    rights_in_handler |= pkey_get(data_key) == PKEY_DISABLE_ACCESS ? 1 : 2;
    ticks++;
}

static long walk(long seed)
{
    long s = 0;
    pkey_set(data_key, 0);
    for (long i = 0; i < BYTES; i += 64) {
        data[i] = (unsigned char)(data[i] + seed);
        s += data[i];
    }
    pkey_set(data_key, PKEY_DISABLE_ACCESS);
    return s;
}

/* mov $value, %eax; ret */
static int run_code(int value)
{
    unsigned char text[] = {0xb8, 0, 0, 0, 0, 0xc3};
    int (*function)(void);
    memcpy(text + 1, &value, 4);
    pkey_set(code_key, 0);
    memcpy(code, text, sizeof(text));
    pkey_set(code_key, code_rights); /* it can still be executed */
    memcpy(&function, &code, sizeof(function));
    int s = 0;
    for (int i = 0; i < 2000; i++)
        s += function() - value + 1;
    return s;
}

static void *thread(void *arg)
{
    long *s = arg;
    for (int i = 0; i < rounds; i++) {
        pkey_set(data_key, PKEY_DISABLE_WRITE);
        for (long k = 0; k < BYTES; k += 4096)
            *s += data[k] != 255;
        pkey_set(data_key, PKEY_DISABLE_ACCESS);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    static long s, of_thread[THREADS_MOST];
    static int calls;
    int threads;
    pthread_t id[THREADS_MOST];
    struct sigaction fault = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    struct sigaction tick = {.sa_handler = on_tick, .sa_flags = SA_RESTART};
    if (argc != 4)
        return 2;
    rounds = atoi(argv[1]);
    threads = atoi(argv[2]) < THREADS_MOST ? atoi(argv[2]) : THREADS_MOST;
    code_rights = argv[3][0] == '1' ? PKEY_DISABLE_WRITE : PKEY_DISABLE_ACCESS;
    if ((data_key = pkey_alloc(0, 0)) < 0 || (code_key = pkey_alloc(0, 0)) < 0)
        return 77;
    data = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED || code == MAP_FAILED ||
        pkey_mprotect(data, BYTES, PROT_READ | PROT_WRITE, data_key) != 0 ||
        pkey_mprotect(code, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, code_key) != 0)
        return 1;
    sigaction(SIGSEGV, &fault, NULL);
    sigaction(SIGALRM, &tick, NULL);
    ualarm(2000, 2000);
    pkey_set(data_key, PKEY_DISABLE_ACCESS);
    for (int i = 0; i < threads; i++)
        pthread_create(&id[i], NULL, thread, &of_thread[i]);
    for (int i = 0; i < rounds; i++) {
        s += walk(i);
        calls += argv[3][0] != '0' ? run_code(i) : 0;
        if (i % 10 == 0 && sigsetjmp(after_fault, 1) == 0)
            s += data[0];                        /* forbidden */
        pkey_set(data_key, PKEY_DISABLE_ACCESS); /* the jump out of the handler kept the handler's rights */
    }
    ualarm(0, 0);
    for (int i = 0; i < threads; i++)
        pthread_join(id[i], NULL);
    printf("sum %ld, calls %d, faults %d of key %d, in handlers %d\n", s, calls, faults,
           key_of_fault == data_key, ticks > 0 ? rights_in_handler : 1);
    return 0;
}
