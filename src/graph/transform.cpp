// SPDX-License-Identifier: Apache-2.0
#include "tessera/graph/transform.hpp"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"

#include "graph/device_build.hpp"
#include "graph/loops.hpp"
#include "graph/requirements.hpp"
#include "graph/row_writer.hpp"

namespace tessera {
namespace {

using detail::moved_edge_ids;
using detail::offsets_from_counts;
using detail::RowWriter;

template <class FillRow>
void fill_rows(VertexId num_rows, FillRow&& fill_row) {
  parallel_for(num_rows, even_grain(num_rows),
               [&](std::int64_t row) { fill_row(static_cast<VertexId>(row)); });
}

bool has_self_loop(const Graph& graph, VertexId row) {
  const auto columns = graph.neighbours(row);
  return std::binary_search(columns.begin(), columns.end(), row);
}

/// Entries of a row in its own column: several where edges repeat.
EdgeOffset self_loops_of(const Graph& graph, VertexId row) {
  const auto columns = graph.neighbours(row);
  const auto [first, last] = std::equal_range(columns.begin(), columns.end(), row);
  return last - first;
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

}  // namespace

Graph with_self_loops(const Graph& graph, float weight) {
  detail::require_square(graph, "adding self loops");
  detail::require_no_scales(graph, "adding self loops");
  if (weight != 1 && !graph.has_values() && graph.num_edges() > 0) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("loops of weight {} among edges without values", weight),
                "adding self loops", "give the edges values first");
  }
  if (graph.device().kind != DeviceKind::cpu) {
    return detail::with_self_loops_on_device(graph, weight);
  }
  return detail::with_first_loops(graph, weight);
}

Graph detail::with_first_loops(const Graph& graph, float weight) {
  const auto is_looped = [&](VertexId row) {
    return row >= graph.num_cols() || has_self_loop(graph, row);
  };
  RowWriter writer(graph,
                   offsets_from_counts(
                       graph.num_rows(),
                       [&](VertexId row) { return graph.degree(row) + (is_looped(row) ? 0 : 1); }),
                   graph.has_values() || weight != 1);
  fill_rows(graph.num_rows(), [&](VertexId row) {
    EdgeOffset next = writer.row_begin(row);
    bool looped = is_looped(row);
    for (EdgeOffset k = graph.row_offsets()[row]; k < graph.row_offsets()[row + 1]; ++k) {
      const VertexId col = graph.col_indices()[k];
      if (!looped && col > row) {
        writer.add(next++, row, weight);
        looped = true;
      }
      writer.move(next++, col, k);
    }
    if (!looped) writer.add(next, row, weight);
  });
  const Graph with_loops = std::move(writer).finish(graph.num_rows(), graph.num_cols());
  return graph.has_repeated_edges() ? with_loops.with_repeated_edges() : with_loops;
}

Graph without_self_loops(const Graph& graph) {
  detail::require_square(graph, "removing self loops");
  RowWriter writer(graph,
                   offsets_from_counts(
                       graph.num_rows(),
                       [&](VertexId row) { return graph.degree(row) - self_loops_of(graph, row); }),
                   graph.has_values());
  fill_rows(graph.num_rows(), [&](VertexId row) {
    EdgeOffset next = writer.row_begin(row);
    for (EdgeOffset k = graph.row_offsets()[row]; k < graph.row_offsets()[row + 1]; ++k) {
      if (graph.col_indices()[k] != row) writer.move(next++, graph.col_indices()[k], k);
    }
  });
  const Graph without = std::move(writer)
                            .finish(graph.num_rows(), graph.num_cols())
                            .with_scales(graph.row_scale(), graph.col_scale());
  return graph.has_repeated_edges() ? without.with_repeated_edges() : without;
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

}  // namespace tessera
