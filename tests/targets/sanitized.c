/* Threads with heaps under gcc's address sanitizer, which wants to be the first library of all.
 *
 * usage: sanitized [overflow]
 */
/* build: -fsanitize=address -pthread */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define LINES 10000u
#define ROUNDS 2000000u

static void *work(void *result)
{
    unsigned h = 1, *table = malloc(LINES * sizeof *table);
    for (unsigned i = 0; i < LINES; i++)
        table[i] = i;
    for (unsigned i = 0; i < ROUNDS; i++)
        h = h * 69069 + table[(h >> 8) % LINES];
    free(table);
    *(unsigned *)result = h;
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t thread[3];
    unsigned result[3];
    (void)argv;
    for (int i = 0; i < 3; i++)
        pthread_create(&thread[i], NULL, work, &result[i]);
    for (int i = 0; i < 3; i++) {
        pthread_join(thread[i], NULL);
        printf("%u\n", result[i]);
    }
    fflush(stdout);
    char *volatile short_of = malloc(8);
    int beyond = argc > 1 ? short_of[8 * argc] : 0;
    free(short_of);
    return beyond;
}
