/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/objects/callers.h"
#include <stdlib.h>
#include <string.h>
#include "base/base-name.h"
#include "base/pages.h"
#include "symbols/demangle.h"
#include "symbols/unwind.h"

#define RULES 16384u /* a power of two */
#define AGENT "libcachegram-agent"

/* What is known of a return address, as long as no module is added. */
struct rule {
    uint64_t address;
    uint32_t nmodules;
    struct symbols_rule rule;
    int known;
    struct callers_place place;
    enum { INNER_UNKNOWN, INNER_NO, INNER_YES } inner; /* callers_is_inner */
};

struct callers {
    struct object_table *table;
    const struct wire_module *modules;
    const uint32_t *nmodules;
    struct rule rules[RULES];
};

struct callers *callers_new(struct object_table *table, const struct wire_module *modules,
                            const uint32_t *nmodules)
{
    struct callers *c = pages_sparse_new(sizeof(*c));
    if (c == NULL)
        return NULL;
    c->table = table;
    c->modules = modules;
    c->nmodules = nmodules;
    return c;
}

void callers_free(struct callers *c)
{
    pages_sparse_free(c, sizeof(*c));
}

static int is_library(const char *path)
{
    static const char *const names[] = {"libc.so",     "libc-2",      "libstdc++",   "libc++", "ld-linux",
                                        "libjemalloc", "libtcmalloc", "libmimalloc", AGENT};
    const char *base = base_name(path);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strncmp(base, names[i], strlen(names[i])) == 0)
            return 1;
    return 0;
}

static void find_rule(struct callers *c, uint64_t address, uint32_t n, struct rule *rule)
{
    *rule = (struct rule){.address = address, .nmodules = n, .place = {.file = UINT32_MAX}};
    for (uint32_t i = n < WIRE_MAX_MODULES ? n : WIRE_MAX_MODULES; i > 0; i--) {
        struct wire_module m = c->modules[i - 1]; /* the target may change its own */
        if (address < m.start || address >= m.end)
            continue;
        uint64_t at;
        m.path[sizeof(m.path) - 1] = '\0';
        /* The call is what comes before the return address. */
        rule->place = (struct callers_place){.file = object_table_file(c->table, m.path),
                                             .offset = address - m.start + m.file_offset - 1,
                                             .library = is_library(m.path),
                                             .agent = strncmp(base_name(m.path), AGENT, strlen(AGENT)) == 0};
        struct symbols_data *data = object_table_data(c->table, m.path);
        struct symbols_unwind *unwind = object_table_unwind(c->table, m.path);
        rule->known = data != NULL && unwind != NULL &&
                      symbols_data_address(data, rule->place.offset, &at) == 0 &&
                      symbols_unwind_find(unwind, at, &rule->rule) == 0;
        return;
    }
}

static struct rule *rule_of(struct callers *c, uint64_t address)
{
    struct rule *rule = &c->rules[(address * UINT64_C(0x9e3779b97f4a7c15) >> 32) % RULES];
    uint32_t n = __atomic_load_n(c->nmodules, __ATOMIC_ACQUIRE);
    if (rule->address != address || rule->nmodules != n || address == 0)
        find_rule(c, address, n, rule);
    return rule;
}

static int stack_word(const struct callers_stack *stack, uint64_t address, uint64_t *word)
{
    uint64_t at = address - stack->sp;
    if (at % 8 != 0 || at / 8 >= stack->nwords)
        return -1;
    *word = stack->words[at / 8];
    return 0;
}

/* Code without unwind information: what rbp points to is a frame if a known function continues above it. */
static int by_frame_pointer(struct callers *c, const struct callers_stack *stack, struct callers_frame *frame)
{
    struct callers_frame next = {.sp = frame->rbp + 16, .slot = frame->rbp + 8};
    if (frame->rbp < frame->sp || stack_word(stack, frame->rbp, &next.rbp) != 0 ||
        stack_word(stack, next.slot, &next.pc) != 0 || rule_of(c, next.pc)->place.file == UINT32_MAX)
        return -1;
    *frame = next;
    return 0;
}

/* By a rule that is known. */
static int find_cfa(const struct rule *rule, const struct callers_stack *stack,
                    const struct callers_frame *frame, uint64_t *cfa)
{
    *cfa = (rule->rule.by_rbp ? frame->rbp : frame->sp) + (uint64_t)rule->rule.offset;
    return rule->rule.in_memory ? stack_word(stack, *cfa, cfa) : 0;
}

int callers_cfa(struct callers *c, const struct callers_stack *stack, const struct callers_frame *frame,
                uint64_t *cfa)
{
    const struct rule *rule = rule_of(c, frame->pc);
    return rule->known && find_cfa(rule, stack, frame, cfa) == 0 && *cfa > frame->sp ? 0 : -1;
}

int callers_next(struct callers *c, const struct callers_stack *stack, struct callers_frame *frame)
{
    const struct rule *rule = rule_of(c, frame->pc);
    uint64_t cfa;
    if (!rule->known)
        return by_frame_pointer(c, stack, frame);
    if (find_cfa(rule, stack, frame, &cfa) != 0)
        return -1;
    struct callers_frame next = {.sp = cfa, .rbp = frame->rbp, .slot = cfa - 8};
    uint64_t saved = (rule->rule.rbp_by_rbp ? frame->rbp : cfa) + (uint64_t)rule->rule.rbp_offset;
    if (cfa <= frame->sp || stack_word(stack, next.slot, &next.pc) != 0 || next.pc == 0 ||
        (rule->rule.rbp_saved && stack_word(stack, saved, &next.rbp) != 0))
        return -1;
    *frame = next;
    return 0;
}

struct callers_place callers_place(struct callers *c, uint64_t address)
{
    return rule_of(c, address)->place;
}

int callers_is_inner(struct callers *c, uint64_t address)
{
    struct rule *rule = rule_of(c, address);
    const struct callers_place place = rule->place;
    if (rule->inner == INNER_UNKNOWN) {
        size_t nfiles;
        const char *const *files = object_table_files(c->table, &nfiles);
        struct symbols_data *data =
            place.file < nfiles ? object_table_data(c->table, files[place.file]) : NULL;
        uint64_t at;
        const char *name = data != NULL && symbols_data_address(data, place.offset, &at) == 0
                               ? symbols_data_function(data, at)
                               : NULL;
        rule->inner = name != NULL && symbols_is_of_standard_library(name) ? INNER_YES : INNER_NO;
    }
    return rule->inner == INNER_YES;
}
