// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "tessera/core/memory.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/graph/graph.hpp"

/// What graphs made of other graphs are written with, row by row.
namespace tessera::detail {

/// Counts each row of the result in parallel, and turns the counts into offsets.
template <class CountRow>
Buffer<EdgeOffset> offsets_from_counts(VertexId num_rows, CountRow&& count_row) {
  Buffer<EdgeOffset> offsets(std::int64_t{num_rows} + 1);
  parallel_for(num_rows, even_grain(num_rows),
               [&](std::int64_t row) { offsets[row] = count_row(static_cast<VertexId>(row)); });
  offsets[num_rows] = 0;
  exclusive_scan(offsets.span());
  return offsets;
}

/// Edge ids after the edge at each old position has moved; -1 for those that were dropped.
inline SharedArray<EdgeOffset> moved_edge_ids(const SharedArray<EdgeOffset>& ids,
                                              const Buffer<EdgeOffset>& old_to_new) {
  Buffer<EdgeOffset> moved(ids.size());
  parallel_for(ids.size(), even_grain(ids.size()),
               [&](EdgeOffset edge) { moved[edge] = ids[edge] < 0 ? -1 : old_to_new[ids[edge]]; });
  return moved;
}

/// The arrays of a result while its rows are filled from those of an older graph.
class RowWriter {
 public:
  RowWriter(const Graph& old, Buffer<EdgeOffset> offsets, bool with_values)
      : old_(old),
        offsets_(std::move(offsets)),
        cols_(offsets_[offsets_.size() - 1]),
        values_(with_values ? cols_.size() : 0),
        old_to_new_(old.has_edge_ids() ? old.num_edges() : 0) {
    parallel_for(old_to_new_.size(), even_grain(old_to_new_.size()),
                 [&](EdgeOffset edge) { old_to_new_[edge] = -1; });
  }

  EdgeOffset row_begin(VertexId row) const { return offsets_[row]; }

  /// Writes an edge that stood at `old_edge`.
  void move(EdgeOffset position, VertexId col, EdgeOffset old_edge) {
    cols_[position] = col;
    if (!values_.empty()) values_[position] = old_.values()[old_edge];
    if (!old_to_new_.empty()) old_to_new_[old_edge] = position;
  }
  /// Writes an edge that is new.
  void add(EdgeOffset position, VertexId col, float value = 1) {
    cols_[position] = col;
    if (!values_.empty()) values_[position] = value;
  }

  /// The result, without scales.
  Graph finish(VertexId num_rows, VertexId num_cols) && {
    const Graph graph(num_rows, num_cols, std::move(offsets_), std::move(cols_),
                      std::move(values_));
    return graph.with_edge_ids(moved_edge_ids(old_.edge_ids(), old_to_new_));
  }

 private:
  const Graph& old_;
  Buffer<EdgeOffset> offsets_;
  Buffer<VertexId> cols_;
  Buffer<float> values_;
  Buffer<EdgeOffset> old_to_new_;
};

}  // namespace tessera::detail
