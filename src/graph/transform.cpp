// SPDX-License-Identifier: Apache-2.0
#include "tessera/graph/transform.hpp"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"

#include "graph/requirements.hpp"

namespace tessera {
namespace {

/// Counts each row of the result in parallel, and turns the counts into offsets.
template <class CountRow>
Buffer<EdgeOffset> offsets_from_counts(VertexId num_rows, CountRow&& count_row) {
  Buffer<EdgeOffset> offsets(std::int64_t{num_rows} + 1);
  parallel_for(num_rows, even_grain(num_rows),
               [&](std::int64_t row) { offsets[row] = count_row(static_cast<VertexId>(row)); });
  offsets[num_rows] = 0;
  exclusive_scan(offsets.span());
  return offsets;
}

/// Edge ids after the edge at each old position has moved; -1 for those that were dropped.
SharedArray<EdgeOffset> moved_edge_ids(const SharedArray<EdgeOffset>& ids,
                                       const Buffer<EdgeOffset>& old_to_new) {
  Buffer<EdgeOffset> moved(ids.size());
  parallel_for(ids.size(), even_grain(ids.size()),
               [&](EdgeOffset edge) { moved[edge] = ids[edge] < 0 ? -1 : old_to_new[ids[edge]]; });
  return moved;
}

/// The arrays of a result while its rows are filled from those of an older graph.
class RowWriter {
 public:
  RowWriter(const Graph& old, Buffer<EdgeOffset> offsets, bool with_values)
      : old_(old),
        offsets_(std::move(offsets)),
        cols_(offsets_[offsets_.size() - 1]),
        values_(with_values ? cols_.size() : 0),
        old_to_new_(old.has_edge_ids() ? old.num_edges() : 0) {
    parallel_for(old_to_new_.size(), even_grain(old_to_new_.size()),
                 [&](EdgeOffset edge) { old_to_new_[edge] = -1; });
  }

  EdgeOffset row_begin(VertexId row) const { return offsets_[row]; }

  /// Writes an edge that stood at `old_edge`.
  void move(EdgeOffset position, VertexId col, EdgeOffset old_edge) {
    cols_[position] = col;
    if (!values_.empty()) values_[position] = old_.values()[old_edge];
    if (!old_to_new_.empty()) old_to_new_[old_edge] = position;
  }
  /// Writes an edge that is new; its value is 1.
  void add(EdgeOffset position, VertexId col) {
    cols_[position] = col;
    if (!values_.empty()) values_[position] = 1;
  }

  /// The result, without scales.
  Graph finish(VertexId num_rows, VertexId num_cols) && {
    const Graph graph(num_rows, num_cols, std::move(offsets_), std::move(cols_),
                      std::move(values_));
    return graph.with_edge_ids(moved_edge_ids(old_.edge_ids(), old_to_new_));
  }

