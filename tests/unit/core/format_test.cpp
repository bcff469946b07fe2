// SPDX-License-Identifier: Apache-2.0
// The stand-in that builds without fmt use, against fmt itself.
#include <fmt/format.h>
#include <gtest/gtest.h>

#define fmt stand_in
#include "../../../bindings/torch/stand_ins/fmt/format.h"
#undef fmt

#include <limits>
#include <string>

namespace tessera {
namespace {

TEST(StandInFormat, SaysWhatFmtSays) {
  const auto same = [](const char* pattern, const auto&... values) {
    EXPECT_EQ(stand_in::format(pattern, values...), fmt::format(fmt::runtime(pattern), values...))
        << pattern;
  };
  same("no arguments, {{braces}}");
  same("{} and {}", 7, "text");
  same("{} {} {} {}", -3, std::int64_t{1} << 40, std::string("s"), true);
  same("{} {} {}", 0.1, 1e300, 2.5f);
  same("{} {}", std::numeric_limits<double>::infinity(), -0.0);
  same("{:.1f} {:.2f} {:.3g} {:.4g} {:.6g} {:.1e}", 1.25, 2.0, 1e-7, 123456.0, 0.5, 3.14);
  same("{:.3f} {:.2f}", 1e300, -1e-300);
  same("{:g} {:g} {:g}", 0.25, 1e-9, 123456789.0);
  same("{:016x}", std::uint64_t{0xABCDEF});
  same("[{:<18}]", "left");
  same("{}", 'c');
  const int number = 0;
  EXPECT_EQ(stand_in::format("{} {}", stand_in::ptr(&number), stand_in::ptr(nullptr)),
            fmt::format("{} {}", fmt::ptr(&number), fmt::ptr(static_cast<void*>(nullptr))));
}

}  // namespace
}  // namespace tessera
