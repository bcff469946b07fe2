// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <mutex>
#include <numeric>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/reorder/layout.hpp"

#include "graph/requirements.hpp"
#include "graph/symmetry.hpp"

namespace tessera::reorder {
namespace {

/// Windows are formed within ranges of this many ranks, so that ranges can be filled in parallel.
/// Candidates reach a few hundred ranks ahead: what a border costs is nothing beside that.
constexpr std::int64_t range_ranks = 1 << 14;

/// Vertices by their first neighbours. The place of a vertex among them is its rank.
struct RankedVertices {
  std::vector<VertexId> by_rank;
  /// Of each column, the ranks of the rows that use it, in increasing order.
  std::vector<EdgeOffset> column_offsets;
  std::vector<VertexId> ranks_of_columns;
};

std::vector<VertexId> sorted_by_first_neighbour(const Graph& graph) {
  const auto rows = static_cast<std::size_t>(graph.num_rows());
  const auto first_of = [&](VertexId vertex) {
    const auto neighbours = graph.neighbours(vertex);
    return neighbours.empty() ? graph.num_rows() : neighbours.front();
  };
  // Neighbours are sorted, so vertices fall into one bin per first neighbour.
  std::vector<EdgeOffset> bins(rows + 2, 0);
  for (std::size_t v = 0; v < rows; ++v) {
    ++bins[static_cast<std::size_t>(first_of(static_cast<VertexId>(v))) + 1];
  }
  std::partial_sum(bins.begin(), bins.end(), bins.begin());
  std::vector<VertexId> sorted(rows);
  for (std::size_t v = 0; v < rows; ++v) {
    auto& at = bins[static_cast<std::size_t>(first_of(static_cast<VertexId>(v)))];
    sorted[static_cast<std::size_t>(at++)] = static_cast<VertexId>(v);
  }
  return sorted;
}

RankedVertices ranked(const Graph& graph) {
  RankedVertices ranked;
  ranked.by_rank = sorted_by_first_neighbour(graph);
  const auto columns = static_cast<std::size_t>(graph.num_cols());
  ranked.column_offsets.assign(columns + 1, 0);
  for (const VertexId column : graph.col_indices().span()) {
    ++ranked.column_offsets[static_cast<std::size_t>(column) + 1];
  }
  std::partial_sum(ranked.column_offsets.begin(), ranked.column_offsets.end(),
                   ranked.column_offsets.begin());
  ranked.ranks_of_columns.resize(static_cast<std::size_t>(graph.num_edges()));
  std::vector<EdgeOffset> next(ranked.column_offsets.begin(), ranked.column_offsets.end() - 1);
  for (std::size_t rank = 0; rank < ranked.by_rank.size(); ++rank) {
    for (const VertexId column : graph.neighbours(ranked.by_rank[rank])) {
      auto& at = next[static_cast<std::size_t>(column)];
      ranked.ranks_of_columns[static_cast<std::size_t>(at++)] = static_cast<VertexId>(rank);
    }
  }
  return ranked;
}

/// Which columns a row window uses.
class ColumnSet {
 public:
  explicit ColumnSet(VertexId columns)
      : words_((static_cast<std::size_t>(columns) + word_bits - 1) / word_bits) {}

  /// Whether it was not there.
  bool insert(VertexId column) {
    std::uint64_t& word = words_[static_cast<std::size_t>(column) / word_bits];
    const std::uint64_t bit = std::uint64_t{1} << (static_cast<std::size_t>(column) % word_bits);
    if ((word & bit) != 0) return false;
    word |= bit;
    columns_.push_back(column);
    return true;
  }
  std::int64_t size() const { return static_cast<std::int64_t>(columns_.size()); }
  void clear() {
    for (const VertexId column : columns_) words_[static_cast<std::size_t>(column) / word_bits] = 0;
    columns_.clear();
  }

 private:
  static constexpr std::size_t word_bits = 64;
  std::vector<std::uint64_t> words_;
  std::vector<VertexId> columns_;
};

/// Fills the row windows of one range of ranks.
class WindowFiller {
 public:
  WindowFiller(const Graph& graph, const RankedVertices& ranked, int vertex_window)
      : graph_(graph), ranked_(ranked), vertex_window_(vertex_window), used_(graph.num_cols()) {}

