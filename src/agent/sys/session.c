/* SPDX-License-Identifier: Apache-2.0 */
/* session.c - see session.h. */
#include "agent/sys/files.h"
#include "agent/sys/session.h"
#include "agent/sys/sys.h"
#include <errno.h>
#include <linux/futex.h>
#include <string.h>

struct wire_session *session;
struct wire_proc *proc;
uint8_t *slot;
int agent_off = 1, agent_gone, agent_active;
uint32_t process_id;

static int can_count;

void agent_disable(enum wire_disabled why)
{
    if (agent_off)
        return;
    proc->count.disabled = why;
    __atomic_store_n(&agent_off, (int)why, __ATOMIC_SEQ_CST);
}

void agent_set_can_count(int can)
{
    can_count = can;
}

int agent_records_all(void)
{
    return session && __atomic_load_n(&session->mode, __ATOMIC_ACQUIRE) == WIRE_MODE_FULL;
}

int agent_counts_all(void)
{
    return can_count && __atomic_load_n(&session->mode, __ATOMIC_ACQUIRE) == WIRE_MODE_COUNT;
}

int agent_always_translated(void)
{
    return agent_records_all() || agent_counts_all();
}

/* Reads /proc/ID/stat, which begins "ID (NAME) R", up to `bytes`, and returns where its third field is; 0:
 * not possible. */
static long read_stat(uint32_t id, char *stat, long bytes)
{
    char path[32] = "/proc/";
    size_t n = strlen(path);
    for (uint32_t unit = 1000000000; unit; unit /= 10)
        if (id >= unit)
            path[n++] = (char)('0' + id / unit % 10);
    memcpy(path + n, "/stat", sizeof "/stat");
    long fd = own_open(path);
    if (sys_failed(fd))
        return 0;
    long got = sys3(SYS_read, fd, stat, bytes - 1), at = got;
    own_close(fd);
    while (at > 0 && stat[at - 1] != ')')
        at--;
    if (at <= 0 || at + 1 >= got)
        return 0;
    stat[got] = 0;
    return at + 1;
}

char task_state(uint32_t id)
{
    char stat[64];
    long at = read_stat(id, stat, sizeof stat);
    return at ? stat[at] : 0;
}

uint64_t task_pending_signals(uint32_t id)
{
    char stat[512]; /* the field is the 31st, after the third come at most 27 numbers of 64 bits */
    long at = read_stat(id, stat, sizeof stat);
    uint64_t pending = 0;
    for (int field = 3; at && field < 31; field++) {
        while (stat[at] && stat[at] != ' ')
            at++;
        at += stat[at] == ' ';
    }
    for (; at && stat[at] >= '0' && stat[at] <= '9'; at++)
        pending = pending * 10 + (uint64_t)(stat[at] - '0');
    return pending;
}

int collector_gone(void)
{
    if (sys2(SYS_kill, session->collector_pid, 0) == -ESRCH)
        return 1;
    char state = task_state(session->collector_pid); /* killed, but its parent has not waited for it */
    return state == 'Z' || state == 'X';
}

void doorbell(void)
{
    __atomic_fetch_add(&session->doorbell, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&session->collector_sleeps, __ATOMIC_SEQ_CST))
        sys3(SYS_futex, &session->doorbell, FUTEX_WAKE, 1);
}
