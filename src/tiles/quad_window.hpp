// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "tessera/tiles/quad_tiles.hpp"
#include "tiles/quad_order.hpp"
#include "tiles/window_columns.hpp"

namespace tessera::tiles {

/// Throws `invalid_argument` unless 2:4 windows may have this height.
void check_quad_height(int height);

/// A set of rows of a window of up to 64 * `num_words` rows.
template <int num_words>
struct RowSet {
  std::array<std::uint64_t, num_words> words{};

  void insert(int row) { words[word_of(row)] |= std::uint64_t{1} << (row % 64); }
  bool contains(int row) const { return (words[word_of(row)] >> (row % 64) & 1) != 0; }
  int size() const {
    int rows = 0;
    for (const std::uint64_t word : words) rows += std::popcount(word);
    return rows;
  }
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

/// The columns of a window in quads. Each column goes to the fullest open quad that has room and of
/// which none of its rows uses two already, of equals to the first. Where there is none, the quad
/// of which most rows use two is the least likely to be filled: it stays as it is and makes way for
/// a new one. Reused from window to window.
template <int num_words>
class QuadWindow {
 public:
  struct Quad {
    RowSet<num_words> rows;  ///< that use a column of it
    int size = 0;
    std::array<std::int32_t, quad_columns> columns{};  ///< numbers
  };

  void arrange(const SideRows& rows, VertexId first_row, VertexId last_row);

  std::span<const Quad> quads() const { return quads_; }
  VertexId column(std::int32_t number) const {
    return columns_.columns()[static_cast<std::size_t>(number)];
  }
  const RowSet<num_words>& rows_of(std::int32_t number) const {
    return row_sets_[static_cast<std::size_t>(number)];
  }

 private:
  struct Open {
    RowSet<num_words> twice;  ///< rows that use two columns of the quad
    std::int32_t quad = -1;
    int size = 0;  ///< 0: no quad is open here
  };

  void collect(const SideRows& rows, VertexId first_row, VertexId last_row);
  void place(std::int32_t number);
  Open& open_for(std::int32_t number);

  WindowColumns columns_;
  std::vector<RowSet<num_words>> row_sets_;  ///< by number
  std::vector<Quad> quads_;
  std::array<Open, open_quads> open_;
  int num_open_ = 0;  ///< those behind have not been open in this segment
};

}  // namespace tessera::tiles
