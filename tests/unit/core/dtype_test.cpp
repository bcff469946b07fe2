// SPDX-License-Identifier: Apache-2.0
#include "tessera/core/dtype.hpp"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "tessera/core/random.hpp"

namespace tessera {
namespace {

/// The value of 16 bits by IEEE's definition.
double value_of(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const double fraction = bits & 1023;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

bool is_finite(std::uint16_t bits) { return ((bits >> 10) & 31) != 31; }

Float16 from_bits(std::uint32_t bits) {
  Float16 number;
  number.bits = static_cast<std::uint16_t>(bits);
  return number;
}

TEST(Float16Test, EveryPatternHasItsValueAndComesBack) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const Float16 number = from_bits(bits);
    const float value = number;
    if (is_finite(number.bits)) {
      ASSERT_EQ(static_cast<double>(value), value_of(number.bits)) << bits;
      ASSERT_EQ(Float16(value).bits, number.bits) << bits;
    } else if ((bits & 1023) == 0) {
      ASSERT_EQ(value, (bits & 0x8000) != 0 ? -std::numeric_limits<float>::infinity()
                                            : std::numeric_limits<float>::infinity());
      ASSERT_EQ(Float16(value).bits, number.bits);
    } else {
      ASSERT_TRUE(std::isnan(value));
      ASSERT_TRUE(std::isnan(static_cast<float>(Float16(value))));
    }
  }
}

TEST(Float16Test, RoundsToTheNearestAndTiesToEven) {
  for (std::uint32_t bits = 0; bits < 0x7BFF; ++bits) {
    const double low = value_of(static_cast<std::uint16_t>(bits));
    const double high = value_of(static_cast<std::uint16_t>(bits + 1));
    const double middle = (low + high) / 2;
    const auto as_float = static_cast<float>(middle);
    ASSERT_EQ(static_cast<double>(as_float), middle);
    const std::uint32_t even = bits % 2 == 0 ? bits : bits + 1;
    ASSERT_EQ(Float16(as_float).bits, even) << bits;
    ASSERT_EQ(Float16(std::nextafter(as_float, 0.0f)).bits, bits);
    ASSERT_EQ(Float16(std::nextafter(as_float, 1e9f)).bits, bits + 1);
    ASSERT_EQ(Float16(-as_float).bits, even | 0x8000u);
  }
}

TEST(Float16Test, WhatIsTooLargeIsInfinite) {
  EXPECT_EQ(Float16(65519.0f).bits, 0x7BFF);
  EXPECT_EQ(Float16(65520.0f).bits, 0x7C00);
  EXPECT_EQ(Float16(-1e30f).bits, 0xFC00);
  EXPECT_EQ(Float16(std::numeric_limits<float>::infinity()).bits, 0x7C00);
}

TEST(Bfloat16Test, RoundsToTheNearestAndTiesToEven) {
  const Random random(7);
  for (std::uint64_t i = 0; i < 10000; ++i) {
    const auto value = static_cast<float>(random.normal(i));
    const Bfloat16 narrow(value);
    Bfloat16 above = narrow;
    ++above.bits;
    Bfloat16 below = narrow;
    --below.bits;
    const auto distance = [&](Bfloat16 other) {
      return std::abs(static_cast<float>(other) - value);
    };
    ASSERT_LE(distance(narrow), distance(above)) << value;
    ASSERT_LE(distance(narrow), distance(below)) << value;
  }
  EXPECT_EQ(Bfloat16(1.00390625f).bits, 0x3F80);  // half way between 1 and the next
  EXPECT_EQ(Bfloat16(1.01171875f).bits, 0x3F82);
  EXPECT_TRUE(std::isnan(static_cast<float>(Bfloat16(std::nanf("")))));
}

}  // namespace
}  // namespace tessera
