// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/device_traits.hpp"
#include "ops/bits/kernel.hpp"
#include "ops/rows/policy.hpp"
#include "ops/spmm/kernel.hpp"

namespace tessera::ops {

/// How a product is cut into blocks.
struct BitBlocks {
  int rows = 128;
  int width = 128;
  bool halves = true;  ///< whether two may share K
};

/// How many blocks share K of each tile: two where one leaves half of the processors idle, or where
/// there is enough to multiply for both.
int blocks_of_tile(const BitOptions& options, BitBlocks blocks, const DeviceTraits& traits);

double predict_planes_us(const BitProblem& problem, BitBlocks blocks, const DeviceTraits& traits);
double predict_bytes_us(const BitProblem& problem, BitBlocks blocks, const DeviceTraits& traits);
double predict_pairs_us(const BitProblem& problem, const DeviceTraits& traits);
double predict_byte_pairs_us(const BitProblem& problem, const DeviceTraits& traits);
double predict_bit_windows_us(const BitProblem& problem, const DeviceTraits& traits);
double predict_bit_tall_us(const BitProblem& problem, const DeviceTraits& traits);
/// How many sources come is not known.
double predict_bit_lists_us(const BitProblem& problem, const DeviceTraits& traits);
double predict_bit_wide_us(const BitProblem& problem, const DeviceTraits& traits);
double predict_bit_rows_us(const BitProblem& problem, const RowsPolicy& policy,
                           const DeviceTraits& traits);

/// Sums of 16-bit features whose rows have as many bytes as those of the codes.
SpmmProblem as_features(const BitProblem& problem);

}  // namespace tessera::ops
