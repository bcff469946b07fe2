// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "tessera/core/shared_array.hpp"
#include "tessera/core/types.hpp"

#include "io/array.hpp"

/// The ways in which .npz files hold edges. What is common to all is left: two ends per edge.
namespace tessera::io {

/// What has been read of the edges so far.
struct EdgeArrays {
  SharedArray<VertexId> row, col;        ///< targets and sources
  SharedArray<VertexId> src_li, dst_li;  ///< the same as an edge list
  SharedArray<VertexId> edge_index;      ///< sources, then targets
  bool has_edge_index = false;           ///< it may be empty
  SharedArray<float> weights;            ///< of a matrix of SciPy's, or `edge_weight`
  std::string format;                    ///< SciPy's: "csr", "csc" or "coo"
  SharedArray<std::int64_t> shape;
  SharedArray<EdgeOffset> indptr;
  std::int64_t num_nodes = -1, num_rows = -1, num_cols = -1;
};

struct EdgeKind {
  std::string_view name;
  void (*take)(EdgeArrays&, ArrayReader&);
};

/// The arrays of the way that this file uses, which has arrays for which `has` is true. Throws
/// `bad_data` where it has none.
std::span<const EdgeKind> edge_kinds(const std::function<bool(const char* name)>& has,
                                     const std::string& path);

/// True for the names that our own files use.
bool is_own_edge_array(std::string_view name);

/// Turns SciPy's matrices and `edge_index` into `row` and `col`, and counts the vertices where
/// nothing says how many there are. `vertices_with_data` is how many have features or labels; 0:
/// none.
void settle(EdgeArrays& edges, std::int64_t vertices_with_data, const std::string& path);

}  // namespace tessera::io
