// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "cuda/edge_rows.hpp"
#include "tessera/ops/dropout.hpp"
#include "tessera/ops/operand.hpp"

/// What staged attention does to its numbers (one for each edge and head, CSR order, side by side)
/// between dot products and sums. Four neighbours are a thread's share: they have one draw of
/// dropout, and arrays have room for a whole share at their end.
namespace tessera::ops {

inline constexpr std::int64_t staged_share = 4;

/// A sum for each block, and more blocks than processors hold at once are not needed.
inline constexpr std::int64_t max_staged_blocks = 1056;

/// Everything a launch needs; passed to the GPU by value.
struct StagedLaunch {
  std::int64_t num_numbers = 0;
  std::int64_t heads = 1;
  cuda::EdgeRows edge_rows;
  float scale = 1;
  bool drops = false;
  DropoutConstants dropout;

  float* scores = nullptr;
  /// max + log(sum) of the scaled scores of a row and head.
  const float* log_sum = nullptr;
  std::int64_t log_sum_stride = 0;

  // Backward.
  const float* row_state = nullptr;  ///< for every row its log_sum and dO . O, `heads` numbers each
  float* gradients = nullptr;        ///< null: weights alone are wanted
  double* scale_sums = nullptr;      ///< one for each block; null: not wanted
};

/// weights = exp(scale * scores - log_sum), in their own precision.
void compute_weights(const StagedLaunch& launch, Operand weights, Stream stream);

/// scores, which are weights P, become f P with the factors of dropout.
void drop_weights(const StagedLaunch& launch, Stream stream);

/// scores become f P; gradients of f P become those of the dot products, scale * P (f dP - dO . O).
void differentiate_weights(const StagedLaunch& launch, Stream stream);

/// Blocks that `differentiate_weights` takes.
std::int64_t staged_blocks(std::int64_t num_numbers);

}  // namespace tessera::ops
