// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tessera::reorder::detail {

/// A sequence of random numbers for a search that runs on one thread (splitmix64).
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15u + 0x632BE59BD9B4E019u) {}

  std::uint64_t next() {
    state_ += 0x9E3779B97F4A7C15u;
    std::uint64_t bits = state_;
    bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9u;
    bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBu;
    return bits ^ (bits >> 31);
  }
  /// From 0 to `count` - 1; `count` is below 2^32.
  std::int64_t below(std::int64_t count) {
    return static_cast<std::int64_t>(((next() >> 32) * static_cast<std::uint64_t>(count)) >> 32);
  }
  /// In [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  std::uint64_t state_;
};

}  // namespace tessera::reorder::detail
