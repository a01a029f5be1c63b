/* SPDX-License-Identifier: Apache-2.0 */
/* targets.c - goes back from an instruction to where a register got its value, over several instructions. */
#include "symbols/targets.h"

#include "symbols/members.h"
#include "symbols/pointees.h"

/* Steps from one register to another. */
#define MOST_ORIGINS 6u
#define RBP 6u

/* Of which both are multiples. */
static uint64_t both_steps(uint64_t a, uint64_t b)
{
    if (a == 0 || b == 0)
        return a + b;
    return a % b == 0 ? b : b % a == 0 ? a : 1;
}

/* Whether it may be at its displacement in any element of an array, after steps. */
static int is_in_step(struct definitions *d, struct symbols_target *t)
{
    Dwarf_Word bytes;
    return t->step == 0 ||
           (symbols_members_size(d, &t->type, &bytes) == 0 && bytes > 0 && t->step % bytes == 0);
}

/* What a pointer points to that a function has in its frame: code that is not optimized loads it from there.
 */
static int find_in_frame(const struct symbols_access *access, uint64_t address,
                         const struct disassembler_address *at, Dwarf_Die *type)
{
    return at->n == 1 && at->registers[0] == RBP && !at->is_indexed
               ? symbols_pointees_frame(access->scopes, address, at->displacement, type)
               : -1;
}

/* Steps that it takes to look for the origins of an address' registers: with two there are twice as many ways
 * to go at each step. */
static unsigned cost(const struct disassembler_address *address)
{
    return address->n == 1 ? 1 : 3;
}

/* That of a register at an offset of the file, by the variable in it, or by where it got its value from: the
 * sum of such a pointer and something, or the memory where one is stored. 0, or -1: not known. */
static int find(struct symbols_files *files, const struct symbols_access *access, uint64_t at,
                unsigned number, unsigned steps, struct symbols_target *t)
{
    uint64_t low, high, address = access->address - access->offset + at;
    struct definitions *d = scopes_definitions(access->scopes);
    struct symbols_types *types;
    struct disassembler_origin o;
    Dwarf_Die around;
    *t = (struct symbols_target){0};
    if (symbols_pointees_register(access->scopes, address, number, &t->type) == 0 ||
        symbols_pointees_any(access->scopes, address, number, &t->type) == 0)
        return 0;
    if (steps >= MOST_ORIGINS ||
        !symbols_image_function(symbols_files_image(files, access->path), at, &low, &high) ||
        high - low > SYMBOLS_MOST_FUNCTION ||
        disassembler_origin(access->disassembler, low, high, at, number, &o) != 0 || o.offset >= at)
        return -1;
    int found = 0;
    switch (o.how) {
    case DISASSEMBLER_ENTRY:
        found = find(files, access, low, number, MOST_ORIGINS, t) == 0;
        break;
    case DISASSEMBLER_STATIC_VALUE:
    case DISASSEMBLER_LOADED_STATIC:
        types = symbols_files_types(files, access->path);
        found = types != NULL && symbols_types_element(types, o.static_address, &around) == 0;
        if (found && o.how == DISASSEMBLER_STATIC_VALUE)
            t->type = around;
        else
            found = found && symbols_pointees_stored(d, &around, 0, &t->type) == 0;
        break;
    case DISASSEMBLER_ADDED:
        for (unsigned i = 0; i < o.address.n && !found; i++)
            found = find(files, access, o.offset, o.address.registers[i], steps + cost(&o.address), t) == 0;
        t->displacement += o.address.displacement;
        t->is_indexed |= o.address.is_indexed;
        break;
    case DISASSEMBLER_LOADED:
        found = find_in_frame(access, address, &o.address, &around) == 0;
        for (unsigned i = 0; i < o.address.n && !found; i++)
            found =
                find(files, access, o.offset, o.address.registers[i], steps + cost(&o.address), t) == 0 &&
                symbols_pointees_stored(d, &t->type, t->displacement + o.address.displacement, &around) == 0;
        *t = (struct symbols_target){.type = around, .is_indexed = o.is_sum};
        break;
    }
    t->step = both_steps(t->step, o.step);
    return found ? 0 : -1;
}

int symbols_target(struct symbols_files *files, const struct symbols_access *access, unsigned number,
                   struct symbols_target *t)
{
    return find(files, access, access->offset, number, 0, t) == 0 &&
                   is_in_step(scopes_definitions(access->scopes), t)
               ? 0
               : -1;
}
