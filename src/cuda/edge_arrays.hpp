// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tessera/core/memory.hpp"
#include "tessera/core/types.hpp"

#include "cuda/rows.hpp"

/// The steps of which building, transposing and normalising graphs on a GPU are made. All run on
/// the GPU that is current, in the order of the stream, or of the place's.
namespace tessera::cuda {

/// An edge as one number that sorts by row, then by column.
using EdgeKey = std::uint64_t;

/// How many of a key's lower bits hold the column, and how many there are in all.
struct KeyBits {
  int col = 0;
  int all = 0;

  KeyBits(VertexId num_rows, VertexId num_cols);
};

/// In place of a position where there is none.
constexpr EdgeOffset no_edge = INT64_MAX;

/// Edges as they were given. `values` are looked at; null: they may be anything.
struct GivenEdges {
  const VertexId* rows = nullptr;
  const VertexId* cols = nullptr;
  const float* values = nullptr;
  EdgeOffset count = 0;
  VertexId num_rows = 0;
  VertexId num_cols = 0;
  /// A self loop of each row comes behind the edges, to be dropped where there is one already.
  bool looped = false;

  constexpr EdgeOffset count_with_loops() const { return count + (looped ? num_rows : 0); }
};

/// The first edges that are not as they should be, or `no_edge`: of the input, and among the sorted
/// ones that which equals the one before.
struct EdgeReport {
  long long out_of_range = no_edge;
  long long nonfinite = no_edge;
  long long repeated = no_edge;
};

/// keys[k] = (rows[k], cols[k]), positions[k] = k unless null.
void pack_edges(const GivenEdges& edges, EdgeKey* keys, EdgeOffset* positions, EdgeReport* report,
                Stream stream);

/// Looks for keys that repeat among sorted ones. With loops, which stand behind the edges that they
/// repeat, kept[k] = 0 for those that go and 1 for all others, and kept[count] = 0.
void find_repeated(const EdgeKey* keys, EdgeOffset count, int col_bits, EdgeOffset* kept,
                   EdgeReport* report, Stream stream);

/// Sorted edges that become rows, and where they go.
struct WrittenEdges {
  const EdgeKey* keys = nullptr;
  const EdgeOffset* positions = nullptr;  ///< null where nobody needs them
  const EdgeOffset* places = nullptr;     ///< how many before each are kept; null: all
  EdgeOffset count = 0;                   ///< of keys
  EdgeOffset num_given = 0;               ///< positions from here on are of loops
  VertexId num_rows = 0;
  int col_bits = 0;
  const float* given_values = nullptr;
  EdgeOffset* row_offsets = nullptr;
  VertexId* cols = nullptr;
  float* values = nullptr;         ///< null where there are none
  EdgeOffset* edge_ids = nullptr;  ///< the same
  float loop_value = 1;
};
void write_edges(const WrittenEdges& edges, Stream stream);

/// to[k] = from[k]. Returns the first position out of [0, bound).
EdgeOffset narrow_indices(const std::int64_t* from, EdgeOffset count, std::int64_t bound,
                          VertexId* to, const Place& place);

/// The first edge with an end out of range.
EdgeOffset first_out_of_range(const GivenEdges& edges, const Place& place);

/// The first edge whose column is out of range or does not lie behind the one before in its row.
EdgeOffset first_unsorted(const Offsets& row_offsets, VertexId num_rows, const VertexId* cols,
                          EdgeOffset count, VertexId num_cols, const Place& place);

/// Sorts by the lower `bits` bits; equal ones keep their order. Positions follow where there are
/// any. Needs as much memory again while it runs.
void sort_keys(Buffer<EdgeKey>& keys, Buffer<EdgeOffset>& positions, int bits, const Place& place);
void sort_columns(Buffer<std::uint32_t>& columns, Buffer<EdgeOffset>& positions, int bits,
                  const Place& place);

/// Sums of all values up to each, in place: with it, or without it.
void inclusive_scan(EdgeOffset* values, EdgeOffset count, const Place& place);
template <class Count>
void exclusive_scan(Count* values, EdgeOffset count, const Place& place);

/// Those of `count` values whose flag is not 0, side by side and in their order.
void keep_flagged(const VertexId* values, const std::uint8_t* flags, EdgeOffset count, VertexId* to,
                  const Place& place);

/// The number of the group of equal keys that each belongs to, from 1 on.
void number_groups(const EdgeKey* keys, EdgeOffset count, EdgeOffset* groups, const Place& place);

/// What becomes of groups of equal edges; null where it is not wanted.
struct GroupOutputs {
  EdgeKey* keys = nullptr;
  float* values = nullptr;
  EdgeOffset* edge_ids = nullptr;
  /// The first group whose value is not finite is noted here, where it is less than what is there.
  EdgeOffset* nonfinite = nullptr;
};

/// One edge for each group: with the sum of its values (their number if `values` is null) or the
/// first one's. Edges that are not in the sum get the id -1.
void merge_groups(const EdgeKey* keys, const EdgeOffset* positions, const EdgeOffset* groups,
                  EdgeOffset count, const float* values, bool sum, const GroupOutputs& outputs,
                  Stream stream);

/// Entry k of row i, at i * degree + k, is (i + k * stride) mod num_vertices.
void fill_circulant(VertexId num_vertices, VertexId degree, VertexId stride, VertexId* rows,
                    VertexId* cols, Stream stream);

/// 0, 1, 2 …, and a copy of the columns that can be sorted.
void number_columns(const VertexId* cols, EdgeOffset count, std::uint32_t* sortable,
                    EdgeOffset* positions, Stream stream);

/// Edges by their columns, and where each stands by rows.
struct SortedColumns {
  const std::uint32_t* columns = nullptr;
  const EdgeOffset* positions = nullptr;
  EdgeOffset count = 0;
};

/// Offsets of the columns in the sorted edges, and the row of each edge.
template <class Offset>
void transpose_offsets(const SortedColumns& sorted, const Offsets& row_offsets, VertexId num_rows,
                       VertexId num_cols, Offset* col_offsets, VertexId* rows, Stream stream);

/// scale[row] = (sum of the row's values)^-1/2, 0 where that is not positive.
void inverse_roots_of_degrees(const Offsets& offsets, const float* values, VertexId num_rows,
                              float* scale, Stream stream);

}  // namespace tessera::cuda
