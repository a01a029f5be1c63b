/* SPDX-License-Identifier: Apache-2.0 */
#include "symbols/jit-dump.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"

#define MOST_RECORDS (1u << 23)
#define MOST_READ (UINT64_C(4) << 30) /* bytes; the rest is ignored */
#define MOST_OFFSET (1u << 30)        /* of a line in its function */
#define FREED 16u                     /* bytes that malloc changes at the beginning of what was freed */
#define MOST_NAME 4096u               /* bytes; the rest of a longer name is dropped */
/*
 * perf puts the code of each function after the header of an ELF file. V8 and LLVM add the header's size to
 * the addresses of lines, other compilers do not: it is subtracted if no line of the whole file is nearer to
 * the beginning of its function.
 */
#define ELF_HEADER 0x40u

struct header {
    uint32_t magic, version, size, machine, pad, pid;
    uint64_t time, flags;
};
#define MAGIC 0x4a695444u
#define OTHER_CLOCK 1u /* of flags: times are of the processor's counter */
struct record {
    uint32_t kind, size; /* size: of all of it */
    uint64_t time;
};
enum { LOAD = 0, MOVE = 1, LINES = 2 };
struct load { /* then the name, and the code */
    uint32_t pid, tid;
    uint64_t vma, address, bytes, index;
};
struct move {
    uint32_t pid, tid;
    uint64_t vma, from, to, bytes, index;
};
struct lines { /* then struct line, each with the name of its file, for the next LOAD */
    uint64_t address, n;
};
struct line {
    uint64_t address;
    int32_t line, discriminator;
};

struct dump {
    struct jit_entries *entries;
    int fd, timed;
    uint64_t now_ns, size, left; /* of the file; bytes that may still be read */
    char buffer[65536];          /* n bytes of the file, from `start` on */
    uint64_t start;
    size_t n;
    uint32_t *slots; /* by address: number of its last entry, + 1; 0: empty */
    size_t nslots;
    struct jit_line *lines; /* for the next function, if it is at this address */
    size_t nlines, lines_capacity;
    uint64_t lines_address;
    uint64_t lines_at, lines_size; /* their record */
    int damaged;                   /* it is */
    uint32_t least_offset; /* of lines from the beginning of their function; UINT32_MAX: there are none */
    const char *file;      /* of the last line */
};

/* The bytes of the file from an offset on: *n of them, at least `wanted`. NULL: it has fewer. */
static const char *look(struct dump *d, uint64_t at, size_t wanted, size_t *n)
{
    if (at < d->start || at - d->start > d->n || d->n - (at - d->start) < wanted) {
        d->start = at;
        d->n = 0;
        for (ssize_t got = 1; d->n < sizeof d->buffer && got > 0 && d->left >= sizeof d->buffer;
             d->n += got > 0 ? (size_t)got : 0)
            got = pread(d->fd, d->buffer + d->n, sizeof d->buffer - d->n, (off_t)(at + d->n));
        d->left -= d->n;
    }
    *n = d->n - (size_t)(at - d->start);
    return *n >= wanted ? d->buffer + (at - d->start) : NULL;
}

/* The text in `most` bytes of the file from an offset on, kept; *size: with its end. NULL: it has no end, or
 * memory is short. previous: the result if it is equal. */
static const char *keep_text(struct dump *d, uint64_t at, uint64_t most, size_t *size, const char *previous)
{
    size_t n, length;
    const char *text = look(d, at, most < MOST_NAME ? (size_t)most : MOST_NAME, &n);
    if (text == NULL)
        return NULL;
    n = n < most ? n : (size_t)most;
    length = strnlen(text, n);
    if (length == n)
        return NULL;
    *size = length + 1;
    if (previous != NULL && strcmp(previous, text) == 0)
        return previous;
    length = length < MOST_NAME ? length : MOST_NAME;
    char *kept = jit_entries_keep(d->entries, length + 1);
    if (kept != NULL) {
        memcpy(kept, text, length);
        kept[length] = '\0';
    }
    return kept;
}

/* --- the last function at an address --- */

