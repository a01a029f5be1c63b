/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fields.c - which fields instructions fetch.
 *
 * Of a variable the type is known, and each sampled offset into it is a field.
 *
 * Memory that was allocated has no type. What it holds is known in three ways. An instruction that addresses
 * it by a register, when a variable `struct node *` is in that register, fetches the field of struct node
 * that its displacement says, also if an index is added to both. The register may also have been loaded from
 * a member, an element or a variable that is such a pointer, and loops may add multiples of the structure's
 * size to it. And what std::vector and its like allocate has
 * the type that their allocator has, and what Box, Vec, HashMap and their like allocate in Rust that of their
 * elements. And the result of an allocation is assigned to a variable that points to a structure
 * (assigned.h), by the function that calls malloc or, if that returns a void *, by its caller. The structures
 * that are found for the instructions on one object are compared with the sampled offsets: if nearly all
 * offsets agree, modulo the size of the structure, the object's blocks are arrays of it, and the offsets of
 * all other instructions become fields, too.
 *
 * Arrays of bytes, in such structures or global, may hold structures of which only the instructions know.
 */
#include "symbols/fields.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/fields.h"
#include "symbols/assigned.h"
#include "symbols/members.h"
#include "symbols/pointees.h"
#include "symbols/receivers.h"
#include "symbols/targets.h"

/* Fields of one object that are distinguished. */
#define MOST_FIELDS 256u
/* Blocks are arrays of a structure if at least so many sampled offsets, and this part of them, agree. */
#define LEAST_OFFSETS 8u
#define AGREEING 0.9
/* Blocks for fewer than so many of a structure are of its size, or an exact multiple: others are of something
 * larger that begins with it, as objects of a class do with those of its base. */
#define SEVERAL 8u
/* As the size of structures that end with an array of unknown length. */
#define OPEN UINT64_MAX
/* Part of all lines that those of an object must have: reading the debug information of libc takes 30 ms. */
#define LEAST_PART 0.001

/* What an instruction works on, by the variable in its base register. */
struct pointee {
    int tried, known;
    Dwarf_Die type;
    struct definitions *definitions; /* of its file */
    uint64_t bytes, displacement;    /* its size; less than it */
    int is_indexed;                  /* by that variable and a register, for an array */
};

/* Lines that an instruction fetched of an object; or references with false sharing. */
struct piece {
    uint32_t object, row, site;
    int has_offset, shared;
    uint64_t offset, lines;
};

struct storing {
    struct profile *profile;
    const struct symbols_code *code;
    struct error *err;
    struct symbols_files *files;
    struct pointee *pointees; /* of each site */
    uint64_t nfields;         /* that have a row */
    /* of the current object */
    struct symbols_field *names;
    uint64_t ids[MOST_FIELDS];
    size_t n;
    int table;    /* they are tables of Rust's hash maps, whose entries are: */
    int typed;    /* its blocks are arrays of the type below; */
    int assigned; /* likewise, and it is that of the variable to which they were assigned */
    Dwarf_Die type;
    struct definitions *definitions; /* of its file */
    uint64_t type_bytes;
    /* of the current row and object */
    uint64_t lines[MOST_FIELDS], shared[MOST_FIELDS];
};

/* --- what is in allocated memory --- */

/* The structure on which an instruction works by a register that no variable is in. */
static int find_origin(struct storing *s, const struct symbols_access *access, unsigned number,
                       struct disassembler_address *memory, Dwarf_Die *type)
{
    struct symbols_target t;
    if (symbols_target(s->files, access, number, &t) != 0 || !symbols_members_is_structure(&t.type))
        return -1;
    memory->displacement += t.displacement;
    memory->is_indexed |= t.is_indexed;
    *type = t.type;
    return 0;
}

