// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "ops/spmm/cuda/tall/policy.hpp"

namespace tessera::ops {

/// How the windows on tensor cores are computed; those on CUDA cores take the policy that suits
/// their rows.
struct HybridPolicy {
  const char* name;
  TallPolicy tall;
  /// Whether windows are made of rows in an order of the plan's own (row_order.hpp).
  bool ordered = false;
};

inline constexpr std::array<HybridPolicy, 3> hybrid_policies = {{
    {"hybrid_64", tall_policies[0]},
    {"hybrid_64_mma", tall_policies[6]},
    {"ordered_64", tall_policies[0], true},
}};
static_assert(hybrid_policies[1].tall.warps && !hybrid_policies[1].tall.valued);

}  // namespace tessera::ops
