/* SPDX-License-Identifier: Apache-2.0 */
/* A column of a matrix is summed through an operator and a member function, both inlined: the line that
 * misses is in the innermost, the function as compiled is Solver<double>::sum_columns. */
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace grid
{

template <typename T> class Matrix
{
  public:
    explicit Matrix(int n) : n_(n), data_(static_cast<size_t>(n) * static_cast<size_t>(n), T(1)) // data
    {
    }
    __attribute__((always_inline)) T at(int row, int column) const
    {
        return T(3) * data_[static_cast<size_t>(row) * static_cast<size_t>(n_) +
                            static_cast<size_t>(column)]; // misses
    }
    int size() const
    {
        return n_;
    }

  private:
    int n_;
    std::vector<T> data_;
};

template <typename T> class Solver
{
  public:
    explicit Solver(const Matrix<T> &matrix) : matrix_(matrix)
    {
    }
    __attribute__((noinline)) T sum_columns(int skip) const
    {
        T sum = T(0);
        for (int column = skip; column < matrix_.size(); column++)
            for (int row = 0; row < matrix_.size(); row++)
                sum += matrix_.at(row, column); // inlined
        return sum;
    }

  private:
    const Matrix<T> &matrix_;
};

} // namespace grid

int main(int argc, char **argv)
{
    int times = argc > 1 ? std::atoi(argv[1]) : 1;
    grid::Matrix<double> matrix(1024);
    grid::Solver<double> solver(matrix);
    double sum = 0;
    for (int i = 0; i < times; i++)
        sum += solver.sum_columns(i % 2);
    std::printf("%g\n", sum);
    return 0;
}
