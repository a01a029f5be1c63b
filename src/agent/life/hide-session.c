/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hide-session.c - programs that must run without the agent: the session is removed from their environment;
 * or the agent is, if its file is out of reach, or the program's loader could not load it (loadable.c).
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "agent/burst/burst.h"
#include "agent/life/life.h"
#include "agent/signals/signals.h"
#include "agent/sys/session.h"
#include "agent/sys/sys.h"
#include "agent/threads/threads.h"

static int hidden;
static uint32_t hidden_in_child;
static const char *library; /* the agent, as LD_PRELOAD names it; NULL: not by a path from the root */

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

void exec_library_init(void)
{
    static const char here;
    Dl_info info;
    if (dladdr(&here, &info) && info.dli_fname && info.dli_fname[0] == '/')
        library = info.dli_fname;
}

/* Whether the agent's end was for another reason than that its calls are forbidden, or sent to the target. */
static int calls_are_possible(void)
{
    return session && (!agent_gone || agent_off == WIRE_OFF_TRACED);
}

/* Landlock restricts only what is opened. */
int exec_library_missing(void)
{
    if (!library || !calls_are_possible())
        return 0;
    long fd = exec_open(library);
    if (fd >= 0)
        exec_close(fd);
    return fd == -ENOENT || fd == -EACCES;
}

int exec_filters(struct program p, char *const *envp)
{
    return exec_session_hidden() || exec_library_missing() ||
           (library && calls_are_possible() && (exec_is_foreign(p) || exec_lists_libraries(envp)));
}

/* The kernel reads the environment, not libc: an unreadable pointer is an error of the call, not a fault. */
static int read_variable(char *const *at, char **variable)
{
    return target_read(variable, at, sizeof *variable) == 0;
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

static int begins_with(const char *variable, const char *name)
{
    char start[64];
    size_t length = strlen(name);
    return target_read(start, variable, length) == 0 && memcmp(start, name, length) == 0;
}

static int names_session(const char *variable)
{
    return begins_with(variable, WIRE_ENV "=");
}

int exec_lists_libraries(char *const *envp)
{
    char *variable;
    for (size_t i = 0; envp && read_variable(envp + i, &variable) && variable; i++)
        if (begins_with(variable, "LD_TRACE_LOADED_OBJECTS="))
            return 1;
    return 0;
}

/* 0 if it cannot be read. */
static char read_char(const char *at)
{
    char c;
    return target_read(&c, at, 1) == 0 ? c : 0;
}

/* Whether the agent is the next library of a list. Little stack, since a child's may be small. */
static int names_library(const char *at)
{
    char part[64];
    size_t length = strlen(library), done = 0;
    while (done < length) {
        size_t n = length - done < sizeof part ? length - done : sizeof part;
        if (target_read(part, at + done, n) || memcmp(part, library + done, n) != 0)
            return 0;
        done += n;
    }
    return strchr(": ", read_char(at + length)) != NULL; /* it finds the NUL, too */
}

static const char preload[] = "LD_PRELOAD=";

/* Where the variable, if it is LD_PRELOAD, names the agent; NULL: nowhere. */
static const char *find_library(const char *variable)
{
    if (!begins_with(variable, preload))
        return NULL;
    const char *at = variable + strlen(preload);
    for (; !names_library(at); at++) {
        while (!strchr(": ", read_char(at)))
            at++;
        if (!read_char(at))
            return NULL;
    }
    return at;
}

/* The variable, or LD_PRELOAD without the agent in `text`; NULL if nothing is left of it. */
static char *without_library(char *variable, char text[EXEC_TEXT])
{
    const char *named = find_library(variable);
    if (!named)
        return variable;
    size_t got = EXEC_TEXT - target_read(text, variable, EXEC_TEXT), length = strlen(library);
    char *at = text + (named - variable), *after = at + length;
    if (!memchr(text, 0, got) || text + strlen(text) < after) /* too long, or changed meanwhile */
        return variable;
    memmove(at, after + (*after != 0), strlen(after) + (*after == 0));
    return text[strlen(preload)] ? text : NULL;
}

enum wire_lacks exec_lacks(char *const *envp)
{
    char *variable;
    int has_session = 0, has_library = 0;
    for (size_t i = 0; library && envp; i++) {
        if (!read_variable(envp + i, &variable))
            return WIRE_LACKS_NOTHING; /* the call will fail */
        if (!variable)
            return !has_session ? WIRE_LACKS_SESSION : !has_library ? WIRE_LACKS_LIBRARY : WIRE_LACKS_NOTHING;
        has_session |= names_session(variable);
        has_library |= find_library(variable) != NULL;
    }
    return WIRE_LACKS_NOTHING;
}

char *const *exec_filter_environment(char *const *envp, char **room, size_t count, char text[EXEC_TEXT])
{
    size_t n = 0;
    char *variable;
    int no_session = exec_session_hidden();
    for (size_t i = 0; i < count; i++) {
        /* Another thread has unmapped it: the kernel will return the error. */
        if (!read_variable(envp + i, &variable))
            return envp;
        if (no_session ? variable && names_session(variable)
                       : variable && !(variable = without_library(variable, text)))
            continue;
        room[n++] = variable;
    }
    room[n - 1] = NULL;
    return room;
}
