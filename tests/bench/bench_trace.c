/* SPDX-License-Identifier: Apache-2.0 */
/* What reading a trace costs by itself: ns of CPU time a reference. usage: bench_trace FILE */
#include <stdio.h>
#include <time.h>
#include "trace/trace.h"

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
    struct error err;
    struct trace_batch batch;
    uint64_t references = 0, sum = 0;
    int status = -1;
    struct trace_reader *r = argc == 2 ? trace_open(argv[1], NULL, &err) : NULL;
    double start = now_ns();
    while (r != NULL && (status = trace_next(r, &batch, &err)) > 0) {
        references += batch.n;
        sum += batch.address[batch.n - 1];
    }
    double end = now_ns();
    if (status < 0 || references == 0) {
        fprintf(stderr, "bench_trace: %s\n", argc == 2 ? err.text : "which file?");
        trace_close(r);
        return 1;
    }
    trace_close(r);
    printf("%.3f\n", (end - start) / (double)references);
    return sum == 0; /* so that it is needed */
}
