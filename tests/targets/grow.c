/* SPDX-License-Identifier: Apache-2.0 */
/* Takes memory until there is no more, and prints how many megabytes that were. */
#include <stdio.h>
#include <stdlib.h>

int main(void)
{
    unsigned megabytes = 0;
    while (megabytes < 4096 && malloc(1u << 20))
        megabytes++;
    printf("%u\n", megabytes);
    return 0;
}
