/* SPDX-License-Identifier: Apache-2.0 */
/* build: -pthread */
/* Threads that are cancelled while they wait in system calls, or run: objects on their stacks are destroyed. */
#include <cstdio>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/socket.h>
#include <unistd.h>

static long destroyed, wrong;
struct guard {
    ~guard() { destroyed++; }
};

static int pipe_ends[2], listener;
static sem_t never, ready;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;

static void wait_on_condition()
{
    pthread_mutex_lock(&mutex);
    pthread_cleanup_push([](void *m) { pthread_mutex_unlock(static_cast<pthread_mutex_t *>(m)); }, &mutex);
    for (;;)
        pthread_cond_wait(&condition, &mutex);
    pthread_cleanup_pop(1);
}

static void compute()
{
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, nullptr);
    for (volatile long n = 0;; n++)
        ;
}

static void (*const waits[])() = {[] { char byte; (void)!read(pipe_ends[0], &byte, 1); },
                                  [] { pause(); },
                                  [] { poll(nullptr, 0, -1); },
                                  [] { sem_wait(&never); },
                                  wait_on_condition,
                                  [] { sleep(1000); },
                                  [] { accept(listener, nullptr, nullptr); },
                                  [] { for (;;) usleep(10); },
                                  [] { for (;;) pthread_testcancel(); },
                                  compute};

__attribute__((noinline)) static void inner(void (*wait)())
{
    guard g;
    wait();
}

static void *outer(void *wait)
{
    guard g;
    for (volatile int n = 0; n < 30000; n++)
        ;
    sem_post(&ready);
    inner(*static_cast<void (**)()>(wait));
    return nullptr;
}

int main()
{
    if (pipe(pipe_ends) || sem_init(&never, 0, 0) || sem_init(&ready, 0, 0))
        return 1;
    listener = socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr name = {AF_UNIX, {}};
    if (bind(listener, &name, sizeof name.sa_family) || listen(listener, 1)) /* the kernel chooses a name */
        return 1;
    for (auto wait : waits)
        for (int n = 0; n < 4; n++) {
            pthread_t thread;
            void *result = nullptr;
            long before = destroyed;
            if (pthread_create(&thread, nullptr, outer, &wait))
                return 1;
            sem_wait(&ready);
            usleep(n * 1000); /* about to wait, or waiting */
            pthread_cancel(thread);
            pthread_join(thread, &result);
            wrong += destroyed != before + 2 || result != PTHREAD_CANCELED;
        }
    std::printf("destroyed %ld, wrong %ld\n", destroyed, wrong);
    return 0;
}
