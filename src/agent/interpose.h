/* SPDX-License-Identifier: Apache-2.0 */
/* interpose.h - libc's own versions of what the agent interposes. Valid after the constructor; the
 * wrappers look them up on first use should the target come first. */
#ifndef CACHEGRAM_AGENT_INTERPOSE_H
#define CACHEGRAM_AGENT_INTERPOSE_H

#include <pthread.h>

__attribute__((visibility("hidden"))) int real_pthread_create(pthread_t *id, const pthread_attr_t *attributes,
                                                              void *(*routine)(void *), void *argument);

#endif
