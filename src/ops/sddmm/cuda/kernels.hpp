// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ops/sddmm/kernel.hpp"

/// The CUDA kernels of sddmm. Only in a build with CUDA.
namespace tessera::ops {

void append_cuda_sddmm_kernels(std::vector<SddmmKernel>& table);
void append_cuda_list_kernels(std::vector<SddmmKernel>& table);
void append_cuda_tall_dots_kernels(std::vector<SddmmKernel>& table);
void append_cuda_short_dots_kernels(std::vector<SddmmKernel>& table);

/// The second dimension of a grid.
inline constexpr std::int64_t max_heads_of_tiles = 65535;

/// Why no kernel on windows or lists takes a problem; empty where one may.
inline std::string why_not_on_tiles(const SddmmProblem& problem) {
  if (problem.function != EdgeFunction::dot) return "dot products only";
  if (problem.factor != EdgeFactor::none) return "no scales on tiles";
  if (problem.features == 0) return "no features";
  if (!problem.aligned) return "rows on 16-byte boundaries only";
  if (head_bytes(problem) % 16 != 0) return "heads do not begin on 16-byte boundaries";
  if (problem.heads > max_heads_of_tiles) return "too many heads";
  return {};
}

}  // namespace tessera::ops
