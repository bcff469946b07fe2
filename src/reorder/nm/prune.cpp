// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "graph/row_writer.hpp"
#include "reorder/nm/adjacency.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/reorder/nm.hpp"

namespace tessera::reorder {
namespace {

using detail::at;

struct Entry {
  VertexId column;
  EdgeOffset edge;
  double size;
};

/// Moves the `count` largest to the front; of equal ones those that came first.
template <class Value, class Size>
void largest_first(std::vector<Value>& values, std::size_t count, Size&& size) {
  if (values.size() <= count) return;
  std::stable_sort(values.begin(), values.end(),
                   [&](const Value& a, const Value& b) { return size(a) > size(b); });
}

/// One block of V rows: says which of its edges stay.
class BlockPruning {
 public:
  BlockPruning(const Graph& graph, const NmPattern& pattern, std::vector<char>& stays)
      : graph_(graph), pattern_(pattern), stays_(stays) {}

  void run(VertexId first_row, VertexId last_row) {
    entries_.clear();
    for (VertexId row = first_row; row < last_row; ++row) {
      for (EdgeOffset k = graph_.row_offsets()[row]; k < graph_.row_offsets()[row + 1]; ++k) {
        entries_.push_back(
            {graph_.col_indices()[k], k, std::abs(static_cast<double>(graph_.weight(row, k)))});
      }
    }
    choose_columns();
    for (VertexId row = first_row; row < last_row; ++row) prune_row(row);
  }

 private:
  void choose_columns() {
    std::stable_sort(entries_.begin(), entries_.end(),
                     [](const Entry& a, const Entry& b) { return a.column < b.column; });
    live_.clear();
    std::vector<std::pair<VertexId, double>> group;
    for (std::size_t i = 0; i < entries_.size();) {
      const VertexId column = entries_[i].column;
      double sum = 0;
      for (; i < entries_.size() && entries_[i].column == column; ++i) sum += entries_[i].size;
      group.emplace_back(column, sum);
      const bool ends =
          i == entries_.size() || entries_[i].column / pattern_.m != column / pattern_.m;
      if (!ends) continue;
      constexpr auto most = static_cast<std::size_t>(NmPattern::most_live_columns);
      largest_first(group, most, [](const auto& entry) { return entry.second; });
      group.resize(std::min(group.size(), most));
      for (const auto& [kept, size] : group) live_.push_back(kept);
      group.clear();
    }
    std::sort(live_.begin(), live_.end());
  }

  void prune_row(VertexId row) {
    std::vector<Entry> vector;
    const EdgeOffset end = graph_.row_offsets()[row + 1];
    for (EdgeOffset k = graph_.row_offsets()[row]; k < end;) {
      const VertexId group = graph_.col_indices()[k] / pattern_.m;
      vector.clear();
      for (; k < end && graph_.col_indices()[k] / pattern_.m == group; ++k) {
        const VertexId column = graph_.col_indices()[k];
        if (!std::binary_search(live_.begin(), live_.end(), column)) continue;
        vector.push_back({column, k, std::abs(static_cast<double>(graph_.weight(row, k)))});
      }
      largest_first(vector, at(pattern_.n), [](const Entry& entry) { return entry.size; });
      vector.resize(std::min(vector.size(), at(pattern_.n)));
      for (const Entry& entry : vector) stays_[at(entry.edge)] = 1;
    }
  }

  const Graph& graph_;
  const NmPattern& pattern_;
  std::vector<char>& stays_;
  std::vector<Entry> entries_;
  std::vector<VertexId> live_;
};

}  // namespace

NmPruned prune_nm(const Graph& graph, const NmPattern& pattern) {
  pattern.validate();
  std::vector<char> stays(at(graph.num_edges()), 0);
  const std::int64_t blocks = (std::int64_t{graph.num_rows()} + pattern.v - 1) / pattern.v;
  parallel_ranges(blocks, std::max(1, 1024 / pattern.v), [&](std::int64_t begin, std::int64_t end) {
    BlockPruning pruning(graph, pattern, stays);
    for (std::int64_t block = begin; block < end; ++block) {
      const auto last = std::min<std::int64_t>(graph.num_rows(), (block + 1) * pattern.v);
      pruning.run(static_cast<VertexId>(block * pattern.v), static_cast<VertexId>(last));
    }
  });
  const auto num_kept = [&](VertexId row) {
    return std::count(stays.begin() + graph.row_offsets()[row],
                      stays.begin() + graph.row_offsets()[row + 1], 1);
  };
  tessera::detail::RowWriter writer(
      graph, tessera::detail::offsets_from_counts(graph.num_rows(), num_kept), graph.has_values());
  parallel_for(graph.num_rows(), even_grain(graph.num_rows()), [&](std::int64_t index) {
    const auto row = static_cast<VertexId>(index);
    EdgeOffset next = writer.row_begin(row);
    for (EdgeOffset k = graph.row_offsets()[row]; k < graph.row_offsets()[row + 1]; ++k) {
      if (stays[at(k)] != 0) writer.move(next++, graph.col_indices()[k], k);
    }
  });
  Graph pruned = std::move(writer)
                     .finish(graph.num_rows(), graph.num_cols())
                     .with_scales(graph.row_scale(), graph.col_scale());
  const EdgeOffset dropped = graph.num_edges() - pruned.num_edges();
  return {std::move(pruned), dropped};
}

}  // namespace tessera::reorder
