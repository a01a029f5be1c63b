/* SPDX-License-Identifier: Apache-2.0 */
/* Processes: every way to make one, to execute a program, to end, and to be stopped. */
#include "../hunt.h"

extern char **environ;

enum { FORK, FORK_RAW, FORK_SYSCALL, CLONE_CHILD, CLONE_FILES_CHILD };

static pid_t make_child(int how)
{
    switch (how) {
    case FORK_RAW:
        return _Fork();
    case FORK_SYSCALL:
        return (pid_t)syscall(SYS_fork);
    case CLONE_CHILD:
        return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
    case CLONE_FILES_CHILD:
        return (pid_t)syscall(SYS_clone, SIGCHLD | CLONE_FILES | CLONE_FS, NULL, NULL, NULL, NULL);
    default:
        return fork();
    }
}

static void child_body(struct run *r, body *in, int how, int leave)
{
    work(r, 1);
    pid_t pid = make_child(how);
    if (pid == 0) {
        if (how != FORK)
            unrecorded++; /* children that are made past libc are not followed */
        in(r);
        if (leave == 0)
            _exit(41);
        if (leave == 1) {
            signal(SIGTERM, SIG_DFL);
            sigset_t all;
            sigemptyset(&all);
            sigprocmask(SIG_SETMASK, &all, NULL);
            kill(getpid(), SIGTERM);
        }
        syscall(SYS_exit_group, 43);
    }
    work(r, 1);
    ended(r, pid);
}

/* A child of a process in which another thread loads libraries may inherit libc's lock (_dl_load_write_lock),
 * and wait for ever: natively, too. */
/* hunt: wrapper not vfork,dlopens adds child removes threads,maps,noise,stops */
static void in_child(struct run *r, body *in, int leave /* 0..2 */)
{
    child_body(r, in, FORK, leave);
}

/* Without libc's knowledge: its locks may be held if there were threads, and its list of threads is wrong. */
/* hunt: wrapper not vfork,threads,maps adds child,rawchild removes noise,stops */
static void in_raw_child(struct run *r, body *in,
                         int how /* FORK_RAW FORK_SYSCALL CLONE_CHILD CLONE_FILES_CHILD */,
                         int leave /* 0..2 */)
{
    child_body(r, in, how, leave);
}

/* hunt: leaf claims CLONE not vfork */
static void forks(struct run *r, int rounds /* 2..10 */,
                  int how /* FORK FORK_RAW FORK_SYSCALL CLONE_CHILD CLONE_FILES_CHILD */,
                  int at_once /* 0..1 */)
{
    pid_t pids[10];
    for (int i = 0; i < rounds; i++) {
        work(r, 1);
        pids[i] = make_child(how);
        if (pids[i] == 0) {
            unrecorded++;
            work(r, 3);
            _exit((int)(r->id + i * 3));
        }
        if (!at_once)
            ended(r, pids[i]);
    }
    work(r, 3);
    for (int i = 0; i < rounds && at_once; i++)
        ended(r, pids[i]);
}

static int spawn_and_wait(const char *path, char **argv)
{
    pid_t pid;
    int status = -1;
    if (posix_spawn(&pid, path, NULL, NULL, argv, environ) != 0)
        return -1;
    AGAIN(waitpid(pid, &status, 0));
    return status;
}

/* hunt: leaf not seccomp,blocked */
static void programs(struct run *r, int rounds /* 1..6 */, int how /* 0..4 */)
{
    char *argv[] = {"true", NULL};
    int sum = 0;
    for (int i = 0; i < rounds; i++) {
        work(r, 2);
        pid_t pid;
        int status = -1;
        char text[64] = "";
        switch (how) {
        case 0:
            pid = vfork();
            if (pid == 0) {
                execv(i % 2 ? "/bin/true" : "/bin/false", argv);
                _exit(9);
            }
            AGAIN(waitpid(pid, &status, 0));
            break;
        case 1:
            status = spawn_and_wait(i % 2 ? "/bin/true" : "/bin/false", argv);
            break;
        case 2:
            pid = fork();
            if (pid == 0) {
                execve("/no/such/program", argv, environ);
                execl("/bin/sh", "sh", "-c", i % 2 ? "kill -TERM $$" : "exit 7", NULL);
                _exit(9);
            }
            AGAIN(waitpid(pid, &status, 0));
            break;
        case 3:
            pid = vfork();
            if (pid == 0) {
                syscall(SYS_exit_group, 5);
            }
            AGAIN(waitpid(pid, &status, 0));
            break;
        default: {
            int fds[2];
            CHECK(pipe2(fds, O_CLOEXEC) == 0);
            pid = fork();
            if (pid == 0) {
                dup2(fds[1], 1);
                execlp("echo", "echo", "hello", NULL);
                _exit(9);
            }
            close(fds[1]);
            for (ssize_t n, got = 0; (n = AGAIN(read(fds[0], text + got, sizeof text - 1 - (size_t)got))) > 0;
                 got += n)
                ;
            close(fds[0]);
            AGAIN(waitpid(pid, &status, 0));
            sum += strcmp(text, "hello\n") == 0;
        }
        }
        sum = sum * 5 + status;
    }
    note(r, "programs %d\n", sum);
}

