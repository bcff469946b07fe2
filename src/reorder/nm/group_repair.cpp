// SPDX-License-Identifier: Apache-2.0
#include "reorder/nm/group_repair.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace tessera::reorder::detail {
namespace {

/// A row with an entry in so many columns is kept as bits: those take 8 bytes per entry at most.
constexpr std::int64_t columns_per_entry = 64;
/// A row of fewer entries cannot violate.
constexpr EdgeOffset entries_that_matter = 3;
/// The temperature at which hardly any swap leaves more violations.
constexpr double cold = 0.12;

}  // namespace

GroupRepair::GroupRepair(const Adjacency& rows_of, const Adjacency& columns_of, int group_size,
                         std::vector<VertexId> members, std::uint64_t seed)
    : num_columns_(rows_of.size),
      group_size_(group_size),
      num_groups_(
          static_cast<std::int32_t>((std::int64_t{num_columns_} + group_size - 1) / group_size)),
      density_(static_cast<double>(columns_of.num_edges()) / num_columns_ / columns_of.size),
      counts_(columns_of),
      members_(std::move(members)),
      slot_of_(at(num_columns_)),
      short_violations_(at(num_groups_)),
      violations_of_(at(num_groups_)),
      place_in_bad_(at(num_groups_), -1),
      user_(at(columns_of.size), -1),
      draws_(seed) {
  collect_rows(rows_of, columns_of);
  twos_.assign(at(num_groups_) * words_, 0);
  threes_.assign(at(num_groups_) * words_, 0);
  for (std::int32_t slot = 0; slot < num_columns_; ++slot) {
    slot_of_[at(members_[at(slot)])] = slot;
    enter(members_[at(slot)], slot / group_size_);
  }
  for (std::int32_t group = 0; group < num_groups_; ++group) refresh(group);
  best_ = violations_;
}

void GroupRepair::collect_rows(const Adjacency& rows_of, const Adjacency& columns_of) {
  std::vector<VertexId> long_rows;
  const std::int64_t room = most_per_row * (num_columns_ / group_size_) +
                            std::min(most_per_row, num_columns_ % group_size_);
  for (VertexId row = 0; row < columns_of.size; ++row) {
    const EdgeOffset length = columns_of.degree(row);
    unavoidable_ += std::max<std::int64_t>(0, length - room);
    if (length >= entries_that_matter && length * columns_per_entry >= num_columns_) {
      long_rows.push_back(row);
    }
  }
  std::stable_sort(long_rows.begin(), long_rows.end(), [&](VertexId a, VertexId b) {
    return columns_of.degree(a) > columns_of.degree(b);
  });
  words_ = (long_rows.size() + 63) / 64;
  bits_.assign(at(num_columns_) * words_, 0);
  std::vector<char> is_long(at(columns_of.size), 0);
  for (std::size_t bit = 0; bit < long_rows.size(); ++bit) {
    is_long[at(long_rows[bit])] = 1;
    for (const VertexId column : columns_of.neighbours(long_rows[bit])) {
      bits_[at(column) * words_ + bit / 64] |= Word{1} << (bit % 64);
    }
  }
  for (VertexId column = 0; column < num_columns_; ++column) {
    for (const VertexId row : rows_of.neighbours(column)) {
      if (is_long[at(row)] == 0 && columns_of.degree(row) >= entries_that_matter) {
        short_rows_.push_back(row);
      }
    }
    short_offsets_.push_back(static_cast<EdgeOffset>(short_rows_.size()));
  }
}

std::span<const VertexId> GroupRepair::short_rows(VertexId column) const {
  const auto begin = at(short_offsets_[at(column)]);
  return {short_rows_.data() + begin, at(short_offsets_[at(column) + 1]) - begin};
}

std::span<const VertexId> GroupRepair::members_of(std::int32_t group) const {
  const std::int64_t begin = std::int64_t{group} * group_size_;
  return {members_.data() + begin, at(std::min<std::int64_t>(group_size_, num_columns_ - begin))};
}

