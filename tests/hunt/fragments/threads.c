/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that come and go, wait for each other, are cancelled; and what a body may have next to it. */
#include "../hunt.h"

static __attribute__((noinline)) uint64_t count_up(uint64_t x, int steps)
{
    volatile uint64_t room[64];
    for (int i = 0; i < 64; i++)
        room[i] = x + (uint64_t)i;
    for (int i = 0; i < steps; i++)
        room[i & 63] = room[(i + 7) & 63] * 31 + (uint64_t)i;
    return room[x & 63] + room[5];
}

struct worker {
    uint64_t in, out;
    int steps, how;
};

static void *worker(void *arg)
{
    struct worker *w = arg;
    w->out = count_up(w->in, w->steps);
    if (w->how == 1)
        pthread_exit(arg);
    return arg;
}

/* hunt: leaf not vfork,loading */
static void come_and_go(struct run *r, int rounds /* 2..15 */, int n /* 1..6 */, int how /* 0..2 */,
                        int steps /* 100..30000 */)
{
    uint64_t sum = 0;
    for (int round = 0; round < rounds; round++) {
        struct worker w[6];
        pthread_t t[6];
        void *stacks[6];
        for (int i = 0; i < n; i++) {
            pthread_attr_t attr;
            pthread_attr_init(&attr);
            stacks[i] = new_stack();
            if (how == 2)
                pthread_attr_setstack(&attr, stacks[i], STACK);
            w[i] = (struct worker){(uint64_t)(round * 10 + i), 0, steps, how};
            CHECK(pthread_create(&t[i], &attr, worker, &w[i]) == 0);
            pthread_attr_destroy(&attr);
        }
        work(r, 1);
        for (int i = 0; i < n; i++) {
            void *result = NULL;
            CHECK(pthread_join(t[i], &result) == 0 && result == &w[i]);
            sum = sum * 31 + w[i].out;
            munmap(stacks[i], STACK);
        }
    }
    note(r, "threads %llx\n", (unsigned long long)sum);
}

/* Detached threads; keys with destructors; C11 threads. */
static pthread_key_t key_;
static sem_t gone_;
static volatile int destroyed_;

static void destroy(void *arg)
{
    (void)arg;
    count_up(3, 1000);
    __atomic_add_fetch(&destroyed_, 1, __ATOMIC_RELAXED);
    sem_post(&gone_);
}

static void *detached(void *arg)
{
    pthread_setspecific(key_, (void *)1);
    count_up((uint64_t)(uintptr_t)arg, 3000);
    return NULL;
}

static int detached_c11(void *arg)
{
    detached(arg);
    return 3;
}

/* hunt: leaf claims KEYS not vfork */
static void keys(struct run *r, int rounds /* 3..30 */, int c11 /* 0..1 */)
{
    destroyed_ = 0;
    sem_init(&gone_, 0, 0);
    pthread_key_create(&key_, destroy);
    for (int i = 0; i < rounds; i++) {
        pthread_t t;
        thrd_t u;
        if (c11) {
            CHECK(thrd_create(&u, detached_c11, &rounds) == thrd_success && thrd_detach(u) == thrd_success);
        } else
            CHECK(pthread_create(&t, NULL, detached, &rounds) == 0 && pthread_detach(t) == 0);
        work(r, 1);
        AGAIN(sem_wait(&gone_));
    }
    pthread_key_delete(key_);
    note(r, "destroyed %d\n", destroyed_);
}

/* Cancellation of all kinds. */
static volatile int cleaned_;
static int cancel_fds_[2];

static void cleanup(void *arg)
{
    (void)arg;
    count_up(1, 2000);
    cleaned_++;
}

