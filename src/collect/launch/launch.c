/* SPDX-License-Identifier: Apache-2.0 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>
#include "collect/launch/launch.h"
#include "wire/wire.h"

#define AGENT_NAME "libcachegram-agent.so"
#define SCRIPT_DEPTH 4 /* nested script interpreters; the kernel's own limit */

#ifndef CACHEGRAM_LIBDIR
#define CACHEGRAM_LIBDIR "/usr/local/lib"
#endif

static int is_executable(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return errno == EACCES ? -EACCES : -ENOENT;
    if (!S_ISREG(st.st_mode) || access(path, X_OK) != 0)
        return -EACCES;
    return 0;
}

int launch_find(const char *command, char *path, size_t size, struct error *err)
{
    char candidate[PATH_MAX];
    int result = -ENOENT;

    if (strchr(command, '/') != NULL) {
        snprintf(candidate, sizeof(candidate), "%s", command);
        result = is_executable(candidate);
    } else if (command[0] != '\0') {
        const char *folders = getenv("PATH");
        for (const char *at = folders != NULL ? folders : "/bin:/usr/bin"; at != NULL;) {
            const char *colon = strchr(at, ':');
            int length = colon != NULL ? (int)(colon - at) : (int)strlen(at);
            snprintf(candidate, sizeof(candidate), "%.*s%s%s", length, at, length != 0 ? "/" : "./", command);
            int status = is_executable(candidate);
            if (status == 0) {
                result = 0;
                break;
            }
            if (status == -EACCES) /* as the shell does: search on, but remember */
                result = -EACCES;
            at = colon != NULL ? colon + 1 : NULL;
        }
    }
    if (result == 0)
        snprintf(path, size, "%s", candidate);
    else if (result == -EACCES)
        error_set(err, result, "%s: cannot be executed (permission denied)", command);
    else
        error_set(err, result, "%s: command not found", command);
    return result;
}

const char launch_static[] = "is statically linked";

/* Is the file the dynamic loader itself, by its SONAME? In a loader, addresses are offsets into the file up
 * to the end of its strings: these are in the first segment, which begins at 0. */
static int is_loader(int fd, const Elf64_Phdr *dynamic)
{
    static const char name[] = "ld-linux";
    Elf64_Dyn entry;
    uint64_t strings = 0, soname = 0;
    char found[sizeof(name) - 1];
    for (uint64_t at = 0; at + sizeof(entry) <= dynamic->p_filesz; at += sizeof(entry)) {
        if (pread(fd, &entry, sizeof(entry), (off_t)(dynamic->p_offset + at)) != sizeof(entry) ||
            entry.d_tag == DT_NULL)
            break;
        if (entry.d_tag == DT_STRTAB)
            strings = entry.d_un.d_ptr;
        else if (entry.d_tag == DT_SONAME)
            soname = entry.d_un.d_val;
    }
    return soname != 0 && pread(fd, found, sizeof(found), (off_t)(strings + soname)) == sizeof(found) &&
           memcmp(found, name, sizeof(found)) == 0;
}

/* musl's loader names the C library that it is a part of: /lib/ld-musl-x86_64.so.1. */
static const char *loader_obstacle(int fd, const Elf64_Phdr *interp)
{
    char name[PATH_MAX] = "";
    if (interp->p_filesz >= sizeof(name) ||
        pread(fd, name, interp->p_filesz, (off_t)interp->p_offset) != (ssize_t)interp->p_filesz)
        return NULL;
    return strstr(name, "/ld-musl") != NULL ? "uses musl, not glibc, as its C library" : NULL;
}

