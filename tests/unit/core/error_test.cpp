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
  EXPECT_STREQ(Error(ErrorCode::io, "gone", "\x1b]0;title\x07").what(), "\\x1b]0;title\\x07: gone");
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
