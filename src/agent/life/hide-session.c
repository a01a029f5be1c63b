/* SPDX-License-Identifier: Apache-2.0 */
/* hide-session.c - programs that are to be executed without the agent: their environment lacks the session.
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
    /* Also for programs that libc executes by itself. Not by unsetenv, whose lock somebody may hold. */
    if (value)
        safe_copy(value, &none, 1);
    hidden = 1;
}

int exec_session_hidden(void)
{
    return hidden || (hidden_in_child && (uint32_t)sys0(SYS_getpid) == hidden_in_child);
}

/* The kernel, not libc, reads the environment: what cannot be read is an error of the call. */
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
        if (!read_variable(envp + i, &variable)) /* another thread has unmapped it: so the kernel will find */
            return envp;
        if (!variable || !names_session(variable))
            room[n++] = variable;
    }
    room[n - 1] = NULL;
    return room;
}
