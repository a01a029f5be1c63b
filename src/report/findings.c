/* SPDX-License-Identifier: Apache-2.0 */
#include "report/report.h"

#include <inttypes.h>
#include <string.h>

#include "base/sizes.h"

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static int same_place(const struct analysis_finding *a, const struct analysis_finding *b)
{
    return strcmp(a->function, b->function) == 0 && strcmp(a->module, b->module) == 0 &&
           strcmp(a->file, b->file) == 0 && a->line == b->line && strcmp(a->object, b->object) == 0;
}

void report_findings_text(FILE *out, const struct analysis_finding *findings, size_t n)
{
    char size[SIZE_TEXT];
    for (size_t i = 0, end; i < n; i = end) {
        const struct analysis_finding *f = &findings[i];
        for (end = i; end < n && same_place(f, &findings[end]); end++)
            fprintf(out, "%s%.0f%%%s%s", end > i ? " and " : "", 100 * findings[end].share,
                    end > i ? " at " : " of the misses in a cache of ",
                    size_format((uint64_t)findings[end].size_bytes, size));
        fputs(" are in ", out);
        report_plain(out, f->function);
        if (*f->file) {
            fputs(" (", out);
            report_plain(out, base_name(f->file));
            fprintf(out, ":%" PRIu32 ")", f->line);
        }
        if (*f->object) {
            fputs(", on ", out);
            report_plain(out, f->object);
        }
        fputs(".\n", out);
    }
    if (n > 0)
        putc('\n', out);
}

void report_findings_json(FILE *out, const struct analysis_finding *findings, size_t n)
{
    fputs("  \"findings\": [", out);
    for (size_t i = 0; i < n; i++) {
        const struct analysis_finding *f = &findings[i];
        const struct {
            const char *key;
            double value;
        } numbers[] = {{"miss_share", f->share},
                       {"miss_share_low", f->low},
                       {"miss_share_high", f->high},
                       {"miss_ratio", f->miss_ratio}};
        fprintf(out, "%s\n    {\"size_bytes\": %.0f", i ? "," : "", f->size_bytes);
        for (size_t k = 0; k < sizeof numbers / sizeof numbers[0]; k++) {
            fprintf(out, ", \"%s\": ", numbers[k].key);
            report_json_number(out, numbers[k].value);
        }
        fputs(", \"function\": ", out);
        report_json_string(out, f->function);
        fputs(", \"module\": ", out);
        report_json_string(out, f->module);
        if (*f->file) {
            fputs(", \"file\": ", out);
            report_json_string(out, f->file);
            fprintf(out, ", \"line\": %" PRIu32, f->line);
        }
        if (*f->object) {
            fputs(", \"object\": ", out);
            report_json_string(out, f->object);
        }
        putc('}', out);
    }
    fputs(n ? "\n  ]" : "]", out);
}
