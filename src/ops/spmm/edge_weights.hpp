// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/simd/lanes.hpp"
#include "ops/spmm/rows.hpp"

namespace tessera::ops::TESSERA_ISA {

/// The weight of every edge of a range, in the precision of the sums.
template <class T>
class Weights {
  using S = ScalarOf<T>;

 public:
  /// Weights from the first edge of the range on, or null if all are 1.
  const S* of_sum(const SpmmRows& rows, const RowRange& range) {
    const auto* const col_scale = static_cast<const S*>(rows.col_scale);
    if (rows.values == nullptr && col_scale == nullptr) return nullptr;
    const bool same_type = rows.values_are_stored ? std::is_same_v<T, S> : sizeof(S) == 4;
    if (col_scale == nullptr && same_type && rows.positions == nullptr && rows.value_stride == 1) {
      return static_cast<const S*>(rows.values) + range.edge_begin;
    }
    fill(rows, range);
    return buffer_;
  }

  /// The same, but never null.
  const S* of_won(const SpmmRows& rows, const RowRange& range) {
    fill(rows, range);
    return buffer_;
  }

  /// The same with row scale and sign inside: the best product depends on their signs.
  const S* of_best(const SpmmRows& rows, const RowRange& range) {
    fill(rows, range);
    const auto* const row_scale = static_cast<const S*>(rows.row_scale);
    const S sign = static_cast<S>(rows.sign);
    EdgeOffset edge = range.edge_begin;
    for (VertexId row = range.row_begin; row < range.row_end; ++row) {
      const S factor = row_scale == nullptr ? sign : sign * row_scale[row];
      const EdgeOffset row_end = rows.row_offsets[row + 1];
      const EdgeOffset end = row_end < range.edge_end ? row_end : range.edge_end;
      for (; edge < end; ++edge) buffer_[edge - range.edge_begin] *= factor;
    }
    return buffer_;
  }

 private:
  void fill(const SpmmRows& rows, const RowRange& range) {
    const EdgeOffset count = range.edge_end - range.edge_begin;
    const auto* const col_scale = static_cast<const S*>(rows.col_scale);
    const VertexId* const cols = rows.col_indices + range.edge_begin;
    if (rows.values == nullptr) {
      for (EdgeOffset i = 0; i < count; ++i) {
        buffer_[i] = col_scale == nullptr ? S(1) : col_scale[cols[i]];
      }
      return;
    }
    if (rows.values_are_stored) {
      fill_values(static_cast<const T*>(rows.values), rows, range);
    } else {
      fill_values(static_cast<const float*>(rows.values), rows, range);
    }
    if (col_scale == nullptr) return;
    for (EdgeOffset i = 0; i < count; ++i) buffer_[i] *= col_scale[cols[i]];
  }

  template <class Value>
  void fill_values(const Value* values, const SpmmRows& rows, const RowRange& range) {
    const EdgeOffset count = range.edge_end - range.edge_begin;
    for (EdgeOffset i = 0; i < count; ++i) {
      const EdgeOffset edge = range.edge_begin + i;
      const EdgeOffset at = rows.positions == nullptr ? edge : rows.positions[edge];
      buffer_[i] = static_cast<S>(load_lanes<1>(values + at * rows.value_stride));
    }
  }

  S buffer_[max_edges_per_range];
};

}  // namespace tessera::ops::TESSERA_ISA
