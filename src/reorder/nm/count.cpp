// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <span>
#include <vector>

#include "graph/requirements.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/reorder/nm.hpp"

namespace tessera::reorder {
namespace {

NmViolations operator+(const NmViolations& a, const NmViolations& b) {
  return {a.vectors + b.vectors, a.meta_blocks + b.meta_blocks};
}

NmWork operator+(const NmWork& a, const NmWork& b) {
  return {a.gathered_rows + b.gathered_rows, a.quads + b.quads};
}

/// All columns with entries in rows [begin, end), sorted.
void collect_columns(const Graph& graph, VertexId begin, VertexId end,
                     std::vector<VertexId>& columns) {
  columns.clear();
  for (VertexId row = begin; row < end; ++row) {
    const auto neighbours = graph.neighbours(row);
    columns.insert(columns.end(), neighbours.begin(), neighbours.end());
  }
  if (end - begin > 1) {
    std::sort(columns.begin(), columns.end());
    columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
  }
}

/// Calls `visit(group, columns of it)` for each group of `group_size` columns.
template <class Visit>
void for_each_group(std::span<const VertexId> columns, int group_size, Visit&& visit) {
  for (std::size_t i = 0; i < columns.size();) {
    const VertexId group = columns[i] / group_size;
    std::size_t end = i + 1;
    while (end < columns.size() && columns[end] / group_size == group) ++end;
    visit(group, static_cast<std::int64_t>(end - i));
    i = end;
  }
}

/// Sums `count(first row, end row)` over aligned blocks of `height` rows.
template <class Value, class Count>
Value sum_over_blocks(const Graph& graph, int height, Count&& count) {
  const std::int64_t rows = graph.num_rows();
  const std::int64_t blocks = (rows + height - 1) / height;
  constexpr std::int64_t rows_per_range = 4096;
  return parallel_reduce(
      blocks, rows_per_range / height, Value{},
      [&](std::int64_t first, std::int64_t last) {
        Value sum;
        for (std::int64_t block = first; block < last; ++block) {
          const auto end = std::min<std::int64_t>(rows, (block + 1) * height);
          sum = sum + count(static_cast<VertexId>(block * height), static_cast<VertexId>(end));
        }
        return sum;
      },
      [](const Value& a, const Value& b) { return a + b; });
}

}  // namespace

NmViolations count_violations(const Graph& graph, const NmPattern& pattern) {
  pattern.validate();
  const auto count = [&](VertexId begin, VertexId end) {
    thread_local std::vector<VertexId> columns;
    thread_local std::vector<VertexId> bad_groups;
    bad_groups.clear();
    for (VertexId row = begin; row < end; ++row) {
      for_each_group(graph.neighbours(row), pattern.m, [&](VertexId group, std::int64_t entries) {
        if (entries > pattern.n) bad_groups.push_back(group);
      });
    }
    NmViolations found;
    found.vectors = static_cast<std::int64_t>(bad_groups.size());
    if (pattern.v > 1) {
      collect_columns(graph, begin, end, columns);
      for_each_group(columns, pattern.m, [&](VertexId group, std::int64_t live) {
        if (live > NmPattern::most_live_columns) bad_groups.push_back(group);
      });
      std::sort(bad_groups.begin(), bad_groups.end());
      bad_groups.erase(std::unique(bad_groups.begin(), bad_groups.end()), bad_groups.end());
    }
    found.meta_blocks = static_cast<std::int64_t>(bad_groups.size());
    return found;
  };
  return sum_over_blocks<NmViolations>(graph, pattern.v, count);
}

NmWork nm_work(const Graph& graph, const NmPattern& pattern) {
  pattern.validate();
  constexpr int tensor_rows = 16;
  const int height = std::max(tensor_rows, pattern.v);
  const auto count = [&](VertexId begin, VertexId end) {
    thread_local std::vector<VertexId> columns;
    collect_columns(graph, begin, end, columns);
    NmWork work;
    work.gathered_rows = static_cast<std::int64_t>(columns.size());
    for_each_group(columns, pattern.m, [&](VertexId, std::int64_t live) {
      work.quads += (live + 3) / 4 * (height / tensor_rows);
    });
    return work;
  };
  return sum_over_blocks<NmWork>(graph, height, count);
}

}  // namespace tessera::reorder
