// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/simd/lanes.hpp"
#include "ops/spmm/rows.hpp"

namespace tessera::ops::TESSERA_ISA {

/// The weight of every edge of a range, in the precision of the sums.
template <class T>
class Weights {
  using S = SumOf<T>;

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

/// The edges of a range whose weight is not 0. Where all features are finite the others add
/// nothing: dropout on sparse features leaves many of them.
template <class T>
class NonzeroEdges {
  using S = SumOf<T>;

 public:
  /// Whether leaving out the zeros is right, and worth the copy, which costs as much as to add a
  /// few vectors of features.
  static bool help(const SpmmRows& rows, const RowRange& range, const S* weights,
                   std::int64_t features) {
    constexpr std::int64_t min_features = 32;
    if (!rows.x_is_finite || rows.mean || rows.row_scale != nullptr || features < min_features) {
      return false;
    }
    const EdgeOffset count = range.edge_end - range.edge_begin;
    std::int32_t zeros = 0;
    for (EdgeOffset i = 0; i < count; ++i) zeros += weights[i] == S(0) ? 1 : 0;
    return zeros > count / 4;
  }

  NonzeroEdges(const SpmmRows& all_rows, const RowRange& all_range, const S* all_weights)
      : rows_(all_rows), range_{0, all_range.row_end - all_range.row_begin, 0, 0, all_range.slot} {
    EdgeOffset edge = all_range.edge_begin;
    EdgeOffset count = 0;
    for (VertexId row = 0; row < range_.row_end; ++row) {
      const EdgeOffset row_end = all_rows.row_offsets[all_range.row_begin + row + 1];
      const EdgeOffset end = row_end < all_range.edge_end ? row_end : all_range.edge_end;
      for (; edge < end; ++edge) {
        const S weight = all_weights[edge - all_range.edge_begin];
        cols_[count] = all_rows.col_indices[edge];
        weights_[count] = weight;
        count += weight == S(0) ? 0 : 1;
      }
      offsets_[row + 1] = count;
    }
    range_.edge_end = count;
    rows_.row_offsets = offsets_;
    rows_.col_indices = cols_;
    rows_.num_edges = count;
    const std::int64_t first = all_range.row_begin * rows_.y_stride;
    if (rows_.y_is_wide) {
      rows_.y = static_cast<S*>(rows_.y) + first;
    } else {
      rows_.y = static_cast<T*>(rows_.y) + first;
    }
  }

  const SpmmRows& rows() const { return rows_; }
  const RowRange& range() const { return range_; }
  const S* weights() const { return weights_; }

 private:
  SpmmRows rows_;
  RowRange range_;
  EdgeOffset offsets_[max_rows_per_range + 1] = {0};
  VertexId cols_[max_edges_per_range];
  S weights_[max_edges_per_range];
};

}  // namespace tessera::ops::TESSERA_ISA
