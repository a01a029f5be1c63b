/* SPDX-License-Identifier: Apache-2.0 */
/* outcome.c - what the profile and the result say about a run that has ended: figures, warnings, names. */
#include <inttypes.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "collect/drain/missed.h"
#include "collect/drain/refusals.h"
#include "collect/drain/unprofiled.h"
#include "collect/launch/launch.h"
#include "collect/launch/process-time.h"
#include "collect/records/tee.h"
#include "collect/run-internal.h"
#include "collect/tunables.h"
#include "symbols/name.h"

static double seconds(const struct timeval *t)
{
    return (double)t->tv_sec + (double)t->tv_usec * 1e-6;
}

static double cpu_seconds(const struct rusage *u)
{
    return seconds(&u->ru_utime) + seconds(&u->ru_stime);
}

void run_warn(struct collect_result *result, const char *format, ...)
{
    size_t used = strlen(result->warning), capacity = sizeof(result->warning);
    va_list arguments;
    if (used != 0 && used + 1 < capacity)
        used += (size_t)snprintf(result->warning + used, capacity - used, "\n");
    va_start(arguments, format);
    vsnprintf(result->warning + used, capacity - used, format, arguments);
    va_end(arguments);
}

static double user_share(const struct run *r)
{
    double all = cpu_seconds(&r->usage);
    return all > 0 ? seconds(&r->usage.ru_utime) / all : 0;
}

/* CPU time in user mode that the program took, without profiling, after full mode and what was counted: what
 * bursts represent that were placed by it. It is a difference of estimates, which may be 0 for a short rest
 * or many threads; so at least half of the time that was planned for those bursts. */
static double rest_seconds(const struct run *r, double added)
{
    if (r->pace.counts)
        return 0;
    double all = cpu_seconds(&r->usage), sampled = (double)reduce_totals(r->reducer)->represented_ns * 1e-9;
    double rest = all - (double)r->before.target_ns * 1e-9 - (added - (double)r->recorded_ns * 1e-9);
    return fmax(rest * user_share(r), sampled / 2);
}

struct number {
    const char *key;
    double value; /* NAN: there is none */
};

static int store_numbers(struct profile *p, const struct number *numbers, size_t n, struct error *err)
{
    int status = 0;
    for (size_t i = 0; i < n && status >= 0; i++)
        if (!isnan(numbers[i].value))
            status = profile_set_number(p, numbers[i].key, numbers[i].value, err);
    return status;
}

/* CPU seconds of the run and what they were used for, and what was counted in it. */
struct account {
    double target, bursts, watching, starts, recorder;
    struct drain_counting counted;
    uint64_t counted_references, counted_strings;
    uint64_t timed_references; /* that `counted` is the time of: without bursts */
    int all_counted;           /* every reference between full mode and the last burst was counted */
};

static struct account account_of(struct run *r)
{
    const struct reduce_totals *t = reduce_totals(r->reducer);
    struct budget_use use = drain_use(r->drain);
    uint64_t burst_ns = drain_burst_cpu_ns(r->drain) - r->before.burst_ns + r->recorded_ns;
    if (r->full && burst_ns < t->burst_cpu_ns)
        burst_ns = t->burst_cpu_ns;
    struct account a = {
        .target = cpu_seconds(&r->usage),
        .bursts = (double)burst_ns * 1e-9,
        .watching = (double)use.watch_ns * 1e-9,
        .starts = (double)use.start_ns * 1e-9,
        /* Until now: the names of functions and lines may take as long as all that was recorded (cc1plus). */
        .recorder = (double)(clock_ns(CLOCK_PROCESS_CPUTIME_ID) - r->recorder_before_ns) * 1e-9,
        /* Counting was perhaps not over before the program's end. */
        .counted =
            r->pace.counts || r->clock == COLLECT_CLOCK_COUNT_ALWAYS ? drain_counting(r->drain) : r->counted,
        .counted_references = drain_all_counted(r->drain) + t->counted_references,
        .counted_strings = drain_all_counted_strings(r->drain),
        .timed_references = r->pace.counts ? drain_all_counted(r->drain) : r->counted_references,
    };
    if (a.counted_strings < r->counted_strings)
        a.counted_strings = r->counted_strings;
    a.all_counted = a.counted_references > 0 && r->clock == COLLECT_CLOCK_COUNT;
    return a;
}

