// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/attention/cuda/tall/launch.hpp"

/// GAT's forward pass over windows that keeps sums over the edges whose score lies above 0, and
/// what takes the place of the sweep over rows then (tessera/ops/attention_kept.hpp).
namespace tessera::ops {

/// Per row and head the sum of P V, in the type of the output, and that of P.
struct KeptSums {
  void* features = nullptr;
  float* weights = nullptr;
};

struct KeepingLaunch : TallAttentionLaunch {
  KeptSums above;
};

struct KeepingFunctions {
  void (*forward)(const KeepingLaunch& launch, Stream stream) = nullptr;
  int (*resident_blocks)() = nullptr;
  /// dl from the sums that were kept, and the states of targets for the sweep over columns.
  void (*find_states)(const KeepingLaunch& launch, Stream stream) = nullptr;
};

/// Numbers per row of a piece of a cut window: features of both kinds of all heads, then four for
/// the weights of each.
constexpr std::int64_t kept_slot_row(std::int64_t features, std::int64_t heads) {
  return 2 * features + 4 * heads;
}

/// What was not kept is not a number.
void forget_kept(float* numbers, std::int64_t count, Stream stream);

}  // namespace tessera::ops
