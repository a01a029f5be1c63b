// SPDX-License-Identifier: Apache-2.0
// Misses in what C++ allocates: hot_blocks WHAT ROUNDS. WHAT: new (objects), vector, or map.
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

namespace store
{
struct Item {
    long key, value[7];
};

__attribute__((noinline)) Item *make_item(long key)
{
    return new Item{key, {}}; // new
}

struct Table {
    std::vector<long> cells;
    std::map<long, long> tree;

    __attribute__((noinline)) void fill(size_t n)
    {
        cells.resize(n, 1); // vector
    }

    __attribute__((noinline)) void insert(long key)
    {
        tree[key] = key; // map
    }
};
} // namespace store

static volatile long sink;

int main(int argc, char **argv)
{
    std::string what = argc > 2 ? argv[1] : "";
    int rounds = argc > 2 ? std::atoi(argv[2]) : 0;
    std::vector<store::Item *> items;
    store::Table table;
    if (what == "new")
        for (long i = 0; i < 40000; i++)
            items.push_back(store::make_item(i));
    if (what == "vector")
        table.fill(1 << 18);
    if (what == "map")
        for (long i = 0; i < 40000; i++)
            table.insert(i * 7919 % 40009);
    for (int i = 0; i < rounds; i++) {
        long sum = 0;
        for (const store::Item *item : items)
            sum += item->key;
        for (size_t k = 0; k < table.cells.size(); k += 8)
            sum += table.cells[k];
        for (const auto &pair : table.tree)
            sum += pair.second;
        sink = sink + sum;
    }
    return 0;
}
