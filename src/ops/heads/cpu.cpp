// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "ops/cpu_dense_ops.hpp"
#include "ops/dense_check.hpp"
#include "ops/row_ranges.hpp"

namespace tessera::ops {
namespace {

template <class T>
void dot_rows(MatrixView<const T> x, const T* vector, std::int64_t width, MatrixView<T> y) {
  for_row_ranges(x.rows, x.cols, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const T* const row = x.row(i);
      for (std::int64_t h = 0; h < y.cols; ++h) {
        T sum = 0;
        for (std::int64_t k = h * width; k < (h + 1) * width; ++k) sum += row[k] * vector[k];
        y(i, h) = sum;
      }
    }
  });
}

template <class T>
void dot_backward_rows(const T* vector, std::int64_t width, MatrixView<const T> grad_y,
                       MatrixView<T> grad_x) {
  for_row_ranges(grad_x.rows, grad_x.cols, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      T* const row = grad_x.row(i);
      for (std::int64_t h = 0; h < grad_y.cols; ++h) {
        const T factor = grad_y(i, h);
        for (std::int64_t k = h * width; k < (h + 1) * width; ++k) row[k] += factor * vector[k];
      }
    }
  });
}

template <class T>
void dot_backward_vector(MatrixView<const T> x, std::int64_t width, MatrixView<const T> grad_y,
                         T* grad_vector) {
  const auto add_rows = [&](std::int64_t begin, std::int64_t end, double* sums) {
    for (std::int64_t i = begin; i < end; ++i) {
      const T* const row = x.row(i);
      for (std::int64_t h = 0; h < grad_y.cols; ++h) {
        const T factor = grad_y(i, h);
        for (std::int64_t k = h * width; k < (h + 1) * width; ++k) {
          sums[k] += static_cast<double>(factor * row[k]);
        }
      }
    }
  };
  const Buffer<double> sums = sum_over_rows(x.rows, x.cols, add_rows);
  for (std::int64_t k = 0; k < x.cols; ++k) grad_vector[k] = static_cast<T>(sums[k]);
}

/// How often `part` columns fit into `whole`.
std::int64_t quotient(std::int64_t whole, std::int64_t part) {
  return part == 0 ? 0 : whole / part;
}

}  // namespace

void CpuDenseOps::head_dot(ConstOperand x, ConstOperand vector, Operand y, Stream) const {
  visit_floating(x.precision, [&](auto element) {
    using T = decltype(element);
    dot_rows(x.as<T>(), vector.as<T>().data, quotient(x.cols, y.cols), y.as<T>());
  });
}

void CpuDenseOps::head_dot_backward(ConstOperand x, ConstOperand vector, ConstOperand grad_y,
                                    Operand grad_x, Operand grad_vector, Stream) const {
  const std::int64_t width = quotient(x.cols, grad_y.cols);
  visit_floating(x.precision, [&](auto element) {
    using T = decltype(element);
    if (!grad_x.absent()) {
      dot_backward_rows(vector.as<T>().data, width, grad_y.as<T>(), grad_x.as<T>());
    }
    if (!grad_vector.absent()) {
      dot_backward_vector(x.as<T>(), width, grad_y.as<T>(), grad_vector.as<T>().data);
    }
  });
}

void CpuDenseOps::head_mean(ConstOperand x, Operand y, Stream) const {
  const std::int64_t heads = quotient(x.cols, y.cols);
  visit_floating(x.precision, [&](auto element) {
    using T = decltype(element);
    const MatrixView<const T> from = x.as<T>();
    const MatrixView<T> to = y.as<T>();
    for_row_ranges(x.rows, x.cols, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        for (std::int64_t k = 0; k < to.cols; ++k) {
          T sum = 0;
          for (std::int64_t h = 0; h < heads; ++h) sum += from(i, h * to.cols + k);
          to(i, k) = sum / static_cast<T>(heads);
        }
      }
    });
  });
}

void CpuDenseOps::head_mean_backward(ConstOperand grad_y, Operand grad_x, Stream) const {
  const std::int64_t heads = quotient(grad_x.cols, grad_y.cols);
  visit_floating(grad_y.precision, [&](auto element) {
    using T = decltype(element);
    const MatrixView<const T> from = grad_y.as<T>();
    const MatrixView<T> to = grad_x.as<T>();
    for_row_ranges(to.rows, to.cols, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        for (std::int64_t h = 0; h < heads; ++h) {
          for (std::int64_t k = 0; k < from.cols; ++k) {
            to(i, h * from.cols + k) = from(i, k) / static_cast<T>(heads);
          }
        }
      }
    });
  });
}

}  // namespace tessera::ops