/* CPU seconds that are paid from the budget; counting all references is not. */
static double budgeted(const struct account *a)
{
    return a->bursts + a->watching + a->starts;
}

static void set_result(struct run *r, const struct account *a)
{
    struct collect_result *result = r->result;
    const struct reduce_totals *t = reduce_totals(r->reducer);
    double added = budgeted(a) + a->counted.added_ns * 1e-9;
    double program_seconds = r->full ? a->target : a->target - added;

    /* Without a reducer only the trace was written, which counts references. */
    result->references = r->reducer != NULL ? t->decoded.references : result->trace_references;
    result->full = r->full;
    result->full_references = t->full_references;
    result->bursts = r->reducer != NULL ? t->bursts : r->full ? 0 : drain_use(r->drain).bursts;
    /* All of a burst counts as overhead, although part of it is the program's own work, except what the agent
     * knows not to be overhead (system calls). In full mode there is nothing to compare with. */
    result->overhead_percent = !r->full && program_seconds > 0 ? 100 * added / program_seconds : NAN;
    result->cpu_seconds = a->target;
    result->recorder_overhead_percent = program_seconds > 0 ? 100 * a->recorder / program_seconds : NAN;
}

static int store_results(struct run *r, int exit_status, struct error *err)
{
    const struct account a = account_of(r);
    const struct reduce_totals *t = reduce_totals(r->reducer);
    const struct collect_result *result = r->result;
    double native_ns = a.counted.native_ns;
    set_result(r, &a);

    const struct number numbers[] = {
        {"references", (double)result->references},
        {"touches", (double)t->decoded.touches},
        {"loads", (double)t->decoded.loads},
        {"stores", (double)t->decoded.stores},
        {"instructions", (double)t->decoded.instructions},
        {"cold", (double)t->cold},
        {"bursts", (double)result->bursts},
        {"full_references", r->full ? NAN : (double)t->full_references},
        {"full_cold", r->full ? NAN : (double)t->full_cold},
        {"full_left", r->full ? NAN : (double)t->full_left},
        {"rest_cpu_seconds", t->full_references > 0 && !r->full ? rest_seconds(r, budgeted(&a)) : NAN},
        {"full_cpu_seconds", r->full ? NAN : (double)r->full_ns * 1e-9},
        {"counted_references", a.all_counted ? (double)a.counted_references : NAN},
        {"counted_string_references", a.all_counted ? (double)a.counted_strings : NAN},
        {"counted_cpu_seconds", a.all_counted ? (native_ns + a.counted.added_ns) * 1e-9 : NAN},
        {"counted_refs_per_ns",
         a.all_counted && native_ns > 0 ? (double)a.timed_references / (native_ns * user_share(r)) : NAN},
        {"clock_references", r->clock == COLLECT_CLOCK_COUNT_ALWAYS && !r->full
                                 ? (double)(drain_counted(r->drain) + t->decoded.references)
                                 : NAN},
        {"bad_records", (double)t->decoded.bad_records},
        {"lost_buffers", (double)drain_lost(r->drain)},
        {"cpu_seconds", a.target},
        {"user_cpu_seconds", seconds(&r->usage.ru_utime)},
        {"sampled_cpu_seconds", r->reducer != NULL && !r->full && r->clock != COLLECT_CLOCK_COUNT_ALWAYS
                                    ? (double)t->represented_ns * 1e-9
                                    : NAN},
        {"recorder_cpu_seconds", a.recorder},
        {"overhead_percent", result->overhead_percent},
        {"burst_cpu_seconds", a.bursts},
        {"watch_cpu_seconds", a.watching},
        {"start_cpu_seconds", a.starts},
        {"memory_bytes", (double)drain_memory_bytes(r->drain)},
        {"wall_seconds", (double)(monotonic_ns() - r->start_ns) * 1e-9},
        {"exit_status", exit_status},
    };
    int status = store_numbers(r->profile, numbers, sizeof(numbers) / sizeof(numbers[0]), err);
    if (status >= 0 && result->warning[0] != '\0')
        status = profile_set(r->profile, "warning", result->warning, err);
    return status;
}

