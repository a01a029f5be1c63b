/* SPDX-License-Identifier: Apache-2.0 */
/* session.h - the memory file that agents and collector share (wire.h): creation, layout, removal. */
#ifndef CACHEGRAM_SESSION_H
#define CACHEGRAM_SESSION_H

#include <stdint.h>
#include "base/error.h"
#include "wire/wire.h"

struct session {
    int fd;                   /* close-on-exec; agents reach it as /proc/PID/fd/N */
    struct wire_session *map; /* the session page; its layout fields are not read again, since the
                               * target can write to them: `layout` is our own copy */
    struct wire_session layout;
};

struct session_setting {
    enum wire_mode mode;
    int begins_full;         /* mode is full, and the run goes on in bursts (wire_session.begins_full) */
    uint64_t burst_refs;     /* longest burst */
    uint64_t long_tail_refs; /* the same of a long tail; 0: there is none */
    uint64_t tail_refs; /* references after it that are recorded too (watch/burst-tail.h); in burst mode */
    uint64_t gap_us;    /* mean CPU time between a thread's bursts */
    uint64_t seed;
    int follow; /* children too */
};
/* Uses no memory until something is written. 0 or negative errno. */
int session_init(struct session *s, const struct session_setting *setting, struct error *err);
void session_clear(struct session *s);
/* Maps slot i completely; NULL on failure; munmap(slot, layout.slot_bytes) when done. */
struct wire_proc *session_map_slot(const struct session *s, uint32_t i);
/* State of slot i's process, without mapping the slot. */
uint32_t session_slot_state(const struct session *s, uint32_t i);
/* Returns slot i's memory to the system. It then reads as zeros, which is state WIRE_PROC_FREE. */
void session_release_slot(const struct session *s, uint32_t i);

/*
 * Wakes the collector, as agents do: ends a drain_wait, also one that is about to begin. Async-signal-safe.
 */
void session_ring(struct wire_session *session);

#endif