 private:
  const Graph& old_;
  Buffer<EdgeOffset> offsets_;
  Buffer<VertexId> cols_;
  Buffer<float> values_;
  Buffer<EdgeOffset> old_to_new_;
};

template <class FillRow>
void fill_rows(VertexId num_rows, FillRow&& fill_row) {
  parallel_for(num_rows, even_grain(num_rows),
               [&](std::int64_t row) { fill_row(static_cast<VertexId>(row)); });
}

bool has_self_loop(const Graph& graph, VertexId row) {
  const auto columns = graph.neighbours(row);
  return std::binary_search(columns.begin(), columns.end(), row);
}

/// Calls `visit(vertex, csr_edge)` for the sources and targets of one vertex in increasing order,
/// each once; `csr_edge` is -1 where the edge exists only the other way round.
template <class Visit>
void for_each_neighbour(const Graph& graph, VertexId vertex, Visit&& visit) {
  const Csc& csc = graph.csc();
  EdgeOffset in = graph.row_offsets()[vertex];
  EdgeOffset out = csc.col_offsets[vertex];
  const EdgeOffset in_end = graph.row_offsets()[vertex + 1];
  const EdgeOffset out_end = csc.col_offsets[vertex + 1];
  while (in < in_end || out < out_end) {
    constexpr VertexId none = std::numeric_limits<VertexId>::max();
    const VertexId source = in < in_end ? graph.col_indices()[in] : none;
    const VertexId target = out < out_end ? csc.row_indices[out] : none;
    visit(std::min(source, target), source <= target ? in : -1);
    in += source <= target ? 1 : 0;
    out += target <= source ? 1 : 0;
  }
}

SharedArray<float> gathered(const SharedArray<float>& values, std::span<const VertexId> from) {
  if (values.empty()) return {};
  Buffer<float> result(static_cast<std::int64_t>(from.size()));
  parallel_for(result.size(), even_grain(result.size()),
               [&](std::int64_t i) { result[i] = values[from[static_cast<std::size_t>(i)]]; });
  return result;
}

/// The new number of every vertex of the graph; -1 where it is not selected.
Buffer<VertexId> numbers_of_selected(const Graph& graph, std::span<const VertexId> vertices) {
  Buffer<VertexId> number(graph.num_rows(), -1);
  for (std::size_t i = 0; i < vertices.size(); ++i) {
    const VertexId vertex = vertices[i];
    const bool in_range = vertex >= 0 && vertex < graph.num_rows();
    if (!in_range || number[vertex] >= 0) {
      throw Error(ErrorCode::invalid_argument,
                  in_range ? fmt::format("vertex {} is listed twice", vertex)
                           : fmt::format("vertex {} is outside [0, {})", vertex, graph.num_rows()),
                  fmt::format("induced_subgraph, position {}", i), "list each vertex at most once");
    }
    number[vertex] = static_cast<VertexId>(i);
  }
  return number;
}

/// A column and the place of its edge within the old row, in one word that sorts by column. A row
/// has fewer than 2^31 edges, because its columns are distinct.
std::uint64_t pack(VertexId col, EdgeOffset place) {
  return (static_cast<std::uint64_t>(col) << 32) | static_cast<std::uint64_t>(place);
}

}  // namespace

Graph with_self_loops(const Graph& graph) {
  detail::require_square(graph, "adding self loops");
  detail::require_no_scales(graph, "adding self loops");
  RowWriter writer(
      graph,
      offsets_from_counts(
          graph.num_rows(),
          [&](VertexId row) { return graph.degree(row) + (has_self_loop(graph, row) ? 0 : 1); }),
      graph.has_values());
  fill_rows(graph.num_rows(), [&](VertexId row) {
    EdgeOffset next = writer.row_begin(row);
    bool looped = has_self_loop(graph, row);
    for (EdgeOffset k = graph.row_offsets()[row]; k < graph.row_offsets()[row + 1]; ++k) {
      const VertexId col = graph.col_indices()[k];
      if (!looped && col > row) {
        writer.add(next++, row);
        looped = true;
      }
      writer.move(next++, col, k);
    }
    if (!looped) writer.add(next, row);
  });
  return std::move(writer).finish(graph.num_rows(), graph.num_cols());
}

Graph without_self_loops(const Graph& graph) {
  detail::require_square(graph, "removing self loops");
  RowWriter writer(
      graph,
      offsets_from_counts(
          graph.num_rows(),
          [&](VertexId row) { return graph.degree(row) - (has_self_loop(graph, row) ? 1 : 0); }),
      graph.has_values());
  fill_rows(graph.num_rows(), [&](VertexId row) {
    EdgeOffset next = writer.row_begin(row);
    for (EdgeOffset k = graph.row_offsets()[row]; k < graph.row_offsets()[row + 1]; ++k) {
      if (graph.col_indices()[k] != row) writer.move(next++, graph.col_indices()[k], k);
    }
  });
  return std::move(writer)
      .finish(graph.num_rows(), graph.num_cols())
      .with_scales(graph.row_scale(), graph.col_scale());
}

Graph symmetrised(const Graph& graph) {
  detail::require_square(graph, "symmetrising");
  RowWriter writer(graph,
                   offsets_from_counts(graph.num_rows(),
                                       [&](VertexId row) {
                                         EdgeOffset count = 0;
                                         for_each_neighbour(graph, row,
                                                            [&](VertexId, EdgeOffset) { ++count; });
                                         return count;
                                       }),
                   false);
  fill_rows(graph.num_rows(), [&](VertexId row) {
    EdgeOffset next = writer.row_begin(row);
    for_each_neighbour(graph, row, [&](VertexId col, EdgeOffset edge) {
      if (edge >= 0) {
        writer.move(next++, col, edge);
      } else {
        writer.add(next++, col);
      }
    });
  });
  return std::move(writer).finish(graph.num_rows(), graph.num_cols());
}

Graph transposed(const Graph& graph) {
  const Csc& csc = graph.csc();
  const EdgeOffset edges = graph.num_edges();
  Buffer<float> values(graph.has_values() ? edges : 0);
  Buffer<EdgeOffset> old_to_new(graph.has_edge_ids() ? edges : 0);
  parallel_for(edges, even_grain(edges), [&](EdgeOffset k) {
    const EdgeOffset old = csc.csr_positions[k];
    if (!values.empty()) values[k] = graph.values()[old];
    if (!old_to_new.empty()) old_to_new[old] = k;
  });
  return Graph(graph.num_cols(), graph.num_rows(), csc.col_offsets, csc.row_indices,
               std::move(values))
      .with_scales(graph.col_scale(), graph.row_scale())
      .with_edge_ids(moved_edge_ids(graph.edge_ids(), old_to_new));
}

Graph induced_subgraph(const Graph& graph, std::span<const VertexId> vertices) {
  detail::require_square(graph, "induced_subgraph");
  const Buffer<VertexId> number = numbers_of_selected(graph, vertices);
  const auto size = static_cast<VertexId>(vertices.size());
  const bool selects_all = size == graph.num_rows();
  const auto old_row = [&](VertexId row) { return vertices[static_cast<std::size_t>(row)]; };
  RowWriter writer(graph,
                   offsets_from_counts(size,
                                       [&](VertexId row) {
                                         if (selects_all) return graph.degree(old_row(row));
                                         const auto columns = graph.neighbours(old_row(row));
                                         return static_cast<EdgeOffset>(std::count_if(
                                             columns.begin(), columns.end(),
                                             [&](VertexId col) { return number[col] >= 0; }));
                                       }),
                   graph.has_values());
  parallel_ranges(size, even_grain(size, 64), [&](std::int64_t begin, std::int64_t end) {
    std::vector<std::uint64_t> selected;
    for (auto row = static_cast<VertexId>(begin); row < end; ++row) {
      selected.clear();
      EdgeOffset place = 0;
      for (const VertexId col : graph.neighbours(old_row(row))) {
        if (number[col] >= 0) selected.push_back(pack(number[col], place));
        ++place;
      }
      if (!std::is_sorted(selected.begin(), selected.end())) {
        std::sort(selected.begin(), selected.end());
      }
      const EdgeOffset old_begin = graph.row_offsets()[old_row(row)];
      EdgeOffset next = writer.row_begin(row);
      for (const std::uint64_t packed : selected) {
        writer.move(next++, static_cast<VertexId>(packed >> 32),
                    old_begin + static_cast<EdgeOffset>(packed & 0xFFFFFFFFu));
      }
    }
  });
  return std::move(writer)
      .finish(size, size)
      .with_scales(gathered(graph.row_scale(), vertices), gathered(graph.col_scale(), vertices));
}

}  // namespace tessera
