// SPDX-License-Identifier: Apache-2.0
#include "reorder/nm/parts.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <span>

#include "reorder/nm/grouping.hpp"
#include "tessera/core/parallel.hpp"

namespace tessera::reorder::detail {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

/// A row with so many entries in a part can violate; others need not be looked at.
constexpr EdgeOffset entries_that_matter = 3;

/// Some neighbouring columns and the rows that constrain them, both numbered from 0.
class Part {
 public:
  Part(const Adjacency& adjacency, VertexId begin, VertexId end) {
    std::vector<VertexId> entries;
    for (VertexId column = begin; column < end; ++column) {
      const auto rows = adjacency.neighbours(column);
      entries.insert(entries.end(), rows.begin(), rows.end());
    }
    std::sort(entries.begin(), entries.end());
    row_offsets_.push_back(0);
    for (std::size_t first = 0, last = 0; first < entries.size(); first = last) {
      while (last < entries.size() && entries[last] == entries[first]) ++last;
      const auto count = static_cast<EdgeOffset>(last - first);
      if (count < entries_that_matter) continue;
      rows_.push_back(entries[first]);
      row_offsets_.push_back(row_offsets_.back() + count);
    }
    std::vector<EdgeOffset> next(row_offsets_.begin(), row_offsets_.end() - 1);
    columns_.resize(at(row_offsets_.back()));
    column_offsets_.push_back(0);
    for (VertexId column = begin; column < end; ++column) {
      for (const VertexId row : adjacency.neighbours(column)) {
        const auto found = std::lower_bound(rows_.begin(), rows_.end(), row);
        if (found == rows_.end() || *found != row) continue;
        const auto number = static_cast<VertexId>(found - rows_.begin());
        rows_of_columns_.push_back(number);
        columns_[at(next[at(number)]++)] = column - begin;
      }
      column_offsets_.push_back(static_cast<EdgeOffset>(rows_of_columns_.size()));
    }
  }

  Adjacency rows_of() const { return {column_offsets_, rows_of_columns_}; }
  Adjacency columns_of() const { return {row_offsets_, columns_}; }
  std::int64_t num_entries() const { return row_offsets_.back(); }

 private:
  std::vector<VertexId> rows_;  // that matter, rising
  std::vector<EdgeOffset> row_offsets_, column_offsets_;
  std::vector<VertexId> columns_, rows_of_columns_;
};

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
    const Part part(adjacency, begin, end);
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
