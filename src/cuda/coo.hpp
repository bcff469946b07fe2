// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "cuda/rows.hpp"
#include "tessera/core/device.hpp"
#include "tessera/graph/coo.hpp"

/// What is made of edges in no order on a GPU, one thread per edge or vertex. All run on the GPU
/// that is current, in the order of the stream.
namespace tessera::cuda {

/// Edges, and the numbers of their ends; null: 1.
struct WeighedEdges {
  const VertexId* rows = nullptr;
  const VertexId* cols = nullptr;
  EdgeOffset count = 0;
  const float* values = nullptr;
  const float* row_numbers = nullptr;
  const float* col_numbers = nullptr;
};

/// weights[k] = what edge k weighs.
void weigh_edges(const WeighedEdges& edges, WeightFunction function, float* weights, Stream stream);

/// rows[k] = the row of edge k of a CSR.
void expand_rows(const Offsets& offsets, VertexId num_rows, EdgeOffset count, VertexId* rows,
                 Stream stream);

/// What is counted of edges, by row; null: not asked for. All are 0 at first.
struct RowCounts {
  std::uint32_t* edges = nullptr;
  double* sums = nullptr;          ///< of values
  std::uint32_t* loops = nullptr;  ///< 1 where the edges have a self loop
};

/// By atomics: sums of values in no order, but in double.
void count_edges(const WeighedEdges& edges, const RowCounts& counts, Stream stream);

/// What a rule makes of the counts, for each vertex; null: not asked for.
struct RuledVertices {
  float loop_weight = 1;
  std::uint32_t* degrees = nullptr;  ///< with the loop that is added
  float* loops = nullptr;            ///< the weight of the loop that is added, else 0
  float* scales = nullptr;           ///< GCN's
};
void rule_vertices(const RowCounts& counts, VertexId num_vertices, const RuledVertices& vertices,
                   Stream stream);

}  // namespace tessera::cuda
