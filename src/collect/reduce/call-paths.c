/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call-paths.c - a shadow stack for each stack of each thread.
 *
 * An entry of a shadow stack is a return address and where it lies on the real one, its slot. A return from a
 * slot removes all entries whose slot is not above it, and so does a call before it adds its own: whatever
 * the program has left by longjmp, or by calls in code that is not recorded, is gone by then. Another stack
 * of the same thread, as coroutines have, is recognized by its distance.
 *
 * Example: the stack holds main's call at 0x7ff8 and f's call at 0x7fc0. A call in g with slot 0x7f90 adds an
 * entry below f's; a return with slot 0x7fc0 removes both; one with slot 0x7fa0, from a function that was
 * entered in unrecorded code, removes g's only.
 *
 * Calls get nodes of the tree when a touch is counted below them: most calls never need one. (ruby has made
 * 65536 different paths before it reads its program.)
 */
#include "collect/reduce/call-paths.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/pages.h"
#include "base/random.h"
#include "collect/objects/callers.h"
#include "collect/reduce/sampled-table.h"
#include "collect/tunables.h"

#define NODE_SLOTS (2 * COLLECT_PATH_NODES)
#define PLACES 16384u /* a power of two */
#define FRAMES 4096u  /* likewise */
#define COPIED 128u   /* calls that are found in the copy of a stack, at most */
#define DEPTH 16384u  /* calls that a shadow stack holds, at most; the path of deeper ones is not known */
#define FAR (UINT64_C(16) << 20) /* bytes from one slot to the next on the same stack, at most */
/* A call from a site that is among the last FOLD_NEAR ones of its path, or among all if that is longer than
 * FOLD_ALL, is that one again. Else a recursion over a binary tree, by two sites, has 2^depth paths. */
#define FOLD_NEAR 4u
#define FOLD_ALL 128u
/* The return address of a function lies at most so much below that of its caller's last known call: what
 * returns between is a signal handler. Else it is on another stack, such as a coroutine's. */
#define HANDLER_BYTES (UINT64_C(16) << 10)
#define NO_NODE UINT32_MAX
/* Innermost calls whose functions' frames are looked at before each batch. */
#define NOTED 64u

struct call_tree {
    struct code *code;
    struct sampled_table *counts; /* of struct symbols_call */
    struct symbols_path *nodes;   /* [0]: the root */
    uint32_t n;
    uint32_t slots[NODE_SLOTS]; /* nodes by caller and site; 0: empty */
};

struct entry {
    uint64_t slot, returns;
    uint32_t module; /* of the return address; UINT32_MAX: not known */
    uint32_t node;   /* of the path up to that call; NO_NODE: none yet */
};

struct shadow {
    struct shadow *next;
    uint32_t tid, depth, capacity;
    int too_deep; /* there are calls that had no space */
    uint64_t burst;
    uint64_t last; /* slot that was used; 0: none */
    /* Of the function that made the outermost known call, or, without any, of the innermost one; 0: not
     * known. */
    uint64_t outer_cfa;
    struct entry *entries;
};

/* The site of the call before a return address, as long as no module is added. */
struct place {
    uint64_t address;
    uint32_t module, nmodules, site;
    int known;
};

/* How many bytes the frame of the function around a return address has, as long as that never changes. */
struct frame_bytes {
    uint64_t returns;
    uint64_t bytes; /* 0: they do change */
};

struct call_paths {
    struct call_tree *tree;
    struct callers *callers;
    const struct decoder *decoder;
    struct code_process code; /* nmodules is set when it is used */
    const uint32_t *nmodules;
    struct shadow *stacks; /* most recently used first */
    struct shadow *current;
    int is_new;                                  /* nothing of this burst's frames was noted yet */
    struct stack_frame innermost;                /* when the burst began */
    uint64_t innermost_pc;                       /* 0: not known */
    const struct decode_turn *turns, *turns_end; /* of the batch: those ahead */
    uint32_t samples;                            /* touches counted since they were thinned out last */
    uint32_t thinned;                            /* how often they were */
    uint64_t every; /* one touch in so many is counted; this many until the next one: */
    uint64_t ahead;
    struct random_state random;
    struct place places[PLACES];
    struct frame_bytes frames[FRAMES];
};

