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
  /// Whether the second launch begins while the first still runs.
  bool overlapped = true;
};

inline constexpr std::array<HybridPolicy, 4> hybrid_policies = {{
    {"hybrid_64", tall_policies[0]},
    {"hybrid_64_long", tall_policies[1]},
    {"hybrid_64_apart", tall_policies[1], false},
    {"hybrid_64_mma", tall_policies[6]},
}};
static_assert(hybrid_policies[3].tall.warps && !hybrid_policies[3].tall.valued);

}  // namespace tessera::ops
