/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include "base/read-text.h"
#include "collect/launch/session.h"
#include "collect/launch/signals.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define ANCESTORS 64 /* generations examined between a sender and the command */

/* SIGXFSZ: a limit on file sizes is an error like a full disk, and must not kill the recorder. */
static const int ignored[] = {SIGINT, SIGQUIT, SIGXFSZ};
static const int forwarded[] = {SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};

static struct sigaction old_ignored[COUNT(ignored)], old_forwarded[COUNT(forwarded)], old_child;
static struct wire_session *bell;
static volatile sig_atomic_t pending[COUNT(forwarded)];
static volatile pid_t sender[COUNT(forwarded)];

static void on_signal(int number, siginfo_t *info, void *context)
{
    (void)context;
    for (size_t i = 0; i < COUNT(forwarded); i++)
        /* The kernel's own (a closed terminal) already reach the whole process group. */
        if (forwarded[i] == number && info->si_code <= 0) {
            sender[i] = info->si_pid;
            pending[i] = 1;
        }
    if (bell != NULL)
        session_ring(bell);
}

void signals_set_doorbell(struct wire_session *session)
{
    bell = session;
}

void signals_begin(void)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    struct sigaction take = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
    bell = NULL;
    memset((void *)pending, 0, sizeof(pending));
    for (size_t i = 0; i < COUNT(ignored); i++)
        sigaction(ignored[i], &ignore, &old_ignored[i]);
    for (size_t i = 0; i < COUNT(forwarded); i++) {
        sigaction(forwarded[i], NULL, &old_forwarded[i]);
        if (old_forwarded[i].sa_handler != SIG_IGN) /* nohup: stays ignored, in the command too */
            sigaction(forwarded[i], &take, NULL);
    }
    sigaction(SIGCHLD, &take, &old_child);
}

void signals_end(void)
{
    for (size_t i = 0; i < COUNT(ignored); i++)
        sigaction(ignored[i], &old_ignored[i], NULL);
    for (size_t i = 0; i < COUNT(forwarded); i++)
        sigaction(forwarded[i], &old_forwarded[i], NULL);
    sigaction(SIGCHLD, &old_child, NULL);
}

static pid_t parent_of(pid_t pid)
{
    char text[512];
    int parent = 0;
    read_text(text, sizeof(text), "/proc/%d/stat", pid);
    const char *after = strrchr(text, ')');
    return after != NULL && sscanf(after + 1, " %*c %d", &parent) == 1 ? parent : 0;
}

int signals_descends(pid_t pid, pid_t from)
{
    for (int i = 0; i < ANCESTORS && pid > 1; i++, pid = parent_of(pid))
        if (pid == from)
            return 1;
    return 0;
}

void signals_forward(pid_t command)
{
    for (size_t i = 0; i < COUNT(forwarded); i++)
        if (pending[i]) {
            pending[i] = 0;
            /* The command, or a child of it, signalled its process group (kill 0), which contains us: the
             * others have received it already. */
            if (!signals_descends(sender[i], command))
                kill(command, forwarded[i]);
        }
}