/* Whether no process had the agent. */
static int none_attached(const struct run *r)
{
    return __atomic_load_n(&r->session.map->attached, __ATOMIC_RELAXED) == 0;
}

/* Warns of programs that the agent could not be loaded into, among the command's children or executed by the
 * command. */
static void warn_unprofiled_time(struct run *r, int named, struct error *err)
{
    double all = cpu_seconds(&r->usage), profiled = (double)drain_agent_ns(r->drain) * 1e-9;
    double rest = r->obstacle == NULL ? all - profiled : all;
    uint32_t refused = __atomic_load_n(&r->session.map->refused_slots, __ATOMIC_RELAXED);
    if (!r->options->follow || refused != 0 || drain_trouble(r->drain) != NULL ||
        rest < COLLECT_UNPROFILED_SHARE * all || rest < COLLECT_UNPROFILED_SECONDS)
        return;
    if (profile_set_number(r->profile, "unprofiled_cpu_seconds", rest, err) < 0)
        return;
    if (r->obstacle == NULL && !(named && none_attached(r))) /* then all of it, and it is said */
        run_warn(r->result, "%.2f s of the %.2f s of CPU time were not profiled%s", rest, all,
                 named ? "" : ": programs that are " UNPROFILED_KINDS);
}

/* Burst mode: why there are no bursts, or far fewer than planned. */
static void warn_few_bursts(struct run *r, struct error *err)
{
    const struct reduce_totals *t = reduce_totals(r->reducer);
    struct collect_result *result = r->result;
    double cpu = cpu_seconds(&r->usage) - (double)r->before.target_ns * 1e-9,
           represented = (double)t->represented_ns * 1e-9;
    char why[sizeof(result->nothing)];
    if (r->full || r->reducer == NULL ||
        (t->bursts != 0 &&
         (r->clock == COLLECT_CLOCK_COUNT_ALWAYS || r->pace.counts || represented > COLLECT_FEW_SHARE * cpu)))
        return;
    /* After full mode, which has not been short of anything, a short rest may well have none. */
    if (t->full_references != 0 && t->bursts == 0 && cpu < COLLECT_REST_SECONDS)
        return;
    struct refusals refused = *drain_refusals(r->drain);
    if (t->bursts != 0) /* a thread that waits for an answer of the collector blocks all signals, too */
        refused.blocked_ns = 0;
    refusals_reason(&refused, (uint64_t)(cpu * 1e9), why, sizeof(why));
    if (why[0] != '\0' && t->bursts != 0) {
        profile_set(r->profile, "few_bursts", why, err);
    } else if (why[0] != '\0') {
        run_warn(result, "no bursts: %s", why);
        profile_set(r->profile, "few_bursts", why, err);
    } else if (t->bursts == 0 && result->warning[0] == '\0' && drain_trouble(r->drain) == NULL) {
        double gap = (double)r->session.map->gap_ns * 1e-9;
        uint32_t processes = __atomic_load_n(&r->session.map->attached, __ATOMIC_RELAXED);
        char what[64] = "no burst happened to begin in it";
        if (processes > 1 && cpu < processes * gap)
            snprintf(what, sizeof(what), "its %u processes were each too short to be sampled", processes);
        else if (cpu < COLLECT_SHORT_GAPS * gap)
            snprintf(what, sizeof(what), "too short to be sampled");
        snprintf(result->nothing, sizeof(result->nothing), "%s, it took %.0f ms of CPU time; try --mode full",
                 what, cpu * 1e3);
    }
}

