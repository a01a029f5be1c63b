// SPDX-License-Identifier: Apache-2.0
// A hot field among cold ones, in C++: particles of 128 bytes, whose charges are summed at random.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace model
{
struct particle {
    double charge;
    double state[15];
};

class cloud
{
    std::vector<particle> particles;
    int calls = 0;

  public:
    explicit cloud(std::size_t n) : particles(n) // particles
    {
    }
    __attribute__((noinline)) double sum_charges();
};

double cloud::sum_charges()
{
    double sum = 0;
    std::size_t n = particles.size();
    for (std::size_t i = 0, at = 0; i < n; i++, at = (at * 5 + 12345) % n)
        sum += particles[at].charge; // charge
    calls++;
    return sum;
}
} // namespace model

int main(int argc, char **argv)
{
    model::cloud cloud(16384);
    double sum = 0;
    for (int i = argc > 1 ? std::atoi(argv[1]) : 1; i > 0; i--)
        sum += cloud.sum_charges();
    std::printf("%g\n", sum);
}
