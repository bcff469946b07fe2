// SPDX-License-Identifier: Apache-2.0
#include "reorder/nm/grouping.hpp"

#include <algorithm>

#include "reorder/nm/group_repair.hpp"

namespace tessera::reorder::detail {
namespace {

/// Rows from this length on spread their columns from group to group.
constexpr std::int64_t long_row = 64;

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
      seed_(seed),
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

std::int64_t Grouping::rows_that_fit(VertexId column, std::int32_t group,
                                     VertexId but_for_row) const {
  std::int64_t fitting = 0;
  for (const VertexId row : rows_of_.neighbours(column)) {
    const bool is_full = rows_.count(row, group, most_per_row) == most_per_row;
    if (is_full && row != but_for_row) break;
    ++fitting;
  }
  return fitting;
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

void Grouping::seat(VertexId column, std::int32_t group) {
  members_[first_slot(group) + at(filled_[at(group)]++)] = column;
  if (filled_[at(group)] == size_of(group)) open_.close(group);
}

void Grouping::append(VertexId column, std::int32_t group) {
  put(column, group);
  seat(column, group);
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

std::int32_t Grouping::nearest_fit(VertexId column, std::int32_t home, Budget& budget) {
  std::int32_t above = open_.at_or_above(home);
  std::int32_t below = home > 0 ? open_.at_or_below(home - 1) : nowhere;
  while (above < num_groups_ || below >= 0) {
    const bool upwards = below < 0 || (above < num_groups_ && above - home <= home - below);
    const std::int32_t group = upwards ? above : below;
    const std::int64_t fitting = rows_that_fit(column, group);
    if (!budget.take(1 + fitting)) break;
    if (fitting == rows_of_.degree(column)) return group;
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
    if (rows_that_fit(column, group, longest) < rows_of_.degree(column)) continue;
    append(column, group);
    if (filled_[at(group)] == group_size_) ++group;
  }
}

void Grouping::place_all(Budget& budget, double placing_part) {
  const auto steps_for_repair =
      static_cast<std::int64_t>((1 - placing_part) * static_cast<double>(budget.steps_left()));
  fill_groups_of_overlong_row();
  for (const VertexId column : placing_order()) {
    if (group_of_[at(column)] != nowhere) continue;
    const VertexId longest = longest_row_[at(column)];
    const auto home =
        longest >= 0 ? next_group_[at(longest)] : static_cast<std::int32_t>(column / group_size_);
    const bool may_look = !budget.is_spent() && budget.steps_left() > steps_for_repair;
    const std::int32_t group = may_look ? nearest_fit(column, home, budget) : nowhere;
    if (group == nowhere) {
      left_over_.push_back(column);
      continue;
    }
    append(column, group);
    if (longest >= 0) next_group_[at(longest)] = (group + 1) % num_groups_;
  }
}

bool Grouping::place(Budget& budget, double placing_part) {
  place_all(budget, placing_part);
  const bool is_spent = budget.is_spent();
  for (const VertexId column : left_over_) {
    const std::int32_t group = open_.at_or_above(0);
    is_spent ? seat(column, group) : append(column, group);
  }
  return violations_ == 0 && !(is_spent && !left_over_.empty());
}

bool Grouping::run(Budget& budget, double placing_part) {
  if (place(budget, placing_part)) return true;
  if (budget.is_spent()) return false;
  GroupRepair repair(rows_of_, columns_of_, group_size_, order(), seed_);
  const bool is_clean = repair.fix_few(budget) || repair.fix_many(budget);
  members_ = repair.members_at_best();
  swaps_ += repair.swaps();
  return is_clean;
}

std::vector<VertexId> Grouping::order() const {
  return {members_.begin(), members_.begin() + rows_of_.size};
}

}  // namespace tessera::reorder::detail