/* Full mode, and counting always: how much could not be recorded or counted, and why. */
static void warn_missed(struct run *r, int named, struct error *err)
{
    int counted = !r->full;
    const struct reduce_totals *t = reduce_totals(r->reducer);
    if ((counted && r->clock != COLLECT_CLOCK_COUNT_ALWAYS) || r->reducer == NULL)
        return;
    struct missed m = *drain_missed(r->drain);
    double elsewhere = 0;
    if (named) /* programs without the agent are known: the remaining time is theirs */
        elsewhere = cpu_seconds(&r->usage) - (double)drain_agent_ns(r->drain) * 1e-9;
    else if (profile_get_number(r->profile, "unprofiled_cpu_seconds", &elsewhere, NULL) < 0)
        elsewhere = 0;
    m.elsewhere_ns = elsewhere > 0 ? (uint64_t)(elsewhere * 1e9) : 0;
    /* Processes that the recorder did not see before they had ended are assumed to have run all the time. In
     * reality they share what is left of the CPU time. */
    double measured_ns = (double)(drain_agent_ns(r->drain) - drain_assumed_ns(r->drain));
    missed_limit(&m, (cpu_seconds(&r->usage) * 1e9 - measured_ns) * user_share(r));
    double references = (double)(t->decoded.references + (counted ? drain_counted(r->drain) : 0));
    double translated_ns = counted ? cpu_seconds(&r->usage) * 1e9 : (double)t->burst_cpu_ns;
    double percent = missed_percent(&m, counted, references, translated_ns);
    if (profile_set_number(r->profile, "missed_percent", percent, err) < 0 || percent < MISSED_STORED_PERCENT)
        return;
    char why[512];
    missed_reasons(&m, why, sizeof(why));
    if (profile_set(r->profile, "missed", why, err) < 0 || percent < MISSED_WARNED_PERCENT)
        return;
    run_warn(r->result, "about %.*f%% of the references are missing, since they were not recorded: %s",
             percent < 10, percent, why);
}

/* Such threads are noticed while references are recorded or counted without gaps, and from outside. */
static void warn_unknown_threads(struct run *r)
{
    uint64_t inside_ns = drain_missed(r->drain)->native_ns[WIRE_NATIVE_UNKNOWN],
             seen_ns = drain_unknown_threads_ns(r->drain);
    double all = cpu_seconds(&r->usage), unknown = (double)(inside_ns > seen_ns ? inside_ns : seen_ns) * 1e-9;
    if (!r->full && r->clock != COLLECT_CLOCK_COUNT_ALWAYS && unknown >= COLLECT_UNPROFILED_SHARE * all &&
        unknown >= COLLECT_UNPROFILED_SECONDS)
        run_warn(
            r->result,
            "%.2f s or more of the %.2f s of CPU time were not profiled: threads that were not created by "
            "pthread_create or thrd_create",
            unknown, all);
}

/* Names code while its files exist. Everything else is committed before, since this may take a moment. */
static void name_code(struct run *r)
{
    struct error err;
    if (r->reducer == NULL || r->options->reduce != COLLECT_REDUCE_DISTANCES ||
        drain_trouble(r->drain) != NULL)
        return;
    struct symbols_code code = code_found(reduce_code(r->reducer));
    code.objects = object_table_all(reduce_objects(r->reducer), &code.nobjects);
    code.block_bytes = object_table_block_bytes(reduce_objects(r->reducer));
    code.files = object_table_files(reduce_objects(r->reducer), &code.nfiles);
    reduce_describe(r->reducer, &code);
    if (profile_commit(r->profile, &err) < 0 || symbols_name(r->profile, &code, &err) < 0)
        run_warn(r->result, "functions and lines were not named: %s", err.text);
}

