// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace tessera::reorder::detail {

/// Counts addressed by (line, place), nearly all of them 0. A plain array where that is not much
/// larger than the number of counts above 0, else a hash table that holds only those.
class CountTable {
 public:
  CountTable(std::int64_t lines, std::int64_t places, std::int64_t most_nonzero)
      : places_(places), is_plain_(lines <= plain_factor * (most_nonzero + 4096) / (places + 1)) {
    if (is_plain_) {
      counts_.assign(static_cast<std::size_t>(lines * places), 0);
      return;
    }
    const std::uint64_t slots = std::bit_ceil(static_cast<std::uint64_t>(2 * most_nonzero + 2));
    keys_.assign(slots, none);
    counts_.assign(slots, 0);
    mask_ = slots - 1;
    shift_ = 64 - static_cast<int>(std::bit_width(mask_));
  }

  int get(std::int64_t line, std::int64_t place) const {
    const std::uint64_t key = key_of(line, place);
    if (is_plain_) return counts_[key];
    const std::uint64_t slot = find(key);
    return keys_[slot] == key ? counts_[slot] : 0;
  }

  /// The count after one more.
  int add(std::int64_t line, std::int64_t place) {
    const std::uint64_t key = key_of(line, place);
    if (is_plain_) return ++counts_[key];
    const std::uint64_t slot = find(key);
    keys_[slot] = key;
    return ++counts_[slot];
  }

  /// The count after one less; it must have been above 0.
  int remove(std::int64_t line, std::int64_t place) {
    const std::uint64_t key = key_of(line, place);
    if (is_plain_) return --counts_[key];
    const std::uint64_t slot = find(key);
    const int left = --counts_[slot];
    if (left == 0) close_gap(slot);
    return left;
  }

 private:
  static constexpr std::uint64_t none = ~std::uint64_t{0};
  static constexpr std::int64_t plain_factor = 8;

  std::uint64_t key_of(std::int64_t line, std::int64_t place) const {
    return static_cast<std::uint64_t>(line * places_ + place);
  }
  std::uint64_t home(std::uint64_t key) const { return (key * 0x9E3779B97F4A7C15u) >> shift_; }
  std::uint64_t find(std::uint64_t key) const {
    std::uint64_t slot = home(key);
    while (keys_[slot] != none && keys_[slot] != key) slot = (slot + 1) & mask_;
    return slot;
  }
  void close_gap(std::uint64_t gap) {
    for (std::uint64_t slot = (gap + 1) & mask_; keys_[slot] != none; slot = (slot + 1) & mask_) {
      if (((slot - home(keys_[slot])) & mask_) >= ((slot - gap) & mask_)) {
        keys_[gap] = keys_[slot];
        counts_[gap] = counts_[slot];
        gap = slot;
      }
    }
    keys_[gap] = none;
    counts_[gap] = 0;
  }

  std::int64_t places_;
  bool is_plain_;
  std::uint64_t mask_ = 0;
  int shift_ = 0;
  std::vector<std::uint64_t> keys_;
  std::vector<std::uint16_t> counts_;
};

}  // namespace tessera::reorder::detail
