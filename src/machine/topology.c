/* SPDX-License-Identifier: Apache-2.0 */
/* topology.c - this machine as the system reports it, from hwloc; the hypervisor from /proc/cpuinfo and
 * hwloc. */
#define _GNU_SOURCE
#include <errno.h>
#include <hwloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "machine/cpuinfo.h"
#include "machine/machine.h"

static void unknown_level(struct machine_level *level)
{
    level->latency_cycles = level->latency_ns = NAN;
}

static const char *info(hwloc_topology_t topology, const char *name)
{
    hwloc_obj_t package = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PACKAGE, 0);
    const char *text = package ? hwloc_obj_get_info_by_name(package, name) : NULL;
    return text ? text : hwloc_obj_get_info_by_name(hwloc_get_root_obj(topology), name);
}

/* A guest has the CPU flag `hypervisor`; DMI has its name, if available. */
static void find_hypervisor(hwloc_topology_t topology, char *name, size_t size)
{
    char flags[4096];
    int guest = cpuinfo_get("flags", flags, sizeof flags) && strstr(flags, " hypervisor") != NULL;
    const char *vendor = info(topology, "DMISysVendor");
    snprintf(name, size, "%s", !guest ? "" : vendor && *vendor ? vendor : "yes");
}

/* Lists the caches from the first core to memory; virtual machines may have some without a size. */
static void find_caches(hwloc_topology_t topology, struct machine *m)
{
    hwloc_obj_t core = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PU, 0);
    for (hwloc_obj_t o = core; o; o = o->parent) {
        if (!hwloc_obj_type_is_dcache(o->type) || o->attr->cache.size == 0 || m->levels == MACHINE_LEVELS)
            continue;
        struct machine_level *level = &m->level[m->levels++];
        int cores = hwloc_get_nbobjs_inside_cpuset_by_type(topology, o->cpuset, HWLOC_OBJ_CORE);
        *level = (struct machine_level){
            .size_bytes = o->attr->cache.size,
            .ways = o->attr->cache.associativity > 0 ? (unsigned)o->attr->cache.associativity : 0,
            .shared_by = cores > 0 ? (unsigned)cores : 1};
        unknown_level(level);
        if (m->line_bytes == 0)
            m->line_bytes = o->attr->cache.linesize;
    }
}

int machine_topology(struct machine *machine, struct error *err)
{
    hwloc_topology_t topology;
    struct machine m = {.clock_hz = NAN, .tsc_hz = NAN};
    if (hwloc_topology_init(&topology) != 0)
        return error_set(err, -ENOMEM, "hwloc cannot be set up");
    if (hwloc_topology_load(topology) != 0) {
        hwloc_topology_destroy(topology);
        return error_set(err, -EIO, "hwloc cannot read this machine's topology");
    }
    find_caches(topology, &m);
    find_hypervisor(topology, m.hypervisor, sizeof m.hypervisor);
    int cores = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE);
    const char *cpu = info(topology, "CPUModel");
    m.cores = cores > 0 ? (unsigned)cores : 1;
    m.memory.size_bytes = hwloc_get_root_obj(topology)->total_memory;
    unknown_level(&m.memory);
    if (gethostname(m.name, sizeof m.name) != 0)
        snprintf(m.name, sizeof m.name, "this machine");
    m.name[sizeof m.name - 1] = '\0';
    snprintf(m.cpu, sizeof m.cpu, "%s", cpu ? cpu : "");
    snprintf(m.source, sizeof m.source, "sizes: reported by the system (hwloc)");
    hwloc_topology_destroy(topology);
    if (m.line_bytes == 0)
        m.line_bytes = 64;
    if (m.levels == 0)
        return error_set(err, -ENODATA, "the system reports no caches");
    *machine = m;
    return 0;
}
