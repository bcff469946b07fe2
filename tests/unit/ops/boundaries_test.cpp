// SPDX-License-Identifier: Apache-2.0
#include "ops/cuda/boundaries.hpp"

#include <vector>

#include <gtest/gtest.h>

#include "ops/cuda/whole_units.hpp"

namespace tessera::ops {
namespace {

/// A row may be read in blocks of 16 bytes if the block that it ends in ends with the operand.
TEST(BoundariesTest, RowsInBlocksEndInBlocksOfTheOperand) {
  alignas(16) static char memory[4096];
  for (std::int64_t before = 0; before < 16; before += 2) {
    for (std::int64_t width = 1; width <= 40; ++width) {
      for (const std::int64_t gap : {0, 1, 8}) {
        for (const std::int64_t rows : {0, 1, 2, 9}) {
          const ConstOperand x(memory + before, ElementType::bf16, {}, rows, width, width + gap);
          const std::int64_t found = rows_in_blocks(x, width);
          const auto end_of = [&](std::int64_t row) {
            return before + 2 * (row * (width + gap) + width);
          };
          std::int64_t expected = 0;
          while (expected < rows && (end_of(expected) + 15) / 16 * 16 <= end_of(rows - 1)) {
            ++expected;
          }
          EXPECT_EQ(found, expected) << width << " of " << width + gap << ", " << rows << " rows";
        }
      }
    }
  }
}

TEST(BoundariesTest, UnitsAreFilledUp) {
  EXPECT_TRUE(fills_units(48, Precision::bf16));
  EXPECT_FALSE(fills_units(47, Precision::bf16));
  EXPECT_FALSE(fills_units(6, Precision::fp32));
  EXPECT_TRUE(fills_units(0, Precision::fp32));
  EXPECT_EQ(features_of_units(47, Precision::bf16), 48);
  EXPECT_EQ(features_of_units(41, Precision::fp16), 48);
  EXPECT_EQ(features_of_units(41, Precision::fp32), 44);
  EXPECT_EQ(features_of_units(64, Precision::fp32), 64);
}

}  // namespace
}  // namespace tessera::ops
