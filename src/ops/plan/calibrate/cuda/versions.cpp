// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime_api.h>

#include <fstream>
#include <string>

#include <fmt/format.h>

#include "core/cuda_check.hpp"
#include "ops/plan/measured_profile.hpp"
#include "tessera/core/version.hpp"

namespace tessera::ops {
namespace {

std::string cuda_version(int number) {
  return fmt::format("CUDA {}.{}", number / 1000, number % 1000 / 10);
}

}  // namespace

/// Of the kernel's module, which the runtime does not tell: "NVRM version: ... Module 580.65.06
/// ...". Where that cannot be read, the newest CUDA that the driver serves has to do.
std::string driver_of_gpus() {
  std::ifstream file("/proc/driver/nvidia/version");
  for (std::string word; file >> word;) {
    const bool is_number = word.find_first_not_of("0123456789.") == std::string::npos;
    if (is_number && word.find('.') != std::string::npos) return word;
  }
  int number = 0;
  cuda_check(cudaDriverGetVersion(&number), "asking for the driver's version");
  return cuda_version(number);
}

std::string this_build() { return fmt::format("{}, {}", version(), cuda_version(CUDART_VERSION)); }

}  // namespace tessera::ops
