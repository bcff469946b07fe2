// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "ops/sddmm/kernel.hpp"

/// The CUDA kernels of sddmm. Only in a build with CUDA.
namespace tessera::ops {

void append_cuda_sddmm_kernels(std::vector<SddmmKernel>& table);
void append_cuda_dot_tiles_kernels(std::vector<SddmmKernel>& table);
void append_cuda_short_dots_kernels(std::vector<SddmmKernel>& table);

/// Dot products for rows on any boundary.
std::unique_ptr<const PreparedSddmm> prepare_cuda_scalars(const SddmmProblem& problem);

}  // namespace tessera::ops