/* --- the tree --- */

struct call_tree *call_tree_new(struct code *code, struct error *err)
{
    struct call_tree *t = pages_sparse_new(sizeof(*t));
    if (t != NULL) {
        t->code = code;
        t->n = 1;
        t->nodes = pages_sparse_new(COLLECT_PATH_NODES * sizeof(*t->nodes));
        t->counts = sampled_table_new(COLLECT_PATH_COUNTS, SYMBOLS_CALL_KEY, err);
    }
    if (t != NULL && t->nodes != NULL && t->counts != NULL)
        return t;
    call_tree_free(t);
    error_set(err, -ENOMEM, "out of memory for call paths");
    return NULL;
}

void call_tree_free(struct call_tree *t)
{
    if (t == NULL)
        return;
    pages_sparse_free(t->nodes, COLLECT_PATH_NODES * sizeof(*t->nodes));
    sampled_table_free(t->counts);
    pages_sparse_free(t, sizeof(*t));
}

void call_tree_describe(const struct call_tree *t, struct symbols_code *code)
{
    code->paths = t->nodes;
    code->npaths = t->n;
    code->calls = sampled_table_all(t->counts, &code->ncalls);
}

/* The node of a call, the depth-th of its path, below another one. When there are too many nodes, the path
 * begins after that call. */
static uint32_t find_node(struct call_tree *t, uint32_t caller, uint32_t site, uint32_t depth)
{
    uint32_t near = depth < FOLD_ALL ? FOLD_NEAR : depth;
    for (uint32_t node = caller; node != 0 && near > 0; node = t->nodes[node].caller, near--)
        if (t->nodes[node].site == site)
            return node;
    uint64_t hash = ((uint64_t)caller << 32 | site) * UINT64_C(0x9e3779b97f4a7c15);
    uint32_t at = (uint32_t)(hash >> 32) % NODE_SLOTS;
    for (; t->slots[at] != 0; at = (at + 1) % NODE_SLOTS)
        if (t->nodes[t->slots[at]].caller == caller && t->nodes[t->slots[at]].site == site)
            return t->slots[at];
    if (t->n == COLLECT_PATH_NODES)
        return 0;
    t->nodes[t->n] = (struct symbols_path){caller, site};
    t->slots[at] = t->n;
    return t->n++;
}

/* --- a process --- */

struct call_paths *call_paths_new(struct call_tree *tree, struct object_table *files,
                                  const struct decoder *decoder, const struct wire_module *modules,
                                  const uint32_t *nmodules, uint32_t pid)
{
    struct call_paths *p = pages_sparse_new(sizeof(*p));
    if (p == NULL)
        return NULL;
    p->tree = tree;
    p->decoder = decoder;
    p->code = (struct code_process){.modules = modules, .pid = pid};
    p->nmodules = nmodules;
    random_seed(&p->random, 1);
    if ((p->callers = callers_new(files, modules, nmodules)) != NULL)
        return p;
    call_paths_free(p);
    return NULL;
}

void call_paths_free(struct call_paths *p)
{
    if (p == NULL)
        return;
    for (struct shadow *s = p->stacks, *next; s != NULL; s = next) {
        next = s->next;
        free(s->entries);
        free(s);
    }
    callers_free(p->callers);
    pages_sparse_free(p, sizeof(*p));
}

/* The site of the call of an entry. */
static uint32_t site_of(struct call_paths *p, const struct entry *e)
{
    uint64_t returns = e->returns;
    struct place *place = &p->places[(returns * UINT64_C(0x9e3779b97f4a7c15) >> 32) % PLACES];
    p->code.nmodules = __atomic_load_n(p->nmodules, __ATOMIC_ACQUIRE);
    if (place->address != returns || place->module != e->module || place->nmodules != p->code.nmodules ||
        !place->known) {
        int64_t site = code_add_place_in(p->tree->code, &p->code, e->module, returns - 1);
        if (site < 0)
            site = code_add_place(p->tree->code, &p->code, returns - 1);
        *place = (struct place){returns, e->module, p->code.nmodules,
                                site >= 0 ? (uint32_t)site : SYMBOLS_NO_SITE, 1};
    }
    return place->site;
}

