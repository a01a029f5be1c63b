/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/reduce/code.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/array.h"
#include "base/leb128.h"
#include "symbols/jit-map.h"

#define FIRST_SITES 4096u
#define NO_IMAGE UINT32_MAX /* of a module: not looked up yet */
#define SITES_OF_BLOCK (1u << DECODE_SITE_BITS)

struct code {
    char **images;
    size_t nimages, images_capacity;
    struct symbols_site *sites;
    uint32_t nsites, capacity;
    uint32_t *slots; /* number of a site, + 1; 0: empty. Their number, 2 * capacity, is a power of two */
    uint8_t *bytes;
    size_t used, bytes_capacity;
};

struct code *code_new(struct error *err)
{
    struct code *c = calloc(1, sizeof(*c));
    if (c != NULL) {
        c->capacity = FIRST_SITES;
        c->sites = malloc(c->capacity * sizeof(*c->sites));
        c->slots = calloc(2 * (size_t)c->capacity, sizeof(*c->slots));
    }
    if (c == NULL || c->sites == NULL || c->slots == NULL) {
        code_free(c);
        error_set(err, -ENOMEM, "out of memory for the code of a run");
        return NULL;
    }
    return c;
}

void code_free(struct code *c)
{
    if (c == NULL)
        return;
    for (size_t i = 0; i < c->nimages; i++)
        free(c->images[i]);
    free(c->images);
    free(c->sites);
    free(c->slots);
    free(c->bytes);
    free(c);
}

struct symbols_code code_found(const struct code *c)
{
    return (struct symbols_code){.images = (const char *const *)c->images,
                                 .nimages = c->nimages,
                                 .sites = c->sites,
                                 .nsites = c->nsites};
}

/* Number of the image with that path; NO_IMAGE when memory is short. */
static uint32_t find_image(struct code *c, const char *path)
{
    for (size_t i = 0; i < c->nimages; i++)
        if (strcmp(c->images[i], path) == 0)
            return (uint32_t)i;
    if (ARRAY_GROW(c->images, c->nimages, c->images_capacity) < 0)
        return NO_IMAGE;
    if ((c->images[c->nimages] = strdup(path)) == NULL)
        return NO_IMAGE;
    return (uint32_t)c->nimages++;
}

static uint32_t *slot_of(const struct code *c, struct symbols_site site)
{
    size_t mask = 2 * (size_t)c->capacity - 1;
    uint64_t hash = (site.offset + ((uint64_t)site.image << 40)) * UINT64_C(0x9e3779b97f4a7c15);
    size_t i = (size_t)(hash >> 32) & mask;
    for (; c->slots[i] != 0; i = (i + 1) & mask) {
        const struct symbols_site *other = &c->sites[c->slots[i] - 1];
        if (other->offset == site.offset && other->image == site.image)
            break;
    }
    return &c->slots[i];
}

/* The number of an instruction, or -ENOMEM. */
static int64_t find_site(struct code *c, struct symbols_site site)
{
    uint32_t *slot = slot_of(c, site);
    if (*slot != 0)
        return *slot - 1;
    if (c->nsites == c->capacity) {
        struct symbols_site *sites = realloc(c->sites, 2 * (size_t)c->capacity * sizeof(*sites));
        if (sites == NULL)
            return -ENOMEM;
        c->sites = sites;
        uint32_t *slots = calloc(4 * (size_t)c->capacity, sizeof(*slots));
        if (slots == NULL)
            return -ENOMEM;
        free(c->slots);
        c->slots = slots;
        c->capacity *= 2;
        for (uint32_t i = 0; i < c->nsites; i++)
            *slot_of(c, sites[i]) = i + 1;
        slot = slot_of(c, site);
    }
    c->sites[c->nsites] = site;
    *slot = ++c->nsites;
    return *slot - 1;
}

/* Code that may change at run time has one image for each process, and addresses for offsets. NO_IMAGE when
 * memory is short. */
static uint32_t find_image_of(struct code *c, const struct wire_module *module, uint32_t pid, uint64_t *base)
{
    char path[sizeof(module->path)], map[SYMBOLS_JIT_MAP_PATH];
    memcpy(path, module->path, sizeof(path));
    path[sizeof(path) - 1] = '\0';
    *base = module->start - module->file_offset;
    if (strcmp(path, WIRE_JIT_MODULE) != 0)
        return find_image(c, path);
    *base = 0;
    symbols_jit_map_path(pid, map);
    return find_image(c, map);
}