static void find_pointee(struct storing *s, uint32_t site, struct pointee *p)
{
    const struct symbols_site *place = &s->code->sites[site];
    const char *path = place->image < s->code->nimages ? s->code->images[place->image] : NULL;
    struct disassembler *disassembler = path != NULL ? symbols_files_disassembler(s->files, path) : NULL;
    const struct scopes *scopes;
    struct disassembler_address memory;
    uint64_t address, array;
    unsigned known = 0;
    Dwarf_Word bytes;
    if (disassembler == NULL || disassembler_memory(disassembler, place->offset, &memory) != 0 ||
        (scopes = symbols_image_scopes(symbols_files_image(s->files, path), place->offset, &address)) == NULL)
        return;
    for (unsigned i = 0; i < memory.n; i++) {
        Dwarf_Die type;
        if (symbols_pointees_register(scopes, address, memory.registers[i], &type) == 0) {
            p->type = type;
            known++;
        }
    }
    for (unsigned i = 0; i < memory.n && known == 0; i++)
        known =
            symbols_pointees_near(scopes, address, memory.registers[i], &memory.displacement, &p->type) == 0;
    p->definitions = scopes_definitions(scopes);
    const struct symbols_access access = {path, disassembler, scopes, place->offset, address};
    for (unsigned i = 0; i < memory.n && known == 0; i++)
        known = find_origin(s, &access, memory.registers[i], &memory, &p->type) == 0;
    if (known != 1 || symbols_members_size(p->definitions, &p->type, &bytes) != 0 || memory.displacement < 0)
        return;
    p->displacement = (uint64_t)memory.displacement;
    p->is_indexed = memory.is_indexed;
    if (symbols_members_is_open(p->definitions, &p->type, &array)) {
        bytes = OPEN;
        /* An index may count from the beginning of the structure. */
        if (p->is_indexed && p->displacement < array)
            p->displacement = array;
    }
    p->bytes = bytes;
    p->known = p->displacement < bytes;
}

/* NULL: not known. */
static const struct pointee *pointee_of(struct storing *s, uint32_t site)
{
    struct pointee *p = &s->pointees[site];
    if (!p->tried) {
        p->tried = 1;
        find_pointee(s, site, p);
    }
    return p->known ? p : NULL;
}

/* The structure for which a library of C++ or Rust allocated the object's blocks. code.h describes the form
 * of `path`. 0, or -1. */
static int find_allocated(struct storing *s, const char *path)
{
    for (const char *at = path; *at != '\0';) {
        char *end;
        size_t number = strtoull(at, &end, 16);
        if (*end++ != '+')
            return -1;
        uint64_t offset = strtoull(end, &end, 16), address;
        struct symbols_image *image =
            number < s->code->nfiles ? symbols_files_image(s->files, s->code->files[number]) : NULL;
        const struct scopes *scopes = image != NULL ? symbols_image_scopes(image, offset, &address) : NULL;
        Dwarf_Word size;
        int found = scopes != NULL ? symbols_pointees_allocated(scopes, address, &s->type, &s->table) : -1;
        if (found == 0 && symbols_members_size(scopes_definitions(scopes), &s->type, &size) == 0 &&
            size > 0) {
            s->definitions = scopes_definitions(scopes);
            s->type_bytes = size;
            return 0;
        }
        if (found >= 0)
            return -1;
        at = end + (*end == ' ');
    }
    return -1;
}

static int is_same(const struct pointee *a, const struct pointee *b)
{
    Dwarf_Die x = a->type, y = b->type;
    const char *x_name = dwarf_diename(&x), *y_name = dwarf_diename(&y);
    return a->bytes == b->bytes &&
           (x.addr == y.addr || (x_name != NULL && y_name != NULL && strcmp(x_name, y_name) == 0));
}

/* Of which the sizes of the object's blocks are multiples; 0: not known. */
static uint64_t block_bytes(const struct storing *s, const struct profile_object *object)
{
    return s->code->block_bytes != NULL ? s->code->block_bytes[object->id - 1] : 0;
}

/* The structure that the elements of an array of Fortran are. 0, or -1. */
static int find_elements(struct storing *s, const char *path, uint64_t end_of_call, Dwarf_Die *type)
{
    struct symbols_receiver array;
    if (symbols_receiver(s->files, path, end_of_call, 0, &array) != 0)
        return -1;
    free(array.name);
    *type = array.elements;
    return type->addr != NULL && symbols_members_is_structure(type) ? 0 : -1;
}

/* The structure of the variable to which the object's blocks are assigned, by the function that allocates
 * them or, as long as these return a void *, by its callers: *callers of them. Likewise. */
