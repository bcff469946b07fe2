// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <type_traits>
#include <vector>

#include "ops/check.hpp"
#include "ops/cpu_dense_ops.hpp"
#include "ops/heads/kernels.hpp"
#include "ops/row_ranges.hpp"
#include "ops/wide_rows.hpp"

namespace tessera::ops {
namespace {

template <class T>
const HeadFunctions<T>& functions_for() {
  if constexpr (std::is_same_v<T, double>) return head_products().fp64;
  if constexpr (std::is_same_v<T, float>) return head_products().fp32;
}

template <class W>
HeadRows<W> rows_of(MatrixView<const W> x, const Buffer<W>& vector, std::int64_t heads,
                    std::int64_t width) {
  return {x.rows, heads, width, x.data, x.stride, vector.data()};
}

/// How often `part` columns fit into `whole`.
std::int64_t quotient(std::int64_t whole, std::int64_t part) {
  return part == 0 ? 0 : whole / part;
}

/// A product of the heads with a vector, and its gradients.
struct Dot {
  ConstOperand vector, grad_y;
  Operand grad_vector;  ///< may be absent
};

/// Adds to grad_x, unless it is absent, what all of the products give it.
void differentiate(const ConstOperand& x, const std::vector<Dot>& dots, const Operand& grad_x) {
  visit_floating(x.type, [&](auto element) {
    using T = decltype(element);
    std::vector<Buffer<Wide<T>>> weights;
    bool has_vectors = false;
    for (const Dot& dot : dots) {
      weights.push_back(wide_values(dot.vector.as<T>()));
      has_vectors = has_vectors || !dot.grad_vector.absent();
    }
    const auto do_rows = [&](std::int64_t begin, std::int64_t end, double* sums) {
      for_wide_rows<T>(begin, end, x.cols, [&](std::int64_t first, std::int64_t last) {
        const ReadRows<T> from(x.as<T>(), first, last);
        const WrittenRows<T> to(grad_x.as<T>(), first, last, WrittenRows<T>::Before::read);
        for (std::size_t k = 0; k < dots.size(); ++k) {
          const ReadRows<T> grad_y(dots[k].grad_y.as<T>(), first, last);
          const std::int64_t heads = grad_y.rows().cols;
          functions_for<Wide<T>>().dot_backward(
              rows_of(from.rows(), weights[k], heads, quotient(x.cols, heads)), grad_y.rows().data,
              grad_y.rows().stride, to.rows().data, to.rows().stride,
              sums == nullptr ? nullptr : sums + static_cast<std::int64_t>(k) * x.cols);
        }
      });
    };
    if (!has_vectors) {
      for_row_ranges(x.rows, x.cols,
                     [&](std::int64_t begin, std::int64_t end) { do_rows(begin, end, nullptr); });
      return;
    }
    const Buffer<double> sums = sum_over_rows(x.rows, std::ssize(dots) * x.cols, do_rows);
    for (std::size_t k = 0; k < dots.size(); ++k) {
      if (dots[k].grad_vector.absent()) continue;
      const double* const own = sums.data() + static_cast<std::int64_t>(k) * x.cols;
      for (std::int64_t j = 0; j < x.cols; ++j) {
        dots[k].grad_vector.as<T>()(0, j) = rounded_to<T>(own[j]);
      }
    }
  });
}

}  // namespace

void CpuDenseOps::head_dot(ConstOperand x, ConstOperand vector, Operand y, Stream) const {
  const std::int64_t width = quotient(x.cols, y.cols);
  visit_floating(x.type, [&](auto element) {
    using T = decltype(element);
    const auto weights = wide_values(vector.as<T>());
    for_row_ranges(x.rows, x.cols, [&](std::int64_t begin, std::int64_t end) {
      for_wide_rows<T>(begin, end, x.cols, [&](std::int64_t first, std::int64_t last) {
        const ReadRows<T> from(x.as<T>(), first, last);
        const WrittenRows<T> to(y.as<T>(), first, last);
        functions_for<Wide<T>>().dot(rows_of(from.rows(), weights, y.cols, width), to.rows().data,
                                     to.rows().stride);
      });
    });
  });
}

void CpuDenseOps::head_dot_backward(ConstOperand x, ConstOperand vector, ConstOperand grad_y,
                                    Operand grad_x, Operand grad_vector, Stream,
                                    const DenseWorkspace*) const {
  differentiate(x, {{vector, grad_y, grad_vector}}, grad_x);
}

void CpuDenseOps::head_dots(ConstOperand x, ConstOperand first, ConstOperand second,
                            Operand of_first, Operand of_second, Stream stream) const {
  head_dot(x, first, of_first, stream);
  head_dot(x, second, of_second, stream);
}

void CpuDenseOps::head_dots_backward(const HeadDotsGradCall& call, Stream,
                                     const DenseWorkspace*) const {
  differentiate(call.x,
                {{call.first, call.grad_of_first, call.grad_first},
                 {call.second, call.grad_of_second, call.grad_second}},
                call.grad_x);
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
          Wide<T> sum = 0;
          for (std::int64_t h = 0; h < heads; ++h) sum += from(i, h * to.cols + k);
          to(i, k) = T(sum / static_cast<Wide<T>>(heads));
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
            to(i, h * from.cols + k) = T(from(i, k) / static_cast<Wide<T>>(heads));
          }
        }
      }
    });
  });
}

}  // namespace tessera::ops
