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

/* /proc/ID/stat begins "ID (NAME) R". */
char task_state(uint32_t id)
{
    char path[32] = "/proc/", stat[64];
    size_t n = strlen(path);
    for (uint32_t unit = 1000000000; unit; unit /= 10)
        if (id >= unit)
            path[n++] = (char)('0' + id / unit % 10);
    memcpy(path + n, "/stat", sizeof "/stat");
    long fd = own_open(path);
    if (sys_failed(fd))
        return 0;
    long got = sys3(SYS_read, fd, stat, sizeof stat);
    own_close(fd);
    while (got > 0 && stat[got - 1] != ')')
        got--;
    return got > 0 && got + 1 < (long)sizeof stat ? stat[got + 1] : 0;
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
