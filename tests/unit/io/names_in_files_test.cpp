// SPDX-License-Identifier: Apache-2.0
// Names of any kind as JSON and NumPy have them.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <string_view>

#include "io/json_text.hpp"
#include "io/text_array.hpp"

namespace tessera::io {
namespace {

TEST(NamesInFiles, json_is_ascii) {
  std::string json;
  append_json_text(json, std::string_view("a\"\\/\n\0\x7f\xc3\xa9\xf0\x9f\x98\x80\xff!", 15));
  EXPECT_EQ(json, "\"a\\\"\\\\/\\u000a\\u0000\\u007f\\u00e9\\ud83d\\ude00\\ufffd!\"");
}

TEST(NamesInFiles, numpy_has_four_bytes_for_a_character) {
  const auto [name, array] = text_array("id", {"ab", "", "\xc3\xa9", "\xff\xf0\x9f\x98\x80"});
  EXPECT_EQ(name, "id");
  EXPECT_EQ(array.type, "<U2");
  EXPECT_EQ(array.shape, std::vector<std::int64_t>{4});
  const char32_t expected[] = {'a', 'b', 0, 0, 0xe9, 0, 0xfffd, 0x1f600};
  ASSERT_EQ(array.bytes.size(), static_cast<std::int64_t>(sizeof(expected)));
  EXPECT_EQ(std::memcmp(array.bytes.data(), expected, sizeof(expected)), 0);
  EXPECT_EQ(text_array("id", {}).second.type, "<U1") << "NumPy knows no texts of no width";
}

}  // namespace
}  // namespace tessera::io
