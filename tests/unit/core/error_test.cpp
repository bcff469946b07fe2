// SPDX-License-Identifier: Apache-2.0
#include "tessera/core/error.hpp"

#include <gtest/gtest.h>

#include <set>

#include "tessera/core/printable.hpp"

namespace tessera {
namespace {

TEST(Error, SaysWhatWhereAndHowToMend) {
  const Error error(ErrorCode::bad_data, "the header is short", "a.npz", "download it again");
  EXPECT_STREQ(error.what(), "a.npz: the header is short; download it again");
  EXPECT_EQ(error.code(), ErrorCode::bad_data);
  EXPECT_EQ(error.where(), "a.npz");
  EXPECT_EQ(error.fix(), "download it again");
}

TEST(Error, IsOneLineEvenIfItsPartsAreNot) {
  const Error error(ErrorCode::io, "first\nsecond\r", "a\nb");
  EXPECT_STREQ(error.what(), "a\\nb: first\\nsecond\\r");
  EXPECT_STREQ(Error(ErrorCode::io, "alone").what(), "alone");
}

TEST(Error, WritesControlCharactersOut) {
  EXPECT_EQ(printable("a\x1b[31mb\tc\x7f\x01"), "a\\x1b[31mb\\tc\\x7f\\x01");
  EXPECT_EQ(printable("\xc2\x9b and \xc3\xa9"), "\\x9b and \xc3\xa9");
  EXPECT_EQ(printable(std::string_view("\0", 1)), "\\x00");
  EXPECT_EQ(printable("one\ntwo\r", true), "one\ntwo\\r");
  EXPECT_EQ(printable("abc\u202etxt.exe\u2028\u00a0\ufeff"),
            "abc\\u202etxt.exe\\u2028\\xa0\\ufeff");
  EXPECT_EQ(printable("\U000e0041\U000e0100"), "\\U000e0041\U000e0100");
  const char* const plain = "caf\u00e9 \u540d\u524d \U0001f600 \ufffd";
  EXPECT_EQ(printable(plain), plain);
  EXPECT_STREQ(Error(ErrorCode::io, "gone", "\x1b]0;title\x07").what(), "\\x1b]0;title\\x07: gone");
}

TEST(Error, WritesBytesOutThatAreNoUtf8) {
  EXPECT_EQ(printable("\xff\xc3"), "\\xff\\xc3");
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf") << "too long for a slash";
  EXPECT_EQ(printable("\xe0\x80\x8a|\xed\xa0\x80"), "\\xe0\\x80\\x8a|\\xed\\xa0\\x80");
  EXPECT_EQ(printable("\xf4\x90\x80\x80\xf5"), "\\xf4\\x90\\x80\\x80\\xf5");
  EXPECT_EQ(printable("\xe2\x82"), "\\xe2\\x82") << "cut off";
}

TEST(Error, EveryCodeHasItsOwnName) {
  std::set<std::string> names;
  const auto codes = {
      ErrorCode::invalid_argument, ErrorCode::bad_data,    ErrorCode::io,
      ErrorCode::out_of_memory,    ErrorCode::unsupported, ErrorCode::backend_unavailable,
      ErrorCode::internal};
  for (const ErrorCode code : codes) names.insert(to_string(code));
  EXPECT_EQ(names.size(), codes.size());
  EXPECT_FALSE(names.contains("unknown"));
}

}  // namespace
}  // namespace tessera