  /// `order` has a place for each rank of the range.
  void fill(std::int64_t begin, std::int64_t end, std::span<VertexId> order) {
    begin_ = begin;
    placed_.assign(static_cast<std::size_t>(end - begin), 0);
    common_.assign(static_cast<std::size_t>(end - begin), 0);
    std::size_t filled = 0;
    std::int64_t first = begin;
    while (true) {
      while (first < end && is_placed(first)) ++first;
      if (first == end) return;
      open_window(first, std::min(end, first + vertex_window_));
      for (int row = 0; row < row_window; ++row) {
        const std::int64_t rank = row == 0 ? first : best_candidate();
        if (rank < 0) break;
        order[filled++] = place(rank);
      }
      close_window();
    }
  }

 private:
  bool is_placed(std::int64_t rank) const {
    return placed_[static_cast<std::size_t>(rank - begin_)] != 0;
  }
  std::int32_t& common(std::int64_t rank) {
    return common_[static_cast<std::size_t>(rank - begin_)];
  }

  void open_window(std::int64_t first, std::int64_t last) {
    first_ = first;
    last_ = last;
    edges_ = 0;
    candidates_.clear();
    for (std::int64_t rank = first; rank < last; ++rank) {
      if (!is_placed(rank)) candidates_.push_back(rank);
    }
  }
  void close_window() {
    used_.clear();
    for (std::int64_t rank = first_; rank < last_; ++rank) common(rank) = 0;
  }

  VertexId place(std::int64_t rank) {
    placed_[static_cast<std::size_t>(rank - begin_)] = 1;
    candidates_.erase(std::find(candidates_.begin(), candidates_.end(), rank));
    const VertexId vertex = ranked_.by_rank[static_cast<std::size_t>(rank)];
    edges_ += graph_.degree(vertex);
    for (const VertexId column : graph_.neighbours(vertex)) {
      if (used_.insert(column)) count_users(column);
    }
    return vertex;
  }

  /// Candidates that use a column which the window now uses, too.
  void count_users(VertexId column) {
    const auto* const all = ranked_.ranks_of_columns.data();
    const auto* const end = all + ranked_.column_offsets[static_cast<std::size_t>(column) + 1];
    const auto* user = std::lower_bound(
        all + ranked_.column_offsets[static_cast<std::size_t>(column)], end, first_);
    for (; user != end && *user < last_; ++user) ++common(*user);
  }

  /// -1 where there is none.
  std::int64_t best_candidate() {
    std::int64_t best = -1;
    double best_intensity = -1;
    EdgeOffset best_degree = 0;
    for (const std::int64_t rank : candidates_) {
      const EdgeOffset degree = graph_.degree(ranked_.by_rank[static_cast<std::size_t>(rank)]);
      const std::int64_t columns = used_.size() + degree - common(rank);
      const double intensity =
          columns == 0 ? 0 : static_cast<double>(edges_ + degree) / static_cast<double>(columns);
      if (intensity < best_intensity) continue;
      if (intensity == best_intensity && degree <= best_degree) continue;
      best = rank;
      best_intensity = intensity;
      best_degree = degree;
    }
    return best;
  }

  const Graph& graph_;
  const RankedVertices& ranked_;
  const std::int64_t vertex_window_;
  ColumnSet used_;
  std::int64_t begin_ = 0;            ///< of the range
  std::vector<std::uint8_t> placed_;  ///< by rank in the range
  std::vector<std::int32_t> common_;  ///< columns that a candidate shares with the window
  std::int64_t first_ = 0;            ///< candidates lie in [first_, last_)
  std::int64_t last_ = 0;
  std::vector<std::int64_t> candidates_;  ///< not placed, in increasing order
  EdgeOffset edges_ = 0;                  ///< of the window
};

}  // namespace

Permutation loa(const Graph& given, const LoaOptions& options) {
  if (options.vertex_window < row_window) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a vertex window of {} cannot fill a row window of {} vertices",
                            options.vertex_window, row_window),
                "loa", fmt::format("give at least {}", row_window));
  }
  tessera::detail::require_square(given, "reordering");
  const Graph graph = tessera::detail::undirected(given);
  const RankedVertices all = ranked(graph);
  std::vector<VertexId> order(all.by_rank.size());
  std::mutex reporting;
  std::int64_t done = 0;
  parallel_ranges(graph.num_rows(), range_ranks, [&](std::int64_t begin, std::int64_t end) {
    WindowFiller filler(graph, all, options.vertex_window);
    filler.fill(begin, end,
                std::span(order).subspan(static_cast<std::size_t>(begin),
                                         static_cast<std::size_t>(end - begin)));
    const std::lock_guard<std::mutex> lock(reporting);
    report(options.progress, "filling row windows", done += end - begin, graph.num_rows());
  });
  return Permutation(std::move(order));
}

}  // namespace tessera::reorder
