/* SPDX-License-Identifier: Apache-2.0 */
/* surroundings.c - surroundings and runtimes in which a process cannot be profiled. */
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include "agent/life/life.h"
#include "agent/signals/signals.h"
#include "agent/sys/session.h"
#include "agent/sys/sys.h"

struct go {
    unsigned long long loaded; /* modules ever loaded, at the last search */
    int found;
};

/* Whether one of the notes is Go's. Its name is "Go" with its size rounded up to 4, while others count the
 * name with one zero. */
static int has_go_note(const char *at, size_t bytes)
{
    ElfW(Nhdr) note;
    while (bytes >= sizeof note) {
        memcpy(&note, at, sizeof note);
        size_t whole = sizeof note + ((note.n_namesz + (size_t)3) & ~(size_t)3) +
                       ((note.n_descsz + (size_t)3) & ~(size_t)3);
        if (whole > bytes)
            return 0;
        if ((note.n_namesz == 3 || note.n_namesz == 4) && memcmp(at + sizeof note, "Go", 3) == 0)
            return 1;
        at += whole;
        bytes -= whole;
    }
    return 0;
}

/* The Go runtime makes its own system calls, also to take over every signal. It may be in the program or in a
 * library. */
static int look_for_go(struct dl_phdr_info *info, size_t size, void *context)
{
    struct go *go = context;
    (void)size;
    if (go->loaded == info->dlpi_adds)
        return 1; /* no new module since the last search */
    for (int i = 0; i < info->dlpi_phnum && !go->found; i++) {
        const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
        if (ph->p_type == PT_NOTE)
            go->found = has_go_note((const char *)(info->dlpi_addr + ph->p_vaddr), ph->p_memsz);
    }
    return go->found;
}

static int count_modules(struct dl_phdr_info *info, size_t size, void *loaded)
{
    (void)size;
    *(unsigned long long *)loaded = info->dlpi_adds;
    return 1;
}

/* A child must not inherit libc's lock of the list of modules, which a search takes: it would wait for ever
 * when it loads a library. So no thread searches while another one forks. A signal handler may fork in the
 * middle of its thread's search. */
static uint64_t modules_owner; /* the thread that searches or forks, plus how often it does; 0: none */
#define MODULES_TIMES 63u      /* pthread_self() is a multiple of 64 */
/* Of 20 us or more each. The owner may be missing in a child that was made without libc's knowledge. */
#define MODULES_WAITS 50000

