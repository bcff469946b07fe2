// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <type_traits>

#include "ops/check.hpp"
#include "ops/cpu_dense_ops.hpp"
#include "ops/heads/kernels.hpp"
#include "ops/row_ranges.hpp"

namespace tessera::ops {
namespace {

template <class T>
const HeadFunctions<T>& functions_for() {
  if constexpr (std::is_same_v<T, double>) return head_products().fp64;
  if constexpr (std::is_same_v<T, float>) return head_products().fp32;
}

/// Rows [begin, end).
template <class T>
HeadRows<T> rows_of(MatrixView<const T> x, const T* vector, std::int64_t heads, std::int64_t width,
                    std::int64_t begin, std::int64_t end) {
  return {end - begin, heads, width, x.row(begin), x.stride, vector};
}

/// How often `part` columns fit into `whole`.
std::int64_t quotient(std::int64_t whole, std::int64_t part) {
  return part == 0 ? 0 : whole / part;
}

}  // namespace

void CpuDenseOps::head_dot(ConstOperand x, ConstOperand vector, Operand y, Stream) const {
  const std::int64_t width = quotient(x.cols, y.cols);
  visit_floating(x.type, [&](auto element) {
    using T = decltype(element);
    for_row_ranges(x.rows, x.cols, [&](std::int64_t begin, std::int64_t end) {
      functions_for<T>().dot(rows_of<T>(x.as<T>(), vector.as<T>().data, y.cols, width, begin, end),
                             y.as<T>().row(begin), y.stride);
    });
  });
}

void CpuDenseOps::head_dot_backward(ConstOperand x, ConstOperand vector, ConstOperand grad_y,
                                    Operand grad_x, Operand grad_vector, Stream,
                                    const DenseWorkspace*) const {
  const std::int64_t width = quotient(x.cols, grad_y.cols);
  visit_floating(x.type, [&](auto element) {
    using T = decltype(element);
    const auto do_rows = [&](std::int64_t begin, std::int64_t end, double* sums) {
      functions_for<T>().dot_backward(
          rows_of<T>(x.as<T>(), vector.as<T>().data, grad_y.cols, width, begin, end),
          grad_y.as<T>().row(begin), grad_y.stride,
          grad_x.absent() ? nullptr : grad_x.as<T>().row(begin), grad_x.stride, sums);
    };
    if (grad_vector.absent()) {
      for_row_ranges(x.rows, x.cols,
                     [&](std::int64_t begin, std::int64_t end) { do_rows(begin, end, nullptr); });
      return;
    }
    const Buffer<double> sums = sum_over_rows(x.rows, x.cols, do_rows);
    for (std::int64_t k = 0; k < x.cols; ++k) grad_vector.as<T>()(0, k) = static_cast<T>(sums[k]);
  });
}

void CpuDenseOps::head_dots(ConstOperand x, ConstOperand first, ConstOperand second,
                            Operand of_first, Operand of_second, Stream stream) const {
  head_dot(x, first, of_first, stream);
  head_dot(x, second, of_second, stream);
}

void CpuDenseOps::head_dots_backward(const HeadDotsGradCall& call, Stream stream,
                                     const DenseWorkspace* workspace) const {
  head_dot_backward(call.x, call.first, call.grad_of_first, call.grad_x, call.grad_first, stream,
                    workspace);
  head_dot_backward(call.x, call.second, call.grad_of_second, call.grad_x, call.grad_second, stream,
                    workspace);
}

void CpuDenseOps::head_mean(ConstOperand x, Operand y, Stream) const {
  const std::int64_t heads = quotient(x.cols, y.cols);
  visit_floating(x.type, [&](auto element) {
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
  visit_floating(grad_y.type, [&](auto element) {
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
