/* SPDX-License-Identifier: Apache-2.0 */
/* llc.c - the last-level cache, from hwloc, except whether it is inclusive, which only CPUID reports. */
#include "pirate/llc.h"

#include <cpuid.h>
#include <errno.h>
#include <hwloc.h>
#include <string.h>

/*
 * Is the outermost data cache inclusive of inner ones? From CPUID (Intel: leaf 4, AMD: leaf 8000001D, the
 * same layout: EDX bit 1). 0 if unknown.
 */
static int last_level_is_inclusive(void)
{
    unsigned a, b, c, d, leaf = 4, vendor_ecx;
    int inclusive = 0;
    if (!__get_cpuid(0, &a, &b, &vendor_ecx, &d))
        return 0;
    if (vendor_ecx == signature_AMD_ecx)
        leaf = 0x8000001d;
    for (unsigned i = 0; i < 16 && __get_cpuid_count(leaf, i, &a, &b, &c, &d) && (a & 31) != 0; i++)
        if ((a & 31) != 2) /* an instruction cache; later entries are outer caches */
            inclusive = (d >> 1) & 1;
    return inclusive;
}

/* From hwloc's description of the machine, which need not be the current one; otherwise from CPUID. */
static int is_inclusive(hwloc_obj_t cache)
{
    const char *info = hwloc_obj_get_info_by_name(cache, "Inclusive");
    return info ? strcmp(info, "1") == 0 : last_level_is_inclusive();
}

static void add_cpus(hwloc_const_cpuset_t from, const cpu_set_t *may, cpu_set_t *into)
{
    for (int cpu = hwloc_bitmap_first(from); cpu >= 0 && cpu < CPU_SETSIZE;
         cpu = hwloc_bitmap_next(from, cpu))
        if (CPU_ISSET((size_t)cpu, may))
            CPU_SET((size_t)cpu, into);
}

static int may_run_in(hwloc_const_cpuset_t set, const cpu_set_t *may)
{
    cpu_set_t both;
    CPU_ZERO(&both);
    add_cpus(set, may, &both);
    return CPU_COUNT(&both) > 0;
}

/* The outermost data cache above an object, and the next inner one; of those whose size is known. */
static hwloc_obj_t outermost(hwloc_obj_t from, hwloc_obj_t *inner)
{
    hwloc_obj_t found = NULL;
    *inner = NULL;
    for (hwloc_obj_t o = from; o; o = o->parent)
        if (hwloc_obj_type_is_dcache(o->type) && o->attr->cache.size > 0) {
            *inner = found;
            found = o;
        }
    return found;
}

static int by_index(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (x < y) - (x > y); /* the highest first: interrupts tend to go to the lowest */
}

static void describe(hwloc_topology_t topology, hwloc_obj_t cache, hwloc_obj_t inner, const cpu_set_t *may,
                     struct llc *llc)
{
    int first[CPU_SETSIZE];
    unsigned n = 0;
    memset(llc, 0, sizeof *llc);
    llc->size_bytes = cache->attr->cache.size;
    llc->line_bytes = cache->attr->cache.linesize ? cache->attr->cache.linesize : 64;
    llc->inclusive = is_inclusive(cache);
    llc->inner_bytes = inner ? inner->attr->cache.size : 0;
    llc->private_bytes = llc->inclusive ? 0 : llc->inner_bytes;
    add_cpus(cache->cpuset, may, &llc->cpus);
    int cores = hwloc_get_nbobjs_inside_cpuset_by_type(topology, cache->cpuset, HWLOC_OBJ_CORE);
    for (int i = 0; i < cores && n < CPU_SETSIZE; i++) {
        hwloc_obj_t core =
            hwloc_get_obj_inside_cpuset_by_type(topology, cache->cpuset, HWLOC_OBJ_CORE, (unsigned)i);
        cpu_set_t usable;
        CPU_ZERO(&usable);
        add_cpus(core->cpuset, may, &usable);
        for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
            if (CPU_ISSET((size_t)cpu, &usable)) {
                first[n++] = cpu;
                break;
            }
    }
    llc->cores = n;
    qsort(first, n, sizeof *first, by_index);
    for (unsigned i = 0; i + 1 < n && i < LLC_PIRATES; i++) {
        hwloc_obj_t pu = hwloc_get_pu_obj_by_os_index(topology, (unsigned)first[i]);
        hwloc_obj_t core = pu ? hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_CORE, pu) : NULL;
        CPU_SET((size_t)first[i], &llc->pirate_core[i]);
        if (core)
            add_cpus(core->cpuset, may, &llc->pirate_core[i]);
        llc->pirate_cpu[llc->pirates++] = first[i];
    }
}

/* The cache to use: that of the given CPU, or the one with most cores. NULL with err filled. */
static int choose(hwloc_topology_t topology, int cpu, const cpu_set_t *may, struct llc *best,
                  struct error *err)
{
    hwloc_obj_t pu = NULL, inner;
    int found = 0;
    while ((pu = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_PU, pu)) != NULL) {
        struct llc one;
        if (cpu >= 0 ? pu->os_index != (unsigned)cpu : !may_run_in(pu->cpuset, may))
            continue;
        hwloc_obj_t cache = outermost(pu, &inner);
        if (!cache)
            continue;
        describe(topology, cache, inner, may, &one);
        if (!found || one.cores > best->cores)
            *best = one;
        found = 1;
    }
    if (!found)
        return error_set(err, -ENOTSUP, "the system reports no cache");
    if (best->cores < 2)
        return error_set(
            err, -ENOTSUP,
            "no Pirate can run here: of the cores that share the last-level cache, this process may "
            "use only %u, and the Pirate needs one in addition to the program's",
            best->cores);
    return 0;
}

int llc_find(int cpu, struct llc *llc, struct error *err)
{
    hwloc_topology_t topology;
    cpu_set_t may;
    struct llc found;
    if (sched_getaffinity(0, sizeof may, &may) != 0)
        return error_set(err, -errno, "cannot find out which CPUs this process may use: %s", strerror(errno));
    if (hwloc_topology_init(&topology) != 0)
        return error_set(err, -ENOMEM, "hwloc cannot be set up");
    int code = hwloc_topology_load(topology) != 0
                   ? error_set(err, -EIO, "hwloc cannot read this machine's topology")
                   : choose(topology, cpu, &may, &found, err);
    hwloc_topology_destroy(topology);
    if (code == 0)
        *llc = found;
    return code;
}

void llc_target_cpus(const struct llc *llc, unsigned threads, cpu_set_t *cpus)
{
    *cpus = llc->cpus;
    for (unsigned i = 0; i < threads && i < llc->pirates; i++)
        for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
            if (CPU_ISSET((size_t)cpu, &llc->pirate_core[i]))
                CPU_CLR((size_t)cpu, cpus);
}