/* No system call is made without need: after the agent's end the target may have forbidden them. */
static void modules_lock(void)
{
    uint64_t own = (uint64_t)pthread_self(), owner = 0;
    int waits = 0;
    while (!__atomic_compare_exchange_n(&modules_owner, &owner, owner ? owner + 1 : own + 1, 0,
                                        __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
        static const struct timespec pause = {.tv_nsec = 20000};
        if ((owner & ~(uint64_t)MODULES_TIMES) == own)
            continue;
        if (owner && (agent_off || ++waits > MODULES_WAITS))
            return;
        if (owner)
            sys2(SYS_nanosleep, &pause, 0);
        owner = 0;
    }
}

static void modules_unlock(void)
{
    uint64_t owner = __atomic_load_n(&modules_owner, __ATOMIC_RELAXED);
    if ((owner & ~(uint64_t)MODULES_TIMES) == (uint64_t)pthread_self())
        __atomic_store_n(&modules_owner, (owner & MODULES_TIMES) == 1 ? 0 : owner - 1, __ATOMIC_RELEASE);
}

/* Another thread of the parent may have been in dlopen. Its lock is held for ever in the child, which does
 * not need it natively. */
static int cannot_search;

int surroundings_has_go(void)
{
    static struct go go;
    unsigned long long loaded = 0;
    if (cannot_search)
        return 0;
    modules_lock();
    if ((modules_owner & MODULES_TIMES) == 1) {
        dl_iterate_phdr(count_modules, &loaded);
        dl_iterate_phdr(look_for_go, &go);
        go.loaded = loaded;
    }
    modules_unlock();
    return go.found;
}

void surroundings_fork_begins(void)
{
    modules_lock();
}

void surroundings_fork_ends(void)
{
    modules_unlock();
}

void surroundings_forked(int had_threads)
{
    cannot_search |= had_threads;
    modules_unlock();
}

/* A debugger stops at each of the agent's signals, and strace prints them. */
static int is_traced(void)
{
    static const char key[] = "\nTracerPid:\t";
    char status[512]; /* TracerPid is one of the first lines */
    long fd = sys3(SYS_open, "/proc/self/status", O_RDONLY | O_CLOEXEC, 0);
    if (sys_failed(fd))
        return 0;
    long n = sys3(SYS_read, fd, status, sizeof status - 1);
    sys1(SYS_close, fd);
    status[n > 0 ? n : 0] = 0;
    const char *at = strstr(status, key);
    return at && at[sizeof key - 1] != '0';
}

/*
 * Valgrind and qemu run their own translations: a perf event's signal would reach the emulator and kill it,
 * and an emulator that is itself profiled would have two agents. They emulate /proc/self, but not
 * /proc/thread-self, whose auxiliary vector is the real kernel's: it points to random bytes on the kernel's
 * stack instead of the emulated one.
 */
static int is_emulated(void)
{
    Elf64_auxv_t entry[64];
    long fd = sys3(SYS_open, "/proc/thread-self/auxv", O_RDONLY | O_CLOEXEC, 0);
    if (sys_failed(fd))
        return 0;
    long n = sys3(SYS_read, fd, entry, sizeof entry);
    sys1(SYS_close, fd);
    for (long i = 0; i < n / (long)sizeof entry[0]; i++)
        if (entry[i].a_type == AT_RANDOM)
            return entry[i].a_un.a_val != getauxval(AT_RANDOM);
    return 0;
}

int surroundings_other_pid_namespace(void)
{
    struct stat own;
    return session->pid_namespace &&
           !sys_failed(sys4(SYS_newfstatat, AT_FDCWD, (long)PID_NAMESPACE, (long)&own, 0)) &&
           own.st_ino != session->pid_namespace;
}

/* Bytes that the process has mapped. data: only those that RLIMIT_DATA counts. */
static uint64_t mapped_bytes(int data)
{
    char text[256]; /* size resident shared text lib data dirty, in pages */
    long fd = sys3(SYS_open, "/proc/thread-self/statm", O_RDONLY | O_CLOEXEC, 0);
    if (sys_failed(fd))
        return 0;
    long n = sys3(SYS_read, fd, text, sizeof text - 1);
    sys1(SYS_close, fd);
    uint64_t pages = 0;
    int fields = data ? 5 : 0;
    for (long i = 0; i < n && fields >= 0; i++)
        if (text[i] < '0' || text[i] > '9')
            fields--;
        else if (fields == 0)
            pages = 10 * pages + (uint64_t)(text[i] - '0');
    return pages * WIRE_PAGE;
}

/* The agent's mappings, nearly all of them never touched, count toward the process's limits: the program
 * would reach them earlier. */
static int is_memory_limited(int resource)
{
    struct rlimit limit;
    if (sys_failed(sys4(SYS_prlimit64, 0, resource, 0, &limit)) || limit.rlim_cur == RLIM_INFINITY)
        return 0;
    uint64_t has = mapped_bytes(resource == RLIMIT_DATA);
    return limit.rlim_cur < has + ((uint64_t)WIRE_ROOM_MB << 20);
}

enum wire_disabled surroundings_unsupported(void)
{
    return surroundings_has_go()                                            ? WIRE_OFF_GO
           : is_emulated()                                                  ? WIRE_OFF_EMULATED
           : is_traced()                                                    ? WIRE_OFF_TRACED
           : is_memory_limited(RLIMIT_AS) || is_memory_limited(RLIMIT_DATA) ? WIRE_OFF_MEMORY
                                                                            : WIRE_OFF_NOT;
}

/* The address sanitizer's library calls this. By default it refuses to run a program if another library, here
 * the agent, is loaded before it. If the program defines this function itself, the option is added to the
 * environment instead (launch.c). */
EXPORT const char *__asan_default_options(void);
EXPORT const char *__asan_default_options(void)
{
    return "verify_asan_link_order=0";
}