void GroupRepair::enter(VertexId column, std::int32_t group) {
  for (const VertexId row : short_rows(column)) {
    if (counts_.count(row, group, most_per_row) == most_per_row) ++short_violations_[at(group)];
    counts_.add(row, group);
  }
}

void GroupRepair::leave(VertexId column, std::int32_t group) {
  for (const VertexId row : short_rows(column)) {
    counts_.remove(row, group);
    if (counts_.count(row, group, most_per_row) == most_per_row) --short_violations_[at(group)];
  }
}

void GroupRepair::refresh(std::int32_t group) {
  std::int64_t violations = short_violations_[at(group)];
  for (std::size_t word = 0; word < words_; ++word) {
    Word one = 0, two = 0, three = 0;
    for (const VertexId member : members_of(group)) {
      const Word rows = bits_of(member)[word];
      violations += std::popcount(rows & two);
      three |= rows & two;
      two |= rows & one;
      one |= rows;
    }
    twos_[at(group) * words_ + word] = two;
    threes_[at(group) * words_ + word] = three;
  }
  violations_ += violations - std::exchange(violations_of_[at(group)], violations);
  std::int32_t& place = place_in_bad_[at(group)];
  if (violations > 0 && place < 0) {
    place = static_cast<std::int32_t>(bad_.size());
    bad_.push_back(group);
  } else if (violations == 0 && place >= 0) {
    bad_[at(place)] = bad_.back();
    place_in_bad_[at(bad_.back())] = place;
    bad_.pop_back();
    place = -1;
  }
}

std::int64_t GroupRepair::violations_at(VertexId column) {
  const std::int32_t group = group_of(column);
  if (violations_of_[at(group)] == 0) return 0;
  std::int64_t found = 0;
  steps_ += static_cast<std::int64_t>(words_);
  const Word* const threes = threes_.data() + at(group) * words_;
  for (std::size_t word = 0; word < words_; ++word) {
    found += std::popcount(bits_of(column)[word] & threes[word]);
  }
  if (short_violations_[at(group)] == 0) return found;
  for (const VertexId row : short_rows(column)) {
    steps_ += 4;
    found += counts_.count(row, group, most_per_row + 1) > most_per_row ? 1 : 0;
  }
  return found;
}

std::int64_t GroupRepair::added_violations(VertexId column, std::int32_t group, VertexId without,
                                           std::int64_t most) {
  std::int64_t added = 0;
  const Word* const own = bits_of(column);
  const Word* const other = bits_of(without);
  const Word* const twos = twos_.data() + at(group) * words_;
  const Word* const threes = threes_.data() + at(group) * words_;
  for (std::size_t word = 0; word < words_ && added <= most; ++word) {
    added += std::popcount(own[word] & (threes[word] | (twos[word] & ~other[word])));
    ++steps_;
  }
  if (added > most) return added;
  for (const VertexId row : short_rows(without)) user_[at(row)] = without;
  for (const VertexId row : short_rows(column)) {
    const int left_out = user_[at(row)] == without ? 1 : 0;
    const int full = most_per_row + left_out;
    added += counts_.count(row, group, full) == full ? 1 : 0;
    steps_ += 4;
  }
  return added;
}

bool GroupRepair::is_allowed(VertexId a, VertexId b, std::int64_t allowed) {
  const std::int64_t most = allowed + violations_at(a) + violations_at(b);
  const std::int64_t added = added_violations(b, group_of(a), a, most);
  return added <= most && added + added_violations(a, group_of(b), b, most - added) <= most;
}

void GroupRepair::swap_columns(VertexId a, VertexId b) {
  const std::int32_t group_a = group_of(a), group_b = group_of(b);
  leave(a, group_a);
  leave(b, group_b);
  std::swap(members_[at(slot_of_[at(a)])], members_[at(slot_of_[at(b)])]);
  std::swap(slot_of_[at(a)], slot_of_[at(b)]);
  enter(a, group_b);
  enter(b, group_a);
  refresh(group_a);
  refresh(group_b);
}

