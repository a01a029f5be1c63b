/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/cpuinfo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int cpuinfo_get(const char *key, char *text, size_t size)
{
    FILE *f = fopen("/proc/cpuinfo", "re");
    char *line = NULL, *colon = NULL;
    size_t capacity = 0, length = strlen(key);
    text[0] = '\0';
    while (f != NULL && colon == NULL && getline(&line, &capacity, f) > 0)
        if (strncmp(line, key, length) == 0 && (line[length] == '\t' || line[length] == ':'))
            colon = strchr(line, ':');
    if (colon != NULL) {
        colon[strcspn(colon, "\n")] = '\0';
        snprintf(text, size, "%s", colon + 1);
    }
    free(line);
    if (f != NULL)
        fclose(f);
    return colon != NULL;
}
