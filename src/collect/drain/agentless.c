/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/drain/agentless.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/read-text.h"
#include "collect/launch/launch.h"
#include "collect/launch/process-time.h"

#define DESCENDANTS 256u /* most descendants that are examined */
/* Every process lacks the agent for a moment when it starts. So it counts only if it is seen twice without
 * it, or has used more CPU time than this. */
#define STARTING_NS UINT64_C(20000000)

static unsigned entry_of(struct agentless *a, pid_t pid)
{
    unsigned i = 0;
    while (i < a->n && a->process[i].pid != pid)
        i++;
    if (i == AGENTLESS_KEPT) {
        a->more++;
        return i;
    }
    if (i == a->n) {
        memset(&a->process[i], 0, sizeof(a->process[i]));
        a->process[i].pid = pid;
        a->n++;
    }
    return i;
}

static void drop(struct agentless *a, unsigned i)
{
    a->process[i] = a->process[--a->n];
}

int agentless_has_session(const char *environment, size_t size, const char *stat)
{
    size_t length = strlen(WIRE_ENV);
    for (size_t i = 0; i < size; i += strlen(environment + i) + 1) {
        if (strncmp(environment + i, WIRE_ENV "=", length + 1) == 0)
            return 1;
        if (strchr(environment + i, '=') == NULL)
            return -1;
    }
    if (size != 0)
        return 0;
    const char *at = strrchr(stat, ')'); /* after the name, which may contain anything */
    for (int field = 2; at != NULL && field < 50; field++)
        at = strchr(at + 1, ' ');
    unsigned long long start, end;
    return at != NULL && sscanf(at, " %llu %llu", &start, &end) == 2 && end != 0 && start == end ? 0 : -1;
}

static int has_session(pid_t pid)
{
    static char text[1 << 17];
    char stat[2048] = "";
    ssize_t n = read_text(text, sizeof(text), "/proc/%d/environ", (int)pid);
    if (n < 0 || (n == 0 && read_text(stat, sizeof(stat), "/proc/%d/stat", (int)pid) < 0))
        return -1;
    return agentless_has_session(text, (size_t)n, stat);
}

static const char cleared[] = "was started with a cleared environment, as sudo and env -i do";

static const char *lacking(uint32_t lacks)
{
    return lacks == WIRE_LACKS_SESSION ? cleared
           : lacks == WIRE_LACKS_LIBRARY
               ? "was started with another LD_PRELOAD, or none: set that for cachegram instead"
               : NULL;
}

static const char unknown[] = "the agent was not loaded into it";

static const char *why_not(pid_t pid, const char *path, const char *status, int *certain)
{
    unsigned real, effective, saved, files;
    const char *why = path[0] != '\0' ? launch_obstacle(path) : NULL;
    *certain = why != NULL;
    if (why != NULL)
        return why;
    const char *uid = strstr(status, "\nUid:");
    int known = uid != NULL && sscanf(uid, "\nUid: %u %u %u %u", &real, &effective, &saved, &files) == 4;
    if (known && real != effective)
        return "runs with another user's rights (set-uid or set-gid)";
    if (has_session(pid) == 0)
        return cleared;
    if (known && real != getuid())
        return "runs as another user, who may not open the memory shared with the recorder";
    return unknown;
}

/* Records a process that has no agent. */
static void see(struct agentless *a, pid_t pid)
{
    char link[64], path[sizeof(a->process[0].name)], comm[32], status[2048];
    uint64_t cpu_ns;
    if (read_text(status, sizeof(status), "/proc/%d/status", (int)pid) <= 0 ||
        strstr(status, "\nState:\tZ") != NULL || strstr(status, "\nState:\tX") != NULL)
        return; /* it has ended */
    unsigned i = entry_of(a, pid);
    if (i == AGENTLESS_KEPT)
        return;
    snprintf(link, sizeof(link), "/proc/%d/exe", (int)pid);
    ssize_t n = readlink(link, path, sizeof(path) - 1);
    path[n > 0 ? n : 0] = '\0';
    if (process_cpu_ns(pid, &cpu_ns) == 0 && cpu_ns > a->process[i].cpu_ns)
        a->process[i].cpu_ns = cpu_ns;
    a->process[i].looks++;
    if (path[0] == '\0' &&
        read_text(comm, sizeof(comm), "/proc/%d/comm", (int)pid) > 0) /* may not be inspected */
        comm[strcspn(comm, "\n")] = '\0';
    else
        comm[0] = '\0';
    int certain;
    const char *why = why_not(pid, path, status, &certain);
    if (a->process[i].certain && !certain)
        return;
    a->process[i].certain = certain;
    snprintf(a->process[i].name, sizeof(a->process[i].name), "%s", path[0] != '\0' ? path : comm);
    snprintf(a->process[i].why, sizeof(a->process[i].why), "%s", why);
}