/* libc's own ways; they ignore and block signals meanwhile. */
/* hunt: leaf claims DISPOSITIONS not vfork,seccomp,noise,handler,blocked,threads */
static void shells(struct run *r, int how /* 0..1 */)
{
    work(r, 2);
    if (how == 0)
        note(r, "system %d\n", system("exit 3"));
    else {
        char line[64] = "";
        FILE *f = popen("echo from the shell", "r");
        if (f == NULL || fgets(line, sizeof line, f) == NULL)
            strcpy(line, "nothing\n");
        note(r, "%s", line);
        note(r, "pclose %d\n", f == NULL ? -1 : pclose(f));
    }
    work(r, 2);
}

/* A child that shares memory with its parent until it ends or executes. */
/* hunt: wrapper not vfork,handler,threads,blocked adds vfork */
static void in_vfork(struct run *r, body *in)
{
    work(r, 1);
    unrecorded_here++;
    pid_t pid = vfork();
    if (pid == 0) {
        in(r);
        _exit(17);
    }
    unrecorded_here--;
    work(r, 1);
    ended(r, pid);
}

struct clone_arg {
    struct run *r;
    volatile int done;
};

static int clone_body(void *arg)
{
    struct clone_arg *c = arg;
    for (int i = 0; i < 20000; i++)
        c->done = c->done * 3 + i;
    return 21;
}

/* Children by clone that share some things and not others. */
/* hunt: leaf claims CLONE not vfork,seccomp */
static void clones(struct run *r, int rounds /* 1..8 */,
                   int flags /* CLONE_VM CLONE_VM|CLONE_VFORK CLONE_VM|CLONE_FS|CLONE_FILES
                                CLONE_FS|CLONE_FILES CLONE_VM|CLONE_UNTRACED 0 */
                   ,
                   int sig /* SIGCHLD 0 */)
{
    for (int i = 0; i < rounds; i++) {
        struct clone_arg c = {.r = r};
        void *stack = new_stack();
        work(r, 1);
        pid_t pid = clone(clone_body, (uint8_t *)stack + STACK, flags | sig, &c);
        unrecorded_here++;
        work(r, 1);
        unrecorded_here--;
        ended(r, pid);
        note(r, "clone %d\n", c.done);
        munmap(stack, STACK);
    }
}

/* Ways to die, each in a child. */
static void *exits(void *arg)
{
    _exit(*(int *)arg);
}

static void dies_by_handler(int sig)
{
    signal(sig, SIG_DFL);
    raise(sig);
}

static int endless_(volatile int *p)
{
    volatile char room[4096];
    room[0] = (char)*p;
    return endless_(p) + room[0];
}

/* hunt: leaf claims FAULTS,ABORT not vfork,blocked,seccomp */
static void deaths(struct run *r, int rounds /* 1..4 */, int how /* 0..15 */)
{
    struct rlimit none = {0, 0}, cores;
    getrlimit(RLIMIT_CORE, &cores);
    for (int i = 0; i < rounds; i++) {
        work(r, 1);
        pid_t pid = fork();
        if (pid == 0) {
            int seven = 7, fds[2];
            sigset_t set;
            struct rlimit cpu = {1, 1};
            pthread_t t;
            prctl(PR_SET_DUMPABLE, 0);
            setrlimit(RLIMIT_CORE, &none);
            for (int s = 1; s < 32; s++)
                signal(s, SIG_DFL);
            unrecorded++;
            work(r, 2 + i * 5);
            switch (how) {
            case 0:
                *(volatile int *)8 = 1;
                break;
            case 1:
                abort();
            case 2:
                __builtin_trap();
            case 3:
                raise(SIGTERM);
                break;
            case 4:
                kill(getpid(), SIGKILL);
                break;
            case 5: /* a fault that is blocked */
                sigfillset(&set);
                sigprocmask(SIG_SETMASK, &set, NULL);
                work(r, 1);
                *(volatile int *)8 = 1;
                break;
            case 6: /* a fault that is ignored */
                signal(SIGSEGV, SIG_IGN);
                work(r, 1);
                *(volatile int *)8 = 1;
                break;
            case 7:
                pthread_create(&t, NULL, exits, &seven);
                for (;;)
                    work(r, 1);
            case 8: {
                int zero = 0;
                (void)endless_(&zero);
                break;
            }
            case 9:
                CHECK(pipe(fds) == 0);
                close(fds[0]);
                (void)!write(fds[1], "x", 1);
                break;
            case 10: /* a handler that gives up */
                signal(SIGSEGV, dies_by_handler);
                *(volatile int *)8 = 1;
                break;
            case 11: /* a signal stack that is not there */
            {
                stack_t gone = {.ss_sp = new_stack(), .ss_size = STACK};
                struct sigaction a = {.sa_handler = dies_by_handler, .sa_flags = SA_ONSTACK};
                sigaltstack(&gone, NULL);
                sigaction(SIGUSR1, &a, NULL);
                munmap(gone.ss_sp, STACK);
                raise(SIGUSR1);
                break;
            }
            case 12: /* no memory at the stack pointer, and a handler that is not on a stack of its own */
                signal(SIGSEGV, dies_by_handler);
                __asm__ volatile("mov $4096, %rsp\npush %rax\n");
                break;
            case 13:
                raise(SIGTRAP);
                break;
            case 14:
                __asm__ volatile("xor %%rax, %%rax\njmp *%%rax" ::: "rax");
                break;
            default: /* a signal that comes while it waits */
                alarm(1);
                setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 3000}}, NULL);
                for (;;)
                    pause();
            }
            (void)cpu;
            _exit(99);
        }
        ended(r, pid);
    }
}

