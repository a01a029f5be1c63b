/* SPDX-License-Identifier: Apache-2.0 */
/* hide-session.c - programs that must run without the agent: the session is removed from their environment.
 */
#include <stdlib.h>
#include <string.h>
#include "agent/burst/burst.h"
#include "agent/life/life.h"
#include "agent/sys/sys.h"

static int hidden;
static uint32_t hidden_in_child;

void exec_hide_session(int vfork_child)
{
    static const char none = 0;
    char *value = getenv(WIRE_ENV);
    if (vfork_child) {
        hidden_in_child = (uint32_t)sys0(SYS_getpid);
        return;
    }
    /* This covers programs that libc executes by itself, too. unsetenv is not used: another thread may hold
     * its lock. */
    if (value)
        safe_copy(value, &none, 1);
    hidden = 1;
}

int exec_session_hidden(void)
{
    return hidden || (hidden_in_child && (uint32_t)sys0(SYS_getpid) == hidden_in_child);
}

/* The kernel reads the environment, not libc: an unreadable pointer is an error of the call, not a fault. */
static int read_variable(char *const *at, char **variable)
{
    return safe_copy(variable, at, sizeof *variable) == 0;
}

size_t exec_environment_count(char *const *envp)
{
    char *variable;
    for (size_t n = 0; envp; n++)
        if (!read_variable(envp + n, &variable))
            return 0;
        else if (!variable)
            return n + 1;
    return 0;
}

static int names_session(const char *variable)
{
    static const char name[] = WIRE_ENV "=";
    char start[sizeof name - 1];
    return safe_copy(start, variable, sizeof start) == 0 && memcmp(start, name, sizeof start) == 0;
}

char *const *exec_filter_environment(char *const *envp, char **room, size_t count)
{
    size_t n = 0;
    char *variable;
    for (size_t i = 0; i < count; i++) {
        /* Another thread has unmapped it: the kernel will return the error. */
        if (!read_variable(envp + i, &variable))
            return envp;
        if (!variable || !names_session(variable))
            room[n++] = variable;
    }
    room[n - 1] = NULL;
    return room;
}
