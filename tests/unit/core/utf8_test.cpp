// SPDX-License-Identifier: Apache-2.0
#include "core/utf8.hpp"

#include <gtest/gtest.h>

#include <string_view>
#include <utility>

namespace tessera {
namespace {

TEST(Utf8, characters_and_what_is_none) {
  const auto first = [](std::string_view text) {
    const Character character = first_character(text);
    return std::pair(static_cast<unsigned>(character.code), character.bytes);
  };
  EXPECT_EQ(first("ab"), std::pair(0x61U, std::size_t{1}));
  EXPECT_EQ(first("\xc3\xa9t"), std::pair(0xe9U, std::size_t{2}));
  EXPECT_EQ(first("\xe2\x82\xac"), std::pair(0x20acU, std::size_t{3}));
  EXPECT_EQ(first("\xf0\x9f\x98\x80"), std::pair(0x1f600U, std::size_t{4}));
  for (const std::string_view none : {"\x80", "\xc3", "\xc3(", "\xc0\x80", "\xe0\x80\x80",
                                      "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xff"}) {
    EXPECT_EQ(first_character(none).bytes, 0u) << none;
  }
}

}  // namespace
}  // namespace tessera
