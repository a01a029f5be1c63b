/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/drain/missed.h"

#include <stdio.h>

/* Slowdown of code while it is recorded, and while it is only counted. Measured on six programs: 3 to 10 and
 * 1.2 to 2.5. With so much code that the code cache is full, most of the time goes into translating: 13 was
 * measured with cc1plus. */
#define RECORDED_SLOWER 4.
#define RECORDED_SLOWER_FULL 13.
#define COUNTED_SLOWER 1.5
/* References in a lost buffer: half of its capacity. */
#define LOST_REFERENCES 30000.
/* The kernel splits CPU time into user mode and its own by looking at each tick, up to 4 ms apart. */
#define TICK_NS 4000000u

static const char *const names[WIRE_NATIVE_COUNT] = {
    [WIRE_NATIVE_CODE] = "code",       [WIRE_NATIVE_SEQUENCE] = "rseq", [WIRE_NATIVE_SPACE] = "space",
    [WIRE_NATIVE_BUFFER] = "buffer",   [WIRE_NATIVE_GS] = "gs",         [WIRE_NATIVE_SIGNAL] = "signal",
    [WIRE_NATIVE_EXEC] = "exec",       [WIRE_NATIVE_AGENT] = "agent",   [WIRE_NATIVE_OFF] = "off",
    [WIRE_NATIVE_UNKNOWN] = "unknown",
};

static int store(const struct wire_native *entry, struct profile *profile, uint64_t process,
                 struct error *err)
{
    uint32_t why = entry->key & 15;
    return profile != NULL
               ? profile_set_native(profile, process, entry->key >> 4, names[why], entry->user_ns, err)
               : 0;
}

int missed_add(struct missed *m, const struct wire_proc *proc, const struct agent_time *agent,
               uint64_t lost_buffers, struct profile *profile, uint64_t process, struct error *err)
{
    const struct wire_counters *count = &proc->count;
    /* Full mode does not need timers. */
    int off = count->disabled != WIRE_OFF_NOT && count->disabled != WIRE_OFF_TIMER;
    uint64_t all_ns = off ? agent->ns : count->unknown_threads != 0 ? count->cpu_ns : 0;
    struct wire_native rest = {.key = off ? WIRE_NATIVE_OFF : WIRE_NATIVE_UNKNOWN};
    int status = 0;
    for (uint32_t i = 0; i < WIRE_MAX_NATIVE && status == 0; i++) {
        struct wire_native entry = proc->native[i];
        if (entry.user_ns == 0 || (entry.key & 15) >= WIRE_NATIVE_COUNT)
            continue;
        m->native_ns[entry.key & 15] += entry.user_ns;
        status = store(&entry, profile, process, err);
    }
    rest.user_ns = all_ns > count->known_cpu_ns ? all_ns - count->known_cpu_ns : 0;
    if (off) {
        uint64_t assumed = rest.user_ns < agent->assumed_ns ? rest.user_ns : agent->assumed_ns;
        rest.user_ns = assumed + (uint64_t)((double)(rest.user_ns - assumed) * agent->user_share);
        m->assumed_ns += assumed;
    }
    if (rest.user_ns != 0 && status == 0) {
        m->native_ns[rest.key] += rest.user_ns;
        status = store(&rest, profile, process, err);
    }
    m->stepped += count->stepped;
    m->lost_buffers += lost_buffers > count->lost_threads ? lost_buffers - count->lost_threads : 0;
    m->lost_ns += count->lost_ns;
    return status;
}

void missed_limit(struct missed *m, double ns)
{
    double excess = (double)m->assumed_ns - (ns > 0 ? ns : 0);
    if (excess > 0) {
        m->native_ns[WIRE_NATIVE_OFF] -= (uint64_t)excess;
        m->assumed_ns -= (uint64_t)excess;
    }
}

/* pthread_create and the other libc functions that the agent executes natively make a few thousand references
 * each: what is measured of them below a tick is chance. */
static uint64_t native_for(const struct missed *m, unsigned why)
{
    return why == WIRE_NATIVE_AGENT && m->native_ns[why] < TICK_NS ? 0 : m->native_ns[why];
}

static double native_ns(const struct missed *m)
{
    double sum = (double)m->elsewhere_ns;
    for (unsigned why = 0; why < WIRE_NATIVE_COUNT; why++)
        sum += (double)native_for(m, why);
    return sum;
}

double missed_percent(const struct missed *m, int counted, double references, double translated_ns)
{
    double ns = native_ns(m), missing = (double)m->stepped + LOST_REFERENCES * (double)m->lost_buffers;
    double full_ns = (double)native_for(m, WIRE_NATIVE_SPACE);
    double recorded_ns = RECORDED_SLOWER * (ns - full_ns) + RECORDED_SLOWER_FULL * full_ns;
    if (references > 0 && translated_ns > 0)
        missing +=
            ((counted ? COUNTED_SLOWER * ns : recorded_ns) + (double)m->lost_ns) * references / translated_ns;
    else if (ns > 0)
        return 100;
    return missing > 0 ? 100 * missing / (missing + references) : 0;
}

void missed_reasons(const struct missed *m, char *text, size_t size)
{
    static const char *const words[WIRE_NATIVE_COUNT] = {
        [WIRE_NATIVE_CODE] = "in code that cannot be read, is not from a file or is of 32 bits",
        [WIRE_NATIVE_SEQUENCE] = "in restartable sequences (rseq)",
        [WIRE_NATIVE_SPACE] = "while the code cache was full",
        [WIRE_NATIVE_BUFFER] = "while no buffer was free",
        [WIRE_NATIVE_GS] = "in threads that use the GS register themselves",
        [WIRE_NATIVE_SIGNAL] = "while a signal was pending",
        [WIRE_NATIVE_EXEC] = "while another program was being executed",
        [WIRE_NATIVE_AGENT] = "in libc functions that cachegram executes natively",
        [WIRE_NATIVE_OFF] = "after the agent had turned itself off",
        [WIRE_NATIVE_UNKNOWN] = "in threads that were not created by pthread_create or thrd_create",
    };
    double all = native_ns(m);
    size_t used = 0;
    text[0] = '\0';
    for (unsigned why = 0; why < WIRE_NATIVE_COUNT && used < size; why++)
        if ((double)native_for(m, why) > 0.05 * all)
            used += (size_t)snprintf(text + used, size - used, "%s%.4f s of CPU time %s", used ? ", " : "",
                                     (double)native_for(m, why) * 1e-9, words[why]);
    if ((double)m->elsewhere_ns > 0.05 * all && used < size)
        used += (size_t)snprintf(text + used, size - used,
                                 "%s%.4f s of CPU time in programs that could not be profiled",
                                 used ? ", " : "", (double)m->elsewhere_ns * 1e-9);
    if (used < size && m->lost_buffers != 0)
        used += (size_t)snprintf(text + used, size - used,
                                 "%sthe last records of threads whose process was killed by a signal",
                                 used ? ", " : "");
    if (used < size && (double)m->lost_ns > 0.05 * all)
        used += (size_t)snprintf(text + used, size - used,
                                 "%sthe last records of threads whose process was ended by another thread",
                                 used ? ", " : "");
    if (used < size && (m->stepped != 0 && used == 0))
        snprintf(text, size, "%llu instructions that are not translated", (unsigned long long)m->stepped);
}
