// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "cuda/cuts.hpp"
#include "tessera/core/dtype.hpp"

namespace tessera::ops {

/// Lanes that share a row; a row's numbers are edges x heads.
inline constexpr std::array<int, 4> softmax_teams = {4, 8, 16, 32};
inline constexpr int softmax_block_threads = 256;

/// Edges x heads numbers, stored as T.
struct EdgeNumbers {
  const void* data = nullptr;
  std::int64_t stride = 0;
};

/// Everything a launch needs; passed to the GPU by value.
struct SoftmaxLaunch {
  cuda::CutRows rows;
  std::int64_t heads = 1;
  EdgeNumbers first;   ///< scores; backward: weights
  float scale = 1;     ///< of scores
  EdgeNumbers second;  ///< backward: gradients of weights
  void* result = nullptr;
  std::int64_t result_stride = 0;
  float* slots = nullptr;  ///< two numbers for each piece and head
  /// Forward: where max + log(sum) of each row and head goes; null: nowhere.
  float* log_sum = nullptr;
  std::int64_t log_sum_stride = 0;
};

using SoftmaxFunction = void (*)(const SoftmaxLaunch& launch, Stream stream);

/// What sets kernels apart.
struct SoftmaxKey {
  Precision precision = Precision::fp32;
  bool backward = false;

  friend constexpr bool operator==(const SoftmaxKey&, const SoftmaxKey&) = default;
};

/// One function per size of teams, which deals with long rows too. Compiled in units of their own
/// (inst/).
template <SoftmaxKey key>
struct SoftmaxKernels {
  static std::span<const SoftmaxFunction> get();
};

}  // namespace tessera::ops
