// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/graph/transform.hpp"

#include "graph/device_build.hpp"
#include "graph/requirements.hpp"
#include "graph/row_writer.hpp"
#include "graph/select.hpp"

/// Parts of graphs, and graphs in other places.
namespace tessera {
namespace {

using detail::offsets_from_counts;
using detail::RowWriter;

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

void require_in_range(const Graph& graph, std::span<const VertexId> rows) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] >= 0 && rows[i] < graph.num_rows()) continue;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("row {} is outside [0, {})", rows[i], graph.num_rows()),
                fmt::format("selected_rows, position {}", i), "select rows of the graph");
  }
}

}  // namespace

Graph induced_subgraph(const Graph& graph, std::span<const VertexId> vertices) {
  return induced_subgraph(graph, vertices, graph.place().stream);
}

Graph induced_subgraph(const Graph& graph, std::span<const VertexId> vertices, Stream stream) {
  Place place = graph.place();
  place.stream = stream;
  return detail::induced_in(graph, vertices, place);
}

Graph detail::induced_in(const Graph& graph, std::span<const VertexId> vertices,
                         const Place& place) {
  detail::require_square(graph, "induced_subgraph");
  if (graph.device().kind != DeviceKind::cpu) {
    if (auto selected = detail::induced_on_device(graph, vertices, place)) return *selected;
    numbers_of_selected(graph, vertices);  // says what is wrong
  }
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
      EdgeOffset at = 0;
      for (const VertexId col : graph.neighbours(old_row(row))) {
        if (number[col] >= 0) selected.push_back(pack(number[col], at));
        ++at;
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
  const Graph selected = std::move(writer)
                             .finish(size, size)
                             .with_scales(detail::gathered(graph.row_scale(), vertices),
                                          detail::gathered(graph.col_scale(), vertices));
  return graph.has_repeated_edges() ? selected.with_repeated_edges() : selected;
}

Graph selected_rows(const Graph& graph, std::span<const VertexId> rows) {
  return selected_rows(graph, rows, graph.place().stream);
}

Graph selected_rows(const Graph& graph, std::span<const VertexId> rows, Stream stream) {
  detail::require_whole(graph);
  require_in_range(graph, rows);
  if (graph.device().kind != DeviceKind::cpu) {
    return detail::selected_rows_on_device(graph, rows, stream);
  }
  const auto size = static_cast<VertexId>(rows.size());
  const auto old_row = [&](VertexId row) { return rows[static_cast<std::size_t>(row)]; };
  Buffer<EdgeOffset> offsets =
      detail::offsets_from_counts(size, [&](VertexId row) { return graph.degree(old_row(row)); });
  Buffer<VertexId> cols(offsets[size]);
  Buffer<float> values(graph.has_values() ? offsets[size] : 0);
  parallel_for(size, even_grain(size, 64), [&](std::int64_t row) {
    const VertexId old = old_row(static_cast<VertexId>(row));
    std::ranges::copy(graph.neighbours(old), cols.data() + offsets[row]);
    if (values.empty()) return;
    std::copy_n(graph.values().data() + graph.row_offsets()[old], graph.degree(old),
                values.data() + offsets[row]);
  });
  const Graph selected =
      Graph(size, graph.num_cols(), std::move(offsets), std::move(cols), std::move(values))
          .with_scales(detail::gathered(graph.row_scale(), rows), graph.col_scale());
  return graph.has_repeated_edges() ? selected.with_repeated_edges() : selected;
}

Graph in_place(const Graph& graph, const Place& place) {
  if (graph.device() == place.device) return graph;
  if (place.device.kind == DeviceKind::cpu) {
    const Graph here = Graph(graph.num_rows(), graph.num_cols(), graph.row_offsets(),
                             graph.col_indices(), graph.values())
                           .with_scales(graph.row_scale(), graph.col_scale())
                           .with_edge_ids(graph.edge_ids());
    return graph.has_repeated_edges() ? here.with_repeated_edges() : here;
  }
  return detail::in_place_on_device(graph, place);
}

}  // namespace tessera
