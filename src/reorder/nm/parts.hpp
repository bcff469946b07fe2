// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "reorder/nm/adjacency.hpp"
#include "reorder/nm/budget.hpp"

namespace tessera::reorder::detail {

/// Columns of a part; graphs of up to twice as many are grouped as a whole.
inline constexpr VertexId columns_per_part = 1 << 16;

struct GroupedParts {
  std::vector<VertexId> order;
  std::int64_t swaps = 0;
  bool stopped = false;  ///< or out of time: violations may remain
};

/// An order for V = 1 of a large graph. A group of columns conforms whatever the others are, so
/// parts of neighbouring columns are grouped in parallel, each on its own: the same order for any
/// number of threads. Nothing where a part finds no order of its own within a few steps per edge:
/// the columns of a long row may have to leave it. Once one is stopped, all are, and the order is
/// what they have by then.
std::optional<GroupedParts> group_parts(const Adjacency& adjacency, int group_size,
                                        std::uint64_t seed, Budget::Clock::time_point deadline,
                                        const std::function<bool()>& stop);

}  // namespace tessera::reorder::detail
