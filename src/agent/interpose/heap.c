/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heap.c - the allocation functions. They call the next definition of the same name, so a preloaded or linked
 * allocator stays in use, and report a sample of the blocks to the collector (wire_heap).
 *
 * A block is sampled with a probability that grows with its size: each thread counts bytes down from a random
 * number, whose mean is wire_heap.interval, and reports the block at which the count passes zero. Large
 * blocks are thus always reported, and small ones rarely; but the first HEAP_FIRST_BLOCKS of a program are
 * all reported, since what it allocates at its start is often used until its end. What is reported has the
 * top of the caller's stack, from which the collector finds the call path. A filter of one byte for each 16
 * bytes of memory, modulo its size, says which blocks may have been reported: a free of another block costs
 * one load.
 *
 * An ordinary call adds a few instructions and ends in a jump to the next function. Nothing here allocates,
 * waits or takes a lock, and nothing changes errno. Functions that are called before the constructor look up
 * the next one themselves; should the look-up allocate, it gets memory from a small buffer here.
 */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "agent/interpose/interpose.h"
#include "agent/life/life.h"
#include "agent/sys/files.h"
#include "agent/sys/session.h"
#include "agent/sys/sys.h"
#include "base/random.h"

#define EARLY_BYTES 2048u
#define RETRY_BYTES 65536 /* while nothing is reported */
#define UNLIKELY(x) __builtin_expect((x) != 0, 0)

/*
 * Thread-local storage of the library is part of each thread's static block, which exists before any code of
 * the target runs. A vfork child shares it, which does no harm.
 */
static __thread struct {
    int64_t left;   /* bytes until the next report */
    uint64_t state; /* of random numbers; 0: not begun */
    int looking_up;
} local __attribute__((tls_model("initial-exec")));

static uint8_t *filter;       /* of the process' slot; NULL: nothing is reported */
static uint32_t first_blocks; /* reported without sampling; atomic */
static char early[EARLY_BYTES] __attribute__((aligned(16)));
static size_t early_used;

static void *first_malloc(size_t bytes);
static void *first_calloc(size_t n, size_t bytes);
static void *first_realloc(void *block, size_t bytes);
static void first_free(void *block);
static void *first_aligned(size_t alignment, size_t bytes);
static void *first_memalign(size_t alignment, size_t bytes);
static int first_posix(void **block, size_t alignment, size_t bytes);
static void *first_valloc(size_t bytes);
static void *first_pvalloc(size_t bytes);
static void *first_mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset);
static int first_munmap(void *address, size_t bytes);

static struct {
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void (*free)(void *);
    void *(*aligned_alloc)(size_t, size_t);
    void *(*memalign)(size_t, size_t);
    int (*posix_memalign)(void **, size_t, size_t);
    void *(*valloc)(size_t);
    void *(*pvalloc)(size_t);
    void *(*mmap)(void *, size_t, int, int, int, off_t);
    int (*munmap)(void *, size_t);
} next = {first_malloc, first_calloc, first_realloc, first_free, first_aligned, first_memalign,
          first_posix,  first_valloc, first_pvalloc, first_mmap, first_munmap};

/* --- look-up --- */

static void find(const char *name, void *function)
{
    void *found = dlsym(RTLD_NEXT, name);
    if (found)
        memcpy(function, &found, sizeof found);
}

/* free first: whatever the look-ups of the others allocate can be freed. */
void heap_find_next(void)
{
    if (local.looking_up)
        return;
    local.looking_up = 1;
    find("free", &next.free);
    find("realloc", &next.realloc);
    find("calloc", &next.calloc);
    find("malloc", &next.malloc);
    find("aligned_alloc", &next.aligned_alloc);
    find("memalign", &next.memalign);
    find("posix_memalign", &next.posix_memalign);
    find("valloc", &next.valloc);
    find("pvalloc", &next.pvalloc);
    find("mmap", &next.mmap);
    find("munmap", &next.munmap);
    local.looking_up = 0;
}

static int is_early(const void *block)
{
    return (uintptr_t)block - (uintptr_t)early < sizeof early;
}

/* Memory that is never freed. */
static void *early_block(size_t bytes)
{
    size_t need = (bytes + 31) & ~(size_t)15;
    if (bytes > sizeof early || __atomic_load_n(&early_used, __ATOMIC_RELAXED) + need > sizeof early) {
        errno = ENOMEM;
        return NULL;
    }
    size_t at = __atomic_fetch_add(&early_used, need, __ATOMIC_RELAXED);
    if (at + need > sizeof early) {
        errno = ENOMEM;
        return NULL;
    }
    return early + at;
}

