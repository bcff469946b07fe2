// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tessera/ops/kernels.hpp"

namespace tessera::testing {

/// The registered CPU kernels of an op.
inline std::vector<std::string> kernel_names(const std::string& op) {
  std::vector<std::string> names;
  for (const ops::KernelInfo& info : ops::kernels(op)) {
    if (info.device == DeviceKind::cpu) names.push_back(info.name);
  }
  return names;
}

/// A kernel's name with underscores, as GoogleTest wants it.
inline std::string kernel_test_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

}  // namespace tessera::testing
