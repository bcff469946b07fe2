// SPDX-License-Identifier: Apache-2.0
#include "tessera/ops/kernels.hpp"

#include <algorithm>

#include "ops/aggregate_update/kernel.hpp"
#include "ops/attention/kernel.hpp"
#include "ops/bits/kernel.hpp"
#include "ops/edge_softmax/kernel.hpp"
#include "ops/messages/kernel.hpp"
#include "ops/plan/registry.hpp"
#include "ops/sddmm/kernel.hpp"
#include "ops/spmm/kernel.hpp"

namespace tessera::ops {

std::vector<KernelInfo> kernels() {
  std::vector<KernelInfo> all;
  append_infos(all, aggregate_update_kernels());
  append_infos(all, attention_kernels());
  append_infos(all, bit_aggregate_kernels());
  append_infos(all, bit_gemm_kernels());
  append_infos(all, bit_lists_kernels());
  append_infos(all, edge_softmax_kernels());
  append_infos(all, messages_kernels());
  append_infos(all, sddmm_kernels());
  append_infos(all, spmm_kernels());
  std::sort(all.begin(), all.end(),
            [](const KernelInfo& a, const KernelInfo& b) { return a.name < b.name; });
  return all;
}

std::vector<KernelInfo> kernels(const std::string& op) {
  std::vector<KernelInfo> chosen = kernels();
  std::erase_if(chosen, [&](const KernelInfo& info) { return info.op != op; });
  return chosen;
}

}  // namespace tessera::ops