/* Looks up all functions; nonzero: this one was not found, or it is the look-up itself that calls it. */
#define NOT_FOUND(name, first) (heap_find_next(), next.name == (first))

static void *first_malloc(size_t bytes)
{
    return NOT_FOUND(malloc, first_malloc) ? early_block(bytes) : next.malloc(bytes);
}

static void *first_calloc(size_t n, size_t bytes)
{
    if (!NOT_FOUND(calloc, first_calloc))
        return next.calloc(n, bytes);
    return bytes && n > EARLY_BYTES / bytes ? early_block(SIZE_MAX) : early_block(n * bytes);
}

static void *first_realloc(void *block, size_t bytes)
{
    if (!NOT_FOUND(realloc, first_realloc))
        return next.realloc(block, bytes);
    return early_block(block ? SIZE_MAX : bytes);
}

static void first_free(void *block)
{
    if (!NOT_FOUND(free, first_free))
        next.free(block);
}

static void *first_aligned(size_t alignment, size_t bytes)
{
    return NOT_FOUND(aligned_alloc, first_aligned) ? early_block(SIZE_MAX)
                                                   : next.aligned_alloc(alignment, bytes);
}

static void *first_memalign(size_t alignment, size_t bytes)
{
    return NOT_FOUND(memalign, first_memalign) ? early_block(SIZE_MAX) : next.memalign(alignment, bytes);
}

static int first_posix(void **block, size_t alignment, size_t bytes)
{
    return NOT_FOUND(posix_memalign, first_posix) ? ENOMEM : next.posix_memalign(block, alignment, bytes);
}

static void *first_valloc(size_t bytes)
{
    return NOT_FOUND(valloc, first_valloc) ? early_block(SIZE_MAX) : next.valloc(bytes);
}

static void *first_pvalloc(size_t bytes)
{
    return NOT_FOUND(pvalloc, first_pvalloc) ? early_block(SIZE_MAX) : next.pvalloc(bytes);
}

static void *first_mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    return NOT_FOUND(mmap, first_mmap) ? MAP_FAILED
                                       : next.mmap(address, bytes, protection, flags, fd, offset);
}

static int first_munmap(void *address, size_t bytes)
{
    return NOT_FOUND(munmap, first_munmap) ? -1 : next.munmap(address, bytes);
}

/* --- reports --- */

void heap_forked(int followed)
{
    filter = followed && session->heap ? proc->heap.filter : NULL;
}

static int is_reporting(void)
{
    return filter && !agent_off && agent_active && !__atomic_load_n(&session->stop, __ATOMIC_RELAXED) &&
           !child_detach_copy();
}

/* A random number of an exponential distribution with that mean, nearly: the logarithm is linear between
 * powers of two, which makes the mean 1.5 octaves. */
static int64_t draw(uint64_t mean)
{
    uint64_t u = random_splitmix64(&local.state) | 1;
    unsigned k = 63u - (unsigned)__builtin_clzll(u);
    uint64_t fraction = ((u << (63 - k)) << 1) >> 44, octaves = ((uint64_t)(64 - k) << 20) - fraction;
    return (int64_t)((mean * octaves / 3 * 2) >> 20);
}

static uint64_t sampling_interval(void)
{
    uint64_t interval = __atomic_load_n(&proc->heap.interval, __ATOMIC_RELAXED);
    return interval && interval <= WIRE_HEAP_MOST_INTERVAL ? interval : WIRE_HEAP_FIRST_INTERVAL;
}

/* The count of the thread has passed zero. Returns 0, or the sampling interval if the block is to be
 * reported; 1: as all blocks are. */
static uint64_t sample(void)
{
    if (!is_reporting()) {
        local.left = RETRY_BYTES;
        return 0;
    }
    if (__atomic_load_n(&first_blocks, __ATOMIC_RELAXED) < HEAP_FIRST_BLOCKS) {
        __atomic_fetch_add(&first_blocks, 1, __ATOMIC_RELAXED);
        local.left = 0;
        return 1;
    }
    uint64_t interval = sampling_interval();
    if (!local.state) {
        local.state = (uint64_t)&local ^ proc->cookie;
        local.left += draw(interval);
        if (local.left >= 0)
            return 0;
    }
    local.left = draw(interval);
    return interval;
}

