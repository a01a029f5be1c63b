/* SPDX-License-Identifier: Apache-2.0 */
/* curve-internal.h - parts of report_curve_compute. */
#ifndef CACHEGRAM_REPORT_CURVE_INTERNAL_H
#define CACHEGRAM_REPORT_CURVE_INTERNAL_H

#include "report/report.h"

/* Mode "sparse": random by StatCache, the others by StatStack. line_bytes and profile are set. */
int report_curve_sparse(struct profile *p, enum report_model model, struct report_curve *curve,
                        struct error *err);
/* Mode "burst". line_bytes and profile are set, what is counted is 0. */
int report_curve_bursts(struct profile *p, const struct report_question *question, struct report_curve *curve,
                        struct error *err);

#endif
