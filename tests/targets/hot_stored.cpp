// SPDX-License-Identifier: Apache-2.0
/*
 * Blocks whose structure only what is done with their address says. Scenes, each with the function that misses:
 * member: it is stored in a member of a structure (read_entries); element: in an array of pointers
 * (read_rows); constructed: after its constructor (read_constructed); derived: as a pointer to a base class
 * (plus_weight).
 */
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

enum { COUNT = 16384, ROUNDS = 20 };

struct base {
    long id;
    char cold[56];
    long total;
    __attribute__((noipa)) explicit base(long number);
};
struct derived : base {
    char more[80];
    long weight;
    char rest[24];
    __attribute__((noipa)) explicit derived(long number);
    long plus_weight(long sum) const;
};
struct entry {
    char cold[72];
    long value;
    char more[40];
};
struct table {
    long n;
    entry *entries, **rows;
};

// Not inlined: the caller sees no pointer to what is constructed.
base::base(long number) : id(number), total(0) {}
derived::derived(long number) : base(number), weight(1) {}
__attribute__((noinline)) long derived::plus_weight(long sum) const { return sum + weight; }

static unsigned next(unsigned at) { return (at * 5 + 12345) % COUNT; }

__attribute__((noinline)) static long read_entries(const table *t)
{
    long sum = 0;
    for (unsigned i = 0, at = 0; i < COUNT; i++, at = next(at)) {
        const char *bytes = reinterpret_cast<const char *>(t->entries) + at * sizeof(entry);
        sum += bytes[offsetof(entry, value)];
    }
    return sum;
}

__attribute__((noinline)) static long read_rows(char *const *rows, size_t offset)
{
    long sum = 0;
    for (unsigned i = 0, at = 0; i < COUNT; i++, at = next(at))
        sum += rows[at][offset];
    return sum;
}

__attribute__((noinline)) static long read_derived(base *const *list)
{
    long sum = 0;
    for (unsigned i = 0, at = 0; i < COUNT; i++, at = next(at))
        sum = static_cast<const derived *>(list[at])->plus_weight(sum);
    return sum;
}

__attribute__((noinline)) static void make_entries(table *t)
{
    t->n = COUNT;
    t->entries = static_cast<entry *>(calloc(COUNT, sizeof(entry)));
}

__attribute__((noinline)) static void make_row(entry **rows, long i)
{
    rows[i] = static_cast<entry *>(calloc(1, sizeof(entry)));
}

__attribute__((noinline)) static void make_derived(base **list, long i)
{
    base *made = new derived(i);
    list[i] = made;
    made->total = i;
}
__attribute__((noinline)) static void make_constructed(derived **list, long i) { list[i] = new derived(i); }

int main(int argc, char **argv)
{
    const char *scene = argc > 1 ? argv[1] : "member";
    table t = {};
    void **list = static_cast<void **>(calloc(COUNT, sizeof(void *)));
    long sum = 0;
    if (strcmp(scene, "member") == 0)
        make_entries(&t);
    for (long i = 0; i < COUNT; i++)
        if (strcmp(scene, "element") == 0)
            make_row(reinterpret_cast<entry **>(list), i);
        else if (strcmp(scene, "constructed") == 0)
            make_constructed(reinterpret_cast<derived **>(list), i);
        else if (strcmp(scene, "derived") == 0)
            make_derived(reinterpret_cast<base **>(list), i);
    for (int r = 0; r < ROUNDS; r++)
        sum += strcmp(scene, "member") == 0    ? read_entries(&t)
               : strcmp(scene, "derived") == 0 ? read_derived(reinterpret_cast<base **>(list))
                                               : read_rows(reinterpret_cast<char **>(list),
                                                           strcmp(scene, "element") == 0 ? offsetof(entry, value)
                                                                                         : sizeof(base) + 80);
    printf("%ld\n", sum);
}
