// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace tessera::detail {

/// Sums by number: how strongly one vertex is tied to each group around it. A hash table no larger
/// than the neighbourhood wants, so that it stays in the nearest cache.
class Ratings {
 public:
  /// Forgets all, and makes room for so many additions to groups below `groups`.
  void start(std::int64_t additions, std::int64_t groups) {
    for (const std::uint32_t slot : used_) groups_[slot] = none;
    used_.clear();
    const auto distinct = static_cast<std::uint64_t>(std::min(additions, groups));
    const std::uint64_t room = std::bit_ceil(std::max<std::uint64_t>(2 * distinct, 8));
    if (room > groups_.size()) {
      groups_.assign(room, none);
      sums_.resize(room);
    }
    mask_ = static_cast<std::uint32_t>(room - 1);
    spread_ = static_cast<std::uint64_t>(groups) <= room ? 1u : 0x9E3779B1u;
  }

  void add(std::int32_t group, std::int64_t value) {
    const std::uint32_t slot = slot_of(group);
    if (groups_[slot] == none) {
      groups_[slot] = group;
      sums_[slot] = value;
      used_.push_back(slot);
    } else {
      sums_[slot] += value;
    }
  }

  std::int64_t operator[](std::int32_t group) const {
    const std::uint32_t slot = slot_of(group);
    return groups_[slot] == none ? 0 : sums_[slot];
  }

  /// In the order of the first addition to each.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (const std::uint32_t slot : used_) visit(groups_[slot], sums_[slot]);
  }
  std::size_t size() const { return used_.size(); }

 private:
  static constexpr std::int32_t none = -1;

  /// Where the group stands, or would.
  std::uint32_t slot_of(std::int32_t group) const {
    std::uint32_t slot = (static_cast<std::uint32_t>(group) * spread_) & mask_;
    while (groups_[slot] != group && groups_[slot] != none) slot = (slot + 1) & mask_;
    return slot;
  }

  std::vector<std::int32_t> groups_;
  std::vector<std::int64_t> sums_;
  std::vector<std::uint32_t> used_;
  std::uint32_t mask_ = 0;
  std::uint32_t spread_ = 1;
};

}  // namespace tessera::detail
