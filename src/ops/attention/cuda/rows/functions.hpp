// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <type_traits>
#include <utility>

#include "ops/attention/cuda/row_launch.hpp"
#include "tessera/core/dtype.hpp"

/// The kernels by rows, compiled in units of their own (inst/).
namespace tessera::ops {

/// What sets the kernels of a sweep apart.
struct RowsAttentionKey {
  Precision precision = Precision::fp32;
  AttentionForm form = AttentionForm::gat;

  friend constexpr bool operator==(const RowsAttentionKey&, const RowsAttentionKey&) = default;
};

/// Something for each of a type's list of `LaneVectors`.
template <class Function>
using ByLanes = std::array<Function, std::tuple_size_v<LaneVectorList>>;

/// Calls `make` with the place of each of the `LaneVectors` in its list, as a constant.
template <class Make>
constexpr auto for_lane_vectors(Make make) {
  return [&]<std::size_t... i>(std::index_sequence<i...>) {
    return std::array{make(std::integral_constant<std::size_t, i>{})...};
  }
  (std::make_index_sequence<std::tuple_size_v<LaneVectorList>>{});
}

template <RowsAttentionKey key>
struct RowsForwardKernels {
  static const ByLanes<RowsAttentionFunction>* get();
};

struct RowsAttentionBackward {
  ByLanes<RowsAttentionFunction> by_rows, by_columns;
};
template <RowsAttentionKey key>
struct RowsBackwardKernels {
  static const RowsAttentionBackward* get();
};

}  // namespace tessera::ops
