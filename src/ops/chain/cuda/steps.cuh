// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/batch_norm/cuda/forward.cuh"
#include "ops/loss/targets.hpp"
#include "tessera/detail/ops/call_chain.hpp"

/// Several dense ops on narrow rows in one launch. Each of its blocks has some of the rows, and
/// keeps what it has of every matrix in shared memory, where the next step reads what one wrote;
/// only sums over the rows go from block to block. So steps follow each other without a launch
/// between them, and none waits for memory but the first.
namespace tessera::ops {

inline constexpr int chain_width = most_chain_columns;  ///< columns of the widest matrix
/// Threads side by side in a row, each with four columns.
inline constexpr int chain_lanes = chain_width / 4;
/// Few, as most of a step is the same for every warp, whether it has rows or not.
inline constexpr int chain_threads = 256;
/// Rows that a block has at once.
inline constexpr int chain_rows = chain_threads / chain_lanes;
/// Rows that a block has, at most.
inline constexpr int most_block_rows = 4 * chain_rows;
inline constexpr int most_chain_calls = 8;
inline constexpr int most_chain_steps = 2 * most_chain_calls;
inline constexpr int most_chain_matrices = 12;

/// Up to so many rows one cluster has them all; its blocks meet sooner than those of a grid.
inline constexpr int most_cluster_chain_blocks = 16;
inline constexpr std::int64_t cluster_chain_rows = most_cluster_chain_blocks * most_block_rows;
inline constexpr int most_grid_chain_blocks = 128;
inline constexpr std::int64_t grid_chain_rows = most_grid_chain_blocks * most_block_rows;
static_assert(grid_chain_rows == most_chain_rows);
/// Numbers between the beginnings of two rows, at most: 32 bits count all of a matrix.
inline constexpr std::int64_t most_chain_stride = 1 << 15;

/// Shared memory of a block for what it has of a matrix.
inline constexpr int bytes_of_chain_rows(int rows_per_block) {
  return rows_per_block * chain_width * static_cast<int>(sizeof(float));
}
/// The call with the most matrices must find room.
inline constexpr int least_chain_room = 3 * bytes_of_chain_rows(most_block_rows);

/// Sums that a block keeps for every other one: two for each column.
inline constexpr int chain_sums = 2 * chain_width;
/// Sums that a chain leaves until its end, at most: those of a weight, its bias, and the columns of
/// its input's gradient for each call.
inline constexpr int weight_sums = chain_width * chain_width + chain_width;
inline constexpr int most_left_sums = most_chain_calls * (weight_sums + chain_sums);
static_assert(weight_sums % chain_width == 0 && chain_sums % chain_width == 0);

/// A matrix that steps read or write; they know it by its number in the launch.
template <class T>
struct ChainMatrix {
  T* data;
  int stride, cols;
};
inline constexpr int no_matrix = -1;

/// y = x F + bias, where F is a weight or its transpose.
template <class T>
struct ProductStep {
  int x, y;
  int gates;   ///< may be `no_matrix`: y counts only where these are above 0
  int factor;  ///< which one of the launch it is
  cuda::Rows<const T> weight;
  bool transposed;  ///< F is what the weight is the transpose of
  const T* bias;    ///< may be null
  T* sums;          ///< of the columns of y; may be null
};

/// The gradients of a weight and its bias; each may be absent.
template <class T>
struct WeightStep {
  int x, grad_y;
  cuda::Rows<T> grad_weight;
  T* grad_bias;
};

template <class T>
struct NormStep {
  int x, y;
  bool training, relu;
  Statistics<T> statistics;
};

template <class T>
struct NormGradStep {
  int x, grad_y, grad_x;
  bool relu;
  int norm;  ///< the step that found `mean`, or this one where it was found before
  const float *mean, *inverse_deviation;
  const float *gamma, *beta;  ///< each of these may be null
  float *grad_gamma, *grad_beta;
  T* grad_shift;
};

/// Cross-entropy of classes and its gradient, for rows that count so much each.
template <class T>
struct LossStep {
  int logits;
  int gradient;  ///< may be `no_matrix`
  T* sums;       ///< of its columns; may be null
  const float* weights;
  const std::int32_t* labels;
  WantedShares<float> wanted;
  double share;  ///< 1 / what all rows count
  double* value;
};

enum class ChainKind { product, weight, norm, norm_gradient, loss };

template <class T>
struct ChainStep {
  ChainKind kind;
  int first_left, left_sums;  ///< which sums it leaves until the end, and how many
  union {
    ProductStep<T> product;
    WeightStep<T> weight;
    NormStep<T> norm;
    NormGradStep<T> norm_gradient;
    LossStep<T> loss;
  };

  ChainStep() : kind(ChainKind::product), first_left(0), left_sums(0), product{} {}
};

template <class T>
struct ChainLaunch {
  int rows = 0, rows_per_block = 0;
  double share_of_row = 0;  ///< 1 / rows
  int count = 0;
  int matrices = 0, given = 0;
  int factors = 0;
  int left_sums = 0;       ///< that steps leave until the end
  int loss = -1;           ///< the step that finds one, if any
  bool exchanges = false;  ///< some step needs the sums of all blocks
  cuda::Workspace workspace = {};
  ChainMatrix<T> matrix[most_chain_matrices] = {};
  int given_matrix[most_chain_matrices] = {};  ///< those that are read before a step writes them
  int product_of_factor[most_chain_calls] = {};
  /// The steps of sums that are left, as many as a matrix has columns at a time.
  std::uint8_t step_of_left[most_left_sums / chain_width] = {};
  ChainStep<T> steps[most_chain_steps];

  int shared_bytes() const { return matrices * bytes_of_chain_rows(rows_per_block); }
};

/// In one cluster of so many blocks, or in as many that all run at once. False where there is no
/// room for them after all.
template <class T>
bool launch_chain(const ChainLaunch<T>& launch, bool in_cluster, int blocks, Stream stream);
/// How many bytes of shared memory a block on the current GPU has for matrices, or 0 where there is
/// no room for so many blocks.
template <class T>
int chain_room(bool in_cluster, int blocks);

}  // namespace tessera::ops
