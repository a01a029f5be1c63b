/* SPDX-License-Identifier: Apache-2.0 */
/* diff-page.h - the page of `cachegram diff --format html`. */
#ifndef CACHEGRAM_CLI_DIFF_PAGE_H
#define CACHEGRAM_CLI_DIFF_PAGE_H

#include "base/error.h"
#include "report/difference.h"

/* The page as one JSON object, which the caller frees. 0, or negative with err and *json NULL. */
int diff_page_data(const struct report_curves *curves, char **json, struct error *err);

#endif
