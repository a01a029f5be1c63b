// SPDX-License-Identifier: Apache-2.0
/*
 * Structures whose definition is elsewhere in the debug information. Compiled twice: with -DWHOLE the virtual
 * functions, with which compilers write what the classes have; and without, the rest, where they are declared.
 */
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

enum { COUNT = 16384 };

struct shape {
    double area;
    char cold[120];
    double weight;
    virtual double size() const;
    virtual ~shape();
};
struct box : shape {
    double sides[9];
    double depth;
    double size() const override;
};

#ifdef WHOLE

double shape::size() const { return area; }
shape::~shape() {}
double box::size() const { return sides[0]; }

#else

class order {
    struct inside;
    inside *in;

public:
    order();
    __attribute__((noinline)) double price() const;
};
struct order::inside {
    char cold[150];
    double price;
    char more[90];
};
order::order() : in(new inside()) {}
double order::price() const
{
    const inside *found = in;
    return found->price;
}

static box boxes[COUNT];
static struct {
    char cold[80];
    union {
        struct {
            int from, to;
        };
        long both;
    };
    std::string text;
    char more[80];
} trips[COUNT];

static unsigned next(unsigned at) { return (at * 5 + 12345) % COUNT; }

__attribute__((noinline)) static double weigh()
{
    double sum = 0;
    for (unsigned i = 0, at = 0; i < COUNT; i++, at = next(at))
        sum += boxes[at].weight;
    return sum;
}

__attribute__((noinline)) static double deepen(std::vector<box> &list)
{
    double sum = 0;
    for (unsigned i = 0, at = 0; i < COUNT; i++, at = next(at))
        sum += list[at].depth;
    return sum;
}

__attribute__((noinline)) static long travel()
{
    long sum = 0;
    for (unsigned i = 0, at = 0; i < COUNT; i++, at = next(at))
        sum += trips[at].to;
    return sum;
}

__attribute__((noinline)) static long read()
{
    long sum = 0;
    for (unsigned i = 0, at = 0; i < COUNT; i++, at = next(at))
        sum += (long)trips[at].text.data() & 1;
    return sum;
}

__attribute__((noinline)) static double buy(std::vector<order> &list)
{
    double sum = 0;
    for (unsigned i = 0, at = 0; i < COUNT; i++, at = next(at))
        sum += list[at].price();
    return sum;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    double sum = 0;
    std::vector<box> list(strcmp(what, "deepen") == 0 ? COUNT : 0);
    std::vector<order> orders(strcmp(what, "buy") == 0 ? COUNT : 0);
    for (int i = 0; i < 20; i++)
        sum += strcmp(what, "weigh") == 0    ? weigh()
               : strcmp(what, "deepen") == 0 ? deepen(list)
               : strcmp(what, "buy") == 0    ? buy(orders)
               : strcmp(what, "travel") == 0 ? (double)travel()
                                             : (double)read();
    printf("%g\n", sum);
}

#endif
