// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "ops/spmm/cuda/epilogue.hpp"
#include "ops/spmm/kernel.hpp"

/// The CUDA kernels of spmm, each group from the file of its name. Only in a build with CUDA.
namespace tessera::ops {

void append_cuda_heads_kernels(std::vector<SpmmKernel>& table);
void append_cuda_rows_kernels(std::vector<SpmmKernel>& table);
void append_cuda_short_kernels(std::vector<SpmmKernel>& table);
void append_cuda_tall_kernels(std::vector<SpmmKernel>& table);
void append_cusparse_kernels(std::vector<SpmmKernel>& table);

/// Blocks that may share the features of a row: the second dimension of a grid has no more.
inline constexpr std::int64_t max_blocks_of_features = 65535;
/// What any row kernel takes: where rows are not on boundaries, a lane has one feature.
inline constexpr std::int64_t max_features_of_rows = max_blocks_of_features * 32;

/// The epilogue of a run, as launches take it.
inline EpilogueLaunch epilogue_launch(const SpmmProblem& problem, const SpmmCall& call) {
  return {call.bias.data, call.residual.data, call.residual.stride, call.formula, problem.output()};
}

}  // namespace tessera::ops
