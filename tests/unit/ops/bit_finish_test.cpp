// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "ops/bits/finish_many.hpp"

namespace tessera::ops {
namespace {

/// Quotients around whole numbers and around the middle between two, a few digits to either side.
TEST(FinishMany, CodesAreThoseOfADivision) {
  std::mt19937_64 random(7);
  const float infinite = std::numeric_limits<float>::infinity();
  const auto drawn = [&](std::uint64_t below) { return static_cast<double>(random() % below); };
  BitFinish finish;
  for (const int bits : {1, 2, 5, 8, 12, 16}) {
    finish.last_code = static_cast<float>((1 << bits) - 1);
    for (int range = 0; range < 200; ++range) {
      float step = std::ldexp(static_cast<float>(1 + drawn(1 << 23) / (1 << 23)),
                              static_cast<int>(drawn(120)) - 60);
      // All digits of the mantissa set, the hardest case of the quotient.
      if (range % 20 == 0) step = std::nextafter(std::ldexp(1.0f, range / 10 - 10), 0.0f);
      const float inverse = inverse_of(step);
      ASSERT_GT(inverse, 0);
      const float lower = range % 3 == 0 ? 0.0f : -step * static_cast<float>(drawn(1u << bits));
      std::vector<float> numbers = {infinite, -infinite, std::nanf(""), 0.0f, -0.0f, 3e38f, -3e38f};
      for (int i = 0; i < 400; ++i) {
        const double place =
            drawn(1u << bits) + 0.5 * (i % 3 - 1) + (i % 4 == 0 ? drawn(99) / 99 : 0);
        auto number =
            static_cast<float>(static_cast<double>(lower) + place * static_cast<double>(step));
        for (int digit = i % 5; digit > 2; --digit) number = std::nextafter(number, infinite);
        for (int digit = i % 5; digit < 2; ++digit) number = std::nextafter(number, -infinite);
        numbers.push_back(number);
      }
      for (const bool floors : {false, true}) {
        finish.floors = floors;
        for (const float number : numbers) {
          ASSERT_EQ(code_of(finish, number, lower, step, inverse),
                    finish.code(FinishRange{lower, step}, number))
              << number << " in steps of " << step << " from " << lower;
        }
      }
    }
  }
}

/// Numbers around every middle between two codes, where one correction less could show.
TEST(FinishMany, QuickCodesAreThoseOfTheDivision) {
  std::mt19937_64 random(11);
  const auto uniform = [&] { return static_cast<double>(random() % (1u << 30)) / (1u << 30); };
  BitFinish finish;
  int quick = 0;
  for (const int bits : {1, 4, 8}) {
    const int last = (1 << bits) - 1;
    finish.last_code = static_cast<float>(last);
    for (int draw = 0; draw < 1000; ++draw) {
      float step =
          std::ldexp(static_cast<float>(1 + uniform()), static_cast<int>(40 * uniform()) - 20);
      if (draw % 10 == 0) step = std::nextafter(step, 0.0f);
      if (draw < 40) step = std::ldexp(1.0f, draw - 20);
      if (!corrects_at_once(step, last)) continue;
      ++quick;
      const float inverse = inverse_of(step);
      for (int k = 0; k <= last; ++k) {
        float number = (static_cast<float>(k) + 0.5f) * step;
        for (int digit = 0; digit < 4; ++digit) number = std::nextafter(number, -1.0f);
        for (int digit = 0; digit < 9; ++digit, number = std::nextafter(number, 1e38f)) {
          ASSERT_EQ((code_within<false, true>(finish.last_code, number, 0.0f, step, inverse)),
                    finish.code(FinishRange{0.0f, step}, number))
              << number << " in steps of " << step;
        }
      }
    }
  }
  // Almost all steps are, powers of two among them.
  EXPECT_GT(quick, 2900);
  EXPECT_TRUE(corrects_at_once(64.0f, 255));
}

/// Codes of whole numbers by one product, where all of them have been tried.
TEST(FinishMany, WholeNumbersRoundDirectlyWhereThatIsTheSame) {
  std::mt19937 random(4);
  std::uniform_real_distribution<float> steps(0.3f, 200.0f);
  int direct = 0;
  for (int draw = 0; draw < 60; ++draw) {
    const float step = draw == 0 ? 64.0f : steps(random);
    for (const int last : {1, 15, 255}) {
      if (!rounds_directly(step, last)) continue;
      ++direct;
      BitFinish finish;
      finish.last_code = static_cast<float>(last);
      for (float sum = 0; sum < 400 * step; ++sum) {
        ASSERT_EQ(direct_code(finish.last_code, sum, inverse_of(step)),
                  finish.code(FinishRange{0, step}, sum))
            << sum << " in steps of " << step;
      }
      EXPECT_EQ(direct_code(finish.last_code, 8388607.0f, inverse_of(step)),
                static_cast<std::uint32_t>(last));
    }
  }
  EXPECT_GT(direct, 100);
  EXPECT_TRUE(rounds_directly(64.0f, 255));
  EXPECT_FALSE(rounds_directly(1e6f, 255)) << "too many numbers to try";
  EXPECT_FALSE(rounds_directly(0.0f, 255));
}

TEST(FinishMany, StepsAtTheEndsOfTheNumbersAreDivided) {
  EXPECT_EQ(inverse_of(1e-38f), 0);
  EXPECT_EQ(inverse_of(1e38f), 0);
  EXPECT_EQ(inverse_of(0.0f), 0);
  EXPECT_EQ(inverse_of(0.25f), 4);
}

/// With every part of the epilogue, and without each.
TEST(FinishMany, ValuesAreThoseOfOneAtATime) {
  constexpr int count = 8;
  std::array<float, 20> numbers[8];
  for (std::size_t k = 0; k < 8; ++k) {
    for (std::size_t i = 0; i < 20; ++i) {
      numbers[k][i] = static_cast<float>(static_cast<double>((k * 20 + i) * 37 % 101) / 40 - 1.1);
    }
  }
  for (unsigned left_out = 0; left_out < 256; ++left_out) {
    const auto part = [&](unsigned bit, const std::array<float, 20>& of) {
      return (left_out >> bit & 1u) != 0 ? nullptr : of.data();
    };
    BitFinish finish;
    finish.row_scale = part(0, numbers[0]);
    finish.row_scale_stride = 1;
    finish.col_scale = part(1, numbers[1]);
    finish.bias = part(2, numbers[2]);
    finish.row_terms = numbers[3].data();
    finish.row_terms_stride = 2;
    finish.col_terms = numbers[4].data();
    finish.col_terms_stride = 10;
    finish.terms = static_cast<int>(left_out >> 3 & 1u) + static_cast<int>(left_out >> 4 & 1u);
    finish.norm_scale = part(5, numbers[5]);
    finish.norm_shift = part(6, numbers[6]);
    finish.activation = (left_out >> 7 & 1u) != 0 ? BitActivation::relu : BitActivation::none;
    finish.result_scale = part(3, numbers[7]);
    finish.result_scale_stride = 1;
    const auto column_of = [](int i) { return std::int64_t{i} < 7 ? i + 2 : 9; };
    float values[count];
    for (int i = 0; i < count; ++i) values[i] = static_cast<float>(i * 13 - 20);
    finish_values(finish, finish.row(4), column_of, values);
    for (int i = 0; i < count; ++i) {
      EXPECT_EQ(values[i], finish.value(4, column_of(i), static_cast<float>(i * 13 - 20)))
          << left_out << ' ' << i;
    }
    // Codes of sums, which are none below 0, in a range that begins at 0 and in one below it.
    const float step = 3;
    const float inverse = inverse_of(step);
    finish.step = &step;
    finish.inverse = &inverse;
    finish.last_code = 15;
    finish.quick = corrects_at_once(step, 15);
    EXPECT_TRUE(finish.quick);
    for (const float lower : {0.0f, -7.0f}) {
      finish.lower = &lower;
      set_one_range(lower, step, finish);
      std::uint32_t codes[count];
      for (int i = 0; i < count; ++i) values[i] = static_cast<float>(i * 13);
      finish_values(finish, finish.row(4), column_of, values);
      finish_codes(finish, column_of, values, codes);
      for (int i = 0; i < count; ++i) {
        const float value = finish.value(4, column_of(i), static_cast<float>(i * 13));
        EXPECT_EQ(codes[i], finish.code(column_of(i), value)) << left_out << ' ' << i;
      }
    }
  }
}

}  // namespace
}  // namespace tessera::ops
