// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tessera::sample {

/// A set of numbers from 0 on that forgets quickly: a list that is searched where few are expected,
/// a table of twice their number where many are.
class Chosen {
 public:
  /// Forgets all, and makes room for so many.
  void start(std::int64_t expected) {
    list_.clear();
    is_long_ = expected > longest_list;
    if (is_long_) table_.assign(std::bit_ceil(static_cast<std::size_t>(2 * expected)), -1);
  }

  bool contains(std::int64_t number) const {
    if (!is_long_) return std::find(list_.begin(), list_.end(), number) != list_.end();
    return table_[slot_of(number)] == number;
  }

  /// Adds a number that is not there.
  void add(std::int64_t number) {
    if (is_long_) {
      table_[slot_of(number)] = number;
    } else {
      list_.push_back(number);
    }
  }

 private:
  static constexpr std::int64_t longest_list = 32;

  /// Where the number is, or would be.
  std::size_t slot_of(std::int64_t number) const {
    const std::size_t mask = table_.size() - 1;
    std::size_t slot = (static_cast<std::uint64_t>(number) * 0x9E3779B97F4A7C15u >> 20) & mask;
    while (table_[slot] != number && table_[slot] != -1) slot = (slot + 1) & mask;
    return slot;
  }

  bool is_long_ = false;
  std::vector<std::int64_t> list_;
  std::vector<std::int64_t> table_;
};

}  // namespace tessera::sample