/* Data for adding one process. */
struct adding {
    const struct decoder *decoder;
    const struct wire_module *modules;
    uint32_t nmodules;
    uint32_t image[WIRE_MAX_MODULES];
    uint64_t base[WIRE_MAX_MODULES]; /* address - offset in the file */
    uint32_t pid;
    uint32_t unknown; /* image of what is in no module */
};

/* The modules are in the target's memory: each is read only once, so that later changes have no effect. */
static int find_module(struct code *c, struct adding *a, uint32_t module)
{
    if (a->image[module] != NO_IMAGE)
        return 0;
    const struct wire_module copy = a->modules[module];
    a->image[module] = find_image_of(c, &copy, a->pid, &a->base[module]);
    return a->image[module] != NO_IMAGE ? 0 : -ENOMEM;
}

static int64_t add_site(struct code *c, struct adding *a, uint64_t pc, uint32_t module)
{
    if (module < a->nmodules) {
        if (find_module(c, a, module) < 0)
            return -ENOMEM;
        return find_site(c, (struct symbols_site){.image = a->image[module], .offset = pc - a->base[module]});
    }
    if (a->unknown == NO_IMAGE && (a->unknown = find_image(c, "")) == NO_IMAGE)
        return -ENOMEM;
    return find_site(c, (struct symbols_site){.image = a->unknown, .offset = pc});
}

static int add_block(struct code *c, struct adding *a, uint32_t block, uint32_t *previous_block,
                     int64_t *previous_site)
{
    int64_t sites[SITES_OF_BLOCK];
    uint32_t n = 0, module;
    uint64_t pc;
    for (; n < SITES_OF_BLOCK && decoder_site_code(a->decoder, DECODE_SITE(block, n), &pc, &module) == 0; n++)
        if ((sites[n] = add_site(c, a, pc, module)) < 0)
            return -ENOMEM;
    if (c->used + LEB128_MOST * (n + 2) > c->bytes_capacity) {
        size_t capacity = 2 * (c->used + LEB128_MOST * (SITES_OF_BLOCK + 2));
        uint8_t *bytes = realloc(c->bytes, capacity);
        if (bytes == NULL)
            return -ENOMEM;
        c->bytes = bytes;
        c->bytes_capacity = capacity;
    }
    c->used += leb128_put(c->bytes + c->used, block - *previous_block);
    c->used += leb128_put(c->bytes + c->used, n);
    for (uint32_t i = 0; i < n; i++) {
        c->used += leb128_put(c->bytes + c->used, zigzag(sites[i] - *previous_site));
        *previous_site = sites[i];
    }
    *previous_block = block;
    return 0;
}

int code_add_process(struct code *c, const struct decoder *d, const uint8_t *used,
                     const struct code_process *process, const uint8_t **bytes, size_t *size)
{
    struct adding a = {.decoder = d, .modules = process->modules, .pid = process->pid, .unknown = NO_IMAGE};
    uint32_t previous_block = 0;
    int64_t previous_site = 0;
    a.nmodules = process->nmodules < WIRE_MAX_MODULES ? process->nmodules : WIRE_MAX_MODULES;
    for (uint32_t i = 0; i < a.nmodules; i++)
        a.image[i] = NO_IMAGE;
    c->used = 0;
    for (uint32_t block = 0; block < WIRE_MAX_BLOCKS; block++) {
        if (used[block / 8] == 0)
            block |= 7;
        else if ((used[block / 8] >> block % 8 & 1) != 0 &&
                 add_block(c, &a, block, &previous_block, &previous_site) < 0)
            return -ENOMEM;
    }
    *bytes = c->bytes;
    *size = c->used;
    return 0;
}

int64_t code_add_place_in(struct code *c, const struct code_process *process, uint32_t module, uint64_t pc)
{
    if (module >= process->nmodules || module >= WIRE_MAX_MODULES)
        return -ENOENT;
    const struct wire_module copy = process->modules[module]; /* the target's memory: read once */
    uint64_t base;
    if (pc < copy.start || pc >= copy.end)
        return -ENOENT;
    uint32_t image = find_image_of(c, &copy, process->pid, &base);
    return image != NO_IMAGE ? find_site(c, (struct symbols_site){.image = image, .offset = pc - base})
                             : -ENOMEM;
}

int64_t code_add_place(struct code *c, const struct code_process *process, uint64_t pc)
{
    /* The last one that lies there: earlier ones may have been unmapped. */
    int64_t site = -ENOENT;
    for (uint32_t i = process->nmodules < WIRE_MAX_MODULES ? process->nmodules : WIRE_MAX_MODULES;
         i > 0 && site == -ENOENT; i--)
        site = code_add_place_in(c, process, i - 1, pc);
    return site;
}