/* Appends pid's children to those in list. */
static unsigned add_children(pid_t pid, pid_t list[DESCENDANTS], unsigned n)
{
    char path[64], text[4096];
    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    DIR *tasks = opendir(path);
    for (struct dirent *task; tasks != NULL && (task = readdir(tasks)) != NULL;) {
        if (task->d_name[0] == '.' || strlen(task->d_name) > 12)
            continue;
        char *at = text, *end;
        if (read_text(text, sizeof(text), "/proc/%d/task/%.12s/children", (int)pid, task->d_name) <= 0)
            continue;
        for (long child; n < DESCENDANTS && (child = strtol(at, &end, 10)) > 0 && end != at; at = end)
            list[n++] = (pid_t)child;
    }
    if (tasks != NULL)
        closedir(tasks);
    return n;
}

/* Stores the process if it executes a program that cannot load the agent. */
static void see_executed(struct agentless *a, const struct wire_execution *e)
{
    char name[sizeof(e->path)], path[PATH_MAX];
    memcpy(name, e->path, sizeof(name));
    name[sizeof(name) - 1] = '\0';
    if (e->pid > INT_MAX || name[0] == '\0')
        return;
    snprintf(path, sizeof(path), "/proc/%u/cwd/%s", e->pid, name);
    if (strchr(name, '/') == NULL && launch_find(name, path, sizeof(path), NULL) < 0)
        return;
    if (name[0] == '/' || (strchr(name, '/') != NULL && access(path, F_OK) != 0))
        snprintf(path, sizeof(path), "%s", name);
    int executable = access(path, X_OK) == 0;
    const char *why = executable ? launch_obstacle(path) : NULL;
    if (why == NULL && executable)
        why = lacking(e->lacks);
    if (why != NULL && strstr(why, "dynamic loader") != NULL)
        return; /* when started explicitly, it loads the agent as well */
    unsigned i = why != NULL ? entry_of(a, (pid_t)e->pid) : AGENTLESS_KEPT;
    if (i == AGENTLESS_KEPT)
        return;
    a->process[i].certain = 1;
    snprintf(a->process[i].name, sizeof(a->process[i].name), "%s", name);
    snprintf(a->process[i].why, sizeof(a->process[i].why), "%s", why);
}

void agentless_executed(struct agentless *a, const struct wire_session *session)
{
    _Static_assert(WIRE_MAX_EXECUTIONS == 64, "bits of `handled`");
    uint32_t said = __atomic_load_n(&session->executions, __ATOMIC_ACQUIRE);
    if (said - a->executions > WIRE_MAX_EXECUTIONS)
        a->executions = said - WIRE_MAX_EXECUTIONS;
    for (; a->executions != said; a->executions++)
        a->handled &= ~(UINT64_C(1) << a->executions % WIRE_MAX_EXECUTIONS);
    for (uint32_t n = said > WIRE_MAX_EXECUTIONS ? said - WIRE_MAX_EXECUTIONS : 0; n != said; n++) {
        const struct wire_execution *e = &session->execution[n % WIRE_MAX_EXECUTIONS];
        uint64_t bit = UINT64_C(1) << n % WIRE_MAX_EXECUTIONS;
        if ((a->handled & bit) == 0 && __atomic_load_n(&e->pid, __ATOMIC_ACQUIRE) != 0 && e->number == n) {
            a->handled |= bit;
            see_executed(a, e);
        }
    }
}

void agentless_look(struct agentless *a, const struct wire_session *session, pid_t command,
                    int (*has_agent)(void *ctx, pid_t pid), void *ctx)
{
    static pid_t list[DESCENDANTS];
    unsigned n = 1;
    agentless_executed(a, session);
    list[0] = command;
    for (unsigned i = 0; i < n; i++) {
        n = add_children(list[i], list, n);
        if (!has_agent(ctx, list[i])) {
            see(a, list[i]);
            continue;
        }
        for (unsigned k = a->n; k-- > 0;)
            if (a->process[k].pid == list[i] && !a->process[k].certain)
                drop(a, k);
    }
}

void agentless_list(const struct agentless *a, char *text, size_t size)
{
    size_t used = 0;
    unsigned more = a->more;
    text[0] = '\0';
    for (unsigned i = 0; i < a->n; i++) {
        const char *name = a->process[i].name, *why = a->process[i].why;
        /* Without a known reason, it is most likely a child made by a raw system call of the program. */
        int reported = strcmp(why, unknown) == 0 || (!a->process[i].certain && a->process[i].looks < 2 &&
                                                     a->process[i].cpu_ns < STARTING_NS);
        for (unsigned k = 0; k < i; k++) /* the same program again */
            reported |= strcmp(a->process[k].name, name) == 0 && strcmp(a->process[k].why, why) == 0;
        if (reported || name[0] == '\0')
            continue;
        if (used + strlen(name) + strlen(why) + 16 > size) {
            more++;
            continue;
        }
        used += (size_t)snprintf(text + used, size - used, "%s%s (%s)", used != 0 ? ", " : "", name, why);
    }
    if (more != 0 && used != 0 && used + 8 < size)
        snprintf(text + used, size - used, ", ...");
}
