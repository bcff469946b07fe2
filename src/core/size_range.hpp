// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

namespace tessera {

/// Sizes of the finite numbers other than 0; 0 where there are none.
struct SizeRange {
  float smallest = 0;
  float largest = 0;
  bool all_finite = true;
};

/// The same on the way, as bits: those of positive numbers are in the order of the numbers. What is
/// left out is made neutral.
struct SizeBits {
  std::uint32_t smallest = 0xffffffffu;  ///< less 1
  std::uint32_t largest = 0;
  std::uint32_t largest_of_all = 0;

  constexpr void add(std::uint32_t bits) {
    const std::uint32_t size = bits & 0x7fffffffu;
    const std::uint32_t counted = size < 0x7f800000u ? size : 0;
    largest_of_all = size > largest_of_all ? size : largest_of_all;
    largest = counted > largest ? counted : largest;
    smallest = counted - 1 < smallest ? counted - 1 : smallest;
  }
  SizeRange range() const;
};

SizeRange sizes_of(std::span<const float> numbers);

}  // namespace tessera
