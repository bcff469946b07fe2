// SPDX-License-Identifier: Apache-2.0
#include "tiles/quad_window.hpp"

#include <algorithm>

namespace tessera::tiles {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

}  // namespace

template <int num_words>
void QuadWindow<num_words>::arrange(const SideRows& rows, VertexId first_row, VertexId last_row) {
  collect(rows, first_row, last_row);
  quads_.clear();
  const QuadOrder order{static_cast<std::int32_t>(row_sets_.size())};
  for (std::int32_t segment = 0; segment < order.num_segments(); ++segment) {
    num_open_ = 0;
    const std::int32_t end = order.first_place(segment + 1);
    for (std::int32_t i = order.first_place(segment); i < end; ++i) place(order.column(i));
  }
}

template <int num_words>
void QuadWindow<num_words>::collect(const SideRows& rows, VertexId first_row, VertexId last_row) {
  columns_.collect(rows, first_row, last_row);
  row_sets_.assign(columns_.columns().size(), {});
  std::size_t edge = 0;
  for (VertexId row = first_row; row < last_row; ++row) {
    const auto end = at(rows.offsets[at(row) + 1] - rows.offsets[at(first_row)]);
    for (; edge < end; ++edge) row_sets_[at(columns_.place_of_edge(edge))].insert(row - first_row);
  }
}

template <int num_words>
void QuadWindow<num_words>::place(std::int32_t number) {
  const RowSet<num_words>& rows = rows_of(number);
  Open& open = open_for(number);
  if (open.size == 0) {
    open.twice = {};
    open.quad = static_cast<std::int32_t>(quads_.size());
    quads_.emplace_back();
  }
  Quad& quad = quads_[at(open.quad)];
  for (std::size_t i = 0; i < rows.words.size(); ++i) {
    open.twice.words[i] |= quad.rows.words[i] & rows.words[i];
    quad.rows.words[i] |= rows.words[i];
  }
  quad.columns[at(quad.size++)] = number;
  open.size = quad.size % quad_columns;
}

template <int num_words>
auto QuadWindow<num_words>::open_for(std::int32_t number) -> Open& {
  Open* best = nullptr;
  for (int i = 0; i < num_open_; ++i) {
    Open& open = open_[at(i)];
    if (best != nullptr && open.size <= best->size) continue;
    if (open.size == 0 || !rows_of(number).meets(open.twice)) best = &open;
  }
  if (best != nullptr) return *best;
  if (num_open_ < open_quads) {
    open_[at(num_open_)].size = 0;
    return open_[at(num_open_++)];
  }
  const auto fewer_twice = [](const Open& a, const Open& b) {
    return a.twice.size() < b.twice.size();
  };
  Open& hardest = *std::max_element(open_.begin(), open_.end(), fewer_twice);
  hardest.size = 0;
  return hardest;
}

template class QuadWindow<1>;
template class QuadWindow<2>;
template class QuadWindow<4>;

}  // namespace tessera::tiles
