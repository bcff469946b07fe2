// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "tessera/core/parallel.hpp"
#include "tessera/reorder/nm.hpp"

namespace tessera::reorder {
namespace {

struct Entry {
  VertexId column;
  EdgeOffset edge;
  double size;
};

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

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
  std::vector<EdgeOffset> offsets(1, 0);
  std::vector<VertexId> columns;
  std::vector<float> values;
  for (VertexId row = 0; row < graph.num_rows(); ++row) {
    for (EdgeOffset k = graph.row_offsets()[row]; k < graph.row_offsets()[row + 1]; ++k) {
      if (stays[at(k)] == 0) continue;
      columns.push_back(graph.col_indices()[k]);
      if (graph.has_values()) values.push_back(graph.values()[k]);
    }
    offsets.push_back(static_cast<EdgeOffset>(columns.size()));
  }
  const auto kept = static_cast<EdgeOffset>(columns.size());
  Graph pruned(graph.num_rows(), graph.num_cols(), std::move(offsets), std::move(columns),
               std::move(values));
  const auto scale = [](bool has, const SharedArray<float>& array) {
    return has ? PlacedArray<float>(array) : PlacedArray<float>();
  };
  if (graph.has_row_scale() || graph.has_col_scale()) {
    pruned = pruned.with_scales(scale(graph.has_row_scale(), graph.row_scale()),
                                scale(graph.has_col_scale(), graph.col_scale()));
  }
  return {std::move(pruned), graph.num_edges() - kept};
}

}  // namespace tessera::reorder
