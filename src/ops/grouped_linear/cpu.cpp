// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tessera/core/parallel.hpp"

#include "ops/dense/row_ranges.hpp"
#include "ops/dense/wide_rows.hpp"
#include "ops/grouped_linear/call.hpp"
#include "ops/plan/check.hpp"

namespace tessera::ops {
namespace {

/// Columns [begin, end) of the weight of one group: a sum over the rows of the group, in their
/// order.
template <class T>
void sum_products(const GroupedCall& call, MatrixView<const T> grad_y, VertexId group,
                  std::int64_t begin, std::int64_t end, MatrixView<T> grad_weights) {
  const MatrixView<const T> x = call.x.as<T>();
  const std::int64_t width = call.shape.width;
  Buffer<SumOf<T>> sums((end - begin) * width, SumOf<T>{0});
  const Csc& rows = call.groups.csc();
  for (EdgeOffset k = rows.col_offsets[group]; k < rows.col_offsets[group + 1]; ++k) {
    const VertexId row = rows.row_indices[k];
    grouped().of<T>().add_outer(call.shape, x.row(row), grad_y.row(row), begin, end, sums.data());
  }
  T* const to = grad_weights.row(group) + begin * width;
  for (std::int64_t k = 0; k < sums.size(); ++k) to[k] = T(sums[k]);
}

}  // namespace

void grouped_on_cpu(const GroupedCall& call, Operand y) {
  visit_stored(y.type, [&]<class T>() {
    const auto x = call.x.as<T>(), weights = call.weights.as<T>();
    const auto to = y.as<T>();
    const GroupedFunctions<T>& functions = grouped().of<T>();
    const VertexId* const groups = call.groups.col_indices().data();
    for_each_row(to.rows, x.cols * call.shape.width, [&](std::int64_t i) {
      functions.product(call.shape, x.row(i), weights.row(groups[i]), to.row(i));
    });
  });
}

void grouped_backward_on_cpu(const GroupedCall& call, ConstOperand grad_y, Operand grad_x,
                             Operand grad_weights) {
  visit_stored(grad_y.type, [&]<class T>() {
    const auto weights = call.weights.as<T>(), slopes = grad_y.as<T>();
    if (!grad_x.absent()) {
      const auto to = grad_x.as<T>();
      const GroupedFunctions<T>& functions = grouped().of<T>();
      const VertexId* const groups = call.groups.col_indices().data();
      for_each_row(to.rows, to.cols * call.shape.width, [&](std::int64_t i) {
        functions.turned(call.shape, slopes.row(i), weights.row(groups[i]), to.row(i));
      });
    }
    if (grad_weights.absent() || grad_weights.cols == 0) return;
    // A group of many rows is shared by all threads.
    constexpr std::int64_t columns_at_once = 64;
    const std::int64_t in = call.shape.in;
    const std::int64_t parts = (in + columns_at_once - 1) / columns_at_once;
    parallel_tasks(grad_weights.rows * parts, [&](std::int64_t task) {
      const std::int64_t begin = task % parts * columns_at_once;
      sum_products<T>(call, slopes, static_cast<VertexId>(task / parts), begin,
                      std::min(begin + columns_at_once, in), grad_weights.as<T>());
    });
  });
}

}  // namespace tessera::ops