static int find_assigned(struct storing *s, const struct profile_object *object, struct pointee *assigned,
                         unsigned *callers)
{
    Dwarf_Word size;
    *callers = 0;
    for (const char *at = object->name; *at != '\0'; ++*callers) {
        char *end;
        size_t number = strtoull(at, &end, 16);
        if (*end != '+' || number >= s->code->nfiles)
            return -1;
        const char *path = s->code->files[number];
        struct symbols_image *image = symbols_files_image(s->files, path);
        uint64_t offset = strtoull(end + 1, &end, 16), address;
        const struct scopes *scopes = image != NULL ? symbols_image_scopes(image, offset, &address) : NULL;
        if (scopes == NULL)
            return -1;
        if (symbols_assigned(s->files, path, offset + 1, block_bytes(s, object), &assigned->type) == 0 ||
            find_elements(s, path, offset + 1, &assigned->type) == 0) {
            assigned->definitions = symbols_image_definitions(image);
            if (symbols_members_size(assigned->definitions, &assigned->type, &size) != 0 || size == 0)
                return -1;
            assigned->bytes = size;
            return 0;
        }
        if (!symbols_pointees_returns_memory(scopes, address))
            return -1;
        at = end + (*end == ' ');
    }
    return -1;
}

/* Whether an instruction that works on that structure fetches the field which is at that offset. */
static int fetches(const struct pointee *p, uint64_t offset)
{
    struct symbols_field there, said;
    Dwarf_Die type = p->type;
    if (offset % p->bytes == p->displacement || !p->is_indexed)
        return offset % p->bytes == p->displacement;
    return symbols_members_find(p->definitions, &type, offset % p->bytes, &there) == 0 &&
           symbols_members_find(p->definitions, &type, p->displacement, &said) == 0 &&
           strcmp(there.name, said.name) == 0;
}

/* Whether nearly all sampled offsets of instructions that work on that structure agree with it. *all: their
 * number. */
static int agree(struct storing *s, const struct pointee *structure, const struct piece *list, size_t n,
                 int others_count, size_t *all)
{
    size_t agreeing = 0;
    *all = 0;
    for (size_t i = 0; i < n; i++) {
        const struct pointee *p = pointee_of(s, list[i].site);
        int same = p != NULL && is_same(p, structure);
        if (p == NULL || !list[i].has_offset || (!same && !others_count))
            continue;
        ++*all;
        agreeing += same && fetches(p, list[i].offset);
    }
    return (double)agreeing >= AGREEING * (double)*all;
}

/* Whether the object's blocks, by their size, may be arrays of structures of so many bytes. */
static int has_room(const struct storing *s, const struct profile_object *object, uint64_t bytes)
{
    uint64_t all = block_bytes(s, object);
    return all == 0 || bytes == OPEN || all % bytes == 0 || all / bytes >= SEVERAL;
}

/* Whether the object's blocks are arrays of some structure. */
static void find_type(struct storing *s, const struct profile_object *object, const struct piece *list,
                      size_t n)
{
    const struct pointee *best = NULL;
    uint64_t most = 0;
    struct pointee assigned = {0};
    unsigned callers;
    size_t all;
    s->typed = s->table = s->assigned = 0;
    if (object->kind != PROFILE_OBJECT_BLOCK)
        return;
    if (find_allocated(s, object->name) == 0) {
        s->typed = 1;
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const struct pointee *p = pointee_of(s, list[i].site);
        if (p != NULL && list[i].lines > most) {
            most = list[i].lines;
            best = p;
        }
    }
    if (best == NULL || !has_room(s, object, best->bytes) || !agree(s, best, list, n, 1, &all) ||
        all < LEAST_OFFSETS) {
        if (find_assigned(s, object, &assigned, &callers) != 0 ||
            !agree(s, &assigned, list, n, callers > 0, &all))
            return;
        best = &assigned;
        s->assigned = 1;
    }
    s->typed = 1;
    s->type = best->type;
    s->definitions = best->definitions;
    s->type_bytes = best->bytes;
}

/* --- fields --- */

/* The number of the field among those of the object, made if it is new. Or MOST_FIELDS: there are too many;
 * or a negative code. */
static int field_number(struct storing *s, uint64_t object, const struct symbols_field *field)
{
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->names[i].name, field->name) == 0 && strcmp(s->names[i].type, field->type) == 0)
            return (int)i;
    if (s->n == MOST_FIELDS)
        return MOST_FIELDS;
    s->names[s->n] = *field;
    s->ids[s->n] = ++s->nfields;
    int code = profile_add_field(
        s->profile,
        &(struct profile_field){
            .id = s->nfields, .object = object, .name = s->names[s->n].name, .type = s->names[s->n].type},
        s->err);
    return code < 0 ? code : (int)s->n++;
}

