// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/batch_norm/cuda/forward.cuh"

/// Several dense ops on narrow rows in one launch. Each of its blocks has some of the rows; what
/// one step writes of a row the next one reads in the same block, and only sums over the rows go
/// from block to block. So steps follow each other without a launch between them.
namespace tessera::ops {

inline constexpr int chain_width = 16;  ///< columns of the widest matrix
/// Threads side by side in a row, each with four columns.
inline constexpr int chain_lanes = chain_width / 4;
/// Few, as most of a step is the same for every warp, whether it has rows or not.
inline constexpr int chain_threads = 256;
/// Rows that a block has at once.
inline constexpr int chain_rows = chain_threads / chain_lanes;
inline constexpr int most_chain_calls = 8;
inline constexpr int most_chain_steps = 2 * most_chain_calls;

/// Up to so many rows one cluster has them all; its blocks meet sooner than those of a grid.
inline constexpr std::int64_t cluster_chain_rows = 8192;
inline constexpr int most_cluster_chain_blocks = 16;
inline constexpr int most_grid_chain_blocks = 128;
/// Numbers between the beginnings of two rows, at most: 32 bits count all of a matrix.
inline constexpr std::int64_t most_chain_stride = 1 << 15;
inline constexpr std::int64_t grid_chain_rows = 32768;

/// Sums that a block keeps for every other one: two for each column.
inline constexpr int chain_sums = 2 * chain_width;
/// Sums that a chain leaves until its end, at most: those of a weight, its bias, and the columns of
/// its input's gradient for each call.
inline constexpr int weight_sums = chain_width * chain_width + chain_width;
inline constexpr int most_left_sums = most_chain_calls * (weight_sums + chain_sums);

/// y = x F + bias, where F is a weight or its transpose.
template <class T>
struct ProductStep {
  int in, out;
  cuda::Rows<const T> x, weight;
  bool transposed;            ///< F is what the weight is the transpose of
  const T* bias;              ///< may be null
  cuda::Rows<const T> gates;  ///< may be absent: y counts only where these are above 0
  cuda::Rows<T> y;
  T* sums;  ///< of the columns of y; may be null
};

/// The gradients of a weight and its bias; each may be absent.
template <class T>
struct WeightStep {
  int in, out;
  cuda::Rows<const T> x, grad_y;
  cuda::Rows<T> grad_weight;
  T* grad_bias;
};

template <class T>
struct NormStep {
  int cols;
  bool training, relu;
  cuda::Rows<const T> x;
  cuda::Rows<T> y;
  Statistics<T> statistics;
};

template <class T>
struct NormGradStep {
  int cols;
  bool relu;
  bool follows_norm;  ///< in the same chain, which may be the one that finds `mean`
  cuda::Rows<const T> x, grad_y;
  cuda::Rows<T> grad_x;
  const float *mean, *inverse_deviation;
  const float *gamma, *beta;  ///< each of these may be null
  float *grad_gamma, *grad_beta;
  T* grad_shift;
};

/// Cross-entropy of classes and its gradient, for rows that are counted so many times.
template <class T>
struct LossStep {
  int cols;
  cuda::Rows<const T> logits;
  cuda::Rows<T> gradient;  ///< may be absent, as its sums
  T* sums;
  const std::int32_t* times;
  const std::int32_t* labels;
  double count;
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
  int count = 0;
  bool exchanges = false;  ///< some step needs the sums of all blocks
  bool leaves = false;     ///< some step leaves sums until the end
  cuda::Workspace workspace = {};
  ChainStep<T> steps[most_chain_steps];
};

/// In one cluster of so many blocks, or in as many that all run at once. False where there is no
/// room for them after all.
template <class T>
bool run_chain_in_cluster(const ChainLaunch<T>& launch, int blocks, Stream stream);
template <class T>
bool run_chain_in_grid(const ChainLaunch<T>& launch, int blocks, Stream stream);
/// Whether the current GPU has room for so many blocks.
template <class T>
bool cluster_has_room(int blocks);
template <class T>
bool grid_has_room(int blocks);

}  // namespace tessera::ops
