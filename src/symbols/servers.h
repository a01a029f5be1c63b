/* SPDX-License-Identifier: Apache-2.0 */
/* servers.h - whether debug information is requested from servers (debuginfod, $DEBUGINFOD_URLS). It is not
 * while the program runs: it would have to wait for them. Not for several threads. */
#ifndef CACHEGRAM_SYMBOLS_SERVERS_H
#define CACHEGRAM_SYMBOLS_SERVERS_H

/* From now on not. Returns what symbols_servers_allow needs. */
char *symbols_servers_forbid(void);
void symbols_servers_allow(char *forbidden);

#endif
