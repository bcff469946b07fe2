// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

#include "tessera/graph/graph.hpp"

namespace tessera::cuda {

/// Row offsets on a GPU: with 32 bits where they fit, since short rows read more offsets than
/// edges.
struct Offsets {
  const std::int32_t* narrow = nullptr;
  const EdgeOffset* wide = nullptr;
};

/// The structure of a sparse matrix on a GPU: of A by its rows, or of A^T by A's columns. Its
/// arrays may be somebody else's.
struct DeviceRows {
  VertexId num_rows = 0;
  VertexId num_cols = 0;
  EdgeOffset num_edges = 0;
  SharedArray<std::int32_t> narrow_offsets;  ///< one of the two is empty
  SharedArray<EdgeOffset> wide_offsets;
  SharedArray<VertexId> indices;
  /// For A^T: where each entry stands in A's CSR arrays. Empty for A.
  SharedArray<EdgeOffset> positions;

  /// The offsets in this process: schedules are made of them.
  SharedArray<EdgeOffset> host_offsets;

  Offsets offsets() const noexcept { return {narrow_offsets.data(), wide_offsets.data()}; }
};

/// The rows that a graph was built with on this GPU; else copied at the first call for a place's
/// memory, then kept with the graph.
std::shared_ptr<const DeviceRows> device_rows(const Graph& graph, const Place& place);

/// Sorted on the GPU at the first call, then kept: the same arrays as the graph's CSC.
std::shared_ptr<const DeviceRows> device_columns(const Graph& graph, const Place& place);

/// A graph whose columns lie on a GPU, and come to this process only if they are asked for.
Graph graph_on(const Place& place, VertexId num_rows, VertexId num_cols,
               const Buffer<EdgeOffset>& row_offsets, Buffer<VertexId> cols);
Graph graph_on(const Place& place, DeviceRows rows);

/// With 32 bits where they fit, as kernels read them; `offsets` are kept, too.
void set_offsets(DeviceRows& rows, SharedArray<EdgeOffset> offsets, const Place& place);

/// Something small on the GPU that comes here together with something else.
struct Brought {
  const void* there = nullptr;
  std::size_t bytes = 0;
  void* here = nullptr;
};

/// As `set_offsets` of offsets that were made on the GPU, of at most `most_edges` edges. The one
/// wait that this takes is for `also`, too.
void set_made_offsets(DeviceRows& rows, const Buffer<EdgeOffset>& offsets, EdgeOffset most_edges,
                      const Place& place, const Brought& also = {});

/// What `device_rows` and `device_columns` have made of a graph before; null if they have not.
std::shared_ptr<const DeviceRows> cached_rows(const Graph& graph, const Place& place);
std::shared_ptr<const DeviceRows> cached_columns(const Graph& graph, const Place& place);

/// A^T by A's columns: a stable sort of A's entries, which lie by rows, by their columns. Only
/// queued; its offsets are on the GPU alone.
DeviceRows transposed_rows(const DeviceRows& rows, const Place& place);

/// What `device_columns` returns from now on: columns whose offsets have come to this process.
void keep_columns(const Graph& graph, DeviceRows columns, const Place& place);

/// Plans need no CSC for these afterwards.
void know_columns(const Graph& graph, const SharedArray<EdgeOffset>& col_offsets);

}  // namespace tessera::cuda