/* --- shadow stacks --- */

static void forget(struct shadow *s)
{
    s->last = s->outer_cfa = 0;
    s->depth = 0;
    s->too_deep = 0;
}

static void leave(struct shadow *s, uint64_t slot)
{
    while (s->depth > 0 && s->entries[s->depth - 1].slot <= slot) {
        s->depth--;
        s->too_deep = 0;
    }
    if (slot + 8 >= s->outer_cfa)
        s->outer_cfa = 0;
}

/* The node of the innermost call; 0: not known. */
static uint32_t top(struct call_paths *p, struct shadow *s)
{
    uint32_t i = s->depth;
    while (i > 0 && s->entries[i - 1].node == NO_NODE)
        i--;
    uint32_t node = i > 0 ? s->entries[i - 1].node : 0;
    for (; i < s->depth; i++)
        node = s->entries[i].node = find_node(p->tree, node, site_of(p, &s->entries[i]), i);
    return s->too_deep ? 0 : node;
}

static int has_space(struct shadow *s)
{
    if (s->depth < s->capacity)
        return 1;
    uint32_t capacity = s->capacity > 0 ? 2 * s->capacity : COPIED;
    struct entry *entries = capacity <= DEPTH ? realloc(s->entries, capacity * sizeof(*entries)) : NULL;
    if (entries == NULL)
        return 0;
    s->entries = entries;
    s->capacity = capacity;
    return 1;
}

/* A call; `leave` came before it. */
static void enter(struct shadow *s, uint64_t slot, uint64_t returns, uint32_t module)
{
    s->last = slot;
    if (has_space(s))
        s->entries[s->depth++] = (struct entry){slot, returns, module, NO_NODE};
    else
        s->too_deep = 1;
}

/* Whether a slot is on another stack than those before. */
static int is_far(const struct shadow *s, uint64_t slot)
{
    uint64_t distance = slot > s->last ? slot - s->last : s->last - slot;
    return s->last != 0 && distance > FAR;
}

/* The shadow of a thread's stack that has that slot near by; slot 0: of the one it used last. It is moved to
 * the front. If there are too many, the one that was not used for longest is used for it. NULL when memory is
 * short. */
static struct shadow *find_shadow(struct call_paths *p, uint32_t tid, uint64_t slot)
{
    struct shadow **at = &p->stacks, *s;
    unsigned n = 0;
    while (*at != NULL && !((*at)->tid == tid && (slot == 0 || !is_far(*at, slot))) &&
           (++n < COLLECT_PATH_STACKS || (*at)->next != NULL))
        at = &(*at)->next;
    if ((s = *at) != NULL)
        *at = s->next;
    else if ((s = calloc(1, sizeof(*s))) == NULL)
        return NULL;
    if (s->tid != tid || (slot != 0 && is_far(s, slot)))
        forget(s);
    s->tid = tid;
    s->next = p->stacks;
    p->stacks = s;
    return s;
}

/* Of a stack that this burst has not used, nothing is known. */
static void use_in_burst(struct shadow *s, uint64_t burst)
{
    if (s->burst != burst)
        forget(s);
    s->burst = burst;
}

static void take_turn(struct call_paths *p, const struct decode_turn *turn)
{
    struct shadow *s = p->current;
    if (is_far(s, turn->slot)) {
        uint64_t burst = s->burst;
        if ((s = find_shadow(p, s->tid, turn->slot)) == NULL)
            return;
        use_in_burst(s, burst);
        p->current = s;
    }
    if (turn->returns == 0 && s->depth > 0 && !s->too_deep &&
        turn->slot + HANDLER_BYTES < s->entries[s->depth - 1].slot)
        forget(s);
    leave(s, turn->slot);
    s->last = turn->slot;
    if (turn->returns != 0)
        enter(s, turn->slot, turn->returns, turn->module);
}

static void take_turns(struct call_paths *p, size_t until)
{
    for (; p->turns < p->turns_end && p->turns->at <= until; p->turns++)
        take_turn(p, p->turns);
}

