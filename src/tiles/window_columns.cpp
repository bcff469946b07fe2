// SPDX-License-Identifier: Apache-2.0
#include "tiles/window_columns.hpp"

#include <algorithm>
#include <bit>
#include <string>

#include "tessera/core/error.hpp"

namespace tessera::tiles {

SideRows rows_of(const Graph& graph, Side side) {
  if (side == Side::forward) {
    return {graph.num_rows(), graph.num_cols(), graph.row_offsets().span(),
            graph.col_indices().span()};
  }
  const Csc& csc = graph.csc();
  return {graph.num_cols(), graph.num_rows(), csc.col_offsets.span(), csc.row_indices.span()};
}

void check_height(int height) {
  if (std::find(window_heights.begin(), window_heights.end(), height) != window_heights.end()) {
    return;
  }
  throw Error(ErrorCode::invalid_argument,
              "windows of " + std::to_string(height) + " rows do not exist", "height",
              "use 8, 16, 32, 64, 128 or 256");
}

void check_min_uses(int min_uses) {
  if (min_uses >= 1) return;
  throw Error(ErrorCode::invalid_argument, "no column is used fewer than 1 times", "min_uses",
              "use 1 or more");
}

void WindowColumns::collect(const SideRows& rows, VertexId first_row, VertexId last_row) {
  count(rows, first_row, last_row);
  sort();
}

void WindowColumns::count(const SideRows& rows, VertexId first_row, VertexId last_row) {
  const EdgeOffset begin = rows.offsets[static_cast<std::size_t>(first_row)];
  const EdgeOffset end = rows.offsets[static_cast<std::size_t>(last_row)];
  const auto edges = static_cast<std::size_t>(end - begin);
  const std::size_t most = std::min(edges, static_cast<std::size_t>(rows.num_cols));
  table_.assign(std::bit_ceil(2 * most + 2), Slot{-1, 0});
  mask_ = table_.size() - 1;
  found_.clear();
  use_counts_.clear();
  edge_numbers_.resize(edges);
  const auto sources = rows.indices.subspan(static_cast<std::size_t>(begin), edges);
  for (std::size_t k = 0; k < edges; ++k) edge_numbers_[k] = number_of(sources[k]);
}

std::int32_t WindowColumns::number_of(VertexId column) {
  // Neighbouring columns are common, so a multiplication spreads them.
  std::size_t at = static_cast<std::size_t>(static_cast<std::uint32_t>(column) * 0x9E3779B1u >> 7);
  for (;; ++at) {
    Slot& slot = table_[at & mask_];
    if (slot.column == column) {
      ++use_counts_[static_cast<std::size_t>(slot.number)];
      return slot.number;
    }
    if (slot.column < 0) {
      slot = {column, static_cast<std::int32_t>(found_.size())};
      found_.push_back(slot);
      use_counts_.push_back(1);
      return slot.number;
    }
  }
}

void WindowColumns::sort() {
  std::sort(found_.begin(), found_.end(),
            [](const Slot& a, const Slot& b) { return a.column < b.column; });
  keep_used(1);
}

void WindowColumns::keep_used(int min_uses) {
  columns_.clear();
  uses_.clear();
  places_.assign(found_.size(), -1);
  for (const Slot& slot : found_) {
    const auto number = static_cast<std::size_t>(slot.number);
    if (use_counts_[number] < min_uses) continue;
    places_[number] = static_cast<std::int32_t>(columns_.size());
    columns_.push_back(slot.column);
    uses_.push_back(use_counts_[number]);
  }
}

}  // namespace tessera::tiles
