// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "reorder/nm/adjacency.hpp"
#include "reorder/nm/budget.hpp"

/// A group of columns conforms whatever the others are, so columns can be grouped part by part, in
/// parallel: the same order for any number of threads.
namespace tessera::reorder::detail {

/// Columns of a part; graphs of up to twice as many are grouped as a whole.
inline constexpr VertexId columns_per_part = 1 << 16;
/// Columns of a hand; graphs of up to twice as many are not dealt.
inline constexpr VertexId columns_per_hand = 1 << 10;

struct GroupedParts {
  std::vector<VertexId> order;
  std::int64_t swaps = 0;
  bool fails = false;    ///< violations remain
  bool stopped = false;  ///< or out of time: violations may remain
};

/// An order for V = 1 of a large graph: neighbouring columns are a part. Nothing where a part finds
/// no order of its own within a few steps per edge: the columns of a long row may have to leave it.
/// Once one is stopped, all are, and the order is what they have by then.
std::optional<GroupedParts> group_parts(const Adjacency& adjacency, int group_size,
                                        std::uint64_t seed, Budget::Clock::time_point deadline,
                                        const std::function<bool()>& stop);

/// An order for V = 1 of a graph with long rows. Where many columns have to change places, swaps
/// find each other the less often the more columns there are. So the columns are dealt to hands
/// that have the same share of every long row, and each is grouped with an equal part of half of
/// the steps that are left. What shares that are not even leave to violate is for the caller to
/// repair.
GroupedParts group_dealt(const Adjacency& adjacency, int group_size, std::uint64_t seed,
                         Budget& budget);

}  // namespace tessera::reorder::detail
