/*
 * Loaded by LD_PRELOAD: a machine of four CPUs, for a program that believes what the C library tells. All but
 * the first are in truth the last one that there is.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CPUS 4

/* What the kernel says; the first and the last of it. */
static int real_ends(int *first, int *last)
{
    cpu_set_t real;
    CPU_ZERO(&real);
    if (syscall(SYS_sched_getaffinity, 0, sizeof real, &real) < 0)
        return -1;
    *first = *last = -1;
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &real)) {
            *first = *first < 0 ? i : *first;
            *last = i;
        }
    return 0;
}

/* Once, before the program confines itself. */
static int looked, first_cpu, last_cpu;

static void look(void)
{
    if (!looked)
        looked = real_ends(&first_cpu, &last_cpu) == 0;
}

static cpu_set_t as_real(const cpu_set_t *set)
{
    cpu_set_t real;
    CPU_ZERO(&real);
    for (int i = 0; i < CPUS; i++)
        if (CPU_ISSET(i, set))
            CPU_SET(i == 0 ? first_cpu : last_cpu, &real);
    return real;
}

int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
    (void)pid;
    look();
    memset(set, 0, size);
    for (int i = 0; i < CPUS; i++)
        CPU_SET_S(i, size, set);
    return 0;
}

int sched_setaffinity(pid_t pid, size_t size, const cpu_set_t *set)
{
    look();
    cpu_set_t real = as_real(set);
    (void)size;
    return (int)syscall(SYS_sched_setaffinity, pid, sizeof real, &real);
}

int pthread_attr_setaffinity_np(pthread_attr_t *attributes, size_t size, const cpu_set_t *set)
{
    int (*next)(pthread_attr_t *, size_t, const cpu_set_t *);
    void *found = dlsym(RTLD_NEXT, "pthread_attr_setaffinity_np");
    memcpy(&next, &found, sizeof next);
    look();
    cpu_set_t real = as_real(set);
    (void)size;
    return next(attributes, sizeof real, &real);
}
