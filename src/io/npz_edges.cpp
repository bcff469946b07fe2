// SPDX-License-Identifier: Apache-2.0
#include "io/npz_edges.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"

#include "io/dataset_arrays.hpp"
#include "io/file.hpp"

namespace tessera::io {
namespace {

constexpr std::int64_t grain = 1 << 16;

template <auto Member>
void take_ids(EdgeArrays& edges, ArrayReader& array) {
  edges.*Member = read_vector<VertexId>(array);
}

template <auto Member>
void take_count(EdgeArrays& edges, ArrayReader& array) {
  edges.*Member = read_integer(array);
  if (edges.*Member < 0) array.reject("is negative");
}

template <auto Member, class T>
void take_numbers(EdgeArrays& edges, ArrayReader& array) {
  edges.*Member = read_vector<T>(array);
}

/// 2 x edges as PyG has it, or edges x 2.
void take_edge_index(EdgeArrays& edges, ArrayReader& array) {
  const std::vector<std::int64_t>& shape = array.shape();
  if (shape.size() != 2 || (shape[0] != 2 && shape[1] != 2)) {
    array.reject("must have the shape (2, edges)");
  }
  edges.has_edge_index = true;
  if (array.num_elements() == 0) return;  // Without edges it may be of any type.
  SharedArray<VertexId> flat = read_flat<VertexId>(array);
  if (shape[0] == 2) {
    edges.edge_index = std::move(flat);
    return;
  }
  Buffer<VertexId> sorted(flat.size());
  const std::int64_t count = shape[0];
  parallel_for(count, grain, [&](std::int64_t k) {
    sorted[k] = flat[2 * k];
    sorted[count + k] = flat[2 * k + 1];
  });
  edges.edge_index = std::move(sorted);
}

void take_format(EdgeArrays& edges, ArrayReader& array) {
  constexpr std::int64_t longest = 16;
  if (array.num_elements() != 1 || array.num_bytes() > longest ||
      (array.kind() != 'S' && array.kind() != 'U')) {
    array.reject("must be the text csr, csc or coo");
  }
  const SharedArray<std::byte> bytes = array.bytes();
  for (const std::byte byte : bytes) {
    if (byte != std::byte{}) edges.format += static_cast<char>(byte);
  }
  if (edges.format != "csr" && edges.format != "csc" && edges.format != "coo") {
    throw Error(ErrorCode::unsupported,
                fmt::format("'{}' matrices are not read", edges.format.substr(0, longest)),
                array.where(),
                "save the matrix as csr, csc or coo: scipy.sparse.save_npz(path, "
                "matrix.tocsr())");
  }
}

constexpr EdgeKind matrix_kinds[] = {
    {"row", take_ids<&EdgeArrays::row>},
    {"col", take_ids<&EdgeArrays::col>},
    {"num_nodes", take_count<&EdgeArrays::num_nodes>},
    {"num_rows", take_count<&EdgeArrays::num_rows>},
    {"num_cols", take_count<&EdgeArrays::num_cols>},
    {"edge_weight", take_numbers<&EdgeArrays::weights, float>},
};

constexpr EdgeKind list_kinds[] = {
    {"src_li", take_ids<&EdgeArrays::src_li>},
    {"dst_li", take_ids<&EdgeArrays::dst_li>},
    {"num_nodes", take_count<&EdgeArrays::num_nodes>},
    {"edge_weight", take_numbers<&EdgeArrays::weights, float>},
};

constexpr EdgeKind index_kinds[] = {
    {"edge_index", take_edge_index},
    {"edge_weight", take_numbers<&EdgeArrays::weights, float>},
    {"num_nodes", take_count<&EdgeArrays::num_nodes>},
};

constexpr EdgeKind scipy_kinds[] = {
    {"format", take_format},
    {"shape", take_numbers<&EdgeArrays::shape, std::int64_t>},
    {"data", take_numbers<&EdgeArrays::weights, float>},
    {"indptr", take_numbers<&EdgeArrays::indptr, EdgeOffset>},
    {"indices", take_ids<&EdgeArrays::col>},
    {"row", take_ids<&EdgeArrays::row>},
    {"col", take_ids<&EdgeArrays::col>},
};

void require_offsets(const SharedArray<EdgeOffset>& indptr, std::int64_t entries,
                     const std::string& path) {
  if (indptr.empty() || indptr[0] != 0 || indptr.back() != entries ||
      !std::is_sorted(indptr.begin(), indptr.end())) {
    damaged(path, fmt::format("'indptr' does not rise from 0 to {}, the entries", entries));
  }
}

void settle_scipy(EdgeArrays& edges, const std::string& path) {
  if (edges.shape.size() != 2 || edges.shape[0] < 0 || edges.shape[1] < 0) {
    damaged(path, "'shape' is not that of a matrix");
  }
  edges.num_rows = edges.shape[0];
  edges.num_cols = edges.shape[1];
  if (edges.format != "coo") {
    const bool by_column = edges.format == "csc";
    const std::int64_t major = by_column ? edges.num_cols : edges.num_rows;
    if (edges.indptr.size() != major + 1) {
      damaged(path, fmt::format("'indptr' has {} entries for {} {}", edges.indptr.size(), major,
                                by_column ? "columns" : "rows"));
    }
    require_offsets(edges.indptr, edges.col.size(), path);
    edges.row = row_of_every_entry(edges.indptr);
    if (by_column) std::swap(edges.row, edges.col);
  }
  // An adjacency without weights has a 1 for every edge.
  const bool all_ones = std::all_of(edges.weights.begin(), edges.weights.end(),
                                    [](float weight) { return weight == 1; });
  if (edges.weights.size() == edges.row.size() && all_ones) edges.weights = {};
}

}  // namespace

std::span<const EdgeKind> edge_kinds(const std::function<bool(const char*)>& has,
                                     const std::string& path) {
  const bool of_scipy = has("format") && has("shape") && has("data");
  const bool matrix = !of_scipy && has("row") && has("col");
  const bool list = has("src_li") && has("dst_li");
  const bool index = has("edge_index");
  if (of_scipy + matrix + list + index > 1) {
    throw Error(ErrorCode::bad_data, "holds edges twice", path,
                "keep one of row and col, src_li and dst_li, edge_index, and SciPy's arrays");
  }
  if (of_scipy) return scipy_kinds;
  if (matrix) return matrix_kinds;
  if (list) return list_kinds;
  if (index) return index_kinds;
  throw Error(ErrorCode::bad_data, "holds no edges", path,
              "a graph needs row, col and num_nodes, or edge_index (docs/formats.md)");
}

bool is_own_edge_array(std::string_view name) {
  const auto is_called_so = [&](const EdgeKind& kind) { return kind.name == name; };
  return std::any_of(std::begin(matrix_kinds), std::end(matrix_kinds), is_called_so) ||
         std::any_of(std::begin(list_kinds), std::end(list_kinds), is_called_so) ||
         std::any_of(std::begin(index_kinds), std::end(index_kinds), is_called_so);
}

void settle(EdgeArrays& edges, std::int64_t vertices_with_data, const std::string& path) {
  if (!edges.format.empty()) settle_scipy(edges, path);
  if (!edges.has_edge_index) return;
  const std::int64_t count = edges.edge_index.size() / 2;
  const auto owner = std::make_shared<const SharedArray<VertexId>>(edges.edge_index);
  edges.src_li = {owner, owner->data(), count};
  edges.dst_li = {owner, owner->data() + count, count};
  if (edges.num_nodes >= 0) return;
  if (vertices_with_data > 0) {
    edges.num_nodes = vertices_with_data;
  } else if (count > 0) {
    const auto* const highest = std::max_element(edges.edge_index.begin(), edges.edge_index.end());
    edges.num_nodes = std::int64_t{*highest} + 1;
  }
}

}  // namespace tessera::io