/* Signals about children. */
static volatile int children_;

static void on_child(int sig, siginfo_t *info, void *uc)
{
    (void)sig, (void)info, (void)uc;
    int saved = errno;
    while (waitpid(-1, NULL, WNOHANG) > 0)
        children_++;
    errno = saved;
}

/* hunt: leaf claims SIGCHLD,CHILDREN not vfork,blocked,threads,maps */
static void child_signals(struct run *r, int n /* 1..8 */, int how /* 0..2 */)
{
    struct sigaction old;
    children_ = 0;
    if (how == 0)
        handle(SIGCHLD, on_child, SA_RESTART, MASK_NONE, &old);
    else if (how == 1)
        sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_DFL, .sa_flags = SA_NOCLDWAIT}, &old);
    else
        sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_IGN}, &old);
    for (int i = 0; i < n; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            unrecorded++;
            work(r, 1);
            _exit(0);
        }
        work(r, 1);
    }
    if (how == 0)
        while (children_ < n)
            sleep_us(300);
    else {
        CHECK(AGAIN(waitpid(-1, NULL, 0)) == -1 && errno == ECHILD);
    }
    sigaction(SIGCHLD, &old, NULL);
    note(r, "children %d\n", children_);
}

/* A child stops this process again and again, and lets it go on. */
/* hunt: wrapper claims STOPS,CHILDREN not vfork,blocked adds stops,noise */
static void with_stops(struct run *r, body *in, int us /* 200..8000 */, int pause_us /* 0 100 2000 */)
{
    pid_t me = getpid();
    volatile int *stop = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pid = fork();
    if (pid == 0) {
        while (!*stop && getppid() == me) {
            sleep_us(us);
            kill(me, SIGSTOP);
            sleep_us(pause_us);
            kill(me, SIGCONT);
        }
        _exit(0);
    }
    in(r);
    *stop = 1;
    ended(r, pid);
    munmap((void *)stop, PAGE);
}

/* The body in a new image of this program, whose output comes through a pipe. */
/* hunt: exec not vfork,seccomp */
static void in_program(struct run *r, int stage, int how /* 0..3 */)
{
    char number[16], text[4096], *argv[] = {"stage", number, NULL};
    int fds[2];
    pid_t pid = -1;
    snprintf(number, sizeof number, "%d", stage);
    CHECK(pipe2(fds, O_CLOEXEC) == 0);
    work(r, 1);
    if (how == 2) {
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, fds[1], 1);
        CHECK(posix_spawn(&pid, "/proc/self/exe", &actions, NULL, argv, environ) == 0);
        posix_spawn_file_actions_destroy(&actions);
    } else {
        pid = how == 1 ? vfork() : fork();
        if (pid == 0) {
            dup2(fds[1], 1);
            if (how == 3) {
                int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
                fexecve(self, argv, environ);
            }
            execv("/proc/self/exe", argv);
            _exit(55);
        }
    }
    close(fds[1]);
    size_t got = 0;
    for (ssize_t n;
         got < sizeof text - 1 && (n = AGAIN(read(fds[0], text + got, sizeof text - 1 - got))) > 0;)
        got += (size_t)n;
    text[got] = 0;
    close(fds[0]);
    note(r, "%s", text);
    ended(r, pid);
}
