// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "ops/spmm/kernel.hpp"
#include "tessera/core/placed_array.hpp"

/// What strategies have in common that multiply patterns by 16-bit features from registers.
namespace tessera::ops {

/// What each row of the translated side is multiplied by.
PlacedArray<float> scales_of_rows(const SpmmProblem& problem);

/// Why such a strategy cannot solve this problem, wherever its features lie and whatever they and
/// edges are; empty if it can.
std::string why_not_from_registers(const SpmmProblem& problem);

/// The same for one that takes 16-bit features alone.
std::string why_not_half(const SpmmProblem& problem);

/// The same for one that takes 0/1 patterns alone.
std::string why_not_half_pattern(const SpmmProblem& problem);

}  // namespace tessera::ops