/* Stores what a row did with an object. */
static int store_lines(struct storing *s, uint64_t row, uint64_t object)
{
    int code = 0;
    for (size_t i = 0; i < s->n && code == 0; i++)
        if (s->lines[i] > 0)
            code = profile_add_site_field(
                s->profile, &(struct profile_site_field){row, object, s->ids[i], s->lines[i]}, s->err);
    for (size_t i = 0; i < s->n && code == 0; i++)
        if (s->shared[i] > 0)
            code = profile_add_sharing_field(
                s->profile, &(struct profile_sharing_field){row, object, s->ids[i], s->shared[i]}, s->err);
    memset(s->lines, 0, sizeof s->lines);
    memset(s->shared, 0, sizeof s->shared);
    return code;
}

static enum symbols_table_part table_part(struct storing *s, uint32_t site)
{
    const struct symbols_site *place = &s->code->sites[site];
    const char *path = place->image < s->code->nimages ? s->code->images[place->image] : NULL;
    struct symbols_image *image = path != NULL ? symbols_files_image(s->files, path) : NULL;
    uint64_t address;
    const struct scopes *scopes = image != NULL ? symbols_image_scopes(image, place->offset, &address) : NULL;
    return scopes != NULL ? symbols_pointees_table_part(scopes, address) : SYMBOLS_TABLE_UNKNOWN;
}

/* The field of the structure that the instruction works on. 0, or -1: not known. */
static int find_by_pointee(struct storing *s, const struct piece *piece, struct symbols_field *field)
{
    const struct pointee *p = pointee_of(s, piece->site);
    Dwarf_Die type;
    /* An index may begin elsewhere than the array does. */
    if (p == NULL || (p->is_indexed && piece->has_offset && !fetches(p, piece->offset)))
        return -1;
    type = p->type;
    return symbols_members_find(p->definitions, &type, p->displacement, field);
}

/* Of a global array of bytes from which a program allocates: ".key" of a node in it becomes "[].key". */
static int find_in_array(struct storing *s, const struct profile_object *object, const struct piece *piece,
                         struct symbols_field *field)
{
    struct symbols_field found;
    if (object->size / LEAST_OFFSETS < s->pointees[piece->site].bytes ||
        find_by_pointee(s, piece, &found) != 0)
        return -1;
    *field = found;
    return snprintf(field->name, sizeof field->name, "[]%.*s", (int)sizeof field->name - 3, found.name) > 0
               ? 0
               : -1;
}

/* Of a local variable. 0, or -1: none is known. */
static int find_in_local(struct storing *s, const struct profile_object *object, uint64_t offset,
                         struct symbols_field *field)
{
    struct symbols_locals *locals = symbols_files_locals(s->files, object->module);
    struct symbols_function *function =
        locals != NULL ? symbols_locals_function(locals, object->offset, NULL) : NULL;
    struct symbols_local *local = function != NULL ? symbols_function_named(function, object->name) : NULL;
    return local != NULL ? symbols_members_find(local->defined, &local->type, offset, field) : -1;
}

/* 0, or -1: none is known. */
static int find_field(struct storing *s, const struct profile_object *object, const struct piece *piece,
                      struct symbols_field *field)
{
    if (object->kind == PROFILE_OBJECT_LOCAL)
        return find_in_local(s, object, piece->offset, field);
    if (profile_object_is_variable(object)) {
        struct symbols_types *types = symbols_files_types(s->files, object->module);
        uint64_t address =
            object->offset | (object->kind == PROFILE_OBJECT_THREAD_LOCAL ? SYMBOLS_TYPES_TLS : 0);
        return types != NULL && symbols_types_find(types, address, piece->offset, field) == 0
                   ? 0
                   : find_in_array(s, object, piece, field);
    }
    if (s->typed && s->table) {
        enum symbols_table_part part = table_part(s, piece->site);
        if (part == SYMBOLS_TABLE_CONTROL)
            *field = (struct symbols_field){.name = ".ctrl", .type = "RawTable"};
        if (part != SYMBOLS_TABLE_ENTRIES || !piece->has_offset)
            return part == SYMBOLS_TABLE_CONTROL ? 0 : -1;
    }
    if (s->typed && piece->has_offset) {
        uint64_t offset = piece->offset % s->type_bytes;
        if (s->assigned && symbols_members_is_storage(s->definitions, &s->type, offset) &&
            find_by_pointee(s, piece, field) == 0)
            return 0;
        return symbols_members_find(s->definitions, &s->type, offset, field);
    }
    return find_by_pointee(s, piece, field);
}

