// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cctype>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tessera/ops/kernels.hpp"
#include "tessera/ops/spmm.hpp"

namespace tessera::testing {

/// The registered kernels of an op that this machine can run.
inline std::vector<std::string> kernel_names(const std::string& op) {
  std::vector<std::string> names;
  for (const ops::KernelInfo& info : ops::kernels(op)) {
    if (info.device == DeviceKind::cpu || num_gpus() > 0) names.push_back(info.name);
  }
  return names;
}

/// What a registered kernel says of itself.
inline ops::KernelInfo kernel_info(const std::string& name) {
  for (const ops::KernelInfo& info : ops::kernels()) {
    if (info.name == name) return info;
  }
  ADD_FAILURE() << "no kernel is called " << name;
  return {};
}

/// One of an op's table of kernels.
template <class Kernels>
const auto& kernel_named(const Kernels& kernels, const std::string& name) {
  for (const auto& kernel : kernels) {
    if (kernel.info.name == name) return kernel;
  }
  throw std::runtime_error("no kernel is called " + name);
}

/// Whether a kernel of spmm has this reduction; those of a GPU say so themselves.
inline bool takes(const std::string& kernel, ops::Reduction reduction) {
  const bool picks = reduction == ops::Reduction::max || reduction == ops::Reduction::min;
  return !picks || kernel != "spmm/cpu/scatter";
}

/// Where a kernel of this name runs: "spmm/cuda/rows" on the first GPU.
inline Device device_of(const std::string& kernel) {
  return {kernel.find("/cuda/") == std::string::npos ? DeviceKind::cpu : DeviceKind::cuda, 0};
}

/// A kernel's name with underscores, as GoogleTest wants it.
inline std::string kernel_test_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

}  // namespace tessera::testing
