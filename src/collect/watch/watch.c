/* SPDX-License-Identifier: Apache-2.0 */
/* watch.c - draws survivors; keeps the table `watch`. */
#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include "base/random.h"
#include "collect/watch/watch.h"

struct watches {
    struct profile *profile;
    unsigned per_burst, line_bytes;
    struct random_state random;
    size_t *choices;     /* indices of survivors */
    uint64_t *positions; /* of the choices */
    struct watch_request *requests;
    size_t nchoices;
};

struct watches *watches_new(struct profile *p, unsigned per_burst, unsigned line_bytes, uint64_t seed,
                            struct error *err)
{
    struct watches *w = calloc(1, sizeof *w);
    if (w == NULL) {
        error_set(err, -ENOMEM, "out of memory for the watched lines");
        return NULL;
    }
    w->profile = p;
    w->per_burst = per_burst;
    w->line_bytes = line_bytes;
    random_seed(&w->random, seed);
    return w;
}

void watches_free(struct watches *w)
{
    if (w == NULL)
        return;
    free(w->requests);
    free(w->positions);
    free(w->choices);
    free(w);
}

void watches_set_per_burst(struct watches *w, unsigned per_burst)
{
    w->per_burst = per_burst;
}

/* Lines touched after each chosen one: to compare them with all is cheaper than to sort all. */
static void find_positions(struct watches *w, const struct stackdist_survivor *survivors, size_t n,
                           size_t chosen)
{
    for (size_t k = 0; k < chosen; k++) {
        uint64_t age = survivors[w->choices[k]].age, position = 0;
        for (size_t i = 0; i < n; i++)
            position += survivors[i].age < age;
        w->positions[k] = position;
    }
}

static int make_room(struct watches *w, size_t chosen)
{
    if (chosen <= w->nchoices)
        return 0;
    size_t *choices = realloc(w->choices, chosen * sizeof *choices);
    w->choices = choices != NULL ? choices : w->choices;
    uint64_t *positions = realloc(w->positions, chosen * sizeof *positions);
    w->positions = positions != NULL ? positions : w->positions;
    struct watch_request *requests = realloc(w->requests, chosen * sizeof *requests);
    w->requests = requests != NULL ? requests : w->requests;
    if (choices == NULL || positions == NULL || requests == NULL)
        return -ENOMEM;
    w->nchoices = chosen;
    return 0;
}

/* k of n survivors: systematic sampling, from a random start, since survivors next to each other are alike.
 */
static void draw(struct watches *w, size_t n, size_t k, size_t *out)
{
    double step = (double)n / (double)k, next = step * random_unit(&w->random);
    for (size_t i = 0; i < k; i++, next += step) /* k may be 0 */
        out[i] = next < (double)n ? (size_t)next : n - 1;
}

/* If not all can be watched, the first ones are. */
static void shuffle(struct watches *w, size_t n)
{
    for (size_t i = n; i > 1; i--) {
        size_t j = (size_t)random_below(&w->random, i), choice = w->choices[j];
        w->choices[j] = w->choices[i - 1];
        w->choices[i - 1] = choice;
    }
}

long watches_choose(struct watches *w, const struct watch_burst *burst, const struct watch_request **requests,
                    struct error *err)
{
    const struct stackdist_survivor *survivors = burst->survivors;
    size_t n = burst->n, watched = burst->unwatched ? 0 : n < w->per_burst ? n : w->per_burst;
    /* No more than there are survivors: a curve checks that. */
    size_t followed = n - watched < burst->followed ? n - watched : burst->followed,
           chosen = watched + followed;
    *requests = w->requests;
    if (chosen == 0)
        return 0;
    if (make_room(w, chosen) < 0)
        return error_set(err, -ENOMEM, "out of memory for the survivors of a burst");
    draw(w, n, watched, w->choices);
    shuffle(w, watched);
    draw(w, n, followed, w->choices + watched);
    find_positions(w, survivors, n, chosen);
    for (size_t i = 0; i < chosen; i++) {
        struct stackdist_survivor survivor = survivors[w->choices[i]];
        struct profile_watch watch = {
            .burst = burst->burst,
            .address = survivor.line * w->line_bytes,
            .position = w->positions[i],
            .age = survivor.age,
            .weight = (double)n / (double)chosen,
            .outcome = PROFILE_OPEN,
            .refs = NAN,
            .cpu_ns = NAN,
            .translated_refs = NAN,
            .clock_error = NAN,
            .tail_refs = NAN,
            .tail_lines = NAN,
            .object = burst->object_of != NULL ? burst->object_of(burst->ctx, &survivor) : 0,
        };
        int status = profile_add_watch(w->profile, &watch, err);
        if (status < 0)
            return status;
        w->requests[i] = (struct watch_request){
            .id = watch.id,
            .address = watch.address,
            .position = watch.position,
            .age = watch.age,
            .in_tail = i >= watched,
        };
    }
    *requests = w->requests;
    return (long)chosen;
}

int watches_outcome(struct watches *w, const struct profile_watch *watch, struct error *err)
{
    assert(watch->outcome != PROFILE_OPEN && watch->outcome < PROFILE_OUTCOMES);
    return profile_set_outcome(w->profile, watch, err);
}
