/* SPDX-License-Identifier: Apache-2.0 */
/*
 * old-signals.c - System V's functions that set a disposition. libc's versions call libc's internal
 * sigaction, which would show the target the agent's handlers and replace them. These call the interposed
 * one.
 */
#include <signal.h>
#include "agent/signals/frame.h"
#include "agent/sys/session.h"

typedef void (*handler_function)(int);

static int act(int sig, handler_function handler, struct sigaction *before)
{
    struct sigaction new = {.sa_handler = handler};
    return sigaction(sig, &new, before);
}

EXPORT handler_function sigset(int sig, handler_function handler)
{
    struct sigaction before;
    sigset_t set, blocked;
    sigemptyset(&set);
    if (sigaddset(&set, sig))
        return SIG_ERR;
    if (handler == SIG_HOLD) {
        if (sigprocmask(SIG_BLOCK, &set, &blocked))
            return SIG_ERR;
        if (sigismember(&blocked, sig) > 0)
            return SIG_HOLD;
        return sigaction(sig, NULL, &before) ? SIG_ERR : before.sa_handler;
    }
    if (act(sig, handler, &before) || sigprocmask(SIG_UNBLOCK, &set, &blocked))
        return SIG_ERR;
    return sigismember(&blocked, sig) > 0 ? SIG_HOLD : before.sa_handler;
}

EXPORT int sigignore(int sig)
{
    return act(sig, SIG_IGN, NULL);
}
