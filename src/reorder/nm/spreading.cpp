// SPDX-License-Identifier: Apache-2.0
#include "reorder/nm/spreading.hpp"

#include <algorithm>
#include <cmath>

namespace tessera::reorder::detail {
namespace {

/// At the start a swap that adds one violation is taken with probability exp(-1 / this).
constexpr double first_temperature = 0.3;

std::int64_t parts(std::int64_t size, std::int64_t part) { return (size + part - 1) / part; }

}  // namespace

Spreading::Spreading(const Adjacency& adjacency, const NmPattern& pattern,
                     std::vector<VertexId> order, std::uint64_t seed)
    : adjacency_(adjacency),
      pattern_(pattern),
      draws_(seed),
      vertex_at_(std::move(order)),
      position_of_(at(adjacency.size)),
      in_row_(adjacency.size, parts(adjacency.size, pattern.m), adjacency.num_edges()),
      in_column_(adjacency.size, parts(adjacency.size, pattern.v), adjacency.num_edges()),
      live_(parts(adjacency.size, pattern.v), parts(adjacency.size, pattern.m),
            adjacency.num_edges()) {
  for (VertexId i = 0; i < adjacency.size; ++i) position_of_[at(vertex_at_[at(i)])] = i;
  for (VertexId row = 0; row < adjacency.size; ++row) {
    for (const VertexId column : adjacency.neighbours(row)) enter(row, column);
  }
}

std::int64_t Spreading::block_of(VertexId row) const { return position_of_[at(row)] / pattern_.v; }

std::int64_t Spreading::group_of(VertexId column) const {
  return position_of_[at(column)] / pattern_.m;
}

bool Spreading::violates(VertexId row, VertexId column) const {
  const std::int64_t group = group_of(column);
  return in_row_.get(row, group) > pattern_.n ||
         live_.get(block_of(row), group) > NmPattern::most_live_columns;
}

void Spreading::enter(VertexId row, VertexId column) {
  const std::int64_t block = block_of(row);
  const std::int64_t group = group_of(column);
  if (in_row_.add(row, group) > pattern_.n) ++violations_;
  const bool is_first = in_column_.add(column, block) == 1;
  if (is_first && live_.add(block, group) > NmPattern::most_live_columns) ++violations_;
}

void Spreading::leave(VertexId row, VertexId column) {
  const std::int64_t block = block_of(row);
  const std::int64_t group = group_of(column);
  if (in_row_.remove(row, group) >= pattern_.n) --violations_;
  const bool was_last = in_column_.remove(column, block) == 0;
  if (was_last && live_.remove(block, group) >= NmPattern::most_live_columns) --violations_;
}

/// Every entry in the rows and columns of `a` and `b`, once.
template <class Visit>
void Spreading::for_each_entry(VertexId a, VertexId b, Visit&& visit) const {
  for (const VertexId vertex : {a, b}) {
    for (const VertexId other : adjacency_.neighbours(vertex)) {
      visit(vertex, other);
      if (other != a && other != b) visit(other, vertex);
    }
  }
}

void Spreading::swap(VertexId a, VertexId b) {
  for_each_entry(a, b, [&](VertexId row, VertexId column) { leave(row, column); });
  std::swap(position_of_[at(a)], position_of_[at(b)]);
  vertex_at_[at(position_of_[at(a)])] = a;
  vertex_at_[at(position_of_[at(b)])] = b;
  for_each_entry(a, b, [&](VertexId row, VertexId column) { enter(row, column); });
}

VertexId Spreading::draw_suspect() {
  if (suspects_.empty()) {
    for (VertexId row = 0; row < adjacency_.size; ++row) {
      for (const VertexId column : adjacency_.neighbours(row)) {
        if (violates(row, column)) suspects_.emplace_back(row, column);
      }
    }
  }
  while (!suspects_.empty()) {
    const std::size_t pick = at(draws_.below(static_cast<std::int64_t>(suspects_.size())));
    const auto [row, column] = suspects_[pick];
    if (violates(row, column)) return draws_.below(2) == 0 ? row : column;
    suspects_[pick] = suspects_.back();
    suspects_.pop_back();
  }
  return static_cast<VertexId>(draws_.below(adjacency_.size));
}

void Spreading::note_swap(VertexId a, VertexId b) {
  ++swaps_;
  since_best_.emplace_back(a, b);
  if (violations_ < best_violations_) {
    best_violations_ = violations_;
    since_best_.clear();
  }
  if (static_cast<EdgeOffset>(suspects_.size()) > 2 * adjacency_.num_edges()) suspects_.clear();
  for_each_entry(a, b, [&](VertexId row, VertexId column) {
    if (violates(row, column)) suspects_.emplace_back(row, column);
  });
}

bool Spreading::run(Budget& budget) {
  const auto all_steps = static_cast<double>(budget.steps_left());
  best_violations_ = violations_;
  for (std::int64_t attempt = 0; violations_ > 0; ++attempt) {
    const VertexId a =
        attempt % 2 == 0 ? draw_suspect() : static_cast<VertexId>(draws_.below(adjacency_.size));
    const auto b = static_cast<VertexId>(draws_.below(adjacency_.size));
    if (!budget.take(1 + 2 * (adjacency_.degree(a) + adjacency_.degree(b)))) break;
    if (a == b) continue;
    const std::int64_t before = violations_;
    swap(a, b);
    const auto added = static_cast<double>(violations_ - before);
    const double left = static_cast<double>(budget.steps_left()) / all_steps;
    const bool accepted =
        added <= 0 || draws_.uniform() < std::exp(-added / (first_temperature * left));
    if (accepted) {
      note_swap(a, b);
    } else {
      swap(a, b);
    }
  }
  for (auto taken = since_best_.rbegin(); taken != since_best_.rend(); ++taken) {
    swap(taken->first, taken->second);
  }
  return violations_ == 0;
}

}  // namespace tessera::reorder::detail
