// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/core/matrix.hpp"
#include "tessera/graph/graph.hpp"

/// Some rows of a graph, small enough for the sequential reference.
namespace tessera::bench {

struct RowSample {
  std::vector<VertexId> rows;     ///< of the whole graph, in increasing order
  std::vector<VertexId> cols;     ///< those that occur in the rows, in increasing order
  Graph graph;                    ///< rows.size() x cols.size(), with the values and scales of both
  std::vector<EdgeOffset> edges;  ///< where each edge of `graph` stands in the whole one
};

/// How many rows a check looks at.
struct SampleSize {
  std::int64_t rows = 4096;
  /// About so many of ordinary rows, and as many of hubs: the reference takes them one by one.
  EdgeOffset edges = 1 << 20;
  std::int64_t fewest_rows = 256;  ///< even if they have more edges than that

  /// What is enough on this device for features of this width: many cases are measured on a GPU.
  static SampleSize on(Device device, std::int64_t features);
};

/// Rows spread over the graph, and the hubs, the longest first: rows far longer than the mean. All
/// rows if they and their edges are no more than wanted.
RowSample sample_rows(const Graph& graph, std::uint64_t seed, const SampleSize& size = {});

/// Blocks of neighbouring rows spread over the graph, with about so many edges in all, for graphs
/// that would take too long as a whole. Windows of rows stay what they were.
RowSample sample_blocks(const Graph& graph, EdgeOffset wanted_edges);

/// Edges of the longest row.
EdgeOffset longest_row(const Graph& graph);

/// These rows, given in increasing order.
RowSample take_rows(const Graph& graph, std::vector<VertexId> rows);

/// The chosen rows of a matrix as double.
template <class T, class Index>
Matrix<double> gather(MatrixView<T> matrix, const std::vector<Index>& rows) {
  Matrix<double> result(static_cast<std::int64_t>(rows.size()), matrix.cols);
  for (std::int64_t i = 0; i < result.rows(); ++i) {
    const auto* const from =
        matrix.row(static_cast<std::int64_t>(rows[static_cast<std::size_t>(i)]));
    for (std::int64_t j = 0; j < result.cols(); ++j) result(i, j) = static_cast<double>(from[j]);
  }
  return result;
}

}  // namespace tessera::bench
