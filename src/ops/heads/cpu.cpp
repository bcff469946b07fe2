// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <vector>

#include "ops/dense/cpu_dense_ops.hpp"
#include "ops/dense/wide_rows.hpp"
#include "ops/heads/kernels.hpp"
#include "ops/plan/check.hpp"

namespace tessera::ops {
namespace {

template <class W>
HeadRows<W> rows_of(MatrixView<const W> x, const Buffer<W>& vector, std::int64_t heads,
                    std::int64_t width) {
  return {x.rows, heads, width, x.data, x.stride, vector.data()};
}

/// How often `part` columns fit into `whole`.
std::int64_t quotient(std::int64_t whole, std::int64_t part) {
  return part == 0 ? 0 : whole / part;
}

}  // namespace

void run_on_cpu(const HeadDotsCall& call) {
  const ConstOperand& x = call.x;
  visit_stored(x.type, [&]<class T>() {
    for (int k = 0; k < call.count; ++k) {
      const Operand& y = call.y[k];
      const auto weights = wide_values(call.vectors[k].as<T>());
      for_all_wide_rows<T>(x.rows, x.cols, [&](std::int64_t first, std::int64_t last) {
        const ReadRows<T> from(x.as<T>(), first, last);
        const WrittenRows<T> to(y.as<T>(), first, last);
        head_products().of<Wide<T>>().dot(
            rows_of(from.rows(), weights, y.cols, quotient(x.cols, y.cols)), to.rows().data,
            to.rows().stride);
      });
    }
  });
}

void run_on_cpu(const HeadDotsGradCall& call) {
  const ConstOperand& x = call.x;
  visit_stored(x.type, [&]<class T>() {
    std::vector<Buffer<Wide<T>>> weights;
    bool has_vectors = false;
    for (int k = 0; k < call.count; ++k) {
      weights.push_back(wide_values(call.vectors[k].as<T>()));
      has_vectors = has_vectors || !call.grad_vectors[k].absent();
    }
    const auto do_rows = [&](std::int64_t begin, std::int64_t end, double* sums) {
      for_wide_rows<T>(begin, end, x.cols, [&](std::int64_t first, std::int64_t last) {
        const ReadRows<T> from(x.as<T>(), first, last);
        const WrittenRows<T> to(call.grad_x.as<T>(), first, last, WrittenRows<T>::Before::read);
        for (int k = 0; k < call.count; ++k) {
          const ReadRows<T> grad_y(call.grad_y[k].as<T>(), first, last);
          const std::int64_t heads = grad_y.rows().cols;
          head_products().of<Wide<T>>().dot_backward(
              rows_of(from.rows(), weights[static_cast<std::size_t>(k)], heads,
                      quotient(x.cols, heads)),
              grad_y.rows().data, grad_y.rows().stride, to.rows().data, to.rows().stride,
              sums == nullptr ? nullptr : sums + k * x.cols);
        }
      });
    };
    if (!has_vectors) {
      return for_row_ranges(x.rows, x.cols,
                            [&](auto begin, auto end) { do_rows(begin, end, nullptr); });
    }
    const Buffer<double> sums = sum_over_rows(x.rows, call.count * x.cols, do_rows);
    for (int k = 0; k < call.count; ++k) {
      if (call.grad_vectors[k].absent()) continue;
      const double* const own = sums.data() + k * x.cols;
      for (std::int64_t j = 0; j < x.cols; ++j) {
        call.grad_vectors[k].as<T>()(0, j) = rounded_to<T>(own[j]);
      }
    }
  });
}

void run_on_cpu(const HeadMeanCall& call) {
  const std::int64_t heads = quotient(call.x.cols, call.y.cols);
  visit_stored(call.x.type, [&]<class T>() {
    const MatrixView<const T> from = call.x.as<T>();
    const MatrixView<T> to = call.y.as<T>();
    for_each_row(from.rows, from.cols, [&](std::int64_t i) {
      for (std::int64_t k = 0; k < to.cols; ++k) {
        Wide<T> sum = 0;
        for (std::int64_t h = 0; h < heads; ++h) sum += from(i, h * to.cols + k);
        to(i, k) = T(sum / static_cast<Wide<T>>(heads));
      }
    });
  });
}

void run_on_cpu(const HeadMeanGradCall& call) {
  const std::int64_t heads = quotient(call.grad_x.cols, call.grad_y.cols);
  visit_stored(call.grad_y.type, [&]<class T>() {
    const MatrixView<const T> from = call.grad_y.as<T>();
    const MatrixView<T> to = call.grad_x.as<T>();
    for_each_row(to.rows, to.cols, [&](std::int64_t i) {
      for (std::int64_t h = 0; h < heads; ++h) {
        for (std::int64_t k = 0; k < from.cols; ++k) {
          to(i, h * from.cols + k) = T(from(i, k) / static_cast<Wide<T>>(heads));
        }
      }
    });
  });
}

}  // namespace tessera::ops