/* Whether the dynamic loader takes part. Unknown counts as yes: the agent's absence is noticed later. */
static const char *elf_obstacle(int fd, const unsigned char *head)
{
    if (head[EI_CLASS] != ELFCLASS64)
        return "is a 32-bit program";
    Elf64_Ehdr elf;
    if (pread(fd, &elf, sizeof(elf), 0) != sizeof(elf) || elf.e_phentsize != sizeof(Elf64_Phdr))
        return NULL;
    if (elf.e_machine != EM_X86_64)
        return "is a program for another processor";
    Elf64_Phdr segment, dynamic = {.p_type = PT_NULL};
    for (unsigned i = 0; i < elf.e_phnum; i++) {
        if (pread(fd, &segment, sizeof(segment), (off_t)(elf.e_phoff + i * sizeof(segment))) !=
            sizeof(segment))
            return NULL;
        if (segment.p_type == PT_INTERP)
            return loader_obstacle(fd, &segment);
        if (segment.p_type == PT_DYNAMIC)
            dynamic = segment;
    }
    if (elf.e_type == ET_DYN && dynamic.p_type == PT_DYNAMIC && is_loader(fd, &dynamic))
        return "is the dynamic loader, run explicitly (name the program itself instead)";
    return launch_static;
}

/* Privileges that the program would gain at exec; NULL: none. */
static const char *rights_gained(int fd)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return NULL;
    if (((st.st_mode & S_ISUID) != 0 && st.st_uid != geteuid()) ||
        ((st.st_mode & S_ISGID) != 0 && (st.st_mode & S_IXGRP) != 0 && st.st_gid != getegid()))
        return "runs with another user's rights (set-uid or set-gid)";
    return geteuid() != 0 && fgetxattr(fd, "security.capability", NULL, 0) > 0
               ? "runs with capabilities of its own"
               : NULL;
}

/* Only a regular file is a program. To open a pipe would wait for its writer, and to open a device may have
 * effects. */
static int open_program(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return -1;
    return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

const char *launch_rights(const char *path)
{
    int fd = open_program(path);
    const char *why = fd >= 0 ? rights_gained(fd) : NULL;
    if (fd >= 0)
        close(fd);
    return why;
}

static const char *obstacle(const char *path, int depth)
{
    char head[256] = "";
    const char *why = NULL;
    int fd = open_program(path);
    if (fd < 0)
        return NULL;
    ssize_t n = pread(fd, head, sizeof(head) - 1, 0);
    if (n > 2 && head[0] == '#' && head[1] == '!') { /* set-uid bits of scripts have no effect */
        char *name = head + 2 + strspn(head + 2, " \t");
        name[strcspn(name, " \t\r\n")] = '\0';
        why = depth > 0 ? obstacle(name, depth - 1) : NULL;
    } else {
        why = rights_gained(fd);
        if (why == NULL && n >= EI_NIDENT && memcmp(head, ELFMAG, SELFMAG) == 0)
            why = elf_obstacle(fd, (const unsigned char *)head);
    }
    close(fd);
    return why;
}

const char *launch_obstacle(const char *path)
{
    return obstacle(path, SCRIPT_DEPTH);
}

int launch_agent(char *path, size_t size, struct error *err)
{
    static const char *const places[] = {
        "/../agent/" AGENT_NAME, /* build tree */
        "/../lib/cachegram/" AGENT_NAME,
        "/../lib/x86_64-linux-gnu/cachegram/" AGENT_NAME,
        "/../lib64/cachegram/" AGENT_NAME,
    };
    char candidate[PATH_MAX + 64], found[PATH_MAX] = "";
    const char *given = getenv("CACHEGRAM_AGENT");

    if (given != NULL && given[0] != '\0') {
        if (realpath(given, found) == NULL)
            return error_set(err, -ENOENT, "the agent that CACHEGRAM_AGENT names, %s, cannot be opened: %s",
                             given, strerror(errno));
    } else {
        char self[PATH_MAX] = "";
        ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
        char *slash = n > 0 ? strrchr(self, '/') : NULL;
        if (slash != NULL)
            *slash = '\0';
        for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && found[0] == '\0'; i++) {
            snprintf(candidate, sizeof(candidate), "%s%s", self, places[i]);
            if (access(candidate, R_OK) != 0 || realpath(candidate, found) == NULL)
                found[0] = '\0';
        }
        if (found[0] == '\0' && realpath(CACHEGRAM_LIBDIR "/cachegram/" AGENT_NAME, found) == NULL)
            return error_set(
                err, -ENOENT,
                AGENT_NAME
                " was not found next to %s; reinstall cachegram, or set CACHEGRAM_AGENT to its path",
                self);
    }
    if (strpbrk(found, " :") != NULL)
        return error_set(err, -EINVAL,
                         "LD_PRELOAD cannot name %s (space or colon in it); move it and set CACHEGRAM_AGENT",
                         found);
    if (strlen(found) >= size)
        return error_set(err, -ENAMETOOLONG, "the agent's path is too long: %s", found);
    memcpy(path, found, strlen(found) + 1);
    return 0;
}

