// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/rows.hpp"
#include "tessera/core/device.hpp"
#include "tessera/core/types.hpp"

namespace tessera::cuda {

/// A CSR on the GPU of which some rows, and perhaps columns, are selected.
struct Selection {
  Offsets old_offsets;
  const VertexId* old_cols = nullptr;
  const float* old_values = nullptr;   ///< may be null
  const VertexId* selected = nullptr;  ///< the old number of each new row
  VertexId num_rows = 0;               ///< of the result
  /// One more than the new number of each old column, 0 for those that go; null: all stay.
  const VertexId* new_numbers = nullptr;
  EdgeOffset* offsets = nullptr;  ///< of the result
  VertexId* cols = nullptr;
  float* values = nullptr;          ///< null where there are none
  EdgeOffset* old_edges = nullptr;  ///< where each edge stood; null where nobody asks
};

/// What selecting found, all 0 before.
struct SelectionReport {
  EdgeOffset repeated_vertices = 0;
  EdgeOffset falling_columns = 0;  ///< rows whose columns do not rise in the new order
};

/// new_numbers[vertices[i]] = i + 1; all were 0.
void number_selected(const VertexId* vertices, VertexId count, VertexId* new_numbers,
                     SelectionReport* report, Stream stream);

/// offsets[row] = how many of its edges stay; offsets[num_rows] = 0.
void count_selected(const Selection& selection, Stream stream);
/// Once the counts have become offsets. Edges keep their order in each row.
void write_selected(const Selection& selection, SelectionReport* report, Stream stream);

/// keys[k] sorts by the row and the column of edge k, positions[k] = k.
void key_edges(const EdgeOffset* offsets, VertexId num_rows, const VertexId* cols, EdgeOffset count,
               int col_bits, std::uint64_t* keys, EdgeOffset* positions, Stream stream);

/// to[k] = from[at[k]].
template <class T, class Index>
void gather(const T* from, const Index* at, std::int64_t count, T* to, Stream stream);

/// Edge ids, in place, after the edge that stood at old_edges[k] has moved to k; -1 where it went.
/// `moved` is memory for one number per old edge, all 0.
void renumber_edge_ids(const EdgeOffset* old_edges, EdgeOffset count, EdgeOffset* moved,
                       EdgeOffset* ids, EdgeOffset num_ids, Stream stream);

/// to[i] = from[i], which fits.
void narrow_offsets(const EdgeOffset* from, std::int64_t count, std::int32_t* to, Stream stream);

}  // namespace tessera::cuda