VertexId GroupRepair::partner_of(VertexId column) {
  constexpr int most_tries = 256;
  const auto any = [&] { return static_cast<VertexId>(draws_.below(num_columns_)); };
  if (draws_.below(2) == 0) return any();
  // A long row of which the group has too many.
  const Word* const threes = threes_.data() + at(group_of(column)) * words_;
  std::size_t word = 0;
  Word row = 0;
  std::int64_t seen = 0;
  steps_ += static_cast<std::int64_t>(words_);
  for (std::size_t i = 0; i < words_; ++i) {
    for (Word left = bits_of(column)[i] & threes[i]; left != 0; left &= left - 1) {
      if (draws_.below(++seen) != 0) continue;
      word = i;
      row = left & -left;
    }
  }
  if (row == 0) return any();
  // A column without this row, from a group that has room for one with it.
  VertexId other = any();
  for (int i = 0; i < most_tries; ++i, other = any()) {
    if (((bits_of(other)[word] | twos_[at(group_of(other)) * words_ + word]) & row) == 0) break;
    ++steps_;
  }
  return other;
}

std::int64_t GroupRepair::try_swap(double chance_of_one) {
  steps_ = 4;
  const std::int32_t group = bad_[at(draws_.below(static_cast<std::int64_t>(bad_.size())))];
  const auto members = members_of(group);
  const VertexId column = members[at(draws_.below(static_cast<std::int64_t>(members.size())))];
  if (violations_at(column) == 0) return steps_;
  const VertexId other = partner_of(column);
  std::int64_t allowed = 0;
  while (draws_.uniform() < chance_of_one) ++allowed;
  if (group_of(other) == group) return steps_;
  if (!is_allowed(column, other, allowed)) return steps_;
  swap_columns(column, other);
  ++swaps_;
  keep_best(slot_of_[at(column)], slot_of_[at(other)]);
  return steps_ + 4 * group_size_ * static_cast<std::int64_t>(words_) +
         16 * static_cast<std::int64_t>(short_rows(column).size() + short_rows(other).size());
}

void GroupRepair::keep_best(std::int32_t slot_a, std::int32_t slot_b) {
  if (violations_ < best_) {
    best_ = violations_;
    since_best_.clear();
    best_members_.clear();
    return;
  }
  if (!best_members_.empty()) return;
  since_best_.emplace_back(slot_a, slot_b);
  // As many swaps take the time and the memory of a copy.
  if (std::ssize(since_best_) >= num_columns_) {
    best_members_ = members_at_best();
    since_best_.clear();
  }
}

std::vector<VertexId> GroupRepair::members_at_best() const {
  if (!best_members_.empty()) return best_members_;
  std::vector<VertexId> members = members_;
  for (auto swap = since_best_.rbegin(); swap != since_best_.rend(); ++swap) {
    std::swap(members[at(swap->first)], members[at(swap->second)]);
  }
  return members;
}

bool GroupRepair::anneal(double hot, double cold, std::int64_t steps, Budget& budget) {
  constexpr int tries_between = 64;
  std::int64_t spent = 0;
  while (violations_ > unavoidable_ && spent < steps) {
    const double part = static_cast<double>(spent) / static_cast<double>(steps);
    const double chance_of_one = std::exp(-1 / (hot * std::pow(cold / hot, part)));
    std::int64_t taken = 0;
    for (int i = 0; i < tries_between && violations_ > unavoidable_; ++i)
      taken += try_swap(chance_of_one);
    spent += taken;
    if (!budget.take(taken)) break;
  }
  return violations_ == 0;
}

bool GroupRepair::fix_few(Budget& budget) {
  anneal(cold, cold, budget.steps_left() / 16, budget);
  return best_ == 0;
}

bool GroupRepair::fix_many(Budget& budget) {
  // The denser the pattern, the more of a group has to change at once.
  const double hot = std::clamp(2 * density_, 0.2, 0.7);
  anneal(hot, cold, budget.steps_left(), budget);
  return best_ == 0;
}

}  // namespace tessera::reorder::detail
