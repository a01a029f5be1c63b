/* SPDX-License-Identifier: Apache-2.0 */
/* Code that changes: written by the program, mapped anew, loaded and unloaded. */
#include "../hunt.h"

typedef int function(int);

/* mov eax, edi; n times add eax, imm; ret. Returns its length. */
static size_t emit_adds(uint8_t *p, int n, int32_t imm)
{
    uint8_t *start = p;
    *p++ = 0x89, *p++ = 0xf8;
    for (int i = 0; i < n; i++) {
        *p++ = 0x05;
        memcpy(p, &imm, 4);
        p += 4;
    }
    *p++ = 0xc3;
    return (size_t)(p - start);
}

static int call_often(uint8_t *code, int times)
{
    int sum = 0;
    for (int i = 0; i < times; i++)
        sum = sum * 3 + ((function *)(void *)code)(i);
    return sum;
}

/* Ways to have memory that is written and executed. */
enum { RWX, FLIP, DUAL, SHARED, ANEW, WRITEV, SELF_MEM, PATCHED_FILE, FILE_FLIP, FILE_RWX };

struct code_memory {
    uint8_t *run, *write;
    size_t bytes;
    int kind, fd;
};

static int get_code(struct code_memory *c, int kind, size_t bytes)
{
    *c = (struct code_memory){.bytes = bytes, .kind = kind, .fd = -1};
    int rwx = PROT_READ | PROT_WRITE | PROT_EXEC;
    if (kind == DUAL || kind == SHARED || kind >= PATCHED_FILE) {
        c->fd = memfd_create("code", MFD_CLOEXEC);
        if (ftruncate(c->fd, (off_t)bytes) != 0)
            return -1;
    }
    switch (kind) {
    case DUAL:
    case PATCHED_FILE:
        c->run = mmap(NULL, bytes, PROT_READ | PROT_EXEC, kind == DUAL ? MAP_SHARED : MAP_PRIVATE, c->fd, 0);
        c->write = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, c->fd, 0);
        break;
    case SHARED:
        c->run = c->write = mmap(NULL, bytes, rwx, MAP_SHARED, c->fd, 0);
        break;
    case FILE_FLIP:
    case FILE_RWX: /* as loaded libraries are; pages become writable when they are first changed */
        c->run = c->write = mmap(NULL, bytes, rwx & ~PROT_WRITE, MAP_PRIVATE, c->fd, 0);
        return c->run == MAP_FAILED ? -1 : 0;
    default:
        c->run = c->write = mmap(NULL, bytes, rwx, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    if (c->run == MAP_FAILED || c->write == MAP_FAILED)
        return -1;
    memset(c->write, 0xcc, bytes);
    return 0;
}

static void free_code(struct code_memory *c)
{
    munmap(c->run, c->bytes);
    if (c->write != c->run)
        munmap(c->write, c->bytes);
    if (c->fd >= 0)
        close(c->fd);
}

/* Puts bytes at an offset of the code, the way of its kind. */
static void put_code(struct code_memory *c, size_t offset, const void *bytes, size_t n)
{
    struct iovec from = {(void *)(uintptr_t)bytes, n}, to = {c->run + offset, n};
    size_t page = offset & ~(size_t)(PAGE - 1), end = (offset + n + PAGE - 1) & ~(size_t)(PAGE - 1);
    int fd;
    switch (c->kind) {
    case FILE_RWX:
        mprotect(c->run + page, end - page, PROT_READ | PROT_WRITE | PROT_EXEC);
        memcpy(c->run + offset, bytes, n);
        break;
    case FLIP:
    case FILE_FLIP:
        mprotect(c->run + page, end - page, PROT_READ | PROT_WRITE);
        memcpy(c->run + offset, bytes, n);
        mprotect(c->run + page, end - page, PROT_READ | PROT_EXEC);
        break;
    case ANEW: { /* other memory in its place, with all that was there and the change */
        uint8_t *q = mmap(NULL, c->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memcpy(q, c->run, c->bytes);
        memcpy(q + offset, bytes, n);
        mprotect(q, c->bytes, PROT_READ | PROT_EXEC);
        mremap(q, c->bytes, c->bytes, MREMAP_MAYMOVE | MREMAP_FIXED, c->run);
        break;
    }
    case WRITEV:
        process_vm_writev(getpid(), &from, 1, &to, 1, 0);
        break;
    case SELF_MEM:
        mprotect(c->run, c->bytes, PROT_READ | PROT_EXEC);
        fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
        if (pwrite(fd, bytes, n, (off_t)(uintptr_t)(c->run + offset)) != (ssize_t)n)
            abort();
        close(fd);
        break;
    case PATCHED_FILE:
        if (pwrite(c->fd, bytes, n, (off_t)offset) != (ssize_t)n)
            abort();
        madvise(c->run, c->bytes, MADV_DONTNEED);
        break;
    default:
        memcpy(c->write + offset, bytes, n);
    }
}

/* Whole functions written anew, at any offset, so that they lie across borders of pages. */
/* hunt: leaf not vfork,seccomp */
static void written(struct run *r,
                    int kind /* RWX FLIP DUAL SHARED ANEW WRITEV SELF_MEM PATCHED_FILE FILE_FLIP FILE_RWX */,
                    int rounds /* 5..60 */, int length /* 1..60 */, int offset /* 4000..4095 */)
{
    struct code_memory c;
    uint8_t code[400];
    int sum = 0, wrong = 0;
    if (get_code(&c, kind, 4 * PAGE) != 0)
        return;
    for (int round = 0; round < rounds; round++) {
        int n = 1 + (length + round) % 60;
        size_t at = (size_t)offset + (size_t)(round % 3) * 16;
        size_t bytes = emit_adds(code, n, round * 7 + 1);
        put_code(&c, at, code, bytes);
        if (round % 4 == 0)
            work(r, 1);
        for (int i = 0; i < 20; i++)
            wrong += ((function *)(void *)(c.run + at))(i) != i + n * (round * 7 + 1);
        sum = sum * 5 + call_often(c.run + at, 50);
    }
    free_code(&c);
    note(r, "written: wrong %d sum %x\n", wrong, (unsigned)sum);
}

/* One byte of one instruction changes: of an immediate or of a jump's distance, whose last byte may lie on
 * the next page. */
/* hunt: leaf not vfork,seccomp */
static void patched(struct run *r,
                    int kind /* RWX FLIP DUAL SHARED ANEW WRITEV SELF_MEM PATCHED_FILE FILE_FLIP FILE_RWX */,
                    int rounds /* 10..80 */, int jump /* 0..1 */, int border /* -3..6 */)
{
    struct code_memory c;
    int wrong = 0;
    if (get_code(&c, kind, 3 * PAGE) != 0)
        return;
    /* The changed byte is so many bytes before, or after, the border of the first page. */
    size_t at = (size_t)(2 * PAGE - border - 1), patch;
    uint8_t code[600];
    memset(code, 0x90, sizeof code);
    if (jump) { /* jmp rel32 to one of two returns; the distance's second byte is changed */
        code[0] = 0xe9;
        int32_t distance = 16;
        memcpy(code + 1, &distance, 4);
        memcpy(code + 5 + 16, (uint8_t[]){0x8d, 0x47, 1, 0xc3}, 4);       /* lea eax, [rdi+1]; ret */
        memcpy(code + 5 + 16 + 256, (uint8_t[]){0x8d, 0x47, 2, 0xc3}, 4); /* lea eax, [rdi+2]; ret */
        patch = 2;
    } else { /* lea eax, [rdi+imm32]; ret */
        memcpy(code, (uint8_t[]){0x8d, 0x87, 0, 0, 0, 0, 0xc3}, 7);
        patch = 5;
    }
    at -= patch;
    put_code(&c, at, code, sizeof code);
    for (int round = 0; round < rounds; round++) {
        uint8_t byte = jump ? (uint8_t)(round & 1) : (uint8_t)round;
        put_code(&c, at + patch, &byte, 1);
        for (int i = 0; i < 30; i++) {
            int want = jump ? i + 1 + (round & 1) : i + (int)((uint32_t)(uint8_t)round << 24);
            wrong += ((function *)(void *)(c.run + at))(i) != want;
        }
        if (round % 4 == 0)
            work(r, 1);
    }
    free_code(&c);
    note(r, "patched: wrong %d\n", wrong);
}

/* Another thread patches, and says so; code runs meanwhile. */
struct patcher {
    struct code_memory *c;
    size_t at;
    int rounds;
    volatile int asked, answered;
};

static void *patching(void *arg)
{
    struct patcher *p = arg;
    for (int i = 1; i <= p->rounds; i++) {
        while (__atomic_load_n(&p->asked, __ATOMIC_ACQUIRE) < i)
            sched_yield();
        int32_t imm = i;
        put_code(p->c, p->at, &imm, 4);
        __atomic_store_n(&p->answered, i, __ATOMIC_RELEASE);
    }
    return NULL;
}

/* hunt: leaf not vfork,seccomp */
static void patched_by_thread(struct run *r,
                              int kind /* RWX DUAL SHARED WRITEV FLIP SELF_MEM FILE_FLIP FILE_RWX */,
                              int rounds /* 10..60 */, int border /* -3..4 */)
{
    struct code_memory c;
    pthread_t t;
    int wrong = 0;
    if (get_code(&c, kind, 3 * PAGE) != 0)
        return;
    size_t at = (size_t)(PAGE - border - 2);
    uint8_t code[] = {0x8d, 0x87, 0, 0, 0, 0, 0xc3};
    put_code(&c, at, code, sizeof code);
    struct patcher p = {&c, at + 2, rounds, 0, 0};
    CHECK(pthread_create(&t, NULL, patching, &p) == 0);
    for (int i = 1; i <= rounds; i++) {
        wrong += ((function *)(void *)(c.run + at))(5) != 5 + i - 1;
        work(r, 1);
        __atomic_store_n(&p.asked, i, __ATOMIC_RELEASE);
        while (__atomic_load_n(&p.answered, __ATOMIC_ACQUIRE) < i)
            sched_yield();
        unsigned serial = 0;
        __asm__ volatile("cpuid" : "+a"(serial) : : "rbx", "rcx", "rdx", "memory");
        wrong += ((function *)(void *)(c.run + at))(5) != 5 + i;
    }
    pthread_join(t, NULL);
    free_code(&c);
    note(r, "patched by a thread: wrong %d\n", wrong);
}

/* Code that changes what comes right after it. */
/* hunt: leaf not vfork */
static void patches_itself(struct run *r, int shared_memory /* 0..1 */, int rounds /* 20..300 */,
                           int offset /* 4078..4096 */)
{
    struct code_memory c;
    int wrong = 0;
    if (get_code(&c, shared_memory ? SHARED : RWX, 3 * PAGE) != 0)
        return;
    /* mov byte [rip+1], dil; mov al, 0; movzx eax, al; ret */
    static const uint8_t self[] = {0x40, 0x88, 0x3d, 1, 0, 0, 0, 0xb0, 0, 0x0f, 0xb6, 0xc0, 0xc3};
    memcpy(c.run + offset, self, sizeof self);
    for (int i = 0; i < rounds; i++) {
        wrong += ((function *)(void *)(c.run + offset))(i & 255) != (i & 255);
        if (i % 16 == 0)
            work(r, 1);
    }
    free_code(&c);
    note(r, "patches itself: wrong %d\n", wrong);
}

/* The program's own text, made writable for a moment, as hooks do it. */
__asm__(".text\n.balign 64\nown_text_:\nlea 0x11223344(%rdi), %eax\nret\n");
int own_text_(int x);

static void change_text(struct run *r, int rounds, int by_file)
{
    uint8_t *at = (uint8_t *)(uintptr_t)own_text_;
    int32_t marker = 0x11223344, wrong = 0;
    for (int i = 0; memcmp(at, &marker, 4) != 0; i++, at++)
        if (i > 60)
            return;
    uint8_t *page = (uint8_t *)((uintptr_t)at & ~(uintptr_t)(PAGE - 1));
    int fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
    for (int i = 0; i <= rounds; i++) {
        int32_t imm = i == rounds ? marker : i * 3 + 1;
        if (by_file)
            CHECK(pwrite(fd, &imm, 4, (off_t)(uintptr_t)at) == 4);
        else {
            CHECK(mprotect(page, 2 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC) == 0);
            memcpy(at, &imm, 4);
            CHECK(mprotect(page, 2 * PAGE, PROT_READ | PROT_EXEC) == 0);
        }
        wrong += own_text_(5) != 5 + imm;
        work(r, 1);
        wrong += own_text_(6) != 6 + imm;
    }
    close(fd);
    note(r, "own text: wrong %d\n", wrong);
}

/* hunt: leaf claims TEXT not vfork,seccomp */
static void own_text(struct run *r, int rounds /* 5..40 */)
{
    change_text(r, rounds, 0);
}

/* Written to without ever being writable, as debuggers do it. */
/* hunt: leaf claims TEXT not vfork,seccomp */
static void own_text_by_file(struct run *r, int rounds /* 5..40 */)
{
    change_text(r, rounds, 1);
}

/* hunt: leaf claims LIBS not vfork */
static void load_unload(struct run *r, int rounds /* 3..25 */, int flags /* RTLD_NOW RTLD_LAZY */)
{
    long sum = 0;
    for (int i = 0; i < rounds; i++) {
        void *lib = dlopen(i % 2 ? HUNT_DIR "/lib_one.so" : HUNT_DIR "/lib_two.so", flags);
        if (lib == NULL) {
            note(r, "no library\n");
            return;
        }
        long (*f)(long) = (long (*)(long))dlsym(lib, "hunted");
        for (int k = 0; k < 200; k++)
            sum = sum * 3 + f(k);
        work(r, 1);
        if (dlclose(lib) != 0)
            note(r, "dlclose\n");
        work(r, 1);
    }
    note(r, "loaded %lx\n", (unsigned long)sum);
}

/* hunt: leaf claims LIBS not vfork */
static void exceptions(struct run *r, int rounds /* 3..40 */, int depth /* 1..20 */)
{
    void *lib = dlopen(HUNT_DIR "/lib_throws.so", RTLD_NOW);
    long sum = 0;
    if (lib == NULL) {
        note(r, "no library: %s\n", dlerror());
        return;
    }
    long (*throws)(long, long) = (long (*)(long, long))dlsym(lib, "hunt_throws");
    for (int i = 0; i < rounds; i++) {
        sum = sum * 3 + throws(depth, i);
        work(r, 1);
    }
    dlclose(lib);
    note(r, "thrown %lx\n", (unsigned long)sum);
}

static struct run *ctor_run_;
static body *ctor_in_;

static void from_constructor(void)
{
    ctor_in_(ctor_run_);
}

/* The body is called by the constructor of a library. */
/* hunt: wrapper claims LIBS not vfork adds loading */
static void in_constructor(struct run *r, body *in)
{
    char address[32];
    ctor_run_ = r, ctor_in_ = in;
    snprintf(address, sizeof address, "%lx", (unsigned long)(uintptr_t)from_constructor);
    setenv("HUNT_CALL", address, 1);
    void *lib = dlopen(HUNT_DIR "/lib_calls.so", RTLD_NOW);
    unsetenv("HUNT_CALL");
    work(r, 1);
    if (lib != NULL)
        dlclose(lib);
}

/* Data and flags that code keeps in odd places: direction flag, x87, vectors, the control words. */
/* hunt: leaf */
static void machine_state(struct run *r, int rounds /* 3..30 */)
{
    double x = 1;
    uint64_t sum = 0;
    static const uint16_t single = 0x007f;
    uint16_t word;
    __asm__ volatile("fnstcw %0" : "=m"(word));
    for (int i = 0; i < rounds; i++) {
        uint8_t from[64], to[64];
        for (int k = 0; k < 64; k++)
            from[k] = (uint8_t)(k * i);
        uint8_t *d = to + 63, *s = from + 63;
        uint64_t n = 64, third;
        double part = 3;
        __asm__ volatile("std\nrep movsb\ncld" : "+D"(d), "+S"(s), "+c"(n)::"memory", "cc");
        __asm__ volatile("fldcw %2\nfldl %1\nfld1\nfdivp\nfstpl %0\nfldcw %3"
                         : "=m"(third)
                         : "m"(part), "m"(single), "m"(word)
                         : "st", "st(1)");
        work(r, 1);
        x = x * 1.25 + to[i % 64];
        sum = sum * 31 + third + to[5];
    }
    uint64_t bits;
    memcpy(&bits, &x, 8);
    note(r, "state %llx %llx\n", (unsigned long long)sum, (unsigned long long)bits);
}
