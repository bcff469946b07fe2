// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <vector>

#include "ops/cuda/whole_units.hpp"
#include "ops/dense/cuda/epilogue.hpp"
#include "ops/spmm/kernel.hpp"

/// The CUDA kernels of spmm, each group from the file of its name. Only in a build with CUDA.
namespace tessera::ops {

void append_cuda_heads_kernels(std::vector<SpmmKernel>& table);
void append_cuda_hybrid_kernels(std::vector<SpmmKernel>& table);
void append_cuda_rows_kernels(std::vector<SpmmKernel>& table);
void append_cuda_scatter_kernels(std::vector<SpmmKernel>& table);
void append_cuda_short_kernels(std::vector<SpmmKernel>& table);
void append_cuda_tall_kernels(std::vector<SpmmKernel>& table);

/// Blocks that may share the features of a row: the second dimension of a grid has no more.
inline constexpr std::int64_t max_blocks_of_features = 65535;
/// What any row kernel takes: where rows are not on boundaries, a lane has one feature.
inline constexpr std::int64_t max_features_of_rows = max_blocks_of_features * 32;

/// Sets what of an epilogue comes with a run; scales, rests and divisors are the strategy's.
inline void set_epilogue(const SpmmProblem& problem, const SpmmCall& call,
                         EpilogueLaunch& epilogue) {
  epilogue.bias = call.bias.data;
  epilogue.residual = call.residual.data;
  epilogue.residual_stride = call.residual.stride;
  epilogue.residual_scale = call.residual_scale.data;
  epilogue.formula = call.formula;
  epilogue.output = problem.output();
}

/// Lanes that take a row of features together: a power of two, with 16 bytes each where rows are
/// `aligned`, otherwise with one feature.
inline int lanes_for(std::int64_t features, Precision precision, bool aligned) {
  const auto element = static_cast<std::int64_t>(bytes_per_element(precision));
  const std::int64_t vectors = aligned ? features * element / 16 : features;
  return static_cast<int>(std::min<std::uint64_t>(
      32, std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(vectors, 1)))));
}

/// Where a run's X and Y lie; strides are in elements.
template <class Features>
void set_features(const SpmmProblem& problem, const SpmmCall& call, Features& features) {
  features.x = call.x.data;
  features.x_stride = call.x.stride;
  features.y = call.y.data;
  features.y_stride = call.y.stride;
  features.count = problem.features;
}

inline std::int64_t bytes_of_units(const SpmmProblem& problem) {
  return problem.num_sources() * features_of_units(problem.features, problem.precision) *
         static_cast<std::int64_t>(bytes_per_element(problem.precision));
}

}  // namespace tessera::ops