static struct frame_bytes *frame_bytes_of(struct call_paths *p, uint64_t returns)
{
    return &p->frames[(returns * UINT64_C(0x9e3779b97f4a7c15) >> 32) % FRAMES];
}

static void learn_frame(struct call_paths *p, uint64_t returns, uint64_t bytes)
{
    struct frame_bytes *f = frame_bytes_of(p, returns);
    if (f->returns != returns)
        *f = (struct frame_bytes){returns, bytes};
    else if (f->bytes != bytes) /* arrays of variable length */
        f->bytes = 0;
}

/* The CFA of the function that made the outermost known call, if its caller is not known: by the unwind
 * information, if that has the CFA relative to the stack pointer; else it is where it was before. 0: not
 * known. */
static uint64_t find_outer_cfa(struct call_paths *p, const struct shadow *s)
{
    const struct callers_stack nothing = {0};
    const struct callers_frame outer = {.pc = s->entries[0].returns, .sp = s->entries[0].slot + 8};
    const struct frame_bytes *f = frame_bytes_of(p, outer.pc);
    uint64_t cfa;
    if (callers_cfa(p->callers, &nothing, &outer, &cfa) == 0)
        return cfa;
    return f->returns == outer.pc && f->bytes != 0 ? outer.sp + f->bytes : 0;
}

/* Frame number i of a shadow stack, from the outermost known function on: that of the function which has made
 * call number i. cfa 0: not known. */
static struct stack_frame frame_of(struct call_paths *p, struct shadow *s, uint32_t i)
{
    if (i == 0 && s->outer_cfa == 0 && s->depth > 0)
        s->outer_cfa = find_outer_cfa(p, s);
    uint64_t sp = i < s->depth ? s->entries[i].slot + 8 : 0,
             cfa = i > 0 ? s->entries[i - 1].slot + 8 : s->outer_cfa;
    if (sp != 0 && cfa != 0)
        learn_frame(p, s->entries[i].returns, cfa - sp);
    return (struct stack_frame){.tid = s->tid, .file = UINT32_MAX, .low = sp, .sp = sp, .cfa = cfa};
}

/* The function that called the agent, in which a new thread begins, and a program. The agent has no unwind
 * information: it is the first return address on the stack that is not the agent's own. 1, or 0: there is
 * none. */
static unsigned find_caller_of_agent(struct call_paths *p, const struct callers_stack *stack,
                                     struct callers_frame *caller)
{
    for (uint64_t i = 0; i < stack->nwords; i++) {
        struct callers_place place = callers_place(p->callers, stack->words[i]);
        *caller = (struct callers_frame){
            .pc = stack->words[i], .sp = stack->sp + 8 * i + 8, .slot = stack->sp + 8 * i};
        if (place.file != UINT32_MAX && !place.agent)
            return 1;
    }
    return 0;
}

static void begin(struct call_paths *p, struct shadow *s, const struct wire_desc *desc,
                  const struct wire_stack *copy)
{
    uint64_t nwords = desc->stack_words < WIRE_STACK_WORDS ? desc->stack_words : WIRE_STACK_WORDS;
    struct callers_frame frames[COPIED + 1];
    frames[0] = (struct callers_frame){.pc = desc->pc + 1, .sp = copy->sp, .rbp = copy->rbp};
    const struct callers_stack stack = {frames[0].sp, nwords, copy->words};
    unsigned n = 0;
    while (n < COPIED) {
        frames[n + 1] = frames[n];
        if (callers_next(p->callers, &stack, &frames[n + 1]) < 0 ||
            callers_place(p->callers, frames[n + 1].pc).agent)
            break;
        n++;
    }
    if (n == 0 && callers_place(p->callers, frames[0].pc).agent)
        n = find_caller_of_agent(p, &stack, &frames[1]);
    if (callers_cfa(p->callers, &stack, &frames[n], &s->outer_cfa) != 0)
        s->outer_cfa = 0;
    for (unsigned i = n; i > 0; i--)
        enter(s, frames[i].slot, frames[i].pc, UINT32_MAX);
    p->innermost = frame_of(p, s, s->depth);
    p->innermost.low = p->innermost.sp = copy->sp;
    p->innermost_pc = desc->pc;
}

