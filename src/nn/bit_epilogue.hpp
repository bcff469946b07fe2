// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "tessera/nn/bit_network.hpp"
#include "tessera/ops/bits.hpp"

namespace tessera::nn {

/// What the epilogue of a step has for each column, one after another as `parts` gives them out.
struct EpilogueNumbers {
  std::vector<float> all;
  std::int64_t cols = 0;
  std::int64_t terms = 0;
  bool bias = false;
  bool norm = false;

  /// The parts in memory that holds `all`.
  ops::BitEpilogue parts(const float* at, Device device) const;
};

/// From codes back to numbers (docs/quantisation.md has the formulas). `scales_rows`: whether rows
/// of the codes have a factor, so that what lower bounds add is a term of its own. `own`: how often
/// the codes of a target itself are added to its sums.
EpilogueNumbers epilogue_numbers(const BitStep& step, bool scales_rows, float own);

}  // namespace tessera::nn
