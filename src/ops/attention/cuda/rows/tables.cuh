// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "ops/attention/cuda/rows/functions.hpp"

namespace tessera::ops {

template <class T>
constexpr const auto& lane_vectors_of() {
  if constexpr (sizeof(T) == 4) {
    return lane_vectors_32;
  } else {
    return lane_vectors_16;
  }
}

/// Calls `make` with each number of T's list of lane vectors, as a constant.
template <class T, class Make>
constexpr RowsAttentionByLanes for_lane_vectors(Make make) {
  RowsAttentionByLanes functions{};
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    ((functions[i] = make(std::integral_constant<std::size_t, i>{})), ...);
  }
  (std::make_index_sequence<lane_vectors_of<T>().size()>{});
  return functions;
}

}  // namespace tessera::ops
