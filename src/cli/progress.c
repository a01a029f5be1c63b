/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/progress.h"

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "collect/launch/process-time.h"
#include "report/report.h"

#define INTERVAL_NS UINT64_C(200000000)
#define BAR_CELLS 30

struct progress progress_begin(const char *what)
{
    uint64_t now = monotonic_ns();
    /* No bar at first: short work does not need one. */
    return (struct progress){
        .what = what, .shown = isatty(STDERR_FILENO), .start_ns = now, .next_ns = now + INTERVAL_NS};
}

void progress_show(struct progress *p, double share, uint64_t references)
{
    if (!p->shown)
        return;
    uint64_t now = monotonic_ns();
    if (now < p->next_ns)
        return;
    p->next_ns = now + INTERVAL_NS;
    double seconds = (double)(now - p->start_ns) * 1e-9;
    int utf8 = report_is_utf8();
    fprintf(stderr, "\r%s ", p->what);
    if (!isnan(share)) {
        int full = (int)(share * BAR_CELLS);
        for (int i = 0; i < BAR_CELLS; i++)
            fputs(i < full ? (utf8 ? "█" : "#") : (utf8 ? "·" : "."), stderr);
        fprintf(stderr, " %3.0f%%", share * 100);
    }
    fprintf(stderr, " %" PRIu64 " M references, %.0f M/s", references / 1000000,
            (double)references / seconds * 1e-6);
    if (share > 0.01)
        fprintf(stderr, ", %.0f s left", seconds / share - seconds);
    fputs("\033[K", stderr);
}

void progress_end(struct progress *p)
{
    if (p->shown)
        fputs("\r\033[K", stderr);
    p->shown = 0;
}

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    interrupted = number;
}

void cli_catch_interrupts(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)(SA_RESETHAND | SA_RESTART)};
    sigemptyset(&action.sa_mask);
    static const int numbers[] = {SIGINT, SIGTERM};
    for (int i = 0; i < 2; i++) {
        struct sigaction before;
        /* In a background job it may be ignored. */
        if (sigaction(numbers[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(numbers[i], &action, NULL);
    }
}

int cli_interrupted(void)
{
    return interrupted != 0;
}

const volatile int *cli_interrupt_flag(void)
{
    return &interrupted;
}

int cli_interrupt_status(void)
{
    return 128 + interrupted;
}
