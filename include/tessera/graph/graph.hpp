// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <span>

#include "tessera/core/device.hpp"
#include "tessera/core/placed_array.hpp"
#include "tessera/core/shared_array.hpp"
#include "tessera/core/types.hpp"

namespace tessera {

namespace detail {
struct GraphAccess;
}

/// The same edges by source: column j lists its targets in increasing order. `csr_positions[k]`
/// says where the k-th of them stands in the CSR arrays, so values need no second copy.
struct Csc {
  SharedArray<EdgeOffset> col_offsets;
  SharedArray<VertexId> row_indices;
  SharedArray<EdgeOffset> csr_positions;
};

/// A sparse matrix A whose row i lists the sources of target i, sorted and unique (CSR), unless the
/// graph was built to keep repeated edges.
///
///     A[i][j] = row_scale[i] * value(i, j) * col_scale[j]
///
/// where each of the three is 1 if absent. Weights that factor this way (GCN, mean) need no value
/// per edge. A Graph is immutable; copies share their arrays, so passing one by value is cheap.
/// What belongs to edges and vertices stays on the device where the graph was built or adopted, and
/// comes to this process when it is first asked for here; row offsets are always here.
class Graph {
 public:
  /// No vertices.
  Graph();

  /// Takes arrays as they are. `row_offsets` has num_rows + 1 entries. `validate()` checks the
  /// rest. For a CSR that somebody else owns see `borrow_csr` in graph/borrow.hpp.
  Graph(VertexId num_rows, VertexId num_cols, SharedArray<EdgeOffset> row_offsets,
        PlacedArray<VertexId> col_indices, PlacedArray<float> values = {});

  VertexId num_rows() const noexcept { return num_rows_; }
  VertexId num_cols() const noexcept { return num_cols_; }
  EdgeOffset num_edges() const noexcept { return num_edges_; }
  bool is_square() const noexcept { return num_rows_ == num_cols_; }
  /// True when a row may list a column several times: each is an edge of its own for sums, means,
  /// softmax and attention. Such a graph takes no part in max, min, tiles, reordering or set
  /// operations on edges.
  bool has_repeated_edges() const noexcept { return repeated_edges_; }

  const SharedArray<EdgeOffset>& row_offsets() const noexcept { return row_offsets_; }
  const SharedArray<VertexId>& col_indices() const { return col_indices_.here(); }
  /// Where the columns lie: on the CPU unless the graph was built or adopted on a GPU.
  Device device() const noexcept { return col_indices_.device(); }
  /// The same, with the memory and the stream it was made with. Graphs made of this one, such as a
  /// normalised one, are made in the same place.
  Place place() const { return col_indices_.place(); }

  EdgeOffset degree(VertexId row) const noexcept {
    return row_offsets_[row + 1] - row_offsets_[row];
  }
  /// The sources of one target.
  std::span<const VertexId> neighbours(VertexId row) const {
    return {col_indices().data() + row_offsets_[row], static_cast<std::size_t>(degree(row))};
  }

  bool has_values() const noexcept { return !values_.empty(); }
  const SharedArray<float>& values() const { return values_.here(); }
  bool has_row_scale() const noexcept { return !row_scale_.empty(); }
  const SharedArray<float>& row_scale() const { return row_scale_.here(); }
  bool has_col_scale() const noexcept { return !col_scale_.empty(); }
  const SharedArray<float>& col_scale() const { return col_scale_.here(); }
  /// True when any entry may differ from 1.
  bool is_weighted() const noexcept { return has_values() || has_row_scale() || has_col_scale(); }
  /// A[row][col_indices()[edge]], scales included.
  float weight(VertexId row, EdgeOffset edge) const;

  /// `edge_ids()[e]` is the CSR position of the e-th edge the graph was built from; -1 if it was
  /// dropped. Present only when asked for at build time.
  bool has_edge_ids() const noexcept { return !edge_ids_.empty(); }
  const SharedArray<EdgeOffset>& edge_ids() const { return edge_ids_.here(); }

  /// The edges by source. Made at the first call, then kept and shared by all copies; any number of
  /// threads may ask at once.
  const Csc& csc() const;

  /// The same structure (and CSC) with other values; empty removes them.
  Graph with_values(PlacedArray<float> values) const;
  Graph with_scales(PlacedArray<float> row_scale, PlacedArray<float> col_scale) const;
  Graph with_edge_ids(PlacedArray<EdgeOffset> edge_ids) const;
  /// The same graph, marked as one whose rows may list a column several times (`Duplicates::keep`).
  Graph with_repeated_edges() const;

  /// Throws `bad_data` unless offsets rise from 0 to the number of edges, every row's columns are
  /// sorted, unique and in range, and all arrays have the sizes they must have.
  void validate() const;

  /// Same shape, edges, values, scales and edge ids.
  friend bool operator==(const Graph& a, const Graph& b);

 private:
  friend struct detail::GraphAccess;
  struct Derived;

  VertexId num_rows_ = 0;
  VertexId num_cols_ = 0;
  EdgeOffset num_edges_ = 0;
  bool repeated_edges_ = false;
  SharedArray<EdgeOffset> row_offsets_;
  PlacedArray<VertexId> col_indices_;
  PlacedArray<float> values_;
  PlacedArray<float> row_scale_;
  PlacedArray<float> col_scale_;
  PlacedArray<EdgeOffset> edge_ids_;
  std::shared_ptr<Derived> derived_;
};

/// One line: shape, edges, what the entries are.
std::ostream& operator<<(std::ostream& out, const Graph& graph);

}  // namespace tessera
