/* SPDX-License-Identifier: Apache-2.0 */
#include "report/shorten.h"

#include <stdlib.h>
#include <string.h>

#include "base/fit-text.h"

#define DEEPEST 16
#define LEFT_OUT "..."
#define KEPT "(anonymous namespace)"

/* Bytes of an operator's name, which has no brackets in it. */
static size_t operator_bytes(const char *at)
{
    static const char *const symbols[] = {"<=>", "<<=", ">>=", "->*", "<<", ">>",
                                          "<=",  ">=",  "->",  "<",   ">",  "()"};
    if (strncmp(at, "operator", 8) != 0)
        return 0;
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++)
        if (strncmp(at + 8, symbols[i], strlen(symbols[i])) == 0)
            return 8 + strlen(symbols[i]);
    return 0;
}

/* Bytes that belong together and open or close nothing; 0: a bracket, or the end. */
static size_t plain_bytes(const char *at)
{
    size_t n = operator_bytes(at);
    if (n == 0 && strncmp(at, KEPT, strlen(KEPT)) == 0)
        n = strlen(KEPT);
    if (n == 0 && strncmp(at, "->", 2) == 0)
        n = 2;
    return n > 0 ? n : *at != '\0' && strchr("<>()", *at) == NULL;
}

/* The end of what is in brackets: the bracket that closes them, or the name's end. */
static const char *end_of_group(const char *at)
{
    for (int depth = 0; *at != '\0';) {
        size_t n = plain_bytes(at);
        if (n == 0) {
            depth += *at == '<' || *at == '(' ? 1 : -1;
            if (depth < 0)
                return at;
            n = 1;
        }
        at += n;
    }
    return at;
}

/* Copies the name without what is in more than `deepest` brackets. `to` may be the name. */
static size_t copy(char *to, const char *name, int deepest)
{
    char *start = to;
    int depth = *name == '<' ? -1 : 0;
    for (const char *at = name; *at != '\0';) {
        size_t n = plain_bytes(at);
        if (n > 0) {
            memmove(to, at, n);
            to += n;
            at += n;
            continue;
        }
        depth += *at == '<' || *at == '(' ? 1 : -1;
        int opens = *at == '<' || *at == '(';
        *to++ = *at++;
        const char *end = opens && depth > deepest ? end_of_group(at) : at;
        if (end - at > (ptrdiff_t)strlen(LEFT_OUT)) {
            memcpy(to, LEFT_OUT, strlen(LEFT_OUT));
            to += strlen(LEFT_OUT);
            at = end;
        }
    }
    *to = '\0';
    return (size_t)(to - start);
}

void report_shorten(char *name, size_t most)
{
    size_t length = strlen(name);
    for (int deepest = DEEPEST; deepest >= 0 && length > most; deepest--)
        length = copy(name, name, deepest);
}

void report_fit_name(char *to, size_t size, const char *name)
{
    char *whole = strlen(name) >= size ? strdup(name) : NULL;
    if (whole)
        report_shorten(whole, size - 1);
    fit_text(to, size, "", whole ? whole : name);
    free(whole);
}