/* A program built with gcc's address sanitizer would refuse to run because the agent is loaded before it. */
static int set_asan_options(void)
{
    const char *old = getenv("ASAN_OPTIONS");
    char *value = NULL;
    if (asprintf(&value, "%s%sverify_asan_link_order=0", old != NULL ? old : "",
                 old != NULL && old[0] != '\0' ? ":" : "") < 0)
        return -1;
    int status = setenv("ASAN_OPTIONS", value, 1);
    free(value);
    return status;
}

static int set_preload(const char *agent, const char *session)
{
    const char *old = getenv("LD_PRELOAD");
    char *value = NULL;
    if (old == NULL || old[0] == '\0')
        old = NULL;
    if (asprintf(&value, "%s%s%s", agent, old != NULL ? ":" : "", old != NULL ? old : "") < 0)
        return -1;
    int status = setenv("LD_PRELOAD", value, 1) | setenv(WIRE_ENV, session, 1);
    free(value);
    return status | set_asan_options();
}

int launch_begin(struct launching *l, char **argv, const char *agent, const char *session,
                 const sigset_t *mask, void (*restore_signals)(void), struct error *err)
{
    int report[2]; /* carries exec's errno; closed by a successful exec */
    if (pipe2(report, O_CLOEXEC) != 0)
        return error_set(err, -errno, "cannot start %s: %s", argv[0], strerror(errno));
    pid_t pid = fork();
    if (pid < 0) {
        int code = errno;
        close(report[0]);
        close(report[1]);
        return error_set(err, -code, "cannot start %s: %s", argv[0], strerror(code));
    }
    if (pid == 0) {
        restore_signals();
        sigprocmask(SIG_SETMASK, mask, NULL);
        if (agent == NULL || set_preload(agent, session) == 0)
            execvp(argv[0], argv);
        int code = errno;
        ssize_t n = write(report[1], &code, sizeof(code));
        _exit(n == sizeof(code) ? 126 : 125);
    }
    close(report[1]);
    *l = (struct launching){.pid = pid, .report = report[0], .name = argv[0]};
    return 0;
}

int launch_finish(struct launching *l, struct error *err)
{
    int code = 0;
    ssize_t n;
    do
        n = read(l->report, &code, sizeof(code));
    while (n < 0 && errno == EINTR);
    close(l->report);
    if (n != sizeof(code))
        return 0;
    while (waitpid(l->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return error_set(err, -code, "cannot execute %s: %s", l->name, strerror(code));
}

int launch(char **argv, const char *agent, const char *session, const sigset_t *mask,
           void (*restore_signals)(void), pid_t *pid, struct error *err)
{
    struct launching l;
    int code = launch_begin(&l, argv, agent, session, mask, restore_signals, err);
    if (code != 0)
        return code;
    *pid = l.pid;
    return launch_finish(&l, err);
}

void launch_quote(char **argv, char *text, size_t size)
{
    size_t used = 0;
    for (size_t i = 0; argv[i] != NULL && used + 8 < size; i++) {
        const char *plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789%+,-./:=@_";
        int quoted = argv[i][0] == '\0' || argv[i][strspn(argv[i], plain)] != '\0';
        if (i != 0)
            text[used++] = ' ';
        if (quoted)
            text[used++] = '\'';
        for (const char *c = argv[i]; *c != '\0' && used + 8 < size; c++) {
            if (*c == '\'') {
                memcpy(text + used, "'\\''", 4);
                used += 4;
            } else {
                text[used++] = *c;
            }
        }
        if (quoted)
            text[used++] = '\'';
    }
    text[used] = '\0';
}
