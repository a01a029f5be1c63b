/* build: -pthread -rdynamic */
/*
 * A program with a part to be measured: works, calls begin_here, works, calls end_here, works; five, ten and
 * five units of work.
 *
 * usage: span STEPS [thread|child|never|loop|forever]
 *   thread  a second thread does the part
 *   child   a child calls begin_here before, which does not count
 *   never   neither function is called
 *   loop    begin_here is called at each step
 *   forever the part is done again and again, until it is killed
 *
 * `progress` counts steps. What the parts cost by the process's own CPU clock, in nanoseconds, is appended to
 * the file that SPAN_TIMES names, a line a run.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

volatile uint64_t progress;
static uint64_t steps;
static int calls_each_step;
static uint64_t times[4];
static volatile int at; /* the two functions must differ, or the compiler makes one of them */

static uint64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* In .dynsym, too. */
__attribute__((noinline, noclone)) void begin_here(void)
{
    at = 1;
}

/* In .symtab alone. */
__attribute__((noinline, noclone)) static void end_here(void)
{
    at = 2;
}

static void work(uint64_t units)
{
    for (uint64_t i = 0; i < units * steps; i++) {
        for (volatile int k = 0; k < 1000; k++)
            ;
        progress++;
        if (calls_each_step)
            begin_here();
    }
}

static void *measured(void *unused)
{
    begin_here();
    times[1] = cpu_ns();
    work(10);
    times[2] = cpu_ns();
    end_here();
    return unused;
}

static void tell_times(void)
{
    const char *name = getenv("SPAN_TIMES");
    FILE *f = name ? fopen(name, "a") : NULL;
    times[3] = cpu_ns();
    if (f) {
        fprintf(f, "%llu %llu %llu\n", (unsigned long long)(times[1] - times[0]),
                (unsigned long long)(times[2] - times[1]), (unsigned long long)(times[3] - times[2]));
        fclose(f);
    }
}

int main(int argc, char **argv)
{
    const char *how = argc > 2 ? argv[2] : "";
    steps = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
    calls_each_step = strcmp(how, "loop") == 0;
    work(5);
    if (strcmp(how, "child") == 0) {
        pid_t child = fork();
        if (child == 0) {
            begin_here();
            end_here();
            _exit(0);
        }
        waitpid(child, NULL, 0);
        work(5);
    }
    if (strcmp(how, "thread") == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, measured, NULL);
        pthread_join(thread, NULL);
    } else if (strcmp(how, "never") == 0) {
        work(10);
    } else {
        do
            measured(NULL);
        while (strcmp(how, "forever") == 0);
    }
    work(5);
    tell_times();
    printf("%llu\n", (unsigned long long)progress);
    return 0;
}
