/* SPDX-License-Identifier: Apache-2.0 */
#include "symbols/servers.h"

#include <stdlib.h>
#include <string.h>

static const char variable[] = "DEBUGINFOD_URLS";

char *symbols_servers_forbid(void)
{
    const char *servers = getenv(variable);
    char *forbidden = servers != NULL ? strdup(servers) : NULL;
    if (servers != NULL)
        unsetenv(variable);
    return forbidden;
}

void symbols_servers_allow(char *forbidden)
{
    if (forbidden != NULL)
        setenv(variable, forbidden, 1);
    free(forbidden);
}
