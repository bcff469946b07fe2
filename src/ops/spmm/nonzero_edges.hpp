// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/simd/lanes.hpp"
#include "ops/spmm/rows.hpp"

namespace tessera::ops::TESSERA_ISA {

/// The edges of a range whose weight is not 0. Where all features are finite the others add
/// nothing: dropout on sparse features leaves many of them.
template <class T>
class NonzeroEdges {
  using S = ScalarOf<T>;

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
