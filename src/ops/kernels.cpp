// SPDX-License-Identifier: Apache-2.0
#include "tessera/ops/kernels.hpp"

#include "ops/registry.hpp"

namespace tessera::ops {

std::vector<KernelInfo> kernels() {
  std::vector<KernelInfo> all;
  return all;
}

std::vector<KernelInfo> kernels(const std::string& op) {
  std::vector<KernelInfo> chosen = kernels();
  std::erase_if(chosen, [&](const KernelInfo& info) { return info.op != op; });
  return chosen;
}

}  // namespace tessera::ops
