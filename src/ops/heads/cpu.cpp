// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <string>

#include "tessera/ops/heads.hpp"

#include "ops/dense_check.hpp"
#include "ops/row_ranges.hpp"

namespace tessera::ops {
namespace {

/// The number of heads, or of features a head, that `part` columns make of `whole`.
std::int64_t quotient(const Checker& check, std::int64_t whole, std::int64_t part,
                      const char* what) {
  if (whole == 0 && part == 0) return 0;
  check.that(part > 0 && whole % part == 0, std::to_string(whole) + " columns do not divide into " +
                                                std::to_string(part) + " " + what);
  return whole / part;
}

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

}  // namespace

void head_dot(ConstOperand x, ConstOperand vector, Operand y, Device device, Stream) {
  constexpr Checker check("head_dot");
  require_available(device);
  check.floating(x, "x");
  check.matrix(vector, "vector", x.precision, 1, x.cols);
  check.matrix(y, "y", x.precision, x.rows, y.cols);
  check.apart(y, "y", x, "x");
  const std::int64_t width = quotient(check, x.cols, y.cols, "heads");
  visit_floating(x.precision, [&](auto element) {
    using T = decltype(element);
    dot_rows(x.as<T>(), vector.as<T>().data, width, y.as<T>());
  });
}

void head_dot_backward(ConstOperand x, ConstOperand vector, ConstOperand grad_y, Operand grad_x,
                       Operand grad_vector, Device device, Stream) {
  constexpr Checker check("head_dot_backward");
  require_available(device);
  check.floating(x, "x");
  check.matrix(vector, "vector", x.precision, 1, x.cols);
  check.matrix(grad_y, "grad_y", x.precision, x.rows, grad_y.cols);
  check.optional_matrix(grad_x, "grad_x", x.precision, x.rows, x.cols);
  check.optional_matrix(grad_vector, "grad_vector", x.precision, 1, x.cols);
  check.apart(grad_x, "grad_x", x, "x");
  check.apart(grad_x, "grad_x", grad_y, "grad_y");
  const std::int64_t width = quotient(check, x.cols, grad_y.cols, "heads");
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

void head_mean(ConstOperand x, Operand y, Device device, Stream) {
  constexpr Checker check("head_mean");
  require_available(device);
  check.floating(x, "x");
  check.matrix(y, "y", x.precision, x.rows, y.cols);
  check.apart(y, "y", x, "x");
  const std::int64_t heads = quotient(check, x.cols, y.cols, "features a head");
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

void head_mean_backward(ConstOperand grad_y, Operand grad_x, Device device, Stream) {
  constexpr Checker check("head_mean_backward");
  require_available(device);
  check.floating(grad_y, "grad_y");
  check.matrix(grad_x, "grad_x", grad_y.precision, grad_y.rows, grad_x.cols);
  check.apart(grad_x, "grad_x", grad_y, "grad_y");
  const std::int64_t heads = quotient(check, grad_x.cols, grad_y.cols, "features a head");
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
