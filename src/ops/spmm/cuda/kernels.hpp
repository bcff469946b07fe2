// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "ops/spmm/cuda/epilogue.hpp"
#include "ops/spmm/kernel.hpp"

/// The CUDA kernels of spmm, each group from the file of its name. Only in a build with CUDA.
namespace tessera::ops {

void append_cuda_heads_kernels(std::vector<SpmmKernel>& table);
void append_cuda_hybrid_kernels(std::vector<SpmmKernel>& table);
void append_cuda_ordered_rows_kernel(std::vector<SpmmKernel>& table);
void append_cuda_rows_kernels(std::vector<SpmmKernel>& table);
void append_cuda_scatter_kernels(std::vector<SpmmKernel>& table);
void append_cuda_short_kernels(std::vector<SpmmKernel>& table);
void append_cuda_tall_kernels(std::vector<SpmmKernel>& table);
void append_cusparse_kernels(std::vector<SpmmKernel>& table);

/// Whether a weight of the graph is below the smallest normal number: cuSPARSE, and atomic
/// additions in memory, take such numbers for 0.
bool has_subnormal_weights(const Graph& graph);

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

}  // namespace tessera::ops
