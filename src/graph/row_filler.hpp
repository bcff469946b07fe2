// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "tessera/core/memory.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/graph/build.hpp"

namespace tessera::detail {

/// An edge on its way into a graph.
struct Entry {
  VertexId row;
  VertexId col;
  float value;
};

/// Builds a CSR from edges that are seen twice: the first time the rows are counted, the second
/// time every edge goes straight to its row. Nothing of the size of the edges is held besides the
/// graph itself. Edges come in pieces of some thousands; threads share the work by rows, so that
/// no two touch one row and the edges of a row keep their order.
class RowFiller {
 public:
  static constexpr std::size_t num_parts = 64;

  /// Edges sorted by the part of the rows that they belong to, otherwise in their order.
  struct Piece {
    std::vector<Entry> entries;
    std::array<std::uint32_t, num_parts + 1> begins{};
    std::int64_t given = 0;  ///< without those added by mirroring
    VertexId highest = -1;   ///< index, of rows and columns
  };

  /// @param mirror  0, or the sign of the values of (j, i), which is added for every (i, j) off the
  ///                diagonal
  RowFiller(bool weighted, int mirror) : weighted_(weighted), mirror_(mirror) {}

  /// Sorts edges into a piece. Indices are not negative. Several threads may do so at once.
  void sort_into(std::span<const Entry> edges, Piece& piece) const;

  /// First time.
  void count(std::span<const Piece> pieces);
  /// Between the two: there are so many rows, more than the highest index.
  void begin_placing(VertexId num_rows);
  /// Second time. Edges that were not counted are dropped or take the place of others, and
  /// `all_placed` is false; a file may change while it is read.
  void place(std::span<const Piece> pieces);

  /// Edges counted, without those added by mirroring.
  std::int64_t num_entries() const noexcept { return entries_; }
  /// The highest index counted, of rows and columns; -1 where there is none.
  std::int64_t highest_index() const noexcept { return highest_; }
  bool all_placed() const noexcept { return placed_ == cols_.size(); }

  /// Sorts the rows and merges duplicates. Where they are rejected, `report_duplicate` throws.
  Graph finish(VertexId num_cols, Duplicates duplicates,
               FunctionRef<void(VertexId row, VertexId col)> report_duplicate) &&;

 private:
  void grow_to(std::int64_t rows);
  void sort_rows();
  bool has_duplicates() const;
  Graph merged(VertexId num_cols, bool summed) &&;

  Buffer<EdgeOffset> offsets_;
  Buffer<VertexId> cols_;
  Buffer<float> values_;
  std::int64_t rows_ = 0;
  int shift_ = 0;  ///< part = row >> shift, the last one for all rows beyond
  bool weighted_;
  int mirror_;
  std::int64_t entries_ = 0;
  std::int64_t highest_ = -1;
  std::int64_t placed_ = 0;
};

}  // namespace tessera::detail
