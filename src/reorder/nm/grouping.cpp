// SPDX-License-Identifier: Apache-2.0
#include "reorder/nm/grouping.hpp"

#include <algorithm>
#include <limits>

namespace tessera::reorder::detail {
namespace {

/// Rows from this length on spread their columns from group to group.
constexpr std::int64_t long_row = 64;

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

}  // namespace

Grouping::Grouping(const Adjacency& rows_of, const Adjacency& columns_of, int group_size,
                   std::uint64_t seed)
    : rows_of_(rows_of),
      columns_of_(columns_of),
      group_size_(group_size),
      num_groups_(
          static_cast<std::int32_t>((std::int64_t{rows_of.size} + group_size - 1) / group_size)),
      rows_(columns_of),
      open_(num_groups_),
      draws_(seed),
      group_of_(at(rows_of.size), nowhere),
      members_(at(std::int64_t{num_groups_} * group_size), -1),
      filled_(at(num_groups_), 0),
      longest_row_(at(rows_of.size), -1),
      next_group_(at(columns_of.size), 0) {}

std::size_t Grouping::first_slot(std::int32_t group) const {
  return at(std::int64_t{group} * group_size_);
}

int Grouping::size_of(std::int32_t group) const {
  return static_cast<int>(
      std::min<std::int64_t>(group_size_, rows_of_.size - std::int64_t{group} * group_size_));
}

bool Grouping::fits(VertexId column, std::int32_t group, VertexId but_for_row) const {
  for (const VertexId row : rows_of_.neighbours(column)) {
    if (row == but_for_row) continue;
    if (rows_.count(row, group, most_per_row) == most_per_row) return false;
  }
  return true;
}

std::int64_t Grouping::added_violations(VertexId column, std::int32_t group) const {
  std::int64_t added = 0;
  for (const VertexId row : rows_of_.neighbours(column)) {
    added += rows_.count(row, group, most_per_row) == most_per_row ? 1 : 0;
  }
  return added;
}

void Grouping::put(VertexId column, std::int32_t group) {
  std::int64_t added = 0;
  for (const VertexId row : rows_of_.neighbours(column)) {
    added += rows_.count(row, group, most_per_row) == most_per_row ? 1 : 0;
    rows_.add(row, group);
  }
  group_of_[at(column)] = group;
  violations_ += added;
}

void Grouping::append(VertexId column, std::int32_t group) {
  put(column, group);
  members_[first_slot(group) + at(filled_[at(group)]++)] = column;
  if (filled_[at(group)] == size_of(group)) open_.close(group);
}

void Grouping::take_out(VertexId column) {
  const std::int32_t group = group_of_[at(column)];
  std::int64_t removed = 0;
  for (const VertexId row : rows_of_.neighbours(column)) {
    rows_.remove(row, group);
    removed += rows_.count(row, group, most_per_row) == most_per_row ? 1 : 0;
  }
  group_of_[at(column)] = nowhere;
  violations_ -= removed;
}

/// Columns of long rows first, longest row first; the others as they come.
std::vector<VertexId> Grouping::placing_order() {
  const auto length = [&](VertexId row) { return columns_of_.degree(row); };
  std::vector<VertexId> tight;
  std::vector<VertexId> order;
  order.reserve(at(rows_of_.size));
  for (VertexId column = 0; column < rows_of_.size; ++column) {
    VertexId longest = -1;
    for (const VertexId row : rows_of_.neighbours(column)) {
      if (longest < 0 || length(row) > length(longest)) longest = row;
    }
    longest_row_[at(column)] = longest;
    const bool is_tight =
        longest >= 0 && length(longest) >= std::min<std::int64_t>(long_row, num_groups_);
    (is_tight ? tight : order).push_back(column);
  }
  const auto before = [&](VertexId a, VertexId b) {
    const VertexId row_a = longest_row_[at(a)];
    const VertexId row_b = longest_row_[at(b)];
    if (length(row_a) != length(row_b)) return length(row_a) > length(row_b);
    return row_a < row_b;
  };
  std::stable_sort(tight.begin(), tight.end(), before);
  for (const VertexId column : order) longest_row_[at(column)] = -1;
  order.insert(order.begin(), tight.begin(), tight.end());
  return order;
}

std::int32_t Grouping::nearest_fit(VertexId column, std::int32_t home) {
  std::int32_t above = open_.at_or_above(home);
  std::int32_t below = home > 0 ? open_.at_or_below(home - 1) : nowhere;
  while (above < num_groups_ || below >= 0) {
    const bool upwards = below < 0 || (above < num_groups_ && above - home <= home - below);
    const std::int32_t group = upwards ? above : below;
    if (fits(column, group)) return group;
    if (upwards) {
      above = open_.at_or_above(above + 1);
    } else {
      below = open_.at_or_below(below - 1);
    }
  }
  return nowhere;
}

/// A row that is too long for any order violates somewhere. It does so in the fewest groups where
/// those are full of its columns.
void Grouping::fill_groups_of_overlong_row() {
  VertexId longest = -1;
  for (VertexId row = 0; row < columns_of_.size; ++row) {
    if (longest < 0 || columns_of_.degree(row) > columns_of_.degree(longest)) longest = row;
  }
  if (longest < 0) return;
  const std::int64_t full_groups = rows_of_.size / group_size_;
  const std::int64_t room = most_per_row * full_groups +
                            std::min<std::int64_t>(most_per_row, rows_of_.size % group_size_);
  const std::int64_t surplus = columns_of_.degree(longest) - room;
  if (surplus <= 0) return;
  const std::int64_t gain = group_size_ - most_per_row;
  const std::int64_t first = std::max<std::int64_t>(0, full_groups - (surplus + gain - 1) / gain);
  auto group = static_cast<std::int32_t>(first);
  for (const VertexId column : columns_of_.neighbours(longest)) {
    if (group == full_groups) break;
    if (!fits(column, group, longest)) continue;
    append(column, group);
    if (filled_[at(group)] == group_size_) ++group;
  }
}

void Grouping::place_all(Budget& budget) {
  fill_groups_of_overlong_row();
  for (const VertexId column : placing_order()) {
    if (group_of_[at(column)] != nowhere) continue;
    const VertexId longest = longest_row_[at(column)];
    const auto home =
        longest >= 0 ? next_group_[at(longest)] : static_cast<std::int32_t>(column / group_size_);
    const std::int32_t group = nearest_fit(column, home);
    if (group == nowhere) {
      left_over_.push_back(column);
      continue;
    }
    append(column, group);
    if (longest >= 0) next_group_[at(longest)] = (group + 1) % num_groups_;
    budget.take(rows_of_.degree(column));
  }
}

/// Puts the column into a group that fits once one of its members has left for an open one.
bool Grouping::trade(VertexId column, Budget& budget) {
  std::vector<std::int32_t> open;
  for (std::int32_t group = open_.at_or_above(0); group < num_groups_;
       group = open_.at_or_above(group + 1)) {
    open.push_back(group);
    if (open.size() == 64) break;
  }
  const std::int32_t tries = std::min(num_groups_, 4096);
  const auto first = static_cast<std::int32_t>(draws_.below(num_groups_));
  for (std::int32_t t = 0; t < tries; ++t) {
    const std::int32_t group = (first + t) % num_groups_;
    if (added_violations(column, group) > 2 * most_per_row) continue;
    for (int slot = 0; slot < filled_[at(group)]; ++slot) {
      VertexId& member = members_[first_slot(group) + at(slot)];
      const VertexId leaving = member;
      if (!budget.take(rows_of_.degree(leaving))) return false;
      take_out(leaving);
      const bool enters = fits(column, group);
      const auto found =
          !enters ? open.end() : std::find_if(open.begin(), open.end(), [&](std::int32_t other) {
            return other != group && fits(leaving, other);
          });
      if (found == open.end()) {
        put(leaving, group);
        continue;
      }
      put(column, group);
      member = column;
      append(leaving, *found);
      ++swaps_;
      return true;
    }
  }
  return false;
}

void Grouping::collect_violations() {
  suspects_.clear();
  for (VertexId row = 0; row < columns_of_.size; ++row) {
    for (const VertexId column : columns_of_.neighbours(row)) {
      const std::int32_t group = group_of_[at(column)];
      if (rows_.count(row, group, most_per_row + 1) > most_per_row) {
        suspects_.emplace_back(row, group);
      }
    }
  }
}

void Grouping::swap_groups(VertexId a, VertexId b) {
  const std::int32_t group_a = group_of_[at(a)];
  const std::int32_t group_b = group_of_[at(b)];
  take_out(a);
  take_out(b);
  put(a, group_b);
  put(b, group_a);
  const auto slot_of = [&](VertexId column, std::int32_t group) {
    const auto begin = members_.begin() + static_cast<std::ptrdiff_t>(first_slot(group));
    return std::find(begin, begin + size_of(group), column);
  };
  std::iter_swap(slot_of(a, group_a), slot_of(b, group_b));
}

/// The column whose swap with `column` leaves the fewest violations, of those looked at.
std::int64_t Grouping::best_partner(VertexId column, Budget& budget, VertexId& partner) {
  constexpr std::int64_t most_candidates = 256;
  const std::int32_t from = group_of_[at(column)];
  std::int64_t best = std::numeric_limits<std::int64_t>::max();
  const std::int64_t candidates = std::min<std::int64_t>(rows_of_.size, most_candidates);
  const std::int64_t first = draws_.below(rows_of_.size);
  const auto own = rows_of_.degree(column);
  take_out(column);
  for (std::int64_t c = 0; c < candidates; ++c) {
    const std::int64_t drawn =
        rows_of_.size > most_candidates ? draws_.below(rows_of_.size) : (first + c) % rows_of_.size;
    const auto other = static_cast<VertexId>(drawn);
    const std::int32_t to = group_of_[at(other)];
    if (to == from || to == nowhere) continue;
    if (!budget.take(own + rows_of_.degree(other))) break;
    take_out(other);
    const std::int64_t after =
        violations_ + added_violations(column, to) + added_violations(other, from);
    put(other, to);
    if (after < best) {
      best = after;
      partner = other;
      if (best == 0) break;
    }
  }
  put(column, from);
  return best;
}

void Grouping::undo_to_best() {
  for (auto swap = since_best_.rbegin(); swap != since_best_.rend(); ++swap) {
    swap_groups(swap->first, swap->second);
  }
  since_best_.clear();
}

bool Grouping::swap_until_clean(Budget& budget) {
  collect_violations();
  best_violations_ = violations_;
  std::vector<std::int64_t> tabu_until(at(rows_of_.size), 0);
  std::int64_t move = 0;
  while (violations_ > 0 && budget.take(1)) {
    if (suspects_.empty()) collect_violations();
    const std::size_t pick = at(draws_.below(static_cast<std::int64_t>(suspects_.size())));
    const auto [row, group] = suspects_[pick];
    if (rows_.count(row, group, most_per_row + 1) <= most_per_row) {
      suspects_[pick] = suspects_.back();
      suspects_.pop_back();
      continue;
    }
    VertexId column = -1;
    std::int64_t seen = 0;
    for (const VertexId candidate : columns_of_.neighbours(row)) {
      if (group_of_[at(candidate)] != group || tabu_until[at(candidate)] > move) continue;
      if (draws_.below(++seen) == 0) column = candidate;
    }
    ++move;
    if (column < 0) continue;
    VertexId partner = -1;
    const std::int64_t after = best_partner(column, budget, partner);
    if (partner < 0 || after > violations_ + 1) continue;
    swap_groups(column, partner);
    ++swaps_;
    since_best_.emplace_back(column, partner);
    tabu_until[at(column)] = move + 8 + draws_.below(8);
    tabu_until[at(partner)] = move + 8 + draws_.below(8);
    for (const VertexId changed : {column, partner}) {
      const std::int32_t now = group_of_[at(changed)];
      for (const VertexId touched : rows_of_.neighbours(changed)) {
        if (rows_.count(touched, now, most_per_row + 1) > most_per_row) {
          suspects_.emplace_back(touched, now);
        }
      }
    }
    if (violations_ < best_violations_) {
      best_violations_ = violations_;
      since_best_.clear();
    }
  }
  undo_to_best();
  return violations_ == 0;
}

bool Grouping::run(Budget& budget) {
  place_all(budget);
  std::vector<VertexId> still_left;
  for (const VertexId column : left_over_) {
    if (!trade(column, budget)) still_left.push_back(column);
  }
  for (const VertexId column : still_left) {
    const std::int32_t group = open_.at_or_above(0);
    append(column, group);
  }
  return violations_ == 0 || swap_until_clean(budget);
}

std::vector<VertexId> Grouping::order() const {
  return {members_.begin(), members_.begin() + rows_of_.size};
}

}  // namespace tessera::reorder::detail
