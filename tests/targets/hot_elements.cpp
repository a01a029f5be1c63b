/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One field of what the library of C++ allocates misses: hot_elements WHAT ROUNDS. WHAT: list (an element of
 * std::list), map (the key of std::map), unique (an array of std::make_unique).
 */
#include <cstdlib>
#include <list>
#include <map>
#include <memory>
#include <string>

enum { N = 20000 };

struct order {
    long id, price;
    char note[112];
};

static volatile long sink;

static __attribute__((noipa)) long sum_list(const std::list<order> &orders)
{
    long sum = 0;
    for (const order &o : orders)
        sum += o.note[100];
    return sum;
}

static __attribute__((noipa)) long sum_keys(const std::map<long, order> &orders)
{
    long sum = 0;
    for (const auto &pair : orders)
        sum += pair.first;
    return sum;
}

static __attribute__((noipa)) long sum_array(const order *orders)
{
    long sum = 0;
    for (long i = 0; i < N; i++)
        sum += orders[i].price;
    return sum;
}

int main(int argc, char **argv)
{
    std::string what = argc > 2 ? argv[1] : "";
    std::list<order> list(what == "list" ? N : 0);
    std::map<long, order> map;
    std::unique_ptr<order[]> array = std::make_unique<order[]>(what == "unique" ? N : 0);
    for (long i = 0; i < N && what == "map"; i++)
        map[i * 7919 % 40009].price = i;
    for (int i = argc > 2 ? std::atoi(argv[2]) : 0; i > 0; i--)
        sink = sink + (what == "list" ? sum_list(list) : what == "map" ? sum_keys(map) : sum_array(array.get()));
    return 0;
}
