/* SPDX-License-Identifier: Apache-2.0 */
/* Asks for the time all the time: the vDSO's code names pages of which some have nothing after them. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

int main(int argc, char **argv)
{
    unsigned long n = argc > 1 ? strtoul(argv[1], NULL, 10) : 1, back = 0;
    time_t last = 0;
    for (unsigned long i = 0; i < n; i++) {
        struct timeval of_day;
        time_t now = time(NULL);
        back += now < last;
        last = now;
        if (i % 16 == 0)
            gettimeofday(&of_day, NULL);
    }
    printf("back %lu\n", back);
    return 0;
}
