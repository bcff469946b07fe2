// SPDX-License-Identifier: Apache-2.0
#include "tessera/io/device_profile.hpp"

#include <gtest/gtest.h>

#include "support/expect_error.hpp"
#include "support/files.hpp"

namespace tessera::io {
namespace {

std::string complete() { return device_profile_text(built_in_profile("a100")); }

/// The line of a field replaced, or removed.
std::string with(const std::string& field, const std::string& line) {
  std::string text = complete();
  const std::size_t begin = text.find("\n" + field + "\t") + 1;
  EXPECT_NE(begin, 0u) << field;
  text.replace(begin, text.find('\n', begin) + 1 - begin, line);
  return text;
}

TEST(DeviceProfileFileTest, WhatIsWrittenIsRead) {
  for (const DeviceProfile& profile : built_in_profiles()) {
    const std::string text = device_profile_text(profile);
    const DeviceProfile again = parse_device_profile(text, "here");
    EXPECT_EQ(device_profile_text(again), text) << profile.name;
    EXPECT_EQ(again.processors, profile.processors);
    EXPECT_EQ(again.l2_bytes, profile.l2_bytes);
  }
  EXPECT_EQ(parse_device_profile(device_profile_text(built_in_profile("h200")), "here"),
            built_in_profile("h200"));
  const test::TemporaryFolder folder;
  test::write_file(folder / "mine.profile", complete());
  EXPECT_EQ(device_profile_text(load_device_profile(folder / "mine.profile")), complete());
}

TEST(DeviceProfileFileTest, OtherEndsOfLinesAndRatesOfSeveralLengths) {
  std::string text = with("l2_gather", "l2_gather\t64:2e6 512:9.5e6\r\n");
  text += "\n";
  const DeviceProfile read = parse_device_profile(text, "here");
  const GatherRates expected = {{64, 2e6}, {512, 9.5e6}};
  EXPECT_EQ(read.l2_gather, expected);
}

TEST(DeviceProfileFileTest, MistakesAreNamed) {
  const auto rejected = [](const std::string& text, const std::vector<std::string>& parts,
                           ErrorCode code = ErrorCode::bad_data) {
    std::vector<std::string> all = parts;
    all.emplace_back("mine.profile");
    testing::expect_error(code, all, [&] { parse_device_profile(text, "mine.profile"); });
  };
  rejected("", {"no profile of a GPU"});
  rejected("{}", {"no profile of a GPU"});
  rejected("tessera device profile\n", {"another format than 1"}, ErrorCode::unsupported);
  rejected("tessera device profile\t2\n", {"another format than 1"}, ErrorCode::unsupported);
  rejected("tessera device profile\t1\n", {"name is missing"});
  rejected(with("l2_bytes", ""), {"l2_bytes is missing"});
  rejected(with("l2_bytes", "l2_bytes\t\n"), {"l2_bytes is not a whole number", "line"});
  rejected(with("l2_bytes", "l2_bytes\n"), {"l2_bytes is not a whole number"});
  rejected(with("l2_bytes", "l2_bytes\t1\nl2_bytes\t2\n"), {"l2_bytes comes twice"});
  rejected(with("processors", "processors\t1.5\n"), {"processors is not a whole number"});
  rejected(with("processors", "processors\t99999999999\n"), {"processors is not a whole number"});
  rejected(with("processors", "processors\t0\n"), {"processors is 0"});
  rejected(with("latency_us", "latency_us\tfast\n"), {"latency_us is not a number"});
  rejected(with("latency_us", "latency_us\tnan\n"), {"latency_us is nan"});
  rejected(with("l2_gather", "l2_gather\t512\n"), {"l2_gather is not pairs"});
  rejected(with("l2_gather", "l2_gather\t512:1 64:1\n"),
           {"l2_gather has a row of 64 bytes after one of 512"});
  rejected(complete() + "speed\t3\n", {"no field 'speed'"});
  rejected(complete().substr(0, complete().size() / 2), {"make it again"});
}

}  // namespace
}  // namespace tessera::io
