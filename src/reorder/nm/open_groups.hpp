// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <numeric>
#include <vector>

namespace tessera::reorder::detail {

/// The groups that still have room, found in order of their distance from a given one. Closed
/// groups are skipped by links that are shortened whenever they are followed.
class OpenGroups {
 public:
  explicit OpenGroups(std::int32_t groups)
      : up_(static_cast<std::size_t>(groups) + 2), down_(static_cast<std::size_t>(groups) + 2) {
    std::iota(up_.begin(), up_.end(), 0);
    std::iota(down_.begin(), down_.end(), 0);
  }

  void close(std::int32_t group) {
    up_[at(group)] = group + 2;
    down_[at(group)] = group;
  }
  /// The first open group from `group` upwards, or the number of groups.
  std::int32_t at_or_above(std::int32_t group) { return find(up_, group + 1) - 1; }
  /// The first open group from `group` downwards, or -1.
  std::int32_t at_or_below(std::int32_t group) { return find(down_, group + 1) - 1; }

 private:
  static std::size_t at(std::int32_t group) { return static_cast<std::size_t>(group) + 1; }
  static std::int32_t find(std::vector<std::int32_t>& links, std::int32_t from) {
    std::int32_t end = from;
    while (links[static_cast<std::size_t>(end)] != end) end = links[static_cast<std::size_t>(end)];
    while (links[static_cast<std::size_t>(from)] != from) {
      from = std::exchange(links[static_cast<std::size_t>(from)], end);
    }
    return end;
  }

  std::vector<std::int32_t> up_;  // one place to each side of the groups ends every search
  std::vector<std::int32_t> down_;
};

}  // namespace tessera::reorder::detail