static void *to_be_cancelled(void *arg)
{
    int how = *(int *)arg;
    volatile uint64_t x = 0;
    sem_t never;
    char c;
    sem_init(&never, 0, 0);
    pthread_cleanup_push(cleanup, NULL);
    switch (how) {
    case 0:
        for (;;)
            pause();
    case 1:
        read(cancel_fds_[0], &c, 1);
        break;
    case 2:
        for (;;) {
            x += count_up(x, 100);
            pthread_testcancel();
        }
    case 3:
        pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
        for (;;)
            x++;
    case 4:
        sem_wait(&never);
        break;
    default: {
        pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
        pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
        pthread_mutex_lock(&m);
        for (;;)
            pthread_cond_wait(&cond, &m);
    }
    }
    pthread_cleanup_pop(0);
    return NULL;
}

/* hunt: leaf claims CANCEL not vfork,handler,blocked,rawchild,loading */
static void cancels(struct run *r, int rounds /* 3..20 */, int how /* 0..5 */, int wait_us /* 0 100 1500 */)
{
    int cancelled = 0;
    cleaned_ = 0;
    CHECK(pipe2(cancel_fds_, O_CLOEXEC) == 0);
    for (int i = 0; i < rounds; i++) {
        pthread_t t;
        void *result = NULL;
        CHECK(pthread_create(&t, NULL, to_be_cancelled, &how) == 0);
        work(r, 1);
        sleep_us(wait_us);
        CHECK(pthread_cancel(t) == 0);
        CHECK(pthread_join(t, &result) == 0);
        cancelled += result == PTHREAD_CANCELED;
    }
    close(cancel_fds_[0]), close(cancel_fds_[1]);
    note(r, "cancelled %d\n", cancelled);
}

/* Two threads that take turns: by mutex and condition, by futex, by pipes, by semaphores, by a barrier, by
 * spinning. */
struct turns {
    int how, rounds, n;
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    volatile int turn;
    sem_t sems[2];
    pthread_barrier_t barrier;
    int fds[2][2];
    uint64_t value;
};

static void take_turn(struct turns *t, int me)
{
    char c = 'x';
    t->value = t->value * 31 + (uint64_t)me;
    switch (t->how) {
    case 0:
        pthread_mutex_lock(&t->mutex);
        t->turn = !me;
        pthread_cond_broadcast(&t->cond);
        while (t->turn != me)
            pthread_cond_wait(&t->cond, &t->mutex);
        pthread_mutex_unlock(&t->mutex);
        break;
    case 1:
        __atomic_store_n(&t->turn, !me, __ATOMIC_SEQ_CST);
        syscall(SYS_futex, &t->turn, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, NULL, NULL, 0);
        while (__atomic_load_n(&t->turn, __ATOMIC_SEQ_CST) != me)
            syscall(SYS_futex, &t->turn, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, !me, NULL, NULL, 0);
        break;
    case 2:
        AGAIN(write(t->fds[!me][1], &c, 1));
        AGAIN(read(t->fds[me][0], &c, 1));
        break;
    case 3:
        sem_post(&t->sems[!me]);
        AGAIN(sem_wait(&t->sems[me]));
        break;
    default:
        __atomic_store_n(&t->turn, !me, __ATOMIC_SEQ_CST);
        while (__atomic_load_n(&t->turn, __ATOMIC_SEQ_CST) != me)
            sched_yield();
    }
}

static void *other_turn(void *arg)
{
    struct turns *t = arg;
    char c;
    if (t->how == 0 || t->how == 1 || t->how == 4)
        while (__atomic_load_n(&t->turn, __ATOMIC_SEQ_CST) != 1)
            sched_yield();
    else if (t->how == 2)
        AGAIN(read(t->fds[1][0], &c, 1));
    else
        AGAIN(sem_wait(&t->sems[1]));
    for (int i = 0; i < t->rounds - 1; i++)
        take_turn(t, 1);
    /* The last one does not wait. */
    t->value = t->value * 31 + 1;
    pthread_mutex_lock(&t->mutex);
    __atomic_store_n(&t->turn, 0, __ATOMIC_SEQ_CST);
    pthread_cond_broadcast(&t->cond);
    pthread_mutex_unlock(&t->mutex);
    syscall(SYS_futex, &t->turn, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, NULL, NULL, 0);
    AGAIN(write(t->fds[0][1], "x", 1));
    sem_post(&t->sems[0]);
    return NULL;
}

