// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "tessera/core/memory.hpp"
#include "tessera/ops/pairs.hpp"

#include "ops/pairs/draw_formula.hpp"
#include "ops/pairs/end.hpp"

namespace tessera::ops {

/// What `lists` points to lies on the device.
struct NonEdges::State {
  Device device;
  Graph graph;                  ///< whose arrays the CPU uses as they are
  Buffer<std::int64_t> before;  ///< in memory of this process
  Buffer<EdgeOffset> offsets;   ///< copies on a GPU, as the next two
  Buffer<VertexId> targets;
  Buffer<std::int64_t> before_there;
  NonEdgeLists lists;
};

/// Ends in the order of their rows; of one row the sources come first, and either in the order of
/// the pairs.
struct PairEnds::State {
  Place place;
  std::int64_t num_rows = 0;
  std::int64_t num_pairs = 0;
  Buffer<PairEnd> ends;
  Buffer<std::int32_t> offsets;  ///< of each row, into `ends`
  /// Of a GPU: rows and numbers of ends, which are sorted, twice each, and what sorting needs.
  Buffer<std::uint32_t> rows, numbers;
  Buffer<std::byte> sorting;
};

/// Sums over the ends of each row.
struct PairSum {
  const PairEnds::State* lists = nullptr;
  PairSides sides = of_both;
  /// What the terms of ends that are sources, or targets, are multiplied with; absent: nothing.
  ConstOperand others[2];
  ConstOperand gradient;
  Operand y;

  bool multiplies() const { return !others[0].absent() || !others[1].absent(); }
};

}  // namespace tessera::ops