int call_paths_buffer(struct call_paths *p, const struct wire_desc *desc, const struct wire_stack *stack)
{
    struct shadow *s = p->current = find_shadow(p, desc->tid, 0);
    if (s == NULL)
        return -ENOMEM;
    p->is_new |= s->burst != desc->burst;
    use_in_burst(s, desc->burst);
    p->innermost_pc = 0;
    p->every = (uint64_t)(desc->full ? COLLECT_PATH_EVERY_FULL : COLLECT_PATH_EVERY) << p->thinned;
    if (desc->stack_words > 0 && stack != NULL) {
        forget(s);
        begin(p, s, desc, stack);
        p->is_new = 1;
    }
    return 0;
}

/* --- touches --- */

void call_paths_batch(struct call_paths *p, const struct decode_turn *turns, size_t n)
{
    p->turns = turns;
    p->turns_end = turns + n;
}

void call_paths_touch(struct call_paths *p, size_t at, uint64_t process, uint32_t site, uint32_t what,
                      uint64_t touches)
{
    take_turns(p, at);
    uint64_t counted = 0;
    while (p->ahead < touches) {
        counted += p->every;
        p->ahead += 1 + random_below(&p->random, 2 * p->every - 1);
    }
    p->ahead -= touches;
    if (counted == 0)
        return;
    if (++p->samples == COLLECT_SAMPLES_THINNED) {
        p->thinned++;
        p->samples = 0;
    }
    const struct symbols_call call = {
        .process = process, .site = site, .path = top(p, p->current), .what = what};
    sampled_table_add(p->tree->counts, &call, counted);
}

void call_paths_batch_over(struct call_paths *p)
{
    take_turns(p, SIZE_MAX);
}

/* --- frames --- */

/* returns: the return address of a call in its function, or one byte after the start of an instruction. */
static void note(struct call_paths *p, struct frames *frames, struct stack_frame frame, uint64_t returns)
{
    if (returns != 0) {
        struct callers_place place = callers_place(p->callers, returns);
        frame.file = place.file;
        frame.offset = place.offset;
    }
    frames_note(frames, &frame);
}

static int is_large(const struct stack_frame *frame)
{
    return frame->cfa > frame->low && frame->cfa - frame->low >= STACK_FRAME_BYTES;
}

void call_paths_note_frames(struct call_paths *p, struct frames *frames)
{
    struct shadow *s = p->current;
    if (p->is_new)
        frames_forget(frames, s->tid);
    if (p->is_new && p->innermost_pc != 0 && is_large(&p->innermost))
        note(p, frames, p->innermost, p->innermost_pc + 1);
    p->is_new = 0;
    if (s->depth > 0)
        frames_batch(frames, s->tid, s->entries[s->depth - 1].slot + 8);
    for (uint32_t i = s->depth; i > 0 && s->depth - i < NOTED; i--) {
        struct stack_frame frame = frame_of(p, s, i - 1);
        if (is_large(&frame))
            note(p, frames, frame, s->entries[i - 1].returns);
    }
}

void call_paths_note_frame(struct call_paths *p, struct frames *frames, size_t at, uint32_t site,
                           uint64_t address)
{
    take_turns(p, at);
    struct shadow *s = p->current;
    uint32_t low = 0, high = s->depth; /* the first call whose slot is not above the address */
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (s->entries[middle].slot > address)
            low = middle + 1;
        else
            high = middle;
    }
    struct stack_frame frame = frame_of(p, s, low);
    uint64_t returns = 0;
    uint32_t module;
    if (frame.cfa <= address || s->too_deep)
        return;
    if (low == s->depth) { /* the innermost function; how far its frame reaches is not known */
        frame.low = address;
        if (is_large(&frame) && decoder_site_code(p->decoder, site, &returns, &module) == 0)
            returns++;
    } else if (is_large(&frame)) {
        returns = s->entries[low].returns;
    }
    note(p, frames, frame, returns);
}