/* Room for n words, of which the first is written last. UINT64_MAX: there is none. */
static uint64_t reserve(uint64_t n, uint64_t room)
{
    struct wire_heap *h = &proc->heap;
    uint64_t at = __atomic_load_n(&h->head, __ATOMIC_RELAXED);
    do {
        if (at + n - __atomic_load_n(&h->tail, __ATOMIC_ACQUIRE) > room) {
            count_add(&h->lost, 1);
            return UINT64_MAX;
        }
    } while (!__atomic_compare_exchange_n(&h->head, &at, at + n, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return at;
}

static uint64_t *word(uint64_t at)
{
    return &proc->heap.ring[at % WIRE_HEAP_WORDS];
}

static void publish(uint64_t at, uint64_t kind, uint64_t n)
{
    __atomic_store_n(word(at), kind | n << WIRE_HEAP_KIND_BITS, __ATOMIC_RELEASE);
    if (at / (WIRE_HEAP_WORDS / 4) != (at + n) / (WIRE_HEAP_WORDS / 4))
        doorbell();
}

#define CERTAIN 1u /* bit of a known block: all blocks were reported when this one was */

/* Notes a block as reported. 0: there is no room in its set. */
static int add_known(uint64_t block, uint64_t interval)
{
    uint64_t note = interval == 1 ? block | CERTAIN : block;
    uint64_t *set = proc->heap.known[wire_heap_filter(block) % WIRE_HEAP_SETS];
    uint8_t *entry = &filter[wire_heap_filter(block)];
    for (unsigned i = 0; i < WIRE_HEAP_WAYS; i++) {
        uint64_t free_way = 0;
        if (__atomic_load_n(&set[i], __ATOMIC_RELAXED) == 0 &&
            __atomic_compare_exchange_n(&set[i], &free_way, note, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
            if (__atomic_load_n(entry, __ATOMIC_RELAXED) != UINT8_MAX)
                __atomic_fetch_add(entry, 1, __ATOMIC_RELAXED);
            return 1;
        }
    }
    return 0;
}

/* Nonzero: it was one of them; the interval with which it is to be reported again. */
static uint64_t remove_known(uint64_t block)
{
    uint64_t *set = proc->heap.known[wire_heap_filter(block) % WIRE_HEAP_SETS];
    uint8_t *entry = &filter[wire_heap_filter(block)];
    for (unsigned i = 0; i < WIRE_HEAP_WAYS && block != 0; i++) { /* free(NULL) is none of the free places */
        uint64_t found = __atomic_load_n(&set[i], __ATOMIC_RELAXED);
        if ((found & ~(uint64_t)CERTAIN) == block &&
            __atomic_compare_exchange_n(&set[i], &found, 0, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
            if (__atomic_load_n(entry, __ATOMIC_RELAXED) != UINT8_MAX)
                __atomic_fetch_sub(entry, 1, __ATOMIC_RELAXED);
            return found & CERTAIN ? 1 : sampling_interval();
        }
    }
    return 0;
}

/* `frame`: of the function that replaced the allocation function, by a jump, so that its caller is the
 * target's. */
static void report(uint64_t kind, const void *block, uint64_t bytes, uint64_t interval, const uint64_t *frame)
{
    if (kind == WIRE_HEAP_BLOCK && !add_known((uint64_t)block, interval))
        return;
    uint64_t at = reserve(WIRE_HEAP_BLOCK_WORDS, WIRE_HEAP_WORDS / 4 * 3);
    if (at == UINT64_MAX) {
        if (kind == WIRE_HEAP_BLOCK)
            remove_known((uint64_t)block);
        return;
    }
    *word(at + 1) = (uint64_t)block;
    *word(at + 2) = bytes;
    *word(at + 3) = interval;
    *word(at + 4) = (uint64_t)(frame + 2);
    *word(at + 5) = frame[0];
    *word(at + 6) = frame[1];
    for (uint64_t i = 0; i < WIRE_HEAP_STACK_WORDS;) { /* the ring may wrap within */
        uint64_t to = (at + WIRE_HEAP_HEAD_WORDS + i) % WIRE_HEAP_WORDS, n = WIRE_HEAP_STACK_WORDS - i;
        if (n > WIRE_HEAP_WORDS - to)
            n = WIRE_HEAP_WORDS - to;
        target_read(&proc->heap.ring[to], frame + 2 + i, n * sizeof(uint64_t)); /* the stack may end within */
        i += n;
    }
    publish(at, kind, WIRE_HEAP_BLOCK_WORDS);
}

/* The block, or these bytes, are about to be given back. */
static void report_end(uint64_t kind, const void *block, uint64_t bytes)
{
    uint64_t at = is_reporting() ? reserve(3, WIRE_HEAP_WORDS) : UINT64_MAX;
    if (at == UINT64_MAX)
        return;
    *word(at + 1) = (uint64_t)block;
    *word(at + 2) = bytes;
    publish(at, kind, 3);
}

/* A mapping of the file; its name in place of the stack. A name that is too long is not reported. */
static void report_file(const void *map, uint64_t bytes, int fd)
{
    uint64_t name[WIRE_HEAP_NAME_WORDS] = {0};
    long length = files_name(fd, (char *)name, sizeof name);
    if (length <= 0 || (size_t)length >= sizeof name)
        return;
    uint64_t at = reserve(WIRE_HEAP_BLOCK_WORDS, WIRE_HEAP_WORDS / 4 * 3);
    if (at == UINT64_MAX)
        return;
    *word(at + 1) = (uint64_t)map;
    *word(at + 2) = bytes;
    for (uint64_t i = 0; i < WIRE_HEAP_NAME_WORDS; i++)
        *word(at + WIRE_HEAP_HEAD_WORDS + i) = name[i];
    publish(at, WIRE_HEAP_FILE, WIRE_HEAP_BLOCK_WORDS);
}

static int may_be_known(const void *block)
{
    return filter && __atomic_load_n(&filter[wire_heap_filter((uint64_t)block)], __ATOMIC_RELAXED);
}

/* Counts the bytes. Nonzero: perhaps the block is to be reported. */
static inline int passes(size_t bytes)
{
    local.left = (int64_t)((uint64_t)local.left - bytes);
    return local.left < 0;
}

#define FRAME ((const uint64_t *)__builtin_frame_address(0))
#define NOT_INLINED static __attribute__((noinline))

/* Each of these is entered by a jump from the function of the same name. */
NOT_INLINED void *reported_malloc(size_t bytes)
{
    uint64_t interval = sample();
    void *block = next.malloc(bytes);
    if (interval && block)
        report(WIRE_HEAP_BLOCK, block, bytes, interval, FRAME);
    return block;
}

NOT_INLINED void *reported_calloc(size_t n, size_t bytes)
{
    uint64_t interval = sample();
    void *block = next.calloc(n, bytes);
    if (interval && block)
        report(WIRE_HEAP_BLOCK, block, n * bytes, interval, FRAME);
    return block;
}

/* A block that was reported is reported again at its new place. */
NOT_INLINED void *reported_realloc(void *block, size_t bytes)
{
    uint64_t known, interval = local.left < 0 ? sample() : 0;
    if (is_early(block)) {
        void *moved = next.malloc(bytes);
        size_t most = sizeof early - (size_t)((char *)block - early);
        if (moved)
            memcpy(moved, block, bytes < most ? bytes : most);
        return moved;
    }
    if (block && is_reporting() && (known = remove_known((uint64_t)block)) != 0) {
        report_end(WIRE_HEAP_FREE, block, 0);
        interval = known;
    }
    void *moved = next.realloc(block, bytes);
    if (interval && moved)
        report(WIRE_HEAP_BLOCK, moved, bytes, interval, FRAME);
    return moved;
}

NOT_INLINED void reported_free(void *block)
{
    if (is_early(block))
        return;
    if (is_reporting() && remove_known((uint64_t)block))
        report_end(WIRE_HEAP_FREE, block, 0);
    next.free(block);
}

NOT_INLINED void *reported_aligned_alloc(size_t alignment, size_t bytes)
{
    uint64_t interval = sample();
    void *block = next.aligned_alloc(alignment, bytes);
    if (interval && block)
        report(WIRE_HEAP_BLOCK, block, bytes, interval, FRAME);
    return block;
}

NOT_INLINED void *reported_memalign(size_t alignment, size_t bytes)
{
    uint64_t interval = sample();
    void *block = next.memalign(alignment, bytes);
    if (interval && block)
        report(WIRE_HEAP_BLOCK, block, bytes, interval, FRAME);
    return block;
}

NOT_INLINED int reported_posix_memalign(void **block, size_t alignment, size_t bytes)
{
    uint64_t interval = sample();
    int result = next.posix_memalign(block, alignment, bytes);
    void *made = NULL;
    if (interval && result == 0 && safe_copy(&made, block, sizeof made) == 0 && made)
        report(WIRE_HEAP_BLOCK, made, bytes, interval, FRAME);
    return result;
}

NOT_INLINED void *reported_valloc(size_t bytes)
{
    uint64_t interval = sample();
    void *block = next.valloc(bytes);
    if (interval && block)
        report(WIRE_HEAP_BLOCK, block, bytes, interval, FRAME);
    return block;
}

NOT_INLINED void *reported_pvalloc(size_t bytes)
{
    uint64_t interval = sample();
    void *block = next.pvalloc(bytes);
    if (interval && block)
        report(WIRE_HEAP_BLOCK, block, bytes, interval, FRAME);
    return block;
}

NOT_INLINED void *reported_mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    void *map = next.mmap(address, bytes, protection, flags, fd, offset);
    if (map == MAP_FAILED || !is_reporting())
        return map;
    if (flags & MAP_ANONYMOUS)
        report(WIRE_HEAP_MAP, map, bytes, 0, FRAME);
    else
        report_file(map, bytes, fd);
    return map;
}

/* --- what the target calls --- */

EXPORT void *malloc(size_t bytes)
{
    return UNLIKELY(passes(bytes)) ? reported_malloc(bytes) : next.malloc(bytes);
}

EXPORT void *calloc(size_t n, size_t bytes)
{
    return UNLIKELY(passes(n * bytes)) ? reported_calloc(n, bytes) : next.calloc(n, bytes);
}

EXPORT void *realloc(void *block, size_t bytes)
{
    int passed = passes(bytes);
    return UNLIKELY(passed || may_be_known(block) || is_early(block)) ? reported_realloc(block, bytes)
                                                                      : next.realloc(block, bytes);
}

EXPORT void free(void *block)
{
    if (UNLIKELY(may_be_known(block) || is_early(block)))
        reported_free(block);
    else
        next.free(block);
}

EXPORT void *aligned_alloc(size_t alignment, size_t bytes)
{
    return UNLIKELY(passes(bytes)) ? reported_aligned_alloc(alignment, bytes)
                                   : next.aligned_alloc(alignment, bytes);
}

EXPORT void *memalign(size_t alignment, size_t bytes);
EXPORT void *memalign(size_t alignment, size_t bytes)
{
    return UNLIKELY(passes(bytes)) ? reported_memalign(alignment, bytes) : next.memalign(alignment, bytes);
}

EXPORT int posix_memalign(void **block, size_t alignment, size_t bytes)
{
    return UNLIKELY(passes(bytes)) ? reported_posix_memalign(block, alignment, bytes)
                                   : next.posix_memalign(block, alignment, bytes);
}

EXPORT void *valloc(size_t bytes)
{
    return UNLIKELY(passes(bytes)) ? reported_valloc(bytes) : next.valloc(bytes);
}

EXPORT void *pvalloc(size_t bytes);
EXPORT void *pvalloc(size_t bytes)
{
    return UNLIKELY(passes(bytes)) ? reported_pvalloc(bytes) : next.pvalloc(bytes);
}

/* On this machine both names are one function, which the compiler calls mmap64 (_FILE_OFFSET_BITS). */
EXPORT void *any_mmap(void *address, size_t bytes, int protection, int flags, int fd,
                      off_t offset) __asm__("mmap");
EXPORT void *any_mmap64(void *address, size_t bytes, int protection, int flags, int fd,
                        off_t offset) __asm__("mmap64") __attribute__((alias("mmap")));

void *any_mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    if (UNLIKELY(flags & MAP_GROWSDOWN))
        calls_mapping_grows();
    return filter ? reported_mmap(address, bytes, protection, flags, fd, offset)
                  : next.mmap(address, bytes, protection, flags, fd, offset);
}

EXPORT int munmap(void *address, size_t bytes)
{
    if (filter)
        report_end(WIRE_HEAP_UNMAP, address, bytes);
    return next.munmap(address, bytes);
}

/* The definition above, also if the program has one, which that name would mean elsewhere. */
__asm__(".hidden this_malloc\n.set this_malloc, malloc");
HIDDEN extern char this_malloc[];

extern __typeof__(dladdr1) dladdr1 __attribute__((weak)); /* musl lacks it */

/* The program's own malloc comes before this one, and is not seen. A program at a fixed address in which a
 * pointer to malloc is a constant has no malloc of its own, but a place that jumps to it, and an undefined
 * symbol with the address of that. */
static int has_own_malloc(void)
{
    void *program = dlopen(NULL, RTLD_LAZY); /* RTLD_DEFAULT would begin here, due to -Bsymbolic */
    void *found = program ? dlsym(program, "malloc") : NULL;
    ElfW(Sym) *symbol = NULL;
    Dl_info info;
    if (!found || found == (void *)this_malloc)
        return 0;
    return !dladdr1 || !dladdr1(found, &info, (void **)&symbol, RTLD_DL_SYMENT) || !symbol ||
           symbol->st_shndx != SHN_UNDEF;
}

void heap_init(void)
{
    if (!session->heap)
        return;
    proc->heap.replaced = (uint32_t)has_own_malloc();
    filter = proc->heap.filter;
    local.left = 0; /* instead of RETRY_BYTES */
}
