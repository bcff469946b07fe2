// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "tessera/core/device.hpp"
#include "tessera/core/memory.hpp"
#include "tessera/core/progress.hpp"
#include "tessera/graph/graph.hpp"
#include "tessera/graph/indices.hpp"

namespace tessera {

/// What to do with several edges between the same two vertices.
enum class Duplicates {
  reject,  ///< an error that names the first of them
  sum,     ///< add their values; an unweighted graph with duplicates becomes weighted
  first,   ///< keep the one that came first
  keep,    ///< keep all of them, next to each other in their row, in the order given
};

/// What to do with weights that are not finite.
enum class Nonfinite {
  reject,  ///< an error that names the first of them
  allow,   ///< keep them; plans with `exact_nonfinite` spread them as far as they reach, no further
};

struct BuildOptions {
  Duplicates duplicates = Duplicates::reject;
  bool keep_edge_ids = false;
  Progress progress = {};
  /// Where to build. On a GPU the edges given may lie in this process or on that GPU; the result is
  /// the same bit for bit, and its columns, values and edge ids stay on the GPU until somebody asks
  /// for them here.
  Device device = {};
  /// The memory of all that is made on a GPU: what building needs, the columns, and what other
  /// graphs made of this one keep there. Null: `default_memory(device)`.
  MemoryResource* memory = nullptr;
  /// Building queues its work here; edges that lie on the GPU are read in its order. The stream
  /// must outlive the graph.
  Stream stream = {};
  Nonfinite nonfinite = Nonfinite::reject;

  Place place() const { return {device, memory, stream}; }
};

/// Edges (source, target) as in an edge list or PyG's `edge_index`, with indices of 32 or 64 bits:
/// target aggregates from source. `weights` is empty or has one value per edge.
Graph from_edges(VertexId num_vertices, const Indices& sources, const Indices& targets,
                 std::span<const float> weights = {}, const BuildOptions& options = {});

/// Matrix entries A[rows[k]][cols[k]]: row = target, column = source. May be rectangular.
Graph from_coo(VertexId num_rows, VertexId num_cols, const Indices& rows, const Indices& cols,
               std::span<const float> values = {}, const BuildOptions& options = {});

}  // namespace tessera