/* hunt: leaf not vfork */
static void turns(struct run *r, int rounds /* 20..400 */, int how /* 0..4 */)
{
    struct turns *t = calloc(1, sizeof *t); /* on the heap, where pages may be protected */
    pthread_t other;
    t->how = how, t->rounds = rounds;
    pthread_mutex_init(&t->mutex, NULL);
    pthread_cond_init(&t->cond, NULL);
    sem_init(&t->sems[0], 0, 0), sem_init(&t->sems[1], 0, 0);
    CHECK(pipe2(t->fds[0], O_CLOEXEC) == 0 && pipe2(t->fds[1], O_CLOEXEC) == 0);
    CHECK(pthread_create(&other, NULL, other_turn, t) == 0);
    for (int i = 0; i < rounds; i++) {
        if (i % 16 == 0)
            work(r, 1);
        take_turn(t, 0);
    }
    pthread_join(other, NULL);
    for (int i = 0; i < 4; i++)
        close(t->fds[i / 2][i % 2]);
    note(r, "turns %llx\n", (unsigned long long)t->value);
    free(t);
}

/* Mutexes whose owner dies. */
static void *dies_locking(void *arg)
{
    pthread_mutex_lock(arg);
    count_up(1, 3000);
    return NULL;
}

/* hunt: leaf not vfork */
static void robust(struct run *r, int rounds /* 3..20 */, int inherit /* 0..1 */, int waits /* 0..1 */)
{
    int died = 0;
    for (int i = 0; i < rounds; i++) {
        pthread_mutex_t *m = malloc(sizeof *m);
        pthread_mutexattr_t a;
        pthread_t t;
        pthread_mutexattr_init(&a);
        pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
        if (inherit)
            pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_INHERIT);
        pthread_mutex_init(m, &a);
        CHECK(pthread_create(&t, NULL, dies_locking, m) == 0);
        work(r, 1);
        if (!waits)
            pthread_join(t, NULL);
        int got = pthread_mutex_lock(m);
        if (got == EOWNERDEAD) {
            died++;
            CHECK(pthread_mutex_consistent(m) == 0);
        } else if (waits && got == 0)
            died++; /* it was quicker than the other one */
        int unlocked = pthread_mutex_unlock(m);
        /* Natively, too, it fails at times if the owner has died while this thread waited. */
        CHECK(unlocked == 0 || (inherit && waits));
        if (waits)
            pthread_join(t, NULL);
        pthread_mutex_destroy(m);
        free(m);
    }
    note(r, "owners died %d\n", died);
}

/*
 * libc tells all threads to change their user: to what it is. No thread may be cancelled meanwhile:
 * glibc 2.36 waits forever for one that is cancelled in sem_wait while it handles that signal, natively too.
 */
/* hunt: leaf claims CANCEL not vfork,handler,seccomp,rawchild */
static void change_user(struct run *r, int rounds /* 3..20 */)
{
    for (int i = 0; i < rounds; i++) {
        CHECK(setresuid((uid_t)-1, (uid_t)-1, (uid_t)-1) == 0);
        CHECK(setresgid((gid_t)-1, getegid(), (gid_t)-1) == 0);
        work(r, 1);
    }
    note(r, "user\n");
}

/* Threads that libc does not know of: no library call is safe in them. */
struct raw_thread {
    volatile uint64_t value;
    volatile int tid;
};

static int raw_thread(void *arg)
{
    struct raw_thread *t = arg;
    for (int i = 0; i < 20000; i++)
        t->value = t->value * 31 + (uint64_t)i;
    return 0;
}

