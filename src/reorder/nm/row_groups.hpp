// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "reorder/nm/adjacency.hpp"

namespace tessera::reorder::detail {

/// How many entries of each row lie in each group of columns, for the columns placed so far. Every
/// row has a small hash table that holds the group of each of its entries, equal ones side by side
/// in the order of the probe: memory follows the edges whatever the number of groups.
class RowGroups {
 public:
  explicit RowGroups(const Adjacency& adjacency)
      : begin_(static_cast<std::size_t>(adjacency.size) + 1) {
    for (VertexId i = 0; i < adjacency.size; ++i) {
      const auto length = static_cast<std::uint64_t>(adjacency.neighbours(i).size());
      const std::uint64_t slots = length <= 12 ? length + 1 : length + length / 2;
      begin_[static_cast<std::size_t>(i) + 1] =
          begin_[static_cast<std::size_t>(i)] + (length == 0 ? 1 : std::bit_ceil(slots));
    }
    groups_.assign(static_cast<std::size_t>(begin_.back()), none);
  }

  /// Entries of `row` in `group`, counted up to `most`.
  int count(VertexId row, std::int32_t group, int most) const {
    const Table table = table_of(row);
    int found = 0;
    for (std::uint64_t slot = home(group, table.mask); table.groups[slot] != none;
         slot = (slot + 1) & table.mask) {
      found += table.groups[slot] == group ? 1 : 0;
      if (found == most) break;
    }
    return found;
  }

  void add(VertexId row, std::int32_t group) {
    const Table table = table_of(row);
    std::uint64_t slot = home(group, table.mask);
    while (table.groups[slot] != none) slot = (slot + 1) & table.mask;
    groups_[begin_[static_cast<std::size_t>(row)] + slot] = group;
  }

  /// The entry must be there. Later entries of the same probe move up, so that no gap cuts it.
  void remove(VertexId row, std::int32_t group) {
    const std::uint64_t begin = begin_[static_cast<std::size_t>(row)];
    const std::uint64_t mask = begin_[static_cast<std::size_t>(row) + 1] - begin - 1;
    std::int32_t* groups = groups_.data() + begin;
    std::uint64_t gap = home(group, mask);
    while (groups[gap] != group) gap = (gap + 1) & mask;
    for (std::uint64_t slot = (gap + 1) & mask; groups[slot] != none; slot = (slot + 1) & mask) {
      const std::uint64_t wanted = home(groups[slot], mask);
      if (((slot - wanted) & mask) >= ((slot - gap) & mask)) {
        groups[gap] = groups[slot];
        gap = slot;
      }
    }
    groups[gap] = none;
  }

 private:
  static constexpr std::int32_t none = -1;

  struct Table {
    const std::int32_t* groups;
    std::uint64_t mask;
  };
  Table table_of(VertexId row) const {
    const std::uint64_t begin = begin_[static_cast<std::size_t>(row)];
    return {groups_.data() + begin, begin_[static_cast<std::size_t>(row) + 1] - begin - 1};
  }
  static std::uint64_t home(std::int32_t group, std::uint64_t mask) {
    return ((static_cast<std::uint64_t>(static_cast<std::uint32_t>(group)) * 0x9E3779B97F4A7C15u) >>
            32) &
           mask;
  }

  std::vector<std::uint64_t> begin_;
  std::vector<std::int32_t> groups_;
};

}  // namespace tessera::reorder::detail
