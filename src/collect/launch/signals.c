/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include "base/read-text.h"
#include "collect/launch/session.h"
#include "collect/launch/signals.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define ANCESTORS 64 /* generations examined between a sender and the command */

/* A limit on file sizes is an error like a full disk, and must not kill the recorder. */
static const int ignored[] = {SIGXFSZ};
/* The first KEYBOARD ones come from the keyboard, to the command as well; the others are forwarded to it. */
static const int taken[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
#define KEYBOARD 2u
#define STOPPING 4u /* the first ones ask to stop */

static struct sigaction old_ignored[COUNT(ignored)], old_taken[COUNT(taken)], old_child;
static struct wire_session *bell;
static volatile sig_atomic_t pending[COUNT(taken)], seen[COUNT(taken)];
static volatile pid_t sender[COUNT(taken)];

static void on_signal(int number, siginfo_t *info, void *context)
{
    (void)context;
    for (size_t i = 0; i < COUNT(taken); i++)
        if (taken[i] == number) {
            /* The kernel's own (a closed terminal) already reach the whole process group. */
            int sent = info->si_code <= 0;
            sender[i] = sent ? info->si_pid : 0;
            seen[i] = 1;
            pending[i] = pending[i] || (sent && i >= KEYBOARD);
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
    memset((void *)seen, 0, sizeof(seen));
    for (size_t i = 0; i < COUNT(ignored); i++)
        sigaction(ignored[i], &ignore, &old_ignored[i]);
    for (size_t i = 0; i < COUNT(taken); i++) {
        sigaction(taken[i], NULL, &old_taken[i]);
        if (old_taken[i].sa_handler != SIG_IGN) /* nohup: stays ignored, in the command too */
            sigaction(taken[i], &take, NULL);
    }
    sigaction(SIGCHLD, &take, &old_child);
}

void signals_end(void)
{
    for (size_t i = 0; i < COUNT(ignored); i++)
        sigaction(ignored[i], &old_ignored[i], NULL);
    for (size_t i = 0; i < COUNT(taken); i++)
        sigaction(taken[i], &old_taken[i], NULL);
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
    for (size_t i = 0; i < COUNT(taken); i++)
        if (pending[i]) {
            pending[i] = 0;
            /* The command, or a child of it, signalled its process group (kill 0), which contains us: the
             * others have received it already. */
            if (!signals_descends(sender[i], command))
                kill(command, taken[i]);
        }
}

int signals_stopped(pid_t command)
{
    for (size_t i = 0; i < STOPPING; i++)
        if (seen[i] && !signals_descends(sender[i], command))
            return taken[i];
    return 0;
}