/* hunt: leaf claims CLONE not vfork,handler,seccomp */
static void raw_threads(struct run *r, int rounds /* 2..12 */, int n /* 1..3 */)
{
    uint64_t sum = 0;
    for (int round = 0; round < rounds; round++) {
        struct raw_thread t[3];
        void *stacks[3];
        for (int i = 0; i < n; i++) {
            t[i] = (struct raw_thread){(uint64_t)i, 1};
            stacks[i] = new_stack();
            int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
                        CLONE_CHILD_CLEARTID | CLONE_PARENT_SETTID;
            /* The thread pointer stays the maker's, as it is not used. */
            CHECK(clone(raw_thread, (uint8_t *)stacks[i] + STACK, flags, &t[i], &t[i].tid, NULL, &t[i].tid) >
                  0);
        }
        unrecorded_here++;
        work(r, 1);
        unrecorded_here--;
        for (int i = 0; i < n; i++) {
            for (int seen; (seen = __atomic_load_n(&t[i].tid, __ATOMIC_SEQ_CST)) != 0;)
                syscall(SYS_futex, &t[i].tid, FUTEX_WAIT, seen, NULL, NULL, 0);
            sum = sum * 31 + t[i].value;
            munmap(stacks[i], STACK);
        }
    }
    note(r, "raw threads %llx\n", (unsigned long long)sum);
}

/* Threads with timers of their own: POSIX timers that send signals to a thread, or make threads. */
static volatile int expired_;

static void on_expiry(int sig, siginfo_t *info, void *uc)
{
    (void)sig, (void)uc;
    expired_ += info->si_code == SI_TIMER;
}

static void expiry_thread(union sigval v)
{
    (void)v;
    __atomic_add_fetch(&expired_, 1, __ATOMIC_RELAXED);
}

/* hunt: leaf claims EXPIRY not vfork,blocked,noqueue */
static void timers(struct run *r, int sig /* signal */, int how /* 0..2 */,
                   int clock /* CLOCK_MONOTONIC CLOCK_PROCESS_CPUTIME_ID */, int us /* 300..3000 */,
                   int count /* 2..10 */)
{
    struct sigaction old;
    timer_t timer;
    struct sigevent e = {.sigev_notify = how == 0   ? SIGEV_SIGNAL
                                         : how == 1 ? SIGEV_THREAD_ID
                                                    : SIGEV_THREAD,
                         .sigev_signo = sig};
    if (how == 1)
        e._sigev_un._tid = gettid();
    else if (how == 2)
        e.sigev_notify_function = expiry_thread, e.sigev_notify_attributes = NULL;
    expired_ = 0;
    handle(sig, on_expiry, SA_RESTART, MASK_NONE, &old);
    /* Fails while other processes of the user, of any job, have filled the queue of pending signals. */
    while (timer_create(clock, &e, &timer) != 0 && errno == EAGAIN)
        spin();
    struct itimerspec t = {{0, us * 1000}, {0, us * 1000}};
    CHECK(timer_settime(timer, 0, &t, NULL) == 0);
    work(r, 2);
    while (expired_ < count)
        spin();
    timer_delete(timer);
    signal(sig, SIG_IGN);
    sigaction(sig, &old, NULL);
    note(r, "expired\n");
}

/* hunt: leaf */
static void timer_files(struct run *r, int us /* 200..2000 */, int count /* 2..15 */, int how /* 0..2 */)
{
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC), ep = epoll_create1(EPOLL_CLOEXEC);
    struct itimerspec t = {{0, us * 1000}, {0, us * 1000}};
    struct epoll_event event = {.events = EPOLLIN};
    uint64_t total = 0, n;
    CHECK(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &event) == 0);
    CHECK(timerfd_settime(fd, 0, &t, NULL) == 0);
    while (total < (uint64_t)count) {
        if (how == 1)
            AGAIN(poll(&(struct pollfd){fd, POLLIN, 0}, 1, -1));
        else if (how == 2)
            AGAIN(epoll_wait(ep, &event, 1, -1));
        CHECK(AGAIN(read(fd, &n, sizeof n)) == sizeof n);
        total += n;
    }
    close(fd), close(ep);
    work(r, 1);
    note(r, "timer file\n");
}

/* Threads that send each other signals. */
struct storm {
    int sig;
    pthread_t other;
    volatile long *worked; /* by the other thread */
    int nests;             /* the handler may be interrupted by the same signal */
    volatile int stop;
};
static volatile int storm_;

