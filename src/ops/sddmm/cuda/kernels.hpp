// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "ops/sddmm/kernel.hpp"

/// The CUDA kernels of sddmm. Only in a build with CUDA.
namespace tessera::ops {

void append_cuda_sddmm_kernels(std::vector<SddmmKernel>& table);
void append_cuda_panels_kernels(std::vector<SddmmKernel>& table);
void append_cuda_list_kernels(std::vector<SddmmKernel>& table);
void append_cuda_tall_dots_kernels(std::vector<SddmmKernel>& table);
void append_cuda_short_dots_kernels(std::vector<SddmmKernel>& table);

}  // namespace tessera::ops
