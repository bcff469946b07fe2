// SPDX-License-Identifier: Apache-2.0
#include "core/size_range.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

#include "tessera/core/parallel.hpp"

namespace tessera {
namespace {

constexpr std::int64_t grain = 1 << 16;
constexpr std::uint32_t infinity = 0x7f800000u;

}  // namespace

SizeRange SizeBits::range() const {
  SizeRange sizes;
  sizes.all_finite = largest_of_all < infinity;
  if (largest == 0) return sizes;
  sizes.smallest = std::bit_cast<float>(smallest + 1);
  sizes.largest = std::bit_cast<float>(largest);
  return sizes;
}

SizeRange sizes_of(std::span<const float> numbers) {
  const auto map = [&](std::int64_t begin, std::int64_t end) {
    SizeBits range;
    for (std::int64_t i = begin; i < end; ++i) {
      range.add(std::bit_cast<std::uint32_t>(numbers[static_cast<std::size_t>(i)]));
    }
    return range;
  };
  return parallel_reduce(static_cast<std::int64_t>(numbers.size()), grain, SizeBits{}, map,
                         [](SizeBits a, SizeBits b) {
                           return SizeBits{std::min(a.smallest, b.smallest),
                                           std::max(a.largest, b.largest),
                                           std::max(a.largest_of_all, b.largest_of_all)};
                         })
      .range();
}

}  // namespace tessera