static void on_storm(int sig, siginfo_t *info, void *uc)
{
    (void)sig, (void)info, (void)uc;
    __atomic_add_fetch(&storm_, 1, __ATOMIC_RELAXED);
}

static void *storming(void *arg)
{
    struct storm *s = arg;
    long worked = -1;
    for (int sent = 0; !s->stop;) {
        count_up(1, 2000);
        /* Without a limit they would fill the queue of all of the user's processes, or the stack. */
        if (s->nests ? *s->worked != worked : sent < storm_ + 4) {
            worked = *s->worked;
            sent += pthread_kill(s->other, s->sig) == 0;
        } else
            sched_yield();
    }
    return NULL;
}

/* hunt: wrapper claims STORM not vfork,blocked,noqueue adds noise,threads */
static void with_storm(struct run *r, body *in, int sig /* signal */,
                       int flags /* SA_RESTART SA_RESTART|SA_NODEFER */)
{
    struct sigaction old;
    struct storm s = {
        .sig = sig, .other = pthread_self(), .worked = &worked_, .nests = (flags & SA_NODEFER) != 0};
    pthread_t t;
    storm_ = 0;
    handle(sig, on_storm, flags, MASK_NONE, &old);
    CHECK(pthread_create(&t, NULL, storming, &s) == 0);
    in(r);
    s.stop = 1;
    pthread_join(t, NULL);
    signal(sig, SIG_IGN);
    sigaction(sig, &old, NULL);
}

/* Bodies next to other threads. */
struct beside {
    int how, us;
    volatile int stop;
    int fds[2], timer;
    pthread_mutex_t mutex;
    pthread_cond_t cond;
};

static void *besides(void *arg)
{
    struct beside *b = arg;
    struct epoll_event event;
    uint64_t n;
    char c;
    void *p;
    switch (b->how) {
    case 0: /* sleeps till the end */
        AGAIN(read(b->fds[0], &c, 1));
        break;
    case 1:
        AGAIN(poll(&(struct pollfd){b->fds[0], POLLIN, 0}, 1, -1));
        break;
    case 2:
        pthread_mutex_lock(&b->mutex);
        while (!b->stop)
            pthread_cond_wait(&b->cond, &b->mutex);
        pthread_mutex_unlock(&b->mutex);
        break;
    case 3: /* wakes up now and then */
        while (!b->stop)
            sleep_us(b->us);
        break;
    case 4: {
        int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
        struct itimerspec t = {{0, b->us * 1000}, {0, b->us * 1000}};
        timerfd_settime(fd, 0, &t, NULL);
        while (!b->stop)
            if (AGAIN(poll(&(struct pollfd){fd, POLLIN, 0}, 1, -1)) == 1)
                AGAIN(read(fd, &n, 8));
        close(fd);
        break;
    }
    case 5: /* computes */
        while (!b->stop)
            count_up(1, 5000);
        break;
    case 6: /* makes many system calls */
        while (!b->stop) {
            syscall(SYS_getppid);
            clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &(struct timespec){0});
            count_up(1, 300);
        }
        break;
    case 7: /* changes mappings */
        while (!b->stop) {
            p = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            memset(p, 1, 4 * PAGE);
            mprotect(p, PAGE, PROT_READ);
            mprotect(p, PAGE, PROT_READ | PROT_EXEC);
            munmap(p, 4 * PAGE);
            sleep_us(b->us / 10);
        }
        break;
    case 8: /* makes threads */
        while (!b->stop) {
            pthread_t t;
            struct worker w = {1, 0, 300, 0};
            if (pthread_create(&t, NULL, worker, &w) == 0)
                pthread_join(t, NULL);
            sleep_us(b->us / 4);
        }
        break;
    case 9: /* loads and unloads a library */
        while (!b->stop) {
            void *lib = dlopen("libresolv.so.2", RTLD_NOW); /* no fragment depends on its state */
            if (lib != NULL)
                dlclose(lib);
            sleep_us(b->us);
        }
        break;
    default: { /* makes processes */
        while (!b->stop) {
            pid_t pid = vfork();
            if (pid == 0)
                _exit(0);
            AGAIN(waitpid(pid, NULL, 0));
            sleep_us(b->us);
        }
    }
    }
    return NULL;
}

