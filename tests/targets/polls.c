/* SPDX-License-Identifier: Apache-2.0 */
/*
 * polls N: N times a poll of 1000 files that are never ready, which the kernel looks at for some microseconds
 * and then waits for a little. Prints how many of them failed with EINTR.
 */
/* build: -D_GNU_SOURCE */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>

int main(int argc, char **argv)
{
    static struct pollfd files[1000];
    long interrupted = 0, n = argc > 1 ? atol(argv[1]) : 1;
    for (int i = 0; i < 1000; i++)
        files[i] = (struct pollfd){.fd = eventfd(0, 0), .events = POLLIN};
    for (long i = 0; i < n; i++) {
        struct timespec little = {0, 20000};
        if (ppoll(files, 1000, &little, NULL) < 0 && errno == EINTR)
            interrupted++;
    }
    printf("interrupted %ld\n", interrupted);
    return 0;
}
