/* SPDX-License-Identifier: Apache-2.0 */
/* bursts-internal.h - the bursts of a profile as models need them: for the curve, and for weights of single
 * bursts. */
#ifndef CACHEGRAM_ANALYSIS_BURSTS_INTERNAL_H
#define CACHEGRAM_ANALYSIS_BURSTS_INTERNAL_H

#include "analysis/burst-weights.h"
#include "analysis/curve.h"
#include "analysis/thread-time.h"
#include "model/clock.h"
#include "model/watched.h"

/* Seed of the bootstrap if the profile has none: the same profile gives the same curve. */
#define DEFAULT_SEED 1
/*
 * After a part in full mode, the references of the rest are its CPU time times a rate. In a short rest most
 * code is counted for the first time, and the measured rate may be several times too low. It is combined with
 * an assumed one, of eight programs of 0.05 to 1 s with 0.8 to 3.6 references per ns
 * (scripts/bench-short.py): as a mean of the logarithms, in which the measured one has a share of rest /
 * (rest + REST_COLD_NS).
 */
#define REST_REFS_PER_NS 2.0
#define REST_COLD_NS 1e8
/* A rest without bursts is taken to be at least so long. It is the difference of two CPU times: rests of 0.05
 * to 1.3 ms were measured as 0 in 11 of 20 runs. */
#define REST_LEAST_NS 5e5
/* Standard deviations of the logarithms of the assumed rate and of the measured one. Other processors and
 * programs that miss often differ more than those eight (0.35). */
#define REST_DOUBT 0.6
#define REST_MEASURED_DOUBT 0.3

/* Data for the curve of one profile; all arrays are malloc'ed. */
struct loaded {
    struct profile_burst *list; /* of the profile */
    size_t nlist;
    struct profile_watch *watched;
    size_t nwatched;
    struct curve_burst *bursts; /* the selected ones; curve->bursts of them */
    struct curve_watch *watches;
    struct analysis_missed *sites; /* of watches */
    struct curve_sets *sets;
    struct curve_time *times; /* of bursts */
    uint64_t *hits;           /* of bursts: within string instructions */
    struct clock *clock;
    struct thread_time *thread_time; /* for caches of single threads; else NULL */
    size_t parts;                    /* after the bursts: parts of the run that were recorded in full mode */
    double left_share; /* the part of their first touches whose lines count by their last ones */
    /* Of the part of the run in which every reference was counted: their number, 0 if there is no such part,
     * and how many a nanosecond has in native execution. */
    double counted_references, counted_per_ns;
    double counted_strings; /* of these, elements of string instructions without the first ones */
};

/* First the profile's bursts, with rates that are bounded; sets: also distances within cache
 * sets. loaded_clear in any case. All return 0, or negative with err, unless stated otherwise. */
int loaded_make(struct loaded *l, struct profile *p, int sets, struct error *err);
void loaded_clear(struct loaded *l);
/* Then what models need of those of a thread (0: of all), in l->bursts; counts them in curve. */
int loaded_bursts(struct profile *p, uint32_t tid, struct loaded *l, struct analysis_curve *curve,
                  struct error *err);
/* After them the part of the run that was recorded in full mode, if there is one, and it has something of the
 * thread (0: of all). */
int loaded_full_part(struct profile *p, uint32_t tid, struct loaded *l, struct analysis_curve *curve,
                     struct error *err);
/* Weights in references of the run. tid: as above. *rest_ns: CPU time that the bursts represent which were
 * placed by it, if the run began in full mode; NaN: not known. */
int loaded_weigh(struct profile *p, struct loaded *l, uint32_t tid, const struct analysis_curve *curve,
                 double *rest_ns, struct error *err);
/* For loaded_make: bounds the rates of bursts, and fills in those that are missing or of cold code. */
int loaded_rates(struct loaded *l, struct error *err);
/* References per ns in native execution by which a burst is weighted. */
double loaded_weight_rate(const struct profile_burst *b);
/* Gets a stored histogram, or leaves it as it is if there is none. */
int loaded_hist(struct profile *p, uint64_t burst, enum profile_hist kind, struct packed_hist *into,
                struct error *err);
/* The profile's number of that name, or 0 if there is none that is positive. */
double positive_number(struct profile *p, const char *key);
/* Sum of the weights of the first n bursts. */
double loaded_weight(const struct loaded *l, size_t n);
/* Leaves weights only to the bursts of a phase, and finds the references of its exact windows. The number of
 * bursts, or a negative code with err. */
int loaded_phase(struct profile *p, uint32_t phase, struct loaded *l, struct analysis_curve *curve,
                 uint64_t *exact_references, struct error *err);
/* Bursts have weights. tid: as above; of_part: only of the bursts that have one. */
struct unseen_strings loaded_unseen_strings(const struct loaded *l, uint32_t tid, int of_part,
                                            const struct analysis_curve *curve);
/* Number of processes; 0: not known. */
size_t loaded_processes(struct profile *p);
/* Says why there are no bursts. -ENODATA. */
int loaded_nothing(struct profile *p, const char *name, struct error *err);

#endif
