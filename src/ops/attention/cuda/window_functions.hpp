// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "ops/windows/edge_launch.hpp"

/// What strategies over windows have beside a forward pass.
namespace tessera::ops {

/// The backward pass: a sweep over rows for targets, then one over columns for sources and values.
struct WindowsSweeps {
  WindowsFunction by_rows, by_columns;
};

/// Those for each of some widths of heads.
template <const auto& widths>
using FunctionsOf = std::array<WindowsFunction, widths.size()>;
template <const auto& widths>
using SweepsOf = std::array<WindowsSweeps, widths.size()>;

// GAT's forward pass that keeps sums over the edges whose score lies above 0, and what takes the
// place of the sweep over rows then (tessera/ops/attention_kept.hpp).

/// Per row and head the sum of P V, in the type of the output, and that of P.
struct KeptSums {
  void* features = nullptr;
  float* weights = nullptr;
};

struct KeepingLaunch : WindowsLaunch {
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
