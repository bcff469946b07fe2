// SPDX-License-Identifier: Apache-2.0
#include "ops/bits/loops.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <vector>

#include "tessera/core/random.hpp"

namespace tessera::ops {
namespace {

/// Bytes of all sizes, and many of the greatest.
std::vector<std::uint8_t> drawn_bytes(std::size_t count, std::uint64_t seed) {
  const Random random(seed);
  std::vector<std::uint8_t> bytes(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto number = static_cast<std::uint32_t>(random.uniform(i) * 320);
    bytes[i] = static_cast<std::uint8_t>(number < 256 ? number : 255);
  }
  return bytes;
}

/// Around the edges of vectors and of runs that fit 32 bits.
constexpr std::int64_t depths[] = {0, 4, 12, 16, 28, 64, 68, 124, 132, 1020, 16380, 16452, 33000};

TEST(BitLoops, MultiplyBytesAlikeInAllInstructionSets) {
  for (const Isa isa : available_isas()) {
    const bits::Table& loops = bit_loops(isa);
    for (const std::int64_t depth : depths) {
      const auto size = static_cast<std::size_t>(depth);
      const std::vector<std::uint8_t> a = drawn_bytes(size, 1);
      const std::vector<std::uint8_t> b = drawn_bytes(size * bits::columns_at_once, 2);
      std::int64_t products[bits::columns_at_once];
      loops.dot(a.data(), b.data(), depth, depth, products);
      for (int c = 0; c < bits::columns_at_once; ++c) {
        std::int64_t expected = 0;
        for (std::size_t k = 0; k < size; ++k) {
          expected += std::int64_t{a[k]} * b[static_cast<std::size_t>(c) * size + k];
        }
        EXPECT_EQ(products[c], expected) << to_string(isa) << ", " << depth << " bytes";
      }
    }
  }
}

TEST(BitLoops, CountBitsAlikeInAllInstructionSets) {
  const Random random(3);
  for (const Isa isa : available_isas()) {
    const bits::Table& loops = bit_loops(isa);
    for (const std::int64_t words : {0, 4, 8, 12, 16, 20, 124, 128, 1028}) {
      const auto size = static_cast<std::size_t>(words);
      std::vector<std::uint32_t> a(size), b(size * bits::columns_at_once);
      for (std::size_t i = 0; i < a.size(); ++i) a[i] = random.bits(i)[0];
      for (std::size_t i = 0; i < b.size(); ++i) b[i] = ~0u - random.bits(i + a.size())[0] % 5;
      std::int64_t counts[bits::columns_at_once];
      loops.count(a.data(), b.data(), words, words, counts);
      for (int c = 0; c < bits::columns_at_once; ++c) {
        std::int64_t expected = 0;
        for (std::size_t w = 0; w < size; ++w) {
          expected += std::popcount(a[w] & b[static_cast<std::size_t>(c) * size + w]);
        }
        EXPECT_EQ(counts[c], expected) << to_string(isa) << ", " << words << " words";
      }
    }
  }
}

/// What stands behind the last code must not count: its weights are 0, the codes are anything.
TEST(BitLoops, MultiplyFoursOfCodesAsOneByOne) {
  constexpr std::int64_t count = 32;
  for (const Isa isa : available_isas()) {
    const bits::Table& loops = bit_loops(isa);
    if (loops.multiply_fours == nullptr) continue;
    for (const std::int64_t depth : {1, 3, 4, 7, 16, 61, 128}) {
      const std::int64_t padded = (depth + 3) / 4 * 4;
      const auto codes = drawn_bytes(static_cast<std::size_t>(padded), 4);
      const auto numbers = drawn_bytes(static_cast<std::size_t>(depth * count), 5);
      std::vector<std::int16_t> weights(numbers.begin(), numbers.end());
      std::vector<std::uint8_t> fours(static_cast<std::size_t>(padded * count));
      for (std::int64_t k = 0; k < depth; ++k) {
        for (std::int64_t j = 0; j < count; ++j) {
          fours[static_cast<std::size_t>((k / 4 * count + j) * 4 + k % 4)] =
              numbers[static_cast<std::size_t>(k * count + j)];
        }
      }
      std::vector<std::int32_t> expected(count), sums(count);
      const std::int32_t one =
          loops.multiply(codes.data(), depth, weights.data(), count, count, expected.data());
      EXPECT_EQ(loops.multiply_fours(codes.data(), depth, fours.data(), count, count, sums.data()),
                one);
      EXPECT_EQ(sums, expected) << to_string(isa) << ", " << depth << " codes";
    }
  }
}

}  // namespace
}  // namespace tessera::ops
