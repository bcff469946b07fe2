// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "tessera/tiles/quad_tiles.hpp"
#include "tiles/window_columns.hpp"

namespace tessera::tiles {

/// A set of rows of a window of up to 64 * `num_words` rows.
template <int num_words>
struct RowSet {
  std::array<std::uint64_t, num_words> words{};

  void insert(int row) { words[word_of(row)] |= std::uint64_t{1} << (row % 64); }
  bool contains(int row) const { return (words[word_of(row)] >> (row % 64) & 1) != 0; }
  bool meets(const RowSet& other) const {
    std::uint64_t common = 0;
    for (std::size_t i = 0; i < words.size(); ++i) common |= words[i] & other.words[i];
    return common != 0;
  }

 private:
  static std::size_t word_of(int row) {
    return num_words == 1 ? 0 : static_cast<std::size_t>(row / 64);
  }
};

/// The columns of a window in quads. Columns of the longest row come first, then those of the next
/// and so on; each goes to the first quad that has room and of which no row of the column uses two
/// already. Then quads that are not full are dissolved while their columns fit elsewhere, or fit
/// once another column has moved. Reused from window to window.
template <int num_words>
class QuadWindow {
 public:
  struct Quad {
    RowSet<num_words> once;   ///< rows that use a column of the quad
    RowSet<num_words> twice;  ///< rows that use two
    int size = 0;
    std::array<std::int32_t, quad_columns> columns{};  ///< numbers
  };

  void arrange(const SideRows& rows, VertexId first_row, VertexId last_row);

  std::span<const Quad> quads() const { return quads_; }
  VertexId column(std::int32_t number) const { return columns_[static_cast<std::size_t>(number)]; }
  const RowSet<num_words>& rows_of(std::int32_t number) const {
    return row_sets_[static_cast<std::size_t>(number)];
  }

 private:
  struct Slot {
    VertexId column;
    std::int32_t number;
  };

  void collect(const SideRows& rows, VertexId first_row, VertexId last_row);
  void note(VertexId column, int row);
  void place_columns();
  void place(std::int32_t number, std::size_t first_open);
  void dissolve_spare(std::size_t fewest);
  bool move_elsewhere(std::int32_t number);
  bool trade(std::int32_t number);
  bool fits(const Quad& quad, std::int32_t number) const {
    return quad.size < quad_columns && !rows_of(number).meets(quad.twice);
  }
  void add(Quad& quad, std::int32_t number) const;
  Quad without(const Quad& quad, int place) const;

  std::vector<Slot> table_;
  std::size_t mask_ = 0;
  std::vector<VertexId> row_order_;
  std::vector<VertexId> columns_;            ///< by number: in the order in which they come
  std::vector<RowSet<num_words>> row_sets_;  ///< by number
  std::vector<std::int32_t> longest_rows_;   ///< by number: the longest row that uses it
  std::vector<Quad> quads_;
  std::vector<Quad> before_;  ///< quads, to go back to
  std::vector<std::int32_t> open_;
};

}  // namespace tessera::tiles
