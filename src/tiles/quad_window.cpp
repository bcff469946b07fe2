// SPDX-License-Identifier: Apache-2.0
#include "tiles/quad_window.hpp"

#include <algorithm>
#include <numeric>

namespace tessera::tiles {
namespace {

/// Quads that are looked at for a trade.
constexpr int trades_tried = 64;
/// Quads of a window that are dissolved at most: long windows gain little from more.
constexpr int most_dissolved = 64;

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

}  // namespace

template <int num_words>
void QuadWindow<num_words>::arrange(const SideRows& rows, VertexId first_row, VertexId last_row) {
  collect(rows, first_row, last_row);
  place_columns();
  if (columns_.empty()) return;
  const auto longest = at(rows.offsets[at(row_order_[0]) + 1] - rows.offsets[at(row_order_[0])]);
  dissolve_spare(std::max((columns_.size() + quad_columns - 1) / quad_columns, (longest + 1) / 2));
}

/// Numbers columns as the rows use them, the longest row first.
template <int num_words>
void QuadWindow<num_words>::collect(const SideRows& rows, VertexId first_row, VertexId last_row) {
  const auto length = [&](VertexId row) {
    return rows.offsets[at(row) + 1] - rows.offsets[at(row)];
  };
  row_order_.resize(at(last_row - first_row));
  std::iota(row_order_.begin(), row_order_.end(), first_row);
  std::stable_sort(row_order_.begin(), row_order_.end(),
                   [&](VertexId a, VertexId b) { return length(a) > length(b); });
  columns_.clear();
  row_sets_.clear();
  longest_rows_.clear();
  const auto edges = at(rows.offsets[at(last_row)] - rows.offsets[at(first_row)]);
  table_.assign(std::bit_ceil(2 * std::min(edges, at(rows.num_cols)) + 2), Slot{-1, 0});
  mask_ = table_.size() - 1;
  for (const VertexId row : row_order_) {
    const auto sources = rows.indices.subspan(at(rows.offsets[at(row)]), at(length(row)));
    for (const VertexId column : sources) note(column, row - first_row);
  }
}

template <int num_words>
void QuadWindow<num_words>::note(VertexId column, int row) {
  std::size_t slot = static_cast<std::uint32_t>(column) * 0x9E3779B1u >> 7;
  while (table_[slot & mask_].column >= 0 && table_[slot & mask_].column != column) ++slot;
  Slot& found = table_[slot & mask_];
  if (found.column < 0) {
    found = {column, static_cast<std::int32_t>(columns_.size())};
    columns_.push_back(column);
    row_sets_.emplace_back();
    longest_rows_.push_back(row);
  }
  row_sets_[at(found.number)].insert(row);
}

template <int num_words>
void QuadWindow<num_words>::add(Quad& quad, std::int32_t number) const {
  const RowSet<num_words>& rows = rows_of(number);
  for (std::size_t i = 0; i < rows.words.size(); ++i) {
    quad.twice.words[i] |= quad.once.words[i] & rows.words[i];
    quad.once.words[i] |= rows.words[i];
  }
  quad.columns[at(quad.size++)] = number;
}

template <int num_words>
auto QuadWindow<num_words>::without(const Quad& quad, int place) const -> Quad {
  Quad rest;
  for (int i = 0; i < quad.size; ++i) {
    if (i != place) add(rest, quad.columns[at(i)]);
  }
  return rest;
}

/// Columns with the same longest row come one after another. Quads of which that row uses two are
/// of no use until the next row, so the search begins behind them.
template <int num_words>
void QuadWindow<num_words>::place_columns() {
  quads_.clear();
  open_.clear();
  int row = -1;
  std::size_t first_open = 0;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (longest_rows_[i] != row) {
      row = longest_rows_[i];
      first_open = 0;
      std::erase_if(open_, [&](std::int32_t q) { return quads_[at(q)].size == quad_columns; });
    }
    while (first_open < open_.size()) {
      const Quad& quad = quads_[at(open_[first_open])];
      if (quad.size < quad_columns && !quad.twice.contains(row)) break;
      ++first_open;
    }
    place(static_cast<std::int32_t>(i), first_open);
  }
}

template <int num_words>
void QuadWindow<num_words>::place(std::int32_t number, std::size_t first_open) {
  for (std::size_t i = first_open; i < open_.size(); ++i) {
    Quad& quad = quads_[at(open_[i])];
    if (!fits(quad, number)) continue;
    add(quad, number);
    return;
  }
  open_.push_back(static_cast<std::int32_t>(quads_.size()));
  add(quads_.emplace_back(), number);
}

template <int num_words>
void QuadWindow<num_words>::dissolve_spare(std::size_t fewest) {
  for (int dissolved = 0; quads_.size() > fewest && dissolved < most_dissolved; ++dissolved) {
    std::size_t smallest = quads_.size();
    for (std::size_t q = 0; q < quads_.size(); ++q) {
      const bool is_smaller = smallest == quads_.size() || quads_[q].size <= quads_[smallest].size;
      if (quads_[q].size < quad_columns && is_smaller) smallest = q;
    }
    if (smallest == quads_.size()) return;
    before_ = quads_;
    const Quad gone = quads_[smallest];
    quads_.erase(quads_.begin() + static_cast<std::ptrdiff_t>(smallest));
    for (int i = 0; i < gone.size; ++i) {
      if (move_elsewhere(gone.columns[at(i)]) || trade(gone.columns[at(i)])) continue;
      quads_.swap(before_);
      return;
    }
  }
}

template <int num_words>
bool QuadWindow<num_words>::move_elsewhere(std::int32_t number) {
  for (Quad& quad : quads_) {
    if (!fits(quad, number)) continue;
    add(quad, number);
    return true;
  }
  return false;
}

/// Puts the column into a quad in place of one that fits elsewhere.
template <int num_words>
bool QuadWindow<num_words>::trade(std::int32_t number) {
  const std::size_t tried = std::min(quads_.size(), at(trades_tried));
  for (std::size_t q = 0; q < tried; ++q) {
    for (int place = 0; place < quads_[q].size; ++place) {
      Quad rest = without(quads_[q], place);
      if (!fits(rest, number)) continue;
      const std::int32_t leaving = quads_[q].columns[at(place)];
      for (std::size_t other = 0; other < quads_.size(); ++other) {
        if (other == q || !fits(quads_[other], leaving)) continue;
        add(quads_[other], leaving);
        add(rest, number);
        quads_[q] = rest;
        return true;
      }
    }
  }
  return false;
}

template class QuadWindow<1>;
template class QuadWindow<2>;
template class QuadWindow<4>;

}  // namespace tessera::tiles