static uint32_t *slot_of(const struct dump *d, uint64_t address)
{
    size_t i = (size_t)(address * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (d->nslots - 1);
    while (d->slots[i] != 0 && jit_entries_added(d->entries, d->slots[i] - 1)->low != address)
        i = (i + 1) & (d->nslots - 1);
    return &d->slots[i];
}

static int make_slots(struct dump *d, size_t n)
{
    uint32_t *slots = calloc(n, sizeof *slots);
    if (slots == NULL)
        return -ENOMEM;
    free(d->slots);
    d->slots = slots;
    d->nslots = n;
    for (size_t i = 0; i < jit_entries_count(d->entries); i++)
        *slot_of(d, jit_entries_added(d->entries, i)->low) = (uint32_t)i + 1;
    return 0;
}

static int add_entry(struct dump *d, const struct jit_entry *entry)
{
    size_t n = jit_entries_count(d->entries);
    if (2 * (n + 1) > d->nslots && make_slots(d, d->nslots != 0 ? 2 * d->nslots : 1024) < 0)
        return -ENOMEM;
    if (jit_entries_add(d->entries, *entry) < 0)
        return -ENOMEM;
    if (jit_entries_count(d->entries) > n)
        *slot_of(d, entry->low) = (uint32_t)n + 1;
    return 0;
}

/* --- records: each of `size` bytes at offset `at` --- */

static int compare_lines(const void *a, const void *b)
{
    const struct jit_line *x = a, *y = b;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* Gives the entry the lines that precede it. Without memory for them it has none. */
static void take_lines(struct dump *d, struct jit_entry *entry)
{
    struct jit_line *kept;
    size_t size = d->nlines * sizeof *kept;
    if (d->nlines == 0 || d->lines_address != entry->low ||
        (kept = jit_entries_keep(d->entries, size)) == NULL)
        return;
    memcpy(kept, d->lines, size);
    for (size_t i = 1; i < d->nlines; i++)
        if (kept[i - 1].offset > kept[i].offset) {
            qsort(kept, d->nlines, sizeof *kept, compare_lines);
            break;
        }
    d->least_offset = kept[0].offset < d->least_offset ? kept[0].offset : d->least_offset;
    entry->lines = kept;
    entry->nlines = d->nlines;
}

static int add_move(struct dump *d, uint64_t time, uint64_t at, uint64_t size)
{
    struct move move;
    size_t n;
    const char *bytes = size >= sizeof move ? look(d, at, sizeof move, &n) : NULL;
    if (bytes == NULL || d->nslots == 0)
        return 0;
    memcpy(&move, bytes, sizeof move);
    uint32_t number = *slot_of(d, move.from);
    if (number == 0)
        return 0;
    struct jit_entry entry = *jit_entries_added(d->entries, number - 1);
    entry.low = move.to;
    entry.high = move.to + move.bytes;
    entry.from_ns = time;
    return add_entry(d, &entry);
}

/* Not of memory that is used for something else. */
static int is_name(const char *text)
{
    int empty = *text == '\0';
    for (; *text != '\0'; text++)
        if ((unsigned char)*text < ' ')
            return 0;
    return !empty;
}

/* The file of a line at offset `at`; *size: of its name, with the end. path: of all lines; NULL: as the
 * record says. NULL: damaged, or memory is short. */
static const char *line_file(struct dump *d, uint64_t at, uint64_t most, const char *path, size_t *size)
{
    size_t n, length = path != NULL ? strlen(path) : 0;
    const char *text = look(d, at, length + 1, &n);
    if (text == NULL || (path != NULL && length >= most))
        return NULL;
    if (path != NULL) {
        int same = length <= FREED || memcmp(text + FREED, path + FREED, length - FREED) == 0;
        *size = length + 1;
        return same && text[length] == '\0' ? path : NULL;
    }
    if (*text == '\xff' && n > 1 && most > 1 && text[1] == '\0') { /* as before */
        *size = 2;
        return d->file;
    }
    const char *file = keep_text(d, at, most, size, d->file);
    return file != NULL && is_name(file) ? file : NULL;
}

/* Notes the lines for the next function. 0; -EINVAL: they are damaged; -ENOMEM. */
static int note_lines(struct dump *d, uint64_t at, uint64_t size, const char *path)
{
    struct lines lines;
    struct line line;
    size_t n;
    const char *bytes = size >= sizeof lines ? look(d, at, sizeof lines, &n) : NULL;
    d->nlines = 0;
    d->file = NULL;
    if (bytes == NULL)
        return 0;
    memcpy(&lines, bytes, sizeof lines);
    d->lines_address = lines.address;
    at += sizeof lines;
    size -= sizeof lines;
    for (; lines.n > 0 && size > sizeof line && (bytes = look(d, at, sizeof line, &n)) != NULL; lines.n--) {
        memcpy(&line, bytes, sizeof line);
        uint64_t offset = line.address - lines.address;
        d->file = line_file(d, at + sizeof line, size - sizeof line, path, &n);
        if (d->file == NULL || offset > MOST_OFFSET)
            return -EINVAL;
        if (ARRAY_GROW(d->lines, d->nlines, d->lines_capacity) < 0)
            return -ENOMEM;
        d->lines[d->nlines++] =
            (struct jit_line){(uint32_t)offset, line.line > 0 ? (uint32_t)line.line : 0, d->file};
        at += sizeof line + n;
        size -= sizeof line + n; /* the name has an end in the record */
    }
    return 0;
}

static int add_lines(struct dump *d, uint64_t at, uint64_t size)
{
    int code = note_lines(d, at, size, NULL);
    d->damaged = code == -EINVAL;
    d->lines_at = at;
    d->lines_size = size;
    return code == -ENOMEM ? code : 0;
}

/*
 * In the place of some names V8 (of Node.js 20) writes memory that is free again: of the name's length, but
 * with other first bytes. The name of the function has that of the file: "JS:*walk /src/walk.js:1:14".
 */
static int repair_lines(struct dump *d, const char *function)
{
    const char *begin = strchr(function, ' ');
    size_t length = begin != NULL ? strlen(begin + 1) : 0;
    for (int numbers = 0; numbers < 2 && length > 0; numbers++)
        do
            length--;
        while (length > 0 && begin[1 + length] != ':');
    char *path = length > 0 ? jit_entries_keep(d->entries, length + 1) : NULL;
    int code = -EINVAL;
    if (path != NULL) {
        memcpy(path, begin + 1, length);
        path[length] = '\0';
        code = note_lines(d, d->lines_at, d->lines_size, path);
    }
    if (code < 0)
        d->nlines = 0;
    return code == -ENOMEM ? code : 0;
}

static int add_load(struct dump *d, uint64_t time, uint64_t at, uint64_t size)
{
    struct load load;
    size_t n;
    const char *bytes = size > sizeof load ? look(d, at, sizeof load, &n) : NULL;
    if (bytes == NULL)
        return 0;
    memcpy(&load, bytes, sizeof load);
    struct jit_entry entry = {.low = load.address, .high = load.address + load.bytes, .from_ns = time};
    entry.name = keep_text(d, at + sizeof load, size - sizeof load, &n, NULL);
    if (entry.name == NULL)
        return 0;
    if (d->damaged && repair_lines(d, entry.name) < 0)
        return -ENOMEM;
    take_lines(d, &entry);
    d->damaged = 0;
    d->nlines = 0;
    return add_entry(d, &entry);
}

static int add_record(struct dump *d, const struct record *record, uint64_t at)
{
    uint64_t size = record->size - sizeof *record;
    if (record->time > d->now_ns)
        d->timed = 0;
    switch (record->kind) {
    case LOAD:
        return add_load(d, record->time, at, size);
    case MOVE:
        return add_move(d, record->time, at, size);
    case LINES:
        return add_lines(d, at, size);
    default:
        return 0;
    }
}

static int read_records(struct dump *d)
{
    struct header header;
    struct record record;
    size_t n;
    int code = 0;
    const char *bytes = look(d, 0, sizeof header, &n);
    if (bytes == NULL)
        return -EINVAL;
    memcpy(&header, bytes, sizeof header);
    if (header.magic != MAGIC || header.size < sizeof header)
        return -EINVAL;
    d->timed = (header.flags & OTHER_CLOCK) == 0;
    uint64_t at = header.size;
    for (uint32_t i = 0; i < MOST_RECORDS && code == 0; i++, at += record.size) {
        if ((bytes = look(d, at, sizeof record, &n)) == NULL)
            break;
        memcpy(&record, bytes, sizeof record);
        /* Of a record that is being written the end is missing. */
        if (record.size < sizeof record || record.size > d->size - at)
            break;
        code = add_record(d, &record, at + sizeof record);
    }
    return code;
}

int jit_dump_read(struct jit_entries *entries, int fd, uint64_t now_ns)
{
    struct stat info;
    struct dump *d = calloc(1, sizeof *d);
    if (d == NULL || fstat(fd, &info) != 0) {
        free(d);
        return -ENOMEM;
    }
    d->entries = entries;
    d->fd = fd;
    d->now_ns = now_ns;
    d->size = (uint64_t)info.st_size;
    d->left = MOST_READ;
    d->least_offset = UINT32_MAX;
    int code = read_records(d);
    if (code == 0 && !d->timed)
        jit_entries_without_times(entries);
    if (code == 0 && d->least_offset >= ELF_HEADER && d->least_offset != UINT32_MAX)
        jit_entries_shift(entries, ELF_HEADER);
    free(d->slots);
    free(d->lines);
    free(d);
    return code;
}
