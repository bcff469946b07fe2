// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/batch_norm/cuda/backward.cuh"
#include "ops/batch_norm/cuda/forward.cuh"
#include "ops/cuda/gradient_source.cuh"

/// Several dense ops on narrow rows in one launch. One cluster has all rows, each of its blocks
/// some of them; what one step writes of a row the next one reads in the same block, and only sums
/// over the rows go from block to block. So steps follow each other without a launch between them.
namespace tessera::ops {

inline constexpr int chain_width = 16;  ///< columns of the widest matrix
inline constexpr int most_chain_steps = 8;
inline constexpr int most_chain_blocks = 16;
/// Few, as most of a step is the same for every warp, whether it has rows or not.
inline constexpr int chain_threads = 256;

/// y = x W^T + bias.
template <class T>
struct LinearStep {
  int in, out;
  cuda::Rows<const T> x, weight;
  const T* bias;  ///< may be null
  cuda::Rows<T> y;
};

/// Its gradients; each result may be absent.
template <class T>
struct LinearGradStep {
  int in, out;
  cuda::Rows<const T> x, weight, grad_y;
  cuda::Rows<T> grad_weight, grad_x;
  T* grad_bias;
  T* grad_x_sums;
  bool before_relu;
};

template <class T>
struct NormStep {
  int cols;
  bool training;
  BatchMoments<T> moments;
  Normalise<T, ShortFormula> normalise;
};

template <class T>
struct NormGradStep {
  int cols;
  NormGradientSums<T, MatrixGradient<T>, ShortFormula> sums;
  GradientOfInput<T, MatrixGradient<T>, ShortFormula> gradient;
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

enum class ChainKind { linear, linear_gradient, norm, norm_gradient, loss };

template <class T>
struct ChainStep {
  ChainKind kind;
  union {
    LinearStep<T> linear;
    LinearGradStep<T> linear_gradient;
    NormStep<T> norm;
    NormGradStep<T> norm_gradient;
    LossStep<T> loss;
  };

  ChainStep() : kind(ChainKind::linear), linear{} {}
};

template <class T>
struct ChainLaunch {
  std::int64_t rows = 0;
  std::int64_t rows_per_block = 0;
  int count = 0;
  ChainStep<T> steps[most_chain_steps];
};

/// In one cluster of so many blocks.
template <class T>
void run_chain_in_cluster(const ChainLaunch<T>& launch, int blocks, Stream stream);
/// Whether the current GPU has room for such a cluster.
template <class T>
bool has_room_for_chain(int blocks);

}  // namespace tessera::ops