/* Pieces of one object. */
static int store_object(struct storing *s, const struct profile_object *object, const struct piece *list,
                        size_t n)
{
    int code = 0;
    s->n = 0;
    find_type(s, object, list, n);
    for (size_t i = 0; i < n && code == 0; i++) {
        struct symbols_field field;
        /* The uses of a site contain the lines whose offsets are known. */
        int again = !list[i].has_offset && i > 0 && list[i - 1].row == list[i].row &&
                    list[i - 1].site == list[i].site && list[i - 1].has_offset;
        if (!again && find_field(s, object, &list[i], &field) == 0) {
            int number = field_number(s, object->id, &field);
            if (number < 0)
                return number;
            if (number < (int)MOST_FIELDS)
                (list[i].shared ? s->shared : s->lines)[number] += list[i].lines;
        }
        if (i + 1 == n || list[i + 1].row != list[i].row)
            code = store_lines(s, list[i].row, object->id);
    }
    return code;
}

/* --- all of it --- */

static int compare(const void *a, const void *b)
{
    const struct piece *x = a, *y = b;
    if (x->object != y->object)
        return x->object < y->object ? -1 : 1;
    if (x->row != y->row)
        return x->row < y->row ? -1 : 1;
    if (x->site != y->site)
        return x->site < y->site ? -1 : 1;
    if (x->shared != y->shared)
        return x->shared - y->shared;
    return y->has_offset - x->has_offset;
}

/* What instructions may be asked about. */
static int is_allocated(const struct profile_object *object)
{
    return object->kind == PROFILE_OBJECT_BLOCK || object->kind == PROFILE_OBJECT_HEAP ||
           object->kind == PROFILE_OBJECT_ANONYMOUS || object->kind == PROFILE_OBJECT_FILE;
}

/* Adds a piece, if it may have a field. */
static void add_piece(const struct symbols_code *code, const uint32_t *ids, struct piece piece,
                      struct piece *list, size_t *n)
{
    if (piece.site >= code->nsites || ids[piece.site] == 0 || piece.object == 0 ||
        piece.object > code->nobjects)
        return;
    const struct profile_object *object = &code->objects[piece.object - 1];
    if (!is_allocated(object) && (!profile_object_is_variable(object) || !piece.has_offset))
        return;
    piece.row = ids[piece.site];
    list[(*n)++] = piece;
}

int symbols_fields_store(struct profile *p, const struct symbols_code *code, const uint32_t *ids,
                         struct symbols_files *files, char *used, struct error *err)
{
    struct storing s = {.profile = p, .code = code, .files = files, .err = err};
    struct piece *list = calloc(code->noffsets + code->nuses + code->nshared_offsets + 1, sizeof *list);
    size_t n = 0;
    double all = 0;
    int status = 0;
    s.names = calloc(MOST_FIELDS, sizeof *s.names);
    s.pointees = calloc(code->nsites + 1, sizeof *s.pointees);
    if (list == NULL || s.names == NULL || s.pointees == NULL)
        status = error_set(err, -ENOMEM, "out of memory for the fields of data objects");
    for (size_t i = 0; i < code->noffsets && status == 0; i++) {
        const struct symbols_offset *o = &code->offsets[i];
        add_piece(code, ids, (struct piece){o->object, 0, o->site, 1, 0, o->offset, o->lines}, list, &n);
    }
    for (size_t i = 0; i < code->nuses && status == 0; i++) {
        const struct symbols_use *u = &code->uses[i];
        all += (double)u->lines;
        add_piece(code, ids, (struct piece){u->object, 0, u->site, 0, 0, 0, u->lines}, list, &n);
    }
    for (size_t i = 0; i < code->nshared_offsets && status == 0; i++) {
        const struct symbols_offset *o = &code->shared_offsets[i];
        add_piece(code, ids, (struct piece){o->object, 0, o->site, 1, 1, o->offset, o->lines}, list, &n);
    }
    if (n > 0)
        qsort(list, n, sizeof *list, compare);
    for (size_t i = 0, end; i < n && status == 0; i = end) {
        double lines = 0;
        int shared = 0;
        for (end = i; end < n && list[end].object == list[i].object; end++) {
            lines += (double)list[end].lines;
            shared |= list[end].shared;
        }
        if (lines < LEAST_PART * all && !shared)
            continue;
        status = store_object(&s, &code->objects[list[i].object - 1], list + i, end - i);
        used[list[i].object] |= s.n > 0;
    }
    free(s.names);
    free(s.pointees);
    free(list);
    return status;
}
