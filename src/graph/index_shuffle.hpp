// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "tessera/core/random.hpp"

namespace tessera {

/// A seeded random order of [0, size) that needs no table: any element is computed alone, so any
/// number of threads may walk it. Its first n elements are a sample of n without repeats.
///
/// A Feistel network on pairs (left, right) of numbers below `side`, where side^2 is the first
/// square that holds `size`. What falls beyond `size` goes through the network again until it does
/// not, which keeps the map a bijection and is rare, for side^2 exceeds `size` by at most 2 side.
class IndexShuffle {
 public:
  /// `size` up to 2^62.
  IndexShuffle(std::uint64_t size, const Random& random) noexcept
      : IndexShuffle(size, square_side(size), random) {}
  /// The same where the side is known: on a GPU, too.
  constexpr IndexShuffle(std::uint64_t size, std::uint64_t side, const Random& random) noexcept
      : size_(size), side_(side) {
    for (std::size_t round = 0; round < rounds; ++round) keys_[round] = random.bits64(round);
  }

  static std::uint64_t square_side(std::uint64_t size) noexcept {
    auto side = static_cast<std::uint64_t>(std::sqrt(static_cast<double>(size)));
    while (side * side < size) ++side;
    return side;
  }

  constexpr std::uint64_t size() const noexcept { return size_; }

  /// The element at `index` < size().
  constexpr std::uint64_t operator()(std::uint64_t index) const noexcept {
    do {
      index = permute(index);
    } while (index >= size_);
    return index;
  }

 private:
  static constexpr std::size_t rounds = 6;

  static constexpr std::uint64_t mix(std::uint64_t value) noexcept {
    value = (value ^ (value >> 32)) * 0xD6E8FEB86659FD93u;
    return (value ^ (value >> 29)) * 0xD6E8FEB86659FD93u;
  }

  constexpr std::uint64_t permute(std::uint64_t index) const noexcept {
    __extension__ using Wide = unsigned __int128;
    std::uint64_t left = index / side_;
    std::uint64_t right = index % side_;
    for (const std::uint64_t key : keys_) {
      const auto shift = static_cast<std::uint64_t>((Wide{mix(right + key)} * side_) >> 64);
      std::uint64_t next = left + shift;
      if (next >= side_) next -= side_;
      left = right;
      right = next;
    }
    return left * side_ + right;
  }

  std::uint64_t size_;
  std::uint64_t side_;
  std::array<std::uint64_t, rounds> keys_{};
};

}  // namespace tessera
