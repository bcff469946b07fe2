// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/dense/cpu_dense_ops.hpp"
#include "ops/dense/linear_products.hpp"
#include "ops/dense/wide_rows.hpp"
#include "ops/plan/check.hpp"

/// Dense layers with the batch norms that surround them: a few rows at a time are normalised, and
/// multiplied while they are in a cache.
namespace tessera::ops {
namespace {

constexpr std::int64_t rows_at_once = 4096;

/// `count` rows of a matrix from `first` on.
template <class AnyOperand>
AnyOperand rows_from(AnyOperand matrix, std::int64_t first, std::int64_t count) {
  visit_stored(matrix.type, [&]<class T>() { matrix.data = matrix.template as<T>().row(first); });
  matrix.rows = count;
  return matrix;
}

template <class T>
void read_rows(MatrixView<const T> x, const ColumnReading& reading, MatrixView<T> y) {
  using W = Wide<T>;
  const MatrixView<const W> columns = reading.columns.as<W>();
  for_each_row(x.rows, x.cols, [&](std::int64_t i) {
    for (std::int64_t j = 0; j < x.cols; ++j) {
      const W z = (static_cast<W>(x(i, j)) - columns(j, 0)) * columns(j, 1) + columns(j, 2);
      y(i, j) = T(reading.relu && z <= 0 ? W{0} : z);
    }
  });
}

/// Calls `body(first, rows)` with what is read of x, piece by piece.
template <class Body>
void for_read_rows(const ConstOperand& x, const ColumnReading& reading, Body&& body) {
  visit_stored(x.type, [&]<class T>() {
    const std::int64_t height = std::min(rows_at_once, x.rows);
    Buffer<T> memory(height * x.cols);
    for (std::int64_t first = 0; first < x.rows; first += height) {
      const std::int64_t count = std::min(height, x.rows - first);
      const MatrixView<T> rows(memory.data(), count, x.cols);
      read_rows(rows_from(x, first, count).template as<T>(), reading, rows);
      body(first, Operand(rows));
    }
  });
}

void find_moments(const ConstOperand& y, const Operand& moments) {
  visit_stored(y.type, [&]<class T>() {
    const MatrixView<const T> rows = y.as<T>();
    const std::int64_t cols = y.cols;
    const MatrixView<double> found = moments.as<double>();
    for (std::int64_t j = 0; j < cols; ++j) found(0, j) = static_cast<double>(rows(0, j));
    const double* const first = found.row(0);
    const auto sums = sum_each_row(y.rows, 2 * cols, [&](std::int64_t i, double* of_range) {
      for (std::int64_t j = 0; j < cols; ++j) {
        const double distance = static_cast<double>(rows(i, j)) - first[j];
        of_range[j] += distance;
        of_range[cols + j] += distance * distance;
      }
    });
    std::copy_n(sums.data(), cols, found.row(1));
    std::copy_n(sums.data() + cols, cols, found.row(2));
  });
}

}  // namespace

void run_on_cpu(const LinearCall& call) {
  LinearCall plain = call;
  plain.of_x = {};
  plain.moments = {};
  if (call.of_x.columns.absent()) {
    run_on_cpu(product_of(plain));
  } else {
    for_read_rows(call.x, call.of_x, [&](std::int64_t first, const ConstOperand& rows) {
      plain.x = rows;
      plain.y = rows_from(call.y, first, rows.rows);
      run_on_cpu(product_of(plain));
    });
  }
  if (!call.moments.absent()) find_moments(call.y, call.moments);
}

void run_on_cpu(const LinearGradCall& call) {
  const auto run = [](const auto& part) { run_on_cpu(part); };
  LinearGradCall plain = call;
  plain.of_x = {};
  if (call.of_x.columns.absent() || call.grad_weight.absent()) return run_one_by_one(plain, run);
  // Sums over all pieces are not rounded to 16 bits in between.
  const bool is_16_bit = call.x.type == ElementType::bf16;
  const std::int64_t out = call.grad_weight.rows, in = call.grad_weight.cols;
  Matrix<float> wide(is_16_bit ? out : 0, is_16_bit ? in : 0);
  const Operand sums = is_16_bit ? Operand(wide) : call.grad_weight;
  for_read_rows(call.x, call.of_x, [&](std::int64_t first, const ConstOperand& rows) {
    const ConstOperand grad_y = rows_from(call.grad_y, first, rows.rows);
    run(GemmCall{Transpose::yes, Transpose::no, 1, grad_y, rows, first == 0 ? 0.0 : 1.0, sums,
                 rows.rows, call.allows_tf32});
  });
  if (is_16_bit) run(CopyCall{wide, call.grad_weight});
  plain.grad_weight = {};
  run_one_by_one(plain, run);
}

}  // namespace tessera::ops
