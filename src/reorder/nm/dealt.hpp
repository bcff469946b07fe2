// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "reorder/nm/adjacency.hpp"
#include "reorder/nm/budget.hpp"

namespace tessera::reorder::detail {

/// Columns of a hand; graphs of up to twice as many are not dealt.
inline constexpr VertexId columns_per_hand = 1 << 10;

struct Dealt {
  std::vector<VertexId> order;
  std::int64_t swaps = 0;
};

/// An order for V = 1 of a graph with long rows. Where many columns have to change places, swaps
/// find each other the less often the more columns there are. So the columns are dealt to hands
/// that have the same share of every long row, and each is grouped on its own, in parallel, with
/// an equal part of half of the steps that are left: the same order for any number of threads.
/// What shares that are not even leave to violate is for the caller to repair.
Dealt group_dealt(const Adjacency& adjacency, int group_size, std::uint64_t seed, Budget& budget);

}  // namespace tessera::reorder::detail