static void beside_threads(struct run *r, body *in, int how, int n, int us)
{
    struct beside b = {
        .how = how, .us = us, .mutex = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};
    pthread_t t[4];
    sigset_t all, before;
    CHECK(pipe2(b.fds, O_CLOEXEC) == 0);
    fill_mask(&all, MASK_ASYNC); /* signals of the program's own are for the body's thread */
    pthread_sigmask(SIG_BLOCK, &all, &before);
    for (int i = 0; i < n; i++)
        CHECK(pthread_create(&t[i], NULL, besides, &b) == 0);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    in(r);
    b.stop = 1;
    close(b.fds[1]);
    pthread_mutex_lock(&b.mutex);
    pthread_cond_broadcast(&b.cond);
    pthread_mutex_unlock(&b.mutex);
    for (int i = 0; i < n; i++)
        pthread_join(t[i], NULL);
    close(b.fds[0]);
}

/* hunt: wrapper not vfork,handler adds threads */
static void beside_sleepers(struct run *r, body *in, int how /* 0..2 */, int n /* 1..3 */)
{
    beside_threads(r, in, how, n, 0);
}

/* hunt: wrapper not vfork,handler adds threads */
static void beside_wakers(struct run *r, body *in, int how /* 3..4 */, int n /* 1..2 */,
                          int us /* 500..20000 */)
{
    beside_threads(r, in, how, n, us);
}

/* hunt: wrapper not vfork,handler adds threads */
static void beside_workers(struct run *r, body *in, int how /* 5..6 */, int n /* 1..2 */)
{
    beside_threads(r, in, how, n, 0);
}

/* Not in a constructor, while dlopen holds a lock that a thread needs which makes a thread or loads a
 * library. */
/* hunt: wrapper not vfork,handler,loading adds threads,maps */
static void beside_changes(struct run *r, body *in, int how /* 7 8 10 */, int us /* 1000..10000 */)
{
    beside_threads(r, in, how, 1, us);
}

/* hunt: wrapper not vfork,handler,loading adds threads,maps,dlopens */
static void beside_loads(struct run *r, body *in, int us /* 1000..10000 */)
{
    beside_threads(r, in, 9, 1, us);
}

/* The body in a thread of its own. */
struct in_thread {
    struct run *r;
    body *in;
};

static void *thread_body(void *arg)
{
    struct in_thread *t = arg;
    t->in(t->r);
    return NULL;
}

/* hunt: wrapper not vfork,handler adds threads */
static void in_thread(struct run *r, body *in, int own_stack /* 0..1 */)
{
    struct in_thread arg = {r, in};
    pthread_t t;
    pthread_attr_t attr;
    void *stack = new_stack();
    pthread_attr_init(&attr);
    if (own_stack)
        pthread_attr_setstack(&attr, stack, STACK);
    CHECK(pthread_create(&t, &attr, thread_body, &arg) == 0);
    pthread_join(t, NULL);
    munmap(stack, STACK);
}

/* Several bodies at the same time, each with a run of its own. */
static void in_parallel(struct run *r, body *const *in, const int *runs, int n)
{
    struct in_thread arg[4];
    pthread_t t[4];
    for (int i = 0; i < n; i++) {
        arg[i] = (struct in_thread){&shared->runs[runs[i]], in[i]};
        make_pool(arg[i].r, runs[i] % 3);
        CHECK(pthread_create(&t[i], NULL, thread_body, &arg[i]) == 0);
    }
    for (int i = 0; i < n; i++) {
        pthread_join(t[i], NULL);
        note(r, "%s", arg[i].r->text);
        arg[i].r->length = 0;
    }
}
