// SPDX-License-Identifier: Apache-2.0
#include "reorder/nm/parts.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <numeric>

#include "reorder/nm/column_part.hpp"
#include "reorder/nm/grouping.hpp"
#include "tessera/core/parallel.hpp"

namespace tessera::reorder::detail {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

}  // namespace

std::optional<GroupedParts> group_parts(const Adjacency& adjacency, int group_size,
                                        std::uint64_t seed, Budget::Clock::time_point deadline,
                                        const std::function<bool()>& stop) {
  constexpr std::int64_t steps_per_entry = 8;
  if (adjacency.size <= 2 * columns_per_part) return std::nullopt;
  const std::int64_t parts = adjacency.size / columns_per_part;
  const auto first_of = [&](std::int64_t part) {
    if (part == parts) return adjacency.size;
    const std::int64_t even = part * std::int64_t{adjacency.size} / parts;
    return static_cast<VertexId>(even / group_size * group_size);
  };
  GroupedParts result;
  result.order.resize(at(adjacency.size));
  std::atomic<bool> fails = false, stopped = false;
  std::atomic<std::int64_t> swaps = 0;
  std::mutex asking;
  const auto stops = [&] {
    const std::scoped_lock lock(asking);
    if (!stopped && stop && stop()) stopped = true;
    return stopped.load();
  };
  parallel_tasks(parts, [&](std::int64_t i) {
    const VertexId begin = first_of(i), end = first_of(i + 1);
    std::vector<VertexId> columns(at(end - begin));
    std::iota(columns.begin(), columns.end(), begin);
    const ColumnPart part(adjacency, columns);
    const Adjacency rows_of = part.rows_of(), columns_of = part.columns_of();
    Grouping grouping(rows_of, columns_of, group_size, seed + static_cast<std::uint64_t>(i));
    Budget budget(columns_per_part + steps_per_entry * part.num_entries(), deadline, stops);
    if (!grouping.run(budget)) fails = true;
    if (budget.out_of_time()) stopped = true;
    swaps += grouping.swaps();
    const std::vector<VertexId> order = grouping.order();
    std::transform(order.begin(), order.end(), result.order.begin() + begin,
                   [&](VertexId column) { return begin + column; });
  });
  if (fails && !stopped) return std::nullopt;
  result.swaps = swaps;
  result.stopped = stopped;
  return result;
}

}  // namespace tessera::reorder::detail
