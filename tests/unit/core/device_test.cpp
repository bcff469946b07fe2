// SPDX-License-Identifier: Apache-2.0
#include "tessera/core/device.hpp"

#include <gtest/gtest.h>

#include "support/expect_error.hpp"

namespace tessera {
namespace {

TEST(Device, NamesSurviveARoundTrip) {
  for (const char* name : {"cpu", "cuda:0", "cuda:7"}) {
    EXPECT_EQ(to_string(parse_device(name)), name);
  }
  EXPECT_EQ(parse_device("cuda"), (Device{DeviceKind::cuda, 0}));
}

TEST(Device, UnknownNamesAreErrors) {
  for (const char* name : {"", "gpu", "cuda:", "cuda:-1", "cuda:1x", "CPU", "cuda:99999999999"}) {
    SCOPED_TRACE(name);
    testing::expect_error(ErrorCode::invalid_argument, {"unknown device", "cpu, cuda"},
                          [&] { parse_device(name); });
  }
}

TEST(Device, AMissingBackendIsAClearError) {
  EXPECT_NO_THROW(require_available(Device{}));
  if (built_with_cuda()) GTEST_SKIP() << "built with CUDA";
  testing::expect_error(ErrorCode::backend_unavailable, {"cuda:1", "built without CUDA"}, [] {
    require_available({DeviceKind::cuda, 1});
  });
}

}  // namespace
}  // namespace tessera