/* Processes that had the agent, but no place in the session. */
static void warn_refused(struct run *r)
{
    const struct wire_session *map = r->session.map;
    uint32_t refused = __atomic_load_n(&map->refused_slots, __ATOMIC_RELAXED);
    if (__atomic_load_n(&map->refused_pids, __ATOMIC_RELAXED) != 0)
        run_warn(r->result, "what ran in another PID namespace (a sandbox or container) was not recorded: "
                            "record inside it");
    if (__atomic_load_n(&map->refused_roots, __ATOMIC_RELAXED) != 0)
        run_warn(r->result,
                 "what ran in another root directory (chroot or container) or sandbox was not recorded: the "
                 "agent's library cannot be opened there");
    if (refused != 0)
        run_warn(r->result,
                 "%u processes were not recorded, as more than %u ran, or had just ended, at the same time",
                 refused, COLLECT_SLOTS);
}

/* Adds to the list of what was not profiled. */
static void list_unknown_children(struct run *r, char *list, size_t size)
{
    uint64_t n = drain_unknown_children(r->drain);
    char text[128];
    if (n == 0)
        return;
    snprintf(text, sizeof(text), "%" PRIu64 " child process%s made by clone, _Fork or a system call", n,
             n == 1 ? "" : "es");
    run_warn(r->result, "not profiled: %s", text);
    size_t used = strlen(list);
    snprintf(list + used, size - used, "%s%s", used > 0 ? ", " : "", text);
}

void run_finish(struct run *r, int exit_status)
{
    struct collect_result *result = r->result;
    struct error err = {""};
    char list[768] = ""; /* programs without the agent */
    static const char *const of_bursts[] = {"burst_refs", "budget_percent", "clock", "clock_error", "watch"};

    if (r->obstacle == NULL) {
        warn_refused(r);
    } else {
        run_warn(result, "not profiled: %s %s, so the agent cannot be loaded into it", r->options->argv[0],
                 r->obstacle);
        snprintf(list, sizeof(list), "%s (%s)", r->options->argv[0], r->obstacle);
    }
    if (r->options->reduce != COLLECT_REDUCE_DISTANCES)
        run_warn(result, "recorded without distances, as requested by --reduce: this profile has no curve");
    drain_finish(r->drain);
    char text[256];
    for (unsigned why = 0; unprofiled_next(drain_unprofiled(r->drain), &why, text, sizeof(text));)
        run_warn(result, "%s", text);
    if (r->obstacle == NULL && r->options->follow)
        drain_agentless(r->drain, list, sizeof(list));
    if (r->is_static && list[0] == '\0') /* it ended before anyone looked */
        snprintf(list, sizeof(list), "%s (%s)", r->options->argv[0], launch_static);
    if (r->obstacle == NULL && list[0] != '\0')
        run_warn(result, "not profiled: %s", list);
    else if (r->obstacle == NULL && none_attached(r))
        run_warn(result, "the agent was never loaded into the program");
    if (r->obstacle == NULL)
        list_unknown_children(r, list, sizeof(list));
    if (list[0] != '\0')
        profile_set(r->profile, "unprofiled", list, &err);
    warn_unprofiled_time(r, list[0] != '\0', &err);
    warn_missed(r, list[0] != '\0', &err);
    warn_unknown_threads(r);
    warn_few_bursts(r, &err);
    if (r->tee != NULL) {
        tee_flush(r->tee);
        result->trace_references = tee_references(r->tee);
        if (tee_finish(r->tee, &err) < 0)
            run_warn(result, "the trace is incomplete: %s", err.text);
        r->tee = NULL;
    }
    if (r->full) /* what it would have been, had the allowance not sufficed */
        for (size_t i = 0; i < sizeof(of_bursts) / sizeof(of_bursts[0]); i++)
            profile_unset(r->profile, of_bursts[i], &err);
    name_code(r);
    const struct error *trouble = drain_trouble(r->drain);
    if (trouble != NULL) {
        result->trouble = *trouble;
        run_warn(result, "recording ended early: %s", trouble->text);
    }
    /* Attempted in any case: if only memory was short, the file can still be written. */
    int status = store_results(r, exit_status, &err);
    if (profile_close(r->profile, trouble == NULL && status >= 0, status >= 0 ? &err : NULL) < 0)
        status = -EIO;
    if (status < 0 && trouble == NULL)
        result->trouble = err;
    r->profile = NULL;
}
