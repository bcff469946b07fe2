// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>

#include "tessera/graph/borrow.hpp"
#include "tessera/graph/build.hpp"
#include "tessera/graph/graph.hpp"

/// What graph building needs of a GPU. Implemented in src/cuda, or by saying that CUDA is absent.
namespace tessera::detail {

/// What the caller gave, with the words the caller knows it by. For a GPU the arrays may lie on it.
struct EdgeInput {
  VertexId num_rows;
  VertexId num_cols;
  std::span<const VertexId> rows;
  std::span<const VertexId> cols;
  std::span<const float> values;
  const char* row_word;
  const char* col_word;

  EdgeOffset count() const { return static_cast<EdgeOffset>(rows.size()); }
  VertexId row(EdgeOffset k) const { return rows[static_cast<std::size_t>(k)]; }
  VertexId col(EdgeOffset k) const { return cols[static_cast<std::size_t>(k)]; }
  float value(EdgeOffset k) const { return values[static_cast<std::size_t>(k)]; }
};

/// The edge at this position of the input has an index out of range.
[[noreturn]] void report_out_of_range(const EdgeInput& in, EdgeOffset position, VertexId row,
                                      VertexId col);
/// Reports the first edge with an index out of range.
void require_in_range(const EdgeInput& in);
/// A value of the input, or a sum of some, is not finite.
[[noreturn]] void report_nonfinite(EdgeOffset position, float value, const char* fix);
inline constexpr const char* finite_fix =
    "give finite values, or allow others (BuildOptions::nonfinite, --nonfinite allow)";
inline constexpr const char* smaller_fix = "give smaller values";
[[noreturn]] void report_duplicate(const EdgeInput& in, VertexId row, VertexId col);

/// What is made of edges while they are built.
struct EdgeWork {
  bool loops = false;     ///< self loops are added where they are missing; square graphs
  bool weights = false;   ///< GCN's scales
  bool values = true;     ///< whether edges keep theirs
  float loop_weight = 1;  ///< of loops that are added, where edges have values

  bool is_any() const noexcept { return loops || weights || !values; }
};

/// Sizes have been checked.
Graph build_on_device(const EdgeInput& in, const BuildOptions& options, const EdgeWork& work = {});

/// Sorts the edges of a graph that lies on a GPU by source, too, for who asks for them there.
void know_columns_on_device(const Graph& graph);

/// 64-bit indices in this process or on the GPU, as 32-bit ones on the GPU.
SharedArray<VertexId> narrowed_on_device(std::span<const std::int64_t> indices, std::int64_t bound,
                                         const char* word, const Place& place);

/// Throws unless the offsets of borrowed rows begin at 0 and end at the number of edges.
SharedArray<EdgeOffset> checked_offsets(SharedArray<EdgeOffset> offsets, EdgeOffset num_edges);

/// Sizes have been checked.
Graph borrow_on_device(VertexId num_rows, VertexId num_cols, const BorrowedCsr& csr,
                       const BorrowOptions& options);

/// For a square graph without scales whose columns lie on a GPU.
Graph gcn_normalised_on_device(const Graph& graph, bool add_self_loops, float loop_weight);
Graph with_self_loops_on_device(const Graph& graph, float weight);

/// For a square graph whose columns lie on a GPU. Nothing where a vertex is out of range or listed
/// twice.
std::optional<Graph> induced_on_device(const Graph& graph, std::span<const VertexId> vertices,
                                       const Place& place);
/// For a graph whose columns lie on a GPU, and rows that it has.
Graph selected_rows_on_device(const Graph& graph, std::span<const VertexId> rows, Stream stream);

/// A copy on a GPU of a graph that lies elsewhere.
Graph in_place_on_device(const Graph& graph, const Place& place);

/// Row i has the sources (i + k * stride) mod num_vertices for k in [0, degree), drawn up on the
/// GPU and built there: a graph of any size without an array of its size in this process.
Graph circulant_on_device(VertexId num_vertices, VertexId degree, VertexId stride,
                          const Place& place);

}  // namespace tessera::detail
