// SPDX-License-Identifier: Apache-2.0
#include "io/scan.hpp"

#include <gtest/gtest.h>

#include <string>

namespace tessera::io {
namespace {

/// Numbers of every length, with everything that may follow, as near to the end as it gets.
TEST(Scan, IntegersAreThoseOfTheStandardLibrary) {
  const std::string digits = "90817263544536271809";
  for (std::size_t length = 1; length <= digits.size(); ++length) {
    for (std::size_t begin = 0; begin + length <= digits.size(); ++begin) {
      for (const char* const sign : {"", "-", "+"}) {
        for (const char* const after :
             {"", "\n", ",1234567", " 1 2 3 4 5", "/999999999", ":00000000",
              "\x80\xFF\xFF\xFF\xFF\xFF\xFF", ".5", "-7", "e"}) {
          const std::string number = sign + digits.substr(begin, length);
          const std::string text = number + after;
          SCOPED_TRACE(text);
          std::int64_t expected = 0;
          const char* const first = number.data() + (number[0] == '+' ? 1 : 0);
          const bool fits =
              std::from_chars(first, number.data() + number.size(), expected).ec == std::errc();
          std::int64_t found = 0;
          const char* const stop = scan_integer(text.data(), text.data() + text.size(), found);
          ASSERT_EQ(stop, fits ? text.data() + number.size() : nullptr);
          ASSERT_TRUE(!fits || found == expected) << found;
        }
      }
    }
  }
}

TEST(Scan, WhatIsNoIntegerIsNone) {
  for (const std::string text :
       {"", "-", "+", "x1234567", " 1234567", "--1", "/1111111", ":1111111"}) {
    std::int64_t found = 0;
    EXPECT_EQ(scan_integer(text.data(), text.data() + text.size(), found), nullptr) << text;
  }
}

TEST(Scan, FewDigitsAreOneToSevenWithEightBytesBefore) {
  std::int64_t value = 0;
  const auto length = [&](const std::string& text) {
    const char* const stop = scan_few_digits(text.data(), text.data() + text.size(), value);
    return stop == nullptr ? -1 : static_cast<int>(stop - text.data());
  };
  EXPECT_EQ(length("1234567,"), 7);
  EXPECT_EQ(value, 1234567);
  EXPECT_EQ(length("0000000\n"), 7);
  EXPECT_EQ(value, 0);
  EXPECT_EQ(length("9 999999"), 1);
  EXPECT_EQ(value, 9);
  EXPECT_EQ(length("12345678 "), -1);
  EXPECT_EQ(length("1234567"), -1) << "too near to the end";
  EXPECT_EQ(length("-1234567"), -1);
}

}  // namespace
}  // namespace tessera::io
